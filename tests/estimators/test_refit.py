"""A fit that fails or is interrupted leaves the estimator exactly as it was."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from mislabel import LabelNoiseRegressor
from mislabel.errors import InvalidFeaturesError, InvalidLabelsError
from mislabel.estimators import regressor

#: Whatever a fit calls on its way, from the first check to the last attribute.
STEPS = [
    "row_ids",
    "check_features",
    "validate_data",
    "check_labels",
    "check_consistent_length",
    "SetAside.among",
    "check_label_range",
    "plan_rank",
    "check_label_errors",
    "seeded_generator",
    "Copies.among",
    "rounding_variance",
    "as_kernel",
    "by_content",
    "take",
    "cross_fitted_mean",
    "center_of",
    "robust_scale",
    "KernelOnData",
    "fit_noise_model",
    "ExactPredictor",
    "check_finite",
    "LabelEvidence.of",
    "LabelNoiseRegressor._store_evidence",
    "LabelNoiseRegressor._store_solver",
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
    owner, _, method = step.rpartition(".")
    monkeypatch.setattr(getattr(regressor, owner) if owner else regressor, method, fails)
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
