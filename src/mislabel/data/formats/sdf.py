"""SD files and mol files: read with RDKit, and written back with some labels changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mislabel.data.formats.molecule_set import Molecule, MoleculeSet, collect
from mislabel.data.formats.molecule_text import (
    Entry,
    check_positions,
    decoded,
    properties_of,
    read_lines,
    replace_value,
    shown,
    without_mark,
)
from mislabel.errors import MissingDependencyError, MoleculeFileError
from mislabel.kernels.graphs.molecules import SYMBOLS

_END_OF_RECORD = b"$$$$"
_END_OF_ATOMS = b"M  END"
#: Lines of one molecule; a thousand times what a large one has.
_MOST_LINES = 1_000_000


@dataclass(frozen=True, slots=True)
class _Record:
    """The lines of one molecule as they stand in the file, up to and with ``$$$$``."""

    lines: list[bytes]
    number: int
    first_line: int
    path: Path

    @property
    def where(self) -> str:
        return f"{self.path}, molecule {self.number}, from line {self.first_line} on"

    @property
    def is_blank(self) -> bool:
        """Nothing but blank lines: what may follow the last molecule."""
        return not any(line.strip() for line in self.lines)

    def error(self, at: int, problem: str) -> MoleculeFileError:
        """An error that names a line of the record, counted from zero."""
        return MoleculeFileError(f"{self.path}, molecule {self.number}, line {self.first_line + at}: {problem}")


def read_sdf(path: Path) -> MoleculeSet:
    """SD files; coordinates must be three-dimensional."""

    def records() -> Iterator[tuple[Molecule, dict[str, Any]]]:
        with _rdkit() as chem:
            for record in _records(path):
                if not record.is_blank:
                    molecule, properties, _ = _parsed(record, chem)
                    yield molecule, properties

    return collect(path, records(), {})


def write_sdf(source: Path, label: str, values: dict[int, float], dropped: set[int], out: BinaryIO) -> int:
    """Copy an SD file with the label of some molecules replaced and others left out; every other byte stays.

    The file is parsed as by :func:`read_sdf`, so that both agree on what is a molecule and where its label stands. Returns how
    many molecules the file has.
    """
    count = 0
    with _rdkit() as chem:
        for record in _records(source):
            piece = b"".join(record.lines)
            if not record.is_blank:
                count += 1
                _, _, entries = _parsed(record, chem)
                if record.number in dropped:
                    # A byte order mark belongs to the file, not to its first molecule.
                    piece = piece[: len(piece) - len(without_mark(piece))] if record.number == 0 else b""
                elif record.number in values:
                    piece = replace_value(piece, entries, label, values[record.number], record.where, b"e")
            out.write(piece)
    check_positions(source, values, dropped, count)
    return count


@contextmanager
def _rdkit() -> Iterator[Any]:
    """RDKit without its own messages: the errors raised here say more."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError:
        raise MissingDependencyError("sdf files need RDKit: pip install rdkit.") from None
    log: Any = RDLogger  # its types do not name what it offers
    log.DisableLog("rdApp.*")
    try:
        yield Chem
    finally:
        log.EnableLog("rdApp.*")


def _records(path: Path) -> Iterator[_Record]:
    lines: list[bytes] = []
    number, first_line = 0, 1
    for line in read_lines(path):
        lines.append(line)
        if len(lines) > _MOST_LINES:
            raise MoleculeFileError(
                f"{path}, molecule {number}, from line {first_line} on: no end ($$$$) within {_MOST_LINES:,} lines; this is "
                "not an SD file."
            )
        if line.startswith(_END_OF_RECORD):
            yield _Record(lines, number, first_line, path)
            number, first_line, lines = number + 1, first_line + len(lines), []
    if lines:
        yield _Record(lines, number, first_line, path)


def _parsed(record: _Record, chem: Any) -> tuple[Molecule, dict[str, Any], list[Entry]]:
    end = next((k for k, line in enumerate(record.lines) if line.startswith(_END_OF_ATOMS)), None)
    if end is None:
        raise MoleculeFileError(f"{record.where}: cannot be read; it is damaged or truncated (there is no 'M  END').")
    entries = _data_items(record, end + 1)
    found = _molecule(record, end, chem)
    return found, properties_of(entries, record.where), entries


def _molecule(record: _Record, end: int, chem: Any) -> Molecule:
    lines = [without_mark(line.rstrip(b"\r\n")) for line in record.lines[: end + 1]]
    if any(b"\x00" in line for line in lines):
        raise MoleculeFileError(f"{record.where}: contains NUL bytes; it is damaged, or not an SD file.")
    # Columns count in this format, and RDKit wants UTF-8: other letters, which matter only in the title, are masked.
    block = "\n".join(line.decode("ascii", errors="replace").replace("\ufffd", "?") for line in lines) + "\n"
    try:
        found = chem.MolFromMolBlock(block, sanitize=False, removeHs=False)
    except Exception as error:  # RDKit raises many kinds, some of them its own
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise MoleculeFileError(f"{record.where}: cannot be read by RDKit: {reason}") from None
    if found is None or found.GetNumConformers() == 0 or found.GetNumAtoms() == 0:
        raise MoleculeFileError(f"{record.where}: cannot be read; it is damaged or truncated.")
    numbers = np.array([atom.GetAtomicNum() for atom in found.GetAtoms()], dtype=np.int64)
    positions = np.array(found.GetConformer().GetPositions(), dtype=float)
    unknown = np.flatnonzero((numbers < 1) | (numbers >= len(SYMBOLS)))
    if unknown.size:
        raise MoleculeFileError(f"{record.where}: unknown element at atom {unknown[0]} (counting from 0).")
    if not np.isfinite(positions).all():
        raise MoleculeFileError(f"{record.where}: a coordinate is NaN or infinite.")
    if len(numbers) > 3 and np.ptp(positions[:, 2]) == 0 and not found.GetConformer().Is3D():
        raise MoleculeFileError(f"{record.where}: the coordinates are flat drawings; make them 3-D first.")
    title = decoded(lines[0]).strip()
    return Molecule(numbers, positions, title or f"molecule {record.number} of {record.path.name}")


def _data_items(record: _Record, first: int) -> list[Entry]:
    """The named values after the atoms, each from its ``> <name>`` to an empty line or the next name."""
    entries: list[Entry] = []
    offset = sum(map(len, record.lines[:first]))
    name: str | None = None
    value: list[bytes] | None = None
    for at, line in enumerate(record.lines[first:], first):
        if value is not None and _ends_item(line):
            entries += _entry(name, b"".join(value), offset)
            value = None
        if value is not None:
            value.append(line)
        elif line.startswith(b">"):
            name, value = _name_of(line), []
        elif line.strip() and not line.startswith(_END_OF_RECORD):
            raise record.error(at, f"{shown(line, 40)} belongs to no data item: expected a line such as '> <energy>'.")
        offset += len(line)
    return entries + (_entry(name, b"".join(value), offset) if value is not None else [])


def _ends_item(line: bytes) -> bool:
    """An empty line should; where it was forgotten, the next name does. A value such as ">50" does not."""
    return (
        not line.rstrip(b"\r\n")
        or line.startswith(_END_OF_RECORD)
        or (line.startswith(b">") and _name_of(line) is not None)
    )


def _entry(name: str | None, value: bytes, end: int) -> list[Entry]:
    """A value that ends at ``end``, without the blanks and line ends around it."""
    if name is None:
        return []
    text = value.strip()
    start = end - len(value.lstrip()) if text else end
    return [Entry(name, text, start, start + len(text))]


def _name_of(header: bytes) -> str | None:
    """The name of a data item; None where it is known by a number only, which is allowed."""
    start, end = header.find(b"<"), header.rfind(b">")
    return decoded(header[start + 1 : end]) if 0 < start < end - 1 else None
