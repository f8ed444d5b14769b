"""A residual in about twice the working precision: a compiled loop, loaded where it is first needed."""

from __future__ import annotations

import numpy as np

from mislabel._common.compiled_loops import compiled
from mislabel.linalg.contract import FloatArray


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
