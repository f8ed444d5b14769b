"""Projected Newton steps on the labels whose noise variance is not pinned at zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from mislabel.errors import KernelMatrixError
from mislabel.linalg.cholesky import cholesky_in_place
from mislabel.linalg.contract import Covariance, FloatArray
from mislabel.linalg.cost import CHOLESKY, INVERSE_FROM_CHOLESKY
from mislabel.linalg.dense import DenseCovariance, DenseSignal
from mislabel.linalg.triangles import lower_copy, mirror_lower
from mislabel.noise.information import mixed_information
from mislabel.noise.objective import NoiseProblem, NoiseState, negative_log_likelihood
from mislabel.noise.solvers.multiplicative import multiplicative_step
from mislabel.noise.solvers.sweeps import BLOCK, SweepState

#: Mixtures of Hessian and Fisher information that are tried, from pure Newton to average information.
MIXTURES = (1.0, 0.75, 0.5)
STEP_LENGTHS = (1.0, 0.25, 0.0625)
#: Multiples that are tried of a full step along a direction that is not pure Newton.
LONGER_STEPS = (4.0, 16.0)
#: A noise variance may grow by at most this many predictive variances per step.
GROWTH_LIMIT = 10.0
#: Give up when the residual has not halved in this many steps.
STALL = 8
#: Residual, and relative move of one label, above which single labels are moved before a Newton step.
COORDINATES_ABOVE = 1e-3
#: Relative differences of the objective below this are rounding.
ROUNDING = 1e-9


def condition_on_zeros(state: SweepState) -> tuple[NoiseProblem, NoiseState]:
    """The problem of the labels in ``state``, every other label's noise variance held at zero; and where it stands.

    Integrating out the labels that are trusted leaves a problem of the same form, with signal covariance
    ``C_WW^-1 - S_W`` and labels ``C_WW^-1 a_W``: each further step costs ``(|W| / n)^3`` as much.
    """
    size = state.noise.size
    factor, info = cholesky_in_place(lower_copy(state.inverse))
    if info != 0:
        raise KernelMatrixError(f"the inverse of the covariance lost positive definiteness at label {info}")
    logdet = -2.0 * float(np.log(factor.diagonal()).sum())
    labels, _ = lapack.dpotrs(factor, state.weights, lower=1)
    total, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    state.meter.add(CHOLESKY + INVERSE_FROM_CHOLESKY, size)
    mirror_lower(total)
    total.ravel(order="K")[:: size + 1] -= state.noise
    problem = NoiseProblem(DenseSignal(total, state.meter), labels, np.zeros(size), state.penalty)
    covariance = DenseCovariance.from_inverse(state.inverse, logdet)
    return problem, problem.state(state.noise, covariance)


@dataclass(frozen=True, eq=False)
class _Direction:
    step: FloatArray
    ceiling: FloatArray

    def point(self, state: NoiseState, length: float) -> FloatArray:
        return np.maximum(0.0, state.noise + np.minimum(length * self.step, self.ceiling))


def _direction(state: NoiseState, inverse: FloatArray, problem: NoiseProblem, mixture: float) -> _Direction | None:
    """Newton direction; labels whose gradient pushes them below zero go to zero. None if not a descent matrix."""
    pinned = state.noise - state.slope / state.precision**2 <= 0.0
    if problem.penalty.price:
        pinned |= state.noise == 0.0  # whether freeing a label is worth its price is for the sweeps to decide
    step = -state.noise.copy()
    free = np.flatnonzero(~pinned)
    if free.size:
        curved = mixed_information(inverse, state.weights, free, mixture)
        curved.ravel(order="K")[:: free.size + 1] += problem.penalty.curvature(state.noise[free])
        factor, info = cholesky_in_place(curved)
        problem.signal.meter.add(CHOLESKY, free.size if info == 0 else abs(info))
        if info != 0:
            return None
        step[free], _ = lapack.dpotrs(factor, -state.slope[free], lower=1)
    return _Direction(step, GROWTH_LIMIT / state.precision)


def newton_step(problem: NoiseProblem, state: NoiseState) -> NoiseState:
    """One accepted step: the first Newton trial with sufficient descent, else the paper's update."""
    inverse = state.covariance.take_inverse()
    # The square-root update is guaranteed to fall by this much (the majoriser's minimum): the yardstick for a trial.
    guaranteed = float(np.sum(state.noise * (np.sqrt(state.precision) - np.abs(state.weights)) ** 2))
    rounding = ROUNDING * (1.0 + abs(state.objective))
    for mixture in MIXTURES:
        direction = _direction(state, inverse, problem, mixture)
        if direction is None:
            continue
        for length in STEP_LENGTHS:
            trial = _Trial.at(problem, direction.point(state, length))
            if trial is None:
                continue
            fall = state.objective - trial.objective
            if fall >= 1e-4 * guaranteed and fall > 0.0:
                if mixture < 1.0 and length == 1.0:
                    return _further(problem, state, direction, trial)
                return trial.state(problem)
            if fall >= -rounding:
                reached = trial.state(problem)
                if reached.residual < 0.5 * state.residual:
                    return reached
    return multiplicative_step(problem, state)


@dataclass(frozen=True, eq=False)
class _Trial:
    """A point whose objective is known, at half the cost of a whole state."""

    noise: FloatArray
    objective: float
    covariance: Covariance

    @classmethod
    def at(cls, problem: NoiseProblem, noise: FloatArray) -> _Trial | None:
        try:
            covariance = problem.covariance(noise)
        except KernelMatrixError:
            return None
        objective = negative_log_likelihood(covariance, problem.labels) + problem.penalty.value(noise)
        return cls(noise, objective, covariance)

    def state(self, problem: NoiseProblem) -> NoiseState:
        return problem.state(self.noise, self.covariance)


def _further(problem: NoiseProblem, state: NoiseState, direction: _Direction, trial: _Trial) -> NoiseState:
    """Follow a direction that had to be made convex: near a saddle it is far too short."""
    reached = trial.state(problem)
    if reached.residual <= 0.5 * state.residual:
        return reached
    longest = trial
    for length in LONGER_STEPS:
        further = _Trial.at(problem, direction.point(state, length))
        if further is None or further.objective >= longest.objective - ROUNDING * (1.0 + abs(longest.objective)):
            break
        longest = further
    return reached if longest is trial else longest.state(problem)


def solve_newton(problem: NoiseProblem, state: NoiseState, *, tol: float, max_iter: int) -> NoiseState:
    """Newton steps until the residual of ``problem`` is at most ``tol``, or has stopped falling.

    Before each step, the labels furthest from their own best noise variance are moved there: one rank-k update, of
    little cost, that keeps single labels from spoiling the step of all the others.
    """
    residuals = [state.residual]
    for _ in range(max_iter):
        if state.residual <= tol or (
            len(residuals) > STALL and min(residuals[-STALL:]) > 0.5 * min(residuals[:-STALL])
        ):
            break
        if state.residual > COORDINATES_ABOVE:
            state = _move_worst(problem, state)
        state = newton_step(problem, state)
        residuals.append(state.residual)
    return state


def _move_worst(problem: NoiseProblem, state: NoiseState) -> NoiseState:
    sweeps = SweepState.from_state(problem, state)
    furthest = sweeps.furthest(COORDINATES_ABOVE)[:BLOCK]
    if not furthest.size:
        return state
    sweeps.move_block(furthest, COORDINATES_ABOVE)
    logdet = sweeps.likelihood - float(problem.labels @ sweeps.weights)
    covariance = DenseCovariance.from_inverse(sweeps.inverse, logdet)
    return problem.state(sweeps.noise, covariance)
