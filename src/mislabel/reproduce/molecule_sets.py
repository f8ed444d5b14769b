"""The molecules of table 1: labels, similarities and folds of its four data sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mislabel.data import load_qm7, load_qm9
from mislabel.errors import MoleculeFileError
from mislabel.kernels import FarWalk, MolecularKernel, gram_matrix
from mislabel.kernels.fingerprints import digest_of

N_FOLDS = 5
#: Seeds of the folds (QM7 has official ones), of the smaller sets for trying things out, and of samples of training molecules.
FOLD_SEED, LIMIT_SEED, SAMPLE_SEED = 1, 2, 3
#: Power of the normalised similarity for gaps, which do not grow with the molecule.
GAP_EXPONENT = 8.0

#: Files looked for in the data folder, by collection.
FILES = {"qm7": ("qm7.npz", "qm7.mat"), "qm9": ("qm9_random8000.npz",)}
#: Hyperparameters of a graph kernel: stopping probability, element prior, edge length scale; a fourth number is the weight
#: of a far walk.
Setting = tuple[float, ...]
#: The graph kernels: those of best marginal likelihood for the clean energies of 1,000 molecules (seed 0), on a grid; the
#: far walk's weight is the best beside the near walk.
#: Amplitude, base noise and noise variances are learned from noisy labels.
KERNELS: dict[str, Setting] = {"qm7": (0.05, 0.5, 0.07, 0.1), "qm9": (0.05, 0.5, 0.1)}
#: The graph kernels that noisy labels choose from.
CANDIDATES: dict[str, tuple[Setting, ...]] = {
    name: tuple((stop, prior, length, *far) for prior in (0.5, 0.7) for length in (0.07, 0.1, 0.14))
    for name, (stop, _, _, *far) in KERNELS.items()
}
#: Data sets of the table: collection and property.
SETS = {
    "qm7-energy": ("qm7", "energy"),
    "qm9-energy": ("qm9", "energy"),
    "qm9-polarizability": ("qm9", "polarizability"),
    "qm9-gap": ("qm9", "gap"),
}


def kernel_of(collection: str, setting: Setting | None = None) -> MolecularKernel:
    """The graph kernel of a collection; in double precision, because clean energies need a very small nugget."""
    stop, prior, length, *far = setting or KERNELS[collection]
    return MolecularKernel(stop, prior, length, dtype="float64", far=FarWalk(weight=far[0]) if far else None)


@dataclass(eq=False)
class Collection:
    """Molecules with all their labels, and the similarities of all their pairs."""

    name: str
    labels: dict[str, np.ndarray]
    folds: list[np.ndarray]
    matrix: np.ndarray
    units: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of molecules."""
        return int(self.matrix.shape[0])

    def block(self, rows: np.ndarray, columns: np.ndarray, intensive: bool) -> np.ndarray:
        """Similarities of some molecules with others, in the form that suits the property."""
        part = np.array(self.matrix[np.ix_(rows, columns)], dtype=float, order="F")
        if intensive:
            roots = np.sqrt(self.matrix.diagonal())
            part /= roots[rows][:, None] * roots[columns]
            part **= GAP_EXPONENT
        return part

    def fold(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Training and test molecules of a fold."""
        test = np.sort(self.folds[number])
        return np.setdiff1d(np.arange(self.size), test), test


@dataclass(eq=False)
class MoleculeSet:
    """Molecules with all their labels, before any similarity is computed."""

    name: str
    molecules: list[Any]
    labels: dict[str, np.ndarray]
    folds: list[np.ndarray]
    units: dict[str, str]

    def collection(self, work: Path, setting: Setting | None = None, verbose: int = 0) -> Collection:
        """With the (resumable) matrix of all similarities, kept in the folder ``work``."""
        matrix = self._similarities(self.molecules, work / f"{self._file}.gram", setting, verbose)
        return Collection(self.name, self.labels, self.folds, matrix, self.units)

    def fingerprint(self, label: str) -> str:
        """A hash of everything that results for one label depend on: molecules, labels and folds."""
        molecules = [(item.numbers, item.positions) for item in self.molecules]
        return digest_of([molecules, self.labels[label], self.folds]).hex()[:16]

    def sample(self, fold: int, count: int) -> np.ndarray:
        """At most ``count`` of a fold's training molecules, drawn at random."""
        rest = np.setdiff1d(np.arange(len(self.molecules)), self.folds[fold])
        return np.sort(np.random.default_rng(SAMPLE_SEED).choice(rest, min(count, rest.size), replace=False))

    def sampled(self, fold: int, count: int, work: Path, setting: Setting) -> Collection:
        """The collection of only these, in one fold."""
        chosen = self.sample(fold, count)
        path = work / f"{self._file}-fold{fold}-{chosen.size}.gram"
        matrix = self._similarities([self.molecules[k] for k in chosen], path, setting, 0)
        labels = {name: values[chosen] for name, values in self.labels.items()}
        return Collection(self.name, labels, [], matrix, self.units)

    @property
    def _file(self) -> str:
        return f"{self.name}-{len(self.molecules)}"

    def _similarities(self, molecules: list[Any], path: Path, setting: Setting | None, verbose: int) -> np.ndarray:
        if setting is not None and setting != KERNELS[self.name]:
            path = path.with_name("-".join([path.stem, *(f"{number:g}" for number in setting)]) + path.suffix)
        return gram_matrix(kernel_of(self.name, setting), molecules, path=path, verbose=verbose)


def load_molecules(name: str, data: Path | None, limit: int | None = None) -> MoleculeSet:
    """Molecules, labels and folds."""
    loaded = _load(name, data)
    chosen = np.arange(len(loaded))
    if limit is not None and limit < chosen.size:
        chosen = np.sort(np.random.default_rng(LIMIT_SEED).choice(chosen.size, limit, replace=False))
    if loaded.folds is not None and chosen.size == len(loaded):
        folds = list(loaded.folds)
    else:
        folds = np.array_split(np.random.default_rng(FOLD_SEED).permutation(chosen.size), N_FOLDS)
    labels = {item: loaded.labels(item)[chosen] for collection, item in SETS.values() if collection == name}
    return MoleculeSet(name, [loaded[k] for k in chosen], labels, folds, loaded.units)


def load_collection(name: str, data: Path | None, work: Path, limit: int | None = None, verbose: int = 0) -> Collection:
    """Molecules, labels and the matrix of all similarities."""
    return load_molecules(name, data, limit).collection(work, verbose=verbose)


def _load(name: str, data: Path | None) -> Any:
    loaders: dict[str, Callable[..., Any]] = {"qm7": load_qm7, "qm9": load_qm9}
    if data is None:
        return loaders[name]()
    for file in FILES[name]:
        if (data / file).exists():
            return loaders[name](data / file)
    raise MoleculeFileError(f"{data} contains none of the files of {name.upper()}: {', '.join(FILES[name])}.")


def is_intensive(label: str) -> bool:
    """Whether a property does not grow with the molecule."""
    return label == "gap"


def collections_of(sets: Sequence[str]) -> list[str]:
    """Collections that these data sets need, each once."""
    return list(dict.fromkeys(SETS[name][0] for name in sets))
