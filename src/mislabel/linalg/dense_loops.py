"""Compiled loops on dense matrices."""

from __future__ import annotations

import numpy as np

from mislabel.compiled_loops import compiled, compiled_for_speed
from mislabel.linalg.contract import FloatArray, IntArray

_TILE = 32


@compiled
def mirror_lower(matrix: FloatArray) -> FloatArray:
    """Copy the lower triangle of a square array onto its upper one, in place, tile by tile for the cache's sake."""
    size = matrix.shape[0]
    for left in range(0, size, _TILE):
        right = min(left + _TILE, size)
        for top in range(left, size, _TILE):
            bottom = min(top + _TILE, size)
            for j in range(left, right):
                for i in range(max(top, j + 1), bottom):
                    matrix[j, i] = matrix[i, j]
    return matrix


@compiled
def accurate_residual(matrix: FloatArray, noise: FloatArray, solution: FloatArray, rhs: FloatArray) -> FloatArray:
    """``rhs - (matrix + diag(noise)) @ solution`` in about twice the working precision.

    Products and sums are split into their rounded value and their rounding error (Dekker, Knuth; see Ogita, Rump and
    Oishi 2005 for the dot product built from them). ``matrix`` must be in Fortran order.
    """
    size = rhs.shape[0]
    high = rhs.copy()
    low = np.zeros(size)
    splitter = 134217729.0  # 2^27 + 1
    for j in range(size):
        factor = -solution[j]
        scaled = splitter * factor
        factor_high = scaled - (scaled - factor)
        factor_low = factor - factor_high
        for i in range(size):
            entry = matrix[i, j]
            scaled_entry = splitter * entry
            entry_high = scaled_entry - (scaled_entry - entry)
            entry_low = entry - entry_high
            product = entry * factor
            error = entry_low * factor_low - (
                ((product - entry_high * factor_high) - entry_low * factor_high) - entry_high * factor_low
            )
            total = high[i] + product
            back = total - high[i]
            low[i] += error + ((high[i] - (total - back)) + (product - back))
            high[i] = total
    for i in range(size):
        product = -noise[i] * solution[i]
        total = high[i] + product
        back = total - high[i]
        low[i] += (high[i] - (total - back)) + (product - back)
        high[i] = total
    return high + low


@compiled
def symmetric_columns(lower: FloatArray, index: IntArray) -> FloatArray:
    """Columns of a symmetric matrix of which only the lower triangle is valid; Fortran order."""
    size, count = lower.shape[0], index.shape[0]
    columns = np.empty((count, size)).T
    for k in range(count):
        j = index[k]
        for i in range(j):
            columns[i, k] = lower[j, i]
        for i in range(j, size):
            columns[i, k] = lower[i, j]
    return columns


@compiled
def lower_copy(matrix: FloatArray, factor: float = 1.0) -> FloatArray:
    """A Fortran-ordered copy of the lower triangle, times a number; the rest is left unwritten."""
    size = matrix.shape[0]
    copy = np.empty((size, size)).T
    for j in range(size):
        for i in range(j, size):
            copy[i, j] = factor * matrix[i, j]
    return copy


@compiled_for_speed
def column_norms_squared(lower: FloatArray) -> FloatArray:
    """Squared norms of the columns of a lower-triangular array, whatever its upper triangle holds."""
    size = lower.shape[0]
    norms = np.empty(size)
    for j in range(size):
        total = 0.0
        for i in range(j, size):
            total += lower[i, j] * lower[i, j]
        norms[j] = total
    return norms
