"""A kernel together with the points it is evaluated at: what tuning needs to know of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from mislabel.errors import KernelMatrixError
from mislabel.kernels.adapters import AmplitudeKernel, PrecomputedKernel, contracted_gradient, tunable
from mislabel.kernels.contract import RemoteRows
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.mapped import let_go, mapping_of, new_mapped, take_mapped

#: More rows than this of an array in a file are taken into another file.
MAPPED_FROM = 65_536
_FROZEN_RANGE = np.log(1e4)


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

    @property
    def is_scaled_matrix(self) -> bool:
        """Whether an amplitude is the only hyperparameter: the matrix keeps its shape."""
        return isinstance(self.kernel, AmplitudeKernel) and self.kernel.n_dims == 1

    def at(self, theta: FloatArray) -> KernelOnData:
        """The same points under other hyperparameters."""
        if theta.size == 0:
            return self
        return KernelOnData(self.kernel.clone_with_theta(theta), self.points)

    def scaled(self, factor: float) -> KernelOnData:
        """The same points under this kernel times a number."""
        return self if factor == 1.0 else KernelOnData(scaled_kernel(self.kernel, factor), self.points)

    def subset(self, index: IntArray) -> KernelOnData:
        """The same kernel on some of the points."""
        return KernelOnData(self.kernel, take(self.points, index, self.kernel))

    def for_tuning(self) -> KernelOnData:
        """The same for an expensive kernel on few points.

        In double precision where there is a choice: rounding errors spoil the derivatives of likelihoods.
        """
        kernel = tunable(self.kernel).precise()
        only_scale = tunable(kernel).scale_power is not None
        return ScaledMatrix(kernel, self.points) if only_scale else MatrixWithSlopes(kernel, self.points)

    def on_all(self, other: KernelOnData) -> KernelOnData:
        """This kernel on the points of ``other``; an expensive one keeps its shape there, and only its amplitude varies."""
        if tuning_size(self.kernel) is None:
            return KernelOnData(self.kernel, other.points)
        return FrozenShape(other.at(self.theta).kernel, other.points)

    def all_shapes(self) -> list[KernelOnData]:
        """This kernel, and its variants where it comes in several shapes to choose from."""
        others = tunable(self.kernel).other_shapes()
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


class MatrixWithSlopes(KernelOnData):
    """Matrix and derivatives evaluated together and kept: less work for an expensive kernel, and few points to keep."""

    _slopes: FloatArray | None = None

    def at(self, theta: FloatArray) -> MatrixWithSlopes:
        """The same points under other hyperparameters."""
        return self if theta.size == 0 else MatrixWithSlopes(self.kernel.clone_with_theta(theta), self.points)

    def matrix(self) -> FloatArray:
        """The kernel matrix; the derivatives are kept for :meth:`contract`."""
        matrix, self._slopes = self.kernel(self.points, eval_gradient=True)
        return np.asfortranarray(matrix)

    def contract(self, weights: FloatArray) -> FloatArray:
        """``sum_ij W_ij dK_ij / dtheta``."""
        if self._slopes is None:
            self.matrix()
        slopes = np.asarray(self._slopes)
        return np.asarray(np.einsum("ij,ijk->k", weights, slopes))

    def all_shapes(self) -> list[KernelOnData]:
        """There is only this one."""
        return [self]


class ScaledMatrix(MatrixWithSlopes):
    """An expensive kernel of which only a scale is free: evaluated once, and scaled from then on."""

    def __init__(self, kernel: Kernel, points: Any, first: tuple[float, FloatArray] | None = None) -> None:
        super().__init__(kernel, points)
        self._first = (float(self.theta[0]), super(MatrixWithSlopes, self).matrix()) if first is None else first

    def at(self, theta: FloatArray) -> ScaledMatrix:
        """The same matrix at another scale."""
        return ScaledMatrix(self.kernel.clone_with_theta(theta), self.points, self._first)

    def matrix(self) -> FloatArray:
        """The kernel matrix; its derivative is a multiple of it."""
        power, (log_scale, first) = tunable(self.kernel).scale_power, self._first
        assert power is not None  # such kernels alone are scaled
        matrix: FloatArray = np.multiply(first, np.exp(power * (self.theta[0] - log_scale)), order="F")
        self._slopes = power * matrix[:, :, None]
        return matrix


class FrozenShape(KernelOnData):
    """A kernel matrix that is computed once, times an amplitude: all that varies of an expensive kernel on many points."""

    def __init__(
        self, kernel: Kernel, points: Any, log_amplitude: float = 0.0, similarity: FloatArray | None = None
    ) -> None:
        super().__init__(kernel, points)
        self._log_amplitude = log_amplitude
        self._similarity = super().matrix() if similarity is None else similarity

    @property
    def kernel(self) -> Kernel:
        """The kernel with its amplitude."""
        if self._log_amplitude == 0.0:
            return self._kernel
        return scaled_kernel(self._kernel, float(np.exp(self._log_amplitude)))

    @kernel.setter
    def kernel(self, kernel: Kernel) -> None:
        self._kernel = kernel

    @property
    def is_scaled_matrix(self) -> bool:
        """Always: its amplitude is all that varies."""
        return True

    @property
    def theta(self) -> FloatArray:
        """The logarithm of the amplitude."""
        return np.array([self._log_amplitude])

    @property
    def bounds(self) -> FloatArray:
        """Bounds on the logarithm of the amplitude."""
        return np.array([[-_FROZEN_RANGE, _FROZEN_RANGE]])

    def at(self, theta: FloatArray) -> FrozenShape:
        """The same matrix with another amplitude."""
        return FrozenShape(self._kernel, self.points, float(theta[0]), self._similarity)

    def scaled(self, factor: float) -> FrozenShape:
        """The same matrix times a number."""
        return self.at(self.theta + np.log(factor))

    def matrix(self) -> FloatArray:
        """Amplitude times similarity; a new array."""
        return np.multiply(self._similarity, np.exp(self._log_amplitude), order="F")

    def contract(self, weights: FloatArray) -> FloatArray:
        """``sum_ij W_ij K_ij``."""
        return np.array([np.exp(self._log_amplitude) * np.einsum("ij,ij->", weights, self._similarity)])

    def all_shapes(self) -> list[KernelOnData]:
        """There is only this one."""
        return [self]


def scaled_kernel(kernel: Kernel, factor: float) -> Kernel:
    """A kernel times a number, by its own amplitude where it has one."""
    return tunable(kernel).scaled(factor)


def _mapped_rows(points: FloatArray, index: IntArray) -> FloatArray:
    """Many rows of an array in a file, in another file."""
    taken = new_mapped((index.size, points.shape[1]), points.dtype)
    for start in range(0, index.size, MAPPED_FROM):
        taken[start : start + MAPPED_FROM] = take_mapped(points, index[start : start + MAPPED_FROM])
        let_go(taken)
    return taken


def tuning_size(kernel: Kernel) -> int | None:
    """On how many points an expensive kernel is tuned; None if its evaluation costs no more than the fit."""
    return tunable(kernel).tuning_size


def take(points: Any, index: IntArray, kernel: Kernel) -> Any:
    """Some of the points: rows of an array, rows *and columns* of a precomputed matrix, items of a list."""
    if isinstance(kernel, PrecomputedKernel):
        return points[np.ix_(index, index)]
    return take_points(points, index)


def take_points(points: Any, index: IntArray) -> Any:
    """Rows of an array, items of a list, or rows that are kept elsewhere."""
    if isinstance(points, RemoteRows):
        return points.take_rows(index)
    if not isinstance(points, np.ndarray):
        return [points[int(i)] for i in index]
    if index.size > MAPPED_FROM and mapping_of(points) is not None:
        return _mapped_rows(points, index)
    return take_mapped(points, index)


def kept(points: Any, index: IntArray, kernel: Kernel) -> Any:
    """Some of the points for a fit to them, in ascending order where they are elsewhere: there they stay."""
    return points.kept(index) if isinstance(points, RemoteRows) else take(points, index, kernel)


def each_block(points: FloatArray | RemoteRows, work: Callable[[FloatArray], Any]) -> list[Any]:
    """``work`` of the features, block by block in the order of the rows; an array of this process is one block."""
    return points.each_block(work) if isinstance(points, RemoteRows) else [work(points)]


def n_features(points: Any) -> int:
    """How many numbers describe a point; none if points are other objects."""
    if isinstance(points, RemoteRows) or (isinstance(points, np.ndarray) and points.ndim == 2):
        return int(points.shape[1])
    return 0
