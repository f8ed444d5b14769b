"""Parquet: typed columns, read whole or piece by piece. Its writer is in :mod:`mislabel.data.formats.parquet_copy`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mislabel._common.dates import as_dates
from mislabel.data.column_names import check_width, unique_names
from mislabel.data.formats.cells import as_written, typed_column, why_unreadable
from mislabel.data.formats.contract import ReadOptions, TableFile, fingerprint_of
from mislabel.data.number_recognition import ColumnCells, notations_of
from mislabel.data.number_text import Notation
from mislabel.errors import MissingDependencyError, TableFileError

#: Rows of a Parquet file in memory at a time.
ROWS_COPIED = 65_536
#: Rows at the start of a file that tell whether a column of text holds numbers.
FIRST_ROWS = 2_000


def open_parquet(path: Path, **options: Any) -> Any:
    """A Parquet file, opened; errors in words."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingDependencyError("Parquet needs pyarrow: pip install pyarrow.") from None
    with arrow_errors(path):
        return parquet.ParquetFile(path, **options)


class arrow_errors:
    """Whatever goes wrong inside a file that pyarrow reads becomes one sentence that names it."""

    def __init__(self, path: Path, format: str = "Parquet") -> None:
        self._path, self._format = path, format

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        import pyarrow as pa

        # Damaged files make pyarrow raise nearly anything, once a MemoryError for a length that was a few bits off.
        expected = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError)
        if isinstance(error, expected) and not type(error).__module__.startswith("mislabel"):
            raise TableFileError(f"{self._path} cannot be read as {self._format}: {why_unreadable(error)}") from None


def stored_columns(file: Any) -> list[str]:
    """Names of the columns in a file, without those that pandas keeps row labels in."""
    described = file.schema_arrow.pandas_metadata or {}
    index = {name for name in described.get("index_columns", ()) if isinstance(name, str)}
    return [name for name in file.schema_arrow.names if name not in index]


def read_parquet_table(path: Path, options: ReadOptions) -> TableFile:
    """Read a whole Parquet file."""
    file = open_parquet(path)
    with file, arrow_errors(path):
        stored = stored_columns(file)
        check_width(path, len(stored))
        table = file.read(columns=list(dict.fromkeys(stored)))
    names, notes = unique_names(stored)
    if len(set(stored)) < len(stored):
        raise TableFileError(f"{path}: two of its columns have the same name; rename one of them.")
    if (reason := why_not_copied(file)) is not None:
        notes.append(f"decisions cannot be applied to this file: {reason}")
    if table.num_rows != file.metadata.num_rows:
        raise TableFileError(
            f"{path} announces {file.metadata.num_rows} rows and holds {table.num_rows}: it is damaged."
        )
    arrays = dict(zip(names, (table.column(name) for name in stored), strict=True))
    frame: dict[str, pd.Series] = {}
    found, doubts = notations_of(
        {name: look for name, look in zip(names, text_looks(path, options), strict=True) if look is not None},
        None,
        options.numbers,
    )
    with arrow_errors(path):
        for name, array in arrays.items():
            frame[name], note = ColumnReader(array.type, found.get(name), options=options).read(array)
            notes += [f"column {name!r}: {note}"] if note else []
        notes += doubts
        notations = {name: notation for name, notation in found.items() if notation is not None}
    return TableFile(
        path,
        "parquet",
        frame=pd.DataFrame(frame),
        header=stored,
        written=lambda name: written_cells(arrays[name]),
        fingerprint=fingerprint_of(path),
        options=options,
        notations=notations,
        notes=notes,
    )


def is_text(kind: Any) -> bool:
    """Whether an arrow type holds text, dictionaries of text included."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def text_cells(array: Any) -> list[str]:
    """A column of text, empty where nothing stands."""
    return ["" if value is None else value for value in array.to_pylist()]


def written_cells(array: Any) -> list[str]:
    """Every value of a column as text: whole numbers with all their digits, text exactly as it is."""
    if is_text(array.type):
        return text_cells(array)
    return [as_written(value) for value in array.to_pylist()]


def text_looks(path: Path, options: ReadOptions) -> list[ColumnCells | None]:
    """What all cells of every column of text say about how it writes numbers; None for columns that are no text.

    Columns that do not begin with numbers are looked at no further.
    """
    found: list[ColumnCells | None] = []
    with open_parquet(path) as file:
        for name in stored_columns(file):
            if not is_text(file.schema_arrow.field(name).type):
                found.append(None)
                continue
            look = None
            with arrow_errors(path):
                batches = file.iter_batches(ROWS_COPIED, columns=[name], use_threads=False)
            for batch in pieces(batches, path):
                with arrow_errors(path):
                    cells = options.without_missing(text_cells(batch.select([name]).column(0)))
                if look is None and not ColumnCells.of(cells[:FIRST_ROWS]).is_numeric:
                    look = ColumnCells.of(cells[:FIRST_ROWS])
                    break
                # A cell in the last row may tell what "1,234" in the first one means.
                look = ColumnCells.of(cells) if look is None else look.followed_by(ColumnCells.of(cells))
            found.append(look or ColumnCells.of([]))
    return found


@dataclass(frozen=True)
class ColumnReader:
    """Turns arrow columns into pandas ones, the same way for every piece of a table.

    notation : how a column of text writes numbers; None where it holds none. options : what stands for no value.
    dates : whether a column of text holds times with offsets; None where the whole column tells.
    """

    kind: Any
    notation: Notation | None = None
    dates: bool | None = None
    options: ReadOptions = field(default_factory=ReadOptions)

    def read(self, array: Any) -> tuple[pd.Series, str]:
        """One piece of the column, and a note about cells that could not be read."""
        import pyarrow as pa

        kind = self.kind
        if is_text(kind):
            return typed_column(self.options.without_missing(text_cells(array)), self.notation, self.dates)
        if self.options.na and (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            kept = pa.array([bool(cell) for cell in self.options.without_missing(written_cells(array))])
            array = pa.compute.if_else(kept, array, pa.scalar(None, kind))
        if pa.types.is_decimal(kind):
            return pd.Series([math.nan if value is None else float(value) for value in array.to_pylist()]), ""
        if pa.types.is_duration(kind):
            return pd.Series(array.to_pandas().dt.total_seconds()).reset_index(drop=True), ""
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return array.to_pandas().reset_index(drop=True), ""
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            return _times(array), ""
        values = [None if value is None else str(value) for value in array.to_pylist()]
        return pd.Series(values, dtype=object), ""


def _times(array: Any) -> pd.Series:
    import pyarrow as pa

    try:
        if pa.types.is_date(array.type):
            array = array.cast(pa.timestamp("ms"))
        column: pd.Series = array.to_pandas().reset_index(drop=True)
        return pd.Series(pd.to_datetime(column, utc=bool(array.type.tz)))
    except (ValueError, OverflowError, pa.ArrowException):  # years that no calendar has
        return as_dates(pd.Series([None if value is None else str(value) for value in array.cast("int64").to_pylist()]))


def pieces(batches: Iterator[Any], source: Path) -> Iterator[Any]:
    """Batches of a file as they are read; what goes wrong in reading is told in words, what goes wrong elsewhere is not."""
    while True:
        with arrow_errors(source):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def why_not_copied(stored: Any) -> str | None:
    """The reason why a file cannot be copied value by value; None where it can."""
    columns = [stored.schema.column(k) for k in range(len(stored.schema))]
    outdated = [column.name for column in columns if column.physical_type == "INT96"]
    if not outdated:
        return None
    return (
        f"its timestamps are of the outdated type INT96 (column {outdated[0]!r}), which cannot be copied exactly: write them as "
        "INT64 first, and audit that file."
    )
