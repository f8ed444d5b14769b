"""Plain xyz, extended xyz, and QM9's own dialect: read, and written back with some labels changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mislabel.data.formats.molecule_set import Molecule, MoleculeSet, collect
from mislabel.data.formats.molecule_text import (
    check_positions,
    file_size,
    read_lines,
    read_number,
    replace_value,
    shown,
    without_mark,
)
from mislabel.data.formats.xyz_comment import QM9_UNITS, AtomColumns, Comment, is_qm9, read_comment
from mislabel.errors import MoleculeFileError
from mislabel.kernels.graphs.molecules import SYMBOLS
from mislabel.linalg.contract import FloatArray, IntArray

_NUMBER_OF = {symbol.encode(): number for number, symbol in enumerate(SYMBOLS) if number}
#: Frequencies, SMILES and InChI follow the atoms in QM9's files.
_QM9_LINES_AFTER = 3
#: The shortest line of an atom, "H 0 0 0" and its end.
_ATOM_BYTES = 8
_COUNT = re.compile(rb"\s*(\d{1,18})\s*")


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
        return is_qm9(self.comment)


def read_xyz(path: Path) -> MoleculeSet:
    """Plain and extended xyz, one molecule after the other, and the files of QM9."""

    def records() -> Iterator[tuple[Molecule, dict[str, Any]]]:
        for block in _blocks(path):
            if block.lines:
                molecule, properties, _ = _parsed(block, path)
                yield molecule, properties

    return collect(path, records(), QM9_UNITS)


def write_xyz(source: Path, label: str, values: dict[int, float], dropped: set[int], out: BinaryIO) -> int:
    """Copy an xyz file with the label of some molecules replaced and others left out; every other byte stays.

    The file is parsed as by :func:`read_xyz`, so that both agree on what is a molecule and where its label stands. Returns how
    many molecules the file has.
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
    return count


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
        following = atoms + (_QM9_LINES_AFTER if len(block) > 1 and is_qm9(block[1]) else 0)
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


def _parsed(block: _Block, path: Path) -> tuple[Molecule, dict[str, Any], Comment]:
    where = f"{block.where}, line {block.first_line + 1}"
    comment, properties = read_comment(block.comment, where)
    numbers, positions = _atoms(block, comment.columns)
    name = str(properties.get("name") or f"molecule {block.number} of {path.name}")
    return Molecule(numbers, positions, name, **comment.settings), properties, comment


def _atoms(block: _Block, columns: AtomColumns) -> tuple[IntArray, FloatArray]:
    found = [_atom(block, 2 + k, columns) for k in range(block.atoms)]
    numbers = np.array([number for number, _ in found], dtype=np.int64)
    positions = np.array([position for _, position in found], dtype=float)
    infinite = np.flatnonzero(~np.isfinite(positions).all(axis=1))
    if infinite.size:
        line = block.first_line + 2 + int(infinite[0])
        raise MoleculeFileError(f"{block.where}, line {line}: a coordinate is NaN or infinite.")
    return numbers, positions


def _atom(block: _Block, at: int, columns: AtomColumns) -> tuple[int, list[float]]:
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


def _expected(columns: AtomColumns) -> str:
    if columns.total is None:
        return "an element and three coordinates"
    return f"an element and three coordinates in {columns.total} columns (see Properties in the comment)"
