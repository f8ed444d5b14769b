"""The column that tells most about the labels: what a suspect is drawn against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from mislabel._common.spreading import evenly_spread
from mislabel.data.plain_columns import PlainColumns
from mislabel.decisions import grouped
from mislabel.report.findings import Findings

#: Trusted rows that are looked at, and of these how many are drawn.
MOST_ROWS = 2000
MOST_DRAWN = 500
#: A column that tells less than this share of how labels rank tells nothing.
LEAST_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class TellingColumn:
    """One column, with its values in some rows.

    kind : "number", "date" or "category". names : of categories, whose values are places among them; else None.
    share : of the variance of the labels' ranks that groups of its values account for, less what as many groups of nothing would.
    shown : values of the rows asked for, NaN where missing. others, labels : values and labels of some trusted rows.
    """

    column: str
    kind: str
    names: list[str] | None
    share: float
    shown: NDArray[np.float64]
    others: NDArray[np.float64]
    labels: NDArray[np.float64]


def telling_column(audit: Findings, columns: Sequence[str], shown: NDArray[np.intp]) -> TellingColumn | None:
    """The column whose values account for most of the labels of trusted rows; None where none accounts for any."""
    trusted = np.sort(audit.positions[(~audit.table["suspect"] & audit.table["label"].notna()).to_numpy()])
    some = trusted[evenly_spread(trusted.size, MOST_ROWS)]
    if not columns or some.size < 2:
        return None
    labels = audit.table["label"].to_numpy(dtype=float)[audit.ranks[some]]
    rows = audit.frame_rows(np.concatenate([some, shown]), columns).reset_index(drop=True)
    plain, _ = PlainColumns.of(rows).apply(rows)
    ranks, best = rankdata(labels), None
    for name in plain.columns:
        kind, codes, names = grouped(plain[name])
        share = explained(ranks, codes[: some.size])
        if share > (LEAST_SHARE if best is None else best[0]):
            best = share, str(name), kind, codes, names
    if best is None:
        return None
    share, column, kind, codes, names = best
    values = codes.astype(float) if kind == "category" else _numbers(plain[column])
    values[codes < 0] = np.nan
    drawn = evenly_spread(some.size, MOST_DRAWN)
    return TellingColumn(
        column,
        kind,
        names if kind == "category" else None,
        share,
        values[some.size :],
        values[: some.size][drawn],
        labels[drawn],
    )


def explained(values: NDArray[np.float64], codes: NDArray[np.intp]) -> float:
    """Share of the variance of values that groups account for (adjusted for their number), rows without a group for none."""
    known = codes >= 0
    size, groups = np.count_nonzero(known), np.unique(codes[known]).size
    if groups < 2 or size <= groups:
        return 0.0
    inside = values[known]
    total = float(np.sum((inside - inside.mean()) ** 2))
    if total == 0.0:
        return 0.0
    counts = np.bincount(codes[known])
    sums = np.bincount(codes[known], weights=inside - inside.mean())
    between = float(np.sum(sums[counts > 0] ** 2 / counts[counts > 0]))
    adjusted = 1.0 - (total - between) / (size - groups) / (total / (size - 1))
    return max(adjusted, 0.0) * size / values.size


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    """Numbers as they are, times as seconds."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return np.where(column.isna(), np.nan, column.dt.as_unit("s").astype("int64").to_numpy().astype(float))
    return column.to_numpy(dtype=float, na_value=np.nan).copy()
