"""Kernels that are not formulas: precomputed matrices and plain callables, under scikit-learn's kernel protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter, Kernel, StationaryKernelMixin

from mislabel.errors import InvalidParameterError, KernelMatrixError, unknown_name
from mislabel.kernels.table import TableKernel
from mislabel.linalg.contract import FloatArray, IntArray

AMPLITUDE_RANGE = (1e-4, 1e4)


class AmplitudeKernel(GenericKernelMixin, StationaryKernelMixin, Kernel):
    """A fixed similarity times one learnable amplitude."""

    amplitude: float
    amplitude_bounds: tuple[float, float] | str

    @property
    def hyperparameter_amplitude(self) -> Hyperparameter:
        """scikit-learn's description of the amplitude."""
        return Hyperparameter("amplitude", "numeric", self.amplitude_bounds)

    @abstractmethod
    def similarity(self, X, Y=None) -> FloatArray:
        """The similarity matrix before the amplitude."""

    def __call__(self, X, Y=None, eval_gradient=False):
        """Amplitude times similarity, with scikit-learn's gradient on request."""
        matrix = self.amplitude * self.similarity(X, Y)
        if not eval_gradient:
            return matrix
        return matrix, (np.empty((*matrix.shape, 0)) if self.hyperparameter_amplitude.fixed else matrix[:, :, None])

    def contracted_gradient(self, X, weights: FloatArray) -> FloatArray:
        """``sum_ij W_ij K_ij``: the derivative by the logarithm of the amplitude."""
        if self.hyperparameter_amplitude.fixed:
            return np.zeros(0)
        return np.array([self.amplitude * np.einsum("ij,ij->", weights, self.similarity(X))])

    def starting_from(self, X, label_variance: float) -> AmplitudeKernel:
        """The same kernel, its amplitude matched to the labels' variance and bounded around that."""
        mean_diagonal = float(np.mean(self.diag(X))) / self.amplitude
        if not (np.isfinite(mean_diagonal) and mean_diagonal > 0.0):
            raise KernelMatrixError(
                f"the kernel of points with themselves must be positive, and is {mean_diagonal:.3g} on average."
            )
        start = label_variance / mean_diagonal
        started = clone(self)
        bounds = (AMPLITUDE_RANGE[0] * start, AMPLITUDE_RANGE[1] * start)
        return started.set_params(amplitude=start, amplitude_bounds=bounds)


class PrecomputedKernel(AmplitudeKernel):
    """X is the kernel matrix itself: (n, n) to fit, (m, n) to predict."""

    def __init__(self, amplitude: float = 1.0, amplitude_bounds: tuple[float, float] | str = "fixed") -> None:
        self.amplitude = amplitude
        self.amplitude_bounds = amplitude_bounds

    def similarity(self, X, Y=None) -> FloatArray:
        """X, unchanged."""
        return np.asarray(X)

    def diag(self, X):
        """Amplitude times the diagonal of X, which must be square."""
        X = np.asarray(X)
        if X.shape[0] != X.shape[1]:
            raise KernelMatrixError(
                "a precomputed (m, n) kernel does not contain the prior variances of the new points: pass them to predict "
                "as prior_variance, an array of m numbers k(x, x)."
            )
        return self.amplitude * X.diagonal()


class CallableKernel(AmplitudeKernel):
    """A function of two lists returning a matrix, or of two objects returning a number.

    Which of the two it is is found out by calling it with two lists of two objects: a 2 x 2 result means lists.
    """

    def __init__(
        self,
        function: Callable[..., object],
        amplitude: float = 1.0,
        amplitude_bounds: tuple[float, float] | str = "fixed",
    ) -> None:
        self.function = function
        self.amplitude = amplitude
        self.amplitude_bounds = amplitude_bounds

    def similarity(self, X, Y=None) -> FloatArray:
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

    def diag(self, X):
        """Similarity of every object with itself."""
        return np.concatenate([self(X[i : i + 1]).ravel() for i in range(len(X))])

    def _takes_lists(self, X) -> bool:
        probe = [X[0], X[-1]] if isinstance(X, list | tuple) else X[[0, -1]]
        try:
            return np.shape(self.function(probe, probe)) == (2, 2)
        except (TypeError, ValueError, AttributeError):
            return False


def as_kernel(kernel: object, X, columns: IntArray | None = None) -> Kernel:
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
