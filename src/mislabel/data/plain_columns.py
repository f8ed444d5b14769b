"""Columns in a few plain types, whatever kind of frame or file they came from: the same content gives the same features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mislabel.data.column_types import ColumnType, plain_column, type_of
from mislabel.data.formats.cells import typed_column
from mislabel.data.number_recognition import recognise_notations
from mislabel.data.number_text import Notation, NumberOptions, is_missing


@dataclass(frozen=True)
class PlainColumns:
    """How the columns of a table become plain: numbers, true and false, times, and text.

    Text that holds numbers becomes numbers, as in a text file.

    kinds : the type of every column. notations : how text is read as numbers. truth : columns of true and false.
    notes : what had to be decided, in words.
    """

    kinds: dict[str, ColumnType]
    notations: dict[str, Notation]
    truth: frozenset[str]
    notes: list[str]

    @classmethod
    def of(cls, frame: pd.DataFrame, numbers: NumberOptions | None = None, *, typed: bool = False) -> PlainColumns:
        """Learned from a table, or from some rows of it; in one that is ``typed`` numbers in text were recognised before."""
        plain = {str(name): plain_column(frame[name]) for name in frame.columns}
        kinds: dict[str, ColumnType] = {}
        truth = []
        for name, column in plain.items():
            kinds[name] = type_of(column)
            if kinds[name] == "numbers" and is_truth(frame[name]):
                truth.append(name)
        cells = {name: cells_of(frame[name]) for name, kind in kinds.items() if kind == "text"}
        notations: dict[str, Notation | None] = {}
        notes: list[str] = []
        if not typed and cells:
            notations, notes = recognise_notations(cells, delimiter="\t", options=numbers)
        read = {name: notation for name, notation in notations.items() if notation is not None}
        return cls(kinds, read, frozenset(truth), notes)

    def apply(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
        """The same columns in plain types, and notes about cells that could not be read."""
        columns: dict[Any, Any] = {}
        notes = []
        for name in frame.columns:
            column = frame[name]
            if name in self.notations:
                plain, note = typed_column(cells_of(column), self.notations[name])
                columns[name] = plain.set_axis(column.index)
                if note:
                    notes.append(f"column {name!r}: {note}")
                continue
            columns[name] = plain_column(column, self.kinds[name])
            if self.kinds[name] == "text":
                columns[name] = _with_gaps(columns[name])
            if name in self.truth and not columns[name].isna().any():
                columns[name] = columns[name].astype(bool)
        return pd.DataFrame(columns, index=frame.index), notes


def cells_of(column: pd.Series) -> list[str]:
    """Every value as text; missing ones are empty."""
    gone = column.isna().to_numpy()
    values = column.astype(object).to_numpy()
    return ["" if lost else str(value) for lost, value in zip(gone, values, strict=True)]


def _with_gaps(text: pd.Series) -> pd.Series:
    """Text in which the usual signs of a missing value are one."""
    codes, values = pd.factorize(text)
    kept = np.array([None if is_missing(value) else value for value in values] + [None], dtype=object)
    return pd.Series(kept[codes], index=text.index, name=text.name, dtype=object)


def is_truth(column: pd.Series, cells: Sequence[str] | None = None) -> bool:
    """Whether a column says true or false, by type or in words; ``cells`` are its values as text where these are known."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return True
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
        return False
    filled = [cell for cell in (cells_of(column) if cells is None else cells) if not is_missing(cell)]
    return bool(filled) and all(cell.strip().lower() in ("true", "false") for cell in filled)
