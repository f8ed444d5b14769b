from itertools import pairwise

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from mislabel import LabelNoiseRegressor
from mislabel._common.progress import ProgressReporter
from mislabel.errors import InvalidParameterError
from mislabel.estimators.mean_choice import Comparison, choose_mean
from mislabel.estimators.mean_functions import MEAN_WORDS, MEANS, mean_named


def test_one_fit_after_the_other_moves_the_progress_on(friedman, monkeypatch):
    features, labels, _, _ = friedman(150, 0.1, 3.0, 0)
    shown = []
    monkeypatch.setattr(ProgressReporter, "__call__", lambda self, message, done: shown.append((message, done)))
    LabelNoiseRegressor(mean="auto", label_transform="auto").fit(features, np.exp(labels / 8.0))
    stages = [done for message, done in shown if message.startswith(("labels", "a process", "cross-fitting"))]
    assert len(stages) >= 4
    assert stages == sorted(stages)
    assert stages[0] < 0.2
    assert 0.4 < stages[-1] < 1.0
    # Within one fit a further guess may begin a little before the end of the last one.
    assert max(before - after for (_, before), (_, after) in pairwise(shown)) < 0.1


def test_smooth_functions_are_left_to_the_gaussian_process(friedman):
    features, labels, _, _ = friedman(300, 0.1, 1.0, seed=0)
    model = LabelNoiseRegressor(mean="auto").fit(features, labels)
    assert model.mean_choice_.name == "none"
    assert list(model.mean_choice_.densities) == ["none"]
    assert model.mean_model_ is None
    assert "Gaussian process alone predicts held-out labels best" in model.mean_choice_.sentence


def test_steps_are_left_to_trees(rng):
    features = rng.uniform(size=(1000, 8))
    labels = 10.0 * (features[:, 0] > 0.5) + 5.0 * (features[:, 1] > 0.3) * (features[:, 2] > 0.6)
    labels += 0.3 * rng.normal(size=1000)
    choice = LabelNoiseRegressor(mean="auto").fit(features, labels).mean_choice_
    assert choice.name in ("boosting", "trees")
    assert choice.densities[choice.name] > choice.densities["none"]


class Known:
    """A process whose leave-one-out predictions are known."""

    def __init__(self, expected, variance):
        self.loo_mean, self.loo_variance = expected, np.full(expected.size, variance)


def comparison(labels, errors):
    """Models with known errors: a process removes from a mean what the process alone does not share of its errors."""

    def predict_mean(name, rows, repeats):
        return (labels + errors[name])[rows]

    def fit_process(rows, mean):
        if not mean.any():
            return Known((labels + errors["none"])[rows], errors["none"].var())
        error = 0.5 * (errors["none"] + errors["trees"])[rows]
        return Known(labels[rows] + error - mean, error.var())

    return Comparison(labels, predict_mean, fit_process, 1)


def test_half_a_mean_is_taken_where_two_models_err_differently(rng):
    labels = rng.normal(size=500)
    noise = rng.normal(size=500)
    errors = {"none": 0.5 * rng.normal(size=500), "trees": 0.5 * rng.normal(size=500), "boosting": 5.0 * noise}
    every = np.arange(500)
    found = choose_mean(comparison(labels, errors), every, 0, quiet)
    choice = found.choice
    assert choice.name == "half-trees"
    assert found.process is not None
    np.testing.assert_allclose(found.out_of_fold, 0.5 * (labels + errors["trees"]))
    # Independent errors of the same size: half the variance.
    gain = choice.densities["half-trees"] - choice.densities["none"]
    assert gain == pytest.approx(0.5 * np.log(2), abs=0.1)
    assert "half of what extra trees predict" in choice.sentence
    # Nothing is gained by two models that err alike.
    errors["trees"] = errors["none"] * 1.001
    alike = choose_mean(comparison(labels, errors), every, 0, quiet)
    assert alike.choice.name == "none"


def test_many_rows_are_compared_on_some_of_them(rng):
    labels = rng.normal(size=4000)
    errors = {name: size * rng.normal(size=4000) for name, size in (("none", 0.1), ("trees", 1.0), ("boosting", 1.0))}
    found = choose_mean(comparison(labels, errors), np.arange(4000), 0, quiet)
    assert found.choice.name == "none"
    assert found.choice.rows == 1000
    assert found.process is None


def quiet(message):
    pass


def test_a_process_over_half_a_mean_is_halfway_between(rng):
    features = rng.uniform(-2, 2, size=(150, 1))
    labels = np.sin(2 * features[:, 0]) + 0.2 * rng.normal(size=150)
    settings = {"kernel": RBF(0.5), "tune": "none", "noise": "uniform", "base_noise": 0.04, "random_state": 0}
    none, half, whole = (
        LabelNoiseRegressor(mean=mean, **settings).fit(features, labels).predict(features)
        for mean in ("none", "half-trees", "trees")
    )
    # But for what the uniform noise, found anew each time, changes.
    np.testing.assert_allclose(half, 0.5 * (none + whole), atol=3e-3)
    assert np.abs(whole - none).max() > 0.1


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


def test_few_rows_and_copies_are_left_to_the_gaussian_process(rng, friedman):
    features, labels, _, _ = friedman(20, 0.0, 0.0, seed=0)
    small = LabelNoiseRegressor(mean="auto").fit(features, labels)
    assert small.mean_choice_.name == "none"
    assert "too few rows" in small.mean_choice_.sentence
    features, labels, _, _ = friedman(70, 0.0, 0.0, seed=0)
    copies = LabelNoiseRegressor(mean="auto").fit(np.tile(features, (4, 1)), np.tile(labels, 4))
    assert max(copies.mean_choice_.densities.values()) < 2.0
    single = LabelNoiseRegressor(mean="auto").fit(features, labels)
    assert copies.audit()["suspect"].sum() == 4 * single.audit()["suspect"].sum()


def test_every_mean_has_words():
    assert set(MEAN_WORDS) == set(MEANS)
