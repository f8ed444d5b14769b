"""What every reader of tables hands over: cells as they stand in the file, and the same as typed columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from mislabel.data.number_text import Notation, NumberOptions


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
    lines : where each row stands in the file, counted from one, where that can be told.
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


def fingerprint_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
