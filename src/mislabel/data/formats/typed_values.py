"""Columns of values that have types of their own, as in workbooks and JSON: numbers beside text, dates and truth values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mislabel._common.number_kinds import is_number
from mislabel.data.formats.cells import as_written, mostly_numbers, typed_column, unread_note
from mislabel.data.number_recognition import ColumnCells, notations_of
from mislabel.data.number_text import NUMERIC_FRACTION, Notation, NumberOptions, is_missing

_ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})


def text_notations(
    columns: Mapping[str, Sequence[Any]], options: NumberOptions
) -> tuple[dict[str, Notation], list[str]]:
    """How columns that hold text write numbers in it, and notes about cells that could be two numbers."""
    looks = {name: _look(values) for name, values in columns.items() if any(texts_of(values))}
    found, doubts = notations_of(looks, None, options)
    return {name: notation for name, notation in found.items() if notation is not None}, doubts


def _look(values: Sequence[Any]) -> ColumnCells:
    """What the text in a column says; limits (``<0.5``) stand as text beside what was entered as numbers."""
    look = ColumnCells.of(texts_of(values))
    if not look.limits:
        return look
    return look.with_numbers_beside({as_written(value) for value in values if is_number(value)})


def texts_of(values: Sequence[Any]) -> list[str]:
    """The cells that were entered as text; empty for all others."""
    return [value if isinstance(value, str) else "" for value in values]


def typed_values(values: Sequence[Any], notation: Notation | None) -> tuple[pd.Series, str]:
    """One column as numbers, dates, booleans or text, and a note."""
    values = [None if isinstance(value, str) and (is_missing(value) or value in _ERRORS) else value for value in values]
    filled = [value for value in values if value is not None]
    if not filled:
        return pd.Series(np.full(len(values), np.nan)), ""
    if all(isinstance(value, bool) for value in filled):
        return pd.Series(values, dtype=object if len(filled) < len(values) else bool), ""
    if all(is_number(value) for value in filled):
        return pd.Series([np.nan if value is None else _double(value) for value in values]), ""
    if all(isinstance(value, datetime.datetime | datetime.date) for value in filled):
        return pd.to_datetime(pd.Series(values, dtype=object), errors="coerce"), ""
    if notation is not None or mostly_numbers(values):
        column, note = typed_column(texts_of(values), notation or Notation())
        direct = [_double(value) if is_number(value) else np.nan for value in values]
        column = column.astype(float).where(column.notna(), pd.Series(direct))
        if column.notna().sum() >= NUMERIC_FRACTION * len(filled):
            unread = len(filled) - int(column.notna().sum())
            return column, note or (unread_note(unread, len(filled)) if unread else "")
    kinds = sorted({_KINDS.get(type(value), "text") for value in filled})
    note = f"it holds {' and '.join(kinds)}; all were read as text" if len(kinds) > 1 else ""
    return typed_column([as_written(value) for value in values], None)[0], note


#: What values of a workbook are called.
_KINDS = {
    bool: "yes or no",
    int: "numbers",
    float: "numbers",
    datetime.datetime: "dates",
    datetime.date: "dates",
    datetime.time: "times",
    datetime.timedelta: "times",
}


def _double(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        return np.nan
    return number if np.isfinite(number) else np.nan
