"""What every reader returns: molecules with their properties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from mislabel._common.number_kinds import is_number
from mislabel.data.number_text import is_missing
from mislabel.errors import MissingDependencyError, MoleculeFileError
from mislabel.kernels.graphs.molecules import SYMBOLS
from mislabel.linalg.contract import FloatArray, IntArray

#: Every property takes a value per molecule: a file with more names than this has its comments misread, or is an attack.
MOST_PROPERTIES = 10_000


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
            raise MissingDependencyError("ASE is not installed: pip install ase.") from None
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
        """One property as numbers; NaN where a molecule has no value or a mark for a missing one, such as "NA".

        Anything else that is not a number (text, true and false, lists) is an error that names the molecules.
        """
        source = self.source or "the set"
        if name not in self.properties:
            known = ", ".join(sorted(self.properties)) or "none"
            raise MoleculeFileError(f"{source} has no property {name!r}; it has: {known}.")
        values = np.asarray(self.properties[name])
        if values.shape != (len(self),):
            raise MoleculeFileError(
                f"{source}: property {name!r} has shape {values.shape}, but there are {len(self)} molecules: give one "
                "number per molecule."
            )
        if values.dtype.kind in "iuf":
            return values.astype(float)
        labels = np.array([_label(value) for value in values.tolist()], dtype=object)
        unusable = [number for number, value in enumerate(labels) if value is None]
        if unusable:
            raise MoleculeFileError(
                f"{source}: property {name!r} is not numeric: {_molecules(unusable)} (counting from 0) hold"
                f"{'s' if len(unusable) == 1 else ''} {_shown(values[unusable[0]])}. Correct the file, or drop "
                f"{'it' if len(unusable) == 1 else 'them'}."
            )
        return labels.astype(float)


def _label(value: Any) -> float | None:
    """A value as a label, NaN where it is missing, None where it is no number."""
    if value is None or value is pd.NA or (isinstance(value, str) and is_missing(value)):
        return float("nan")
    if not is_number(value):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _molecules(numbers: list[int], most: int = 5) -> str:
    names = ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")
    return f"molecule{'s' if len(numbers) > 1 else ''} {names}"


def _shown(value: Any) -> str:
    kind = "text" if isinstance(value, str) else type(value).__name__
    return f"{kind} ({repr(value)[:60]})"


def collect(path: Path, records: Iterable[tuple[Any, dict[str, Any]]], units: dict[str, str]) -> MoleculeSet:
    """Molecules with the properties of each, as one set; a property that a molecule lacks is None."""
    molecules, rows = [], []
    names: dict[str, None] = {}
    for molecule, properties in records:
        molecules.append(molecule)
        rows.append(properties)
        names.update(dict.fromkeys(properties))
        if len(names) > MOST_PROPERTIES:
            raise MoleculeFileError(
                f"{path}, molecule {len(rows) - 1}: the file has more than {MOST_PROPERTIES:,} different properties up to "
                "here; are the comments not in the form name=value?"
            )
    if not molecules:
        raise MoleculeFileError(f"{path} contains no molecules.")
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return MoleculeSet(molecules, columns, {name: units[name] for name in names if name in units}, source=str(path))


def _column(values: list[Any]) -> np.ndarray:
    if all(is_number(value) for value in values):
        return np.array(values, dtype=float)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
