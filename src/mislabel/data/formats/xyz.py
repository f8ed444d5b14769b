"""Plain xyz, extended xyz, and QM9's own dialect: read, and written back with some labels changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mislabel.data.formats.molecule_set import MOST_PROPERTIES, Molecule, MoleculeSet, collect
from mislabel.data.formats.molecule_text import (
    Entry,
    check_positions,
    decoded,
    file_size,
    properties_of,
    read_lines,
    read_number,
    replace_value,
    shown,
    without_mark,
)
from mislabel.errors import MoleculeFileError
from mislabel.kernels.graphs.molecules import SYMBOLS
from mislabel.linalg.contract import FloatArray, IntArray

_NUMBER_OF = {symbol.encode(): number for number, symbol in enumerate(SYMBOLS) if number}
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
#: Frequencies, SMILES and InChI follow the atoms in QM9's files.
_QM9_LINES_AFTER = 3
#: The shortest line of an atom, "H 0 0 0" and its end.
_ATOM_BYTES = 8
#: Periodic images nearer than this (in Angstrom) are a mistake, and more of them than any kernel could count.
_THINNEST_CELL = 0.1
#: Three unit vectors that span less volume lie in a plane.
_FLAT = 1e-9
_QM9_COMMENT = re.compile(rb"gdb(?:\s|\Z)")
_COUNT = re.compile(rb"\s*(\d{1,18})\s*")
_KEY = re.compile(rb'[^\s="]+')
_PLAIN_VALUE = re.compile(rb"\S+")
_QUOTED_VALUE = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ESCAPED = re.compile(rb'\\(["\\])')
_FLAGS = {b"t": True, b"true": True, b"1": True, b"f": False, b"false": False, b"0": False}
#: Keys of the comment that describe the molecule; all others are properties.
_SETTINGS = ("Lattice", "Properties", "pbc")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where element and position stand in the line of an atom; ``total`` columns, or at least as many as needed."""

    element: int = 0
    position: int = 1
    total: int | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of one molecule as they stand in the file, after ``before``: blank lines, a byte order mark.

    The last block of a file may have nothing but blank lines.
    """

    before: bytes
    lines: list[bytes]
    atoms: int = 0
    number: int = 0
    first_line: int = 0
    where: str = ""

    @property
    def comment(self) -> bytes:
        return self.lines[1]

    @property
    def is_qm9(self) -> bool:
        return _is_qm9(self.comment)


@dataclass(frozen=True, slots=True)
class _Comment:
    entries: list[Entry]
    columns: _Columns = field(default_factory=_Columns)
    settings: dict[str, Any] = field(default_factory=dict)


def read_xyz(path: Path) -> MoleculeSet:
    """Plain and extended xyz, one molecule after the other, and the files of QM9."""

    def records() -> Iterator[tuple[Molecule, dict[str, Any]]]:
        for block in _blocks(path):
            if block.lines:
                molecule, properties, _ = _parsed(block, path)
                yield molecule, properties

    return collect(path, records(), QM9_UNITS)


def write_xyz(source: Path, label: str, values: dict[int, float], dropped: set[int], out: BinaryIO) -> None:
    """Copy an xyz file with the label of some molecules replaced and others left out; every other byte stays.

    The file is parsed as by :func:`read_xyz`, so that both agree on what is a molecule and where its label stands.
    """
    count = 0
    for block in _blocks(source):
        out.write(block.before)
        if not block.lines:
            continue
        count += 1
        _, _, comment = _parsed(block, source)
        if block.number in dropped:
            continue
        lines = list(block.lines)
        if block.number in values:
            mark = b"*^" if block.is_qm9 else b"e"
            where = f"{block.where}, line {block.first_line + 1}"
            lines[1] = replace_value(lines[1], comment.entries, label, values[block.number], where, mark)
        out.writelines(lines)
    check_positions(source, values, dropped, count)


def _blocks(path: Path) -> Iterator[_Block]:
    size = file_size(path)
    lines = read_lines(path)
    before: list[bytes] = []
    at, number = 0, 0
    for line in lines:
        at += 1
        if at == 1 and (bare := without_mark(line)) != line:
            before.append(line[: len(line) - len(bare)])
            line = bare
        if not line.strip():
            before.append(line)
            continue
        where = f"{path}, molecule {number}"
        atoms = _atom_count(line, size, f"{where}, line {at}")
        block = [line, *islice(lines, 1)]
        following = atoms + (_QM9_LINES_AFTER if len(block) > 1 and _is_qm9(block[1]) else 0)
        block.extend(islice(lines, following))
        found = _Block(b"".join(before), block, atoms, number, at, where)
        _check_complete(found)
        yield found
        at += len(block) - 1
        before, number = [], number + 1
    if before:
        yield _Block(b"".join(before), [])


def _atom_count(line: bytes, size: int, where: str) -> int:
    found = _COUNT.fullmatch(line)
    if not found:
        raise MoleculeFileError(f"{where}: expected the number of atoms, found {shown(line, 40)}.")
    count = int(found[1])
    if count < 1:
        raise MoleculeFileError(f"{where}: {count} atoms.")
    if count * _ATOM_BYTES > size + _ATOM_BYTES:
        raise MoleculeFileError(
            f"{where}: {count} atoms announced, but the whole file has {size} bytes; it is truncated, or the number is wrong."
        )
    return count


def _is_qm9(comment: bytes) -> bool:
    return _QM9_COMMENT.match(comment) is not None


def _check_complete(block: _Block) -> None:
    held = len(block.lines) - 2
    if held < block.atoms:
        raise MoleculeFileError(
            f"{block.where}, line {block.first_line}: {block.atoms} atoms announced, but the file ends after {max(held, 0)}; "
            "it is truncated."
        )
    if not block.is_qm9:
        return
    last = block.first_line + len(block.lines) - 1
    if held < block.atoms + _QM9_LINES_AFTER:
        raise MoleculeFileError(
            f"{block.where}, line {last}: the file ends here, but in QM9's format frequencies, SMILES and InChI follow the "
            "atoms; it is truncated."
        )
    if not block.lines[-1].startswith(b"InChI="):
        raise MoleculeFileError(
            f"{block.where}, line {last}: expected the InChI of QM9's format (the third line after the atoms), found "
            f"{shown(block.lines[-1], 40)}."
        )


def _parsed(block: _Block, path: Path) -> tuple[Molecule, dict[str, Any], _Comment]:
    where = f"{block.where}, line {block.first_line + 1}"
    comment = _qm9_comment(block.comment, where) if block.is_qm9 else _comment(block.comment, where)
    properties = properties_of(comment.entries, where)
    if block.is_qm9:
        _check_qm9_numbers(properties, where)
    numbers, positions = _atoms(block, comment.columns)
    name = str(properties.get("name") or f"molecule {block.number} of {path.name}")
    return Molecule(numbers, positions, name, **comment.settings), properties, comment


def _atoms(block: _Block, columns: _Columns) -> tuple[IntArray, FloatArray]:
    found = [_atom(block, 2 + k, columns) for k in range(block.atoms)]
    numbers = np.array([number for number, _ in found], dtype=np.int64)
    positions = np.array([position for _, position in found], dtype=float)
    infinite = np.flatnonzero(~np.isfinite(positions).all(axis=1))
    if infinite.size:
        line = block.first_line + 2 + int(infinite[0])
        raise MoleculeFileError(f"{block.where}, line {line}: a coordinate is NaN or infinite.")
    return numbers, positions


def _atom(block: _Block, at: int, columns: _Columns) -> tuple[int, list[float]]:
    line = block.lines[at]
    fields = line.split()
    end = columns.position + 3
    if len(fields) < max(end, columns.element + 1) or (columns.total is not None and len(fields) != columns.total):
        raise _bad_atom(block, at, f"expected {_expected(columns)}, found {shown(line)}")
    symbol = fields[columns.element]
    number = int(symbol) if symbol.isdigit() and len(symbol) < 4 else _NUMBER_OF.get(symbol.capitalize(), 0)
    if not 1 <= number < len(SYMBOLS):
        raise _bad_atom(block, at, f"unknown element {shown(symbol, 20)}")
    texts = fields[columns.position : end]
    try:
        # The fast way, for the ordinary notation. Underscores are Python's own.
        if b"_" not in line:
            return number, [float(text) for text in texts]
    except ValueError:
        pass
    position = [read_number(text) for text in texts]
    if None in position:
        raise _bad_atom(block, at, f"a coordinate is not a number: {shown(line)}")
    return number, position  # type: ignore[return-value]


def _bad_atom(block: _Block, at: int, problem: str) -> MoleculeFileError:
    return MoleculeFileError(f"{block.where}, line {block.first_line + at}: {problem}.")


def _expected(columns: _Columns) -> str:
    if columns.total is None:
        return "an element and three coordinates"
    return f"an element and three coordinates in {columns.total} columns (see Properties in the comment)"


def _qm9_comment(comment: bytes, where: str) -> _Comment:
    found = list(_PLAIN_VALUE.finditer(comment))[1:]
    if len(found) != len(_QM9_NAMES):
        raise MoleculeFileError(
            f"{where}: a comment that begins with gdb is in QM9's format and has an index and {len(QM9_UNITS)} numbers; "
            f"found {len(found)} fields."
        )
    entries = [Entry(name, match[0], *match.span()) for name, match in zip(_QM9_NAMES, found, strict=True)]
    if not entries[0].text.isdigit():
        raise MoleculeFileError(f"{where}: the index of QM9's format is not a whole number: {shown(entries[0].text)}.")
    return _Comment(entries)


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


def _comment(comment: bytes, where: str) -> _Comment:
    entries = scan_comment(comment, where)
    settings: dict[str, bytes] = {}
    for entry in entries:
        if entry.name in _SETTINGS and settings.setdefault(entry.name, entry.text) != entry.text:
            raise MoleculeFileError(f"{where}: {entry.name} stands there twice: remove one.")
    columns = _columns(settings["Properties"], where) if "Properties" in settings else _Columns()
    periodic = _periodic(settings.get("pbc"), "Lattice" in settings, where)
    found: dict[str, Any] = {}
    if "Lattice" in settings:
        found = {"cell": _cell(settings["Lattice"], periodic, where), "pbc": periodic}
    return _Comment([entry for entry in entries if entry.name not in _SETTINGS], columns, found)


def _columns(description: bytes, where: str) -> _Columns:
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
    return _Columns(element[0], position[0], at)


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
