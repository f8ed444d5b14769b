"""Exact coordinate sweeps: each label in turn gets the noise variance that is best given all the others.

The full inverse is kept up to date by one rank-k update per block of labels, so a sweep that moves m of n labels costs
n^2 m operations and no factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, solve_triangular

from mislabel.errors import KernelMatrixError
from mislabel.linalg.cholesky import cholesky_in_place
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.triangles import symmetric_columns
from mislabel.noise.leave_one_out import trusted_variance
from mislabel.noise.objective import NoiseProblem, NoiseState, likelihood_gain
from mislabel.noise.penalty import Penalty
from mislabel.noise.solvers.coordinate_moves import coordinate_targets, sweep_block

BLOCK = 128


@dataclass(eq=False)
class SweepState:
    """The inverse ``C`` (lower triangle, Fortran order), ``a`` and ``s``, all updated in place."""

    inverse: FloatArray
    weights: FloatArray
    noise: FloatArray
    fixed_noise: FloatArray
    penalty: Penalty
    meter: CostMeter
    likelihood: float = 0.0  # L without penalty, kept up to date

    @classmethod
    def from_state(cls, problem: NoiseProblem, state: NoiseState) -> SweepState:
        """Start from a solver state, whose covariance is consumed."""
        return cls(
            inverse=state.covariance.take_inverse(),
            weights=state.weights.copy(),
            noise=state.noise.copy(),
            fixed_noise=problem.fixed_noise,
            penalty=problem.penalty,
            meter=problem.signal.meter,
            likelihood=state.objective - problem.penalty.value(state.noise),
        )

    @property
    def objective(self) -> float:
        """The penalised objective."""
        return self.likelihood + self.penalty.value(self.noise)

    @property
    def precision(self) -> FloatArray:
        """``b``, the diagonal of the inverse."""
        return self.inverse.diagonal().copy()

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Leave-one-out errors, and variances without the labels' own noise."""
        precision = self.precision
        return self.weights / precision, trusted_variance(precision, self.noise, self.fixed_noise)

    def relative_moves(self) -> FloatArray:
        """How far every label is from its own best noise variance, in units of its predictive variance."""
        precision = self.precision
        targets = coordinate_targets(self.noise, self.weights, precision, self.fixed_noise, self.penalty)
        return np.abs(targets - self.noise) * precision

    def furthest(self, threshold: float) -> IntArray:
        """Labels whose relative move is above ``threshold``, the furthest first."""
        moves = self.relative_moves()
        return np.argsort(-moves, kind="stable")[: np.count_nonzero(moves > threshold)]

    def move_block(self, index: IntArray, threshold: float) -> int:
        """Move the labels of one block; returns how many moved."""
        columns = symmetric_columns(self.inverse, index)
        moved_noise = self.noise[index]
        block = np.asfortranarray(columns[index])
        change = sweep_block(block, self.weights[index], moved_noise, self.fixed_noise[index], self.penalty, threshold)
        steps = moved_noise - self.noise[index]
        up, down = np.flatnonzero(steps > 0.0), np.flatnonzero(steps < 0.0)
        if up.size:
            factor = self._update(index[up], steps[up], np.asfortranarray(columns[:, up]))
            if down.size:
                rest = np.asfortranarray(columns[:, down])
                rest = blas.dgemm(-1.0, factor, factor[index[down]], trans_b=1, beta=1.0, c=rest, overwrite_c=1)
                self._update(index[down], steps[down], rest)
        elif down.size:
            self._update(index[down], steps[down], np.asfortranarray(columns[:, down]))
        self.noise[index] = moved_noise
        self.likelihood += change
        return int(up.size + down.size)

    def _update(self, index: IntArray, steps: FloatArray, columns: FloatArray) -> FloatArray:
        """Update inverse and weights for noise that changes by ``steps``, all of one sign; overwrites ``columns``.

        ``(C^-1 + J D J')^-1 = C - C_J (D^-1 + C_JJ)^-1 C_J'``; with one sign the middle matrix is definite, so the
        change is ``Z Z'`` with ``Z = C_J L^-T``, half the work of a general product. Returns ``Z``.
        """
        sign = 1.0 if steps[0] > 0.0 else -1.0
        core = sign * columns[index]
        core[np.diag_indices_from(core)] += sign / steps
        factor, info = cholesky_in_place(np.asfortranarray(core))
        if info != 0:
            raise KernelMatrixError("the inverse of the covariance lost positive definiteness in a sweep")
        change = blas.dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
        pull = solve_triangular(factor, self.weights[index], lower=True, check_finite=False)
        self.weights -= sign * (change @ pull)
        blas.dsyrk(-sign, change, beta=1.0, c=self.inverse, lower=1, overwrite_c=1)
        self.meter.add_update(index.size, self.noise.size)
        return np.asarray(change)

    def restricted(self, index: IntArray) -> SweepState:
        """The same state for an ascending subset of the labels, the others held where they are."""
        return SweepState(
            inverse=np.asfortranarray(self.inverse[np.ix_(index, index)]),
            weights=self.weights[index],
            noise=self.noise[index],
            fixed_noise=self.fixed_noise[index],
            penalty=self.penalty,
            meter=self.meter,
            likelihood=self.likelihood,
        )

    def active(self, ratio: float) -> IntArray:
        """Labels with noise, and those at zero whose squared z is above ``ratio``: the ones that may still move."""
        if self.penalty.price:
            return np.flatnonzero(
                (self.noise > 0.0) | (likelihood_gain(self.weights**2 / self.precision) > ratio * self.penalty.price)
            )
        return np.flatnonzero((self.noise > 0.0) | (self.weights**2 > ratio * self.precision))


def sweep(state: SweepState, *, threshold: float, max_sweeps: int = 25, enough: float = 0.01) -> int:
    """Lazy sweeps: only labels that would move by more than ``threshold`` are visited, the furthest first.

    Stops when none is left, when a sweep moved fewer than a fraction ``enough`` of the labels, or after
    ``max_sweeps``. Returns the number of moves.
    """
    total = 0
    for _ in range(max_sweeps):
        moved = _sweep_once(state, threshold)
        total += moved
        if moved <= enough * state.noise.size:
            break
    return total


def _sweep_once(state: SweepState, threshold: float) -> int:
    order = state.furthest(threshold)
    return sum(state.move_block(order[k : k + BLOCK], threshold) for k in range(0, order.size, BLOCK))
