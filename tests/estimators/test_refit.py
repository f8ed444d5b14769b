"""A fit that fails or is interrupted leaves the estimator exactly as it was."""

from functools import reduce

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from mislabel import LabelNoiseRegressor, estimators
from mislabel.errors import InvalidFeaturesError, InvalidLabelsError

#: Whatever a fit calls on its way, from the first check to the last attribute.
STEPS = [
    "regressor.row_ids",
    "regressor.check_features",
    "regressor.validate_data",
    "regressor.plan_rank",
    "regressor.seeded_generator",
    "prepared.check_labels",
    "prepared.check_consistent_length",
    "prepared.SetAside.among",
    "prepared.check_label_range",
    "prepared.check_label_errors",
    "prepared.check_sides",
    "prepared.Atoms.of",
    "prepared.Copies.among",
    "prepared.half_step_of",
    "prepared.as_kernel",
    "prepared.by_content",
    "prepared.kept",
    "mean.cross_fitted_mean",
    "process.center_of",
    "process.robust_scale",
    "process.KernelOnData",
    "process.fit_noise_model",
    "process.ExactPredictor",
    "process.check_finite",
    "regressor.evidence_of_labels",
    "regressor.LabelNoiseRegressor._store_evidence",
    "regressor.LabelNoiseRegressor._store_solver",
]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    features = rng.uniform(size=(30, 2))
    return LabelNoiseRegressor(mean=LinearRegression()).fit(features, features.sum(axis=1) + 0.1 * rng.normal(size=30))


@pytest.fixture
def other():
    rng = np.random.default_rng(2)
    features = pd.DataFrame(rng.uniform(size=(25, 4)), columns=list("abcd"))
    return features, rng.normal(size=25)


def unchanged(model, before):
    return model.__dict__.keys() == before.keys() and all(model.__dict__[key] is before[key] for key in before)


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("step", STEPS)
def test_a_failure_at_any_point_changes_nothing(fitted, other, monkeypatch, step, kind):
    def fails(*arguments, **options):
        raise kind(step)

    before = dict(fitted.__dict__)
    *owners, method = step.split(".")
    owner = reduce(getattr, owners, estimators)
    monkeypatch.setattr(owner, method, fails)
    with pytest.raises(kind, match=step):
        fitted.fit(*other)
    assert unchanged(fitted, before)


def test_refused_data_change_nothing(fitted, other):
    before = dict(fitted.__dict__)
    features, labels = other
    for bad, error in (
        ((features, labels * np.nan), InvalidLabelsError),
        ((features * np.inf, labels), InvalidFeaturesError),
    ):
        with pytest.raises(error):
            fitted.fit(*bad)
        assert unchanged(fitted, before)


def test_a_refit_that_succeeds_forgets_the_first(fitted, other):
    features, labels = other
    again = LabelNoiseRegressor(mean=LinearRegression()).fit(np.ones((9, 1)) * np.arange(9.0)[:, None], np.arange(9.0))
    again.fit(features, labels)
    fresh = LabelNoiseRegressor(mean=LinearRegression()).fit(features, labels)
    assert again.__dict__.keys() == fresh.__dict__.keys()
    np.testing.assert_array_equal(again.z_, fresh.z_)
    assert again.n_features_in_ == 4
