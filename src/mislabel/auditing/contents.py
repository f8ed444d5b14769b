"""What was passed in Python as columns of pandas, and the fingerprint of their values, by which changes in place are noticed."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.auditing.frames import is_frame, is_series, pandas_of, series_in_pandas
from mislabel.data.column_names import check_column, with_text_names
from mislabel.data.molecules import MoleculeSet
from mislabel.data.plain_columns import cells_of
from mislabel.errors import InvalidFeaturesError, InvalidLabelsError, InvalidParameterError
from mislabel.kernels.contract import LazyCollection
from mislabel.report.findings import Table

#: What labels are called that came without a name.
UNNAMED = "label"


def one_column(values: Any, what: str, error: type[Exception] = InvalidParameterError) -> pd.Series:
    """One entry per row, from a series, an array, a list, or a table of one column."""
    if isinstance(values, LazyCollection):
        values = values.compute()
    if is_series(values):
        return series_in_pandas(values)
    if is_frame(values):
        frame = pandas_of(values)
        if frame.shape[1] == 1:
            return frame.iloc[:, 0]
        raise error(f"{what} must be one number per row, got a table of {frame.shape[1]} columns.")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)
    try:
        array = np.asarray(values)
    except ValueError:
        raise error(f"{what} must be one number per row, got lists of different lengths.") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise error(f"{what} must be one number per row, got an array of shape {array.shape}.")
    return pd.Series(array)


def column_beside(given: Any, frame: Table, rows: NDArray[Any], what: str) -> pd.Series:
    """What was given as ``what``, one entry per row: a column of the table where it is a name."""
    if isinstance(given, str):
        check_column(frame, given)
        return frame[given].rename(given)
    column = one_column(given, what)
    if len(column) != len(rows):
        raise InvalidParameterError(
            f"{what} has {len(column)} entries for {len(rows)} rows: one for each row is needed."
        )
    if isinstance(frame, pd.DataFrame):
        _refuse_other_order(given, frame, what)
    return column.reset_index(drop=True).rename(what)


def _refuse_other_order(given: Any, frame: pd.DataFrame, what: str) -> None:
    """Refuse a series that has the index of the table in another order: nobody knows which of both was meant."""
    if not isinstance(given, pd.Series | pd.DataFrame) or given.index.equals(frame.index):
        return
    if frame.index.is_unique and len(given.index.intersection(frame.index)) == len(frame):
        raise InvalidParameterError(
            f"{what}: the index has the rows of the table in another order. Bring it into the order of the table, "
            f"with .loc[table.index], or pass .to_numpy() if the values already are."
        )


def labelled_frame(features: Any, labels: Any) -> tuple[pd.DataFrame, str]:
    """Features and labels beside them as one frame, and what its column of labels is called."""
    column = label_column(labels)
    frame = with_text_names(pandas_of(features)) if is_frame(features) else _frame_of_array(features)
    if len(frame) != len(column):
        raise InvalidLabelsError(
            f"there are {len(frame)} rows of features and {len(column)} labels: one label per row is needed."
        )
    if isinstance(features, pd.DataFrame):
        _refuse_other_order(labels, features, "labels")
    elif isinstance(labels, pd.Series):
        frame = frame.set_axis(column.index, axis=0)
    name = free_name(column.name, frame)
    return frame.assign(**{name: column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array}), name


def label_column(labels: Any) -> pd.Series:
    """Labels beside features, or objects."""
    return one_column(labels, "labels", InvalidLabelsError)


def free_name(name: Any, frame: pd.DataFrame) -> str:
    """What the labels are called: their own name where no feature has it."""
    free = UNNAMED if name is None or str(name) == "" else str(name)
    while free in frame.columns:
        free += " (label)"
    return free


def described_objects(objects: Any, labels: NDArray[Any], name: str) -> pd.DataFrame:
    """Molecules or other objects, and their labels, as a table for people."""
    if have_a_size(objects):
        return MoleculeSet(list(objects), {name: labels}).describe()
    return pd.DataFrame({name: labels})


def have_a_size(objects: Any) -> bool:
    """Whether these are molecules or graphs, rather than anything that only its kernel knows."""
    return all(hasattr(item, "__len__") or hasattr(item, "n_nodes") for item in objects)


def fingerprint(frame: pd.DataFrame) -> str:
    """SHA-256 of the names and values of a table: the same for the same content."""
    digest = hashlib.sha256()
    for name in frame.columns:
        column = frame[name]
        digest.update(f"\n{name}\n".encode("utf-8", "replace"))
        if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
            values = column.to_numpy(dtype=float, na_value=np.nan) + 0.0
            digest.update(np.where(np.isnan(values), np.nan, values).tobytes())
        else:
            digest.update("\0".join(cells_of(column)).encode("utf-8", "replace"))
    return digest.hexdigest()


def _frame_of_array(data: Any) -> pd.DataFrame:
    if hasattr(data, "toarray"):
        raise InvalidFeaturesError("Sparse data was passed: convert it to a dense array with .toarray().")
    array = np.ma.filled(data.astype(float), np.nan) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    if array.ndim != 2:
        raise InvalidFeaturesError(f"X has {array.ndim} dimensions, expected two: rows and features.")
    return pd.DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])]).infer_objects()
