"""Table 1 with the graph kernel, too, chosen on noisy labels: what someone without clean ones can do.

Four rows of each data set. A sample of the fold's training molecules, with their noisy labels, chooses among a few graph
kernels by the leave-one-out density of the full model, the criterion by which the package compares models everywhere. The
full model is then fitted to all training molecules with the kernel chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mislabel.progress import ProgressReporter
from mislabel.reproduce.molecule_sets import (
    CANDIDATES,
    KERNELS,
    SETS,
    MoleculeSet,
    Setting,
    is_intensive,
)
from mislabel.reproduce.results import another_run, disagreement, read_result, write_result
from mislabel.reproduce.table1 import Cell, FoldRun, Run, fit_full, noisy_labels

MODE = "noisy-kernel"
#: Rate and level of the rows that are done in this way too.
ROWS = ((10, 10), (30, 50), (50, 100), (70, 200))
#: Molecules that choose.
CHOOSERS = 1000


def noisy_kernel_cells(sets: Sequence[str] = tuple(SETS), folds: Sequence[int] = (0,)) -> list[Cell]:
    """The cells of this variant."""
    return [Cell(fold, name, rate, level, MODE) for fold in folds for name in sets for rate, level in ROWS]


def run_noisy_kernel(
    data: Path | None, work: Path, out: Path, cells: Sequence[Cell], limit: int | None = None, verbose: int = 0
) -> int:
    """Compute the cells that are not there yet; returns how many that were."""
    with ProgressReporter(verbose) as progress:
        run = Run(data, limit, cells, {name: [CHOOSERS, *settings] for name, settings in CANDIDATES.items()})
        missing = run.missing(out, cells)
        for done, cell in enumerate(missing, start=1):
            molecules = run.molecules[SETS[cell.set][0]]
            densities = densities_of(molecules, cell, work)
            chosen = max(densities, key=lambda setting: densities[setting])
            result = _known(run, cell, out) if chosen == KERNELS[molecules.name] else None
            if result is None:
                result = _fitted(molecules, cell, chosen, work)
            told = {" ".join(f"{number:g}" for number in setting): value for setting, value in densities.items()}
            write_result(cell.path(out), {**run.described(cell), "kernel": chosen, "densities": told, **result})
            progress(f"{done} of {len(missing)} cells: {cell.set} {cell.rate}/{cell.level}", done / len(missing))
    return len(missing)


def densities_of(molecules: MoleculeSet, cell: Cell, work: Path, count: int = CHOOSERS) -> dict[Setting, float]:
    """Mean leave-one-out log density of a sample's noisy labels under every candidate."""
    label = SETS[cell.set][1]
    intensive = is_intensive(label)
    labels = noisy_labels(cell, molecules.labels[label])[0][molecules.sample(cell.fold, count)]
    every = np.arange(labels.size)
    densities = {}
    for setting in CANDIDATES[molecules.name]:
        sampled = molecules.sampled(cell.fold, count, work, setting)
        model = fit_full(sampled.block(every, every, intensive), labels, intensive)
        densities[setting] = float(model.calibration_.log_density)
    return densities


def _known(run: Run, cell: Cell, out: Path) -> dict[str, Any] | None:
    """The fit with the usual kernel, where the table has it already."""
    usual = replace(cell, mode="full")
    path = usual.path(out)
    known = read_result(path)
    if known is None:
        return None
    described = run.described(usual)
    described["made_from"]["kernels"] = KERNELS[SETS[cell.set][0]]
    if (difference := disagreement(known, described)) is not None:
        raise another_run(out, path, difference)
    return {name: value for name, value in known.items() if name not in (*described, "made_by")}


def _fitted(molecules: MoleculeSet, cell: Cell, setting: Setting, work: Path) -> dict[str, Any]:
    """The full model with this kernel."""
    run = FoldRun(molecules.collection(work, setting), cell.fold, is_intensive(SETS[cell.set][1]))
    return next(result for _, result in run.full([cell]))
