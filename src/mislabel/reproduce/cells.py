"""The cells of table 1, and the one file that keeps their results: ``cells.csv``, a line per cell.

A line is added, and waited for, as soon as its cell is known. A line that a killed run left unfinished counts as absent.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from mislabel._common.atomic_files import append_line
from mislabel.errors import ResultsError, unknown_name
from mislabel.reproduce.molecule_sets import N_FOLDS, SETS
from mislabel.reproduce.results import made_by

RATES = (10, 30, 50, 70, 90)
LEVELS = (10, 50, 100, 200)
MODES = ("plain", "basic", "full")
#: The mode whose graph kernel, too, is chosen on noisy labels; its rates and levels.
NOISY_KERNEL = "noisy-kernel"
NOISY_KERNEL_ROWS = ((10, 10), (30, 50), (50, 100), (70, 200))

#: Scores by which wrong labels are ranked, and what is said of each ranking.
SCORES = ("noise_variance", "priced_noise_variance", "loo_error", "z", "odds")
QUALITIES = ("auroc", "average_precision", "precision_at_70", "precision_at_95")


@dataclass(frozen=True, order=True)
class Cell:
    """One number of the table, before averaging over folds. Rate and level are in percent; zero for clean labels."""

    fold: int
    set: str
    rate: int
    level: int
    mode: str

    def __str__(self) -> str:
        """In words, for progress and errors."""
        return f"{self.set} {self.rate}/{self.level} fold {self.fold} {self.mode}"

    @property
    def seed(self) -> int:
        """Seed of the planted errors: the same for all folds and modes of a row."""
        return 1000 * self.rate + self.level


#: What is known of a cell: the columns of its line, empty ones left out.
Result = dict[str, Any]
Results = dict[Cell, Result]

IDENTITY = tuple(field.name for field in fields(Cell))
#: What results were made from; lines of older versions do not say.
MADE_FROM = ("limit", "data", "kernels", "version")
COLUMNS = (
    *IDENTITY,
    "seed",
    "molecules",
    *MADE_FROM,
    "made_by",
    "mae",
    "nugget",
    "noise_over_mean_diagonal",
    "r2",
    "false_discovery_rate",
    "recall",
    *(f"{score}_{quality}" for score in SCORES for quality in QUALITIES),
    "base_noise_variance",
    "amplitude",
    "residual",
    "n_factorizations",
    "seconds",
    "chosen_kernel",
    "densities",
)
#: Columns that are text as it is; all others are JSON, so that numbers keep their last digit.
_TEXT = ("set", "mode", "data", "made_by")
FILE = "cells.csv"


def cells_of(
    sets: Sequence[str] = tuple(SETS),
    rates: Sequence[int] = RATES,
    levels: Sequence[int] = LEVELS,
    folds: Sequence[int] = tuple(range(N_FOLDS)),
) -> list[Cell]:
    """All cells of a table, in the order in which they are computed; pristine labels are fitted with uniform noise."""
    cells: list[Cell] = []
    for fold in folds:
        for name in sets:
            cells.extend(Cell(fold, name, 0, 0, mode) for mode in MODES if mode != "full")
            cells.extend(Cell(fold, name, rate, level, mode) for mode in MODES for rate in rates for level in levels)
    return cells


def noisy_kernel_cells(sets: Sequence[str] = tuple(SETS), folds: Sequence[int] = (0,)) -> list[Cell]:
    """The cells whose graph kernel is chosen on noisy labels."""
    return [Cell(fold, name, *row, NOISY_KERNEL) for fold in folds for name in sets for row in NOISY_KERNEL_ROWS]


def check_choices(**chosen: Sequence[int | str]) -> None:
    """Refuse sets, rates, levels and folds that the table does not have."""
    known = {"sets": tuple(SETS), "rates": RATES, "levels": LEVELS, "folds": tuple(range(N_FOLDS))}
    for name, values in chosen.items():
        for value in values:
            if value not in known[name]:
                raise unknown_name(name[:-1], str(value), [str(item) for item in known[name]])


def read_cells(out: Path) -> Results:
    """All results in a folder; of several for one cell, the last."""
    single = next(out.glob("*/*/fold*-*.json"), None)
    if single is not None:
        raise ResultsError(
            f"{out} holds results of an older version, one file per cell ({single.relative_to(out)}); they are now lines of "
            f"one table, {FILE}. Nothing was changed; choose another folder with --out, or delete the old results."
        )
    path = out / FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    # What comes after the last end of a line is what a killed run left unfinished.
    header, *lines = content[: content.rfind(b"\n") + 1].decode(errors="replace").split("\n")
    if header and tuple(header.rstrip("\r").split(",")) != COLUMNS:
        raise ResultsError(
            f"{path} has other columns than those that this version writes. Nothing was changed; choose another folder with "
            "--out, or delete the old results."
        )
    results = {}
    for number, line in enumerate(lines[:-1], start=2):
        try:
            result = _parsed(line)
            results[Cell(*(result[name] for name in IDENTITY))] = result
        except (ValueError, KeyError, TypeError, csv.Error):
            raise ResultsError(
                f"{path} is damaged, line {number} is no result: delete the line to have it computed again."
            ) from None
    return results


def add_cell(out: Path, cell: Cell, result: Mapping[str, Any]) -> None:
    """Add a result to those in a folder, and wait until it is on the disk."""
    out.mkdir(parents=True, exist_ok=True)
    known = {**result, **dict(zip(IDENTITY, astuple(cell), strict=True)), "made_by": made_by()}
    written = [known.pop(name, None) for name in COLUMNS]
    if known:
        raise KeyError(f"no columns for {', '.join(known)}")
    texts = [_text(name, value) for name, value in zip(COLUMNS, written, strict=True)]
    append_line(out / FILE, _line(texts), header=_line(COLUMNS))


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    return str(value) if name in _TEXT else json.dumps(value)


def _line(texts: Sequence[str]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerow(texts)
    return file.getvalue()


def _parsed(line: str) -> Result:
    """The columns of one line that are not empty."""
    pairs = zip(COLUMNS, next(csv.reader([line]), []), strict=True)
    return {name: text if name in _TEXT else json.loads(text) for name, text in pairs if text}


def check_made_from(out: Path, cell: Cell, stored: Result, wanted: Mapping[str, Any]) -> None:
    """Refuse a stored result that was made from something else than what is wanted."""
    for name, value in json.loads(json.dumps(wanted)).items():
        if name in MADE_FROM and "data" not in stored:
            continue  # a line of an older version, which says no more than the number of molecules
        if stored.get(name) != value:
            raise another_run(out, cell, f"{name} {stored.get(name)} instead of {value}")


def another_run(out: Path, cell: Cell, difference: str) -> ResultsError:
    """The error for a folder that holds results of something else."""
    return ResultsError(
        f"{out} holds results of another run: {cell} has {difference}. Nothing was changed; choose another folder with "
        "--out, or delete the old results."
    )
