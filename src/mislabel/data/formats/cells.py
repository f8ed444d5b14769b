"""Cells and columns of tables in files: from text to numbers and dates, and from values back to text."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mislabel._common.dates import as_dates
from mislabel._common.number_kinds import is_number
from mislabel._common.short_numbers import shortest
from mislabel.data.number_text import NUMERIC_FRACTION, SIGNS_OF_LIMITS, Notation, is_missing, is_untold_limit


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
    notes = [
        _unread(cells, np.isnan(numbers) & ~missing, int(np.count_nonzero(~missing))),
        _limits_note(cells, numbers),
        _untold_note(cells),
    ]
    return pd.Series(numbers), "; ".join(note for note in notes if note)


def _limits_note(cells: Sequence[str], numbers: np.ndarray) -> str:
    """That some numbers of a column are only limits."""
    where = [k for k, cell in enumerate(cells) if cell.lstrip()[:1] in SIGNS_OF_LIMITS and np.isfinite(numbers[k])]
    if not where:
        return ""
    counted = "1 cell is a limit" if len(where) == 1 else f"{len(where)} cells are limits"
    return f"{counted} (the first is {cells[where[0]][:40]!r}, position {where[0]})"


def _untold_note(cells: Sequence[str]) -> str:
    """That some cells of a column of numbers lie beyond limits which they do not tell."""
    where = [k for k, cell in enumerate(cells) if cell.lstrip()[:1] in SIGNS_OF_LIMITS and is_untold_limit(cell)]
    if not where:
        return ""
    counted = "1 cell lies" if len(where) == 1 else f"{len(where)} cells lie"
    return (
        f"{counted} beyond a limit that is not told (the first is {cells[where[0]].strip()!r}, position {where[0]}); read as "
        "missing. Write the limit itself, like <0.5, to have it used"
    )


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
    numbers = sum(is_number(value) for value in filled)
    return numbers >= NUMERIC_FRACTION * max(len(filled), 1)


def why_unreadable(error: Exception) -> str:
    """The first line of what a reader has to say."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
