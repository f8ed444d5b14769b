"""CSV in all its dialects: reading. Its writer is in :mod:`mislabel.data.formats.text_copy`."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import re
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
from mislabel.data.formats.contract import Dialect, LeftOut, Reading, ReadOptions, TableFile
from mislabel.data.formats.layout import Layout, are_years, is_number_cell, recognise_layout
from mislabel.data.number_recognition import recognise_notations
from mislabel.errors import TableFileError

DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[ ]*(?:\r\n|\n|\r)', re.IGNORECASE)
_SNIFFED_LINES = 200
#: Lines from the header on that tell the delimiter of a table with title lines.
_LEAST_BELOW = 3
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

    before : what stands before the header, or its last record where there are several. header : that one, None where there is
    no header. names : of the columns, as they
    are written. rows : records, each with what stands between it and the one before. after : what stands after the last row.
    numbers : where each row stands, as a spreadsheet counts. layout : what the other records were taken for.
    """

    dialect: Dialect
    mark: str
    before: str
    header: Record | None
    names: list[str]
    rows: list[Record]
    after: str
    numbers: list[int]
    layout: Layout
    reading: Reading

    def columns(self, names: Sequence[str]) -> dict[str, list[str]]:
        """The cells of every column; empty where a row ends before it."""
        width = len(names)
        whole = [record.cells + [""] * (width - len(record.cells)) for record in self.rows]
        return {name: [cells[k] for cells in whole] for k, name in enumerate(names)}


def read_text_table(path: Path, options: ReadOptions) -> TableFile:
    """Read CSV, recognising encoding, delimiter, decimal mark and thousands separators."""
    raw = path.read_bytes()
    text = cut_text(raw, path, options)
    names, notes = unique_names(text.names)
    notes += _ragged(text.rows, len(names)) + _spanning(text.rows)
    notes += text.layout.notes
    written = text.columns(names)
    columns = {name: options.without_missing(cells) for name, cells in written.items()}
    found, doubts = recognise_notations(columns, delimiter=text.dialect.delimiter, options=options.numbers)
    typed: dict[str, Any] = {}
    for name, column in columns.items():
        typed[name], note = typed_column(column, found[name])
        if note:
            notes.append(f"column {name!r}: {note}")
    return TableFile(
        path,
        "csv",
        cells=pd.DataFrame(written, dtype=object),
        frame=pd.DataFrame(typed),
        header=text.names,
        written=written.__getitem__,
        lines=[record.line for record in text.rows],
        rows=text.numbers,
        reading=text.reading,
        is_plain=text.layout.is_plain,
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


def unpacked(raw: bytes, path: Path) -> bytes:
    """The bytes of a file, those inside of a .gz file."""
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


def cut_text(raw: bytes, path: Path, options: ReadOptions) -> CutText:
    """The records of a text table from the bytes of its file."""
    text, encoding, mark = _decode(unpacked(raw, path), path)
    skipped, text = _without_lines(text, options.skip)
    stated, text, delimiter = _stated_delimiter(text)
    if delimiter is None:
        delimiter = "\t" if ".tsv" in path.name.lower() else recognise_delimiter(text)
    skipped += stated
    lines = len(skipped.splitlines())
    records = records_of(text, delimiter, path, lines)
    filled = [k for k, record in enumerate(records) if not record.is_empty]
    if not filled:
        raise TableFileError(f"{path} holds no table, only blank lines.")
    # A single column makes every missing value a blank line: those rows stay.
    single = len(records[filled[0]].cells) == 1 and not any(any(records[k].cells[1:]) for k in filled)
    kept = [k for k in range(filled[0], filled[-1] + 1) if single or not records[k].is_blank_line]
    numbers = [lines + k + 1 for k in kept]
    layout = recognise_layout([records[k].cells for k in kept], numbers, options, path)
    width = len(layout.names)
    check_width(path, width)
    header = records[kept[layout.header[-1]]] if layout.header else None
    rows: list[Record] = []
    done = kept[layout.header[-1]] + 1 if layout.header else 0
    for k in layout.rows:
        record = records[kept[k]]
        gap = "".join(other.raw for other in records[done : kept[k]])
        done = kept[k] + 1
        if len(record.cells) > width and any(record.cells[width:]):
            raise _too_wide(path, record, delimiter, width, header)
        surplus = max(len(record.cells) - width, 0)
        rows.append(Record(record.cells[:width], record.raw, record.line, surplus, gap) if gap or surplus else record)
    line_end = "\r\n" if records[filled[0]].raw.endswith("\r\n") else "\n"
    before = skipped + "".join(record.raw for record in records[: kept[layout.header[-1]] if header else 0])
    after = "".join(record.raw for record in records[done:])
    places = [numbers[k] for k in layout.rows]
    reading = layout.reading(unique_names(layout.names)[0], numbers)
    if skipped:
        reading.left_out.insert(0, LeftOut("skipped", tuple(range(1, lines + 1))))
    dialect = Dialect(delimiter, encoding, line_end)
    return CutText(dialect, mark, before, header, layout.names, rows, after, places, layout, reading)


def _too_wide(path: Path, record: Record, delimiter: str, width: int, header: Record | None) -> TableFileError:
    where = f"the header, taken to be line {header.line}," if header else "the first line"
    return TableFileError(
        f"{path} cannot be read as a table separated by {delimiter!r}: Expected {width} fields in line "
        f"{record.line}, saw {len(record.cells)}. Every line needs as many cells as {where} has; pass --header N if that is "
        "line N."
    )


def _without_lines(text: str, count: int) -> tuple[str, str]:
    """The first lines of a text, and the rest."""
    lines = text.splitlines(keepends=True) if count else []
    at = sum(map(len, lines[:count]))
    return text[:at], text[at:]


def _stated_delimiter(text: str) -> tuple[str, str, str | None]:
    """The first line where it states the delimiter, as spreadsheets understand it (``sep=;``), the rest, and the delimiter."""
    found = _SEPARATOR_LINE.match(text)
    if found is None or found[1] not in DELIMITERS:
        return "", text, None
    return text[: found.end()], text[found.end() :], found[1]


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


def recognise_delimiter(text: str) -> str:
    """The delimiter that splits the first lines into the most columns, consistently."""
    sample = text[:_SNIFFED_CHARACTERS]
    best, best_score = ",", 0.0
    split: dict[str, list[list[str]]] = {}
    for delimiter in DELIMITERS:
        rows = _split(sample, delimiter)
        if rows is None:
            continue
        if len(sample) < len(text) and len(rows) > 1:
            rows.pop()  # may be cut off
        split[delimiter] = rows
        sizes = np.array([len(row) for row in rows])
        if not rows or sizes[0] < 2:
            continue
        # Commas inside "1,5;2,5" split rows as well as semicolons do; the header tells.
        score = float(np.mean(sizes == sizes[0])) * (1.0 + 0.01 * min(sizes[0], 50))
        if score > best_score:
            best, best_score = delimiter, score
    below = {delimiter: _score_below_titles(rows) for delimiter, rows in split.items()}
    other = max(below, key=lambda delimiter: below[delimiter], default=best)
    # Title lines hide the header from the first look. A comma may be one of decimals, in titles and in cells.
    if below.get(other, 0.0) > max(best_score, 0.9) or (best == "," != other and below.get(other, 0.0) >= 1.0):
        return other
    return best


def _split(sample: str, delimiter: str) -> list[list[str]] | None:
    """The first rows of a text, split by a delimiter; None where that cannot be."""
    rows = []
    with _cells_of_any_length():
        try:
            for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
                if row:
                    rows.append(row)
                if len(rows) >= _SNIFFED_LINES:
                    break
        except csv.Error:
            return None
    return rows


def _score_below_titles(rows: list[list[str]]) -> float:
    """How consistently rows are split below lines of other widths, the first of them being a header without numbers.

    Zero where nothing stands above the header, or where it is none.
    """
    widths = [len(row) for row in rows]
    common = max(set(widths), key=widths.count, default=0)
    first = widths.index(common) if widths else 0
    if common < 2 or not 0 < first <= len(rows) // 2 or len(rows) - first < _LEAST_BELOW:
        return 0.0
    header, *below = rows[first:]
    numbers = [cell.strip() for cell in header if is_number_cell(cell)]
    if numbers and (len(numbers) == len(header) or not are_years(numbers)):
        return 0.0
    if not any(is_number_cell(cell) for row in below for cell in row):
        return 0.0
    return float(np.mean([len(row) == common for row in below])) * (1.0 + 0.01 * min(common, 50))


def records_of(text: str, delimiter: str, path: Path, above: int = 0) -> list[Record]:
    """Cut a text, before which so many lines stand ``above``, into records; all of it is in one of them."""
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
                records.append(Record(cells, raw, above + at + 1))
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
