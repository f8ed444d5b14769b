"""What every reader of tables hands over: cells as they stand in the file, and the same as typed columns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel._common.number_kinds import is_whole
from mislabel.data.number_text import Notation, NumberOptions, plain_numbers
from mislabel.errors import InvalidParameterError

_HEADER = re.compile(r"([1-9][0-9]{0,6})(?:-([1-9][0-9]{0,6}))?")
#: Rows that a header may have.
_MOST_HEADER_ROWS = 5


@dataclass(frozen=True)
class ReadOptions:
    """How the user wants a file to be read; what is left open is recognised.

    sheet : of a workbook. numbers : decimal and thousands marks.
    header : rows of the header, counted from one as a spreadsheet shows them; () for none. skip : rows before the table.
    na : further texts that stand for no value.
    """

    sheet: str | None = None
    numbers: NumberOptions = field(default_factory=NumberOptions)
    header: tuple[int, ...] | None = None
    skip: int = 0
    na: tuple[str, ...] = ()

    @classmethod
    def stated(
        cls,
        *,
        sheet: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        header: Any = None,
        skip: Any = None,
        na: Any = None,
    ) -> ReadOptions:
        """From what a user says, checked: ``header`` is 3, "3-4" or "none"; ``na`` a text or several."""
        rows = _header_rows(header)
        skip = 0 if skip is None else skip
        if not is_whole(skip) or skip < 0:
            raise InvalidParameterError(f"skip counts the rows before the table: 0 or more, got {skip!r}.")
        if rows and skip and rows[0] <= skip:
            raise InvalidParameterError(f"the header cannot be in row {rows[0]} if the first {skip} rows are skipped.")
        texts = () if na is None else (na,) if isinstance(na, str) or not hasattr(na, "__iter__") else tuple(na)
        return cls(sheet, NumberOptions(decimal, thousands), rows, int(skip), tuple(str(text) for text in texts))

    def as_dict(self) -> dict[str, Any]:
        """What was stated, as :meth:`stated` takes it, for decisions.json."""
        return {
            "sheet": self.sheet,
            "decimal": self.numbers.decimal,
            "thousands": self.numbers.thousands,
            "header": None if self.header is None else describe_header(self.header),
            "skip": self.skip or None,
            "na": list(self.na) or None,
        }

    @property
    def of_layout(self) -> list[str]:
        """Names of those that go with rows of a sheet or of a text."""
        return [name for name, given in (("header", self.header is not None), ("skip", self.skip > 0)) if given]

    def without_missing(self, cells: Sequence[str]) -> Sequence[str]:
        """Cells in which the stated texts for no value are empty."""
        if not self.na:
            return cells
        texts = {text.strip().casefold() for text in self.na}
        numbers = {float(number) for number in plain_numbers(self.na) if np.isfinite(number)}
        values = plain_numbers(cells) if numbers else np.full(len(cells), np.nan)
        return [
            "" if cell.strip().casefold() in texts or value in numbers else cell
            for cell, value in zip(cells, values.tolist(), strict=True)
        ]


def _header_rows(header: Any) -> tuple[int, ...] | None:
    if header is None:
        return None
    if isinstance(header, str) and header.strip().lower() == "none":
        return ()
    text = "-".join(map(str, header)) if isinstance(header, list | tuple) else str(header).strip()
    found = _HEADER.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if found is None or not first <= last < first + _MOST_HEADER_ROWS:
        raise InvalidParameterError(
            f"the header is a row as a spreadsheet counts it (3), up to {_MOST_HEADER_ROWS} rows (3-4), or none; got {header!r}."
        )
    return tuple(range(first, last + 1))


def describe_header(rows: Sequence[int]) -> str:
    """Rows of a header as :meth:`ReadOptions.stated` takes them."""
    if not rows:
        return "none"
    return str(rows[0]) if len(rows) == 1 else f"{rows[0]}-{rows[-1]}"


@dataclass(frozen=True)
class LeftOut:
    """Rows of a file that are no rows of its table: ``what`` they are, and which, as a spreadsheet counts them."""

    what: str
    rows: tuple[int, ...]
    text: str = ""


@dataclass(frozen=True)
class Reading:
    """What was understood of a file beside its cells.

    header : rows of the header, counted from one; () for none, None for formats that have no such rows.
    units : of columns, by name, as they are written. left_out : what was not taken for a row. member : of an archive.
    """

    header: tuple[int, ...] | None = None
    units: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    member: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For summary.json and the page."""
        return {
            "header": None if self.header is None else describe_header(self.header),
            "units": self.units,
            "left_out": [{"what": item.what, "rows": list(item.rows), "text": item.text} for item in self.left_out],
            "member": self.member,
        }


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
    lines : where each row stands in the file, counted from one, where that can be told. rows : the same as a spreadsheet counts.
    reading : what was understood of the file beside its cells. is_plain : whether it holds a header, rows, and nothing else.
    why_not : why decisions cannot be written back into this very file; None where its format tells.
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
    lines: Sequence[int] | None = None
    rows: Sequence[int] | None = None
    reading: Reading = field(default_factory=Reading)
    is_plain: bool = True
    why_not: str | None = None
    notations: dict[str, Notation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frame)

    def filled(self, name: str) -> Sequence[str]:
        """The cells of a column as they are written, without the texts that were stated to stand for no value."""
        return self.options.without_missing(self.written(name))

    def notation(self, name: str) -> Notation:
        """How a column writes its numbers, with its digits; plain for columns that are no text."""
        notation = self.notations.get(name)
        return Notation() if notation is None else notation.of_column(self.filled(name))

    def describe(self) -> str | None:
        """How a text table is written, in words; None for others."""
        if self.dialect is None:
            return None
        marks = sorted({notation.decimal for notation in self.notations.values()}) or ["."]
        named = " and ".join("comma" if mark == "," else "point" for mark in marks)
        return f"{self.dialect.describe()}, decimal {named}"


def fingerprint_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
