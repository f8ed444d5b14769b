"""Cleaned workbooks: the original, part for part and byte for byte, but for the cells that were decided about.

An .xlsx file is an archive of XML parts. Labels are replaced inside the XML of their sheet, at the bytes where they stand;
charts, styles, other sheets and everything else are copied unread. Rows can be dropped only where nothing refers to rows by
their number.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import escape

from mislabel.data.formats.contract import (
    TRAIL_COLUMNS,
    Decisions,
    as_written,
    check_row_count,
    check_trail,
    trail_of,
)
from mislabel.data.formats.excel import MOST_ROWS, SheetLabels, read_sheet, sheet_labels, texts_of
from mislabel.errors import TableFileError
from mislabel.short_numbers import shortest

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_REFERENCE = re.compile(r"(\$?[A-Z]{1,3}\$?)([0-9]+)")
#: Elements of a sheet whose attributes name ranges of cells.
_RANGED = {
    "dimension",
    "autoFilter",
    "selection",
    "conditionalFormatting",
    "dataValidation",
    "ignoredError",
    "mergeCell",
    "pane",
    "table",
    "sortState",
    "sortCondition",
    "protectedRange",
    "hyperlink",
}
#: Elements that refer to rows in ways that are not followed.
_TIED_TO_ROWS = {"extLst", "rowBreaks", "scenarios", "customSheetViews", "dataConsolidate", "cellWatches"}
#: Parts, anywhere in a workbook, that may refer to rows of any sheet.
_PARTS_TIED_TO_ROWS = ("charts/", "drawings/", "pivot", "externalLinks/", "connections", "queryTables/")
_RANGES = ("ref", "sqref", "activeCell", "topLeftCell")
#: Bytes of an unpacked workbook that are copied at most.
_LARGEST = 2_000_000_000
#: Kinds of parts that a sheet may refer to without rows mattering.
_HARMLESS = ("/printerSettings", "/table", "/customProperty", "/hyperlink")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def write_workbook(source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
    """Copy a workbook with decisions carried out in one of its sheets."""
    labels = sheet_labels(source, chosen.options, chosen.label)
    if trail:
        check_trail(source, labels.names)
    check_row_count(source, len(labels.values), chosen)
    try:
        book = _Book(source)
        parts = _Parts.of(book, labels.sheet, source)
        changed = _changed_parts(book, parts, labels, chosen, trail, source)
    except (ElementTree.ParseError, expat.ExpatError, KeyError, ValueError) as error:
        if isinstance(error, TableFileError):
            raise
        raise TableFileError(f"{source} cannot be copied as a workbook: {error}") from None
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as copy:
        for info in book.infos:
            copy.writestr(info, changed.get(info.filename, book.read(info.filename)), compress_type=info.compress_type)
    _check_copy(source, written, chosen, labels.column - 1)
    out.write(written.getvalue())


def _check_copy(source: Path, written: io.BytesIO, chosen: Decisions, at: int) -> None:
    """Nothing is written that does not read back as it was meant; ``at`` is the place of the label in a row."""
    old = read_sheet(source, chosen.options.sheet)
    try:
        new = read_sheet(written, chosen.options.sheet)
    except TableFileError:
        raise _unsafe(source) from None
    values, dropped = chosen.values, chosen.dropped
    kept = [(k, row) for k, row in enumerate(old.values[1:]) if k not in dropped]
    if len(new.values) != len(kept) + 1:
        raise _unsafe(source)
    for (position, before), after in zip(kept, new.values[1:], strict=True):
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


class _Book:
    """The parts of a workbook with their bytes."""

    def __init__(self, source: Path) -> None:
        try:
            with zipfile.ZipFile(source) as book:
                self.infos = book.infolist()
                if sum(info.file_size for info in self.infos) > _LARGEST:
                    raise TableFileError(f"{source} unpacks to more than {_LARGEST / 1e9:.0f} GB: it cannot be copied.")
                self._parts = {info.filename: book.read(info) for info in self.infos}
        except (zipfile.BadZipFile, OSError, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
            raise TableFileError(f"{source} cannot be copied as a workbook: {error}") from None
        if len(self._parts) < len(self.infos):
            raise TableFileError(f"{source} cannot be copied as a workbook: it holds two parts of the same name.")

    def read(self, name: str) -> bytes:
        """The bytes of a part."""
        return self._parts[name]

    def namelist(self) -> list[str]:
        """The names of all parts."""
        return list(self._parts)


@dataclass(frozen=True)
class _Parts:
    """Names of the parts of a workbook that matter here."""

    workbook: str
    sheet: str
    sheets: list[str]
    relations: dict[str, str]  # target -> kind, of the sheet

    @classmethod
    def of(cls, book: _Book, title: str, source: Path) -> _Parts:
        names = set(book.namelist())
        root = _relations(book, "_rels/.rels", "")
        workbook = next((target for target, kind, _ in root if kind.endswith("/officeDocument")), "xl/workbook.xml")
        links = {key: target for target, _, key in _relations(book, _rels_of(workbook), workbook)}
        tree = ElementTree.fromstring(book.read(workbook))
        targets = {
            sheet.get("name"): links.get(sheet.get(_RELATION, ""), "")
            for sheet in tree.iter()
            if sheet.tag.endswith("}sheet")
        }
        sheet = targets.get(title, "")
        if sheet not in names:
            raise TableFileError(f"{source}: the part of sheet {title!r} was not found; save the workbook anew.")
        relations = {}
        if _rels_of(sheet) in names:
            relations = {target: kind for target, kind, _ in _relations(book, _rels_of(sheet), sheet)}
        return cls(workbook, sheet, [target for target in targets.values() if target in names], relations)


def _rels_of(part: str) -> str:
    folder, name = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{name}.rels")


def _relations(book: _Book, part: str, base: str) -> list[tuple[str, str, str]]:
    """Targets, kinds and keys of what a part refers to."""
    found = []
    for item in ElementTree.fromstring(book.read(part)):
        target = item.get("Target", "")
        if item.get("TargetMode") != "External":
            target = (
                target[1:]
                if target.startswith("/")
                else posixpath.normpath(posixpath.join(posixpath.dirname(base), target))
            )
        found.append((target, item.get("Type", ""), item.get("Id", "")))
    return found


@dataclass
class _Element:
    """Where an element stands in the bytes of a part; ``tag_end`` is the end of its opening tag."""

    name: str
    attributes: dict[str, str]
    start: int
    tag_end: int
    end: int = 0
    children: list[_Element] = field(default_factory=list)
    formula: dict[str, str] | None = None

    @property
    def is_closed_tag(self) -> bool:
        return self.tag_end == self.end


@dataclass
class _Sheet:
    """Rows with their cells, and the other elements that name ranges of cells.

    tied : what else refers to rows by their number, if anything does.
    """

    rows: list[_Element]
    ranged: list[_Element]
    formulas: int
    tied: str | None


def _tag_end(data: bytes, start: int) -> int:
    at, quote = start, b""
    while True:
        character = data[at : at + 1]
        if not character:
            raise expat.ExpatError("the part ends inside a tag")
        if quote:
            quote = b"" if character == quote else quote
        elif character in (b'"', b"'"):
            quote = character
        elif character == b">":
            return at + 1
        at += 1


def _scan(data: bytes) -> _Sheet:
    """Find rows, cells and ranges in the XML of a sheet or a table."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"UTF-16" in data[:200]:
        raise TableFileError("a part of the workbook is not UTF-8; save it anew with a spreadsheet program.")
    parser = expat.ParserCreate(namespace_separator="}")
    found = _Sheet([], [], 0, None)
    open_elements: list[_Element] = []
    rules: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        at = parser.CurrentByteIndex
        element = _Element(name, attributes, at, _tag_end(data, at))
        if name == "row":
            found.rows.append(element)
        elif name == "c" and open_elements and open_elements[-1].name == "row":
            open_elements[-1].children.append(element)
        elif name == "f" and open_elements and open_elements[-1].name == "c":
            open_elements[-1].formula = attributes
            found.formulas += 1
        elif name in _RANGED:
            found.ranged.append(element)
        elif name in _TIED_TO_ROWS or (name != "f" and any(range in attributes for range in _RANGES)):
            found.tied = name
        open_elements.append(element)

    def end(tag: str) -> None:
        element = open_elements.pop()
        at = parser.CurrentByteIndex
        element.end = data.index(b">", at) + 1 if data[at : at + 2] == b"</" else element.tag_end

    def text(content: str) -> None:
        if open_elements and open_elements[-1].name in ("formula", "formula1", "formula2"):
            rules.append(content)

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.Parse(data, True)
    if _REFERENCE.search(" ".join(rules)):
        found.tied = "rule for formats or entries"
    return found


class _Splices:
    """Replacements in the bytes of one part, carried out together."""

    def __init__(self, data: bytes) -> None:
        self._data, self._changes = data, []  # type: bytes, list[tuple[int, int, bytes]]

    def replace(self, start: int, end: int, new: str) -> None:
        """Put other text in place of some bytes."""
        self._changes.append((start, end, new.encode()))

    def attribute(self, element: _Element, name: str, new: str) -> None:
        """Give an attribute of an element another value."""
        tag = self._data[element.start : element.tag_end]
        found = re.search(rb"(\s" + name.encode() + rb"\s*=\s*)(\"[^\"]*\"|'[^']*')", tag)
        if found is None:
            raise KeyError(name)
        start = element.start + found.start(2)
        self.replace(start, element.start + found.end(2), f'"{new}"')

    def done(self) -> bytes:
        """The bytes with everything replaced."""
        parts, at = [], 0
        for start, end, new in sorted(self._changes, key=lambda change: change[:2]):
            assert start >= at, "two changes of the same bytes"
            parts += [self._data[at:start], new]
            at = end
        return b"".join([*parts, self._data[at:]])


def _changed_parts(
    book: _Book, parts: _Parts, labels: SheetLabels, chosen: Decisions, trail: bool, source: Path
) -> dict[str, bytes]:
    data = book.read(parts.sheet)
    sheet = _scan(data)
    by_number = _rows_by_number(sheet, source)
    splices = _Splices(data)
    write = _cell_writer(labels)
    column = _column_name(labels.column)
    dropped = {labels.rows[position + 1] for position in chosen.dropped}
    shifted = _new_numbers(dropped)
    replaced = set()
    hidden = _hidden_rows(sheet, labels.column)
    for position, value in chosen.values.items():
        row = by_number[labels.rows[position + 1]]
        if labels.rows[position + 1] in hidden:
            raise TableFileError(
                f"{source}: the label in {column}{labels.rows[position + 1]} is hidden behind merged cells; separate them first."
            )
        cell = write(value, labels.values[position])
        replaced.add(_set_label(splices, row, column, shifted, cell, source))
    if trail:
        _add_trail(splices, by_number, labels, chosen, shifted)
    changed = {}
    if dropped:
        _refuse_references(book, parts, sheet, source)
        _refuse_merged(sheet, dropped, source)
        _drop_rows(splices, sheet, dropped, replaced, shifted)
        ends = _new_ends(dropped)
        _shift_ranges(splices, sheet.ranged, shifted, ends)
        for target, kind in parts.relations.items():
            if kind.endswith("/table"):
                part = book.read(target)
                table = _Splices(part)
                _shift_ranges(table, _scan(part).ranged, shifted, ends)
                changed[target] = table.done()
    changed[parts.sheet] = splices.done()
    if sheet.formulas or any(_scan(book.read(name)).formulas for name in parts.sheets if name != parts.sheet):
        # What formulas made of the old labels must not be believed by whoever opens the copy.
        changed[parts.workbook] = _computed_anew(book.read(parts.workbook))
    return changed


def _rows_by_number(sheet: _Sheet, source: Path) -> dict[int, _Element]:
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


def _refuse_merged(sheet: _Sheet, dropped: set[int], source: Path) -> None:
    """Complain about rows that cannot be dropped since they are merged with others."""
    for element in sheet.ranged:
        numbers = [int(row) for _, row in _REFERENCE.findall(element.attributes.get("ref", ""))]
        if element.name == "mergeCell" and any(min(numbers) <= row <= max(numbers) for row in dropped):
            raise TableFileError(
                f"{source}: a row to drop is part of merged cells ({element.attributes['ref']}); separate them first."
            )


def _hidden_rows(sheet: _Sheet, column: int) -> set[int]:
    """Rows in which a column is covered by merged cells that begin elsewhere."""
    hidden: set[int] = set()
    for element in sheet.ranged:
        ends = _REFERENCE.findall(element.attributes.get("ref", ""))
        if element.name != "mergeCell" or len(ends) != 2:
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
            return ' t="inlineStr"', f"<is><t>{_xml(notation.write(value))}</t></is>"
        return "", f"<v>{shortest(value)}</v>"

    return write


def _set_label(
    splices: _Splices,
    row: _Element,
    column: str,
    shifted: Callable[[int], int],
    cell: tuple[str, str],
    source: Path,
) -> int:
    """Write a new label into its row; returns where the cell stood that it replaces, or -1."""
    reference = f"{column}{row.attributes['r']}"
    moved = _shift(reference, shifted)
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


def _insert(splices: _Splices, row: _Element, reference: str, cell: str) -> None:
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
    splices: _Splices,
    by_number: dict[int, _Element],
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

    add(labels.rows[0], TRAIL_COLUMNS)
    for position, decision in chosen.by_position.items():
        if decision.action != "drop":
            add(labels.rows[position + 1], trail_of(decision, as_written(labels.values[position])))


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _refuse_references(book: _Book, parts: _Parts, sheet: _Sheet, source: Path) -> None:
    """Complain where rows are referred to by their number, in ways that a copy without some of them would break."""
    advice = "Keep these rows and mark them instead, or save the sheet as CSV or without what refers to its rows, and audit that."
    others = [_scan(book.read(name)) for name in parts.sheets if name != parts.sheet]
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


def _new_numbers(dropped: set[int]) -> Callable[[int], int]:
    """Where rows move to; a dropped one to where its successor does."""
    gone = sorted(dropped)
    return lambda number: number - bisect_left(gone, number)


def _new_ends(dropped: set[int]) -> Callable[[int], int]:
    """Where the last rows of ranges move to; a dropped one to where its predecessor does."""
    gone = sorted(dropped)
    return lambda number: max(number - bisect_right(gone, number), 1)


def _drop_rows(
    splices: _Splices, sheet: _Sheet, dropped: set[int], replaced: set[int], shifted: Callable[[int], int]
) -> None:
    for row in sheet.rows:
        number = int(row.attributes["r"])
        if number in dropped:
            splices.replace(row.start, row.end, "")
        elif shifted(number) != number:
            splices.attribute(row, "r", str(shifted(number)))
            for cell in row.children:
                if cell.start not in replaced:
                    splices.attribute(cell, "r", _shift(cell.attributes["r"], shifted))


def _shift_ranges(
    splices: _Splices, ranged: list[_Element], shifted: Callable[[int], int], ends: Callable[[int], int]
) -> None:
    for element in ranged:
        for name in _RANGES:
            if name in element.attributes:
                splices.attribute(element, name, _shift_range(element.attributes[name], shifted, ends))


def _shift_range(text: str, shifted: Callable[[int], int], ends: Callable[[int], int]) -> str:
    """Ranges, one after the other, of which the first row moves one way and the last the other."""
    moved = []
    for one in text.split(" "):
        first, colon, last = one.partition(":")
        moved.append(_shift(first, shifted) + colon + (_shift(last, ends) if colon else ""))
    return " ".join(moved)


def _shift(reference: str, shifted: Callable[[int], int]) -> str:
    return _REFERENCE.sub(lambda found: found[1] + str(shifted(int(found[2]))), reference)


def _computed_anew(workbook: bytes) -> bytes:
    """Let whoever opens the workbook compute its formulas again."""
    found = re.search(rb"<(\w+:)?calcPr\b[^>]*?(/?)>", workbook)
    if found is None:
        return re.sub(rb"(</(?:\w+:)?sheets>)", rb'\1<calcPr fullCalcOnLoad="1"/>', workbook, count=1)
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
