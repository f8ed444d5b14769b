import os

# Small matrices, several thread pools: one BLAS thread each is fastest. Must be set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(12345)


@pytest.fixture(scope="session")
def shared_data():
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data with real data sets is not here")
    return folder


@pytest.fixture
def friedman():
    """The Friedman function with noise and planted errors: features, labels, which are wrong, clean function values."""

    def make(size, rate, level, seed):
        rng = np.random.default_rng(seed)
        features = rng.uniform(size=(size, 5))
        x1, x2, x3, x4, x5 = features.T
        clean = 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
        labels = clean + rng.normal(0, 0.5, size)
        wrong = np.zeros(size, dtype=bool)
        wrong[rng.permutation(size)[: round(rate * size)]] = True
        labels[wrong] += rng.normal(0, level * clean.std(), wrong.sum())
        return features, labels, wrong, clean

    return make
