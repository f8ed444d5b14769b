"""What was found of the cells of a table, in words."""

from __future__ import annotations

import pandas as pd

from mislabel.report.plain_words import count, number, percent, plain_text

#: Columns with the most suspects that are named.
_NAMED = 3


def cell_lines(cells: pd.DataFrame, fdr: float, decimal: str = ".") -> list[str]:
    """How many cells look wrong, the worst, in which columns they are, and how many changed places."""
    suspects = cells[cells["suspect"]]
    columns = cells["column"].nunique()
    verb = "looks" if len(suspects) == 1 else "look"
    lines = [
        f"{len(suspects):,} of {count(int(cells['value'].notna().sum()), 'cell')} in {count(columns, 'column')} {verb} wrong at "
        f"a false discovery rate of {percent(fdr)} over all of them."
    ]
    worst = cells.iloc[0]
    half = (worst["expected_high"] - worst["expected_low"]) / 2
    told = "The worst is" if len(suspects) else "The least expected is"
    lines.append(
        f"{told} row {plain_text(worst['row'])}, {plain_text(worst['column'])}: {number(worst['value'], decimal=decimal)}, "
        f"expected {number(worst['expected'], decimal=decimal)} ± {number(half, 2, decimal)}."
    )
    if len(suspects):
        most = suspects["column"].value_counts().head(_NAMED)
        lines.append("Most are in " + ", ".join(f"{plain_text(name)} ({size:,})" for name, size in most.items()) + ".")
    swapped = int((suspects["swapped_with"] != "").sum())
    if swapped:
        lines.append(f"{count(swapped, 'cell')} of these changed places with another of the same row.")
    return lines
