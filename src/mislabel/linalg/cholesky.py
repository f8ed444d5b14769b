"""Cholesky factors of matrices of any size.

OpenBLAS, which SciPy's wheels bring, overruns a buffer when it factorises large matrices with several threads: 16,000 rows
on two threads end the process. Large matrices are therefore factorised here, by blocks that LAPACK is safe with.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from mislabel.linalg.contract import FloatArray

#: Up to this size LAPACK factorises the matrix in one call.
WHOLE = 12_000
#: Columns factorised at a time beyond that.
COLUMNS = 4096


def cholesky_in_place(matrix: FloatArray) -> tuple[FloatArray, int]:
    """The lower factor, in the lower triangle of ``matrix`` where its layout allows, and LAPACK's ``info``.

    ``info`` is zero, or the order of the first leading minor that is not positive definite. What is above the diagonal means
    nothing, before and after.
    """
    size = matrix.shape[0]
    if size <= WHOLE:
        factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
        return np.asarray(factor), int(info)
    matrix = np.asfortranarray(matrix)
    for start in range(0, size, COLUMNS):
        stop = min(start + COLUMNS, size)
        corner = np.array(matrix[start:stop, start:stop], order="F")
        corner, info = lapack.dpotrf(corner, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            return matrix, start + int(info)
        matrix[start:stop, start:stop] = corner
        panel = np.array(matrix[stop:, start:stop], order="F")
        panel = blas.dtrsm(1.0, corner, panel, side=1, lower=1, trans_a=1, overwrite_b=1)
        matrix[stop:, start:stop] = panel
        for left in range(stop, size, COLUMNS):
            right = min(left + COLUMNS, size)
            below, beside = (np.asfortranarray(panel[left - stop : end]) for end in (size - stop, right - stop))
            rest = np.array(matrix[left:, left:right], order="F")
            matrix[left:, left:right] = blas.dgemm(-1.0, below, beside, beta=1.0, c=rest, trans_b=1, overwrite_c=1)
    return matrix, 0
