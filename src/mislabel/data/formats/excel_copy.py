"""Cleaned workbooks: the original, part for part and byte for byte, but for the cells that were decided about.

An .xlsx file is an archive of XML parts. Labels are replaced inside the XML of their sheet, at the bytes where they stand;
charts, styles, other sheets and everything else are copied unread. Rows can be dropped only where nothing refers to rows by
their number.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import escape

from mislabel._common.short_numbers import shortest
from mislabel.data.formats.cells import as_written
from mislabel.data.formats.corrected_copy import TRAIL_COLUMNS, Decisions, check_row_count, check_trail, trail_of
from mislabel.data.formats.excel import MOST_ROWS, SheetLabels, read_sheet, sheet_labels
from mislabel.data.formats.excel_parts import REFERENCE, Book, Element, Parts, Sheet, Splices, scan_sheet
from mislabel.data.formats.excel_rows import drop_rows, new_numbers, shift
from mislabel.data.formats.typed_values import texts_of
from mislabel.errors import TableFileError

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def write_workbook(source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
    """Copy a workbook with decisions carried out in one of its sheets."""
    labels = sheet_labels(source, chosen.options, chosen.label)
    if trail:
        check_trail(source, labels.names)
        if labels.header is None:
            raise TableFileError(
                f"{source}: a trail needs a header to name its columns, and the file was read without one."
            )
    check_row_count(source, len(labels.values), chosen)
    try:
        book = Book(source)
        parts = Parts.of(book, labels.sheet, source)
        changed = _changed_parts(book, parts, labels, chosen, trail, source)
    except (ElementTree.ParseError, expat.ExpatError, KeyError, ValueError) as error:
        if isinstance(error, TableFileError):
            raise
        raise TableFileError(f"{source} cannot be copied as a workbook: {error}") from None
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as copy:
        for info in book.infos:
            copy.writestr(info, changed.get(info.filename, book.read(info.filename)), compress_type=info.compress_type)
    _check_copy(source, written, chosen, labels)
    out.write(written.getvalue())


def _check_copy(source: Path, written: io.BytesIO, chosen: Decisions, labels: SheetLabels) -> None:
    """Nothing is written that does not read back as it was meant."""
    old, at = labels.cells, labels.column - 1
    try:
        new = read_sheet(written, chosen.options.sheet)
    except TableFileError:
        raise _unsafe(source) from None
    values, place = chosen.values, {number: k for k, number in enumerate(labels.rows)}
    rows = [(place.get(number, -1), row) for number, row in zip(old.numbers, old.values, strict=True)]
    kept = [(k, row) for k, row in rows if k not in chosen.dropped]
    if len(new.values) != len(kept):
        raise _unsafe(source)
    for (position, before), after in zip(kept, new.values, strict=True):
        changes = {at} if position in values else set()
        after += (None,) * (len(before) - len(after))
        if any(after[k] != cell for k, cell in enumerate(before) if k not in changes):
            raise _unsafe(source)
        if position in values and not isinstance(after[at], str) and after[at] != values[position]:
            raise _unsafe(source)


def _unsafe(source: Path) -> TableFileError:
    return TableFileError(
        f"{source}: its sheet is written in a way that cannot be changed safely; save it anew with a spreadsheet program."
    )


def _changed_parts(
    book: Book, parts: Parts, labels: SheetLabels, chosen: Decisions, trail: bool, source: Path
) -> dict[str, bytes]:
    data = book.read(parts.sheet)
    sheet = scan_sheet(data)
    by_number = _rows_by_number(sheet, source)
    splices = Splices(data)
    write = _cell_writer(labels)
    column = _column_name(labels.column)
    dropped = {labels.rows[position] for position in chosen.dropped}
    shifted = new_numbers(dropped)
    replaced = set()
    hidden = _hidden_rows(sheet, labels.column)
    for position, value in chosen.values.items():
        row = by_number[labels.rows[position]]
        if labels.rows[position] in hidden:
            raise TableFileError(
                f"{source}: the label in {column}{labels.rows[position]} is covered by merged cells or by "
                "an array formula; separate them first."
            )
        cell = write(value, labels.values[position])
        replaced.add(_set_label(splices, row, column, shifted, cell, source))
    if trail:
        _add_trail(splices, by_number, labels, chosen, shifted)
    changed = drop_rows(book, parts, sheet, splices, dropped, replaced, source) if dropped else {}
    changed[parts.sheet] = splices.done()
    if sheet.formulas or any(scan_sheet(book.read(name)).formulas for name in parts.sheets if name != parts.sheet):
        # What formulas made of the old labels must not be believed by whoever opens the copy.
        changed[parts.workbook] = _computed_anew(book.read(parts.workbook))
    return changed


def _rows_by_number(sheet: Sheet, source: Path) -> dict[int, Element]:
    if any("r" not in row.attributes or any("r" not in cell.attributes for cell in row.children) for row in sheet.rows):
        raise TableFileError(f"{source}: its rows or cells have no numbers; save it anew with a spreadsheet program.")
    numbers = [int(row.attributes["r"]) for row in sheet.rows]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise _unsafe(source)
    for number, row in zip(numbers, sheet.rows, strict=True):
        columns = [_column_number(cell.attributes["r"]) for cell in row.children]
        named = all(cell.attributes["r"].endswith(str(number)) for cell in row.children)
        if not named or any(later <= earlier for earlier, later in pairwise(columns)):
            raise _unsafe(source)
    return dict(zip(numbers, sheet.rows, strict=True))


def _hidden_rows(sheet: Sheet, column: int) -> set[int]:
    """Rows in which a column is covered by merged cells, or an array formula, that begin elsewhere."""
    hidden: set[int] = set()
    arrays = [cell for row in sheet.rows for cell in row.children if cell.formula and cell.formula.get("t") == "array"]
    merged = [element.attributes.get("ref", "") for element in sheet.ranged if element.name == "mergeCell"]
    for reference in [*merged, *(cell.formula.get("ref", "") for cell in arrays if cell.formula)]:
        ends = REFERENCE.findall(reference)
        if len(ends) != 2:
            continue
        (left, top), (right, bottom) = ((_column_number(name.replace("$", "")), int(row)) for name, row in ends)
        if left <= column <= right:
            first = top + 1 if left == column else top
            hidden.update(range(first, min(bottom, MOST_ROWS) + 1))
    return hidden


def _cell_writer(labels: SheetLabels) -> Callable[[float, Any], tuple[str, str]]:
    """From a new label to the type and content of its cell: a number, or text in the column's own notation."""
    texts = texts_of(labels.values)
    notation = labels.notation.of_column(texts) if labels.notation is not None else None

    def write(value: float, former: Any) -> tuple[str, str]:
        # A mark for no value was text too, but what replaces it is a number.
        if notation is not None and isinstance(former, str) and notation.plain(former):
            return ' t="inlineStr"', f"<is><t>{_xml(notation.write_like(value, former))}</t></is>"
        return "", f"<v>{shortest(value)}</v>"

    return write


def _set_label(
    splices: Splices,
    row: Element,
    column: str,
    shifted: Callable[[int], int],
    cell: tuple[str, str],
    source: Path,
) -> int:
    """Write a new label into its row; returns where the cell stood that it replaces, or -1."""
    reference = f"{column}{row.attributes['r']}"
    moved = shift(reference, shifted)
    kind, content = cell
    found = next((child for child in row.children if child.attributes["r"] == reference), None)
    if found is None:
        _insert(splices, row, reference, f'<c r="{moved}"{kind}>{content}</c>')
        return -1
    if found.formula is not None:
        raise TableFileError(
            f"{source}: the label in {reference} is computed by a formula. Correct what it is computed from, or replace "
            "the formula by its value first."
        )
    style = f' s="{found.attributes["s"]}"' if "s" in found.attributes else ""
    splices.replace(found.start, found.end, f'<c r="{moved}"{style}{kind}>{content}</c>')
    return found.start


def _insert(splices: Splices, row: Element, reference: str, cell: str) -> None:
    """Put a new cell into a row, in the order of columns."""
    after = [child for child in row.children if _column_number(child.attributes["r"]) > _column_number(reference)]
    if after:
        splices.replace(after[0].start, after[0].start, cell)
    elif row.is_closed_tag:
        splices.replace(row.tag_end - 2, row.tag_end, f">{cell}</row>")
    else:
        last = row.children[-1].end if row.children else row.tag_end
        splices.replace(last, last, cell)


def _add_trail(
    splices: Splices,
    by_number: dict[int, Element],
    labels: SheetLabels,
    chosen: Decisions,
    shifted: Callable[[int], int],
) -> None:
    def add(number: int, texts: tuple[str, ...]) -> None:
        cells = "".join(
            f'<c r="{_column_name(labels.width + offset)}{shifted(number)}" t="inlineStr"><is><t xml:space="preserve">'
            f"{_xml(text)}</t></is></c>"
            for offset, text in enumerate(texts, 1)
        )
        _insert(splices, by_number[number], f"{_column_name(labels.width + 1)}{number}", cells)

    add(labels.header or 0, TRAIL_COLUMNS)
    for position, decision in chosen.by_position.items():
        if decision.action != "drop":
            add(labels.rows[position], trail_of(decision, as_written(labels.values[position])))


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _computed_anew(workbook: bytes) -> bytes:
    """Let whoever opens the workbook compute its formulas again."""
    found = re.search(rb"<(\w+:)?calcPr\b[^>]*?(/?)>", workbook)
    if found is None:
        # The schema wants it after these, of which the last that is there counts.
        before = [
            re.search(rb"</(\w+:)?" + name + rb">", workbook)
            for name in (b"definedNames", b"externalReferences", b"sheets")
        ]
        place = next((match for match in before if match is not None), None)
        if place is None:
            raise KeyError("no sheets in the workbook's list")
        prefix = place[1] or b""
        return workbook[: place.end()] + b"<" + prefix + b'calcPr fullCalcOnLoad="1"/>' + workbook[place.end() :]
    tag = re.sub(rb'\sfullCalcOnLoad="[^"]*"', b"", found[0])
    end = b"/>" if tag.endswith(b"/>") else b">"
    return workbook[: found.start()] + tag[: -len(end)] + b' fullCalcOnLoad="1"' + end + workbook[found.end() :]


def _column_name(number: int) -> str:
    name = ""
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(65 + rest) + name
    return name


def _column_number(reference: str) -> int:
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = 26 * number + ord(letter) - 64
    return number
