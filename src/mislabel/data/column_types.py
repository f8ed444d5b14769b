"""One type for a column, however it arrived: numbers, times or text.

The same values come as int64, Int64 or object, as categories or as text, with or without a time zone, from whatever made the
table. What is concluded from them must not depend on that.
"""

from __future__ import annotations

import datetime
import numbers
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd

from mislabel._common.dates import as_dates

ColumnType = Literal["numbers", "times", "text"]
_BOOLEANS = (bool, np.bool_)
_REAL = (numbers.Real, Decimal)
_DURATIONS = (datetime.timedelta, np.timedelta64)
_TIMES = (datetime.date, np.datetime64)
_TRUTH = {"true": 1.0, "false": 0.0}


def plain_column(column: pd.Series, wanted: ColumnType | None = None) -> pd.Series:
    """Numbers as doubles, times in UTC without a zone, anything else as text; what is missing as NaN, NaT or None.

    True and false are one and zero, durations seconds. Complex numbers, which have no such form, stay as they are.
    wanted : the type, where other rows of the column have decided it; values that have no such form are missing.
    """
    if wanted == "text":
        return _text(column)
    plain = _plain(column)
    if wanted is None or type_of(plain) == wanted:
        return plain
    if wanted == "numbers":
        return pd.Series(pd.to_numeric(plain, errors="coerce").astype(float))
    if plain.isna().all():
        return pd.Series(pd.NaT, index=column.index, name=column.name, dtype="datetime64[us]")
    return _without_zone(pd.to_datetime(_text(plain), errors="coerce", utc=True, format="ISO8601"))


def type_of(plain: pd.Series) -> ColumnType:
    """Which of the types a plain column has."""
    if pd.api.types.is_numeric_dtype(plain):
        return "numbers"
    return "times" if pd.api.types.is_datetime64_any_dtype(plain) else "text"


def encodable_text(value: object) -> str:
    """A value as text without what encoders and files trip over: NUL, and halves of characters."""
    return str(value).replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _plain(column: pd.Series) -> pd.Series:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # Their order is no part of the values: a file would hold the same.
        return _of_objects(column.astype(object))
    if pd.api.types.is_complex_dtype(dtype):
        return column
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return _series(column.to_numpy(dtype=float, na_value=np.nan), column)
    if isinstance(dtype, pd.DatetimeTZDtype) or (isinstance(dtype, np.dtype) and dtype.kind == "M"):
        return _without_zone(column)
    if isinstance(dtype, np.dtype) and dtype.kind == "m":
        return pd.Series(column.dt.total_seconds())
    return _of_objects(column.astype(object))


def _of_objects(column: pd.Series) -> pd.Series:
    """A column of Python's own values."""
    filled = column[column.notna()]
    kinds = set(map(type, filled))
    if all(issubclass(kind, _BOOLEANS) for kind in kinds):  # also where nothing is filled
        return _numbers(column, filled, float)
    if all(issubclass(kind, _REAL) and not issubclass(kind, bool) for kind in kinds):
        return _numbers(column, filled, _double)
    if all(issubclass(kind, _DURATIONS) for kind in kinds):
        return _numbers(column, filled, lambda value: pd.Timedelta(value).total_seconds())
    if all(issubclass(kind, _TIMES) for kind in kinds):
        try:
            return _without_zone(pd.to_datetime(column, utc=True))
        except (ValueError, OverflowError):  # years that no calendar has
            return _text(column)
    if kinds == {str}:
        words = {value.strip().lower() for value in filled.unique()}
        if words <= _TRUTH.keys():
            return _numbers(column, filled, lambda value: _TRUTH[value.strip().lower()])
    return _without_zone(as_dates(_text(column)))


def _numbers(column: pd.Series, filled: pd.Series, number: Any) -> pd.Series:
    found = np.full(len(column), np.nan)
    found[column.notna().to_numpy()] = [number(value) for value in filled]
    return _series(found, column)


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # whole numbers beyond all doubles
        return np.inf if value > 0 else -np.inf


def _series(values: Any, like: pd.Series) -> pd.Series:
    return pd.Series(values, index=like.index, name=like.name)


def _without_zone(column: pd.Series) -> pd.Series:
    """Times in UTC; text stays as it is."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if not pd.api.types.is_datetime64_any_dtype(column):
        return column
    try:
        return pd.Series(column.dt.as_unit("us"))
    except (ValueError, OverflowError):  # years that no calendar has
        return column


def _text(column: pd.Series) -> pd.Series:
    known = column.notna().to_numpy()
    found = np.full(len(column), None, dtype=object)
    filled = column[known].astype(object)
    if all(type(value) is str for value in filled):
        codes, texts = pd.factorize(filled)
        found[known] = np.array([encodable_text(text) for text in texts], dtype=object)[codes]
    else:
        found[known] = [encodable_text(value) for value in filled]
    return pd.Series(found, index=column.index, name=column.name, dtype=object)
