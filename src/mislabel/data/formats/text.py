"""CSV in all its dialects: reading. Its writer is in :mod:`mislabel.data.formats.text_copy`."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from mislabel.data.column_names import check_width, unique_names
from mislabel.data.formats.cells import typed_column
from mislabel.data.formats.contract import Dialect, ReadOptions, TableFile
from mislabel.data.number_recognition import recognise_notations
from mislabel.errors import TableFileError

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_LINES = 200
_SNIFFED_CHARACTERS = 200_000
#: Bytes of a text table that are read at most.
_LARGEST = 4_000_000_000
_MOST_LINES = 10_000_000
_READ_AT_ONCE = 16_000_000
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass(frozen=True, eq=False)
class Record:
    """One row of a text table: its cells, and its characters from the first line to the last, line end included.

    surplus : empty cells beyond those of the header. gap : blank lines before it.
    """

    cells: list[str]
    raw: str
    line: int
    surplus: int = 0
    gap: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether no cell holds anything."""
        return not any(self.cells)

    @property
    def is_blank_line(self) -> bool:
        """Whether it has no cells, or one of blanks."""
        return not self.cells or (len(self.cells) == 1 and not self.cells[0].strip())


@dataclass(frozen=True, eq=False)
class CutText:
    """A text table, cut into records.

    before : what stands before the header. header, rows : records; after : what stands after the last row.
    """

    dialect: Dialect
    mark: str
    before: str
    header: Record
    rows: list[Record]
    after: str

    def columns(self, names: Sequence[str]) -> dict[str, list[str]]:
        """The cells of every column; empty where a row ends before it."""
        width = len(names)
        whole = [record.cells + [""] * (width - len(record.cells)) for record in self.rows]
        return {name: [cells[k] for cells in whole] for k, name in enumerate(names)}


def read_text_table(path: Path, options: ReadOptions) -> TableFile:
    """Read CSV, recognising encoding, delimiter, decimal mark and thousands separators."""
    raw = path.read_bytes()
    text = cut_text(raw, path)
    names, notes = unique_names(text.header.cells)
    notes += _ragged(text.rows, len(names)) + _spanning(text.rows)
    columns = text.columns(names)
    found, doubts = recognise_notations(columns, delimiter=text.dialect.delimiter, options=options.numbers)
    typed: dict[str, Any] = {}
    for name, column in columns.items():
        typed[name], note = typed_column(column, found[name])
        if note:
            notes.append(f"column {name!r}: {note}")
    return TableFile(
        path,
        "csv",
        cells=pd.DataFrame(columns, dtype=object),
        frame=pd.DataFrame(typed),
        header=text.header.cells,
        written=columns.__getitem__,
        lines=[record.line for record in text.rows],
        fingerprint=hashlib.sha256(raw).hexdigest(),
        options=options,
        dialect=text.dialect,
        notations={name: notation for name, notation in found.items() if notation is not None},
        notes=notes + doubts,
    )


def _ragged(rows: Sequence[Record], width: int) -> list[str]:
    short = [record.line for record in rows if len(record.cells) < width]
    if not short:
        return []
    return [
        f"{len(short)} row{'s have' if len(short) > 1 else ' has'} fewer cells than the header (the first is line "
        f"{short[0]}): what is not there was read as missing."
    ]


def _spanning(rows: Sequence[Record]) -> list[str]:
    spanning = [record.line for record in rows if any("\n" in cell or "\r" in cell for cell in record.cells)]
    if not spanning:
        return []
    return [
        f"{len(spanning)} row{'s hold' if len(spanning) > 1 else ' holds'} a quoted cell that spans lines (the first begins in "
        f"line {spanning[0]}): if that is a stray quotation mark, rows after it were taken for part of the cell."
    ]


def _unpacked(raw: bytes, path: Path) -> bytes:
    if path.suffix.lower() != ".gz":
        return raw
    try:
        with gzip.open(io.BytesIO(raw)) as packed:
            found = _all_of(packed)  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error) as error:
        raise TableFileError(f"{path}: not a complete gzip file ({error}).") from None
    if found is None:
        raise TableFileError(
            f"{path} unpacks to more than {_LARGEST / 1e9:.0f} GB of text: convert it to Parquet first."
        )
    if not found:
        raise TableFileError(f"{path} is empty.")
    return found


def _all_of(packed: BinaryIO) -> bytes | None:
    """The whole of a packed file; None where it is too large."""
    parts, size = [], 0
    while part := packed.read(_READ_AT_ONCE):
        parts.append(part)
        size += len(part)
        if size > _LARGEST:
            return None
    return b"".join(parts)


def cut_text(raw: bytes, path: Path) -> CutText:
    """The records of a text table from the bytes of its file."""
    text, encoding, mark = _decode(_unpacked(raw, path), path)
    delimiter = "\t" if ".tsv" in path.name.lower() else _recognise_delimiter(text)
    records = records_of(text, delimiter, path)
    first = next((k for k, record in enumerate(records) if not record.is_empty), None)
    if first is None:
        raise TableFileError(f"{path} holds no table, only blank lines.")
    header = records[first]
    width = len(header.cells)
    check_width(path, width)
    # A single column makes every missing value a blank line: those rows stay.
    rows: list[Record] = []
    gap = ""
    last = len(records)
    while last > first + 1 and records[last - 1].is_empty:
        last -= 1
    for record in records[first + 1 : last]:
        if record.is_blank_line and width > 1:
            gap += record.raw
            continue
        if len(record.cells) > width and any(record.cells[width:]):
            raise TableFileError(
                f"{path} cannot be read as a table separated by {delimiter!r}: Expected {width} fields in line "
                f"{record.line}, saw {len(record.cells)}. Every line needs as many cells as the header."
            )
        surplus = max(len(record.cells) - width, 0)
        rows.append(Record(record.cells[:width], record.raw, record.line, surplus, gap) if gap or surplus else record)
        gap = ""
    line_end = "\r\n" if header.raw.endswith("\r\n") else "\n"
    before = "".join(record.raw for record in records[:first])
    after = gap + "".join(record.raw for record in records[last:])
    return CutText(Dialect(delimiter, encoding, line_end), mark, before, header, rows, after)


def _decode(raw: bytes, path: Path) -> tuple[str, str, str]:
    """The text, its encoding and its byte order mark."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            plain = encoding.removesuffix("-sig")
            try:
                return raw[len(mark) :].decode(plain), encoding, mark.decode(plain)
            except UnicodeDecodeError as error:
                raise TableFileError(f"{path}: begins as {encoding} but is not ({error}).") from None
    if raw[:4] == b"PAR1" or raw[:2] == b"PK" or b"\x00" * 8 in raw:
        raise TableFileError(f"{path} is not a text table; its name should end in .parquet or .xlsx if it is one.")
    for encoding in ("utf-8", "cp1252", "latin-1"):
        try:
            return raw.decode(encoding), encoding, ""
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 decodes everything")  # pragma: no cover


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    former = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(former)


def _recognise_delimiter(text: str) -> str:
    """The delimiter that splits the first lines into the most columns, consistently."""
    sample = text[:_SNIFFED_CHARACTERS]
    best, best_score = ",", 0.0
    with _cells_of_any_length():
        for delimiter in _DELIMITERS:
            rows = []
            try:
                for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
                    if row:
                        rows.append(len(row))
                    if len(rows) >= _SNIFFED_LINES:
                        break
            except csv.Error:
                continue
            if len(sample) < len(text) and len(rows) > 1:
                rows.pop()  # may be cut off
            if not rows or rows[0] < 2:
                continue
            # Commas inside "1,5;2,5" split rows as well as semicolons do; the header tells.
            score = float(np.mean(np.array(rows) == rows[0])) * (1.0 + 0.01 * min(rows[0], 50))
            if score > best_score:
                best, best_score = delimiter, score
    return best


def records_of(text: str, delimiter: str, path: Path) -> list[Record]:
    """Cut a text into records; all of it is in one of them."""
    if text.count("\n") + text.count("\r") > _MOST_LINES:
        raise TableFileError(f"{path} has more than {_MOST_LINES:,} lines: convert it to Parquet first.")
    lines = list(io.StringIO(text, newline=""))
    records: list[Record] = []
    with _cells_of_any_length():
        reader = csv.reader(iter(lines), delimiter=delimiter)
        at = 0
        try:
            for cells in reader:
                end = reader.line_num
                raw = lines[at] if end == at + 1 else "".join(lines[at:end])
                records.append(Record(cells, raw, at + 1))
                at = end
        except csv.Error as error:
            raise TableFileError(
                f"{path} cannot be read as a table separated by {delimiter!r}: {error} (line {reader.line_num})."
            ) from None
        if records and records[-1].raw.count('"') % 2 and _ends_inside_quotes(records[-1].raw, delimiter):
            raise TableFileError(
                f"{path}: a quotation mark opens a cell in line {records[-1].line} and is never closed; the rest of the file "
                "would be one cell."
            )
    return records


def _ends_inside_quotes(raw: str, delimiter: str) -> bool:
    try:
        list(csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False
