"""Public molecule data sets: QM7 and QM9, from a local copy or downloaded once."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel.data.molecules import BOHR_IN_ANGSTROM, Molecule, MoleculeSet, read_molecules
from mislabel.errors import DownloadError, MissingDependencyError, MoleculeFileError
from mislabel.kernels.graphs.molecules import SYMBOLS

QM7_ADDRESS = "http://quantum-machine.org/data/qm7.mat"
HARTREE_IN_KCAL_MOL = 627.5094740631
HARTREE_IN_EV = 27.211386245988
#: Energies of the free atoms at the level of theory of QM9 (B3LYP/6-31G(2df,p)), 0 K, in hartree.
_QM9_ATOMS = {1: -0.500273, 6: -37.846772, 7: -54.583861, 8: -75.064579, 9: -99.718730}
_QM9_PACK_COLUMNS = {
    "Dipole_debye": ("dipole", "debye", 1.0),
    "Polarizability_bohr3": ("polarizability", "bohr^3", 1.0),
    "HOMO_au": ("homo", "eV", HARTREE_IN_EV),
    "LUMO_au": ("lumo", "eV", HARTREE_IN_EV),
    "HOMO_LUMO_gap_au": ("gap", "eV", HARTREE_IN_EV),
    "Heatcapacity_Cv_cal_mol_K": ("heat_capacity", "cal/(mol K)", 1.0),
}


def load_qm7(path: str | Path | None = None, *, checksum: str | None = None) -> MoleculeSet:
    """QM7: 7,165 organic molecules, atomization ``energy`` in kcal/mol, five official folds.

    path : a local qm7.mat, or an .npz of the same data; None downloads qm7.mat once.
    checksum : "sha256:..." that a download must have.
    """
    source = Path(path) if path is not None else _download(QM7_ADDRESS, checksum)
    _must_exist(source)
    if source.suffix == ".npz":
        with np.load(source) as stored:
            data = dict(stored)
        numbers, positions = _apart(data, "R_bohr")
        energy, folds = data["energy_kcal_mol"], data["folds"]
    else:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        try:
            data = loadmat(source)
            padded, coordinates = data["Z"].astype(np.int64), data["R"].astype(float)
            energy, folds = data["T"].ravel(), data["P"]
        except (LookupError, ValueError, TypeError, OSError, MatReadError) as error:
            raise MoleculeFileError(f"{source} is not the public qm7.mat: {error}") from None
        numbers = [row[row > 0] for row in padded]
        positions = [rows[row > 0] for row, rows in zip(padded, coordinates, strict=True)]
    molecules = [
        Molecule(number, position * BOHR_IN_ANGSTROM, f"molecule {k} of QM7")
        for k, (number, position) in enumerate(zip(numbers, positions, strict=True))
    ]
    return MoleculeSet(
        molecules,
        {"energy": np.asarray(energy, dtype=float)},
        {"energy": "kcal/mol"},
        [np.asarray(fold, dtype=np.int64).ravel() for fold in folds],
        str(source),
    )


def load_qm9(path: str | Path | None = None, *, limit: int | None = None) -> MoleculeSet:
    """QM9: atomization ``energy`` (0 K) in kcal/mol, ``polarizability`` in bohr^3, ``gap`` in eV, and more.

    path : None takes the installed package qm9pack (130,831 molecules that pass QM9's consistency check); else a file in
        QM9's own xyz dialect, a folder of such files, or an .npz with the arrays n_atoms, Z, R_angstrom and properties.
    limit : read no more than this many molecules.
    """
    if path is None:
        return _from_qm9pack(limit)
    source = Path(path)
    _must_exist(source)
    if source.suffix == ".npz":
        return _from_npz(source, limit)
    files = sorted(source.glob("*.xyz"))[:limit] if source.is_dir() else [source]
    if not files:
        raise MoleculeFileError(f"{source} contains no xyz files.")
    sets = [read_molecules(file) for file in files]
    molecules = [molecule for part in sets for molecule in part][:limit]
    raw = {
        name: np.concatenate([part.labels(name) for part in sets])[:limit]
        for name in ("energy_0K", "gap", "polarizability")
    }
    return _qm9_set(molecules, raw["energy_0K"], raw["polarizability"], raw["gap"], str(source))


def _qm9_set(molecules: list[Any], internal: Any, polarizability: Any, gap: Any, source: str) -> MoleculeSet:
    energy = (np.asarray(internal, dtype=float) - _atoms(molecules)) * HARTREE_IN_KCAL_MOL
    properties = {
        "energy": energy,
        "polarizability": np.asarray(polarizability, dtype=float),
        "gap": np.asarray(gap, dtype=float) * HARTREE_IN_EV,
    }
    return MoleculeSet(
        molecules, properties, {"energy": "kcal/mol", "polarizability": "bohr^3", "gap": "eV"}, source=source
    )


def _atoms(molecules: list[Any]) -> np.ndarray:
    return np.array([sum(_QM9_ATOMS[int(number)] for number in molecule.numbers) for molecule in molecules])


def _apart(data: dict[str, np.ndarray], coordinates: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Atomic numbers and coordinates by molecule, from arrays that hold all molecules end to end."""
    ends = np.cumsum(data["n_atoms"].astype(int))[:-1]
    return np.split(data["Z"].astype(np.int64), ends), np.split(data[coordinates].astype(float), ends)


def _from_npz(source: Path, limit: int | None) -> MoleculeSet:
    with np.load(source) as stored:
        data = dict(stored)
    numbers, positions = (part[:limit] for part in _apart(data, "R_angstrom"))
    index = data.get("index", np.arange(len(numbers)))
    molecules = [
        Molecule(number, position, f"molecule {index[k]} of QM9")
        for k, (number, position) in enumerate(zip(numbers, positions, strict=True))
    ]
    return _qm9_set(
        molecules, data["U0_hartree"][:limit], data["alpha_bohr3"][:limit], data["gap_hartree"][:limit], str(source)
    )


def _from_qm9pack(limit: int | None) -> MoleculeSet:
    try:
        from importlib.resources import files

        folder = Path(str(files("qm9pack") / "data"))
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "QM9 comes with the package qm9pack: pip install qm9pack, or pass path= to a local copy."
        ) from None
    parts: list[pd.DataFrame] = []
    for part in sorted(folder.glob("qm9_part*.csv")):
        wanted = None if limit is None else limit - sum(map(len, parts))
        if wanted is None or wanted > 0:
            parts.append(pd.read_csv(part, nrows=wanted))
    frame = pd.concat(parts, ignore_index=True)
    molecules = []
    for index, elements, coordinates in zip(frame["Index"], frame["Elements"], frame["XYZ_Ang"], strict=True):
        numbers = np.array([SYMBOLS.index(symbol) for symbol in ast.literal_eval(elements)], dtype=np.int64)
        positions = np.array(ast.literal_eval(coordinates), dtype=float).reshape(-1, 3)
        molecules.append(Molecule(numbers, positions, f"molecule {index} of QM9"))
    energy = (frame["InternalEnergy_0K_au"].to_numpy(float) - _atoms(molecules)) * HARTREE_IN_KCAL_MOL
    properties, units = {"energy": energy}, {"energy": "kcal/mol"}
    for column, (name, unit, factor) in _QM9_PACK_COLUMNS.items():
        properties[name] = frame[column].to_numpy(float) * factor
        units[name] = unit
    return MoleculeSet(molecules, properties, units, source="qm9pack")


def _must_exist(source: Path) -> None:
    if not source.exists():
        raise MoleculeFileError(f"{source} does not exist.")


def _download(address: str, checksum: str | None) -> Path:
    try:
        import pooch
    except ImportError:
        raise MissingDependencyError(
            f"downloads need pooch: pip install pooch; or fetch {address} yourself and pass path=."
        ) from None
    try:
        return Path(pooch.retrieve(address, known_hash=checksum, path=pooch.os_cache("mislabel"), progressbar=False))
    except Exception as error:
        raise DownloadError(
            f"{address} could not be downloaded ({type(error).__name__}: {str(error)[:120]}). Without a network, copy the "
            "file here by other means and pass its path: load_qm7(path='qm7.mat')."
        ) from None
