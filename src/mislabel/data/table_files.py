"""Tables in files: CSV in all its dialects, Parquet, Excel. What is read is kept verbatim, so that it can be written back."""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel.data.number_text import NumberStyle, is_missing, recognise_style
from mislabel.errors import MissingDependencyError, TableFileError

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_LINES = 200
_SNIFFED_ROWS = 2000
#: A column counts as numeric when at least this fraction of its filled cells are numbers.
_NUMERIC_FRACTION = 0.9
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    delimiter: str = ","
    encoding: str = "utf-8"
    line_end: str = "\n"
    numbers: NumberStyle = field(default_factory=NumberStyle)

    def describe(self) -> str:
        """In words, for a summary."""
        name = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}[self.delimiter]
        point = "comma" if self.numbers.decimal == "," else "point"
        return f"{name}-separated, {self.encoding}, decimal {point}"


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table as it stands in its file.

    cells : every cell as it was read: text for CSV, typed for Parquet and Excel.
    frame : the same with numbers as numbers and missing values as such; columns have unique names.
    fingerprint : SHA-256 of the file's bytes.
    notes : what had to be decided or repaired while reading, in words.
    """

    path: Path
    format: str
    cells: pd.DataFrame
    frame: pd.DataFrame
    header: list[str]
    dialect: Dialect | None
    fingerprint: str
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frame)


def fingerprint_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def read_table(path: str | Path, sheet: str | None = None) -> TableFile:
    """Read a table by its extension: csv, tsv, txt (also .gz), parquet, xlsx, xls, ods."""
    path = Path(path)
    reader = table_reader(path)
    if not path.exists():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    if path.is_dir():
        raise TableFileError(f"{path} is a folder, not a table.")
    if path.stat().st_size == 0:
        raise TableFileError(f"{path} is empty.")
    table = reader(path, sheet)
    if not len(table.frame.columns):
        raise TableFileError(f"{path} has no columns.")
    if not len(table.frame):
        raise TableFileError(f"{path} has a header but no rows.")
    return table


def table_reader(path: Path) -> Callable[[Path, str | None], TableFile]:
    """The reader that belongs to an extension."""
    suffixes = [suffix.lower().lstrip(".") for suffix in path.suffixes]
    name = suffixes[-2] if suffixes[-1:] == ["gz"] and len(suffixes) > 1 else (suffixes[-1] if suffixes else "")
    if name not in READERS:
        known = ", ".join(READERS)
        raise TableFileError(f"{path}: tables are read from files ending in {known} (csv, tsv and txt also as .gz).")
    return READERS[name]


def similar_file(path: Path) -> str:
    """Advice for a file that is not there."""
    if not path.parent.is_dir():
        return f" The folder {path.parent} does not exist."
    close = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def read_text_table(path: Path, sheet: str | None = None) -> TableFile:
    """Read CSV, recognising encoding, delimiter, decimal mark and thousands separators."""
    raw = path.read_bytes()
    fingerprint = hashlib.sha256(raw).hexdigest()
    if path.suffix.lower() == ".gz":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError) as error:
            raise TableFileError(f"{path}: not a complete gzip file ({error}).") from None
    text, encoding = _decode(raw, path)
    line_end = "\r\n" if "\r\n" in text[:100_000] else "\n"
    delimiter = "\t" if ".tsv" in path.name.lower() else _recognise_delimiter(text, path)
    whole = _parse_cells(text, delimiter, path)
    header = [str(name) for name in whole.iloc[0]]
    cells = whole.iloc[1:].reset_index(drop=True)
    names, notes = unique_names(header)
    cells.columns = pd.Index(names)
    blank = (cells == "").all(axis=1)
    if blank.any():
        # A single empty column makes every missing value a blank line: those rows stay.
        last = len(cells) - 1 if len(names) > 1 else -1
        while last >= 0 and blank.iloc[last]:
            last -= 1
        if len(names) > 1:
            cells = cells.iloc[: last + 1]
    sample = cells.iloc[:_SNIFFED_ROWS]
    style = recognise_style((sample[name].tolist() for name in names), delimiter=delimiter)
    dialect = Dialect(delimiter, encoding, line_end, style)
    columns: dict[str, Any] = {}
    for name in names:
        columns[name], note = _typed(cells[name], style)
        if note:
            notes.append(f"column {name!r}: {note}")
    frame = pd.DataFrame(columns, columns=names)
    return TableFile(path, "csv", cells, frame, header, dialect, fingerprint, notes)


def _decode(raw: bytes, path: Path) -> tuple[str, str]:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            try:
                return raw.decode(encoding), encoding
            except UnicodeDecodeError as error:
                raise TableFileError(f"{path}: begins as {encoding} but is not ({error}).") from None
    if raw[:4] == b"PAR1" or raw[:2] == b"PK" or b"\x00" * 8 in raw[:4096]:
        raise TableFileError(f"{path} is not a text table; its name should end in .parquet or .xlsx if it is one.")
    for encoding in ("utf-8", "cp1252", "latin-1"):
        try:
            return raw.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 decodes everything")  # pragma: no cover


def _recognise_delimiter(text: str, path: Path) -> str:
    """The delimiter that splits the first lines into the most columns, consistently."""
    sample = text[:200_000]
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        try:
            rows = []
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


def _parse_cells(text: str, delimiter: str, path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(
            io.StringIO(text, newline=""),
            sep=delimiter,
            header=None,
            dtype=str,
            na_filter=False,
            skip_blank_lines=True,
            low_memory=False,
            encoding_errors="strict",
        ).astype(object)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise TableFileError(
            f"{path} cannot be read as a table separated by {delimiter!r}: {reason}. Every line needs as many cells as the "
            "header."
        ) from None


def unique_names(header: list[str]) -> tuple[list[str], list[str]]:
    """Column names of which none is empty or taken, and what was changed for that, in words."""
    names: list[str] = []
    notes: list[str] = []
    for position, name in enumerate(header, 1):
        unique = name.strip() or f"column {position}"
        number = 2
        while unique in names:
            unique = f"{name.strip() or f'column {position}'} ({number})"
            number += 1
        if unique != name and unique != name.strip():
            notes.append(f"column {position} is called {unique!r}: its own name {name!r} is empty or taken.")
        names.append(unique)
    return names, notes


def _typed(column: pd.Series, style: NumberStyle) -> tuple[pd.Series, str]:
    """The column as numbers where it holds numbers, else text with missing values as None."""
    cells = column.tolist()
    numbers = _fast_numbers(column, style)
    missing = np.array([is_missing(cell) for cell in cells], dtype=bool)
    filled = int(np.count_nonzero(~missing))
    readable = int(np.count_nonzero(~np.isnan(numbers) & ~missing))
    if filled == 0:
        return pd.Series(np.full(len(cells), np.nan), index=column.index), ""
    if readable >= _NUMERIC_FRACTION * filled:
        unreadable = np.flatnonzero(np.isnan(numbers) & ~missing)
        numbers[missing] = np.nan
        note = ""
        if unreadable.size:
            note = (
                f"{unreadable.size} of {filled} cells are not numbers (the first is {cells[unreadable[0]][:40]!r}, "
                f"position {unreadable[0]}); read as missing"
            )
        return pd.Series(numbers, index=column.index), note
    return pd.Series([None if gone else cell for gone, cell in zip(missing, cells, strict=True)], dtype=object), ""


def _fast_numbers(column: pd.Series, style: NumberStyle) -> np.ndarray:
    if style.decimal == ".":
        numbers = np.array(pd.to_numeric(column, errors="coerce"), dtype=float)
        doubtful = np.flatnonzero(np.isnan(numbers))
        numbers[doubtful] = style.parse(column.iloc[doubtful])
    else:
        numbers = style.parse(column)
    numbers[np.isinf(numbers)] = np.nan
    return numbers


def read_parquet_table(path: Path, sheet: str | None = None) -> TableFile:
    """Read Parquet."""
    try:
        cells = pd.read_parquet(path)
    except ImportError:
        raise MissingDependencyError("Parquet needs pyarrow: pip install 'mislabel[tables]'.") from None
    except Exception as error:
        raise TableFileError(f"{path} cannot be read as Parquet: {why_unreadable(error)}") from None
    return _from_typed(path, "parquet", cells)


def read_excel_table(path: Path, sheet: str | None = None) -> TableFile:
    """Read the first sheet, or the named one, of an Excel or OpenDocument workbook."""
    try:
        engine = "openpyxl" if path.suffix.lower() == ".xlsx" else None
        with pd.ExcelFile(path, engine=engine) as book:
            names = [str(name) for name in book.sheet_names]
            chosen = sheet if sheet is not None else names[0]
            if chosen not in names:
                raise TableFileError(f"{path} has no sheet {sheet!r}; it has: {', '.join(names)}.")
            cells = pd.read_excel(book, sheet_name=chosen)
            others = [name for name in names if name != chosen]
    except ImportError:
        raise MissingDependencyError("Excel files need openpyxl: pip install 'mislabel[tables]'.") from None
    except TableFileError:
        raise
    except Exception as error:
        raise TableFileError(f"{path} cannot be read as a workbook: {why_unreadable(error)}") from None
    table = _from_typed(path, "excel", cells)
    if others:
        table.notes.append(f"sheet {chosen!r} was read; there are also {', '.join(others)}.")
    return table


def why_unreadable(error: Exception) -> str:
    """The first line of what a reader has to say."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _from_typed(path: Path, format: str, cells: pd.DataFrame) -> TableFile:
    header = [str(name) for name in cells.columns]
    names, notes = unique_names(header)
    frame = cells.set_axis(names, axis=1).reset_index(drop=True)
    for name in names:
        if _is_text(frame[name]):
            text = _as_text(frame[name])
            frame[name], note = _typed(text, recognise_style([text.iloc[:_SNIFFED_ROWS].tolist()], delimiter=","))
            if note:
                notes.append(f"column {name!r}: {note}")
    return TableFile(path, format, cells, frame, header, None, fingerprint_of(path), notes)


def _is_text(column: pd.Series) -> bool:
    if not (pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype)):
        return False
    filled = column.dropna()
    return bool(len(filled)) and all(isinstance(value, str) for value in filled.iloc[:100])


def _as_text(column: pd.Series) -> pd.Series:
    return column.astype(object).where(column.notna(), "").astype(str)


@dataclass(frozen=True)
class TextColumn:
    """A column of text, read the same way in every part of its table.

    numbers : how it writes numbers; None where it holds something else.
    """

    numbers: NumberStyle | None

    @classmethod
    def recognised(cls, column: pd.Series) -> TextColumn | None:
        """What the beginning of a column shows; None where it is no text."""
        if not _is_text(column):
            return None
        text = _as_text(column)
        style = recognise_style([text.tolist()], delimiter=",")
        return cls(style if pd.api.types.is_numeric_dtype(_typed(text, style)[0]) else None)

    def read(self, column: pd.Series) -> pd.Series:
        """Numbers, NaN where there is none; or text, None where there is none."""
        text = _as_text(column)
        missing = text.map(is_missing).to_numpy(dtype=bool)
        if self.numbers is None:
            return text.astype(object).where(~missing, None)
        numbers = _fast_numbers(text, self.numbers)
        numbers[missing] = np.nan
        return pd.Series(numbers, index=column.index)


READERS: dict[str, Callable[[Path, str | None], TableFile]] = {
    "csv": read_text_table,
    "tsv": read_text_table,
    "txt": read_text_table,
    "parquet": read_parquet_table,
    "xlsx": read_excel_table,
    "xls": read_excel_table,
    "ods": read_excel_table,
}
