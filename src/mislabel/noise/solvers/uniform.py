"""One noise variance for all labels: the paper's scalar update, and an exact solve from one eigendecomposition."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.noise.objective import NoiseProblem, NoiseState
from mislabel.noise.solvers.contract import Monitor, NoiseSolution, Trace

#: Flops of a symmetric eigendecomposition in n^3 units, as LAPACK counts it (tridiagonalisation, QR, back-transform).
EIGENDECOMPOSITION = 9.0
_GRID_POINTS = 81
_START_SUBSET = 400


class UniformSpectrum:
    """``L(s)`` for ``s * identity`` in O(n) per evaluation: ``sum log(v + s) + z^2 / (v + s)``."""

    def __init__(self, matrix: FloatArray, labels: FloatArray) -> None:
        values, vectors = eigh(matrix, driver="evd")
        self.values = np.maximum(values, 0.0)
        self.projections_squared = (vectors.T @ labels) ** 2

    def objective(self, noise: float) -> float:
        """``log |A + s I| + y' (A + s I)^-1 y``."""
        total = self.values + noise
        return float(np.sum(np.log(total) + self.projections_squared / total))

    def minimise(self, low: float, high: float) -> float:
        """Global minimiser in ``[low, high]`` (or 0 if that is better still): a grid, then Brent's method."""
        grid = np.geomspace(low, high, _GRID_POINTS)
        heights = [self.objective(noise) for noise in grid]
        best = int(np.argmin(heights))
        bracket = np.log(grid[max(best - 1, 0)]), np.log(grid[min(best + 1, _GRID_POINTS - 1)])
        found = minimize_scalar(
            lambda log_noise: self.objective(float(np.exp(log_noise))),
            bounds=bracket,
            method="bounded",
            options={"xatol": 1e-10},
        )
        noise = float(np.exp(found.x))
        if self.values.min() > 0 and self.objective(0.0) <= found.fun:
            return 0.0
        return noise


def exact_uniform_noise(problem: NoiseProblem, subset: IntArray | None = None) -> float:
    """The uniform noise variance of highest likelihood, on all labels or on a subset of them."""
    index: IntArray = np.arange(problem.size) if subset is None else subset
    matrix = problem.signal.submatrix(index)
    matrix[np.diag_indices_from(matrix)] += problem.fixed_noise[index]
    labels = problem.labels[index]
    scale = max(float(np.mean(labels**2)), float(np.mean(matrix.diagonal())))
    problem.signal.meter.add(EIGENDECOMPOSITION, len(index))
    return UniformSpectrum(matrix, labels).minimise(1e-10 * scale, 10.0 * scale)


def uniform_start(problem: NoiseProblem) -> FloatArray:
    """A start for the per-label solvers: the best uniform noise of an evenly spaced subset of the labels.

    The subset keeps the price of the start far below that of a single factorisation; the first iterations of any
    solver correct what it got wrong.
    """
    index = np.unique(
        np.linspace(0, problem.size - 1, max(min(problem.size // 4, _START_SUBSET), min(problem.size, 50))).astype(int)
    )
    floor = 1e-6 * float(np.mean(problem.signal.diagonal()) + np.mean(problem.labels**2))
    return np.full(problem.size, max(exact_uniform_noise(problem, index), floor))


def solve_uniform_exact(
    problem: NoiseProblem, start: FloatArray, *, tol: float, max_iter: int, monitor: Monitor | None = None
) -> NoiseSolution:
    """Uniform noise by eigendecomposition; ``start`` is not needed."""
    trace = Trace(problem, monitor)
    trace.add(problem.evaluate(start))
    state = problem.evaluate(np.full(problem.size, exact_uniform_noise(problem)))
    trace.add(state)
    return _with_scalar_residual(trace, state, tol)


def solve_uniform_multiplicative(
    problem: NoiseProblem, start: FloatArray, *, tol: float, max_iter: int, monitor: Monitor | None = None
) -> NoiseSolution:
    """The paper's scalar update ``s <- s (a'a) / tr C`` (end of section 4.1)."""
    trace = Trace(problem, monitor)
    state = problem.evaluate(np.full(problem.size, start.mean()))
    trace.add(state)
    for _ in range(max_iter):
        if scalar_residual(state) <= tol:
            break
        state = problem.evaluate(state.noise * (state.weights @ state.weights / state.precision.sum()))
        trace.add(state)
    return _with_scalar_residual(trace, state, tol)


def scalar_residual(state: NoiseState) -> float:
    """Residual of the one-parameter problem: relative imbalance ``|tr C - a'a| / tr C``, one-sided at zero."""
    trace_inverse = float(state.precision.sum())
    imbalance = (trace_inverse - float(state.weights @ state.weights)) / trace_inverse
    at_zero = state.noise[0] * float(state.precision.mean()) < 1e-12
    return max(0.0, -imbalance) if at_zero else abs(imbalance)


def _with_scalar_residual(trace: Trace, state: NoiseState, tol: float) -> NoiseSolution:
    solution = trace.solution(state, tol)
    residual = scalar_residual(state)
    state = NoiseState(
        state.noise, state.weights, state.precision, state.slope, state.objective, residual, state.covariance
    )
    return NoiseSolution(
        state, residual <= tol, solution.n_iter, solution.objective_path, solution.residual_path, solution.cost_path
    )
