"""Second derivatives of the objective by the noise variances."""

from __future__ import annotations

import numpy as np

from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.triangles import untouched_square

_COLUMNS = 128


def mixed_information(inverse: FloatArray, weights: FloatArray, free: IntArray, mixture: float) -> FloatArray:
    """``2 t (a a') o C + (1 - 2 t) C o C`` of the free labels, in ascending order; lower triangle, Fortran order.

    ``t = 1`` is the Hessian, ``t = 1/2`` the average information. Of ``inverse`` only the lower triangle is read.
    """
    result = untouched_square(free.size)
    pulls = weights[free]
    for first in range(0, free.size, _COLUMNS):
        some = slice(first, first + _COLUMNS)
        entries = inverse.T[free[some]].take(free[first:], axis=1)
        part = np.multiply(2.0 * mixture * pulls[some, None], pulls[first:], out=result.T[some, first:])
        part += (1.0 - 2.0 * mixture) * entries
        with np.errstate(over="ignore"):  # the factorisation that comes next tells of it
            part *= entries
    return result
