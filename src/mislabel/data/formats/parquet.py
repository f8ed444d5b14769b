"""Parquet: typed columns, read and copied piece by piece. What a column's type cannot hold is refused, not converted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from mislabel.data.formats.contract import (
    TRAIL_COLUMNS,
    Decision,
    Decisions,
    ReadOptions,
    TableFile,
    as_dates,
    as_written,
    check_row_count,
    check_trail,
    check_width,
    fingerprint_of,
    refuse_values,
    trail_of,
    typed_column,
    unique_names,
    why_unreadable,
)
from mislabel.data.number_text import ColumnCells, Notation, notations_of
from mislabel.errors import InvalidParameterError, MissingDependencyError, TableFileError
from mislabel.short_numbers import shortest

#: Rows of a Parquet file in memory at a time.
ROWS_COPIED = 65_536
#: Rows at the start of a file that tell whether a column of text holds numbers.
FIRST_ROWS = 2_000
#: Digits of the widest decimal type.
_DECIMAL_DIGITS = 76


def open_parquet(path: Path, **options: Any) -> Any:
    """A Parquet file, opened; errors in words."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingDependencyError("Parquet needs pyarrow: pip install pyarrow.") from None
    with parquet_errors(path):
        return parquet.ParquetFile(path, **options)


class parquet_errors:
    """Whatever goes wrong inside a Parquet file becomes one sentence that names it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        import pyarrow as pa

        # Damaged files make pyarrow raise nearly anything, once a MemoryError for a length that was a few bits off.
        expected = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError)
        if isinstance(error, expected) and not type(error).__module__.startswith("mislabel"):
            raise TableFileError(f"{self._path} cannot be read as Parquet: {why_unreadable(error)}") from None


def stored_columns(file: Any) -> list[str]:
    """Names of the columns in a file, without those that pandas keeps row labels in."""
    described = file.schema_arrow.pandas_metadata or {}
    index = {name for name in described.get("index_columns", ()) if isinstance(name, str)}
    return [name for name in file.schema_arrow.names if name not in index]


def parquet_columns(path: Path, options: ReadOptions) -> list[str]:
    """The names of the columns."""
    with open_parquet(path) as file, parquet_errors(path):
        return unique_names(stored_columns(file))[0]


def read_parquet_table(path: Path, options: ReadOptions) -> TableFile:
    """Read a whole Parquet file."""
    file = open_parquet(path)
    with file, parquet_errors(path):
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
        {name: look for name, look in zip(names, text_looks(path), strict=True) if look is not None},
        None,
        options.numbers,
    )
    with parquet_errors(path):
        for name, array in arrays.items():
            frame[name], note = ColumnReader(array.type, found.get(name)).read(array)
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


def text_looks(path: Path) -> list[ColumnCells | None]:
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
            with parquet_errors(path):
                batches = file.iter_batches(ROWS_COPIED, columns=[name], use_threads=False)
            for batch in pieces(batches, path):
                with parquet_errors(path):
                    cells = text_cells(batch.select([name]).column(0))
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

    notation : how a column of text writes numbers; None where it holds none.
    dates : whether a column of text holds times with offsets; None where the whole column tells.
    """

    kind: Any
    notation: Notation | None = None
    dates: bool | None = None

    def read(self, array: Any) -> tuple[pd.Series, str]:
        """One piece of the column, and a note about cells that could not be read."""
        import pyarrow as pa

        kind = self.kind
        if is_text(kind):
            return typed_column(text_cells(array), self.notation, self.dates)
        if pa.types.is_decimal(kind):
            return pd.Series([math.nan if value is None else float(value) for value in array.to_pylist()]), ""
        if pa.types.is_duration(kind):
            return _seconds(array.to_pandas()), ""
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return array.to_pandas().reset_index(drop=True), ""
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            return _times(array), ""
        values = [None if value is None else str(value) for value in array.to_pylist()]
        return pd.Series(values, dtype=object), ""


def _seconds(column: pd.Series) -> pd.Series:
    return column.dt.total_seconds().reset_index(drop=True)


def _times(array: Any) -> pd.Series:
    import pyarrow as pa

    try:
        if pa.types.is_date(array.type):
            array = array.cast(pa.timestamp("ms"))
        return pd.to_datetime(array.to_pandas().reset_index(drop=True), utc=bool(array.type.tz))
    except (ValueError, OverflowError, pa.ArrowException):  # years that no calendar has
        return as_dates(pd.Series([None if value is None else str(value) for value in array.cast("int64").to_pylist()]))


def write_parquet_table(source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
    """Copy a Parquet file piece by piece: it need not fit into memory."""
    import pyarrow as pa
    from pyarrow import parquet

    with open_parquet(source) as stored:
        with parquet_errors(source):
            names = stored_columns(stored)
            label = names[unique_names(names)[0].index(chosen.label)]
            check_row_count(source, stored.metadata.num_rows, chosen)
            schema = stored.schema_arrow
            at = schema.get_field_index(label)
            convert = _converter(source, stored, label, schema.field(at).type, chosen)
            if (reason := why_not_copied(stored)) is not None:
                raise TableFileError(f"{source}: {reason}")
        if trail:
            check_trail(source, schema.names)
        for name in TRAIL_COLUMNS if trail else ():
            schema = schema.append(pa.field(name, pa.string()))
        decided = chosen.by_position
        with parquet.ParquetWriter(out, schema, compression=_compression(stored)) as writer:
            first = 0
            for batch in pieces(stored.iter_batches(ROWS_COPIED), source):
                verdicts = [decided.get(first + k) for k in range(batch.num_rows)]
                with parquet_errors(source):
                    original = batch.column(at)
                    columns = [*batch.columns]
                    columns[at] = _decided_labels(original, verdicts, convert)
                    if trail:
                        columns += [pa.array(values, pa.string()) for values in _trail_cells(original, verdicts)]
                    kept = pa.array([verdict is None or verdict.action != "drop" for verdict in verdicts])
                    cleaned = pa.record_batch(columns, schema=schema).filter(kept)
                writer.write_batch(cleaned)
                first += batch.num_rows
    if first != chosen.rows:
        raise TableFileError(f"{source} announces {chosen.rows} rows and holds {first}: it is damaged.")


def pieces(batches: Iterator[Any], source: Path) -> Iterator[Any]:
    """Batches of a file as they are read; what goes wrong in reading is told in words, what goes wrong elsewhere is not."""
    while True:
        with parquet_errors(source):
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


def _compression(stored: Any) -> str:
    if not stored.metadata.num_row_groups or not stored.metadata.num_columns:
        return "snappy"
    name = str(stored.metadata.row_group(0).column(0).compression).lower()
    return (
        "none" if name == "uncompressed" else name if name in ("snappy", "gzip", "brotli", "zstd", "lz4") else "snappy"
    )


def _converter(source: Path, stored: Any, label: str, kind: Any, chosen: Decisions) -> Callable[[float], Any]:
    """From new labels to values of the column's type; refuses, before anything is written, those that it cannot hold."""
    import pyarrow as pa

    if is_text(kind):
        convert: Callable[[float], Any] = _text_notation(source, stored, label, chosen).write
    elif pa.types.is_integer(kind):
        convert = _whole
    elif pa.types.is_decimal(kind):
        convert = lambda value: _decimal(value, kind.scale)  # noqa: E731
    elif pa.types.is_floating(kind):
        width = {16: np.float16, 32: np.float32, 64: np.float64}[kind.bit_width]
        convert = lambda value: _floating(value, width)  # noqa: E731
    else:
        raise InvalidParameterError(f"{source}: labels of type {kind} cannot be corrected; only numbers and text can.")
    refused = []
    for position, value in chosen.values.items():
        try:
            pa.array([convert(value)], kind.value_type if pa.types.is_dictionary(kind) else kind)
        except (ValueError, OverflowError, InvalidOperation, pa.ArrowException):
            refused.append((position, value))
    if refused:
        raise refuse_values(source, str(kind), *zip(*refused, strict=True))
    return convert


def _text_notation(source: Path, stored: Any, label: str, chosen: Decisions) -> Notation:
    names = stored_columns(stored)
    looks = {name: look for name, look in zip(names, text_looks(source), strict=True) if look is not None}
    found = notations_of(looks, None, chosen.options.numbers)[0][label] or Notation()
    return found.of_column(text_cells(stored.read(columns=[label]).column(label)))


def _whole(value: float) -> int:
    if value != int(value):
        raise ValueError
    return int(value)


def _decimal(value: float, scale: int) -> Decimal:
    exact = Decimal(shortest(value))
    with localcontext(prec=_DECIMAL_DIGITS):
        rounded = exact.quantize(Decimal(1).scaleb(-scale)) if scale >= 0 else exact
    if rounded != exact:
        raise ValueError
    return rounded


def _floating(value: float, width: type[np.floating[Any]]) -> Any:
    with np.errstate(over="ignore"):
        held = width(value)
    if not np.isfinite(held) or (held == 0.0 and value != 0.0):
        raise ValueError
    return held


def _decided_labels(original: Any, verdicts: Sequence[Decision | None], convert: Callable[[float], Any]) -> Any:
    """The column with new labels in their places; all other values are those of the file, bit by bit."""
    import pyarrow as pa
    from pyarrow import compute

    changed = {
        k: verdict.value for k, verdict in enumerate(verdicts) if verdict is not None and verdict.value is not None
    }
    if not changed:
        return original
    if pa.types.is_dictionary(original.type):
        return _decided_categories(original, {k: convert(value) for k, value in changed.items()})
    mask = np.zeros(len(original), dtype=bool)
    mask[list(changed)] = True
    new = pa.array([convert(value) for value in changed.values()], original.type)
    return compute.replace_with_mask(original, pa.array(mask), new)


def _decided_categories(original: Any, changed: dict[int, str]) -> Any:
    """A column of categories with some replaced; categories keep their order, new ones come last."""
    import pyarrow as pa

    kind, categories = original.type, original.dictionary.to_pylist()
    categories += [text for text in dict.fromkeys(changed.values()) if text not in categories]
    place = {text: k for k, text in enumerate(categories)}
    indices = original.indices.to_pylist()
    for k, text in changed.items():
        indices[k] = place[text]
    dictionary = pa.array(categories, kind.value_type)
    return pa.DictionaryArray.from_arrays(pa.array(indices, kind.index_type), dictionary, ordered=kind.ordered)


def _trail_cells(original: Any, verdicts: Sequence[Decision | None]) -> list[list[str | None]]:
    """Action, former label and note of every row; nothing for rows that were not decided about."""
    rows: list[tuple[str | None, ...]] = [
        (None,) * len(TRAIL_COLUMNS) if verdict is None else trail_of(verdict, as_written(original[k].as_py()))
        for k, verdict in enumerate(verdicts)
    ]
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in TRAIL_COLUMNS]
