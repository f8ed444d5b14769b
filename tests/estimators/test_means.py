import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.errors import InvalidParameterError
from mislabel.estimators.means import MEANS, choose_mean, mean_named


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
