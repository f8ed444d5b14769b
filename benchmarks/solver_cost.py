"""Cost of solving for the noise variances: auto against the paper's update and L-BFGS-B.

    python benchmarks/solver_cost.py --references-only            # hours of one core; stop and start again at will
    python benchmarks/solver_cost.py > benchmarks/solver_cost.txt

The slow runs that auto is compared with do not change with it: each is made once and kept as a line of
solver_cost_references.csv. Random problems with a known kernel (RBF and Matern-5/2), n from 200 to 2000, 10 to 90 % of the labels wrong, levels 10 to
200 %; no base noise. Costs are in units of n^3 operations: a Cholesky factorisation is 1/3, the diagonal of the inverse
another 1/3. The reference objective is that of 2,000 steps of the paper's update from the same start.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from scipy.linalg import lapack

from mislabel import LabelNoiseRegressor
from mislabel.linalg import DenseSignal, stabilizing_jitter
from mislabel.linalg.threads import blas_threads
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.solvers import SOLVERS, uniform_start

SEED = 20260301
REFERENCES = Path(__file__).with_name("solver_cost_references.csv")
REFERENCE_COLUMNS = ["seed", "largest", "number", "n", "paper_residual", "paper_units", "paper_objective"] + [
    "lbfgs_residual",
    "lbfgs_units",
    "lbfgs_objective",
]


def whole_matrix(points, length, shape):
    squares = np.sum(points**2, axis=1)
    squared = np.maximum(squares[:, None] + squares - 2.0 * points @ points.T, 0.0) / length**2
    distance = np.sqrt(5.0 * squared)
    matrix = np.exp(-squared / 2) if shape == "rbf" else (1 + distance + 5 / 3 * squared) * np.exp(-distance)
    return 0.5 * (matrix + matrix.T)


def random_problem(number: int, rng: np.random.Generator, largest: int):
    size = int(np.exp(rng.uniform(np.log(200), np.log(largest))))
    dimensions = int(rng.integers(1, 6))
    points = rng.uniform(size=(size, dimensions))
    length = rng.uniform(0.15, 0.6) * np.sqrt(dimensions)
    name = ("rbf", "matern")[number % 2]
    matrix = whole_matrix(points, length, name)
    signal = np.linalg.cholesky(matrix + 1e-8 * np.eye(size)) @ rng.standard_normal(size)
    rate, level = rng.uniform(0.1, 0.9), rng.uniform(0.1, 2.0)
    wrong = rng.permutation(size)[: round(rate * size)]
    labels = signal.copy()
    labels[wrong] += rng.normal(0.0, level * signal.std(), wrong.size)
    return name, size, rate, level, matrix, labels


def new_problem(matrix, labels):
    signal = DenseSignal(np.asfortranarray(matrix))
    noise = np.zeros(labels.size)
    jitter = stabilizing_jitter(signal, noise)
    signal.meter.units = 0.0
    return NoiseProblem(signal, labels, noise + jitter)


def run(solver, matrix, labels, max_iter, tol=1e-6):
    problem = new_problem(matrix, labels)
    start = time.perf_counter()
    solution = SOLVERS[solver](problem, uniform_start(problem), tol=tol, max_iter=max_iter)
    return solution, problem.signal.meter.units, time.perf_counter() - start


def stored_references(seed: int, largest: int) -> dict[int, dict[str, float]]:
    """The reference runs made so far, by problem number."""
    if not REFERENCES.exists():
        return {}
    with REFERENCES.open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    return {int(row["number"]): row for row in rows if row["seed"] == seed and row["largest"] == largest}


def add_reference(options: argparse.Namespace, number: int, matrix, labels) -> None:
    """2,000 of the paper's steps and L-BFGS-B from the same start, appended to the file."""
    with blas_threads(labels.size):
        paper, paper_units, _ = run("multiplicative", matrix, labels, options.reference_steps)
        lbfgs, lbfgs_units, _ = run("lbfgs", matrix, labels, options.lbfgs_steps)
    new = not REFERENCES.exists()
    with REFERENCES.open("a") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(REFERENCE_COLUMNS)
        row = [options.seed, options.largest, number, labels.size]
        row += [f"{paper.state.residual:.3e}", round(paper_units, 1), repr(float(paper.state.objective))]
        row += [f"{lbfgs.state.residual:.3e}", round(lbfgs_units, 1), repr(float(lbfgs.state.objective))]
        writer.writerow(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--largest", type=int, default=2000)
    parser.add_argument("--reference-steps", type=int, default=2000)
    parser.add_argument("--lbfgs-steps", type=int, default=200)
    parser.add_argument(
        "--references-only", action="store_true", help="make the missing reference runs, smallest n first"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    problems = [random_problem(number, rng, options.largest) for number in range(options.problems)]
    references = stored_references(options.seed, options.largest)
    if options.references_only:
        missing = [number for number in range(options.problems) if number not in references]
        for number in sorted(missing, key=lambda number: problems[number][1]):
            print(f"problem {number}, n = {problems[number][1]}", flush=True)
            add_reference(options, number, *problems[number][4:])
        return
    print(f"seed {options.seed}, {options.problems} problems")
    print("kernel    n rate level | auto: residual  units      s |", end="")
    print(" paper: residual  units | L-BFGS-B: residual  units |", end="")
    print(" (L_auto - L_paper) / |L_paper|  (L_lbfgs - L_paper) / |L_paper|")
    rows = []
    for number, (name, size, rate, level, matrix, labels) in enumerate(problems):
        with blas_threads(size):
            auto, units, seconds = run("auto", matrix, labels, 50)
        rows.append([auto.state.residual, units, *[np.nan] * 5])
        line = (
            f"{name:6s} {size:4d} {rate:4.2f} {level:5.2f} | {auto.state.residual:14.1e} {units:6.1f} {seconds:6.2f} |"
        )
        if number in references:
            other = references[number]
            reference = other["paper_objective"]
            gap = (auto.state.objective - reference) / abs(reference)
            gap_lbfgs = (other["lbfgs_objective"] - reference) / abs(reference)
            rows[-1][2:] = [gap, other["paper_residual"], other["paper_units"]]
            rows[-1] += [other["lbfgs_residual"], other["lbfgs_units"]]
            line += f" {other['paper_residual']:15.1e} {other['paper_units']:6.0f} |"
            line += f" {other['lbfgs_residual']:18.1e} {other['lbfgs_units']:6.0f} | {gap:10.1e} {gap_lbfgs:10.1e}"
        print(line, flush=True)
    summarise(np.array(rows))
    whole_fit(rng)


def summarise(table: np.ndarray) -> None:
    """Columns: residual and units of auto, gap, residual and units of the paper's update, the same of L-BFGS-B."""
    count, units = len(table), table[:, 1]
    print(f"\nauto:     residual <= 1e-6 in {np.sum(table[:, 0] <= 1e-6)} of {count};", end="")
    print(f" cost median {np.median(units):.1f}, mean {np.mean(units):.1f}, largest {np.max(units):.0f} units", end="")
    print(" (start included)")
    table = table[~np.isnan(table[:, 2])]
    count = len(table)
    print(f"\nthe {count} problems with reference runs:")
    for name, column in (("paper:   ", 3), ("L-BFGS-B:", 5)):
        print(f"{name} residual <= 1e-6 in {np.sum(table[:, column] <= 1e-6)} of {count};", end="")
        print(f" cost median {np.median(table[:, column + 1]):.0f} units")
    worse, better = np.sum(table[:, 2] > 1e-6), np.sum(table[:, 2] < -1e-6)
    print(f"objective of auto against the paper's update: {worse} worse, {better} better,", end="")
    print(f" {count - worse - better} equal (1e-6 relative)")


def whole_fit(rng: np.random.Generator) -> None:
    """At n = 2000: the whole fit against one potrf + trtri measured in the same run, the best of a few of each."""
    print(
        "\nwhole fit at n = 2000 (kernel precomputed, tune none, base noise 0) against one potrf + trtri in the same run, the best of a few"
    )
    for number in range(4):
        while True:
            name, size, rate, level, matrix, labels = random_problem(number, rng, 2100)
            if size >= 1990:
                break
        matrix, labels = matrix[:1990, :1990], labels[:1990]
        units = []
        for _ in range(5):
            factor = np.array(matrix + 1e-6 * np.eye(len(matrix)), order="F")
            start = time.perf_counter()
            factor, _ = lapack.dpotrf(factor, lower=1, overwrite_a=1, clean=0)
            lapack.dtrtri(factor, lower=1, overwrite_c=1)
            units.append(time.perf_counter() - start)
        model = LabelNoiseRegressor(kernel="precomputed", tune="none", base_noise=0.0, center="none")
        fits = []
        for _ in range(3):
            start = time.perf_counter()
            model.fit(matrix, labels)
            fits.append(time.perf_counter() - start)
        seconds = min(fits)
        print(
            f"{name:6s} rate {rate:.2f} level {level:.2f}: fit {seconds:.2f} s = {seconds / min(units):.1f} x "
            f"potrf + trtri ({min(units):.3f} s); residual {model.residual_:.1e}, {model.solver_cost_:.1f} units",
            flush=True,
        )


if __name__ == "__main__":
    main()
