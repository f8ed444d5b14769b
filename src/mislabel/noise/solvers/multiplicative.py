"""The paper's multiplicative update and its square-root (majorise-minimise) variant."""

from __future__ import annotations

import numpy as np

from mislabel.linalg.contract import FloatArray
from mislabel.noise.objective import NoiseProblem, NoiseState
from mislabel.noise.solvers.contract import Monitor, NoiseSolution, Trace


def multiplicative_factor(state: NoiseState, penalty_slope: FloatArray) -> FloatArray:
    """``a^2 / (b + lambda p s^(p-1))``: the paper's equations 7 and 9."""
    return np.asarray(state.weights**2 / (state.precision + penalty_slope))


def multiplicative_step(problem: NoiseProblem, state: NoiseState, exponent: float = 1.0) -> NoiseState:
    """One update ``s <- s * factor^exponent``, evaluated.

    Exponents up to one cannot raise the objective as long as the penalty is concave (power <= 1). Where it is convex
    (power > 1) they can, so the exponent is halved until the objective falls.
    """
    factor = multiplicative_factor(state, problem.penalty.slope(state.noise))
    trial = problem.evaluate(state.noise * factor**exponent)
    if problem.penalty.weight and problem.penalty.power > 1.0:
        slack = 1e-12 * (1.0 + abs(state.objective))
        while trial.objective > state.objective + slack and exponent > 1e-6:
            exponent *= 0.5
            trial = problem.evaluate(state.noise * factor**exponent)
    return trial


def solve_multiplicative(
    problem: NoiseProblem,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor | None = None,
    exponent: float = 1.0,
) -> NoiseSolution:
    """The paper's algorithm (section 4.1). Costs one factorisation and one inverse diagonal per iteration."""
    trace = Trace(problem, monitor)
    state = problem.evaluate(start)
    trace.add(state)
    for _ in range(max_iter):
        if state.residual <= tol:
            break
        state = multiplicative_step(problem, state, exponent)
        trace.add(state)
    return trace.solution(state, tol)


def solve_sqrt(
    problem: NoiseProblem, start: FloatArray, *, tol: float, max_iter: int, monitor: Monitor | None = None
) -> NoiseSolution:
    """The step that minimises the majoriser behind the update: ``s <- s |a| / sqrt(b)``."""
    return solve_multiplicative(problem, start, tol=tol, max_iter=max_iter, monitor=monitor, exponent=0.5)
