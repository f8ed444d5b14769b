"""Labels beyond any plausible scale: no fit looks at them, and all of them are suspect."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from mislabel import LabelNoiseRegressor
from mislabel.decisions import SCORES
from mislabel.errors import NotConvergedError
from mislabel.estimators import fitting
from mislabel.estimators.set_aside import SetAside

ABSURD = [1e7, 1e12, 1e20, 9.96921e36, 1e300, -1e300]
LEARNED = [
    "z_",
    "loo_mean_",
    "loo_variance_",
    "loo_error_",
    "noise_variance_",
    "label_noise_",
    "corrected_labels_",
    "objective_path_",
]


def with_errors(absurd=None, size=40):
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(size, 3))
    labels = 3 * features[:, 0] + rng.normal(0, 0.05, size)
    labels[5] += 4.0
    if absurd is not None:
        labels[9] = absurd
    return features, labels


def kernel_matrix(features):
    return np.exp(-((features[:, None] - features) ** 2).sum(axis=2))


MODELS = {
    "default": {},
    "plain": {"noise": "none"},
    "basic": {"noise": "uniform"},
    "paper": {"base_noise": 0.0, "tune": "none"},
    "maximum": {"inference": "maximum"},
    "low rank": {"rank": 15},
    "over a mean": {"mean": LinearRegression()},
    "precomputed": {"kernel": "precomputed"},
    "objects": {"kernel": lambda left, right: float(np.exp(-np.sum((left - right) ** 2)))},
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", list(MODELS))
def test_how_absurd_a_label_is_changes_nothing(name):
    points = kernel_matrix if name == "precomputed" else lambda features: features
    features, missing = with_errors(np.nan)
    absent = LabelNoiseRegressor(**MODELS[name], missing="predict").fit(points(features), missing)
    expected = absent.audit().sort_values("row", ignore_index=True).drop(9)
    for value in ABSURD:
        features, labels = with_errors(value)
        model = LabelNoiseRegressor(**MODELS[name]).fit(points(features), labels)
        others = np.delete(np.arange(40), 9)
        for attribute in LEARNED:
            found, wanted = getattr(model, attribute), getattr(absent, attribute)
            if attribute != "objective_path_":
                found, wanted = found[others], wanted[others]
            np.testing.assert_array_equal(found, wanted, err_msg=f"{attribute} at {value}")
        assert model.loo_mean_[9] == absent.loo_mean_[9] == model.corrected_labels_[9]
        table = model.audit().sort_values("row", ignore_index=True)
        for column in ("expected", "z", "p_value", "q_value", "score", "suspect", "suggested_label"):
            np.testing.assert_array_equal(table[column].drop(9), expected[column], err_msg=f"{column} at {value}")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [*ABSURD, 1.7e308])
def test_an_absurd_label_is_suspect_in_every_audit(value):
    features, labels = with_errors(value)
    model = LabelNoiseRegressor().fit(features, labels)
    np.testing.assert_array_equal(model.set_aside_, [9])
    assert model.set_aside_reason_.startswith(f"row 9 ({value:.6g}) is far outside the range of all other labels")
    for score in SCORES:
        for decision in ({"fdr": 1e-12}, {"threshold": "z", "cutoff": 50.0}, {"threshold": "top-k", "cutoff": 1}):
            for calibrated in (True, False):
                table = model.audit(score=score, calibrated=calibrated, **decision)
                first = table.iloc[0]
                assert first["row"] == 9
                assert first["suspect"]
                assert first["p_value"] == first["q_value"] == 0.0
                assert abs(first["suggested_label"] - 3 * features[9, 0]) < 0.3
                assert first["expected_low"] < first["suggested_label"] < first["expected_high"]
                assert np.isfinite(table.drop(columns=["row", "suspect"]).to_numpy()).all()
    assert 5 in model.audit().query("suspect")["row"].tolist()


def test_labels_of_many_decades_are_not_set_aside(rng):
    for labels in (
        rng.lognormal(0, 3, 5000),
        10 ** rng.uniform(-4, 4, 300),
        rng.standard_cauchy(2000),
        np.where(rng.random(500) < 0.97, 0.0, rng.lognormal(0, 3, 500)),
        np.append(np.full(60, 3.0), 900.0),
        np.append(np.zeros(60), 1e9),
        np.append(rng.normal(size=95), 1e9 * rng.uniform(1, 10, size=5)),
        np.arange(4.0) ** 99,
    ):
        assert SetAside.among(labels).positions.size == 0


def test_fill_values_are_set_aside_however_many(rng):
    labels = rng.normal(size=200)
    labels[::5] = 9.96921e36
    labels[7], labels[8] = -1e20, np.nan
    found = SetAside.among(labels)
    np.testing.assert_array_equal(found.positions, np.sort([*range(0, 200, 5), 7]))
    assert found.high == np.max(labels, where=labels < 1e6, initial=-9.0)
    assert "rows 0, 5, 7, 10, 15, ..." in found.sentence(np.arange(200), labels)


def test_an_absurd_label_among_equal_ones():
    labels = np.full(30, 3.0)
    labels[4] = 1e20
    np.testing.assert_array_equal(SetAside.among(labels).positions, [4])


def test_nothing_is_set_aside_as_a_rule():
    model = LabelNoiseRegressor().fit(*with_errors())
    assert model.set_aside_.size == 0
    assert model.set_aside_reason_ == ""


def test_a_fit_without_finite_numbers_is_an_error(monkeypatch):
    def spoilt(*arguments, **options):
        found = fit_mixture(*arguments, **options)
        found.weights[0] = np.nan
        return found

    fit_mixture = fitting.fit_mixture
    monkeypatch.setattr(fitting, "fit_mixture", spoilt)
    with pytest.raises(NotConvergedError, match="did not end in finite numbers"):
        LabelNoiseRegressor().fit(*with_errors())
