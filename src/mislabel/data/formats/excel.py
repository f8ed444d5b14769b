"""Workbooks: reading. Their writer is in :mod:`mislabel.data.formats.excel_copy`."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from mislabel.data.formats.contract import (
    ReadOptions,
    TableFile,
    check_width,
    fingerprint_of,
    mostly_numbers,
    typed_column,
    unique_names,
    why_unreadable,
)
from mislabel.data.number_text import Notation, is_missing, notation_of_column, shortest
from mislabel.errors import MissingDependencyError, TableFileError

_ZEROS = re.compile(r"0{2,}")
_MOST_ROWS = 1_048_576
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
    if sheet not in names:
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
        if number > _MOST_ROWS:
            raise TableFileError(f"{path}: a sheet cannot have more than {_MOST_ROWS:,} rows; this one is damaged.")
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
            if (
                isinstance(found[k], int)
                and not isinstance(found[k], bool)
                and _ZEROS.fullmatch(cell.number_format or "")
            ):
                shown[len(values), k] = str(found[k]).zfill(len(cell.number_format))
        numbers.append(number)
        values.append(found)
    return numbers, values, shown


def _table(path: Path, sheet: SheetRows, options: ReadOptions) -> TableFile:
    if not sheet.values:
        raise TableFileError(f"{path}: sheet {sheet.name!r} is empty.")
    width = max(len(row) for row in sheet.values)
    header, rows = _header(sheet, width), sheet.values[1:]
    names, notes = unique_names(header)
    if sheet.others:
        notes.insert(0, f"sheet {sheet.name!r} was read; there are also {', '.join(sheet.others)}.")
    columns = [[row[k] if k < len(row) else None for row in rows] for k in range(width)]
    typed: dict[str, pd.Series] = {}
    notations: dict[str, Notation] = {}
    for name, column in zip(names, columns, strict=True):
        typed[name], found, column_notes = _typed(column, options)
        notes += [f"column {name!r}: {note}" for note in column_notes]
        if found is not None:
            notations[name] = found
    place = {name: k for k, name in enumerate(names)}

    def written(name: str) -> list[str]:
        k = place[name]
        return [
            sheet.shown.get((row + 1, k)) or ("" if value is None else _as_written(value))
            for row, value in enumerate(columns[k])
        ]

    return TableFile(
        path,
        "excel",
        frame=pd.DataFrame(typed),
        header=header,
        written=written,
        fingerprint=fingerprint_of(path),
        options=options,
        notations=notations,
        notes=notes,
    )


def _as_written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and np.isfinite(value):
        return shortest(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def _typed(values: Sequence[Any], options: ReadOptions) -> tuple[pd.Series, Notation | None, list[str]]:
    """One column as numbers, dates, booleans or text; how its text writes numbers; notes."""
    values = [None if isinstance(value, str) and (is_missing(value) or value in _ERRORS) else value for value in values]
    filled = [value for value in values if value is not None]
    if not filled:
        return pd.Series(np.full(len(values), np.nan)), None, []
    if all(isinstance(value, bool) for value in filled):
        return pd.Series(values, dtype=object if len(filled) < len(values) else bool), None, []
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in filled):
        return pd.Series([np.nan if value is None else _double(value) for value in values]), None, []
    if all(isinstance(value, datetime.datetime | datetime.date) for value in filled):
        return pd.to_datetime(pd.Series(values, dtype=object), errors="coerce"), None, []
    if any(isinstance(value, str) for value in filled):
        return _with_text(values, options)
    return pd.Series([None if value is None else _as_written(value) for value in values], dtype=object), None, []


def _double(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _with_text(values: Sequence[Any], options: ReadOptions) -> tuple[pd.Series, Notation | None, list[str]]:
    """Text, or numbers of which some were entered as text."""
    cells = ["" if value is None else _as_written(value) for value in values]
    texts = [value if isinstance(value, str) else "" for value in values]
    notation, notes = notation_of_column(texts, options=options.numbers)
    numbers = Notation() if mostly_numbers(values) else None
    if notation is None and numbers is None:
        return typed_column(cells, None)[0], None, []
    column, note = typed_column(texts, notation or Notation())
    direct = [_double(value) if _is_number(value) else np.nan for value in values]
    column = column.where(column.notna(), pd.Series(direct))
    read = int(column.notna().sum())
    filled = sum(value is not None for value in values)
    if read < 0.9 * filled:
        return typed_column(cells, None)[0], None, []
    return column, notation, [*notes, *([note] if note else [])]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class SheetLabels:
    """Where the labels stand: sheet, column and rows (counted from one, that of the header first), the last column in use."""

    sheet: str
    column: int
    rows: list[int]
    width: int
    values: list[Any]


def sheet_labels(path: Path, sheet: str | None, label: str) -> SheetLabels:
    """The cells of the label, as the reader sees them."""
    found = read_sheet(path, sheet)
    width = max(len(row) for row in found.values)
    names, _ = unique_names(_header(found, width))
    at = names.index(label)
    values = [row[at] if at < len(row) else None for row in found.values[1:]]
    return SheetLabels(found.name, at + 1, found.numbers, width, values)


def _header(sheet: SheetRows, width: int) -> list[str]:
    named = ["" if value is None else _as_written(value) for value in sheet.values[0]]
    return named + [""] * (width - len(named))
