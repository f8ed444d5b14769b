"""Low rank with the diagonal kept: ``K = t (V V' + diag(rest))``.

Everything is one or two passes over blocks of rows of ``V`` and one m x m reduction; vectors of length n stay with the
caller, ``V`` stays where it is.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import Covariance, FloatArray, IntArray, SignalCovariance
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.row_blocks import (
    FactorRows,
    LocalRows,
    expansion,
    expansion_and_norms,
    gram_and_projection,
    projection,
    squared_norms,
    weighted_gram,
    whitened_norms,
)


class LowRankSignal(SignalCovariance):
    """``amplitude * (V V' + diag(rest))``.

    rows : ``V``, as an array or by blocks kept elsewhere.
    rest : n variances that ``V V'`` does not explain.
    """

    def __init__(
        self,
        rows: FactorRows | FloatArray,
        rest: FloatArray,
        meter: CostMeter | None = None,
        amplitude: float = 1.0,
    ) -> None:
        self.rows = LocalRows(rows) if isinstance(rows, np.ndarray) else rows
        self.size, self.rank = self.rows.size, self.rows.rank
        if rest.shape != (self.size,):
            raise KernelMatrixError(f"the rest covers {len(rest)} points, the factor {self.size}.")
        self.rest = rest
        self.meter = meter if meter is not None else CostMeter(self.size)
        self.amplitude = amplitude

    def scaled(self, amplitude: float) -> LowRankSignal:
        """The same covariance times a number; the factor is shared."""
        return LowRankSignal(self.rows, self.rest, self.meter, self.amplitude * amplitude)

    def diagonal(self) -> FloatArray:
        """``diag(K)``."""
        return self.amplitude * (self.rows.joined(squared_norms) + self.rest)

    def submatrix(self, index: IntArray) -> FloatArray:
        """The covariance of a subset of the points."""
        rows = self.rows.take(index)
        found = np.asfortranarray(self.amplitude * (rows @ rows.T))
        found[np.diag_indices_from(found)] += self.amplitude * self.rest[index]
        return found

    def residual(self, noise: FloatArray, solution: FloatArray, rhs: FloatArray) -> FloatArray:
        """``rhs - (K + diag(noise)) @ solution``."""
        common = self.rows.total(projection, (solution,))
        smooth = self.rows.joined(expansion, (), (common,))
        return np.asarray(rhs - noise * solution - self.amplitude * (smooth + self.rest * solution))

    def with_noise(self, noise: FloatArray, expected: FloatArray | None = None) -> LowRankCovariance:
        """``K + diag(noise)``, factorised."""
        return LowRankCovariance(self, noise, expected)


class ReducedCovariance(Covariance):
    """What low-rank covariances have in common: their n x n inverse, for tests and small problems."""

    def inverse(self) -> FloatArray:
        """All of ``C``: n x n, for tests and small problems."""
        found = self.solve(np.eye(self.size))
        return np.asfortranarray(0.5 * (found + found.T))


class LowRankCovariance(ReducedCovariance):
    """``t V V' + diag(d)`` with ``d = t rest + noise``, by the matrix inversion lemma: ``B = I + t V' diag(1/d) V``.

    With an expected right-hand side, everything about it takes two passes over ``V``: one for the factorisation, one for the
    solution and the diagonal of the inverse together.
    """

    _signal: LowRankSignal

    def __init__(self, signal: LowRankSignal, noise: FloatArray, expected: FloatArray | None = None) -> None:
        self.size = signal.size
        self._signal, self._amplitude = signal, signal.amplitude
        self._own = signal.amplitude * signal.rest + np.asarray(noise, dtype=float)
        if not (self._own > 0).all():
            raise not_definite(int(np.argmin(self._own)) + 1)
        self._expected, self._projected = expected, np.zeros(0)
        if expected is None:
            reduced = signal.amplitude * signal.rows.total(weighted_gram, (self._own,))
        else:
            both = signal.rows.total(gram_and_projection, (self._own, expected))
            reduced, self._projected = signal.amplitude * both[:, :-1], both[:, -1].copy()
        reduced[np.diag_indices_from(reduced)] += 1.0
        self._root, info = lapack.dpotrf(np.asfortranarray(reduced), lower=1, overwrite_a=1, clean=1)
        if info != 0:
            raise not_definite(info)
        self._inverse_diagonal: FloatArray | None = None
        signal.meter.n_factorizations += 1

    @classmethod
    def from_root(cls, signal: LowRankSignal, root: FloatArray) -> LowRankCovariance:
        """Without rows, for what is said about new points: ``root`` is the Cholesky factor of ``B``."""
        covariance = cls.__new__(cls)
        covariance.size, covariance._signal, covariance._amplitude = 0, signal, signal.amplitude
        covariance._root = np.asfortranarray(root)
        return covariance

    @property
    def root(self) -> FloatArray:
        """The Cholesky factor of ``B``."""
        return np.asarray(self._root)

    @cached_property
    def _inverse_root(self) -> FloatArray:
        inverse, _ = lapack.dtrtri(self._root, lower=1)
        return np.asarray(inverse)

    def solve(self, rhs: FloatArray) -> FloatArray:
        """``(I - t D^-1 V B^-1 V') D^-1 rhs``."""
        rows, own = self._signal.rows, self._own if rhs.ndim == 1 else self._own[:, None]
        first = rhs / own
        common, _ = lapack.dpotrs(self._root, self._projection(rhs), lower=1)
        if rhs is self._expected and self._inverse_diagonal is None:
            both = rows.joined(expansion_and_norms, (), (common, self._inverse_root))
            smooth = both[:, 0]
            self._set_inverse_diagonal(both[:, 1])
        else:
            smooth = rows.joined(expansion, (), (common,))
        return np.asarray(first - self._amplitude * smooth / own)

    def _projection(self, rhs: FloatArray) -> FloatArray:
        """``V' D^-1 rhs``."""
        if rhs is self._expected:
            return self._projected
        own = self._own if rhs.ndim == 1 else self._own[:, None]
        return np.asarray(self._signal.rows.total(projection, (rhs / own,)))

    def quadratic(self, rhs: FloatArray, solution: FloatArray | None = None) -> float:
        """``rhs' D^-1 rhs - t p' B^-1 p`` with ``p = V' D^-1 rhs``: no further pass where ``rhs`` was expected."""
        projected = self._projection(rhs)
        half = solve_triangular(self._root, projected, lower=True)
        return float(rhs @ (rhs / self._own)) - self._amplitude * float(half @ half)

    def coefficients(self, labels: FloatArray) -> FloatArray:
        """``t V' C y``, by which rows of ``V`` give the expected signal; without the cancellation of that product."""
        found, _ = lapack.dpotrs(self._root, self._amplitude * self._projection(labels), lower=1)
        return np.asarray(found)

    def logdet(self) -> float:
        """``log|D| + log|B|``."""
        return float(np.log(self._own).sum()) + 2.0 * float(np.log(self._root.diagonal()).sum())

    def inverse_diagonal(self) -> FloatArray:
        """``(1 - leverage) / d``."""
        if self._inverse_diagonal is None:
            self._set_inverse_diagonal(self._signal.rows.joined(whitened_norms, (), (self._inverse_root,)))
        assert self._inverse_diagonal is not None
        return self._inverse_diagonal

    def inverse_block(self, index: IntArray) -> FloatArray:
        """``D^-1 - t W W'`` with ``W = D^-1 V L^-T``, of the rows asked for."""
        own = self._own[index]
        whitened = solve_triangular(self._root, self._signal.rows.take(index).T / own, lower=True)
        return np.asarray(np.diag(1.0 / own) - self._amplitude * (whitened.T @ whitened))

    def _set_inverse_diagonal(self, norms: FloatArray) -> None:
        leverage = self._amplitude * norms / self._own
        self._inverse_diagonal = np.maximum(1.0 - leverage, np.finfo(float).eps) / self._own

    def explained(self, rows: FloatArray) -> FloatArray:
        """How the labels reduce the covariance of new points, given their rows of ``V``: ``t V* (I - B^-1) V*'``."""
        half = solve_triangular(self._root, rows.T, lower=True)
        return np.asarray(self._amplitude * (rows @ rows.T - half.T @ half))

    def explained_variance(self, rows: FloatArray) -> FloatArray:
        """The diagonal of :meth:`explained`."""
        return self._amplitude * (squared_norms(rows) - whitened_norms(rows, self._inverse_root))

    def without_rows(self) -> LowRankCovariance:
        """The same without the factor: enough for what is said about new points."""
        light = copy(self)
        light._signal = LowRankSignal(np.zeros((0, self._signal.rank)), np.zeros(0), amplitude=self._amplitude)
        return light


def not_definite(row: int) -> KernelMatrixError:
    """The error for a covariance that cannot be factorised."""
    return KernelMatrixError(
        f"the low-rank covariance is not positive definite (row {row}): a label needs some base noise, or the kernel is not "
        "positive semi-definite."
    )
