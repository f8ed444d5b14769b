"""Graphs from RDKit molecules and SMILES: atoms and chemical bonds, without geometry."""

from __future__ import annotations

from typing import Any

import numpy as np

from mislabel.errors import InvalidGraphError, MissingDependencyError
from mislabel.kernels.graphs.graph import Graph

#: Rings of longer strings take RDKit minutes; no molecule of a regression data set is near.
_LONGEST_SMILES = 5_000


def graph_from_smiles(smiles: str, *, hydrogens: bool = False) -> Graph:
    """Parse a SMILES string; hydrogens become atoms of their own on request."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError:
        raise MissingDependencyError("SMILES need RDKit: pip install rdkit.") from None
    if not isinstance(smiles, str) or not smiles.strip():
        raise InvalidGraphError(f"{smiles!r} is not a SMILES string.")
    first = smiles.split()[0]
    if not (first.isascii() and first.isprintable()):
        # RDKit takes what stands before a foreign letter for the whole molecule; in older versions, before a NUL too.
        raise InvalidGraphError(f"the SMILES string {_shown(smiles)} has letters that no SMILES has: is it damaged?")
    if len(smiles) > _LONGEST_SMILES:
        raise InvalidGraphError(
            f"the SMILES string {_shown(smiles)} has {len(smiles):,} letters; at most {_LONGEST_SMILES:,} are read."
        )
    RDLogger.DisableLog("rdApp.*")
    try:
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is not None and hydrogens:
            molecule = Chem.AddHs(molecule)
    except Exception as error:  # RDKit raises many kinds, some of them its own
        raise InvalidGraphError(f"the SMILES string {_shown(smiles)} cannot be read: {_reason(error)}") from None
    finally:
        RDLogger.EnableLog("rdApp.*")
    if molecule is None:
        raise InvalidGraphError(
            f"the SMILES string {_shown(smiles)} cannot be read: check brackets, ring numbers and valences."
        )
    return graph_from_rdkit(molecule, name=_shortened(smiles))


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else text[:most] + "..."


def _shown(smiles: str) -> str:
    return repr(_shortened(smiles, 100))


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def graph_from_rdkit(molecule: Any, *, name: str | None = None) -> Graph:
    """Node attributes element, charge, aromatic, hybridization, hydrogens; edge attributes order, aromatic, ring, conjugated.

    All edges have weight one; ``order`` is 1.5 for aromatic bonds.
    """
    title = name or (molecule.GetProp("_Name") if molecule.HasProp("_Name") else "") or "molecule"
    atoms, bonds = list(molecule.GetAtoms()), list(molecule.GetBonds())
    if not atoms:
        raise InvalidGraphError(f"{title} has no atoms.")
    try:
        hydrogens = [atom.GetTotalNumHs() for atom in atoms]
    except RuntimeError:
        raise InvalidGraphError(
            f"{title} has not been sanitized by RDKit: call Chem.SanitizeMol on it first."
        ) from None
    return Graph(
        n_nodes=len(atoms),
        edges=np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]).reshape(-1, 2),
        nodes={
            "element": np.array([atom.GetAtomicNum() for atom in atoms]),
            "charge": np.array([atom.GetFormalCharge() for atom in atoms]),
            "aromatic": np.array([atom.GetIsAromatic() for atom in atoms]),
            "hybridization": np.array([str(atom.GetHybridization()) for atom in atoms], dtype=object),
            "hydrogens": np.array(hydrogens),
        },
        edge_labels={
            "order": np.array([bond.GetBondTypeAsDouble() for bond in bonds], dtype=float),
            "aromatic": np.array([bond.GetIsAromatic() for bond in bonds], dtype=bool),
            "ring": np.array([bond.IsInRing() for bond in bonds], dtype=bool),
            "conjugated": np.array([bond.GetIsConjugated() for bond in bonds], dtype=bool),
        },
        name=title,
    )
