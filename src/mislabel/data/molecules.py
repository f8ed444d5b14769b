"""Molecules from files: xyz, extended xyz, QM9's own xyz, sdf, and tables with a SMILES column. Lengths in Angstrom."""

from __future__ import annotations

from pathlib import Path

from mislabel.data.formats.molecule_set import Molecule, MoleculeSet
from mislabel.data.formats.registry import MOLECULE_SUFFIXES, MOLECULES, MoleculeReader, MoleculeWriter
from mislabel.data.formats.sdf import read_sdf, write_sdf
from mislabel.data.formats.xyz import read_xyz, write_xyz
from mislabel.data.smiles import bond_graphs, read_smiles_table, smiles_columns, table_graphs
from mislabel.errors import MoleculeFileError

__all__ = [
    "BOHR_IN_ANGSTROM",
    "MOLECULE_SUFFIXES",
    "READERS",
    "WRITERS",
    "Molecule",
    "MoleculeSet",
    "bond_graphs",
    "read_molecules",
    "read_sdf",
    "read_smiles_table",
    "read_xyz",
    "smiles_columns",
    "table_graphs",
    "write_sdf",
    "write_xyz",
]

BOHR_IN_ANGSTROM = 0.529177210903
#: Readers by file extension: those of the registry, and the tables that may hold SMILES.
READERS: dict[str, MoleculeReader] = {
    **{suffix: format.read for suffix, format in MOLECULES.items()},
    **dict.fromkeys(("csv", "tsv", "gz"), read_smiles_table),
}
#: Writers of corrected copies by file extension.
WRITERS: dict[str, MoleculeWriter] = {
    suffix: format.write for suffix, format in MOLECULES.items() if format.write is not None
}


def read_molecules(path: str | Path, format: str | None = None) -> MoleculeSet:
    """Read a file by its extension (or ``format``): xyz, extxyz, sdf, mol, or csv/tsv with a SMILES column.

    A file that cannot be read is a MoleculeFileError that names the molecule and the line.
    """
    path = Path(path)
    kind = (format or path.suffix).lstrip(".").lower()
    if kind not in READERS:
        raise MoleculeFileError(f"{path}: unknown format {kind!r}; known are {', '.join(sorted(READERS))}.")
    try:
        if not path.exists():
            raise MoleculeFileError(f"{path} does not exist.")
        if path.is_dir():
            raise MoleculeFileError(f"{path} is a folder, not a file of molecules.")
        if path.stat().st_size == 0:
            raise MoleculeFileError(f"{path} is empty.")
    except OSError as error:
        raise MoleculeFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    return READERS[kind](path)
