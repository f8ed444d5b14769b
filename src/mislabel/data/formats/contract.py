"""What every table format hands over: cells as they stand in the file, and the same as typed columns."""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pandas as pd

from mislabel.data.number_text import NUMERIC_FRACTION, Notation, NumberOptions, is_missing
from mislabel.errors import DecisionsError, InvalidParameterError, TableFileError, describe_rows
from mislabel.short_numbers import shortest

#: Columns renamed, or cells unread, of which each is told; of more, their number.
_MOST_NOTES = 5
#: Tables with more columns are refused: they take hours, and are mostly misread.
MOST_COLUMNS = 20_000
#: Columns appended by a trail: what was done to a row, its former label, the reviewer's note.
TRAIL_COLUMNS = ("mislabel_action", "mislabel_original", "mislabel_note")
#: Cells that begin so are taken for formulas by spreadsheets.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_SIGNED_NUMBER = re.compile(r"[+-]?[0-9.,]+")


@dataclass(frozen=True)
class ReadOptions:
    """How the user wants a file to be read; what is left open is recognised.

    sheet : of a workbook. numbers : decimal and thousands marks.
    """

    sheet: str | None = None
    numbers: NumberOptions = field(default_factory=NumberOptions)


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    delimiter: str = ","
    encoding: str = "utf-8"
    line_end: str = "\n"

    def describe(self) -> str:
        """In words, for a summary."""
        name = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}[self.delimiter]
        return f"{name}-separated, {self.encoding}"


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table as it stands in its file.

    cells : every cell of a text table as it was read; None for others.
    frame : the same with numbers as numbers and missing values as such; columns have unique names.
    written : the text of every cell of a column, exactly as it stands in the file.
    notations : how columns of text write numbers; those that hold none are not there.
    fingerprint : SHA-256 of the file's bytes.
    notes : what had to be decided or repaired while reading, in words.
    """

    path: Path
    format: str
    frame: pd.DataFrame
    header: list[str]
    written: Callable[[str], list[str]]
    fingerprint: str
    options: ReadOptions
    dialect: Dialect | None = None
    cells: pd.DataFrame | None = None
    notations: dict[str, Notation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frame)

    def notation(self, name: str) -> Notation:
        """How a column writes its numbers, with its digits; plain for columns that are no text."""
        notation = self.notations.get(name)
        return Notation() if notation is None else notation.of_column(self.written(name))

    def describe(self) -> str | None:
        """How a text table is written, in words; None for others."""
        if self.dialect is None:
            return None
        marks = sorted({notation.decimal for notation in self.notations.values()}) or ["."]
        named = " and ".join("comma" if mark == "," else "point" for mark in marks)
        return f"{self.dialect.describe()}, decimal {named}"


@dataclass(frozen=True)
class Decision:
    """What to do with the label of one row; ``position`` counts the rows of the file from zero."""

    position: int
    action: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Decisions:
    """All decisions about one column of one file."""

    fingerprint: str
    label: str
    rows: int
    decisions: list[Decision]
    file: str = ""
    options: ReadOptions = field(default_factory=ReadOptions)

    @property
    def by_position(self) -> dict[int, Decision]:
        """The decision about each row that has one."""
        return {decision.position: decision for decision in self.decisions}

    @property
    def values(self) -> dict[int, float]:
        """New labels by position."""
        return {decision.position: decision.value for decision in self.decisions if decision.value is not None}

    @property
    def dropped(self) -> set[int]:
        """Positions of rows to leave out."""
        return {decision.position for decision in self.decisions if decision.action == "drop"}


def check_trail(source: Path, names: Sequence[str]) -> None:
    """Refuse a trail where its columns exist already."""
    taken = [name for name in TRAIL_COLUMNS if name in names]
    if taken:
        raise TableFileError(f"{source} has a column {taken[0]!r} already: rename it to add a trail.")


def trail_of(decision: Decision, former: str) -> tuple[str, str, str]:
    """The cells of a trail: what was done, the former label, and the reviewer's note, safe to open in a spreadsheet."""
    return decision.action, former, str(safe_cell(decision.note))


def as_written(value: Any) -> str:
    """A typed value as text: whole numbers with all their digits, dates without a time where they have none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and math.isfinite(value):
        return shortest(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time() and value.tzinfo is None:
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


class TableWriter(Protocol):
    """Writes a copy of a file with decisions carried out; every cell that was not decided about stays as it was."""

    def __call__(self, source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
        """Write the copy of ``source`` to ``out``."""


def fingerprint_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def check_row_count(source: Path, found: int, chosen: Decisions) -> None:
    """Refuse to write where rows are counted in another way than when the decisions were made."""
    if found != chosen.rows:
        raise DecisionsError(f"{source} has {found} rows, the decisions were made about {chosen.rows}.")


def safe_cell(value: Any) -> Any:
    """Text that a spreadsheet shows instead of computing; numbers, also those in text, stay as they are."""
    if not isinstance(value, str) or not value.startswith(_FORMULA_STARTS):
        return value
    return value if _SIGNED_NUMBER.fullmatch(value) else "'" + value


def unique_names(header: Sequence[str]) -> tuple[list[str], list[str]]:
    """Column names of which none is empty or taken, and what was changed for that, in words."""
    names: list[str] = []
    notes: list[str] = []
    own = {name.strip() for name in header}
    taken: set[str] = set()
    used: dict[str, int] = {}
    for position, name in enumerate(header, 1):
        base = name.strip() or f"column {position}"
        unique, number = base, used.get(base, 1)
        while unique in taken or (number > 1 and unique in own):
            number += 1
            unique = f"{base} ({number})"
        used[base] = number
        if unique != name.strip():
            notes.append(f"column {position} is called {unique!r}: its own name {name!r} is empty or taken.")
        taken.add(unique)
        names.append(unique)
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"{len(notes) - _MOST_NOTES} more columns got names likewise."]
    return names, notes


def check_width(path: Path | BinaryIO, columns: int) -> None:
    """Refuse tables that are too wide to be meant."""
    if columns > MOST_COLUMNS:
        raise TableFileError(
            f"{path} has {columns:,} columns; at most {MOST_COLUMNS:,} can be read. Is it transposed, or separated by "
            "another mark? Else keep the columns that matter."
        )


def typed_column(cells: Sequence[str], notation: Notation | None, dates: bool | None = None) -> tuple[pd.Series, str]:
    """A column of text as numbers where it has a notation for them, else text with missing values as None; and a note.

    dates : whether text holds times with offsets, where a piece of a column must not decide that by itself.
    """
    missing = np.fromiter((is_missing(cell) for cell in cells), dtype=bool, count=len(cells))
    if missing.all() and not dates:
        return pd.Series(np.full(len(cells), np.nan)), ""
    if notation is None:
        kept = [None if gone else cell for gone, cell in zip(missing, cells, strict=True)]
        column = pd.Series(kept, dtype=object)
        if dates is None:
            return as_dates(column), ""
        return (pd.to_datetime(column, utc=True, format="ISO8601", errors="coerce") if dates else column), ""
    numbers = notation.parse(cells)
    numbers[missing] = np.nan
    return pd.Series(numbers), _unread(cells, np.isnan(numbers) & ~missing, int(np.count_nonzero(~missing)))


def _unread(cells: Sequence[Any], unread: np.ndarray, filled: int) -> str:
    where = np.flatnonzero(unread)
    return unread_note(where.size, filled, f"{str(cells[where[0]])[:40]!r}, position {where[0]}") if where.size else ""


def unread_note(count: int, filled: int, first: str | None = None) -> str:
    """That some cells of a column of numbers are none."""
    shown = f" (the first is {first})" if first else ""
    return f"{count} of {filled} cells are not numbers{shown}; read as missing"


def mostly_numbers(values: Sequence[Any]) -> bool:
    """Whether at least nine in ten of the values that are there are numbers."""
    filled = [value for value in values if value is not None]
    numbers = sum(isinstance(value, int | float) and not isinstance(value, bool) for value in filled)
    return numbers >= NUMERIC_FRACTION * max(len(filled), 1)


#: Dates with times and an offset from UTC, of which clocks change twice a year.
_WITH_OFFSET = r"\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:Z|[+-]\d{2}:?\d{2})\s*"


def as_dates(column: pd.Series) -> pd.Series:
    """Times with offsets from UTC, which may differ from row to row, as times in UTC; other text stays as it is."""
    filled = column.dropna()
    first = filled.iloc[:20].astype(str)
    if not len(filled) or not first.str.fullmatch(_WITH_OFFSET).all() or not filled.str.fullmatch(_WITH_OFFSET).all():
        return column
    try:
        return pd.to_datetime(column, utc=True, format="ISO8601")
    except (ValueError, OverflowError):
        return column


def why_unreadable(error: Exception) -> str:
    """The first line of what a reader has to say."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def refuse_values(source: Path, kind: str, rows: Sequence[int], values: Sequence[float]) -> TableFileError:
    """The error for new labels that the type of their column cannot hold."""
    shown = ", ".join(f"{value:.17g}" for value in values[:3])
    return TableFileError(
        f"{source}: the column's type {kind} cannot hold the new labels {shown}{', ...' if len(values) > 3 else ''} "
        f"({describe_rows(rows)}, counted from 0): choose values that it can hold, or give the column a wider type first."
    )


def check_id(label: str, id: str | None) -> None:
    """Refuse the label as its own id."""
    if id is not None and id == label:
        raise InvalidParameterError(f"column {id!r} cannot be the label and the id of the rows at once.")
