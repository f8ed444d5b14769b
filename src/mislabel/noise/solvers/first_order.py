"""Projected gradient descent and its accelerated variants, as the paper's figure 3 compares them.

All work on ``u = s / scale`` with ``scale`` the mean of the start, so that one learning rate means the same for labels
of any unit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import FloatArray
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.solvers.contract import Monitor, NoiseSolution, Trace

#: Maps (gradient, iteration number) to the step that is to be subtracted.
StepRule = Callable[[FloatArray, int], FloatArray]


def gradient_rule(rate: float) -> StepRule:
    """Plain gradient descent."""
    return lambda slope, iteration: rate * slope


def momentum_rule(rate: float, decay: float = 0.9) -> StepRule:
    """Gradient descent with heavy-ball momentum."""
    velocity: FloatArray = np.zeros(1)

    def rule(slope: FloatArray, iteration: int) -> FloatArray:
        nonlocal velocity
        velocity = decay * velocity + rate * slope
        return velocity

    return rule


def rmsprop_rule(rate: float, decay: float = 0.9) -> StepRule:
    """Gradients divided by a running root mean square."""
    square: FloatArray = np.zeros(1)

    def rule(slope: FloatArray, iteration: int) -> FloatArray:
        nonlocal square
        square = decay * square + (1.0 - decay) * slope**2
        return rate * slope / (np.sqrt(square) + 1e-8)

    return rule


def adam_rule(rate: float, decay_mean: float = 0.9, decay_square: float = 0.999) -> StepRule:
    """Adam (Kingma and Ba, 2015), bias-corrected."""
    mean: FloatArray = np.zeros(1)
    square: FloatArray = np.zeros(1)

    def rule(slope: FloatArray, iteration: int) -> FloatArray:
        nonlocal mean, square
        mean = decay_mean * mean + (1.0 - decay_mean) * slope
        square = decay_square * square + (1.0 - decay_square) * slope**2
        corrected = np.sqrt(square / (1.0 - decay_square**iteration))
        return rate * mean / (1.0 - decay_mean**iteration) / (corrected + 1e-8)

    return rule


STEP_RULES: dict[str, tuple[Callable[[float], StepRule], float]] = {
    "gradient": (gradient_rule, 0.01),
    "momentum": (momentum_rule, 0.003),
    "rmsprop": (rmsprop_rule, 0.03),
    "adam": (adam_rule, 0.1),
}


def solve_first_order(
    problem: NoiseProblem,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor | None = None,
    method: str = "gradient",
    rate: float | None = None,
) -> NoiseSolution:
    """Projected descent with a fixed learning rate; returns the best iterate, since these methods may overshoot."""
    make_rule, default_rate = STEP_RULES[method]
    rule = make_rule(default_rate if rate is None else rate)
    scale = float(start.mean())
    trace = Trace(problem, monitor)
    state = best = problem.evaluate(start)
    trace.add(state)
    for iteration in range(1, max_iter + 1):
        if state.residual <= tol:
            break
        slope = np.where(np.isfinite(state.slope), state.slope, 0.0) * scale
        noise = np.maximum(0.0, state.noise - scale * rule(slope, iteration))
        try:
            state = problem.evaluate(noise)
        except KernelMatrixError:
            break  # a rate far too large has left the region where the covariance can be factorised
        trace.add(state)
        if state.objective < best.objective:
            best = state
    return trace.solution(best, tol)
