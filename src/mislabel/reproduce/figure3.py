"""Figure 3: the objective against iterations and function evaluations, for the paper's update and its competitors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from mislabel.data import corrupt_labels
from mislabel.linalg import DenseSignal, stabilizing_jitter
from mislabel.linalg.threads import blas_threads
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.solvers import SOLVERS, NoiseSolution, uniform_start
from mislabel.noise.solvers.first_order import STEP_RULES, solve_first_order
from mislabel.reproduce.results import claim, draw, write_result

SIZE, DIMENSIONS, RATE, LEVEL, SEED = 300, 3, 0.3, 0.5, 11
#: Learning rates tried for each first-order method; the one that ends lowest is shown.
RATES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1)
TOL = 1e-6
MOST = 4000
SHOWN = 100
#: How many times fewer factorisations than the paper's update ``auto`` must need.
FACTOR = 20


def problem() -> NoiseProblem:
    """300 labels of a Gaussian process in three dimensions, 30 % of them wrong by half a standard deviation."""
    rng = np.random.default_rng(SEED)
    points = rng.uniform(size=(SIZE, DIMENSIONS))
    matrix = Matern(0.5, nu=2.5)(points)
    clean = np.linalg.cholesky(matrix + 1e-8 * np.eye(SIZE)) @ rng.standard_normal(SIZE)
    noisy = corrupt_labels(clean, RATE, LEVEL, random_state=rng)
    signal = DenseSignal(np.asfortranarray(matrix))
    jitter = stabilizing_jitter(signal, np.zeros(SIZE))
    signal.meter.units, signal.meter.n_factorizations = 0.0, 0
    return NoiseProblem(signal, noisy.labels, np.full(SIZE, jitter))


def solve(name: str, rate: float | None = None, most: int = MOST) -> tuple[NoiseSolution, int]:
    """A solution from the best uniform noise, and the factorisations it took."""
    task = problem()
    start = uniform_start(task)
    task.signal.meter.n_factorizations = 0
    solver = SOLVERS[name] if rate is None else partial(solve_first_order, method=name, rate=rate)
    solution = solver(task, start, tol=TOL, max_iter=most)
    return solution, task.signal.meter.n_factorizations


def _all_runs() -> tuple[dict[str, tuple[NoiseSolution, int]], dict[str, float]]:
    """Every method's solution and factorisations, first-order ones at the best of their rates."""
    runs: dict[str, tuple[NoiseSolution, int]] = {
        "auto": solve("auto", most=50),
        "multiplicative": solve("multiplicative"),
        "lbfgs": solve("lbfgs", most=SHOWN * 3),
    }
    rates: dict[str, float] = {}
    for name in STEP_RULES:
        tried = {rate: solve(name, rate, most=SHOWN * 3) for rate in RATES}
        rates[name] = min(tried, key=lambda rate: tried[rate][0].state.objective)
        runs[name] = tried[rates[name]]
    return runs, rates


def run_figure3(out: Path) -> dict[str, Any]:
    """Paths of all methods, how far each came, and what the paper and we claim about them."""
    with blas_threads(SIZE):
        runs, rates = _all_runs()
    best = min(solution.state.objective for solution, _ in runs.values())
    rows: dict[str, Any] = {
        name: {
            "objective_above_best": round(solution.state.objective - best, 6),
            "above_best_after_30": round(float(np.minimum.accumulate(solution.objective_path)[:31][-1] - best), 4),
            "residual": float(solution.state.residual),
            "iterations": solution.n_iter,
            "factorizations": count,
            "n3_units": round(float(solution.cost_path[-1]), 2),
            "rate": rates.get(name),
        }
        for name, (solution, count) in runs.items()
    }
    path = runs["multiplicative"][0].objective_path
    others = [name for name in rows if name not in ("auto", "multiplicative")]
    at_30 = "above_best_after_30"
    claims = [
        claim(
            "the multiplicative update never raises the objective", np.all(np.diff(path) <= 1e-9 * np.abs(path[:-1]))
        ),
        claim(
            "after 30 evaluations it is lower than all gradient methods",
            all(rows["multiplicative"][at_30] <= rows[name][at_30] for name in others),
        ),
        claim(f"auto ends at a residual of {TOL:g}", rows["auto"]["residual"] <= TOL),
        claim(
            f"auto needs at most 1/{FACTOR} of the multiplicative update's factorisations",
            FACTOR * rows["auto"]["factorizations"] <= rows["multiplicative"]["factorizations"],
        ),
        claim("auto's objective is not above it", rows["auto"]["objective_above_best"] <= 1e-6),
    ]
    draw(out / "fig3.svg", _panels, runs, best, columns=2)
    figures = {"methods": rows, "claims": claims}
    write_result(out / "fig3.json", figures)
    return figures


def _panels(axes: Any, runs: dict[str, tuple[NoiseSolution, int]], best: float) -> None:
    floor = 1e-7
    for name, (solution, _) in runs.items():
        excess = np.maximum(np.minimum.accumulate(solution.objective_path) - best, floor)
        width = 2.2 if name == "auto" else 1.2
        axes[0].semilogy(np.arange(excess.size)[: SHOWN + 1], excess[: SHOWN + 1], lw=width, label=name)
        evaluations = 1.5 * (solution.cost_path - solution.cost_path[0])
        near = evaluations <= SHOWN
        axes[1].semilogy(evaluations[near], excess[near], lw=width, label=name)
    axes[0].set(xlabel="iterations", ylabel="objective above the best", title="by iterations")
    axes[1].set(xlabel="function evaluations (2/3 n^3 operations each)", title="by function evaluations")
    axes[1].legend(fontsize=8)
