"""L-BFGS-B on the noise variances, bounded below by zero."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy.optimize import minimize

from mislabel.linalg.contract import FloatArray
from mislabel.noise.objective import NoiseProblem, NoiseState
from mislabel.noise.solvers.contract import Monitor, NoiseSolution, Trace


def solve_lbfgs(
    problem: NoiseProblem, start: FloatArray, *, tol: float, max_iter: int, monitor: Monitor | None = None
) -> NoiseSolution:
    """Scipy's L-BFGS-B on ``s / mean(start)``; the path holds the best point after every function evaluation."""
    scale = float(start.mean())
    trace = Trace(problem, monitor)
    best: list[NoiseState] = []

    def function(scaled: FloatArray) -> tuple[float, FloatArray]:
        state = problem.evaluate(np.maximum(scaled, 0.0) * scale)
        if not best or state.objective < best[0].objective:
            best[:] = [state]
        trace.add(best[0])  # trials of a line search may lie higher, but none of them is where the descent goes on
        if state.residual <= tol:
            raise StopIteration
        slope = np.where(np.isfinite(state.slope), state.slope, 1e6 * state.precision)
        return state.objective, slope * scale

    with suppress(StopIteration):  # raised once the residual is reached: scipy's own criteria measure something else
        minimize(
            function,
            start / scale,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * problem.size,
            options={"maxiter": max_iter, "maxfun": max_iter, "ftol": 0.0, "gtol": 0.0, "maxcor": 20},
        )
    return trace.solution(best[0], tol)
