import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from mislabel import LabelNoiseRegressor
from mislabel.errors import InvalidParameterError
from mislabel.estimators import means
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


def test_half_a_mean_is_taken_where_two_models_err_differently(rng, monkeypatch):
    labels = rng.normal(size=500)
    noise = rng.normal(size=500)
    errors = {"none": 0.5 * rng.normal(size=500), "trees": 0.5 * rng.normal(size=500), "boosting": 5.0 * noise}

    def tried(model, name, points, labels, known_errors, seed, at_least, repeats):
        expected, variance = labels + errors[name][: labels.size], np.full(labels.size, errors[name].var())
        return means._Trial(means.calibrate(labels - expected, variance, expected).log_density, expected, variance)

    monkeypatch.setattr(means, "_tried", tried)
    choice = choose_mean(LabelNoiseRegressor(), rng.normal(size=(500, 2)), labels, np.zeros(500), 0, quiet)
    assert choice.name == "half-trees"
    # Independent errors of the same size: half the variance.
    gain = choice.densities["half-trees"] - max(choice.densities["none"], choice.densities["trees"])
    assert gain == pytest.approx(0.5 * np.log(2), abs=0.1)
    assert "half of what extra trees predict" in choice.sentence
    # Nothing is gained by two models that err alike.
    errors["trees"] = errors["none"] * 1.001
    alike = choose_mean(LabelNoiseRegressor(), rng.normal(size=(500, 2)), labels, np.zeros(500), 0, quiet)
    assert alike.name == "none"


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
    assert set(means.MEAN_WORDS) == set(MEANS)
