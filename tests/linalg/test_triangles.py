"""Tiles against whole matrices, at sizes around a tile's edge."""

import numpy as np
import pytest

from mislabel.linalg.triangles import column_norms_squared, lower_copy, mirror_lower, symmetric_columns

SIZES = [0, 1, 2, 127, 128, 129, 300, 1600]


def lower_with_rubbish_above(rng, size, order):
    matrix = np.array(rng.normal(size=(size, size)), order=order)
    matrix[np.triu_indices(size, 1)] = np.nan
    return matrix


def whole(matrix):
    lower = np.tril(matrix)
    return lower + np.tril(matrix, -1).T


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", SIZES)
def test_the_lower_triangle_is_all_that_counts(size, order, rng):
    matrix = lower_with_rubbish_above(rng, size, order)
    expected = whole(matrix)
    index = rng.permutation(size)[: max(1, size // 3)] if size else np.zeros(0, dtype=int)
    np.testing.assert_array_equal(symmetric_columns(matrix, index), expected[:, index])
    np.testing.assert_array_equal(np.tril(lower_copy(matrix, 2.5)), 2.5 * np.tril(matrix))
    assert lower_copy(matrix).flags.f_contiguous
    np.testing.assert_allclose(column_norms_squared(matrix), (np.tril(matrix) ** 2).sum(axis=0), rtol=1e-12)
    mirrored = mirror_lower(matrix)
    assert mirrored is matrix
    np.testing.assert_array_equal(matrix, expected)
