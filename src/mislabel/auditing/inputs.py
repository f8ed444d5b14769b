"""The one way in: whatever was passed becomes one prepared object with a table, labels, row ids and their source."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.auditing.dask_tables import brought_here, is_dask
from mislabel.auditing.frames import is_frame, is_series, pandas_of, series_in_pandas
from mislabel.auditing.given import Given, GivenDask, GivenFile, GivenFrame, GivenMolecules, GivenPair
from mislabel.auditing.request import Request, compares_objects
from mislabel.data.column_names import with_text_names
from mislabel.data.corrections import why_not_written
from mislabel.data.formats.contract import ReadOptions
from mislabel.data.labels import FloatArray, Labels, check_not_classes, checked_labels, numbers_in
from mislabel.data.large_tables import LargeTable
from mislabel.data.molecules import MOLECULE_SUFFIXES, MoleculeSet, read_molecules
from mislabel.data.plain_columns import cells_of
from mislabel.data.table_files import TableFile, fingerprint_of, read_table, similar_file
from mislabel.data.tables import ids_of
from mislabel.errors import InvalidFeaturesError, InvalidLabelsError, InvalidParameterError, TableFileError
from mislabel.report.content import Source
from mislabel.report.findings import Table

#: What a table that came from no file is called, and labels that came without a name.
IN_MEMORY = "table"
UNNAMED = "label"
_APPLY_IN_PYTHON = "Decisions about a table that was audited in Python are carried out there: result.apply(decisions)."
_COUNTED = ", counted from 0 after the header"


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data ready for an audit.

    frame : the user's table, its columns called by texts. rows : the user's own ids of the rows.
    labels, errors : as numbers, NaN where missing; the label is also a column of ``frame``. side : see :class:`Labels`.
    objects : molecules, graphs or a kernel matrix, where they are what is compared.
    typed : whether numbers that stand as text were recognised while reading.
    """

    request: Request
    given: Given
    source: Source
    frame: Table
    rows: NDArray[Any]
    labels: FloatArray
    errors: Any = None
    side: NDArray[np.int8] | None = None
    objects: Any = None
    typed: bool = False
    asked_for: bool = False
    notes: list[str] = field(default_factory=list)


def prepare(data: Any, labels: Any, request: Request) -> Prepared:
    """Turn what was passed into one object; ``labels`` are None where they are the column or property ``request.label``."""
    request.check()
    if isinstance(data, str | os.PathLike):
        if labels is not None:
            raise InvalidParameterError("with the path of a file, name the column of labels: audit(path, 'price').")
        return _from_path(Path(data), request)
    if request.sheet is not None:
        raise InvalidParameterError("sheet goes with a file.")
    if isinstance(data, MoleculeSet) and labels is None:
        return _from_molecules(data, request)
    if labels is not None:
        return _from_pair(data, labels, request)
    if is_dask(data):
        return _from_dask(data, request)
    if is_frame(data):
        return _from_frame(data, request)
    raise InvalidParameterError(
        f"expected a path, a DataFrame (pandas, polars, pyarrow, dask, ...), or features and an array of labels, got "
        f"{type(data).__name__} and the label {request.label!r}."
    )


def _from_path(path: Path, request: Request) -> Prepared:
    if not path.exists():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    if request.memory is not None:
        return _from_large_file(path, request)
    if path.suffix.lower() in MOLECULE_SUFFIXES:
        request.refuse(path.name, ["id", "drop", "features", "label error", "sheet", "decimal", "thousands", "mean"])
        prepared = _from_molecules(read_molecules(path), request)
        source = Source(path.name, fingerprint_of(path), why_not=why_not_written(path), is_file=True)
        return replace(prepared, given=GivenFile(path.absolute()), source=source)
    table = read_table(path, request.sheet, numbers=request.numbers)
    frame = table.frame
    request.check_columns(frame)
    rows: NDArray[Any] = np.arange(len(frame))
    if request.id is not None:
        # Ids are names, exactly as they are written, whatever else they could be read as.
        rows = np.array(table.written(request.id), dtype=object)
        frame = frame.assign(**{request.id: pd.Series(rows, dtype=object)})
    return _of_file(path, table, frame, rows, request)


def _from_large_file(path: Path, request: Request) -> Prepared:
    if request.sheet is not None:
        raise InvalidParameterError("a memory budget goes with Parquet files, which have no sheets.")
    table = LargeTable(path, ReadOptions(numbers=request.numbers))
    if request.client is not None:
        raise InvalidParameterError("a memory budget and dask exclude each other: workers hold their own rows.")
    request.check_columns(table)
    rows: NDArray[Any] = np.arange(len(table))
    if request.id is not None:
        table.keep_as_written(request.id)
        rows = table[request.id].to_numpy()
    return _of_file(path, table, table, rows, request)


def _of_file(path: Path, table: TableFile | LargeTable, frame: Table, rows: NDArray[Any], request: Request) -> Prepared:
    """A table in a file; ``frame`` is what is worked on."""
    known = _labels_in_file(table, request, rows)
    return Prepared(
        request,
        GivenFile(path.absolute()),
        Source.of_file(table, request.label),
        frame,
        rows,
        known.values,
        _errors(frame, request, rows),
        known.side,
        typed=True,
        asked_for=request.features is not None,
    )


def _labels_in_file(table: TableFile | LargeTable, request: Request, rows: NDArray[Any]) -> Labels:
    label = request.label
    column = table[label] if isinstance(table, LargeTable) else table.frame[label]
    counted = _COUNTED if request.id is None else ""
    return checked_labels(column.rename(label), rows, cells=table.written(label), counted=counted)


def _errors(frame: Table, request: Request, rows: NDArray[Any]) -> Any:
    name = request.error_column
    if name is None:
        return request.errors
    return numbers_in(frame[name].rename(name), rows, "label error", numbers=request.numbers)


def _from_frame(data: Any, request: Request) -> Prepared:
    frame = with_text_names(pandas_of(data))
    request.check_columns(frame)
    given = GivenFrame(data, len(frame))
    rows = frame.index.to_numpy() if request.id is None else ids_of(frame, request.id)
    return _of_pandas(frame, rows, given, request, asked_for=request.features is not None)


def _of_pandas(frame: pd.DataFrame, rows: NDArray[Any], given: Given, request: Request, asked_for: bool) -> Prepared:
    known = checked_labels(frame[request.label], rows, numbers=request.numbers)
    return Prepared(
        request,
        given,
        Source(IN_MEMORY, _fingerprint(frame), why_not=_APPLY_IN_PYTHON),
        frame,
        rows,
        known.values,
        _errors(frame, request, rows),
        known.side,
        asked_for=asked_for,
    )


def _from_dask(data: Any, request: Request) -> Prepared:
    frame, client = brought_here(data, request.client, request.memory)
    request = replace(request, client=client, memory=None)
    if isinstance(frame, pd.DataFrame):
        prepared = _from_frame(frame, request)
        return replace(prepared, given=GivenDask(data, len(frame)))
    request.check_columns(frame)
    rows = frame.ids if request.id is None else frame[request.id].to_numpy()
    column = frame.column_as_it_is(request.label)
    known = checked_labels(column, rows, numbers=request.numbers)
    return Prepared(
        request,
        GivenDask(data, len(frame)),
        Source(IN_MEMORY, _fingerprint(pd.DataFrame({request.label: column})), why_not=_APPLY_IN_PYTHON),
        frame,
        rows,
        known.values,
        _errors(frame, request, rows),
        known.side,
        typed=True,
        asked_for=request.features is not None,
    )


def _from_pair(data: Any, labels: Any, request: Request) -> Prepared:
    """Features, or objects, and an array of labels."""
    column = _label_series(labels)
    size = len(column)
    given = GivenPair(data, labels, size)
    if _are_objects(data, request.kernel):
        return _from_objects(data, column, given, request)
    if is_dask(data):
        data = brought_here(data, request.client, request.memory, whole=True)[0]
        given = GivenPair(data, labels, size)
    frame = with_text_names(pandas_of(data)) if is_frame(data) else _frame_of_array(data)
    if len(frame) != size:
        raise InvalidLabelsError(
            f"there are {len(frame)} rows of features and {size} labels: one label per row is needed."
        )
    if not isinstance(data, pd.DataFrame) and isinstance(labels, pd.Series):
        frame = frame.set_axis(column.index, axis=0)
    name = _free_name(column.name, frame)
    frame = frame.assign(**{name: column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array})
    request = replace(request, label=name)
    request.check()
    request.check_columns(frame)
    rows = frame.index.to_numpy() if request.id is None else ids_of(frame, request.id)
    return _of_pandas(frame, rows, given, request, asked_for=True)


def _label_series(labels: Any) -> pd.Series:
    if hasattr(labels, "compute"):
        labels = labels.compute()
    if is_series(labels):
        return series_in_pandas(labels)
    if is_frame(labels):
        labels = pandas_of(labels)
    if isinstance(labels, np.ma.MaskedArray):
        labels = np.ma.filled(labels.astype(float), np.nan)
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidLabelsError(f"labels must be one number per row, got an array of shape {array.shape}.")
    return pd.Series(array)


def _free_name(name: Any, frame: pd.DataFrame) -> str:
    """What the labels are called: their own name where no feature has it."""
    free = UNNAMED if name is None or str(name) == "" else str(name)
    while free in frame.columns:
        free += " (label)"
    return free


def _frame_of_array(data: Any) -> pd.DataFrame:
    if hasattr(data, "toarray"):
        raise InvalidFeaturesError("Sparse data was passed: convert it to a dense array with .toarray().")
    array = np.ma.filled(data.astype(float), np.nan) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    if array.ndim != 2:
        raise InvalidFeaturesError(f"X has {array.ndim} dimensions, expected two: rows and features.")
    return pd.DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])]).infer_objects()


def _are_objects(data: Any, kernel: Any) -> bool:
    if isinstance(kernel, str) and kernel in ("precomputed", "extensive", "intensive", "bonds"):
        return not is_frame(data) or kernel == "precomputed"
    if isinstance(data, MoleculeSet):
        return True
    if is_frame(data) or isinstance(data, np.ndarray) or not isinstance(data, Sequence):
        return False
    return compares_objects(kernel) or (len(data) > 0 and hasattr(data[0], "numbers"))


def _from_molecules(molecules: MoleculeSet, request: Request) -> Prepared:
    """A set of molecules, of whose properties one is the label."""
    request.refuse(Path(molecules.source).name or "the set", ["id", "drop", "features", "mean"])
    labels = molecules.labels(request.label)
    errors = request.errors if request.error_column is None else molecules.labels(request.error_column)
    check_not_classes(labels, request.label)
    shown = molecules.describe()
    name = Path(molecules.source).name or "molecules"
    source = Source(name, _fingerprint(shown), why_not=_APPLY_IN_PYTHON)
    rows = np.arange(len(molecules))
    given = GivenMolecules(molecules)
    return Prepared(request, given, source, shown, rows, labels, errors, objects=molecules)


def _from_objects(data: Any, column: pd.Series, given: Given, request: Request) -> Prepared:
    """Molecules, graphs, other objects, or a kernel matrix, and their labels."""
    request.refuse("the list", ["id", "drop", "features", "mean"])
    if len(data) != len(column):
        raise InvalidLabelsError(f"there are {len(data)} objects and {len(column)} labels: one label each is needed.")
    rows = column.index.to_numpy()
    name = _free_name(column.name, pd.DataFrame(columns=["atoms"]))
    known = checked_labels(column.rename(name), rows, numbers=request.numbers)
    labels, objects = known.values, data
    shown = pd.DataFrame({name: labels})
    if isinstance(request.kernel, str) and request.kernel == "precomputed":
        objects = np.asarray(pandas_of(data) if is_frame(data) else data)
    elif all(hasattr(item, "__len__") or hasattr(item, "n_nodes") for item in data):
        objects = MoleculeSet(list(data), {name: labels})
        shown = objects.describe()
    request = replace(request, label=name)
    source = Source("objects", _fingerprint(shown), why_not=_APPLY_IN_PYTHON)
    return Prepared(request, given, source, shown, rows, labels, request.errors, known.side, objects=objects)


def _fingerprint(frame: pd.DataFrame) -> str:
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
