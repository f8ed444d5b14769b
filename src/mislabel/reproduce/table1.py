"""Table 1: wrong labels planted among molecular energies, polarizabilities and gaps, found again, and learned in spite of.

Each cell of the table is kept as soon as it is known: the run can be stopped at any moment and goes on where it was. Folds
come first, so that an unfinished table has all its rows.

Four rows of each data set are also done with the graph kernel, too, chosen on noisy labels: what someone without clean ones
can do. A sample of the fold's training molecules, with their noisy labels, chooses among a few graph kernels by the
leave-one-out density of the full model, the criterion by which the package compares models everywhere. The full model is then
fitted to all training molecules with the kernel chosen.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize_scalar

from mislabel import LabelNoiseRegressor
from mislabel._common.progress import ProgressReporter
from mislabel.data import corrupt_labels
from mislabel.errors import MislabelWarning
from mislabel.evaluation import detection_report
from mislabel.reproduce.cells import (
    MODES,
    QUALITIES,
    SCORES,
    Cell,
    Result,
    add_cell,
    another_run,
    check_made_from,
    read_cells,
)
from mislabel.reproduce.molecule_sets import (
    CANDIDATES,
    KERNELS,
    SETS,
    Collection,
    MoleculeSet,
    Setting,
    collections_of,
    is_intensive,
    load_molecules,
)

#: To be raised when a change to the package changes the numbers of the table: older results are then not added to.
NUMBERS_VERSION = 1

#: Nuggets over the mean diagonal that the plain mode tries, smallest first.
PLAIN_NUGGETS = (1e-8, 1e-7, 1e-6, 1e-5)
#: Range of the uniform noise over the mean diagonal.
BASIC_RANGE = (1e-9, 10.0)
AUDIT_FDR = 0.05
#: Residual at which the full mode stops: a percent of a label's predictive variance.
FULL_TOL = 1e-2
#: Molecules that choose a graph kernel.
CHOOSERS = 1000

#: Cells and what they hold.
Found = Iterator[tuple[Cell, Result]]


class Run:
    """Results to be made from molecules, a limit on their number, and graph kernels; and those that are there already.

    kernels : the graph kernels, or candidates, that the results of each collection depend on.
    """

    def __init__(
        self, data: Path | None, out: Path, cells: Sequence[Cell], limit: int | None, kernels: Mapping[str, Any]
    ) -> None:
        names = dict.fromkeys(cell.set for cell in cells)
        self.out, self.limit, self.kernels = out, limit, kernels
        self.stored = read_cells(out)
        self.molecules = {name: load_molecules(name, data, limit) for name in collections_of(list(names))}
        self._data = {name: self.molecules[SETS[name][0]].fingerprint(SETS[name][1]) for name in names}
        self._check_limit()
        for cell in cells:
            if cell in self.stored:
                check_made_from(out, cell, self.stored[cell], self.described(cell))
        self.missing = [cell for cell in cells if cell not in self.stored]

    def described(self, cell: Cell) -> Result:
        """What every result says about itself."""
        collection = SETS[cell.set][0]
        return {
            "seed": cell.seed,
            "molecules": len(self.molecules[collection].molecules),
            "limit": self.limit,
            "data": self._data[cell.set],
            "kernels": self.kernels[collection],
            "version": NUMBERS_VERSION,
        }

    def keep(self, found: Iterable[tuple[Cell, Result]], progress: ProgressReporter) -> int:
        """Keep results as they come; returns how many were missing."""
        for done, (cell, result) in enumerate(found, start=1):
            add_cell(self.out, cell, {**self.described(cell), **result})
            progress(f"{done} of {len(self.missing)} cells: {cell}", done / len(self.missing))
        return len(self.missing)

    def _check_limit(self) -> None:
        """One table has one limit, also in the rows that this run does not look at."""
        for cell, stored in self.stored.items():
            count = stored.get("molecules", 0)
            if "data" in stored and stored.get("limit") != self.limit:
                raise another_run(self.out, cell, f"limit {stored.get('limit')} instead of {self.limit}")
            if self.limit is not None and count > self.limit:
                raise another_run(self.out, cell, f"{count} molecules instead of at most {self.limit}")


def run_table1(
    data: Path | None, work: Path, out: Path, cells: Sequence[Cell], limit: int | None = None, verbose: int = 0
) -> int:
    """Compute the cells that are not there yet; returns how many that were."""
    with ProgressReporter(verbose) as progress:
        run = Run(data, out, cells, limit, KERNELS)
        collections = {
            name: run.molecules[name].collection(work, verbose=verbose)
            for name in collections_of([cell.set for cell in run.missing])
        }
        return run.keep(_results(run.missing, collections), progress)


def run_noisy_kernel(
    data: Path | None, work: Path, out: Path, cells: Sequence[Cell], limit: int | None = None, verbose: int = 0
) -> int:
    """Compute the cells, with graph kernels chosen on noisy labels, that are not there yet; returns how many that were."""
    with ProgressReporter(verbose) as progress:
        run = Run(data, out, cells, limit, {name: [CHOOSERS, *settings] for name, settings in CANDIDATES.items()})
        return run.keep(((cell, _with_chosen_kernel(run, cell, work)) for cell in run.missing), progress)


def _results(missing: list[Cell], collections: dict[str, Collection]) -> Found:
    """Fold by fold; data sets that share their similarities share the factorisations too."""
    for fold in sorted({cell.fold for cell in missing}):
        for name, collection in collections.items():
            for intensive in (False, True):
                wanted = [
                    cell
                    for cell in missing
                    if cell.fold == fold and SETS[cell.set][0] == name and is_intensive(SETS[cell.set][1]) == intensive
                ]
                if wanted:
                    yield from FoldRun(collection, fold, intensive).results(wanted)


def noisy_labels(cell: Cell, clean: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of all molecules with the errors of a row, the errors, and which labels are wrong."""
    if not cell.rate:
        return clean, np.zeros_like(clean), np.zeros(clean.size, dtype=bool)
    noisy = corrupt_labels(clean, cell.rate / 100, cell.level / 100, random_state=cell.seed)
    return noisy.labels, noisy.noise, noisy.mask


def center_of(labels: np.ndarray, intensive: bool) -> float:
    """What is subtracted from the labels: nothing from those that grow with the molecule."""
    return float(np.median(labels)) if intensive else 0.0


def fit_full(similarity: np.ndarray, labels: np.ndarray, intensive: bool) -> LabelNoiseRegressor:
    """The full model, with its defaults."""
    model = LabelNoiseRegressor(kernel="precomputed", center=center_of(labels, intensive), tol=FULL_TOL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MislabelWarning)
        return model.fit(similarity, labels)


class FoldRun:
    """All cells of one fold that share one matrix of similarities."""

    def __init__(self, collection: Collection, fold: int, intensive: bool) -> None:
        self.collection, self.intensive = collection, intensive
        self.train, self.test = collection.fold(fold)
        self.similarity = collection.block(self.train, self.train, intensive)
        self.cross = collection.block(self.test, self.train, intensive)
        self.mean_diagonal = float(np.mean(self.similarity.diagonal()))

    def results(self, cells: list[Cell]) -> Found:
        """Cells and what they hold: the cheap modes first, from one factorisation each, then the full ones."""
        makers = {"plain": self._plain, "basic": self._basic, "full": self.full}
        for mode in MODES:
            yield from makers[mode]([cell for cell in cells if cell.mode == mode])

    def _labels(self, cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return noisy_labels(cell, self.collection.labels[SETS[cell.set][1]])

    def _error(self, cell: Cell, predicted: np.ndarray) -> float:
        return float(np.mean(np.abs(predicted - self.collection.labels[SETS[cell.set][1]][self.test])))

    def _plain(self, cells: list[Cell]) -> Found:
        if not cells:
            return
        for nugget in PLAIN_NUGGETS:
            matrix = self.similarity.copy(order="F")
            matrix.ravel(order="K")[:: matrix.shape[0] + 1] += nugget * self.mean_diagonal
            try:
                factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                if nugget == PLAIN_NUGGETS[-1]:
                    raise
            else:
                break
        for cell in cells:
            labels = self._labels(cell)[0][self.train]
            center = center_of(labels, self.intensive)
            predicted = self.cross @ cho_solve(factor, labels - center, check_finite=False) + center
            yield cell, {"mae": self._error(cell, predicted), "nugget": nugget}

    def _basic(self, cells: list[Cell]) -> Found:
        if not cells:
            return
        values, vectors = eigh(self.similarity / self.mean_diagonal, driver="evd", overwrite_a=True, check_finite=False)
        values = np.maximum(values, 0.0)
        rotated = self.cross @ vectors / self.mean_diagonal
        for cell in cells:
            labels = self._labels(cell)[0][self.train]
            center = center_of(labels, self.intensive)
            projected = vectors.T @ (labels - center)
            noise = _best_uniform(values, projected**2)
            predicted = rotated @ (projected / (values + noise)) + center
            yield cell, {"mae": self._error(cell, predicted), "noise_over_mean_diagonal": noise}

    def full(self, cells: list[Cell]) -> Found:
        """The full model, one cell after the other."""
        for cell in cells:
            labels, noise, mask = (part[self.train] for part in self._labels(cell))
            start = time.perf_counter()
            model = fit_full(self.similarity, labels, self.intensive)
            table = model.audit(fdr=AUDIT_FDR, by_position=True)
            seconds = time.perf_counter() - start
            yield (
                cell,
                {
                    "mae": self._error(cell, model.predict(self.cross)),
                    **detection(model, table.sort_values("row"), noise, mask),
                    "base_noise_variance": model.base_noise_variance_,
                    "amplitude": float(model.kernel_.amplitude),
                    "residual": model.residual_,
                    "n_factorizations": model.n_factorizations_,
                    "seconds": round(seconds, 1),
                },
            )


def detection(model: LabelNoiseRegressor, table: pd.DataFrame, noise: np.ndarray, mask: np.ndarray) -> Result:
    """How well the planted errors were found, by each score; ``table`` is the model's audit in the order of the labels.

    ``noise_variance`` is the paper's score: the variance that maximum likelihood gives each label, all others being as
    they are. (The fitted variances themselves are zero for every label that does not pay the price of one.)
    """
    scores: dict[str, np.ndarray] = {
        "noise_variance": np.maximum(model.loo_error_**2 - model.loo_variance_, 0.0),
        "priced_noise_variance": model.noise_variance_,
        "loo_error": np.abs(model.loo_error_),
        "z": np.abs(model.z_),
        "odds": table["score"].to_numpy(),
    }
    found: Result = {}
    for name in SCORES:
        report = detection_report(
            mask, scores[name], noise=noise, inferred_noise=model.label_noise_, suspect=table["suspect"]
        )
        found |= {f"{name}_{quality}": round(report[quality], 5) for quality in QUALITIES}
    return {"r2": report.r2, "false_discovery_rate": report.false_discovery_rate, "recall": report.recall, **found}


def _best_uniform(values: np.ndarray, squares: np.ndarray) -> float:
    """Noise over mean diagonal of best marginal likelihood, the amplitude being the best for each."""

    def objective(log_noise: float) -> float:
        total = values + np.exp(log_noise)
        return float(squares.size * np.log(np.mean(squares / total)) + np.log(total).sum())

    bounds = np.log(BASIC_RANGE)
    grid = np.linspace(bounds[0], bounds[1], 48)
    start = grid[np.argmin([objective(point) for point in grid])]
    step = grid[1] - grid[0]
    near = (max(bounds[0], start - step), min(bounds[1], start + step))
    return float(np.exp(minimize_scalar(objective, bounds=near, method="bounded").x))


def _with_chosen_kernel(run: Run, cell: Cell, work: Path) -> Result:
    """The full model with the graph kernel of best density."""
    molecules = run.molecules[SETS[cell.set][0]]
    densities = densities_of(molecules, cell, work)
    chosen = max(densities, key=lambda setting: densities[setting])
    result = _known(run, cell) if chosen == KERNELS[molecules.name] else None
    if result is None:
        fold = FoldRun(molecules.collection(work, chosen), cell.fold, is_intensive(SETS[cell.set][1]))
        result = next(found for _, found in fold.full([cell]))
    named = {" ".join(f"{number:g}" for number in setting): value for setting, value in densities.items()}
    return {"chosen_kernel": chosen, "densities": named, **result}


def densities_of(molecules: MoleculeSet, cell: Cell, work: Path) -> dict[Setting, float]:
    """Mean leave-one-out log density of a sample's noisy labels under every candidate."""
    label = SETS[cell.set][1]
    intensive = is_intensive(label)
    labels = noisy_labels(cell, molecules.labels[label])[0][molecules.sample(cell.fold, CHOOSERS)]
    every = np.arange(labels.size)
    densities = {}
    for setting in CANDIDATES[molecules.name]:
        sampled = molecules.sampled(cell.fold, CHOOSERS, work, setting)
        model = fit_full(sampled.block(every, every, intensive), labels, intensive)
        densities[setting] = float(model.calibration_.log_density)
    return densities


def _known(run: Run, cell: Cell) -> Result | None:
    """The fit with the usual kernel, where the table has it already."""
    usual = replace(cell, mode="full")
    known = run.stored.get(usual)
    if known is None:
        return None
    described = {**run.described(usual), "kernels": KERNELS[SETS[cell.set][0]]}
    check_made_from(run.out, usual, known, described)
    return {name: value for name, value in known.items() if name not in described}
