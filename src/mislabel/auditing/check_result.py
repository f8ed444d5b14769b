"""What a gate found among new rows: the table, sentences, and annotations for reviews of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.report.plain_words import count, number, percent, plain_text

_LONGEST_LINE = 2000
#: Suspects that are told one by one in words.
MOST_TOLD = 20


class CheckSummary(dict[str, Any]):
    """What was found as a dict; printed, it is in words."""

    def __str__(self) -> str:
        return "\n".join(plain_text(line, _LONGEST_LINE) for line in self["summary"])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class CheckResult:
    """What a gate found.

    table : one row for each new row, the most suspicious first, with the columns of an audit's table but ``detectable``, and the
        ``line`` of the file where that is known. label : what was judged. name : of the new rows. accepted : how many rows
        they were judged against. positions : of the table's rows among the new rows. notes : what could not be read.
    """

    table: pd.DataFrame
    label: str
    name: str
    accepted: int
    threshold: str
    cutoff: float
    positions: NDArray[np.intp]
    notes: list[str] = field(default_factory=list)

    @property
    def suspects(self) -> pd.DataFrame:
        """The rows of the table that look wrong."""
        return self.table[self.table["suspect"]].copy()

    @property
    def in_order(self) -> pd.DataFrame:
        """The table in the order of the new rows."""
        return self.table.iloc[np.argsort(self.positions)].reset_index(drop=True)

    @property
    def ok(self) -> bool:
        """Whether no label looks wrong."""
        return not bool(self.table["suspect"].any())

    @property
    def summary(self) -> CheckSummary:
        """What was found: prints as sentences, and is what ``mislabel check --json`` prints as a dict."""
        return CheckSummary(
            {
                "file": self.name,
                "label": self.label,
                "rows": len(self.table),
                "accepted_rows": self.accepted,
                "missing_labels": int(self.table["label"].isna().sum()),
                "suspects": int(self.table["suspect"].sum()),
                "ok": self.ok,
                "threshold": self.threshold,
                "cutoff": self.cutoff,
                "summary": [self._first_line(), *self._told()],
                "notes": list(self.notes),
                "table": [_plain(entry) for entry in self.table.to_dict("records")],
            }
        )

    def _first_line(self) -> str:
        found, rows = len(self.suspects), count(len(self.table), "new label")
        by = (
            f"at a false discovery rate of {percent(self.cutoff)}"
            if self.threshold == "fdr"
            else f"more than {self.cutoff:g} standard deviations off"
        )
        against = f"judged by {count(self.accepted, 'accepted row')}"
        if not found:
            return f"None of {rows} of {self.label!r} looks wrong {by}, {against}."
        return f"{found:,} of {rows} of {self.label!r} {'looks' if found == 1 else 'look'} wrong {by}, {against}."

    def _told(self) -> list[str]:
        suspects = self.suspects
        lines = [
            f"{self._where(entry)}: {sentence(entry, self.label)}"
            for entry in suspects.head(MOST_TOLD).to_dict("records")
        ]
        more = len(suspects) - len(lines)
        return [*lines, f"... and {count(more, 'more row')}"] if more else lines

    def _where(self, entry: dict[Any, Any]) -> str:
        line = f"line {entry['line']}, " if "line" in entry else ""
        return f"{line}row {plain_text(entry['row'])}"

    def annotations(self) -> list[str]:
        """One command line of a GitHub workflow for each suspect, in the order of the file."""
        suspects = self.suspects
        if "line" in suspects:
            suspects = suspects.sort_values("line", kind="stable")
        return [self._annotation(entry) for entry in suspects.to_dict("records")]

    def _annotation(self, entry: dict[Any, Any]) -> str:
        line = f",line={entry['line']}" if "line" in entry else ""
        what = f"row {plain_text(entry['row'])}: {sentence(entry, self.label)}"
        return f"::warning file={_property(self.name)}{line},title={_property('mislabel')}::{_data(what)}"


def sentence(entry: dict[Any, Any], label: str) -> str:
    """One suspect in words."""
    half = 0.5 * (entry["expected_high"] - entry["expected_low"])
    return (
        f"{plain_text(label)} is {number(entry['label'])}, expected {number(entry['expected'])} ± {number(half, 2)} "
        f"(z = {number(entry['z'], 3)})"
    )


def _plain(entry: dict[Any, Any]) -> dict[str, Any]:
    """A row of the table as JSON has it."""
    return {str(name): _plain_value(value) for name, value in entry.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return str(value)


def _data(text: str) -> str:
    """Text as the message of a workflow command."""
    return _escaped(text, (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")))


def _property(text: str) -> str:
    """Text as a property of a workflow command."""
    return _escaped(_data(text), ((":", "%3A"), (",", "%2C")))


def _escaped(text: str, replaced: Sequence[tuple[str, str]]) -> str:
    for old, new in replaced:
        text = text.replace(old, new)
    return text
