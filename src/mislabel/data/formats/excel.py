"""Workbooks: reading. Their writer is in :mod:`mislabel.data.formats.excel_copy`."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from mislabel._common.number_kinds import is_whole
from mislabel.data.column_names import check_names, check_width, unique_names
from mislabel.data.formats.cells import as_written, why_unreadable
from mislabel.data.formats.contract import LeftOut, ReadOptions, TableFile, fingerprint_of
from mislabel.data.formats.layout import Layout, recognise_layout
from mislabel.data.formats.typed_values import text_notations, typed_values
from mislabel.data.number_text import Notation
from mislabel.errors import MissingDependencyError, TableFileError

_ZEROS = re.compile(r"0{2,}")
MOST_ROWS = 1_048_576


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


@dataclass(frozen=True)
class SheetTable:
    """The table in a sheet: which of its rows are what.

    above : rows that are skipped before it. header : names of the columns, as they are written.
    """

    sheet: SheetRows
    layout: Layout
    above: int
    header: list[str]
    names: list[str]

    @classmethod
    def of(cls, path: Path, sheet: SheetRows, options: ReadOptions) -> SheetTable:
        """Recognise the layout of a sheet."""
        above = bisect_right(sheet.numbers, options.skip)
        if above == len(sheet.values):
            raise TableFileError(f"{path}: sheet {sheet.name!r} is empty{' below the skipped rows' if above else ''}.")
        grid = [[as_written(value) for value in row] for row in sheet.values[above:]]
        layout = recognise_layout(grid, sheet.numbers[above:], options, path)
        width = max([len(layout.names), *(len(grid[k]) for k in layout.rows)])
        named = layout.names if layout.header else []
        header = [*named, *("" for _ in range(width - len(named)))]
        return cls(sheet, layout, above, header, unique_names(header)[0])

    @property
    def rows(self) -> list[int]:
        """Numbers of the rows of the table in the sheet."""
        return [self.sheet.numbers[self.above + k] for k in self.layout.rows]

    def column(self, k: int) -> list[Any]:
        """The values of one column."""
        values = self.sheet.values[self.above :]
        return [values[row][k] if k < len(values[row]) else None for row in self.layout.rows]

    def shown(self, k: int) -> list[str]:
        """The same as text, as the sheet shows them."""
        places = [self.above + row for row in self.layout.rows]
        return [
            self.sheet.shown.get((place, k)) or as_written(value)
            for place, value in zip(places, self.column(k), strict=True)
        ]

    def filled(self, k: int, options: ReadOptions) -> list[Any]:
        """The values of one column, None for those that were stated to stand for none."""
        values = self.column(k)
        if not options.na:
            return values
        texts = [as_written(value) for value in values]
        return [value if text else None for value, text in zip(values, options.without_missing(texts), strict=True)]


def _table(path: Path, sheet: SheetRows, options: ReadOptions) -> TableFile:
    found = SheetTable.of(path, sheet, options)
    names = found.names
    notes = [*unique_names(found.header)[1], *found.layout.notes]
    if sheet.others:
        notes.insert(0, f"sheet {sheet.name!r} was read; there are also {', '.join(sheet.others)}.")
    columns = [found.filled(k, options) for k in range(len(names))]
    notations, doubts = text_notations(dict(zip(names, columns, strict=True)), options.numbers)
    typed: dict[str, pd.Series] = {}
    for name, column in zip(names, columns, strict=True):
        typed[name], note = typed_values(column, notations.get(name))
        notes += [f"column {name!r}: {note}"] if note else []
    notes += doubts
    place = {name: k for k, name in enumerate(names)}
    reading = found.layout.reading(names, sheet.numbers[found.above :])
    if found.above:
        reading.left_out.insert(0, LeftOut("skipped", tuple(sheet.numbers[: found.above])))
    return TableFile(
        path,
        "excel",
        frame=pd.DataFrame(typed),
        header=found.header,
        written=lambda name: found.shown(place[name]),
        fingerprint=fingerprint_of(path),
        options=options,
        lines=found.rows,
        rows=found.rows,
        reading=reading,
        is_plain=found.layout.is_plain,
        notations=notations,
        notes=notes,
    )


@dataclass(frozen=True)
class SheetLabels:
    """Where the labels stand: sheet, column and rows (counted from one), the last column in use.

    header : the row of the header, the last one of several; None where there is none. names : of all columns.
    values : the labels. notation : how those that are text write numbers, None where none is. cells : the whole sheet.
    """

    sheet: str
    column: int
    header: int | None
    rows: list[int]
    width: int
    names: list[str]
    values: list[Any]
    notation: Notation | None
    cells: SheetRows


def sheet_labels(path: Path, options: ReadOptions, label: str) -> SheetLabels:
    """The cells of the label, as the reader sees them."""
    sheet = read_sheet(path, options.sheet)
    found = SheetTable.of(path, sheet, options)
    check_names(found.names, label)
    at = found.names.index(label)
    columns = {name: found.filled(k, options) for k, name in enumerate(found.names)}
    notation = text_notations(columns, options.numbers)[0].get(label)
    header = sheet.numbers[found.above + found.layout.header[-1]] if found.layout.header else None
    width = max(len(row) for row in sheet.values)
    return SheetLabels(sheet.name, at + 1, header, found.rows, width, found.names, columns[label], notation, sheet)
