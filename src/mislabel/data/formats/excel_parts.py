"""The parts of a workbook: its archive, where rows, cells and ranges stand in the XML of a sheet, and changes of its bytes."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from mislabel.errors import TableFileError

#: A cell by its column and row.
REFERENCE = re.compile(r"(\$?[A-Z]{1,3}\$?)([0-9]+)")
#: Attributes that name ranges of cells.
RANGES = ("ref", "sqref", "activeCell", "topLeftCell")
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
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
#: Bytes of an unpacked workbook that are copied at most.
_LARGEST = 2_000_000_000


class Book:
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
class Parts:
    """Names of the parts of a workbook that matter here."""

    workbook: str
    sheet: str
    sheets: list[str]
    relations: dict[str, str]  # target -> kind, of the sheet

    @classmethod
    def of(cls, book: Book, title: str, source: Path) -> Parts:
        """Find the parts that belong to the sheet of this title."""
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


def _relations(book: Book, part: str, base: str) -> list[tuple[str, str, str]]:
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
class Element:
    """Where an element stands in the bytes of a part; ``tag_end`` is the end of its opening tag."""

    name: str
    attributes: dict[str, str]
    start: int
    tag_end: int
    end: int = 0
    children: list[Element] = field(default_factory=list)
    formula: dict[str, str] | None = None

    @property
    def is_closed_tag(self) -> bool:
        """Whether the element is one tag without content."""
        return self.tag_end == self.end


@dataclass
class Sheet:
    """Rows with their cells, and the other elements that name ranges of cells.

    tied : what else refers to rows by their number, if anything does.
    """

    rows: list[Element]
    ranged: list[Element]
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


def scan_sheet(data: bytes) -> Sheet:
    """Find rows, cells and ranges in the XML of a sheet or a table."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"UTF-16" in data[:200]:
        raise TableFileError("a part of the workbook is not UTF-8; save it anew with a spreadsheet program.")
    parser = expat.ParserCreate(namespace_separator="}")
    found = Sheet([], [], 0, None)
    open_elements: list[Element] = []
    rules: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        at = parser.CurrentByteIndex
        element = Element(name, attributes, at, _tag_end(data, at))
        if name == "row":
            found.rows.append(element)
        elif name == "c" and open_elements and open_elements[-1].name == "row":
            open_elements[-1].children.append(element)
        elif name == "f" and open_elements and open_elements[-1].name == "c":
            open_elements[-1].formula = attributes
            found.formulas += 1
        elif name in _RANGED:
            found.ranged.append(element)
        elif name in _TIED_TO_ROWS or (name != "f" and any(range in attributes for range in RANGES)):
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
    if REFERENCE.search(" ".join(rules)):
        found.tied = "rule for formats or entries"
    return found


class Splices:
    """Replacements in the bytes of one part, carried out together."""

    def __init__(self, data: bytes) -> None:
        self._data, self._changes = data, []  # type: bytes, list[tuple[int, int, bytes]]

    def replace(self, start: int, end: int, new: str) -> None:
        """Put other text in place of some bytes."""
        self._changes.append((start, end, new.encode()))

    def attribute(self, element: Element, name: str, new: str) -> None:
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
