"""Graphs from atoms in space: elements on the nodes, distances on the edges, weights that fall with distance.

Lengths are in Angstrom. Anything with ``numbers`` and ``positions`` (and ``cell`` and ``pbc``, if periodic) will do, an
``ase.Atoms`` above all.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from mislabel.errors import InvalidGraphError, InvalidParameterError, UnitsWarning
from mislabel.kernels.graphs.graph import Graph
from mislabel.linalg.contract import FloatArray, IntArray

# Van der Waals radii in Angstrom: main groups after Mantina et al. (2009), the rest after Alvarez (2013).
_RADII_TEXT = """
H 1.10 He 1.40 Li 1.81 Be 1.53 B 1.92 C 1.70 N 1.55 O 1.52 F 1.47 Ne 1.54 Na 2.27 Mg 1.73 Al 1.84 Si 2.10 P 1.80 S 1.80
Cl 1.75 Ar 1.88 K 2.75 Ca 2.31 Sc 2.58 Ti 2.46 V 2.42 Cr 2.45 Mn 2.45 Fe 2.44 Co 2.40 Ni 2.40 Cu 2.38 Zn 2.39 Ga 1.87
Ge 2.11 As 1.85 Se 1.90 Br 1.83 Kr 2.02 Rb 3.03 Sr 2.49 Y 2.75 Zr 2.52 Nb 2.56 Mo 2.45 Tc 2.44 Ru 2.46 Rh 2.44 Pd 2.15
Ag 2.53 Cd 2.49 In 1.93 Sn 2.17 Sb 2.06 Te 2.06 I 1.98 Xe 2.16 Cs 3.43 Ba 2.68 La 2.98 Ce 2.88 Pr 2.92 Nd 2.95 Pm 2.92
Sm 2.90 Eu 2.87 Gd 2.83 Tb 2.79 Dy 2.87 Ho 2.81 Er 2.83 Tm 2.79 Yb 2.80 Lu 2.74 Hf 2.63 Ta 2.53 W 2.57 Re 2.49 Os 2.48
Ir 2.41 Pt 2.29 Au 2.32 Hg 2.45 Tl 1.96 Pb 2.02 Bi 2.07 Po 1.97 At 2.02 Rn 2.20 Fr 3.48 Ra 2.83 Ac 2.80 Th 2.93 Pa 2.88
U 2.71 Np 2.82 Pu 2.81 Am 2.83 Cm 3.05 Bk 3.40 Cf 3.05 Es 2.70
"""
SYMBOLS = ["X", *_RADII_TEXT.split()[::2]]
RADII = np.array([np.nan, *map(float, _RADII_TEXT.split()[1::2])])

#: Two atoms closer than this are one atom written twice.
COINCIDENT = 0.05
#: A Gaussian weight is followed down to this many radii.
_GAUSSIAN_REACH = 5.0
#: Nearest neighbours, relative to the mean van der Waals radius, that no molecule in Angstrom has (0.6 to 1.0 are usual).
_TOO_CLOSE, _TOO_FAR = 0.4, 1.25
#: An atom counts fully as a neighbour up to the first distance over mean van der Waals radius, not at all beyond the second.
_BONDED, _APART = 1.0, 1.2
#: Coordination numbers are rounded to this, so that few kinds of atoms occur.
_COORDINATION_STEP = 1 / 16

#: The weight of an edge as a function of distance over mean radius (times zoom), and the distance beyond which it is zero.
Shape = tuple[Callable[[FloatArray], FloatArray], float]


def _tent(power: int) -> Shape:
    """``(1 - r/3)^power``."""
    if power < 1:
        raise ValueError
    return lambda ratio: np.maximum(0.0, 1.0 - ratio / 3.0) ** power, 3.0


def _compact_bell(a: int, b: int) -> Shape:
    """``(a t^b - b t^a) / (a - b)`` with ``t = 1 - r/3``: smooth at both ends."""
    if not a > b > 0:
        raise ValueError

    def shape(ratio: FloatArray) -> FloatArray:
        t = np.maximum(0.0, 1.0 - ratio / 3.0)
        return np.asarray((a * t**b - b * t**a) / (a - b))

    return shape, 3.0


def _gaussian() -> Shape:
    """``exp(-r^2/2)``."""
    return lambda ratio: np.exp(-0.5 * ratio**2), _GAUSSIAN_REACH


#: Adjacencies by the pattern of their names, of which the parts in parentheses are whole numbers; a ValueError refuses these.
ADJACENCIES: dict[str, Callable[..., Shape]] = {
    r"tent(\d+)": _tent,
    r"compactbell(\d+),(\d+)": _compact_bell,
    "gaussian": _gaussian,
}


def adjacency_shape(name: str) -> Shape:
    """The adjacency of that name, "tent1" or "compactbell4,2" for instance."""
    for pattern, make in ADJACENCIES.items():
        found = re.fullmatch(pattern, name)
        if found:
            with suppress(ValueError):
                return make(*map(int, found.groups()))
    raise InvalidParameterError(
        f"unknown adjacency {name!r}; choose 'tentN' (N = 1, 2, ...), 'compactbellA,B' (A > B > 0) or 'gaussian'."
    )


def graph_from_atoms(
    atoms: Any,
    *,
    adjacency: str = "tent1",
    zoom: float = 1.0,
    name: str | None = None,
    check_units: bool = True,
    coordination: bool = False,
) -> Graph:
    """Node attribute ``element`` (atomic number), edge attribute ``length``.

    The weight of a pair of atoms is ``shape(r / (zoom sqrt(R_i R_j)))`` with their van der Waals radii. In periodic
    directions every image within reach is an edge of its own. If asked for, the node attribute ``coordination`` is the
    number of bonded neighbours, which falls smoothly where a bond is stretched.
    """
    if not (np.isfinite(zoom) and zoom > 0):
        raise InvalidParameterError(f"zoom must be positive, got {zoom!r}.")
    shape, reach = adjacency_shape(adjacency)
    numbers, positions, title = checked_atoms(atoms, name)
    radii = RADII[numbers]
    farthest = max(reach * zoom, _APART) if coordination else reach * zoom
    left, right, length = _neighbours(atoms, positions, farthest * radii.max())
    closest = np.flatnonzero(length < COINCIDENT)
    if closest.size:
        i, j = left[closest[0]], right[closest[0]]
        raise InvalidGraphError(f"{title}: atoms {i} and {j} are at the same place (counting from 0).")
    mean_radius = np.sqrt(radii[left] * radii[right])
    if check_units:
        complaint = units_complaint(numbers, left, right, length / mean_radius)
        if complaint:
            warnings.warn(f"{title}: {complaint}", UnitsWarning, stacklevel=3)
    weights = shape(length / (zoom * mean_radius))
    nodes: dict[str, Any] = {"element": numbers}
    if coordination:
        nodes["coordination"] = _coordination(numbers.size, left, right, length / mean_radius)
    return Graph(numbers.size, np.column_stack([left, right]), weights, nodes, {"length": length}, title)


def _coordination(size: int, left: IntArray, right: IntArray, ratio: FloatArray) -> FloatArray:
    """How many neighbours each atom is bonded to."""
    bonded = np.clip((_APART - ratio) / (_APART - _BONDED), 0.0, 1.0)
    # An atom's own images are listed in both directions already.
    other = right != left
    found = np.bincount(left, bonded, size) + np.bincount(right[other], bonded[other], size)
    return np.round(found / _COORDINATION_STEP) * _COORDINATION_STEP


def units_complaint(numbers: IntArray, left: IntArray, right: IntArray, ratio: FloatArray) -> str | None:
    """What is odd about the distances if they are meant to be Angstrom, or None."""
    if ratio.size == 0:
        return None
    if ratio.min() < _TOO_CLOSE:
        return "atoms are closer than in any molecule; are the coordinates in nanometres? They must be in Angstrom."
    nearest = np.full(numbers.size, np.inf)
    np.minimum.at(nearest, left, ratio)
    np.minimum.at(nearest, right, ratio)
    hydrogens = nearest[numbers == 1]
    if hydrogens.size and hydrogens.min() > _TOO_FAR:
        return "no hydrogen is bonded to anything; are the coordinates in Bohr? They must be in Angstrom (x 0.529177)."
    return None


def _title(atoms: Any) -> str:
    info = getattr(atoms, "info", None) or {}
    return str(info.get("name") or getattr(atoms, "name", None) or "molecule")


def checked_atoms(atoms: Any, name: str | None = None) -> tuple[IntArray, FloatArray, str]:
    """Atomic numbers, positions, and what to call the molecule in messages; an error if they make no sense."""
    title = name or _title(atoms)
    numbers = np.asarray(atoms.numbers, dtype=np.int64)
    positions = np.asarray(atoms.positions, dtype=float).reshape(-1, 3)
    if numbers.size == 0:
        raise InvalidGraphError(f"{title} has no atoms.")
    if positions.shape[0] != numbers.size:
        raise InvalidGraphError(f"{title} has {numbers.size} elements but {positions.shape[0]} positions.")
    unknown = np.flatnonzero((numbers < 1) | (numbers >= RADII.size))
    if unknown.size:
        raise InvalidGraphError(
            f"{title}: atom {unknown[0]} (counting from 0) has the unknown atomic number {numbers[unknown[0]]}."
        )
    bad = np.flatnonzero(~np.isfinite(positions).all(axis=1))
    if bad.size:
        raise InvalidGraphError(f"{title}: the coordinates of atom {bad[0]} (counting from 0) are NaN or infinite.")
    return numbers, positions, title


def is_periodic(atoms: Any) -> bool:
    """Whether the atoms repeat in any direction."""
    return bool(_periodic(atoms).any())


def _periodic(atoms: Any) -> np.ndarray:
    return np.broadcast_to(np.asarray(getattr(atoms, "pbc", False), dtype=bool), 3)


def _neighbours(atoms: Any, positions: FloatArray, cutoff: float) -> tuple[IntArray, IntArray, FloatArray]:
    """All pairs within the cutoff, each once; a pair of an atom with its own image counts in both directions."""
    periodic = _periodic(atoms)
    if not periodic.any():
        pairs = cKDTree(positions).query_pairs(cutoff, output_type="ndarray")
        pairs = pairs[np.lexsort(pairs.T[::-1])].reshape(-1, 2)
        length = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
        return pairs[:, 0], pairs[:, 1], length
    cell = np.asarray(atoms.cell, dtype=float).reshape(3, 3)
    volume = abs(np.linalg.det(cell))
    if volume < 1e-6:
        raise InvalidGraphError(f"{_title(atoms)} is periodic but its cell has no volume.")
    # Whole cells between opposite faces that the cutoff reaches across.
    spans = [np.linalg.norm(np.cross(cell[(k + 1) % 3], cell[(k + 2) % 3])) / volume for k in range(3)]
    # Atoms may lie outside their cell by any amount: bring them in first.
    fractions = np.linalg.solve(cell.T, positions.T).T
    positions = (fractions - np.floor(fractions) * periodic) @ cell
    ranges = [range(-n, n + 1) for n in (int(np.ceil(cutoff * spans[k])) if periodic[k] else 0 for k in range(3))]
    tree = cKDTree(positions)
    found = []
    for shift in np.array(np.meshgrid(*ranges, indexing="ij")).reshape(3, -1).T:
        near = cKDTree(positions + shift @ cell).sparse_distance_matrix(tree, cutoff, output_type="ndarray")
        image, here, length = near["i"], near["j"], near["v"]
        keep = here < image if not shift.any() else here <= image
        found.append(np.column_stack([here, image, length])[keep])
    joined = np.concatenate(found)
    joined = joined[np.lexsort(joined.T[::-1])]
    return joined[:, 0].astype(np.int64), joined[:, 1].astype(np.int64), joined[:, 2]
