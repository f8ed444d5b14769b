"""Table 1: wrong labels planted among molecular energies, polarizabilities and gaps, found again, and learned in spite of.

One small file per data set, noise rate, noise level, fold and mode, written as soon as it is known: the run can be
stopped at any moment and goes on where it was. Folds come first, so that an unfinished table has all its rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize_scalar

from mislabel.data import corrupt_labels
from mislabel.decisions import score_labels
from mislabel.errors import MislabelWarning, unknown_name
from mislabel.estimators import LabelNoiseRegressor
from mislabel.evaluation import detection_report
from mislabel.progress import ProgressReporter
from mislabel.reproduce.molecule_sets import (
    KERNELS,
    N_FOLDS,
    SETS,
    Collection,
    collections_of,
    is_intensive,
    load_molecules,
)
from mislabel.reproduce.results import another_run, disagreement, read_result, write_result

#: To be raised when a change to the package changes the numbers of the table: older results are then not added to.
NUMBERS_VERSION = 1

RATES = (10, 30, 50, 70, 90)
LEVELS = (10, 50, 100, 200)
MODES = ("plain", "basic", "full")
#: Nuggets over the mean diagonal that the plain mode tries, smallest first.
PLAIN_NUGGETS = (1e-8, 1e-7, 1e-6, 1e-5)
#: Range of the uniform noise over the mean diagonal.
BASIC_RANGE = (1e-9, 10.0)
AUDIT_FDR = 0.05
#: Residual at which the full mode stops: a percent of a label's predictive variance.
FULL_TOL = 1e-2


@dataclass(frozen=True, order=True)
class Cell:
    """One number of the table, before averaging over folds. Rate and level are in percent; zero for clean labels."""

    fold: int
    set: str
    rate: int
    level: int
    mode: str

    def path(self, out: Path) -> Path:
        """Where its result is kept."""
        row = f"{self.rate}-{self.level}" if self.rate else "pristine"
        return out / self.set / row / f"fold{self.fold}-{self.mode}.json"

    @property
    def seed(self) -> int:
        """Seed of the planted errors: the same for all folds and modes of a row."""
        return 1000 * self.rate + self.level


def cells_of(
    sets: Sequence[str] = tuple(SETS),
    rates: Sequence[int] = RATES,
    levels: Sequence[int] = LEVELS,
    folds: Sequence[int] = tuple(range(N_FOLDS)),
    modes: Sequence[str] = MODES,
) -> list[Cell]:
    """All cells of a table, in the order in which they are computed; pristine labels are fitted with uniform noise."""
    cells = []
    for fold in folds:
        for name in sets:
            cells.extend(Cell(fold, name, 0, 0, mode) for mode in modes if mode != "full")
            cells.extend(Cell(fold, name, rate, level, mode) for mode in modes for rate in rates for level in levels)
    return cells


def check_choices(**chosen: Sequence[int | str]) -> None:
    """Refuse sets, rates, levels and folds that the table does not have."""
    known = {"sets": tuple(SETS), "rates": RATES, "levels": LEVELS, "folds": tuple(range(N_FOLDS))}
    for name, values in chosen.items():
        for value in values:
            if value not in known[name]:
                raise unknown_name(name[:-1], str(value), [str(item) for item in known[name]])


def run_table1(
    data: Path | None,
    work: Path,
    out: Path,
    cells: Sequence[Cell],
    limit: int | None = None,
    verbose: int = 0,
) -> int:
    """Compute the cells that are not there yet; returns how many that were."""
    with ProgressReporter(verbose) as progress:
        run = Run(data, limit, cells)
        missing = run.missing(out, cells)
        collections = {
            name: run.molecules[name].collection(work, verbose=verbose)
            for name in collections_of([cell.set for cell in missing])
        }
        for done, (cell, result) in enumerate(_results(missing, collections), start=1):
            write_result(cell.path(out), {**run.described(cell), **result})
            progress(
                f"{done} of {len(missing)} cells: {cell.set} {cell.rate}/{cell.level} fold {cell.fold} {cell.mode}",
                done / len(missing),
            )
    return len(missing)


class Run:
    """What the results of one run are made from: molecules, a limit on their number, and graph kernels.

    kernels : what else than the table's own kernel the results of each collection depend on.
    """

    def __init__(
        self, data: Path | None, limit: int | None, cells: Sequence[Cell], kernels: dict[str, Any] | None = None
    ) -> None:
        names = [cell.set for cell in cells]
        self.limit = limit
        self.kernels = KERNELS if kernels is None else kernels
        self.molecules = {name: load_molecules(name, data, limit) for name in collections_of(names)}
        self._data = {name: self.molecules[SETS[name][0]].fingerprint(SETS[name][1]) for name in dict.fromkeys(names)}

    def described(self, cell: Cell) -> dict[str, Any]:
        """What every result says about itself."""
        collection = SETS[cell.set][0]
        return {
            "set": cell.set,
            "rate": cell.rate,
            "level": cell.level,
            "fold": cell.fold,
            "mode": cell.mode,
            "seed": cell.seed,
            "molecules": len(self.molecules[collection].molecules),
            "made_from": {
                "limit": self.limit,
                "data": self._data[cell.set],
                "kernels": self.kernels[collection],
                "version": NUMBERS_VERSION,
            },
        }

    def missing(self, out: Path, cells: Sequence[Cell]) -> list[Cell]:
        """Cells without a result; a folder with results that were made from something else is refused."""
        self._check_limit(out)
        missing = []
        for cell in cells:
            stored = read_result(cell.path(out))
            if stored is None:
                missing.append(cell)
            elif (difference := disagreement(stored, self.described(cell))) is not None:
                raise another_run(out, cell.path(out), difference)
        return missing

    def _check_limit(self, out: Path) -> None:
        """One table has one limit, also in the rows that this run does not look at."""
        for path in sorted(out.glob("*/*/*.json")):
            stored = read_result(path) or {}
            limit, count = stored.get("made_from", {}).get("limit", self.limit), stored.get("molecules", 0)
            if limit != self.limit:
                raise another_run(out, path, f"limit {limit} instead of {self.limit}")
            if self.limit is not None and count > self.limit:
                raise another_run(out, path, f"{count} molecules instead of at most {self.limit}")


def _results(missing: list[Cell], collections: dict[str, Collection]) -> Iterator[tuple[Cell, dict[str, Any]]]:
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

    def results(self, cells: list[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Cells and what they hold: the cheap modes first, from one factorisation each, then the full ones."""
        makers = {"plain": self._plain, "basic": self._basic, "full": self.full}
        for mode in MODES:
            yield from makers[mode]([cell for cell in cells if cell.mode == mode])

    def _labels(self, cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return noisy_labels(cell, self.collection.labels[SETS[cell.set][1]])

    def _center(self, labels: np.ndarray) -> float:
        return center_of(labels, self.intensive)

    def _error(self, cell: Cell, predicted: np.ndarray) -> float:
        return float(np.mean(np.abs(predicted - self.collection.labels[SETS[cell.set][1]][self.test])))

    def _plain(self, cells: list[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
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
            center = self._center(labels)
            predicted = self.cross @ cho_solve(factor, labels - center, check_finite=False) + center
            yield cell, {"mae": self._error(cell, predicted), "nugget": nugget}

    def _basic(self, cells: list[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        if not cells:
            return
        values, vectors = eigh(self.similarity / self.mean_diagonal, driver="evd", overwrite_a=True, check_finite=False)
        values = np.maximum(values, 0.0)
        rotated = self.cross @ vectors / self.mean_diagonal
        for cell in cells:
            labels = self._labels(cell)[0][self.train]
            center = self._center(labels)
            projected = vectors.T @ (labels - center)
            noise = _best_uniform(values, projected**2)
            predicted = rotated @ (projected / (values + noise)) + center
            yield cell, {"mae": self._error(cell, predicted), "noise_over_mean_diagonal": noise}

    def full(self, cells: list[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
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
                    **detection(model, noise, mask, np.isin(np.arange(labels.size), table["row"][table["suspect"]])),
                    "base_noise_variance": model.base_noise_variance_,
                    "amplitude": float(model.kernel_.amplitude),
                    "residual": model.residual_,
                    "n_factorizations": model.n_factorizations_,
                    "seconds": round(seconds, 1),
                },
            )


def detection(model: LabelNoiseRegressor, noise: np.ndarray, mask: np.ndarray, suspect: np.ndarray) -> dict[str, Any]:
    """How well the planted errors were found, by each score.

    ``noise_variance`` is the paper's score: the variance that maximum likelihood gives each label, all others being as
    they are. (The fitted variances themselves are zero for every label that does not pay the price of one.)
    """
    scores = {
        "noise_variance": np.maximum(model.loo_error_**2 - model.loo_variance_, 0.0),
        "priced_noise_variance": model.noise_variance_,
        "loo_error": np.abs(model.loo_error_),
        "z": np.abs(model.z_),
        "odds": score_labels(model.calibrated_evidence_, "odds"),
    }
    found: dict[str, Any] = {}
    for name, score in scores.items():
        report = detection_report(mask, score, noise=noise, inferred_noise=model.label_noise_, suspect=suspect)
        found[name] = {
            key: round(getattr(report, key), 5)
            for key in ("auroc", "average_precision", "precision_at_70", "precision_at_95")
        }
    return {"r2": report.r2, "false_discovery_rate": report.false_discovery_rate, "recall": report.recall, **found}


def _best_uniform(values: np.ndarray, squares: np.ndarray) -> float:
    """Noise over mean diagonal of best marginal likelihood, the amplitude being the best for each."""

    def objective(log_noise: float) -> float:
        total = values + np.exp(log_noise)
        return squares.size * np.log(np.mean(squares / total)) + np.log(total).sum()

    bounds = np.log(BASIC_RANGE)
    grid = np.linspace(*bounds, 48)
    start = grid[np.argmin([objective(point) for point in grid])]
    step = grid[1] - grid[0]
    near = (max(bounds[0], start - step), min(bounds[1], start + step))
    return float(np.exp(minimize_scalar(objective, bounds=near, method="bounded").x))
