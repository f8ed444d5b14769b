"""The default solver: paper steps, exact coordinate sweeps, then Newton on the labels that remain noisy.

It ends at exact zeros, never raises the objective from one cycle to the next, and stops on the optimality residual;
the whole solve usually costs no more than a handful of matrix inversions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import FloatArray
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.solvers.contract import Monitor, NoiseSolution, Trace
from mislabel.noise.solvers.multiplicative import multiplicative_step
from mislabel.noise.solvers.newton import condition_on_zeros, newton_step, solve_newton
from mislabel.noise.solvers.sweeps import SweepState, sweep

PAPER_STEPS = 2
SWEEP_THRESHOLD = 0.03
#: A label at zero takes part in the Newton phase once its squared z is this close to the bound of one.
ACTIVE_RATIO = 0.7
NEWTON_STEPS = 25
#: Residual below which only Newton steps on the full problem are taken.
POLISH_BELOW = 1e-3
#: A second descent, from the first optimum with this multiple of the start added to every label, often ends lower. It is
#: made where it is needed most, above this fraction of noisy labels (the optimum is rarely unique there) ...
REHEAT = 0.1
MANY_NOISY = 0.75
#: ... and where it costs little: when the first descent took at most this many n^3 units.
CHEAP_DESCENT = 6.5
#: Cycles that it may take before it is given up.
REHEAT_CYCLES = 6


def solve_auto(
    problem: NoiseProblem, start: FloatArray, *, tol: float, max_iter: int, monitor: Monitor | None = None
) -> NoiseSolution:
    """Minimise by cycles of sweeps and Newton steps; ``max_iter`` bounds the number of cycles per descent."""
    meter = problem.signal.meter
    before = meter.units
    best = descend(problem, start, tol=tol, max_iter=max_iter, monitor=monitor)
    noise = best.state.noise
    if meter.units - before <= CHEAP_DESCENT or np.count_nonzero(noise) > MANY_NOISY * problem.size:
        cycles = min(max_iter, REHEAT_CYCLES)
        warm = noise + REHEAT * start
        second = descend(problem, warm, tol=tol, max_iter=cycles, monitor=monitor, paper_steps=0)
        if second.state.objective < best.state.objective and second.converged >= best.converged:
            return second
    return best


def descend(
    problem: NoiseProblem,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor | None = None,
    paper_steps: int = PAPER_STEPS,
) -> NoiseSolution:
    """The local optimum reached from one start; a warm start needs no ``paper_steps``."""
    trace = Trace(problem, monitor)
    state = problem.evaluate(start)
    trace.add(state)
    for _ in range(paper_steps):
        state = multiplicative_step(problem, state)
        trace.add(state)
    for _ in range(max_iter):
        if state.residual <= tol:
            break
        if state.residual <= POLISH_BELOW and not problem.refine:
            problem = replace(problem, refine=True)
            state = problem.state(state.noise, state.covariance)
            continue
        if state.residual <= POLISH_BELOW:
            # So close to the end, a Newton step on the full problem beats another cycle on the reduced one, whose data
            # have been through two inversions.
            state = newton_step(problem, state)
            trace.add(state)
            continue
        trial = problem.evaluate(_cycle(SweepState.from_state(problem, state), tol))
        if trial.objective <= state.objective + 1e-12 * (1.0 + abs(state.objective)):
            state = trial
        else:
            state = multiplicative_step(problem, state)
        trace.add(state)
    return trace.solution(state, tol)


def _cycle(state: SweepState, tol: float) -> FloatArray:
    """Sweeps over all labels, then Newton on those that are or may become noisy."""
    noise = state.noise
    try:
        sweep(state, threshold=SWEEP_THRESHOLD)
        active = state.active(ACTIVE_RATIO)
        if active.size:
            reduced, reduced_state = condition_on_zeros(state.restricted(active))
            noise[active] = solve_newton(reduced, reduced_state, tol=0.3 * tol, max_iter=NEWTON_STEPS).noise
    except KernelMatrixError:
        pass  # rounding has spoilt the updated inverse: what was reached stands, and the caller factorises it anew
    return noise
