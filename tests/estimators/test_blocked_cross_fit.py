from typing import ClassVar

import numpy as np
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeRegressor

from mislabel import LabelNoiseRegressor
from mislabel.estimators.blocked_cross_fit import BLOCKS, SERIES_FROM, blocked_cross_fit, series_correlation


def test_series_are_judged_in_blocks(rng):
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


def test_shared_errors_count_and_the_models_own_do_not(rng):
    # A line cannot follow the curve: it errs anew in every row, by as much as the labels do over hundreds of them.
    size = 1500
    features = rng.uniform(-1.0, 1.0, (size, 2))
    drift = np.repeat([0.0, 0.6, 0.0, -0.6, 0.0], size // 5)
    typos = np.zeros(size)
    typos[rng.choice(np.flatnonzero(drift == 0.0), 20, replace=False)] = 6.0
    labels = features[:, 0] + 2.0 * features[:, 1] ** 2 + drift + typos
    panel = VotingRegressor([("line", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=2))])
    expected, model = blocked_cross_fit(panel, features, labels, np.random.RandomState(0), None)
    again, _ = blocked_cross_fit(panel, features, labels, np.random.RandomState(0), None)
    np.testing.assert_array_equal(expected, again)
    error = np.abs(labels - expected)
    plain = np.abs(labels - model.predict(features))
    wrong = (drift != 0.0) | (typos != 0.0)
    assert roc_auc_score(wrong, error) > 0.97 > 0.9 > roc_auc_score(wrong, plain)
    assert roc_auc_score(typos != 0.0, error) > 0.99


class Remembers(LinearRegression):
    """Keeps, for every block that is predicted, how many of its rows have a group that was learned from."""

    shared: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.learned_from = X[:, 0]
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        self.shared.append(int(np.isin(X[:, 0], self.learned_from).sum()))
        return super().predict(X)


def test_blocks_are_those_that_the_user_named(rng):
    groups = rng.integers(0, 30, 300).astype(float)
    blocked_cross_fit(Remembers(), groups[:, None], groups, np.random.RandomState(0), None)
    assert sum(Remembers.shared) > 200
    Remembers.shared.clear()
    blocked_cross_fit(Remembers(), groups[:, None], groups, np.random.RandomState(0), None, groups=groups)
    assert Remembers.shared == [0] * BLOCKS
    Remembers.shared.clear()
    first, last = np.arange(150), np.arange(150, 300)
    halves, weights = [(first, last), (last, first)], np.where(np.arange(300) < 150, 1.0, 3.0)
    flat, labels = np.zeros((300, 1)), np.where(np.arange(300) < 150, 0.0, 4.0)
    _, fitted = blocked_cross_fit(
        Remembers(), flat, labels, np.random.RandomState(0), None, folds=halves, weights=weights
    )
    assert Remembers.shared == [150, 150]
    np.testing.assert_allclose(fitted.predict(flat[:1]), 3.0)


def test_the_folds_and_weights_of_the_user_reach_a_series(rng):
    size = 400
    hour = np.arange(size)
    features = np.column_stack([np.sin(hour / 4), np.cos(hour / 4)]) + 0.02 * rng.normal(size=(size, 2))
    labels = features @ [1.0, -0.5] + 0.05 * rng.normal(size=size) + 2.0 * np.exp(-0.5 * ((hour - 200) / 20.0) ** 2)
    model = LabelNoiseRegressor(mean="auto")
    plain = model.fit(features, labels)
    assert plain.mean_choice_.series is not None
    before = plain.loo_mean_
    halves = [(hour[200:], hour[:200]), (hour[:200], hour[200:])]
    folded = LabelNoiseRegressor(mean="auto", cv=halves).fit(features, labels)
    assert folded.mean_choice_.series is not None
    assert not np.allclose(folded.loo_mean_, before)
    weighed = LabelNoiseRegressor(mean="auto").fit(features, labels, mean_weights=np.where(hour < 200, 1.0, 9.0))
    assert not np.allclose(weighed.loo_mean_, before)
