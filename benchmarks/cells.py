"""Which cell is wrong: errors planted in random cells of real tables, the cells that are named, and the time it takes.

    python benchmarks/cells.py FOLDER PROCESSES > benchmarks/cells.txt
    python benchmarks/cells.py FOLDER time >> benchmarks/cells.txt

FOLDER holds the tables, of which each process takes one after the other. At most 300 rows of each, drawn with seed 0. Errors are planted in 3 % of the cells of all audited columns,
in equal parts: normal ones of one, two or three standard deviations of the column; ten times the value; two cells of a row that
changed places (two errors). What was in the tables before counts as right.
"""

from __future__ import annotations

import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from mislabel import audit
from mislabel.data.columns import columns_to_audit
from mislabel.data.plain_columns import PlainColumns
from mislabel.decisions import q_values

CHOSEN = ("diamonds", "Griliches", "credit_balance", "u_concrete", "u_power")
REPORTED = ("auto_mpg", "bikeshare", "college_outstate", "hitters_salary", "u_boston")
ROWS, SHARE, FDR = 300, 0.03, 0.05
NORMAL, TEN_TIMES, SWAPPED = 1, 2, 3


def planted(frame: pd.DataFrame, columns: list[str], seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The table with errors, and of which kind each cell's is; 0 for none."""
    rng = np.random.default_rng(seed)
    right = frame[columns].to_numpy(dtype=float)
    values, kind = right.copy(), np.zeros(right.shape, dtype=int)
    spread = np.nanstd(right, axis=0)
    while np.count_nonzero(kind) < SHARE * right.size:
        row, column, other = (int(rng.integers(size)) for size in (*right.shape, right.shape[1]))
        what = int(rng.integers(1, 4))
        here, there = right[row, column], right[row, other]
        if kind[row, column] or np.isnan(here):
            continue
        if what == NORMAL:
            values[row, column] += rng.normal() * spread[column] * rng.integers(1, 4)
        elif what == TEN_TIMES and here != 0.0:
            values[row, column] *= 10.0
        elif what == SWAPPED and not kind[row, other] and np.isfinite(there) and here != there:
            values[row, [column, other]] = there, here
            kind[row, other] = SWAPPED
        else:
            continue
        kind[row, column] = what
    return frame.assign(**{name: values[:, number] for number, name in enumerate(columns)}), kind


def table_at(folder: Path, name: str, rows: int = ROWS) -> pd.DataFrame:
    """Some rows of a table, the same every time."""
    frame = pd.read_csv(folder / "tables" / f"{name}.csv.gz")
    return frame.sample(rows, random_state=0).sort_index().reset_index(drop=True) if len(frame) > rows else frame


def audited(frame: pd.DataFrame) -> list[str]:
    """Columns of measured quantities."""
    return columns_to_audit(PlainColumns.of(frame).apply(frame)[0])[0]


def figures(suspect: np.ndarray, wrong: np.ndarray) -> str:
    """Suspects, the share of them that is right, and of those in rows with an error the share that names the wrong cell."""
    in_row = suspect & wrong.any(axis=1)[:, None]
    false = np.count_nonzero(suspect & ~wrong) / max(np.count_nonzero(suspect), 1)
    named = np.count_nonzero(suspect & wrong) / max(np.count_nonzero(in_row), 1)
    return f"{np.count_nonzero(suspect):8d} {false:6.3f} {named:6.3f}"


def judged(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Suspects of one run, those of the columns' own audits, kinds of errors, pairs that were and that may be right, seconds."""
    warnings.simplefilter("ignore")
    frame = table_at(folder, name)
    columns = audited(frame)
    wrong, kind = planted(frame, columns, seed=1)
    start = time.process_time()
    found = audit(wrong, label="all", fdr=FDR, verbose=0)
    seconds = time.process_time() - start
    cells = found.cells
    at = cells["row"].to_numpy(), np.array([columns.index(column) for column in cells["column"]])
    suspect, alone = np.zeros(kind.shape, dtype=bool), np.zeros(kind.shape, dtype=bool)
    suspect[at] = cells["suspect"]
    partner = np.full(kind.shape, -1)
    partner[at] = [columns.index(other) if other else -1 for other in cells["swapped_with"]]
    for number, column in enumerate(columns):
        # As in its own table of suspects, which takes detection limits and more besides.
        alone[:, number] = q_values(found._audits.fits[column][1].model._calibrated_evidence) <= FDR
    pairs = np.stack([(partner >= 0) & (kind == SWAPPED), partner >= 0])
    return suspect, alone, kind, pairs, seconds


def report(names: tuple[str, ...], found: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]]) -> None:
    """One line per table, and one for all of them."""
    print(
        "                                 |              cells        found of               "
        "right pairs | each column by itself\n"
        "table             n  cols planted | suspects  false  named normal  x10  swapped  "
        "of swaps    | suspects  false  named  CPU s"
    )
    for name, part in zip(names, found, strict=True):
        _line(name, *part[2].shape, *part)
    wide = max(part[2].shape[1] for part in found)
    suspect, alone, kind = (
        np.concatenate([np.pad(part[k], ((0, 0), (0, wide - part[k].shape[1]))) for part in found]) for k in range(3)
    )
    pairs = np.concatenate([part[3].reshape(2, -1) for part in found], axis=1)
    _line(
        "together",
        len(suspect),
        sum(part[2].shape[1] for part in found),
        suspect,
        alone,
        kind,
        pairs,
        sum(p[4] for p in found),
    )


def _line(
    name: str,
    rows: int,
    columns: int,
    suspect: np.ndarray,
    alone: np.ndarray,
    kind: np.ndarray,
    pairs: np.ndarray,
    seconds: float,
) -> None:
    found = [suspect[kind == what].mean() for what in (NORMAL, TEN_TIMES, SWAPPED)]
    print(
        f"{name:16s} {rows:4d} {columns:4d} {np.count_nonzero(kind):7d} | {figures(suspect, kind > 0)} "
        f"{found[0]:6.2f} {found[1]:5.2f} {found[2]:7.2f} {np.count_nonzero(pairs[0]):5d} of {np.count_nonzero(pairs[1]):4d} | "
        f"{figures(alone, kind > 0)} {seconds:6.1f}",
        flush=True,
    )


def times(folder: Path) -> None:
    """One run over ten columns of 800 rows, against ten audits of one column each."""
    frame = table_at(folder, "u_wine_red", 800)
    columns = audited(frame)[:10]
    frame, _ = planted(frame[columns], columns, seed=1)
    start = time.process_time()
    audit(frame, label="all", verbose=0).cells  # noqa: B018
    together = time.process_time() - start
    start = time.process_time()
    for name in columns:
        audit(frame, label=name, verbose=0)
    print(
        f"{len(columns)} columns of {len(frame)} rows: one run {together:.0f} s, "
        f"{len(columns)} audits {time.process_time() - start:.0f} s of processor time"
    )


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    warnings.simplefilter("ignore")
    if what == "time":
        times(folder)
        return
    names = (*CHOSEN, *REPORTED)
    with ProcessPoolExecutor(int(what)) as pool:
        found = list(pool.map(partial(judged, folder), names))
    print(
        f"Errors in {100 * SHARE:g} % of the cells; suspects at a nominal false discovery rate of {FDR:g} over all cells.\n"
    )
    print("Tables on which settings were chosen")
    report(CHOSEN, found[: len(CHOSEN)])
    print("\nOther tables")
    report(REPORTED, found[len(CHOSEN) :])


if __name__ == "__main__":
    main()
