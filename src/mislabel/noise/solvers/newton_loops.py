"""Compiled loop of the Newton steps."""

from __future__ import annotations

import numpy as np

from mislabel.compiled_loops import compiled
from mislabel.linalg.contract import FloatArray, IntArray


@compiled
def mixed_information(inverse: FloatArray, weights: FloatArray, free: IntArray, mixture: float) -> FloatArray:
    """``2 t (a a') o C + (1 - 2 t) C o C`` of the free labels; lower triangle, Fortran order.

    ``t = 1`` is the Hessian, ``t = 1/2`` the average information.
    """
    size = free.shape[0]
    result = np.empty((size, size)).T
    for j in range(size):
        column = free[j]
        pull = 2.0 * mixture * weights[column]
        for i in range(j, size):
            entry = inverse[free[i], column]
            result[i, j] = entry * (pull * weights[free[i]] + (1.0 - 2.0 * mixture) * entry)
    return result
