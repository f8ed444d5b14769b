"""What a corrected copy of a file is made from: decisions by row, and the contract of those who write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from mislabel.data.formats.contract import ReadOptions
from mislabel.errors import DecisionsError, TableFileError, describe_rows

#: Columns appended by a trail: what was done to a row, its former label, the reviewer's note.
TRAIL_COLUMNS = ("mislabel_action", "mislabel_original", "mislabel_note")
#: Cells that begin so are taken for formulas by spreadsheets.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_SIGNED_NUMBER = re.compile(r"[+-]?[0-9.,]+")


@dataclass(frozen=True)
class Decision:
    """What to do with the label of one row; ``position`` counts the rows of the file from zero.

    reviewed : whether a person looked at this very row; else the decision came with others, and is no verdict on it.
    row : its id. label : what it said; None where that was missing or is not known. former : what it said before an earlier
        decision, where the file was corrected since.
    content : fingerprint of its features (``data/row_fingerprints.py``). copies : rows of the file with this content and label.
    reviewer, decided_at : who decided, and when, where the entry itself says so.
    evidence : numbers that were shown beside it, by name.
    """

    position: int
    action: str
    value: float | None
    note: str = ""
    reviewed: bool = False
    row: str | None = None
    label: float | None = None
    former: float | None = None
    content: str | None = None
    copies: int = 1
    reviewer: str = ""
    decided_at: str = ""
    evidence: dict[str, float] = field(default_factory=dict)

    @property
    def original(self) -> float | None:
        """The label that the first decision was made about."""
        return self.label if self.former is None else self.former


@dataclass(frozen=True)
class Decisions:
    """All decisions about one column of one file.

    id : the column of the rows' ids. columns : those that the contents of rows are fingerprints of; empty for molecules, None
        where rows have no fingerprints. reviewer, exported : who decided, and when.
    audit : how the audit was made that they follow.
    """

    fingerprint: str
    label: str
    rows: int
    decisions: list[Decision]
    file: str = ""
    options: ReadOptions = field(default_factory=ReadOptions)
    id: str | None = None
    columns: tuple[str, ...] | None = None
    reviewer: str = ""
    exported: str = ""
    audit: dict[str, Any] = field(default_factory=dict)

    @property
    def by_position(self) -> dict[int, Decision]:
        """The decision about each row that has one."""
        return {decision.position: decision for decision in self.decisions}

    @property
    def values(self) -> dict[int, float]:
        """New labels by position."""
        return {decision.position: decision.value for decision in self.decisions if decision.value is not None}

    @property
    def verdicts(self) -> dict[int, bool]:
        """By position, whether the label is right, for rows that a person looked at."""
        return {decision.position: decision.action == "keep" for decision in self.decisions if decision.reviewed}

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids of their own, rather than their positions for ids."""
        return self.id is not None or any(
            decision.row is not None and decision.row != str(decision.position) for decision in self.decisions
        )

    @property
    def dropped(self) -> set[int]:
        """Positions of rows to leave out."""
        return {decision.position for decision in self.decisions if decision.action == "drop"}


class TableWriter(Protocol):
    """Writes a copy of a file with decisions carried out; every cell that was not decided about stays as it was."""

    def __call__(self, source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
        """Write the copy of ``source`` to ``out``."""


def check_row_count(source: Path, found: int, chosen: Decisions) -> None:
    """Refuse to write where rows are counted in another way than when the decisions were made."""
    if found != chosen.rows:
        raise DecisionsError(f"{source} has {found} rows, the decisions were made about {chosen.rows}.")


def check_trail(source: Path, names: Sequence[str]) -> None:
    """Refuse a trail where its columns exist already."""
    taken = [name for name in TRAIL_COLUMNS if name in names]
    if taken:
        raise TableFileError(f"{source} has a column {taken[0]!r} already: rename it to add a trail.")


def trail_of(decision: Decision, former: str) -> tuple[str, str, str]:
    """The cells of a trail: what was done, the former label, and the reviewer's note, safe to open in a spreadsheet."""
    return decision.action, former, str(safe_cell(decision.note))


def safe_cell(value: Any) -> Any:
    """Text that a spreadsheet shows instead of computing; numbers, also those in text, stay as they are."""
    if not isinstance(value, str) or not value.startswith(_FORMULA_STARTS):
        return value
    return value if _SIGNED_NUMBER.fullmatch(value) else "'" + value


def refuse_values(source: Path, kind: str, rows: Sequence[int], values: Sequence[float]) -> TableFileError:
    """The error for new labels that the type of their column cannot hold."""
    shown = ", ".join(f"{value:.17g}" for value in values[:3])
    return TableFileError(
        f"{source}: the column's type {kind} cannot hold the new labels {shown}{', ...' if len(values) > 3 else ''} "
        f"({describe_rows(rows)}, counted from 0): choose values that it can hold, or give the column a wider type first."
    )
