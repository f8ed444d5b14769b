"""Cross-validated errors of plain Gaussian processes on molecules with the terms of MolecularKernel.accurate(), with and without electrons.

    python benchmarks/molecular_accuracy.py ../shared/data --work grams > benchmarks/molecular_accuracy.txt

Both walks have the values of ``MolecularKernel.accurate()``, which have the best marginal likelihood of 1,000 energies of QM7 among those tried. The weights of the
far walk and of the electronic term, the noise (relative to the mean diagonal) and, for the gap, the exponent are chosen here by the likelihood of 1,000 molecules
(seed 0) of each set; then each of five folds of all molecules is predicted from the other four. QM7 has official folds, QM9's are drawn (seed 1). Without electrons the
same walks are used with their own best weight.

QM7's matrices are computed to 1e-9 in double precision: noise of 1e-8 is wanted, which matrices computed to 1e-7 do not allow. QM9's are computed in single precision.
All are resumable, kept in ``--work``, and take about half an hour of two cores for QM7, eight minutes for QM9 with AVX-512.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from kernel_choice import SIZE, likelihood
from scipy.linalg import cho_factor, cho_solve

from mislabel.data import load_qm7, load_qm9
from mislabel.kernels import (
    ElectronicTerm,
    KroneckerDelta,
    MarginalizedGraphKernel,
    MolecularKernel,
    SquaredExponential,
    TensorProduct,
    gram_matrix,
)
from mislabel.kernels.graphs.molecular.extended_huckel import electrons_of
from mislabel.kernels.graphs.molecules import graph_from_atoms

FAR_WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
ELECTRON_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
EXPONENTS = (4, 8)
UNITS = {"energy": "kcal/mol", "polarizability": "bohr^3", "gap": "eV"}


def matrices(name, data, work):
    """Similarities by the near and by the far walk."""
    precision = {"tol": 1e-9, "dtype": "float64"} if name == "qm7" else {}
    near = MolecularKernel.accurate(**precision).set_params(electrons=None, far=None)
    shape = MolecularKernel.accurate().far
    nodes = TensorProduct(
        KroneckerDelta("element", near.element_prior), SquaredExponential("coordination", shape.coordination_scale)
    )
    edges = SquaredExponential("length", shape.edge_length_scale)
    far = MarginalizedGraphKernel(nodes, edges, shape.stopping_probability, starting_attribute="start", **precision)
    graphs = []
    for molecule in data:
        graph = graph_from_atoms(molecule, adjacency=near.adjacency, zoom=shape.zoom, coordination=True)
        start = np.where(graph.nodes["element"] == 1, near.hydrogen_weight, 1.0)
        graphs.append(replace(graph, nodes={**graph.nodes, "start": start}))
    first = gram_matrix(near, data, path=work / f"{name}-near-accurate.gram", verbose=1)
    return first, gram_matrix(far, graphs, path=work / f"{name}-far-accurate.gram", verbose=1)


class Form:
    """The kernel of one kind of label for given weights, on any rows and columns."""

    def __init__(self, near, far, electrons, intensive):
        self.near, self.far, self.intensive = near, far, intensive
        self.places = ElectronicTerm().coordinates(electrons, "intensive" if intensive else "extensive")
        self.diagonals = near.diagonal().copy(), far.diagonal().copy()

    def block(self, rows, columns, far, electrons, exponent):
        walks = self.near[np.ix_(rows, columns)] + far * self.far[np.ix_(rows, columns)]
        left, right = self.places[rows], self.places[columns]
        if not self.intensive:
            return walks + electrons * left @ right.T
        roots = np.sqrt(self.diagonals[0] + far * self.diagonals[1])
        apart = np.sum((left[:, None] - right[None]) ** 2, axis=2)
        return (walks / np.outer(roots[rows], roots[columns])) ** exponent + electrons * np.exp(-0.5 * apart)


def five_folds(form, labels, folds, setting, noise):
    """Absolute errors, fold by fold; more noise where the matrix is not positive definite with what was asked for."""
    try:
        errors = []
        for test in folds:
            train = np.setdiff1d(np.arange(labels.size), test)
            center = np.median(labels[train]) if form.intensive else 0.0
            similar = np.asfortranarray(form.block(train, train, *setting))
            similar.ravel(order="K")[:: train.size + 1] += noise * np.mean(similar.diagonal())
            weights = cho_solve(cho_factor(similar, lower=True, overwrite_a=True), labels[train] - center)
            errors.append(np.abs(form.block(test, train, *setting) @ weights + center - labels[test]))
        return errors, noise
    except np.linalg.LinAlgError:
        return five_folds(form, labels, folds, setting, 3.0 * noise)


def measure(name, label, labels, folds, form):
    some = np.random.default_rng(0).choice(labels.size, SIZE, replace=False)
    center = np.median(labels[some]) if form.intensive else 0.0
    for words, weights in (("walks alone", (0.0,)), ("with electrons", ELECTRON_WEIGHTS)):
        tried = [
            (
                *likelihood(form.block(some, some, far, electrons, exponent), labels[some] - center),
                far,
                electrons,
                exponent,
            )
            for far in FAR_WEIGHTS
            for electrons in weights
            for exponent in (EXPONENTS if form.intensive else (1,))
        ]
        value, noise, *setting = min(tried)
        errors, noise = five_folds(form, labels, folds, setting, noise)
        joined = np.sort(np.concatenate(errors))
        most = joined.size // 100
        power = f", exponent {setting[2]}" if form.intensive else ""
        print(
            f"{name} {label}, {words}: five-fold MAE {joined.mean():.4f} {UNITS[label]} (folds {', '.join(f'{e.mean():.3f}' for e in errors)}; median "
            f"{np.median(joined):.4f}; without the hundredth with the largest errors, {joined[-most]:.2g} to {joined[-1]:.2g}: {joined[:-most].mean():.4f}); "
            f"far {setting[0]}, electrons {setting[1]}{power}, noise {noise:.0e}, -2 log likelihood of {SIZE} {value:.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--work", type=Path, default=Path("grams"))
    parser.add_argument("--sets", nargs="+", choices=["qm7", "qm9"], default=["qm7", "qm9"])
    options = parser.parse_args()
    options.work.mkdir(exist_ok=True)
    for name in options.sets:
        data = (
            load_qm7(options.folder / "qm7.npz") if name == "qm7" else load_qm9(options.folder / "qm9_random8000.npz")
        )
        folds = data.folds if name == "qm7" else np.array_split(np.random.default_rng(1).permutation(len(data)), 5)
        near, far = matrices(name, data, options.work)
        electrons = [electrons_of(molecule) for molecule in data]
        for label in ("energy",) if name == "qm7" else ("energy", "polarizability", "gap"):
            measure(name, label, data.labels(label), folds, Form(near, far, electrons, label == "gap"))


if __name__ == "__main__":
    main()
