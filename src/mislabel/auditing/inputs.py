"""The one way in: whatever was passed becomes one prepared object with a table, labels, row ids and their source."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.auditing.contents import (
    column_beside,
    fingerprint,
    free_name,
    have_a_size,
    label_column,
    labelled_frame,
)
from mislabel.auditing.dask_tables import brought_here, is_dask, token_of
from mislabel.auditing.frames import is_frame, pandas_of
from mislabel.auditing.given import (
    Given,
    GivenDask,
    GivenDaskPair,
    GivenFile,
    GivenFrame,
    GivenMatrix,
    GivenMolecules,
    GivenObjects,
    GivenPair,
)
from mislabel.auditing.request import Request
from mislabel.data.column_names import with_text_names
from mislabel.data.corrections import why_not_written
from mislabel.data.labels import FloatArray, Labels, check_not_classes, checked_labels, numbers_in
from mislabel.data.large_tables import LargeTable
from mislabel.data.molecules import MOLECULE_SUFFIXES, MoleculeSet, read_molecules
from mislabel.data.table_files import TableFile, fingerprint_of, read_table, similar_file
from mislabel.data.tables import ids_of
from mislabel.errors import InvalidLabelsError, InvalidParameterError, TableFileError
from mislabel.kernels.adapters import compares_objects
from mislabel.report.content import Source
from mislabel.report.findings import Table
from mislabel.report.remembered import Remembered

#: What a table that came from no file is called.
IN_MEMORY = "table"
_APPLY_IN_PYTHON = "Decisions about a table that was audited in Python are carried out there: result.apply(decisions)."
_COUNTED = ", counted from 0 after the header"


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data ready for an audit.

    frame : the user's table, its columns called by texts. rows : the user's own ids of the rows.
    labels, errors : as numbers, NaN where missing; the label is also a column of ``frame``. side : see :class:`Labels`.
    objects : molecules, graphs or a kernel matrix, where they are what is compared.
    typed : whether numbers that stand as text were recognised while reading.
    remembered : what was decided earlier, which ``labels`` and ``side`` follow.
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
    remembered: Remembered | None = None


def prepare(data: Any, labels: Any, request: Request) -> Prepared:
    """Turn what was passed into one object; ``labels`` are None where they are the column or property ``request.label``."""
    request.check()
    if isinstance(data, str | os.PathLike):
        if labels is not None:
            raise InvalidParameterError("with the path of a file, name the column of labels: audit(path, 'price').")
        return _from_path(Path(data), request)
    _refuse_what_files_have(request)
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


def _refuse_what_files_have(request: Request) -> None:
    """Complain about ways to read a file where there is none."""
    reading = request.reading
    of_files = {
        "sheet": reading.sheet,
        "header": reading.header,
        "skip": reading.skip or None,
        "na": reading.na or None,
    }
    if useless := [name for name, given in of_files.items() if given is not None]:
        raise InvalidParameterError(f"{', '.join(useless)} goes with a file.")


def _from_path(path: Path, request: Request) -> Prepared:
    if not path.exists():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    if request.memory is not None:
        return _from_large_file(path, request)
    if path.suffix.lower() in MOLECULE_SUFFIXES:
        request.refuse(path.name, ["id", "drop", "features", "label error", *request.reading.as_dict(), "mean"])
        prepared = _from_molecules(read_molecules(path), request)
        source = Source(path.name, fingerprint_of(path), why_not=why_not_written(path), is_file=True)
        return replace(prepared, given=GivenFile(path.absolute()), source=source)
    return prepare_file(path, read_table(path, options=request.reading), request)


def prepare_file(path: Path, table: TableFile, request: Request) -> Prepared:
    """The same for a table that was read already."""
    request.check_columns(table.frame)
    frame, rows = _frame_and_rows(table, request)
    return _of_file(path, table, frame, rows, request)


def _frame_and_rows(table: TableFile, request: Request) -> tuple[pd.DataFrame, NDArray[Any]]:
    """The table in a file, and the ids of its rows."""
    frame = table.frame
    rows: NDArray[Any] = np.arange(len(frame))
    if request.id is not None:
        # Ids are names, exactly as they are written, whatever else they could be read as.
        rows = np.array(table.written(request.id), dtype=object)
        frame = frame.assign(**{request.id: pd.Series(rows, dtype=object)})
    return frame, rows


@dataclass(frozen=True, eq=False)
class ManyLabels:
    """A table any column of which can be the label, read once.

    with_label : everything that is ready for an audit of one column. typed : as in :class:`Prepared`.
    """

    frame: pd.DataFrame
    typed: bool
    with_label: Callable[[str], Prepared]


def prepare_many(data: Any, request: Request) -> ManyLabels:
    """Read a table, in a file or a frame, whose labels are chosen later."""
    request.check()
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if not path.exists():
            raise TableFileError(f"{path}: no such file.{similar_file(path)}")
        table = read_table(path, options=request.reading)
        request.check_columns(table.frame, label=False)
        frame, rows = _frame_and_rows(table, request)
        return ManyLabels(frame, True, lambda label: _of_file(path, table, frame, rows, request.with_label(label)))
    _refuse_what_files_have(request)
    shown = with_text_names(pandas_of(data))
    request.check_columns(shown, label=False)
    ids = shown.index.to_numpy() if request.id is None else ids_of(shown, request.id)
    given, asked_for = GivenFrame(data), request.features is not None
    return ManyLabels(shown, False, lambda label: _of_pandas(shown, ids, given, request.with_label(label), asked_for))


def _from_large_file(path: Path, request: Request) -> Prepared:
    if useless := [*(["sheet"] if request.reading.sheet is not None else []), *request.reading.of_layout]:
        raise InvalidParameterError(f"a memory budget goes with Parquet files, which have no {useless[0]} to state.")
    table = LargeTable(path, request.reading)
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
    if request.id is None and isinstance(table, TableFile) and table.rows is not None:
        rows, counted = np.asarray(table.rows), " of the file"
    cells, few = table.filled(label), request.of_new_rows
    return checked_labels(column.rename(label), rows, cells=cells, counted=counted, few=few)


def _errors(frame: Table, request: Request, rows: NDArray[Any]) -> Any:
    """Known standard deviations of the labels; a single number stands for all of them."""
    if request.error_column is None and np.ndim(request.errors) == 0:
        return request.errors
    column = column_beside(request.errors, frame, rows, "label error")
    return numbers_in(column, rows, "label error", numbers=request.numbers)


def _from_frame(data: Any, request: Request) -> Prepared:
    frame = with_text_names(pandas_of(data))
    request.check_columns(frame)
    given = GivenFrame(data)
    rows = frame.index.to_numpy() if request.id is None else ids_of(frame, request.id)
    return _of_pandas(frame, rows, given, request, asked_for=request.features is not None)


def _of_pandas(frame: pd.DataFrame, rows: NDArray[Any], given: Given, request: Request, asked_for: bool) -> Prepared:
    known = checked_labels(frame[request.label], rows, numbers=request.numbers, few=request.of_new_rows)
    return Prepared(
        request,
        given,
        Source(IN_MEMORY, fingerprint(frame), why_not=_APPLY_IN_PYTHON),
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
        return replace(prepared, given=GivenDask(data, token_of(data)))
    request.check_columns(frame)
    # As they are: in plain types "00417" would be a number.
    rows = frame.ids if request.id is None else ids_of(frame.column_as_it_is(request.id).to_frame(), request.id)
    column = frame.column_as_it_is(request.label)
    known = checked_labels(column, rows, numbers=request.numbers)
    return Prepared(
        request,
        GivenDask(data, token_of(data)),
        Source(IN_MEMORY, fingerprint(pd.DataFrame({request.label: column})), why_not=_APPLY_IN_PYTHON),
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
    if _are_objects(data, request.kernel):
        return _from_objects(data, labels, request)
    given: Given = GivenPair(data, labels)
    if is_dask(data):
        given = GivenDaskPair(data, labels, token_of((data, labels)))
        data, client = brought_here(data, request.client, request.memory, whole=True)
        request = replace(request, client=client, memory=None)
    frame, name = labelled_frame(data, labels)
    request = replace(request, label=name)
    request.check()
    request.check_columns(frame)
    rows = frame.index.to_numpy() if request.id is None else ids_of(frame, request.id)
    return _of_pandas(frame, rows, given, request, asked_for=True)


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
    check_not_classes(labels, request.label)
    shown, rows, errors_in = molecules.describe(), np.arange(len(molecules)), request.error_column
    errors = _errors(shown, request, rows) if errors_in is None else molecules.labels(errors_in)
    name = Path(molecules.source).name or "molecules"
    source = Source(name, fingerprint(shown), why_not=_APPLY_IN_PYTHON)
    given = GivenMolecules(molecules)
    return Prepared(request, given, source, shown, rows, labels, errors, objects=molecules)


def _from_objects(data: Any, given_labels: Any, request: Request) -> Prepared:
    """Molecules, graphs, other objects, or a kernel matrix, and their labels."""
    request.refuse("the list", ["id", "drop", "features", "mean"])
    column = label_column(given_labels)
    if len(data) != len(column):
        raise InvalidLabelsError(f"there are {len(data)} objects and {len(column)} labels: one label each is needed.")
    rows = column.index.to_numpy()
    name = free_name(column.name, pd.DataFrame(columns=["atoms"]))
    known = checked_labels(column.rename(name), rows, numbers=request.numbers)
    labels, objects = known.values, data
    given = GivenObjects(data, given_labels)
    if isinstance(request.kernel, str) and request.kernel == "precomputed":
        objects, given = np.asarray(pandas_of(data) if is_frame(data) else data), GivenMatrix(data, given_labels)
    elif have_a_size(data):
        objects = MoleculeSet(list(data), {name: labels})
    request = replace(request, label=name)
    source = Source("objects", fingerprint(given.described(name)), why_not=_APPLY_IN_PYTHON)
    shown = given.described(name).assign(**{name: labels})
    errors = _errors(shown, request, rows)
    return Prepared(request, given, source, shown, rows, labels, errors, known.side, objects=objects)
