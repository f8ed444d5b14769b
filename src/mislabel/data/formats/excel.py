"""Workbooks: reading. Their writer is in :mod:`mislabel.data.formats.excel_copy`."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from mislabel._common.number_kinds import is_number, is_whole
from mislabel.data.column_names import check_names, check_width, unique_names
from mislabel.data.formats.cells import as_written, mostly_numbers, typed_column, unread_note, why_unreadable
from mislabel.data.formats.contract import ReadOptions, TableFile, fingerprint_of
from mislabel.data.number_recognition import ColumnCells, notations_of
from mislabel.data.number_text import NUMERIC_FRACTION, Notation, NumberOptions, is_missing
from mislabel.errors import MissingDependencyError, TableFileError

_ZEROS = re.compile(r"0{2,}")
MOST_ROWS = 1_048_576
_ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})


@dataclass(frozen=True)
class SheetRows:
    """The rows of a sheet that hold anything.

    numbers : where each stands in the sheet, counted from one. values : its cells, None where nothing stands.
    shown : texts of whole numbers that are shown with leading zeros, by place in ``values``.
    """

    name: str
    others: list[str]
    numbers: list[int]
    values: list[tuple[Any, ...]]
    shown: dict[tuple[int, int], str]


def read_workbook(path: Path, options: ReadOptions) -> TableFile:
    """Read the first sheet, or the named one, of an Excel workbook."""
    sheet = read_sheet(path, options.sheet)
    return _table(path, sheet, options)


def read_other_workbook(path: Path, options: ReadOptions) -> TableFile:
    """Read a sheet of an old Excel or an OpenDocument workbook, through pandas."""
    try:
        with pd.ExcelFile(path) as book:
            names = [str(name) for name in book.sheet_names]
            chosen = _chosen_sheet(path, names, options.sheet)
            frame = pd.read_excel(book, sheet_name=chosen, header=None, dtype=object, na_filter=False)
    except ImportError as error:
        package = "xlrd" if path.suffix.lower() == ".xls" else "odfpy"
        raise MissingDependencyError(
            f"{path.suffix} files need {package}: pip install {package}, or save the file as .xlsx ({why_unreadable(error)})"
        ) from None
    except TableFileError:
        raise
    except Exception as error:
        raise TableFileError(f"{path} cannot be read as a workbook: {why_unreadable(error)}") from None
    rows = [tuple(None if value == "" else value for value in row) for row in frame.itertuples(index=False, name=None)]
    filled = [k for k, row in enumerate(rows) if any(value is not None for value in row)]
    others = [name for name in names if name != chosen]
    sheet = SheetRows(chosen, others, [k + 1 for k in filled], [rows[k] for k in filled], {})
    return _table(path, sheet, options)


def _chosen_sheet(path: Path | BinaryIO, names: Sequence[str], sheet: str | None) -> str:
    if sheet is None and names:
        return names[0]
    if sheet is None or sheet not in names:
        raise TableFileError(f"{path} has no sheet {sheet!r}; it has: {', '.join(names)}.")
    return sheet


def read_sheet(path: Path | BinaryIO, sheet: str | None) -> SheetRows:
    """The cells of one sheet of an .xlsx workbook."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingDependencyError("Excel files need openpyxl: pip install openpyxl.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(path, read_only=True, data_only=True)
            try:
                names = [page.title for page in book.worksheets]
                chosen = _chosen_sheet(path, names, sheet)
                page = book[chosen]
                numbers, values, shown = _filled_rows(page, path)
            finally:
                book.close()
    except TableFileError:
        raise
    except Exception as error:  # damaged archives and XML make openpyxl raise nearly anything
        raise TableFileError(f"{path} cannot be read as a workbook: {why_unreadable(error)}") from None
    return SheetRows(chosen, [name for name in names if name != chosen], numbers, values, shown)


def _filled_rows(
    page: Any, path: Path | BinaryIO
) -> tuple[list[int], list[tuple[Any, ...]], dict[tuple[int, int], str]]:
    # The size that a sheet claims may be that of one stray cell in its last corner.
    page.reset_dimensions()
    numbers: list[int] = []
    values: list[tuple[Any, ...]] = []
    shown: dict[tuple[int, int], str] = {}
    width = 0
    for number, row in enumerate(page.iter_rows(), 1):
        if number > MOST_ROWS:
            raise TableFileError(f"{path}: a sheet cannot have more than {MOST_ROWS:,} rows; this one is damaged.")
        if not row:
            continue
        found = tuple(cell.value for cell in row)
        while found and (found[-1] is None or found[-1] == ""):
            found = found[:-1]
        if not found:
            continue
        width = max(width, len(found))
        check_width(path, width)
        for k, cell in enumerate(row[: len(found)]):
            if is_whole(found[k]) and _ZEROS.fullmatch(cell.number_format or ""):
                shown[len(values), k] = str(found[k]).zfill(len(cell.number_format))
        numbers.append(number)
        values.append(found)
    return numbers, values, shown


def _table(path: Path, sheet: SheetRows, options: ReadOptions) -> TableFile:
    if not sheet.values:
        raise TableFileError(f"{path}: sheet {sheet.name!r} is empty.")
    width = max(len(row) for row in sheet.values)
    header = _header(sheet, width)
    names, notes = unique_names(header)
    if sheet.others:
        notes.insert(0, f"sheet {sheet.name!r} was read; there are also {', '.join(sheet.others)}.")
    columns = [_column(sheet, k) for k in range(width)]
    notations, doubts = text_notations(dict(zip(names, columns, strict=True)), options.numbers)
    typed: dict[str, pd.Series] = {}
    for name, column in zip(names, columns, strict=True):
        typed[name], note = _typed(column, notations.get(name))
        notes += [f"column {name!r}: {note}"] if note else []
    notes += doubts
    place = {name: k for k, name in enumerate(names)}

    def written(name: str) -> list[str]:
        k = place[name]
        return [sheet.shown.get((row + 1, k)) or as_written(value) for row, value in enumerate(columns[k])]

    return TableFile(
        path,
        "excel",
        frame=pd.DataFrame(typed),
        header=header,
        written=written,
        fingerprint=fingerprint_of(path),
        options=options,
        lines=sheet.numbers[1:],
        notations=notations,
        notes=notes,
    )


def text_notations(
    columns: Mapping[str, Sequence[Any]], options: NumberOptions
) -> tuple[dict[str, Notation], list[str]]:
    """How columns that hold text write numbers in it, and notes about cells that could be two numbers."""
    looks = {name: _look(values) for name, values in columns.items() if any(texts_of(values))}
    found, doubts = notations_of(looks, None, options)
    return {name: notation for name, notation in found.items() if notation is not None}, doubts


def _look(values: Sequence[Any]) -> ColumnCells:
    """What the text in a column says; limits (``<0.5``) stand as text beside what was entered as numbers."""
    look = ColumnCells.of(texts_of(values))
    if not look.limits:
        return look
    return look.with_numbers_beside({as_written(value) for value in values if is_number(value)})


def texts_of(values: Sequence[Any]) -> list[str]:
    """The cells that were entered as text; empty for all others."""
    return [value if isinstance(value, str) else "" for value in values]


def _typed(values: Sequence[Any], notation: Notation | None) -> tuple[pd.Series, str]:
    """One column as numbers, dates, booleans or text, and a note."""
    values = [None if isinstance(value, str) and (is_missing(value) or value in _ERRORS) else value for value in values]
    filled = [value for value in values if value is not None]
    if not filled:
        return pd.Series(np.full(len(values), np.nan)), ""
    if all(isinstance(value, bool) for value in filled):
        return pd.Series(values, dtype=object if len(filled) < len(values) else bool), ""
    if all(is_number(value) for value in filled):
        return pd.Series([np.nan if value is None else _double(value) for value in values]), ""
    if all(isinstance(value, datetime.datetime | datetime.date) for value in filled):
        return pd.to_datetime(pd.Series(values, dtype=object), errors="coerce"), ""
    if notation is not None or mostly_numbers(values):
        column, note = typed_column(texts_of(values), notation or Notation())
        direct = [_double(value) if is_number(value) else np.nan for value in values]
        column = column.astype(float).where(column.notna(), pd.Series(direct))
        if column.notna().sum() >= NUMERIC_FRACTION * len(filled):
            unread = len(filled) - int(column.notna().sum())
            return column, note or (unread_note(unread, len(filled)) if unread else "")
    kinds = sorted({_KINDS.get(type(value), "text") for value in filled})
    note = f"it holds {' and '.join(kinds)}; all were read as text" if len(kinds) > 1 else ""
    return typed_column([as_written(value) for value in values], None)[0], note


#: What values of a workbook are called.
_KINDS = {
    bool: "yes or no",
    int: "numbers",
    float: "numbers",
    datetime.datetime: "dates",
    datetime.date: "dates",
    datetime.time: "times",
    datetime.timedelta: "times",
}


def _double(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        return np.nan
    return number if np.isfinite(number) else np.nan


@dataclass(frozen=True)
class SheetLabels:
    """Where the labels stand: sheet, column and rows (counted from one, that of the header first), the last column in use.

    names : of all columns. values : the labels. notation : how those that are text write numbers, None where none is.
    cells : the whole sheet.
    """

    sheet: str
    column: int
    rows: list[int]
    width: int
    names: list[str]
    values: list[Any]
    notation: Notation | None
    cells: SheetRows


def sheet_labels(path: Path, options: ReadOptions, label: str) -> SheetLabels:
    """The cells of the label, as the reader sees them."""
    found = read_sheet(path, options.sheet)
    width = max((len(row) for row in found.values), default=0)
    names, _ = unique_names(_header(found, width))
    check_names(names, label)
    at = names.index(label)
    columns = {name: _column(found, k) for k, name in enumerate(names)}
    notation = text_notations(columns, options.numbers)[0].get(label)
    return SheetLabels(found.name, at + 1, found.numbers, width, names, columns[label], notation, found)


def _column(sheet: SheetRows, k: int) -> list[Any]:
    """One column of a sheet, without its header."""
    return [row[k] if k < len(row) else None for row in sheet.values[1:]]


def _header(sheet: SheetRows, width: int) -> list[str]:
    named = [as_written(value) for value in sheet.values[0]] if sheet.values else []
    return named + [""] * (width - len(named))
