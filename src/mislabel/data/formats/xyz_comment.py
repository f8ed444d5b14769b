"""The comment line of xyz files: properties and settings of extended xyz, and the numbers of QM9."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from mislabel.data.formats.molecule_set import MOST_PROPERTIES
from mislabel.data.formats.molecule_text import (
    Entry,
    decoded,
    properties_of,
    read_number,
    shown,
)
from mislabel.errors import MoleculeFileError
from mislabel.linalg.contract import FloatArray

#: Values on the second line of QM9's files, after "gdb" and the index, with their units.
QM9_UNITS = {
    "rotational_a": "GHz",
    "rotational_b": "GHz",
    "rotational_c": "GHz",
    "dipole": "debye",
    "polarizability": "bohr^3",
    "homo": "hartree",
    "lumo": "hartree",
    "gap": "hartree",
    "spatial_extent": "bohr^2",
    "zero_point_energy": "hartree",
    "energy_0K": "hartree",
    "energy": "hartree",
    "enthalpy": "hartree",
    "free_energy": "hartree",
    "heat_capacity": "cal/(mol K)",
}
_QM9_NAMES = ("index", *QM9_UNITS)
#: Periodic images nearer than this (in Angstrom) are a mistake, and more of them than any kernel could count.
_THINNEST_CELL = 0.1
#: Three unit vectors that span less volume lie in a plane.
_FLAT = 1e-9
_QM9_COMMENT = re.compile(rb"gdb(?:\s|\Z)")
_KEY = re.compile(rb'[^\s="]+')
_PLAIN_VALUE = re.compile(rb"\S+")
_QUOTED_VALUE = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ESCAPED = re.compile(rb'\\(["\\])')
_FLAGS = {b"t": True, b"true": True, b"1": True, b"f": False, b"false": False, b"0": False}
#: Keys of the comment that describe the molecule; all others are properties.
_SETTINGS = ("Lattice", "Properties", "pbc")


@dataclass(frozen=True, slots=True)
class AtomColumns:
    """Where element and position stand in the line of an atom; ``total`` columns, or at least as many as needed."""

    element: int = 0
    position: int = 1
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """What a comment says: properties where they stand, columns of the atoms, and the cell."""

    entries: list[Entry]
    columns: AtomColumns = field(default_factory=AtomColumns)
    settings: dict[str, Any] = field(default_factory=dict)


def read_comment(text: bytes, where: str) -> tuple[Comment, dict[str, float | str]]:
    """A comment in the dialect in which it is written, and its properties by name."""
    comment = _qm9_comment(text, where) if is_qm9(text) else _comment(text, where)
    properties = properties_of(comment.entries, where)
    if is_qm9(text):
        _check_qm9_numbers(properties, where)
    return comment, properties


def is_qm9(comment: bytes) -> bool:
    """Whether a comment is in the dialect of QM9."""
    return _QM9_COMMENT.match(comment) is not None


def _qm9_comment(comment: bytes, where: str) -> Comment:
    found = list(_PLAIN_VALUE.finditer(comment))[1:]
    if len(found) != len(_QM9_NAMES):
        raise MoleculeFileError(
            f"{where}: a comment that begins with gdb is in QM9's format and has an index and {len(QM9_UNITS)} numbers; "
            f"found {len(found)} fields."
        )
    entries = [Entry(name, match[0], *match.span()) for name, match in zip(_QM9_NAMES, found, strict=True)]
    if not entries[0].text.isdigit():
        raise MoleculeFileError(f"{where}: the index of QM9's format is not a whole number: {shown(entries[0].text)}.")
    return Comment(entries)


def _check_qm9_numbers(properties: dict[str, float | str], where: str) -> None:
    for name, value in properties.items():
        if isinstance(value, str) or not isfinite(value):
            raise MoleculeFileError(f"{where}: the {name} of QM9's format is not a number: {str(value)[:60]!r}.")


def scan_comment(comment: bytes, where: str) -> list[Entry]:
    """All ``key=value``, ``key="value"`` and ``key={value}`` of an extended xyz comment, in one pass.

    Words that are no key are passed over: the comments of plain xyz files are free text.
    """
    entries: list[Entry] = []
    at = 0
    while key := _KEY.search(comment, at):
        if len(entries) > MOST_PROPERTIES:
            raise MoleculeFileError(f"{where}: more than {MOST_PROPERTIES:,} properties in one comment.")
        at = key.end()
        if comment[at : at + 1] != b"=":
            continue
        opening = comment[at + 1 : at + 2]
        if opening in (b'"', b"{"):
            start, end = at + 2, _closing(comment, at + 1, where)
            at = end + 1
        elif value := _PLAIN_VALUE.match(comment, at + 1):
            start, end = value.span()
            at = end
        else:
            continue
        text = comment[start:end]
        start, end = end - len(text.lstrip()), start + len(text.rstrip())
        text = comment[start:end]
        entries.append(Entry(decoded(key[0]), _ESCAPED.sub(rb"\1", text) if opening == b'"' else text, start, end))
    return entries


def _closing(comment: bytes, opening: int, where: str) -> int:
    """Where the value ends whose quote or brace opens at ``opening``."""
    if comment[opening : opening + 1] == b"{":
        end = comment.find(b"}", opening)
    else:
        quoted = _QUOTED_VALUE.match(comment, opening)
        end = quoted.end() - 1 if quoted else -1
    if end < 0:
        raise MoleculeFileError(
            f"{where}: the quote or brace of {shown(comment[opening:], 30)} is not closed before the line ends: close it."
        )
    return end


def _comment(comment: bytes, where: str) -> Comment:
    entries = scan_comment(comment, where)
    settings: dict[str, bytes] = {}
    for entry in entries:
        if entry.name in _SETTINGS and settings.setdefault(entry.name, entry.text) != entry.text:
            raise MoleculeFileError(f"{where}: {entry.name} stands there twice: remove one.")
    columns = _columns(settings["Properties"], where) if "Properties" in settings else AtomColumns()
    periodic = _periodic(settings.get("pbc"), "Lattice" in settings, where)
    found: dict[str, Any] = {}
    if "Lattice" in settings:
        found = {"cell": _cell(settings["Lattice"], periodic, where), "pbc": periodic}
    return Comment([entry for entry in entries if entry.name not in _SETTINGS], columns, found)


def _columns(description: bytes, where: str) -> AtomColumns:
    """Where the columns of element and position are, from ``name:type:count`` of each."""
    where = f"{where}: Properties={shown(description)}"
    fields = description.split(b":")
    if len(fields) % 3:
        raise MoleculeFileError(f"{where} is not of the form name:type:count, as species:S:1:pos:R:3 is.")
    at, found = 0, {}
    for name, kind, count in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        if kind not in (b"S", b"R", b"I", b"L") or not re.fullmatch(rb"[0-9]{1,6}", count) or int(count) < 1:
            raise MoleculeFileError(
                f"{where}: {shown(name + b':' + kind + b':' + count, 40)} has no usable type and count."
            )
        if name in found:
            raise MoleculeFileError(f"{where} has two columns {shown(name, 40)}.")
        found[name] = (at, kind, int(count))
        at += int(count)
    element = found.get(b"species", found.get(b"Z"))
    position = found.get(b"pos")
    if element is None or element[2] != 1:
        raise MoleculeFileError(f"{where} does not say where the element is (species:S:1 or Z:I:1).")
    if position is None or position[1:] != (b"R", 3):
        raise MoleculeFileError(f"{where} does not say where the position is (pos:R:3).")
    return AtomColumns(element[0], position[0], at)


def _periodic(text: bytes | None, has_cell: bool, where: str) -> np.ndarray:
    if text is None:
        return np.full(3, has_cell)
    flags = [_FLAGS.get(word.lower()) for word in text.split()]
    if len(flags) != 3 or None in flags:
        raise MoleculeFileError(f'{where}: pbc is {shown(text, 40)}: expected three of T or F, as in pbc="T T F".')
    if any(flags) and not has_cell:
        raise MoleculeFileError(f"{where}: periodic (pbc is {shown(text, 40)}) but without a Lattice.")
    return np.array(flags, dtype=bool)


def _cell(text: bytes, periodic: np.ndarray, where: str) -> FloatArray:
    numbers = [read_number(word) for word in text.split()] if len(text) < 1000 else []
    if len(numbers) != 9 or None in numbers or not np.isfinite(np.array(numbers, dtype=float)).all():
        raise MoleculeFileError(
            f"{where}: Lattice is {shown(text)}: expected nine numbers, three for each vector of the cell."
        )
    cell = np.array(numbers, dtype=float).reshape(3, 3)
    if periodic.any():
        thickness = _thickness(cell)
        if thickness is None or thickness[periodic].min() < _THINNEST_CELL:
            raise MoleculeFileError(
                f"{where}: the cell with Lattice {shown(text)} is flat or less than {_THINNEST_CELL} Angstrom thick: its "
                "vectors must be independent, and in Angstrom."
            )
    return cell


def _thickness(cell: FloatArray) -> FloatArray | None:
    """Distances between opposite faces of a cell; None where it has no volume."""
    largest = np.abs(cell).max(axis=1)
    if not largest.all():
        return None
    # By unit vectors: products of lengths could overflow.
    lengths = largest * np.linalg.norm(cell / largest[:, None], axis=1)
    directions = cell / lengths[:, None]
    if abs(np.linalg.det(directions)) < _FLAT:
        return None
    return np.asarray(lengths / np.linalg.norm(np.linalg.inv(directions), axis=0))
