"""Graphs from RDKit molecules and SMILES: atoms and chemical bonds, without geometry."""

from __future__ import annotations

from typing import Any

import numpy as np

from mislabel.errors import InvalidGraphError, MissingDependencyError
from mislabel.kernels.graphs.graph import Graph


def graph_from_smiles(smiles: str, *, hydrogens: bool = False) -> Graph:
    """Parse a SMILES string; hydrogens become atoms of their own on request."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError:
        raise MissingDependencyError("SMILES need RDKit: pip install 'mislabel[chem]'.") from None
    if not isinstance(smiles, str) or not smiles.strip():
        raise InvalidGraphError(f"{smiles!r} is not a SMILES string.")
    RDLogger.DisableLog("rdApp.*")
    try:
        molecule = Chem.MolFromSmiles(smiles)
    finally:
        RDLogger.EnableLog("rdApp.*")
    if molecule is None:
        raise InvalidGraphError(
            f"the SMILES string {smiles!r} cannot be read: check brackets, ring numbers and valences."
        )
    return graph_from_rdkit(Chem.AddHs(molecule) if hydrogens else molecule, name=smiles)


def graph_from_rdkit(molecule: Any, *, name: str | None = None) -> Graph:
    """Node attributes element, charge, aromatic, hybridization, hydrogens; edge attributes order, aromatic, ring, conjugated.

    All edges have weight one; ``order`` is 1.5 for aromatic bonds.
    """
    title = name or (molecule.GetProp("_Name") if molecule.HasProp("_Name") else "") or "molecule"
    atoms, bonds = list(molecule.GetAtoms()), list(molecule.GetBonds())
    if not atoms:
        raise InvalidGraphError(f"{title} has no atoms.")
    return Graph(
        n_nodes=len(atoms),
        edges=np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]).reshape(-1, 2),
        nodes={
            "element": np.array([atom.GetAtomicNum() for atom in atoms]),
            "charge": np.array([atom.GetFormalCharge() for atom in atoms]),
            "aromatic": np.array([atom.GetIsAromatic() for atom in atoms]),
            "hybridization": np.array([str(atom.GetHybridization()) for atom in atoms], dtype=object),
            "hydrogens": np.array([atom.GetTotalNumHs() for atom in atoms]),
        },
        edge_labels={
            "order": np.array([bond.GetBondTypeAsDouble() for bond in bonds], dtype=float),
            "aromatic": np.array([bond.GetIsAromatic() for bond in bonds], dtype=bool),
            "ring": np.array([bond.IsInRing() for bond in bonds], dtype=bool),
            "conjugated": np.array([bond.GetIsConjugated() for bond in bonds], dtype=bool),
        },
        name=title,
    )
