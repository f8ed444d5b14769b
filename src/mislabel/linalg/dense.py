"""Exact dense covariance on LAPACK, computed in place: one n x n buffer beside ``K``.

The buffer goes through three stages, each overwriting the one before: the Cholesky factor (dpotrf), its inverse
(dtrtri), the full inverse (dlauum). Whatever stage it is in, every quantity of the contract can still be had.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import blas, lapack

from mislabel.errors import KernelMatrixError
from mislabel.linalg.cholesky import cholesky_in_place
from mislabel.linalg.contract import Covariance, FloatArray, IntArray, SignalCovariance
from mislabel.linalg.cost import CHOLESKY, INVERSE_FROM_TRIANGULAR, TRIANGULAR_INVERSE, CostMeter
from mislabel.linalg.triangles import column_norms_squared, lower_copy, mirror_lower

Stage = Literal["factor", "inverse factor", "inverse"]

_ROWS_COMPARED = 64


class DenseCovariance(Covariance):
    """``K + diag(noise)`` by Cholesky factorisation. ``matrix`` is overwritten; only its lower triangle is read."""

    def __init__(self, matrix: FloatArray, meter: CostMeter | None = None) -> None:
        self.size = matrix.shape[0]
        self._meter = meter if meter is not None else CostMeter(self.size)
        self._buffer, info = cholesky_in_place(matrix)
        self._stage: Stage = "factor"
        if info == 0:
            self._meter.add_cholesky(self.size)
        else:
            self._meter.add(CHOLESKY, min(abs(info), self.size))
            raise KernelMatrixError(
                f"the covariance matrix is not positive definite (leading minor {info} of {self.size}): "
                "try gradually increasing base_noise, or check that the kernel is positive semi-definite."
            )
        pivots = self._buffer.diagonal()
        self._logdet = 2.0 * float(np.log(pivots).sum())
        self.smallest_pivot = float(pivots.min()) ** 2
        self._inverse_diagonal: FloatArray | None = None

    @classmethod
    def from_inverse(cls, inverse: FloatArray, logdet: float) -> DenseCovariance:
        """A covariance whose inverse (lower triangle) and log-determinant are already known."""
        covariance = cls.__new__(cls)
        covariance.size = inverse.shape[0]
        covariance._buffer, covariance._stage = inverse, "inverse"
        covariance._logdet, covariance._inverse_diagonal = logdet, None
        return covariance

    def solve(self, rhs: FloatArray) -> FloatArray:
        """``C @ rhs`` from whichever of factor, inverse factor or inverse is at hand."""
        if self._stage == "inverse":
            product = blas.dsymv if rhs.ndim == 1 else blas.dsymm
            return np.asarray(product(1.0, self._buffer, rhs, lower=1))
        if self._stage == "factor":
            solution, info = lapack.dpotrs(self._buffer, rhs, lower=1)
            if info != 0:
                raise KernelMatrixError(f"dpotrs rejected argument {-info}")
            return np.asarray(solution)
        columns = np.asfortranarray(rhs if rhs.ndim == 2 else rhs[:, None])
        half = blas.dtrmm(1.0, self._buffer, columns, lower=1)
        solution = blas.dtrmm(1.0, self._buffer, half, lower=1, trans_a=1, overwrite_b=1)
        return np.asarray(solution if rhs.ndim == 2 else solution[:, 0])

    def logdet(self) -> float:
        """Twice the sum of the logarithms of the Cholesky pivots."""
        return self._logdet

    def inverse_diagonal(self) -> FloatArray:
        """Column norms of the inverse factor: ``C = L^-T L^-1``."""
        if self._inverse_diagonal is None:
            if self._stage == "inverse":
                self._inverse_diagonal = self._buffer.diagonal().copy()
            else:
                self._invert_factor()
                self._inverse_diagonal = column_norms_squared(self._buffer)
        return self._inverse_diagonal

    def inverse(self) -> FloatArray:
        """All of ``C``, mirrored to both triangles."""
        return np.asarray(mirror_lower(lower_copy(self.take_inverse())))

    def take_inverse(self) -> FloatArray:
        """The lower triangle of ``C`` without a copy."""
        if self._stage != "inverse":
            self._invert_factor()
            self._buffer, info = lapack.dlauum(self._buffer, lower=1, overwrite_c=1)
            if info != 0:
                raise KernelMatrixError(f"dlauum failed with code {info}")
            self._meter.add(INVERSE_FROM_TRIANGULAR, self.size)
            self._stage = "inverse"
        return np.asarray(self._buffer)

    def _invert_factor(self) -> None:
        if self._stage == "factor":
            self._buffer, info = lapack.dtrtri(self._buffer, lower=1, overwrite_c=1)
            if info != 0:
                raise KernelMatrixError(f"dtrtri failed with code {info}: a pivot is zero")
            self._meter.add(TRIANGULAR_INVERSE, self.size)
            self._stage = "inverse factor"


class DenseSignal(SignalCovariance):
    """A dense ``amplitude * K``; each :meth:`with_noise` copies it once and factorises the copy in place."""

    def __init__(self, matrix: FloatArray, meter: CostMeter | None = None, amplitude: float = 1.0) -> None:
        # A symmetric C-ordered array is its own Fortran-ordered transpose: no copy for LAPACK.
        self.matrix = matrix if matrix.flags.f_contiguous else np.asarray(matrix.T, order="F")
        self.size = matrix.shape[0]
        self.meter = meter if meter is not None else CostMeter(self.size)
        self.amplitude = amplitude

    def scaled(self, amplitude: float) -> DenseSignal:
        """The same covariance times a number; the matrix is shared."""
        return self if amplitude == 1.0 else DenseSignal(self.matrix, self.meter, self.amplitude * amplitude)

    def diagonal(self) -> FloatArray:
        """``diag(K)``."""
        return np.asarray(self.amplitude * self.matrix.diagonal())

    def with_noise(self, noise: FloatArray, expected: FloatArray | None = None) -> DenseCovariance:
        """``K + diag(noise)``, factorised."""
        matrix = lower_copy(self.matrix, self.amplitude)
        matrix.ravel(order="K")[:: self.size + 1] += noise
        return DenseCovariance(matrix, self.meter)

    def residual(self, noise: FloatArray, solution: FloatArray, rhs: FloatArray) -> FloatArray:
        """``rhs - (K + diag(noise)) @ solution`` in doubled precision."""
        from mislabel.linalg.residual_loops import accurate_residual  # few fits need it, and it starts a compiler

        if self.amplitude != 1.0:
            scale = self.amplitude
            return np.asarray(scale * accurate_residual(self.matrix, noise / scale, solution, rhs / scale))
        return np.asarray(accurate_residual(self.matrix, noise, solution, rhs))

    def submatrix(self, index: IntArray) -> FloatArray:
        """The covariance of a subset of the points."""
        return np.asfortranarray(self.amplitude * self.matrix[np.ix_(index, index)])


def largest_asymmetry(matrix: FloatArray) -> tuple[int, int]:
    """Where a square array differs most from its own transpose, above the diagonal; (0, 0) if it does not."""
    row, column, largest = 0, 0, 0.0
    for start in range(0, matrix.shape[0], _ROWS_COMPARED):
        stop = start + _ROWS_COMPARED
        difference = np.abs(matrix[start:stop, :stop] - matrix[:stop, start:stop].T)
        i, j = divmod(int(np.argmax(difference)), difference.shape[1])
        if difference[i, j] > largest:
            row, column, largest = min(start + i, j), max(start + i, j), float(difference[i, j])
    return row, column
