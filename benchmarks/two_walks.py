"""A second walk that sees farther, beside the usual one: marginal likelihood of 1,000 clean molecules, and error on 1,000 others.

    python benchmarks/two_walks.py qm7 > benchmarks/two_walks.txt
    python benchmarks/two_walks.py qm7 --near-stops 0.05 --near-lengths 0.07 --far-zooms 0.8 --far-lengths 0.07 0.1 >> benchmarks/two_walks.txt

The kernel is ``near + weight * far``: the near walk on the usual graph (zoom 0.65), elements alone on its nodes; the far one on a wider graph, whose
nodes are compared by element and coordination number. Amplitude, weight and uniform noise are those of best likelihood for each pair of settings. 2,000
molecules are drawn at random (seed 0); half of them choose, by minus twice the log likelihood (lower is better); the other half are predicted, to be looked at only.
``weight`` is relative to the near walk's mean diagonal in the first column of numbers, and as ``FarWalk`` takes it in the second. Gaps: the sum normalised and
raised to the eighth power, with a few weights.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from mislabel.data import load_qm7, load_qm9
from mislabel.kernels import KroneckerDelta, MarginalizedGraphKernel, SquaredExponential, TensorProduct
from mislabel.kernels.graphs.molecules import graph_from_atoms

DATA = Path(__file__).parents[2] / "shared" / "data"
SIZE = 1000
PRIOR = 0.5
GAP_EXPONENT = 8
GAP_WEIGHTS = (0.03, 0.1, 0.3, 1.0, 3.0)


def matrix_of(molecules, stop, length, zoom, coordination=None):
    graphs = [
        graph_from_atoms(item, adjacency="compactbell4,2", zoom=zoom, coordination=coordination is not None)
        for item in molecules
    ]
    nodes = KroneckerDelta("element", PRIOR)
    if coordination is not None:
        nodes = TensorProduct(nodes, SquaredExponential("coordination", coordination))
    return MarginalizedGraphKernel(nodes, SquaredExponential("length", length), stop, dtype="float64")(graphs)


def best_sum(parts, labels):
    """Logarithms of the amplitudes of the parts and of the noise, of best likelihood, and minus twice its logarithm."""
    scale = np.log(np.mean(labels**2))
    parts = [*parts, np.eye(labels.size)]

    def objective(logs):
        total = sum(np.exp(log) * part for log, part in zip(logs, parts, strict=True))
        factor, failed = lapack.dpotrf(total, lower=1)
        if failed:
            return 1e10, np.zeros(logs.size)
        inverse, _ = lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        solved = inverse @ labels
        slack = inverse - np.outer(solved, solved)
        slopes = [np.exp(log) * np.sum(slack * part) for log, part in zip(logs, parts, strict=True)]
        return labels @ solved + 2 * np.log(factor.diagonal()).sum(), np.array(slopes)

    start = np.full(len(parts), scale - np.log(len(parts) - 1))
    start[-1] = scale + np.log(1e-6)
    bounds = [(scale - 16, scale + 14)] * (len(parts) - 1) + [(scale - 22, scale - 2)]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
    return found.x, found.fun


def report(name, parts, labels, scales):
    train, test = slice(0, SIZE), slice(SIZE, None)
    logs, value = best_sum([part[train, train] for part in parts], labels[train])
    amplitudes = np.exp(logs[:-1])
    similar = sum(amplitude * part[:, train] for amplitude, part in zip(amplitudes, parts, strict=True))
    weights = np.linalg.solve(similar[train] + np.exp(logs[-1]) * np.eye(SIZE), labels[train])
    error = np.abs(similar[test] @ weights - labels[test]).mean()
    told = ""
    if len(parts) == 2:
        told = f", weight {amplitudes[1] / amplitudes[0]:.4f} = {amplitudes[1] / amplitudes[0] * scales[0] / scales[1]:.4f}"
    print(f"{name}: -2 log likelihood {value:.1f}, error {error:.4f}{told}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=["qm7", "qm9"])
    parser.add_argument("--near-stops", nargs="+", type=float, default=[0.1, 0.3])
    parser.add_argument("--near-lengths", nargs="+", type=float, default=[0.07, 0.1])
    parser.add_argument("--far-zooms", nargs="+", type=float, default=[0.8, 0.9])
    parser.add_argument("--far-lengths", nargs="+", type=float, default=[0.07, 0.1, 0.14])
    parser.add_argument("--coordinations", nargs="+", type=float, default=[0.5, 1.0])
    options = parser.parse_args()
    data = load_qm7(DATA / "qm7.npz") if options.set == "qm7" else load_qm9(DATA / "qm9_random8000.npz")
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(len(data), 2 * SIZE, replace=False))[rng.permutation(2 * SIZE)]
    molecules = [data[k] for k in chosen]
    labels = {
        item: data.labels(item)[chosen]
        for item in (("energy",) if options.set == "qm7" else ("energy", "polarizability"))
    }
    usual = matrix_of(molecules, 0.05, 0.07 if options.set == "qm7" else 0.1, 0.65)
    near = {
        setting: matrix_of(molecules, *setting, 0.65)
        for setting in itertools.product(options.near_stops, options.near_lengths)
    }
    for item, values in labels.items():
        report(f"{options.set} {item}: usual walk alone", [usual / np.mean(usual.diagonal())], values, ())
        for (stop, length), matrix in near.items():
            scaled = matrix / np.mean(matrix.diagonal())
            report(f"{options.set} {item}: near walk alone, stopping {stop}, length {length}", [scaled], values, ())
    for zoom, length, coordination in itertools.product(options.far_zooms, options.far_lengths, options.coordinations):
        far = matrix_of(molecules, 0.05, length, zoom, coordination)
        for (stop, near_length), matrix in near.items():
            scales = np.mean(matrix.diagonal()), np.mean(far.diagonal())
            parts = [matrix / scales[0], far / scales[1]]
            name = f"near stopping {stop}, length {near_length}; far zoom {zoom}, length {length}, coordination {coordination}"
            for item, values in labels.items():
                report(f"{options.set} {item}: {name}", parts, values, scales)
            if options.set == "qm9":
                gaps = data.labels("gap")[chosen]
                for weight in GAP_WEIGHTS:
                    total = matrix + weight * far
                    roots = np.sqrt(total.diagonal())
                    sharp = (total / np.outer(roots, roots)) ** GAP_EXPONENT
                    report(f"qm9 gap: {name}, weight {weight}", [sharp], gaps - np.median(gaps), ())


if __name__ == "__main__":
    main()
