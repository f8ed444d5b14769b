"""Corrected Parquet files, copied piece by piece. What a column's type cannot hold is refused, not converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation, localcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mislabel._common.short_numbers import shortest
from mislabel.data.column_names import check_names, unique_names
from mislabel.data.formats.cells import as_written
from mislabel.data.formats.corrected_copy import (
    TRAIL_COLUMNS,
    Decision,
    Decisions,
    check_row_count,
    check_trail,
    refuse_values,
    trail_of,
)
from mislabel.data.formats.parquet import (
    ROWS_COPIED,
    arrow_errors,
    is_text,
    open_parquet,
    pieces,
    stored_columns,
    text_cells,
    text_looks,
    why_not_copied,
)
from mislabel.data.number_recognition import notations_of
from mislabel.data.number_text import Notation
from mislabel.errors import InvalidParameterError, TableFileError

#: Digits of the widest decimal type.
_DECIMAL_DIGITS = 76


def write_parquet_table(source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
    """Copy a Parquet file piece by piece: it need not fit into memory."""
    import pyarrow as pa
    from pyarrow import parquet

    with open_parquet(source) as stored:
        with arrow_errors(source):
            stored_names = stored_columns(stored)
            names, _ = unique_names(stored_names)
            check_names(names, chosen.label)
            label = stored_names[names.index(chosen.label)]
            check_row_count(source, stored.metadata.num_rows, chosen)
            schema = stored.schema_arrow
            at = schema.get_field_index(label)
            notation = _text_notation(source, stored, label, chosen) if is_text(schema.field(at).type) else Notation()
            convert = converter_to(source, schema.field(at).type, notation, label, chosen)
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
                with arrow_errors(source):
                    original = batch.column(at)
                    columns = [*batch.columns]
                    columns[at] = decided_labels(original, verdicts, convert)
                    if trail:
                        columns += [pa.array(values, pa.string()) for values in trail_cells(original, verdicts)]
                    kept = pa.array([verdict is None or verdict.action != "drop" for verdict in verdicts])
                    cleaned = pa.record_batch(columns, schema=schema).filter(kept)
                writer.write_batch(cleaned)
                first += batch.num_rows
    if first != chosen.rows:
        raise TableFileError(f"{source} announces {chosen.rows} rows and holds {first}: it is damaged.")


def _compression(stored: Any) -> str:
    if not stored.metadata.num_row_groups or not stored.metadata.num_columns:
        return "snappy"
    name = str(stored.metadata.row_group(0).column(0).compression).lower()
    return (
        "none" if name == "uncompressed" else name if name in ("snappy", "gzip", "brotli", "zstd", "lz4") else "snappy"
    )


def converter_to(
    source: Path, kind: Any, notation: Notation, label: str, chosen: Decisions
) -> Callable[[float, Any], Any]:
    """From a new label and the former one to a value of the column's type; first of all, refuses what that cannot hold.

    notation : of a column of text.
    """
    import pyarrow as pa

    if is_text(kind):
        return lambda value, former: notation.write_like(value, former or "")
    convert: Callable[[float], Any]
    if pa.types.is_integer(kind):
        convert = _whole
    elif pa.types.is_decimal(kind):
        convert = lambda value: _decimal(value, kind.scale)  # noqa: E731
    elif pa.types.is_floating(kind):
        widths: dict[int, type[np.floating[Any]]] = {16: np.float16, 32: np.float32, 64: np.float64}
        width = widths[kind.bit_width]
        convert = lambda value: _floating(value, width)  # noqa: E731
    else:
        raise InvalidParameterError(f"{source}: labels of type {kind} cannot be corrected; only numbers and text can.")
    refused = []
    for position, value in chosen.values.items():
        try:
            pa.array([convert(value)], kind)
        except (ValueError, OverflowError, InvalidOperation, pa.ArrowException):
            refused.append((position, value))
    if refused:
        raise refuse_values(source, str(kind), *zip(*refused, strict=True))
    return lambda value, former: convert(value)


def _text_notation(source: Path, stored: Any, label: str, chosen: Decisions) -> Notation:
    names = stored_columns(stored)
    looks = {
        name: look for name, look in zip(names, text_looks(source, chosen.options), strict=True) if look is not None
    }
    found = notations_of(looks, None, chosen.options.numbers)[0][label] or Notation()
    return found.of_column(chosen.options.without_missing(text_cells(stored.read(columns=[label]).column(label))))


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


def decided_labels(original: Any, verdicts: Sequence[Decision | None], convert: Callable[[float, Any], Any]) -> Any:
    """The column with new labels in their places; all other values are those of the file, bit by bit."""
    import pyarrow as pa

    changed = {
        k: verdict.value for k, verdict in enumerate(verdicts) if verdict is not None and verdict.value is not None
    }
    if not changed:
        return original
    new_values = {k: convert(value, original[k].as_py()) for k, value in changed.items()}
    if pa.types.is_dictionary(original.type):
        return _decided_categories(original, new_values)
    new = pa.array(list(new_values.values()), original.type)
    places = np.arange(len(original))
    places[list(changed)] = len(original) + np.arange(len(changed))
    return pa.concat_arrays([original, new]).take(pa.array(places))


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


def trail_cells(original: Any, verdicts: Sequence[Decision | None]) -> list[list[str | None]]:
    """Action, former label and note of every row; nothing for rows that were not decided about."""
    rows: list[tuple[str | None, ...]] = [
        (None,) * len(TRAIL_COLUMNS) if verdict is None else trail_of(verdict, as_written(original[k].as_py()))
        for k, verdict in enumerate(verdicts)
    ]
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in TRAIL_COLUMNS]
