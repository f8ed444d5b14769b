"""Frames of any kind: read into pandas for the work, and given back as what they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from mislabel._common.short_numbers import shortest

#: Kinds of frames that come out as they came in; all others come out as pandas.
_OWN_KINDS = (nw.Implementation.POLARS, nw.Implementation.PYARROW)


def is_frame(data: Any) -> bool:
    """Whether this is a table with named columns, of any library that narwhals knows."""
    return isinstance(data, pd.DataFrame) or isinstance(_known(data), nw.DataFrame | nw.LazyFrame)


def is_series(data: Any) -> bool:
    """Whether this is one column, of any library that narwhals knows."""
    return isinstance(data, pd.Series) or isinstance(_known(data), nw.Series)


def _known(data: Any) -> Any:
    return nw.from_native(data, pass_through=True, allow_series=True)


def pandas_of(data: Any) -> pd.DataFrame:
    """The same table in pandas, value by value; lazy ones are computed."""
    if isinstance(data, pd.DataFrame):
        return data
    frame = _collected(data)
    return pd.DataFrame({name: _pandas_column(frame[name]) for name in frame.columns})


def series_in_pandas(data: Any) -> pd.Series:
    """The same column in pandas."""
    return data if isinstance(data, pd.Series) else pd.Series(_pandas_column(_known(data)), name=_known(data).name)


def _collected(data: Any) -> nw.DataFrame[Any]:
    frame = nw.from_native(data)
    if isinstance(frame, nw.LazyFrame):
        # Lazy tables of polars stay with polars; those of databases come as pyarrow.
        frame = frame.collect()
    assert isinstance(frame, nw.DataFrame)
    return frame


def _pandas_column(series: nw.Series[Any]) -> Any:
    dtype = series.dtype
    if dtype.is_integer() and not series.null_count():
        return series.to_numpy()
    if dtype.is_integer():
        return pd.array(series.to_list(), dtype="Int64")
    if dtype.is_numeric():
        return np.array(series.cast(nw.Float64).to_numpy(), dtype=float)
    values = series.to_list()
    if dtype == nw.Boolean and None not in values:
        return np.array(values, dtype=bool)
    return pd.Series(values, dtype=object)


def in_kind_of(data: Any, table: pd.DataFrame) -> Any:
    """A table of pandas as the kind of frame that ``data`` is."""
    if isinstance(data, pd.DataFrame):
        return table
    found = nw.from_native(data)
    if found.implementation not in _OWN_KINDS:
        return table
    columns = {
        str(name): table[name].tolist() if table[name].dtype == object else table[name].to_numpy() for name in table
    }
    return nw.from_dict(columns, backend=found.implementation).to_native()


@dataclass(frozen=True)
class Changes:
    """New labels by position, and positions of rows to drop."""

    values: dict[int, float]
    dropped: set[int]

    def kept(self, size: int) -> np.ndarray:
        """Positions of the rows that stay."""
        return np.setdiff1d(np.arange(size), sorted(self.dropped))


def corrected_frame(data: Any, label: str, changes: Changes) -> Any:
    """The same frame with some labels changed and some rows dropped; all else as it was."""
    if isinstance(data, pd.DataFrame):
        return _corrected_pandas(data, label, changes)
    frame = _collected(data)
    if changes.values:
        frame = frame.with_columns(_changed_series(frame[label], changes.values).alias(label))
    if changes.dropped:
        frame = frame[changes.kept(len(frame)).tolist()]
    lazy = isinstance(nw.from_native(data), nw.LazyFrame)
    return (frame.lazy() if lazy else frame).to_native()


def corrected_series(data: Any, changes: Changes) -> Any:
    """The same labels, some of them changed and some left out."""
    if isinstance(data, pd.Series):
        return _changed_pandas(data, changes.values).iloc[changes.kept(len(data))]
    if is_series(data):
        series = _known(data)
        if changes.values:
            series = _changed_series(series, changes.values)
        return series[changes.kept(len(series)).tolist()].to_native()
    labels = np.array(data)
    if changes.values and labels.dtype.kind in "biu" and not _whole(changes.values):
        labels = labels.astype(float)
    for position, value in changes.values.items():
        labels[position] = value
    kept = labels[changes.kept(len(labels))]
    return kept.tolist() if isinstance(data, list) else kept


def _whole(values: dict[int, float]) -> bool:
    return all(float(value).is_integer() for value in values.values())


def _changed_series(series: nw.Series[Any], values: dict[int, float]) -> nw.Series[Any]:
    dtype = series.dtype
    new: list[Any] = list(values.values())
    if dtype.is_integer() and _whole(values):
        new = [int(value) for value in new]
    elif dtype.is_integer() or dtype.is_decimal():
        series = series.cast(nw.Float64)
    elif not dtype.is_float():
        series, new = series.cast(nw.String), [shortest(float(value)) for value in new]
    return series.scatter(list(values), new)


def _corrected_pandas(data: pd.DataFrame, label: str, changes: Changes) -> pd.DataFrame:
    frame = data.copy()
    if changes.values:
        at = next(k for k, name in enumerate(data.columns) if str(name) == label)
        changed: Any = _changed_pandas(data.iloc[:, at], changes.values)
        frame.isetitem(at, changed)
    return frame.iloc[changes.kept(len(frame))] if changes.dropped else frame


def _changed_pandas(column: pd.Series, values: dict[int, float]) -> pd.Series:
    """A column with some new values, in its own type where that can hold them."""
    dtype: Any = column.dtype
    column = column.copy()
    new: list[Any] = [float(value) for value in values.values()]
    if pd.api.types.is_integer_dtype(dtype):
        if _whole(values):
            new = [int(value) for value in new]
        else:
            column = column.astype("float64" if isinstance(dtype, np.dtype) else "Float64")
    elif not pd.api.types.is_float_dtype(dtype):
        column = column.astype(object)
        was_text = column.map(lambda value: isinstance(value, str)).any()
        new = [shortest(value) for value in new] if was_text else new
        if isinstance(dtype, pd.StringDtype):
            column = column.astype(dtype)
    places: Any = column.iloc
    places[list(values)] = new
    return column
