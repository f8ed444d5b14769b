"""Normalised and exponentiated kernels, with correct derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mislabel.errors import InvalidParameterError
from mislabel.kernels.block_kernel import BlockKernel, Bounds, Parameter, with_itself
from mislabel.kernels.contract import PreparedKernel, fewest
from mislabel.linalg.contract import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class PreparedAround:
    """A kernel made from another's values on the same graphs."""

    inner: PreparedKernel

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.inner.shape

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same graphs."""
        return self.inner.symmetric


@dataclass(frozen=True, eq=False)
class PreparedNormalized(PreparedAround):
    """``K_ij / sqrt(K_ii K_jj)``; the diagonals are computed once."""

    left: PreparedKernel
    right: PreparedKernel

    def values(self, pairs: IntArray) -> FloatArray:
        """Normalised values; exactly one on the diagonal."""
        roots = np.sqrt(self._diagonals[0][pairs[:, 0]] * self._diagonals[1][pairs[:, 1]])
        return _exact_diagonal(self, pairs, self.inner.values(pairs) / roots)

    def values_and_gradients(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """By the quotient rule, on logarithms."""
        values, gradients = self.inner.values_and_gradients(pairs)
        (left, left_gradients), (right, right_gradients) = self._diagonals_with_gradients
        i, j = pairs.T
        relative = gradients / values[:, None] - 0.5 * (
            left_gradients[i] / left[i, None] + right_gradients[j] / right[j, None]
        )
        normalized = _exact_diagonal(self, pairs, values / np.sqrt(left[i] * right[j]))
        return normalized, normalized[:, None] * relative

    @cached_property
    def _diagonals(self) -> tuple[FloatArray, FloatArray]:
        left = self.left.values(with_itself(self.left.shape[0]))
        return left, left if self.right is self.left else self.right.values(with_itself(self.right.shape[0]))

    @cached_property
    def _diagonals_with_gradients(self) -> list[tuple[FloatArray, FloatArray]]:
        left = self.left.values_and_gradients(with_itself(self.left.shape[0]))
        if self.right is self.left:
            return [left, left]
        return [left, self.right.values_and_gradients(with_itself(self.right.shape[0]))]


def _exact_diagonal(prepared: PreparedNormalized, pairs: IntArray, values: FloatArray) -> FloatArray:
    return np.where(pairs[:, 0] == pairs[:, 1], 1.0, values) if prepared.symmetric else values


@dataclass(frozen=True, eq=False)
class PreparedPower(PreparedAround):
    """``starting^2 K^exponent``, with derivatives by the logarithms of both numbers in front."""

    exponent: float
    starting: float = 1.0

    def values(self, pairs: IntArray) -> FloatArray:
        """Powers of the values."""
        return np.asarray(self.starting**2 * self.inner.values(pairs) ** self.exponent)

    def values_and_gradients(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives by the logarithms of starting probability, exponent, and the inner hyperparameters."""
        values, gradients = self.inner.values_and_gradients(pairs)
        powers = self.starting**2 * values**self.exponent
        by_exponent = powers * self.exponent * np.log(values)
        inner = self.exponent * (powers / values)[:, None] * gradients
        return powers, np.column_stack([2.0 * powers, by_exponent, inner])


class KernelAround(BlockKernel):
    """A kernel made from another one."""

    kernel: BlockKernel

    @property
    def tuning_size(self) -> int | None:
        """That of the inner kernel, if it is smaller than usual."""
        return fewest([super().tuning_size, self.kernel.tuning_size])


class Normalized(KernelAround):
    """``k(x, y) / sqrt(k(x, x) k(y, y))``: for properties that do not grow with the size of the graph."""

    def __init__(self, kernel: BlockKernel, n_jobs: int | None = None) -> None:
        self.kernel = kernel
        self.n_jobs = n_jobs

    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the inner kernel."""
        return self.kernel.parameters()

    def with_values(self, values: Sequence[float]) -> Normalized:
        """The same with other hyperparameters."""
        return Normalized(self.kernel.with_values(values), self.n_jobs)

    def prepared(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> PreparedKernel:
        """Inner kernel and diagonals."""
        inner = self.kernel.prepared(X, Y)
        if Y is None:
            return PreparedNormalized(inner, inner, inner)
        return PreparedNormalized(inner, self.kernel.prepared(X), self.kernel.prepared(Y))


class Power(KernelAround):
    """``k(x, y)^exponent``: a sharper notion of similarity. Any positive exponent of a *normalised* kernel is usual."""

    _gradient_columns = slice(1, None)

    def __init__(
        self, kernel: BlockKernel, exponent: float = 2.0, exponent_bounds: Bounds = "fixed", n_jobs: int | None = None
    ) -> None:
        self.kernel = kernel
        self.exponent = exponent
        self.exponent_bounds = exponent_bounds
        self.n_jobs = n_jobs

    def parameters(self) -> tuple[Parameter, ...]:
        """The exponent, then those of the inner kernel."""
        return (Parameter("exponent", self.exponent, self.exponent_bounds), *self.kernel.parameters())

    def with_values(self, values: Sequence[float]) -> Power:
        """The same with other hyperparameters."""
        return Power(self.kernel.with_values(values[1:]), values[0], self.exponent_bounds, self.n_jobs)

    def prepared(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> PreparedKernel:
        """Powers of the inner kernel."""
        if not self.exponent > 0:
            raise InvalidParameterError(f"exponent must be positive, got {self.exponent!r}.")
        return PreparedPower(self.kernel.prepared(X, Y), self.exponent)
