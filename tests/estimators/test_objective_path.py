"""The objective's path is that of the descent that was kept: it never rises, and ends where the fit does."""

import numpy as np
import pytest

from mislabel import LabelNoiseRegressor

DESCENTS = {
    "paper": {"base_noise": 0.0, "tune": "none"},
    "small base": {"base_noise": 1e-3, "tune": "none"},
    "tuned": {"base_noise": 0.01},
    "penalty": {"base_noise": 0.01, "tune": "none", "penalty": 0.1},
    "maximum": {"inference": "maximum"},
    "multiplicative": {"base_noise": 0.01, "tune": "none", "solver": "multiplicative"},
    "lbfgs": {"base_noise": 0.01, "tune": "none", "solver": "lbfgs"},
    "uniform": {"noise": "uniform", "solver": "multiplicative"},
    "low rank": {"inference": "maximum", "rank": 20},
}


def problem(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(40, 100))
    features = rng.uniform(size=(size, 3))
    labels = np.sin(4 * features[:, 0]) + features[:, 1] + 0.1 * rng.normal(size=size)
    wrong = rng.permutation(size)[: int(size * rng.choice([0.05, 0.2, 0.5, 0.9]))]
    labels[wrong] += rng.normal(0, 3, wrong.size)
    return features, labels


@pytest.mark.filterwarnings("ignore::mislabel.errors.MislabelWarning")
@pytest.mark.parametrize("name", list(DESCENTS))
def test_a_descent_never_rises(name):
    for seed in range(24 if DESCENTS[name].get("tune") == "none" else 6):
        model = LabelNoiseRegressor(**DESCENTS[name]).fit(*problem(seed))
        path = model.objective_path_
        assert (np.diff(path) <= 1e-9 * (1.0 + np.abs(path[:-1]))).all()
        assert path[-1] == model.objective_
        assert path.size == model.n_iter_ + 1


@pytest.mark.filterwarnings("ignore::mislabel.errors.MislabelWarning")
def test_the_path_of_an_average_never_rises():
    for seed in range(24):
        model = LabelNoiseRegressor().fit(*problem(seed))
        path = model.objective_path_
        assert (np.diff(path) <= 0.0).all()
        assert path[-1] == model.objective_
        assert np.isfinite(path).all()
        assert path.size <= model.n_iter_ + 1
