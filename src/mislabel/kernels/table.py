"""The default kernel for tables: an amplitude times a Matern-5/2 (or Gaussian) with one length scale per feature, or one
for all where there are too many features.

Everything is BLAS and vectorised NumPy on blocks of rows; gradients come as contractions
``sum_ij W_ij dK_ij / dtheta``, never as (n, n, p) arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, NormalizedKernelMixin, StationaryKernelMixin

from mislabel.errors import InvalidFeaturesError, unknown_name
from mislabel.kernels.contract import WithAmplitude
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.triangles import mirror_lower

#: Up to so many features have a length scale each. More share one, in units of their own spread, unless the likelihood asks for
#: one each by more than so many free numbers gain by chance; beyond the second number that is not tried.
FEW_FEATURES = 30
MANY_FEATURES = 300
#: Start of the length scales, in feature standard deviations, before the factor sqrt(number of features).
START_LENGTH = 1.5
LENGTH_RANGE = (0.02, 1000.0)
AMPLITUDE_RANGE = (1e-3, 1e3)
#: Features whose values differ by no more than this part of them are constant up to rounding.
ROUNDING = 8.0 * float(np.finfo(float).eps)
#: Distances computed at a time: few enough that what is derived from them stays in the cache.
_BLOCK_ELEMENTS = 1 << 15


class TableKernel(StationaryKernelMixin, NormalizedKernelMixin, WithAmplitude, Kernel):
    """``amplitude * shape(distance)``, with features divided by their own length scales.

    Parameters
    ----------
    amplitude : prior variance of the signal.
    length_scale : a number, or one per feature.
    units : what each feature is divided by before anything else, so that a single length scale suits all; None for one.
    shape : "matern52" for functions with kinks here and there, "gaussian" for very smooth ones.
    amplitude_bounds, length_scale_bounds : (low, high) for tuning, or "fixed".
    columns : positions of the features that count, each with a length scale (and a unit) of its own; None for all.
    """

    def __init__(
        self,
        amplitude: float = 1.0,
        length_scale: float | FloatArray = 1.0,
        shape: str = "matern52",
        amplitude_bounds: tuple[float, float] | str = AMPLITUDE_RANGE,
        length_scale_bounds: tuple[float, float] | FloatArray | str = (1e-5, 1e5),
        units: FloatArray | None = None,
        columns: IntArray | None = None,
    ) -> None:
        self.amplitude = amplitude
        self.length_scale = length_scale
        self.shape = shape
        self.amplitude_bounds = amplitude_bounds
        self.length_scale_bounds = length_scale_bounds
        self.units = units
        self.columns = columns

    @classmethod
    def for_features(cls, features: FloatArray, columns: IntArray | None = None) -> TableKernel:
        """Data-driven start and bounds: length scales in units of each feature's own spread.

        columns : the features that count; default: those that :func:`telling_columns` finds.
        """
        columns = telling_columns(features) if columns is None else columns
        n_features = columns.size
        spread = _spread_of(np.take(features, columns, axis=1))
        kept = None if n_features == features.shape[1] else columns
        broad = np.sqrt(n_features)
        if n_features > FEW_FEATURES:
            bounds = LENGTH_RANGE[0], LENGTH_RANGE[1] * float(broad)
            return cls(1.0, float(START_LENGTH * broad), "matern52", AMPLITUDE_RANGE, bounds, spread, kept)
        bounds_of_each = np.column_stack([LENGTH_RANGE[0] * spread, LENGTH_RANGE[1] * spread * broad])
        if n_features == 1:
            low, high = bounds_of_each[0].tolist()
            return cls(1.0, float(START_LENGTH * spread[0]), "matern52", AMPLITUDE_RANGE, (low, high), columns=kept)
        return cls(1.0, START_LENGTH * broad * spread, "matern52", AMPLITUDE_RANGE, bounds_of_each, columns=kept)

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """scikit-learn's description of the length scales."""
        if np.iterable(self.length_scale):
            return Hyperparameter("length_scale", "numeric", self.length_scale_bounds, len(self.length_scale))
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """The kernel matrix, and on request its (n, n, p) gradient as scikit-learn defines it."""
        if Y is None:
            X = self._scaled(X)
            matrix = np.empty((len(X), len(X)))
            squares = np.einsum("ij,ij->i", X, X)
            for start, stop in _row_blocks(len(X), len(X)):
                block = _squared_distances(X[start:stop], X[:stop], squares[start:stop], squares[:stop])
                self._apply_shape(block)
                matrix[start:stop, :stop] = block
            mirror_lower(matrix)
            np.fill_diagonal(matrix, self.amplitude)
            return (matrix, self._gradient_tensor(X, matrix)) if eval_gradient else matrix
        if eval_gradient:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        center = self._checked(Y).mean(axis=0)
        X, Y = self._scaled(X, center), self._scaled(Y, center)
        matrix = np.empty((len(X), len(Y)))
        squares_x, squares_y = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Y, Y)
        for start, stop in _row_blocks(len(X), len(Y)):
            block = _squared_distances(X[start:stop], Y, squares_x[start:stop], squares_y)
            matrix[start:stop] = self._apply_shape(block)
        return matrix

    def diag(self, X: Any) -> FloatArray:
        """The amplitude, once per row."""
        return np.full(len(X), float(self.amplitude))

    def contracted_gradient(self, X: Any, weights: FloatArray) -> FloatArray:
        """``sum_ij weights_ij dK_ij / d log theta`` for symmetric weights.

        With ``G = weights o dk/d(r^2)`` a length scale's derivative is ``-2 sum_ij G_ij (x_id - x_jd)^2``, which is
        ``-4 (sum_i rowsum(G)_i x_id^2 - sum_i x_id (G X)_id)``: a matrix product for all features at once.
        """
        X = self._scaled(X)
        squares = np.einsum("ij,ij->i", X, X)
        amplitude_part = float(np.sum(weights.diagonal())) * self.amplitude
        per_feature = np.zeros(X.shape[1])
        for start, stop in _row_blocks(len(X), len(X)):
            block = _squared_distances(X[start:stop], X[:stop], squares[start:stop], squares[:stop])
            slope = np.empty_like(block)
            self._apply_shape(block, slope)
            weight = weights[start:stop, :stop].copy()
            # Each pair below the diagonal stands for two; the square on the diagonal block holds both already.
            weight[:, :start] *= 2.0
            np.einsum("ii->i", weight[:, start:])[...] = 0.0
            amplitude_part += float(np.einsum("ij,ij->", weight, block))
            slope *= weight
            rows, columns = slope.sum(axis=1), slope.sum(axis=0)
            left, right = X[start:stop], X[:stop]
            per_feature += rows @ left**2 + columns @ right**2 - 2.0 * np.einsum("ij,ij->j", left, slope @ right)
        per_feature *= -2.0
        parts = []
        if not self.hyperparameter_amplitude.fixed:
            parts.append(np.array([amplitude_part]))
        if not self.hyperparameter_length_scale.fixed:
            parts.append(per_feature if np.iterable(self.length_scale) else np.array([per_feature.sum()]))
        return np.concatenate(parts) if parts else np.zeros(0)

    def _gradient_tensor(self, X: FloatArray, matrix: FloatArray) -> FloatArray:
        squares = np.einsum("ij,ij->i", X, X)
        distances = _squared_distances(X, X, squares, squares)
        slope = np.empty_like(distances)
        self._apply_shape(distances, slope)
        parts = []
        if not self.hyperparameter_amplitude.fixed:
            parts.append(matrix[:, :, None])
        if not self.hyperparameter_length_scale.fixed:
            lengths = -2.0 * slope[:, :, None] * (X[:, None, :] - X[None, :, :]) ** 2
            parts.append(lengths if np.iterable(self.length_scale) else lengths.sum(axis=2, keepdims=True))
        return np.concatenate(parts, axis=2) if parts else np.empty((len(X), len(X), 0))

    def other_shapes(self) -> list[TableKernel]:
        """Variants of this kernel for choosing by likelihood: every other shape, length scales matched, and one for each feature.

        A kernel whose length scale is fixed, or shared without units, has none of the latter.
        """
        if np.ndim(self.length_scale_bounds) == 0:
            return []
        return [*self._of_each_feature(), *self._in_other_shapes()]

    def _in_other_shapes(self) -> list[TableKernel]:
        others = []
        for shape in SHAPES:
            if shape != self.shape:
                factor = LENGTH_OF_SHAPE[shape] / LENGTH_OF_SHAPE[self.shape]
                scales = np.clip(np.asarray(self.length_scale) * factor, *np.atleast_2d(self.length_scale_bounds).T)
                scales = scales if np.iterable(self.length_scale) else float(scales[0])
                bounds = self.amplitude_bounds, self.length_scale_bounds
                others.append(TableKernel(self.amplitude, scales, shape, *bounds, self.units, self.columns))
        return others

    def _of_each_feature(self) -> list[TableKernel]:
        if self.units is None or np.iterable(self.length_scale) or not 1 < np.size(self.units) <= MANY_FEATURES:
            return []
        bounds = np.outer(self.units, np.asarray(self.length_scale_bounds))
        scales, columns = self.length_scale * self.units, self.columns
        return [TableKernel(self.amplitude, scales, self.shape, self.amplitude_bounds, bounds, columns=columns)]

    def _apply_shape(self, squared: FloatArray, slope: FloatArray | None = None) -> FloatArray:
        if self.shape not in SHAPES:
            raise unknown_name("kernel shape", self.shape, list(SHAPES))
        return SHAPES[self.shape](squared, float(self.amplitude), slope)

    def _scaled(self, X: FloatArray, center: FloatArray | None = None) -> FloatArray:
        """Features in units of their length scales; centred, since large offsets would cancel in the distances."""
        X = self._checked(X)
        scales = np.asarray(self.length_scale, dtype=float) * (1.0 if self.units is None else self.units)
        return (X - (X.mean(axis=0) if center is None else center)) / scales

    def _checked(self, X: Any) -> FloatArray:
        X = np.asarray(X, dtype=float)
        if X.ndim == 1:
            X = X[:, None]
        if self.columns is not None:
            if X.shape[1] <= np.max(self.columns):
                raise InvalidFeaturesError(
                    f"the kernel needs feature {np.max(self.columns)}, but the data has {X.shape[1]} features."
                )
            X = np.take(X, self.columns, axis=1)  # row by row in memory, as all of X is: sums then round alike
        for values, what in ((self.length_scale, "length scales"), (self.units, "units")):
            size = np.size(values) if values is not None else 1
            if size not in (1, X.shape[1]):
                raise InvalidFeaturesError(f"the kernel has {size} {what} but the data has {X.shape[1]} features.")
        return np.asarray(X)


def telling_columns(features: FloatArray) -> IntArray:
    """Positions of the features that tell rows apart: no constants, and of equal features only the first.

    Neither says anything about the labels; but the number of features sets where length scales start and how far they may go.
    Where all features are constant the first one stands for them.
    """
    low, high = features.min(axis=0), features.max(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high))
    varying = np.flatnonzero(high - low > ROUNDING * largest)
    first: dict[bytes, int] = {}
    for column in varying.tolist():
        content = np.ascontiguousarray(features[:, column] + 0.0)  # -0 becomes 0
        first.setdefault(hashlib.blake2b(content.data).digest(), column)
    return np.array(sorted(first.values()) or [0], dtype=np.intp)


def _spread_of(features: FloatArray) -> FloatArray:
    """Standard deviations; one where there is none (a constant feature says nothing: any length scale will do)."""
    spread = np.sort(features, axis=0).std(axis=0)  # sorted: the order of rows changes no digit
    return np.where(features.max(axis=0) > features.min(axis=0), spread, 1.0)


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[tuple[int, int]]:
    step = max(16, _BLOCK_ELEMENTS // max(n_columns, 1))
    for start in range(0, n_rows, step):
        yield start, min(start + step, n_rows)


def _squared_distances(left: FloatArray, right: FloatArray, left_sq: FloatArray, right_sq: FloatArray) -> FloatArray:
    distances = left @ right.T
    distances *= -2.0
    distances += left_sq[:, None]
    distances += right_sq
    return np.maximum(distances, 0.0, out=distances)


def _matern52(squared: FloatArray, amplitude: float, slope: FloatArray | None = None) -> FloatArray:
    """Replace squared distances by kernel values; ``slope`` receives the derivative by the squared distance."""
    root = 5.0 * squared
    np.sqrt(root, out=root)
    decay = np.negative(root)
    np.exp(decay, out=decay)
    decay *= amplitude
    root += 1.0
    if slope is not None:
        np.multiply(root, decay, out=slope)
        slope *= -5.0 / 6.0
    squared *= 5.0 / 3.0
    squared += root
    squared *= decay
    return squared


def _gaussian(squared: FloatArray, amplitude: float, slope: FloatArray | None = None) -> FloatArray:
    """The same for ``exp(-r^2 / 2)``."""
    squared *= -0.5
    np.exp(squared, out=squared)
    squared *= amplitude
    if slope is not None:
        np.multiply(squared, -0.5, out=slope)
    return squared


#: Radial shapes by name: each turns squared distances into kernel values in place.
SHAPES = {"matern52": _matern52, "gaussian": _gaussian}
#: Length scale at which each shape fits the same function about as well.
LENGTH_OF_SHAPE = {"matern52": 1.0, "gaussian": 0.5}
