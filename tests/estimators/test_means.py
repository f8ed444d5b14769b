import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.errors import InvalidParameterError
from mislabel.estimators.means import MEANS, SERIES_FROM, choose_mean, mean_named, series_correlation


def quiet(message, fraction):
    pass


def test_smooth_functions_are_left_to_the_gaussian_process(friedman):
    features, labels, _, _ = friedman(300, 0.1, 1.0, seed=0)
    model = LabelNoiseRegressor(mean="auto").fit(features, labels)
    assert model.mean_choice_.name == "none"
    assert set(model.mean_choice_.densities) == {"none", "boosting", "trees"}
    assert model.mean_model_ is None
    assert "Gaussian process alone predicts held-out labels best" in model.mean_choice_.sentence


def test_steps_are_left_to_trees(rng):
    features = rng.uniform(size=(1000, 8))
    labels = 10.0 * (features[:, 0] > 0.5) + 5.0 * (features[:, 1] > 0.3) * (features[:, 2] > 0.6)
    labels += 0.3 * rng.normal(size=1000)
    choice = choose_mean(LabelNoiseRegressor(), features, labels, np.zeros(1000), 0, quiet)
    assert choice.name in ("boosting", "trees")
    assert choice.densities[choice.name] > choice.densities["none"]


@pytest.mark.parametrize("name", list(MEANS))
def test_every_mean_can_be_named(name, friedman):
    features, labels, _, clean = friedman(120, 0.05, 1.0, seed=1)
    model = LabelNoiseRegressor(mean=name).fit(features, labels)
    assert model.mean_model_ is not None
    assert model.mean_choice_ is None
    assert np.corrcoef(model.predict(features), clean)[0, 1] > 0.8
    assert mean_named("none") is None


def test_unknown_names_get_advice(friedman):
    features, labels, _, _ = friedman(50, 0.1, 1.0, seed=0)
    with pytest.raises(InvalidParameterError, match="Did you mean 'boosting'"):
        LabelNoiseRegressor(mean="bosting").fit(features, labels)


def test_series_are_judged_in_stretches(rng):
    # A sensor that drifts slowly away and comes back, with features that repeat every day.
    size = 900
    hour = np.arange(size)
    features = np.column_stack([np.sin(hour / 4), np.cos(hour / 4), np.sin(hour / 300), np.cos(hour / 300)])
    features += 0.02 * rng.normal(size=features.shape)
    labels = features @ [1.0, -0.5, 0.3, 0.2] + 0.05 * rng.normal(size=size)
    drift = np.exp(-0.5 * ((hour - 450) / 12.0) ** 2)
    model = LabelNoiseRegressor(mean="auto").fit(features, labels + 2.0 * drift)
    wrong = drift > 0.2
    assert model.mean_choice_.series is not None
    assert model.mean_choice_.series >= SERIES_FROM
    assert "successive rows share their errors" in model.mean_choice_.sentence
    assert np.median(np.abs(model.z_[wrong])) > 4 * np.median(np.abs(model.z_[~wrong]))
    np.testing.assert_allclose(model.predict(features)[~wrong], labels[~wrong], atol=0.5)
    # The same rows in random order are no series.
    order = rng.permutation(size)
    assert series_correlation(rng.normal(size=size)) < 0.2
    shuffled = LabelNoiseRegressor(mean="auto").fit(features[order], (labels + 2.0 * drift)[order])
    assert shuffled.mean_choice_.series is None


def test_few_or_flat_rows_are_no_series():
    assert series_correlation(np.ones(10)) == 0.0
    assert series_correlation(np.zeros(500)) == 0.0


def test_few_rows_and_copies_are_left_to_the_gaussian_process(rng, friedman):
    features, labels, _, _ = friedman(20, 0.0, 0.0, seed=0)
    small = LabelNoiseRegressor(mean="auto").fit(features, labels)
    assert small.mean_choice_.name == "none"
    assert "too few rows" in small.mean_choice_.sentence
    features, labels, _, _ = friedman(70, 0.0, 0.0, seed=0)
    copies = LabelNoiseRegressor(mean="auto").fit(np.tile(features, (4, 1)), np.tile(labels, 4))
    assert max(copies.mean_choice_.densities.values()) < 2.0
    assert not copies.audit()["suspect"].any()
