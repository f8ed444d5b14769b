import numpy as np
import pytest

from mislabel.linalg import cholesky
from mislabel.linalg.cholesky import cholesky_in_place
from tests import naive


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(cholesky, "WHOLE", 20)
    monkeypatch.setattr(cholesky, "COLUMNS", 16)


@pytest.mark.parametrize("size", [20, 21, 48, 61])
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_give_the_factor_of_the_whole(small_blocks, rng, size, order):
    dense = naive.random_covariance(rng, size) + np.eye(size)
    matrix = np.array(np.tril(dense) + 7.0 * np.triu(np.ones_like(dense), 1), order=order)
    factor, info = cholesky_in_place(matrix)
    assert info == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(dense), rtol=1e-10, atol=1e-12)


def test_large_factors_stay_in_place(small_blocks, rng):
    matrix = np.asfortranarray(naive.random_covariance(rng, 50) + np.eye(50))
    factor, _ = cholesky_in_place(matrix)
    assert factor is matrix


@pytest.mark.parametrize("row", [3, 20, 49])
def test_the_first_bad_minor_is_named(small_blocks, row):
    matrix = np.asfortranarray(np.eye(50))
    matrix[row, row] = -1.0
    assert cholesky_in_place(matrix)[1] == row + 1
