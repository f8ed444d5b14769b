import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from mislabel import LabelNoiseRegressor
from mislabel.estimators.series import SERIES_FROM, judged_by_stretches, panel_weights, series_correlation


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


def test_panel_weights_are_the_least_absolute_errors(rng):
    truth = rng.normal(size=400)
    predictions = truth[:, None] + rng.normal(size=(400, 3)) * [0.3, 0.5, 2.0]
    labels = truth + 5.0
    predictions += 5.0
    labels[:40] += rng.choice([-1e3, 1e3], 40)
    weights = panel_weights(predictions, labels)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    usual = np.median(np.abs(labels - predictions @ weights))

    def loss(free):
        both = np.append(free, 1.0 - free.sum())
        error = np.abs(labels - predictions @ both)
        return np.where(error < usual, error**2 / (2 * usual), error - usual / 2).sum()

    slow = minimize(loss, [1 / 3, 1 / 3], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).x
    np.testing.assert_allclose(weights[:2], slow, atol=2e-3)
    assert weights[0] > weights[1] > weights[2]


def test_useless_and_perfect_predictions_get_weights_too(rng):
    labels = rng.normal(size=50)
    np.testing.assert_allclose(panel_weights(np.column_stack([labels, labels]), labels), 0.5)
    np.testing.assert_allclose(panel_weights(np.column_stack([labels, np.zeros(50)]), labels), [1.0, 0.0], atol=1e-6)


def test_models_that_remember_neighbours_get_no_weight(rng):
    # Time is a feature: a tree predicts near stretches from their neighbours' drift, and far ones badly.
    time = np.linspace(0.0, 1.0, 600)
    signal = rng.normal(size=600)
    labels = signal + np.cumsum(0.1 * rng.normal(size=600))
    panel = VotingRegressor([("line", LinearRegression()), ("tree", DecisionTreeRegressor(min_samples_leaf=5))])
    features = np.column_stack([signal, time])
    found, model = judged_by_stretches(panel, features, labels, np.random.RandomState(0), None)
    again, _ = judged_by_stretches(panel, features, labels, np.random.RandomState(0), None)
    np.testing.assert_array_equal(found, again)
    assert found.shape == labels.shape
    assert model.weights[0] > model.weights[1]
    assert model.predict(features).shape == labels.shape
