"""Symmetric and triangular matrices of which only the lower triangle is stored or valid, tile by tile for the cache's sake."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap

import numpy as np

from mislabel.linalg.contract import FloatArray, IntArray

_TILE = 128
#: From so many rows on memory matters more than how fast it is had.
_LARGE = 1500


def mirror_lower(matrix: FloatArray) -> FloatArray:
    """Copy the lower triangle of a square array onto its upper one, in place."""
    size = matrix.shape[0]
    above = ~np.tri(min(_TILE, size), dtype=bool)
    for left, right in _tiles(size):
        square = matrix[left:right, left:right]
        np.copyto(square, square.T, where=above[: right - left, : right - left])
        for top in range(right, size, _TILE):
            matrix[left:right, top : top + _TILE] = matrix[top : top + _TILE, left:right].T
    return matrix


def symmetric_columns(lower: FloatArray, index: IntArray) -> FloatArray:
    """Columns of a symmetric matrix of which only the lower triangle is valid; Fortran order."""
    columns = np.empty((index.size, lower.shape[0]))
    for column, j in zip(columns, index.tolist(), strict=True):
        column[:j] = lower[j, :j]
        column[j:] = lower[j:, j]
    return columns.T


def lower_copy(matrix: FloatArray, factor: float = 1.0) -> FloatArray:
    """A Fortran-ordered copy of the lower triangle, times a number; what is above it means nothing."""
    size = matrix.shape[0]
    copy = untouched_square(size)
    for left, right in _tiles(size):
        np.multiply(matrix[left:, left:right], factor, out=copy[left:, left:right])
    return copy


def column_norms_squared(lower: FloatArray) -> FloatArray:
    """Squared norms of the columns of a lower-triangular array, whatever its upper triangle holds."""
    size = lower.shape[0]
    norms = np.empty(size)
    for left, right in _tiles(size):
        square, below = np.tril(lower[left:right, left:right]), lower[right:, left:right]
        norms[left:right] = np.einsum("ij,ij->j", square, square) + np.einsum("ij,ij->j", below, below)
    return norms


def untouched_square(size: int) -> FloatArray:
    """A Fortran-ordered square array of which only what is written takes up memory, where it is large.

    NumPy asks for huge pages, each of which would hold parts of both triangles.
    """
    if size < _LARGE:
        return np.empty((size, size)).T
    return np.frombuffer(mmap(-1, 8 * size**2)).reshape(size, size).T


def _tiles(size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, size, _TILE):
        yield start, min(start + _TILE, size)
