"""Compiled loop that mirrors a triangle."""

from __future__ import annotations

from mislabel.compiled_loops import compiled
from mislabel.linalg.contract import FloatArray

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
