"""All labels at once: every label takes the noise variance that is best given all the others, in one step.

One evaluation per step and no n x n inverse, so it suits covariances of low rank, where labels hardly depend on each other:
the more labels share the same few degrees of freedom, the less each one's variance matters to the rest. The labels that would
move furthest may still contend with each other (one that steps aside takes the blame off its neighbour): they are moved one
after the other, exactly, within their block of the inverse. Steps that would raise the objective all the same are left to the
labels that gain most by them; the last steps are accelerated (Anderson).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.noise.leave_one_out import trusted_variance
from mislabel.noise.objective import NoiseProblem, NoiseState, negative_log_likelihood
from mislabel.noise.solvers.contract import Monitor, NoiseSolution, Trace
from mislabel.noise.solvers.coordinate_moves import coordinate_targets, sweep_block
from mislabel.noise.solvers.multiplicative import multiplicative_step

#: Steps that an accelerated step is built from.
MEMORY = 6
#: Where the step of all labels overshoots, only this fraction of them, those that gain most, take it, and so on.
CUT = 0.4
CUTS = 8
#: Labels that are moved one after the other, how often, and how far (in units of their predictive variance) makes them so.
CONTENDERS = 256
ROUNDS = 6
FAR = 0.1


def solve_simultaneous(
    problem: NoiseProblem, start: FloatArray, *, tol: float, max_iter: int, monitor: Monitor | None = None
) -> NoiseSolution:
    """Minimise by simultaneous coordinate steps until the residual is at most ``tol``."""
    trace = Trace(problem, monitor)
    state = problem.evaluate(start)
    trace.add(state)
    memory = _Memory()
    for _ in range(max_iter):
        if state.residual <= tol:
            break
        target = targets(problem, state)
        following = _accelerated(problem, state, target, memory)
        if following is None:
            following = _contended(problem, state, target)
        if following is None:
            following = _partial(problem, state, target)
        if following is None:
            break
        state = following
        trace.add(state)
    return trace.solution(state, tol)


def targets(problem: NoiseProblem, state: NoiseState) -> FloatArray:
    """The best noise variance of every label, all others staying as they are."""
    return coordinate_targets(state.noise, state.weights, state.precision, problem.fixed_noise, problem.penalty)


class _Memory:
    """The last points and steps on an unchanged set of noisy labels."""

    def __init__(self) -> None:
        self.active: NDArray[np.bool_] | None = None
        self.points: list[FloatArray] = []
        self.steps: list[FloatArray] = []

    def remember(self, active: NDArray[np.bool_], point: FloatArray, step: FloatArray) -> None:
        if self.active is None or not np.array_equal(active, self.active):
            self.active, self.points, self.steps = active, [], []
        self.points.append(point)
        self.steps.append(step)
        del self.points[:-MEMORY], self.steps[:-MEMORY]

    def extrapolated(self) -> FloatArray | None:
        """The point at which a linear model of the steps vanishes."""
        if len(self.steps) < 2:
            return None
        changes = np.column_stack([self.steps[-1] - step for step in self.steps[:-1]])
        moves = np.column_stack([self.points[-1] - point for point in self.points[:-1]])
        mix, *_ = np.linalg.lstsq(changes, self.steps[-1], rcond=1e-10)
        return self.points[-1] + self.steps[-1] - (moves + changes) @ mix


def _accelerated(problem: NoiseProblem, state: NoiseState, target: FloatArray, memory: _Memory) -> NoiseState | None:
    active = (state.noise > 0.0) & (target > 0.0)
    if not np.array_equal(state.noise > 0.0, target > 0.0):
        return None  # labels are still joining or leaving
    memory.remember(active, state.noise[active], target[active] - state.noise[active])
    point = memory.extrapolated()
    if point is None or not (np.isfinite(point).all() and (point > 0.0).all()):
        return None
    noise = np.zeros_like(state.noise)
    noise[active] = point
    trial = _better(problem, state, noise)
    return trial if trial is not None and trial.residual < state.residual else None


def _better(problem: NoiseProblem, state: NoiseState, noise: FloatArray) -> NoiseState | None:
    """The state at ``noise`` if its objective is no higher; what decides is computed before what costs most."""
    covariance = problem.covariance(noise)
    objective = negative_log_likelihood(covariance, problem.labels) + problem.penalty.value(noise)
    return problem.state(noise, covariance) if objective <= state.objective + _slack(state) else None


def _contended(problem: NoiseProblem, state: NoiseState, target: FloatArray) -> NoiseState | None:
    """The step for all labels, those that move furthest settled among themselves; or for these alone."""
    moves = np.abs(target - state.noise) * state.precision
    far = np.argsort(-moves, kind="stable")[: min(np.count_nonzero(moves > FAR), CONTENDERS)]
    if far.size < 2:
        return None
    try:
        settled = _settled(problem, state, far)
    except KernelMatrixError:
        return None
    for others in (target, state.noise):
        noise = others.copy()
        noise[far] = settled
        trial = _better(problem, state, noise)
        if trial is not None:
            return trial
    return None


def _settled(problem: NoiseProblem, state: NoiseState, index: IntArray) -> FloatArray:
    """Noise variances of some labels after rounds of exact moves, all others staying as they are."""
    inverse = np.asfortranarray(state.covariance.inverse_block(index))
    weights, noise = state.weights[index], state.noise[index]
    for _ in range(ROUNDS):
        before = noise.copy()
        sweep_block(inverse, weights, noise, problem.fixed_noise[index], problem.penalty, 0.0)
        if np.all(np.abs(noise - before) * inverse.diagonal() <= FAR):
            break
    return noise


def _partial(problem: NoiseProblem, state: NoiseState, target: FloatArray) -> NoiseState | None:
    """The step for all labels, or for those that gain most by it, as many as lower the objective; else the paper's step."""
    gain = _gains(problem, state, target)
    order = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain > 0.0)]
    count = order.size
    for _ in range(CUTS):
        if not count:
            break
        noise = state.noise.copy()
        noise[order[:count]] = target[order[:count]]
        trial = _better(problem, state, noise)
        if trial is not None:
            return trial
        count = int(count * CUT)
    last = multiplicative_step(problem, state)
    return last if last.objective < state.objective else None


def _gains(problem: NoiseProblem, state: NoiseState, target: FloatArray) -> FloatArray:
    """How much each label's own step lowers the objective."""
    penalty = problem.penalty
    variance = trusted_variance(state.precision, state.noise, problem.fixed_noise)
    squared = (state.weights / state.precision) ** 2

    def own(noise: FloatArray) -> FloatArray:
        total = variance + noise
        paid = penalty.price * (noise > 0.0) + (penalty.weight * noise**penalty.power if penalty.weight else 0.0)
        return np.asarray(np.log(total) + squared / total + paid)

    return own(state.noise) - own(target)


def _slack(state: NoiseState) -> float:
    return 1e-12 * (1.0 + abs(state.objective))
