"""Whatever a user may give for a kernel, under one contract: matrices, callables, kernels of scikit-learn, sums and products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    Exponentiation,
    GenericKernelMixin,
    Kernel,
    KernelOperator,
    Product,
    StationaryKernelMixin,
    Sum,
    WhiteKernel,
)

from mislabel.errors import InvalidParameterError, KernelMatrixError, unknown_name
from mislabel.kernels.contract import TunableKernel, WithAmplitude, fewest
from mislabel.kernels.table import TableKernel
from mislabel.linalg.contract import FloatArray, IntArray

AMPLITUDE_RANGE = (1e-4, 1e4)


class AmplitudeKernel(GenericKernelMixin, StationaryKernelMixin, WithAmplitude, Kernel):
    """A fixed similarity times one learnable amplitude."""

    @abstractmethod
    def similarity(self, X: Any, Y: Any = None) -> FloatArray:
        """The similarity matrix before the amplitude."""

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Amplitude times similarity, with scikit-learn's gradient on request."""
        matrix = self.amplitude * self.similarity(X, Y)
        if not eval_gradient:
            return matrix
        return matrix, (np.empty((*matrix.shape, 0)) if self.hyperparameter_amplitude.fixed else matrix[:, :, None])

    def contracted_gradient(self, X: Any, weights: FloatArray) -> FloatArray:
        """``sum_ij W_ij K_ij``: the derivative by the logarithm of the amplitude."""
        if self.hyperparameter_amplitude.fixed:
            return np.zeros(0)
        return np.array([self.amplitude * np.einsum("ij,ij->", weights, self.similarity(X))])

    def starting_from(self, X: Any, label_variance: float) -> AmplitudeKernel:
        """The same kernel, its amplitude matched to the labels' variance and bounded around that."""
        mean_diagonal = float(np.mean(self.diag(X))) / self.amplitude
        if not (np.isfinite(mean_diagonal) and mean_diagonal > 0.0):
            raise KernelMatrixError(
                f"the kernel of points with themselves must be positive, and is {mean_diagonal:.3g} on average."
            )
        start = label_variance / mean_diagonal
        started: AmplitudeKernel = clone(self)
        started.amplitude = start
        started.amplitude_bounds = (AMPLITUDE_RANGE[0] * start, AMPLITUDE_RANGE[1] * start)
        return started


class PrecomputedKernel(AmplitudeKernel):
    """X is the kernel matrix itself: (n, n) to fit, (m, n) to predict."""

    def __init__(self, amplitude: float = 1.0, amplitude_bounds: tuple[float, float] | str = "fixed") -> None:
        self.amplitude = amplitude
        self.amplitude_bounds = amplitude_bounds

    def similarity(self, X: Any, Y: Any = None) -> FloatArray:
        """X, unchanged."""
        return np.asarray(X)

    def diag(self, X: Any) -> FloatArray:
        """Amplitude times the diagonal of X, which must be square."""
        X = np.asarray(X)
        if X.shape[0] != X.shape[1]:
            raise KernelMatrixError(
                "a precomputed (m, n) kernel does not contain the prior variances of the new points: pass them to predict "
                "as prior_variance, an array of m numbers k(x, x)."
            )
        return np.asarray(self.amplitude * X.diagonal())


class CallableKernel(AmplitudeKernel):
    """A function of two lists returning a matrix, or of two objects returning a number.

    Which of the two it is is found out by calling it with two lists of two objects: a 2 x 2 result means lists.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        amplitude: float = 1.0,
        amplitude_bounds: tuple[float, float] | str = "fixed",
    ) -> None:
        self.function = function
        self.amplitude = amplitude
        self.amplitude_bounds = amplitude_bounds

    def similarity(self, X: Any, Y: Any = None) -> FloatArray:
        """The callable's value for all pairs."""
        if self._takes_lists(X):
            matrix = np.asarray(self.function(X, X if Y is None else Y), dtype=float)
        elif Y is None:
            matrix = np.empty((len(X), len(X)))
            for i, left in enumerate(X):
                for j in range(i + 1):
                    matrix[i, j] = matrix[j, i] = self.function(left, X[j])
        else:
            matrix = np.array([[self.function(left, right) for right in Y] for left in X], dtype=float)
        expected = (len(X), len(X if Y is None else Y))
        if matrix.shape != expected:
            raise KernelMatrixError(f"the kernel function returned shape {matrix.shape}, expected {expected}.")
        return matrix

    def diag(self, X: Any) -> FloatArray:
        """Similarity of every object with itself."""
        return np.concatenate([self(X[i : i + 1]).ravel() for i in range(len(X))])

    def _takes_lists(self, X: Any) -> bool:
        probe = [X[0], X[-1]] if isinstance(X, list | tuple) else X[[0, -1]]
        try:
            return bool(np.shape(self.function(probe, probe)) == (2, 2))
        except (TypeError, ValueError, AttributeError):
            return False


def compares_objects(kernel: Any) -> bool:
    """Whether a kernel works on objects that are not rows of numbers."""
    if kernel is None or isinstance(kernel, str):
        return False
    vectors = getattr(kernel, "requires_vector_input", None)
    return callable(kernel) if vectors is None else not vectors


def as_kernel(kernel: object, X: Any, columns: IntArray | None = None) -> Kernel:
    """Turn what the user gave into a kernel object; the user's own object is cloned, never changed.

    columns : the features that count for the default kernel, where X is not all of the data.
    """
    if kernel is None:
        return TableKernel.for_features(np.asarray(X, dtype=float), columns)
    if isinstance(kernel, str):
        if kernel == "precomputed":
            return PrecomputedKernel()
        raise unknown_name("kernel", kernel, ["precomputed"])
    if isinstance(kernel, Kernel):
        return clone(kernel)
    if callable(kernel):
        return CallableKernel(kernel)
    raise InvalidParameterError(
        f"kernel must be None, 'precomputed', a scikit-learn kernel or a callable, got {type(kernel).__name__}."
    )


def tunable(kernel: Kernel) -> TunableKernel:
    """What mislabel asks of a kernel: of the kernel itself where it implements the contract, else of a view of it."""
    if isinstance(kernel, TunableKernel):
        return kernel
    if isinstance(kernel, Sum):
        return _SumOfKernels(kernel)
    if isinstance(kernel, Product):
        return _ProductOfKernels(kernel)
    return _PlainKernel(kernel)


def contracted_gradient(kernel: Kernel, X: Any, weights: FloatArray) -> FloatArray:
    """Contract the gradient of ``kernel(X)`` by log-hyperparameters with a symmetric weight matrix.

    Sums and products are taken apart, so that only their leaves are differentiated: a kernel that implements
    ``contracted_gradient`` does it itself, the usual leaves have short cuts, and any other kernel falls back to the
    (n, n, p) gradient of its own ``eval_gradient``, one leaf at a time.
    """
    return tunable(kernel).contracted_gradient(X, weights)


class _PlainKernel(TunableKernel):
    """A view of a kernel of scikit-learn that knows nothing of the contract."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    @property
    def formula(self) -> Kernel:
        """The kernel that is viewed."""
        return self._kernel

    @property
    def tuning_size(self) -> int | None:
        """That of the part that is tuned on the fewest points."""
        parts: list[Kernel] = []
        if isinstance(self._kernel, KernelOperator):
            parts = [self._kernel.k1, self._kernel.k2]
        elif isinstance(self._kernel, Exponentiation):
            parts = [self._kernel.kernel]
        return fewest(tunable(part).tuning_size for part in parts)

    def contracted_gradient(self, X: Any, weights: FloatArray) -> FloatArray:
        """Short cuts for what has no gradient, constants and white noise."""
        kernel = self._kernel
        if kernel.n_dims == 0:
            return np.zeros(0)
        if isinstance(kernel, ConstantKernel):
            return np.array([kernel.constant_value * weights.sum()])
        if isinstance(kernel, WhiteKernel):
            return np.array([kernel.noise_level * np.trace(weights)])
        return super().contracted_gradient(X, weights)


class _SumOfKernels(_PlainKernel):
    """A view of ``k1 + k2``."""

    def contracted_gradient(self, X: Any, weights: FloatArray) -> FloatArray:
        """One after the other: ``dK = dK1 + dK2``, and each hyperparameter belongs to one of them."""
        parts = (self._kernel.k1, self._kernel.k2)
        return np.concatenate([contracted_gradient(part, X, weights) for part in parts])


class _ProductOfKernels(_PlainKernel):
    """A view of ``k1 * k2``."""

    def contracted_gradient(self, X: Any, weights: FloatArray) -> FloatArray:
        """By the product rule: each part is contracted with the weights times the other part."""
        pairs = ((self._kernel.k1, self._kernel.k2), (self._kernel.k2, self._kernel.k1))
        return np.concatenate(
            [contracted_gradient(part, X, weights * other(X)) if part.n_dims else np.zeros(0) for part, other in pairs]
        )
