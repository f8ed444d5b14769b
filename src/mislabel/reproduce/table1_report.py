"""Table 1, ours beside theirs: averages over folds, wins and losses."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np

from mislabel.reproduce.cells import LEVELS, MODES, RATES, Cell, Result, Results, noisy_kernel_cells
from mislabel.reproduce.molecule_sets import N_FOLDS, SETS
from mislabel.reproduce.results import write_text

#: Decimals to which the paper prints its numbers: ours are rounded likewise before they are compared.
AUC_DECIMALS, MAE_DECIMALS = 3, 2
TITLES = {
    "qm7-energy": "QM7, atomization energy (kcal/mol)",
    "qm9-energy": "QM9, 8,000 molecules, atomization energy (kcal/mol)",
    "qm9-polarizability": "QM9, 8,000 molecules, polarizability (bohr^3)",
    "qm9-gap": "QM9, 8,000 molecules, gap (eV)",
}


@dataclass(frozen=True)
class Row:
    """One row: means over the folds that are there. ``paper`` has the paper's numbers by the same names."""

    set: str
    rate: int
    level: int
    folds: int
    ours: dict[str, float]
    paper: dict[str, float]

    def wins_auc(self, score: str) -> bool:
        """Whether the wrong labels are told at least as well as in the paper."""
        return round(self.ours[f"auc_{score}"], AUC_DECIMALS) >= self.paper["auc"]

    @property
    def wins_mae(self) -> bool:
        """Whether the full model predicts at least as well as in the paper."""
        return round(self.ours["full"], MAE_DECIMALS) <= self.paper["full"]


def paper_rows() -> dict[tuple[str, int, int], dict[str, float]]:
    """The paper's table, by set, rate and level."""
    with (files("mislabel.reproduce") / "paper_table1.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        (row["set"], int(row["rate"]), int(row["level"])): {
            name: float(value) for name, value in row.items() if name not in ("set", "rate", "level")
        }
        for row in rows
    }


def collect(results: Results) -> list[Row]:
    """All rows of which at least one fold is complete."""
    paper = paper_rows()
    rows = []
    for name in SETS:
        pristine = [Cell(fold, name, 0, 0, "basic") for fold in range(N_FOLDS)]
        clean = [results[cell]["mae"] for cell in pristine if cell in results]
        for rate, level in product(RATES, LEVELS):
            folds = [[Cell(fold, name, rate, level, mode) for mode in MODES] for fold in range(N_FOLDS)]
            complete = [[results[cell] for cell in cells] for cells in folds if all(cell in results for cell in cells)]
            if complete:
                ours = _means(complete)
                ours["pristine"] = float(np.mean(clean)) if clean else float("nan")
                rows.append(Row(name, rate, level, len(complete), ours, paper[name, rate, level]))
    return rows


def _means(folds: list[list[Result]]) -> dict[str, float]:
    """Means over folds, each of which has a result per mode."""
    means = {mode: [fold[k]["mae"] for fold in folds] for k, mode in enumerate(MODES)}
    full = [fold[-1] for fold in folds]
    for key in ("r2", "false_discovery_rate", "recall", "seconds"):
        means[key] = [part[key] for part in full]
    for score in ("noise_variance", "z", "loo_error"):
        means[f"auc_{score}"] = [part[f"{score}_auroc"] for part in full]
        for recall in (70, 95):
            means[f"precision_at_{recall}_{score}"] = [part[f"{score}_precision_at_{recall}"] for part in full]
    return {name: float(np.mean(values)) for name, values in means.items()}


def write_table(out: Path, rows: list[Row], results: Results) -> Path:
    """The table as Markdown and as CSV; returns the path of the first."""
    target = out / "table1.md"
    write_text(target, "\n".join(_markdown(rows) + _noisy_kernel(results)) + "\n")
    names, theirs = (list(rows[0].ours), list(rows[0].paper)) if rows else ([], [])
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(["set", "rate", "level", "folds", *names, *(f"paper_{name}" for name in theirs)])
    for row in rows:
        ours = [f"{row.ours[name]:.5g}" for name in names]
        writer.writerow([row.set, row.rate, row.level, row.folds, *ours, *row.paper.values()])
    write_text(out / "table1.csv", file.getvalue())
    return target


def tally(rows: list[Row]) -> dict[str, int]:
    """Rows, and how many of them are at least as good as the paper's."""
    return {
        "rows": len(rows),
        "auc by noise variance": sum(row.wins_auc("noise_variance") for row in rows),
        "auc by z": sum(row.wins_auc("z") for row in rows),
        "MAE of full": sum(row.wins_mae for row in rows),
    }


def _markdown(rows: list[Row]) -> list[str]:
    counts = tally(rows)
    lines = [
        "# Table 1, ours beside the paper's",
        "",
        f"{counts['rows']} rows. At least as good as the paper, to the digits it prints: AUC by noise variance "
        f"{counts['auc by noise variance']}, AUC by z {counts['auc by z']}, MAE of the full model {counts['MAE of full']}.",
        "Each entry is ours / theirs; losses are in bold.",
    ]
    for name, title in TITLES.items():
        part = [row for row in rows if row.set == name]
        if not part:
            continue
        lines += [
            "",
            f"## {title}",
            "",
            f"Clean labels: {part[0].ours['pristine']:.2f} / {part[0].paper['pristine']:.2f}.",
            "",
            "| rate | level | folds | R2 | AUC, noise variance | AUC, z | precision at 70 % | at 95 % | plain | basic | full |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_line(row) for row in part]
    return lines


def _noisy_kernel(results: Results) -> list[str]:
    """Fits whose graph kernel was chosen on noisy labels, beside those of the same fold with the usual one."""
    paper, lines = paper_rows(), []
    for cell in noisy_kernel_cells(folds=range(N_FOLDS)):
        found, usual = results.get(cell), results.get(replace(cell, mode="full"))
        if found is None or usual is None:
            continue
        pairs = [(part["noise_variance_auroc"], part["z_auroc"], part["mae"]) for part in (found, usual)]
        theirs = paper[cell.set, cell.rate, cell.level]
        kernel = ", ".join(f"{number:g}" for number in found["chosen_kernel"])
        (variance, z, error), (usual_variance, usual_z, usual_error) = pairs
        lines.append(
            f"| {cell.set} | {cell.rate} % | {cell.level} % | {cell.fold} | {kernel} | {variance:.3f} / {usual_variance:.3f} / "
            f"{theirs['auc']:.3f} | {z:.3f} / {usual_z:.3f} | {error:.2f} / {usual_error:.2f} / {theirs['full']:.2f} |"
        )
    if not lines:
        return []
    return [
        "",
        "## Graph kernel chosen on noisy labels",
        "",
        "Each entry is: kernel chosen on noisy labels / kernel of the table / paper. Kernels: stopping probability, element "
        "prior, edge length scale and, where there are two walks, the weight of the far one.",
        "",
        "| set | rate | level | fold | kernel chosen | AUC, noise variance | AUC, z | full |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *lines,
    ]


def _line(row: Row) -> str:
    ours, paper = row.ours, row.paper

    def pair(name: str, theirs: str, decimals: int, loses: bool = False) -> str:
        text = f"{ours[name]:.{decimals}f} / {paper[theirs]:.{decimals}f}"
        return f"**{text}**" if loses else text

    cells = [
        f"{row.rate} %",
        f"{row.level} %",
        str(row.folds),
        pair("r2", "r2", 2),
        pair("auc_noise_variance", "auc", 3, not row.wins_auc("noise_variance")),
        pair("auc_z", "auc", 3, not row.wins_auc("z")),
        pair("precision_at_70_z", "precision_at_70", 3),
        pair("precision_at_95_z", "precision_at_95", 3),
        pair("plain", "plain", 2),
        pair("basic", "basic", 2),
        pair("full", "full", 2, not row.wins_mae),
    ]
    return f"| {' | '.join(cells)} |"
