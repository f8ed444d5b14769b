"""A kernel together with the points it is evaluated at: what tuning needs to know of both."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from mislabel.errors import KernelMatrixError
from mislabel.kernels.contraction import contracted_gradient
from mislabel.linalg.contract import FloatArray, IntArray


class KernelOnData:
    """Kernel matrix and contracted gradient at the training points, as functions of log-hyperparameters."""

    def __init__(self, kernel: Kernel, points: Any) -> None:
        self.kernel = kernel
        self.points = points
        self.size = len(points)

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the free hyperparameters."""
        return np.asarray(self.kernel.theta, dtype=float)

    @property
    def bounds(self) -> FloatArray:
        """Bounds on :attr:`theta`, one row each."""
        return np.asarray(self.kernel.bounds, dtype=float).reshape(-1, 2)

    def at(self, theta: FloatArray) -> KernelOnData:
        """The same points under other hyperparameters."""
        if theta.size == 0:
            return self
        return KernelOnData(self.kernel.clone_with_theta(theta), self.points)

    def subset(self, index: IntArray) -> KernelOnData:
        """The same kernel on some of the points."""
        return KernelOnData(self.kernel, take(self.points, index, self.kernel))

    def all_shapes(self) -> list[KernelOnData]:
        """This kernel, and its variants where it comes in several shapes to choose from."""
        others = getattr(self.kernel, "other_shapes", list)()
        return [self, *(KernelOnData(other, self.points) for other in others)]

    def matrix(self) -> FloatArray:
        """The kernel matrix, checked to be finite; a new array that the caller may overwrite."""
        matrix = np.asarray(self.kernel(self.points), dtype=float)
        # A symmetric array is its own transpose: no copy is needed to have it in Fortran order, as LAPACK wants it.
        matrix = matrix.T if matrix.flags.c_contiguous and matrix is not self.points else np.array(matrix, order="F")
        if not np.isfinite(matrix.sum()):
            raise KernelMatrixError("the kernel returned NaN or infinite values; check the features and the kernel.")
        return matrix

    def contract(self, weights: FloatArray) -> FloatArray:
        """``sum_ij W_ij dK_ij / dtheta``."""
        return contracted_gradient(self.kernel, self.points, weights)


def take(points: Any, index: IntArray, kernel: Kernel) -> Any:
    """Some of the points: rows of an array, rows *and columns* of a precomputed matrix, items of a list."""
    from mislabel.kernels.adapters import PrecomputedKernel

    if isinstance(kernel, PrecomputedKernel):
        return points[np.ix_(index, index)]
    if isinstance(points, np.ndarray):
        return points[index]
    return [points[int(i)] for i in index]
