"""Feather and other files of Arrow's own format: reading, and copies in which decided values alone differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from mislabel.data.column_names import check_names, check_width, unique_names
from mislabel.data.formats.contract import ReadOptions, TableFile, fingerprint_of
from mislabel.data.formats.corrected_copy import TRAIL_COLUMNS, Decisions, check_row_count, check_trail
from mislabel.data.formats.parquet import ColumnReader, arrow_errors, is_text, text_cells, written_cells
from mislabel.data.formats.parquet_copy import converter_to, decided_labels, trail_cells
from mislabel.data.number_recognition import ColumnCells, notations_of
from mislabel.data.number_text import Notation
from mislabel.errors import MissingDependencyError, TableFileError


def read_feather_table(path: Path, options: ReadOptions) -> TableFile:
    """Read a whole file."""
    table, _ = _stored(path)
    stored = _columns(path, table)
    names, notes = unique_names(stored)
    arrays = {name: table.column(column) for name, column in zip(names, stored, strict=True)}
    frame: dict[str, pd.Series] = {}
    with arrow_errors(path, "Feather"):
        found, doubts = notations_of(_looks(arrays, options), None, options.numbers)
        for name, array in arrays.items():
            frame[name], note = ColumnReader(array.type, found.get(name), options=options).read(array)
            notes += [f"column {name!r}: {note}"] if note else []
    return TableFile(
        path,
        "feather",
        frame=pd.DataFrame(frame),
        header=stored,
        written=lambda name: written_cells(arrays[name]),
        fingerprint=fingerprint_of(path),
        options=options,
        notations={name: notation for name, notation in found.items() if notation is not None},
        notes=notes + doubts,
    )


def _looks(arrays: dict[str, Any], options: ReadOptions) -> dict[str, ColumnCells]:
    return {
        name: ColumnCells.of(options.without_missing(text_cells(array)))
        for name, array in arrays.items()
        if is_text(array.type)
    }


def _stored(path: Path) -> tuple[Any, bool]:
    """The table in a file, and whether it is a stream, which ends without a list of its parts."""
    try:
        import pyarrow as pa
        from pyarrow import ipc
    except ImportError:
        raise MissingDependencyError("Feather needs pyarrow: pip install pyarrow.") from None
    with path.open("rb") as file:
        start = file.read(6)
    if start[:4] == b"FEA1":
        raise TableFileError(
            f"{path} is of Feather's first version: write it anew, with pandas or pyarrow, and audit that."
        )
    with arrow_errors(path, "Feather"), pa.memory_map(str(path)) as source:
        stream = start != b"ARROW1"
        reader = ipc.open_stream(source) if stream else ipc.open_file(source)
        table = reader.read_all()
        table.validate(full=True)
        # The file may be replaced while its memory is in use.
        return _copied(table), stream


def _copied(table: Any) -> Any:
    """The same table in memory of its own, batch by batch."""
    import pyarrow as pa
    from pyarrow import ipc

    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return ipc.open_stream(sink.getvalue()).read_all()


def _columns(path: Path, table: Any) -> list[str]:
    with arrow_errors(path, "Feather"):
        described = table.schema.pandas_metadata or {}
        index = {name for name in described.get("index_columns", ()) if isinstance(name, str)}
    stored = [name for name in table.schema.names if name not in index]
    check_width(path, len(stored))
    if len(set(table.schema.names)) < len(table.schema.names):
        raise TableFileError(f"{path}: two of its columns have the same name; rename one of them.")
    return stored


def write_feather_table(source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
    """Copy a file; types, order, metadata and all values that were not decided about stay as they are."""
    import pyarrow as pa
    from pyarrow import ipc

    table, stream = _stored(source)
    stored = _columns(source, table)
    names, _ = unique_names(stored)
    check_names(names, chosen.label)
    check_row_count(source, table.num_rows, chosen)
    if trail:
        check_trail(source, table.schema.names)
    label = stored[names.index(chosen.label)]
    at = table.schema.get_field_index(label)
    arrays = {name: table.column(column) for name, column in zip(names, stored, strict=True)}
    notation = notations_of(_looks(arrays, chosen.options), None, chosen.options.numbers)[0].get(chosen.label)
    notation = (notation or Notation()).of_column(
        chosen.options.without_missing(text_cells(table.column(at))) if is_text(table.column(at).type) else []
    )
    convert = converter_to(source, table.schema.field(at).type, notation, label, chosen)
    schema = table.schema
    for name in TRAIL_COLUMNS if trail else ():
        schema = schema.append(pa.field(name, pa.string()))
    decided, first = chosen.by_position, 0
    new = ipc.new_stream if stream else ipc.new_file
    with arrow_errors(source, "Feather"), new(out, schema) as writer:
        for batch in table.to_batches():
            verdicts = [decided.get(first + k) for k in range(batch.num_rows)]
            columns = [*batch.columns]
            columns[at] = decided_labels(batch.column(at), verdicts, convert)
            if trail:
                columns += [pa.array(values, pa.string()) for values in trail_cells(batch.column(at), verdicts)]
            kept = pa.array([verdict is None or verdict.action != "drop" for verdict in verdicts])
            cleaned = pa.record_batch(columns, schema=schema)
            writer.write_batch(cleaned if all(kept.to_pylist()) else cleaned.filter(kept))
            first += batch.num_rows
