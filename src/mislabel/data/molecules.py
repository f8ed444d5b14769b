"""Molecules from files: xyz, extended xyz, QM9's own xyz, sdf, and tables with a SMILES column. Lengths in Angstrom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from mislabel.errors import MissingDependencyError, MoleculeFileError
from mislabel.kernels.graphs.graph import Graph
from mislabel.kernels.graphs.molecules import SYMBOLS
from mislabel.linalg.contract import FloatArray, IntArray

BOHR_IN_ANGSTROM = 0.529177210903
_NUMBER_OF = {symbol: number for number, symbol in enumerate(SYMBOLS) if number}
#: Values on the second line of QM9's files, after "gdb" and the index, with their units.
_QM9_VALUES = [
    ("rotational_a", "GHz"),
    ("rotational_b", "GHz"),
    ("rotational_c", "GHz"),
    ("dipole", "debye"),
    ("polarizability", "bohr^3"),
    ("homo", "hartree"),
    ("lumo", "hartree"),
    ("gap", "hartree"),
    ("spatial_extent", "bohr^2"),
    ("zero_point_energy", "hartree"),
    ("energy_0K", "hartree"),
    ("energy", "hartree"),
    ("enthalpy", "hartree"),
    ("free_energy", "hartree"),
    ("heat_capacity", "cal/(mol K)"),
]


@dataclass(frozen=True, eq=False)
class Molecule:
    """Atomic numbers and positions in Angstrom; ``cell`` and ``pbc`` if periodic. Kernels take it like an ase.Atoms."""

    numbers: IntArray
    positions: FloatArray
    name: str = "molecule"
    cell: FloatArray | None = None
    pbc: Any = False

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"Molecule({self.name}: {self.formula})"

    @property
    def formula(self) -> str:
        """Carbon and hydrogen first, then alphabetically."""
        symbols, counts = np.unique([SYMBOLS[number] for number in self.numbers], return_counts=True)
        order = sorted(zip(symbols, counts, strict=True), key=lambda item: ({"C": 0, "H": 1}.get(item[0], 2), item[0]))
        return "".join(symbol + (str(count) if count > 1 else "") for symbol, count in order)

    def to_ase(self) -> Any:
        """The same as an ase.Atoms."""
        try:
            from ase import Atoms
        except ImportError:
            raise MissingDependencyError("ASE is not installed: pip install 'mislabel[chem]'.") from None
        return Atoms(numbers=self.numbers, positions=self.positions, cell=self.cell, pbc=self.pbc)


@dataclass(frozen=True, eq=False)
class MoleculeSet(Sequence[Any]):
    """Molecules (or bond graphs) with their properties, one value each, and the properties' units.

    ``folds`` are the official cross-validation folds of a data set that has them, as arrays of positions.
    """

    molecules: list[Any]
    properties: dict[str, np.ndarray] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    folds: list[IntArray] | None = None
    source: str = ""

    def __len__(self) -> int:
        return len(self.molecules)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.molecules[index]

    def describe(self) -> pd.DataFrame:
        """A table for people: name, formula and size of every molecule beside its properties."""
        columns: dict[str, Any] = {}
        if self.molecules and isinstance(self.molecules[0], Molecule):
            columns["molecule"] = [molecule.name for molecule in self.molecules]
            columns["formula"] = [molecule.formula for molecule in self.molecules]
        columns["atoms"] = [getattr(molecule, "n_nodes", None) or len(molecule) for molecule in self.molecules]
        taken = {name: values for name, values in self.properties.items() if name not in columns}
        return pd.DataFrame({**columns, **taken})

    def labels(self, name: str) -> np.ndarray:
        """One property as numbers."""
        if name not in self.properties:
            known = ", ".join(sorted(self.properties)) or "none"
            raise MoleculeFileError(f"{self.source or 'the set'} has no property {name!r}; it has: {known}.")
        values = self.properties[name]
        try:
            return np.array([np.nan if value is None else value for value in values], dtype=float)
        except (TypeError, ValueError):
            raise MoleculeFileError(f"{self.source}: property {name!r} is not numeric.") from None


def read_molecules(path: str | Path, format: str | None = None) -> MoleculeSet:
    """Read a file by its extension (or ``format``): xyz, extxyz, sdf, mol, or csv/tsv with a SMILES column."""
    path = Path(path)
    kind = (format or path.suffix.lstrip(".")).lower()
    if kind not in READERS:
        raise MoleculeFileError(f"{path}: unknown format {kind!r}; known are {', '.join(sorted(READERS))}.")
    if not path.exists():
        raise MoleculeFileError(f"{path} does not exist.")
    if path.stat().st_size == 0:
        raise MoleculeFileError(f"{path} is empty.")
    return READERS[kind](path)


def _collect(path: Path, records: Iterator[tuple[Any, dict[str, Any]]], units: dict[str, str]) -> MoleculeSet:
    molecules, rows = [], []
    for molecule, info in records:
        molecules.append(molecule)
        rows.append(info)
    if not molecules:
        raise MoleculeFileError(f"{path} contains no molecules.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    properties = {name: np.array([row.get(name) for row in rows], dtype=object) for name in names}
    for name, values in properties.items():
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            properties[name] = values.astype(float)
    return MoleculeSet(molecules, properties, {name: units[name] for name in names if name in units}, source=str(path))


def read_xyz(path: Path) -> MoleculeSet:
    """Plain and extended xyz, one molecule after the other, and the files of QM9."""
    return _collect(path, _xyz_records(path), dict(_QM9_VALUES))


def _xyz_records(path: Path) -> Iterator[tuple[Molecule, dict[str, Any]]]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    at, number = 0, 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        where = f"{path}, molecule {number}"
        try:
            count = int(lines[at])
        except ValueError:
            raise MoleculeFileError(
                f"{where}, line {at + 1}: expected the number of atoms, found {lines[at].strip()[:40]!r}."
            ) from None
        if count < 1:
            raise MoleculeFileError(f"{where}, line {at + 1}: {count} atoms.")
        if at + 2 + count > len(lines):
            raise MoleculeFileError(
                f"{where}, line {at + 1}: {count} atoms announced, but the file ends after {max(len(lines) - at - 2, 0)}; "
                "it is truncated."
            )
        comment = lines[at + 1]
        block = lines[at + 2 : at + 2 + count]
        info, first, settings = _comment(comment)
        numbers, positions = np.empty(count, dtype=np.int64), np.empty((count, 3))
        for k, line in enumerate(block):
            numbers[k], positions[k] = _atom(line, first, f"{where}, line {at + 3 + k}")
        name = str(info.get("name") or f"molecule {number} of {path.name}")
        yield Molecule(numbers, positions, name, **settings), info
        at += 2 + count
        if comment.startswith("gdb"):
            at += 3  # frequencies, SMILES, InChI
        number += 1


def replace_xyz_labels(path: Path, name: str, values: dict[int, float], dropped: set[int]) -> str:
    """The text of an xyz file with a property of some molecules replaced and others left out."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    kept: list[str] = []
    at, number = 0, 0
    while at < len(lines):
        if not lines[at].strip():
            kept.append(lines[at])
            at += 1
            continue
        end = at + 2 + int(lines[at])
        if lines[at + 1].startswith("gdb"):
            end += 3
        block = lines[at:end]
        if number in values:
            block[1] = _with_value(block[1], name, values[number], f"{path}, molecule {number}")
        if number not in dropped:
            kept += block
        at, number = end, number + 1
    return "".join(kept)


def _with_value(comment: str, name: str, value: float, where: str) -> str:
    if comment.startswith("gdb"):
        names = ["index", *(known for known, _ in _QM9_VALUES)]
        if name in names:
            fields = re.split(r"(\s+)", comment)
            fields[2 * (names.index(name) + 1)] = repr(value)
            return "".join(fields)
    else:
        pattern = re.compile(r"((?:^|(?<=\s))" + re.escape(name) + r"=)(\"[^\"]*\"|\{[^}]*\}|\S+)")
        changed, count = pattern.subn(lambda match: match.group(1) + repr(value), comment)
        if count:
            return changed
    raise MoleculeFileError(f"{where} has no property {name!r}.")


def replace_sdf_labels(path: Path, name: str, values: dict[int, float], dropped: set[int]) -> str:
    """The text of an SD file with a property of some molecules replaced and others left out."""
    text = path.read_text(encoding="utf-8", errors="replace")
    blocks = re.split(r"(?<=\$\$\$\$)\r?\n", text)
    kept: list[str] = []
    item = re.compile(r"(^>[^\n]*<" + re.escape(name) + r">[^\n]*\n)([^\n]*)", re.MULTILINE)
    for number, block in enumerate(blocks):
        if number in dropped:
            continue
        if number in values:
            value = repr(values[number])
            block, count = item.subn(lambda match, value=value: match.group(1) + value, block, count=1)
            if not count:
                raise MoleculeFileError(f"{path}, molecule {number} has no property {name!r}.")
        kept.append(block)
    return "\n".join(kept)


def _atom(line: str, first: tuple[int, int], where: str) -> tuple[int, list[float]]:
    fields = line.split()
    species, start = first
    if len(fields) < start + 3:
        raise MoleculeFileError(f"{where}: expected an element and three coordinates, found {line.strip()[:60]!r}.")
    symbol = fields[species]
    number = int(symbol) if symbol.isdigit() else _NUMBER_OF.get(symbol[:1].upper() + symbol[1:].lower(), 0)
    if not 1 <= number < len(SYMBOLS):
        raise MoleculeFileError(f"{where}: unknown element {symbol!r}.")
    try:
        # QM9 writes powers of ten as 1.5*^-6.
        position = [float(value.replace("*^", "e")) for value in fields[start : start + 3]]
    except ValueError:
        raise MoleculeFileError(f"{where}: a coordinate is not a number: {line.strip()[:60]!r}.") from None
    if not np.isfinite(position).all():
        raise MoleculeFileError(f"{where}: a coordinate is NaN or infinite.")
    return number, position


def _comment(comment: str) -> tuple[dict[str, Any], tuple[int, int], dict[str, Any]]:
    """Properties of a molecule, columns of element and position, cell and periodicity, from its second line."""
    if comment.startswith("gdb"):
        values = comment.split()[1:]
        info: dict[str, Any] = {"index": float(values[0])}
        info.update({name: float(value) for (name, _), value in zip(_QM9_VALUES, values[1:], strict=False)})
        return info, (0, 1), {}
    pairs = re.findall(r"([^\s=\"]+)=(\"[^\"]*\"|\{[^}]*\}|\S+)", comment)
    values = {key: value.strip('"{}') for key, value in pairs}
    columns, settings = (0, 1), {}
    if "Properties" in values:
        columns = _columns(values.pop("Properties"))
    if "Lattice" in values:
        settings["cell"] = np.array(values.pop("Lattice").split(), dtype=float).reshape(3, 3)
        periodic = values.pop("pbc", "T T T").split()
        settings["pbc"] = np.array([flag.upper().startswith(("T", "1")) for flag in periodic])
    return {key: _value(value) for key, value in values.items()}, columns, settings


def _columns(description: str) -> tuple[int, int]:
    fields = description.split(":")
    at, found = 0, {"species": 0, "pos": 1}
    for name, _, count in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        found[name] = at
        at += int(count)
    return found.get("species", found.get("Z", 0)), found["pos"]


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def read_sdf(path: Path) -> MoleculeSet:
    """SD files, by RDKit; coordinates must be three-dimensional."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError:
        raise MissingDependencyError("sdf files need RDKit: pip install 'mislabel[chem]'.") from None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    starts = [1] + [number + 2 for number, line in enumerate(lines) if line.startswith("$$$$")]

    def records() -> Iterator[tuple[Molecule, dict[str, Any]]]:
        RDLogger.DisableLog("rdApp.*")
        try:
            supplier = Chem.SDMolSupplier(str(path), sanitize=False, removeHs=False)
            for number, molecule in enumerate(supplier):
                where = f"{path}, molecule {number}, from line {starts[min(number, len(starts) - 1)]} on"
                if molecule is None or molecule.GetNumConformers() == 0 or molecule.GetNumAtoms() == 0:
                    raise MoleculeFileError(f"{where}: cannot be read; it is damaged or truncated.")
                positions = np.array(molecule.GetConformer().GetPositions(), dtype=float)
                if molecule.GetNumAtoms() > 3 and np.ptp(positions[:, 2]) == 0 and not molecule.GetConformer().Is3D():
                    raise MoleculeFileError(f"{where}: the coordinates are flat drawings; make them 3-D first.")
                numbers = np.array([atom.GetAtomicNum() for atom in molecule.GetAtoms()], dtype=np.int64)
                if (numbers < 1).any():
                    raise MoleculeFileError(f"{where}: unknown element at atom {int(np.argmin(numbers))}.")
                title = molecule.GetProp("_Name") if molecule.HasProp("_Name") else ""
                info = {key: _value(str(value)) for key, value in molecule.GetPropsAsDict().items()}
                yield Molecule(numbers, positions, title or f"molecule {number} of {path.name}"), info
        finally:
            RDLogger.EnableLog("rdApp.*")

    return _collect(path, records(), {})


def read_smiles_table(path: Path, column: str | None = None) -> MoleculeSet:
    """A table with a column of SMILES (named so, unless ``column`` says otherwise); the other columns are properties."""
    frame = pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",")
    if column is None:
        named = [name for name in frame.columns if "smiles" in str(name).lower()]
        if not named:
            raise MoleculeFileError(
                f"{path} has no SMILES column; its columns are {', '.join(map(str, frame.columns))}."
            )
        column = named[0]
    if column not in frame.columns:
        raise MoleculeFileError(
            f"{path} has no column {column!r}; its columns are {', '.join(map(str, frame.columns))}."
        )
    graphs = bond_graphs(frame[column], str(path))
    properties = {str(name): frame[name].to_numpy() for name in frame.columns if name != column}
    return MoleculeSet(graphs, properties, source=str(path))


def bond_graphs(smiles: Iterable[Any], source: str) -> list[Graph]:
    """Graphs of a column of SMILES; errors name the line of the ``source`` file."""
    graphs = []
    for row, text in enumerate(smiles):
        try:
            graphs.append(Graph.from_smiles(text))
        except (ValueError, TypeError) as error:
            raise MoleculeFileError(f"{source}, line {row + 2}: {error}") from None
    return graphs


#: Readers by file extension.
READERS = {
    "xyz": read_xyz,
    "extxyz": read_xyz,
    "sdf": read_sdf,
    "mol": read_sdf,
    "csv": read_smiles_table,
    "tsv": read_smiles_table,
    "gz": read_smiles_table,
}
