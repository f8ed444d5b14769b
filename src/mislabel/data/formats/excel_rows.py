"""Rows dropped from a sheet: those below move up, with the ranges that name them, unless something refers to rows by number."""

from __future__ import annotations

import posixpath
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from mislabel.data.formats.excel_parts import RANGES, REFERENCE, Book, Element, Parts, Sheet, Splices, scan_sheet
from mislabel.errors import TableFileError

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
#: Parts, anywhere in a workbook, that may refer to rows of any sheet.
_PARTS_TIED_TO_ROWS = ("charts/", "drawings/", "pivot", "externalLinks/", "connections", "queryTables/")
#: Kinds of parts that a sheet may refer to without rows mattering.
_HARMLESS = ("/printerSettings", "/table", "/customProperty", "/hyperlink")


def drop_rows(
    book: Book, parts: Parts, sheet: Sheet, splices: Splices, dropped: set[int], replaced: set[int], source: Path
) -> dict[str, bytes]:
    """Take rows out of a sheet; returns other parts of the workbook that change with it.

    dropped : numbers of rows. replaced : where cells stand that have their new place already.
    """
    _refuse_references(book, parts, sheet, source)
    _refuse_merged(sheet, dropped, source)
    shifted, ends = new_numbers(dropped), _new_ends(dropped)
    _remove(splices, sheet, dropped, replaced, shifted)
    _shift_ranges(splices, sheet.ranged, shifted, ends)
    changed = {}
    for target, kind in parts.relations.items():
        if kind.endswith("/table"):
            part = book.read(target)
            table = Splices(part)
            _shift_ranges(table, scan_sheet(part).ranged, shifted, ends)
            changed[target] = table.done()
    return changed


def _refuse_merged(sheet: Sheet, dropped: set[int], source: Path) -> None:
    """Complain about rows that cannot be dropped since they are merged with others."""
    for element in sheet.ranged:
        numbers = [int(row) for _, row in REFERENCE.findall(element.attributes.get("ref", ""))]
        if element.name == "mergeCell" and any(min(numbers) <= row <= max(numbers) for row in dropped):
            raise TableFileError(
                f"{source}: a row to drop is part of merged cells ({element.attributes['ref']}); separate them first."
            )


def _refuse_references(book: Book, parts: Parts, sheet: Sheet, source: Path) -> None:
    """Complain where rows are referred to by their number, in ways that a copy without some of them would break."""
    advice = "Keep these rows and mark them instead, or save the sheet as CSV or without what refers to its rows, and audit that."
    others = [scan_sheet(book.read(name)) for name in parts.sheets if name != parts.sheet]
    formulas = sheet.formulas + sum(other.formulas for other in others)
    if formulas:
        raise TableFileError(
            f"{source}: {formulas} cells hold formulas, which would point at other rows after a drop. {advice}"
        )
    tied = sheet.tied or next((other.tied for other in others if other.tied and other.tied.startswith("rule")), None)
    tied = tied or next((name for name in book.namelist() if any(kind in name for kind in _PARTS_TIED_TO_ROWS)), None)
    if tied is not None:
        raise TableFileError(
            f"{source}: the workbook holds something tied to its rows by their number ({tied}). {advice}"
        )
    tree = ElementTree.fromstring(book.read(parts.workbook))
    named = [element.get("name", "") for element in tree.iter(f"{_MAIN}definedName")]
    if named:
        raise TableFileError(f"{source}: the workbook has named ranges or filters ({', '.join(named[:3])}). {advice}")
    for target, kind in parts.relations.items():
        if not kind.endswith(_HARMLESS):
            what = kind.rpartition("/")[2]
            raise TableFileError(
                f"{source}: the sheet holds a {what} ({posixpath.basename(target)}) tied to its rows. {advice}"
            )


def new_numbers(dropped: set[int]) -> Callable[[int], int]:
    """Where rows move to; a dropped one to where its successor does."""
    gone = sorted(dropped)
    return lambda number: number - bisect_left(gone, number)


def _new_ends(dropped: set[int]) -> Callable[[int], int]:
    """Where the last rows of ranges move to; a dropped one to where its predecessor does."""
    gone = sorted(dropped)
    return lambda number: max(number - bisect_right(gone, number), 1)


def _remove(
    splices: Splices, sheet: Sheet, dropped: set[int], replaced: set[int], shifted: Callable[[int], int]
) -> None:
    for row in sheet.rows:
        number = int(row.attributes["r"])
        if number in dropped:
            splices.replace(row.start, row.end, "")
        elif shifted(number) != number:
            splices.attribute(row, "r", str(shifted(number)))
            for cell in row.children:
                if cell.start not in replaced:
                    splices.attribute(cell, "r", shift(cell.attributes["r"], shifted))


def _shift_ranges(
    splices: Splices, ranged: list[Element], shifted: Callable[[int], int], ends: Callable[[int], int]
) -> None:
    for element in ranged:
        for name in RANGES:
            if name in element.attributes:
                splices.attribute(element, name, _shift_range(element.attributes[name], shifted, ends))


def _shift_range(text: str, shifted: Callable[[int], int], ends: Callable[[int], int]) -> str:
    """Ranges, one after the other, of which the first row moves one way and the last the other."""
    moved = []
    for one in text.split(" "):
        first, colon, last = one.partition(":")
        moved.append(shift(first, shifted) + colon + (shift(last, ends) if colon else ""))
    return " ".join(moved)


def shift(reference: str, shifted: Callable[[int], int]) -> str:
    """A reference to a cell, or several, with the numbers of rows moved."""
    return REFERENCE.sub(lambda found: found[1] + str(shifted(int(found[2]))), reference)
