"""Extended Hückel theory: what valence electrons that do not repel each other say about a molecule.

One diagonalisation of a small matrix, with parameters from the literature and nothing fitted. Its energies are poor in
themselves, but they know of rings, strain and conjugation what sums over atoms and their surroundings do not.

Lengths are in Angstrom, energies in electronvolt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import LinAlgError, eigh

from mislabel.errors import InvalidGraphError
from mislabel.kernels.graphs.molecules import COINCIDENT, SYMBOLS, checked_atoms, is_periodic
from mislabel.linalg.contract import FloatArray, IntArray

# Slater exponents (per Bohr) and energies of the valence s and p orbitals, as collected by Alvarez from Hoffmann's and
# others' work: element, principal quantum number, electrons, s exponent, s energy, p exponent, p energy.
_PARAMETERS_TEXT = """
H  1 1 1.300 -13.60 0 0          He 1 2 1.688 -23.40 0 0          Li 2 1 0.650  -5.40 0.650  -3.50
Be 2 2 0.975 -10.00 0.975  -6.00 B  2 3 1.300 -15.20 1.300  -8.50 C  2 4 1.625 -21.40 1.625 -11.40
N  2 5 1.950 -26.00 1.950 -13.40 O  2 6 2.275 -32.30 2.275 -14.80 F  2 7 2.425 -40.00 2.425 -18.10
Na 3 1 0.733  -5.10 0.733  -3.00 Mg 3 2 1.100  -9.00 1.100  -4.50 Al 3 3 1.167 -12.30 1.167  -6.50
Si 3 4 1.383 -17.30 1.383  -9.20 P  3 5 1.750 -18.60 1.300 -14.00 S  3 6 2.122 -20.00 1.827 -11.00
Cl 3 7 2.183 -26.30 1.733 -14.20 K  4 1 0.874  -4.34 0.874  -2.73 Ca 4 2 1.200  -7.00 1.200  -4.00
Ga 4 3 1.770 -14.58 1.550  -6.75 Ge 4 4 2.160 -16.00 1.850  -9.00 As 4 5 2.230 -16.22 1.890 -12.16
Se 4 6 2.440 -20.50 2.070 -14.40 Br 4 7 2.588 -22.07 2.131 -13.10 Rb 5 1 0.997  -4.18 0.997  -2.60
Sr 5 2 1.214  -6.62 1.214  -3.92 In 5 3 1.903 -12.60 1.677  -6.19 Sn 5 4 2.120 -16.16 1.820  -8.32
Sb 5 5 2.323 -18.80 1.999 -11.70 Te 5 6 2.510 -20.80 2.160 -14.80 I  5 7 2.679 -18.00 2.322 -12.70
Cs 6 1 1.060  -3.88 1.060  -2.49 Tl 6 3 2.300 -11.60 1.600  -5.80 Pb 6 4 2.350 -15.70 2.060  -8.00
Bi 6 5 2.560 -15.19 2.072  -7.79
"""


class _Element(NamedTuple):
    shell: int
    electrons: int
    s_exponent: float
    s_energy: float
    p_exponent: float
    p_energy: float

    @property
    def energy(self) -> float:
        """Of the free atom."""
        return self.s_energy * min(self.electrons, 2) + self.p_energy * max(self.electrons - 2, 0)


def _parameters() -> dict[int, _Element]:
    words = iter(_PARAMETERS_TEXT.split())
    return {
        SYMBOLS.index(symbol): _Element(int(next(words)), int(next(words)), *(float(next(words)) for _ in range(4)))
        for symbol in words
    }


#: Valence orbitals by atomic number.
PARAMETERS = _parameters()
#: Atomic numbers of the elements that have parameters: main groups, without most noble gases.
ELEMENTS = frozenset(PARAMETERS)

BOHR = 0.529177210903
#: Wolfsberg and Helmholz's constant: how much two orbitals interact for their overlap and mean energy.
_INTERACTION = 1.75
#: Overlaps are tabulated up to this distance, beyond which they do not matter, at points this far apart.
_REACH, _STEP = 12.0, 0.01
#: Gaps below this hardly make a molecule more polarizable.
_SOFT_GAP = 1.0
# Exact for all shells along the first coordinate; along the second, to 1e-12 within reach.
_LAGUERRE = np.polynomial.laguerre.laggauss(10)
_LEGENDRE = np.polynomial.legendre.leggauss(40)
_ORBITALS = 4


@dataclass(frozen=True)
class Electrons:
    """What extended Hückel theory says of one molecule.

    Attributes
    ----------
    binding : energy of all valence electrons less that of the free atoms; negative where atoms are bound.
    softness : sum over pairs of an occupied and an empty level of one over the gap between them: grows with how easily
        electrons are moved, like a polarizability.
    highest, lowest : energies of the highest occupied and the lowest empty level (zero, a free electron's, if none is).
    """

    binding: float
    softness: float
    highest: float
    lowest: float


def electrons_of(atoms: Any) -> Electrons:
    """Binding, softness and frontier levels of a neutral molecule (anything with ``numbers`` and ``positions``)."""
    numbers, positions, title = checked_atoms(atoms)
    if is_periodic(atoms):
        raise InvalidGraphError(
            f"{title} is periodic: its electrons are not those of a molecule. Use a kernel with electrons=None."
        )
    unknown = sorted(set(numbers.tolist()) - ELEMENTS)
    if unknown:
        raise InvalidGraphError(
            f"{title} contains {', '.join(SYMBOLS[number] for number in unknown)}: there are no extended Hückel parameters "
            "for it, only for elements of the main groups. Use a kernel with electrons=None."
        )
    elements = [PARAMETERS[number] for number in numbers.tolist()]
    overlap, energies = _matrices(numbers, positions, title)
    hamiltonian = 0.5 * _INTERACTION * overlap * (energies[:, None] + energies)
    np.fill_diagonal(hamiltonian, energies)
    try:
        levels = eigh(hamiltonian, overlap, eigvals_only=True, check_finite=False)
    except LinAlgError:
        raise InvalidGraphError(f"{title}: atoms are so close that their orbitals are the same.") from None
    filling = np.clip(sum(item.electrons for item in elements) - 2.0 * np.arange(levels.size), 0.0, 2.0)
    occupied, empty = filling > 0, filling < 2
    gaps = np.maximum(levels[empty] - levels[occupied][:, None], 0.0)
    moved = 0.25 * filling[occupied][:, None] * (2.0 - filling[empty])
    return Electrons(
        binding=float(filling @ levels - sum(item.energy for item in elements)),
        softness=float(np.sum(moved / np.hypot(gaps, _SOFT_GAP))),
        highest=float(levels[occupied][-1]),
        lowest=float(levels[empty][0]) if empty.any() else 0.0,
    )


def _matrices(numbers: IntArray, positions: FloatArray, title: str) -> tuple[FloatArray, FloatArray]:
    """Overlaps of all valence orbitals, and their energies."""
    size = numbers.size
    left, right = np.triu_indices(size, 1)
    apart = positions[right] - positions[left]
    distance = np.linalg.norm(apart, axis=1)
    same = np.flatnonzero(distance < COINCIDENT)
    if same.size:
        raise InvalidGraphError(
            f"{title}: atoms {left[same[0]]} and {right[same[0]]} are at the same place (counting from 0)."
        )
    along = apart / distance[:, None]
    radial = np.zeros((distance.size, 5))
    kinds = 256 * numbers[left] + numbers[right]
    for kind in np.unique(kinds):
        chosen = np.flatnonzero((kinds == kind) & (distance < _REACH))
        radial[chosen] = _table(int(kind) // 256, int(kind) % 256)(distance[chosen])
    ss, sp, ps, sigma, pi = radial.T[:, :, None]
    blocks = np.empty((distance.size, _ORBITALS, _ORBITALS))
    blocks[:, 0, 0] = ss[:, 0]
    blocks[:, 0, 1:] = sp * along
    blocks[:, 1:, 0] = ps * along
    blocks[:, 1:, 1:] = pi[:, :, None] * np.eye(3) + (sigma - pi)[:, :, None] * along[:, :, None] * along[:, None, :]
    by_atom = np.zeros((size, _ORBITALS, size, _ORBITALS))
    by_atom[left, :, right, :] = blocks
    by_atom[right, :, left, :] = blocks.transpose(0, 2, 1)
    overlap = by_atom.reshape(size * _ORBITALS, -1)
    np.fill_diagonal(overlap, 1.0)
    elements = [PARAMETERS[number] for number in numbers.tolist()]
    energies = np.array([(item.s_energy, *(item.p_energy,) * 3) for item in elements]).ravel()
    there = np.array([(True, *(item.p_exponent > 0,) * 3) for item in elements]).ravel()
    return overlap[np.ix_(there, there)], energies[there]


@cache
def _table(first: int, second: int) -> CubicSpline:
    """Overlaps of two elements' orbitals as functions of their distance."""
    distance = np.arange(COINCIDENT, _REACH + _STEP, _STEP)
    return CubicSpline(distance, slater_overlaps(first, second, distance))


def slater_overlaps(first: int, second: int, distance: FloatArray) -> FloatArray:
    """Overlaps (distances, 5) of two elements' Slater orbitals: s with s, s with p, p with s, p with p along and across.

    The orbitals of both point from the first atom to the second. The integral over all space, in coordinates ``mu`` and
    ``nu`` with a focus at each atom, is a polynomial times an exponential in both.
    """
    one, other = PARAMETERS[first], PARAMETERS[second]
    half = (0.5 * np.asarray(distance, dtype=float) / BOHR)[:, None, None]
    found = np.zeros((half.size, 5))
    for column, (p_here, p_there, across) in enumerate(
        [(False, False, False), (False, True, False), (True, False, False), (True, True, False), (True, True, True)]
    ):
        here = one.p_exponent if p_here else one.s_exponent
        there = other.p_exponent if p_there else other.s_exponent
        if here == 0 or there == 0:
            continue
        decay = half * (here + there)
        mu = 1.0 + _LAGUERRE[0][:, None] / decay
        nu = _LEGENDRE[0]
        density = half**3 * (mu**2 - nu**2) * np.exp(-half * (here - there) * nu - decay) / decay
        density *= _radial(one.shell, here, half * (mu + nu), p_here) * _radial(
            other.shell, there, half * (mu - nu), p_there
        )
        if across:
            density *= 0.5 * half**2 * (mu**2 - 1.0) * (1.0 - nu**2)
        else:
            density *= (half * (mu * nu + 1.0) if p_here else 1.0) * (half * (mu * nu - 1.0) if p_there else 1.0)
        found[:, column] = 0.5 * np.einsum("kij,i,j->k", density, _LAGUERRE[1], _LEGENDRE[1])
    return found


def _radial(shell: int, exponent: float, radius: FloatArray, p: bool) -> FloatArray:
    """The polynomial part of a normalised orbital; that of a p orbital is still to be multiplied by a coordinate."""
    norm = (2.0 * exponent) ** (shell + 0.5) / np.sqrt(factorial(2 * shell))
    return np.asarray(norm * np.sqrt(3.0) * radius ** (shell - 2) if p else norm * radius ** (shell - 1))
