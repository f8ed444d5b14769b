"""A term beside the walks: molecules compared by what extended Hückel theory says of their electrons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mislabel.kernels.block_kernel import Bounds
from mislabel.kernels.graphs.molecular.extended_huckel import Electrons
from mislabel.kernels.wrappers import PreparedAround
from mislabel.linalg.contract import FloatArray, IntArray

#: Binding energy per atom, in electronvolt, and softness per atom, in inverse electronvolt: of organic molecules, roughly.
_BINDING, _SOFTNESS = -4.0, 1.0


@dataclass(frozen=True)
class ElectronicTerm:
    """What is added to the similarity of two molecules because their electrons are alike.

    For extensive properties it lets the label follow the binding energy and the softness of the molecule (their products,
    in units in which both are about the number of atoms): two slopes, as in linear regression. For intensive ones
    it is a squared exponential in the energies of the highest occupied and the lowest empty level.

    Parameters
    ----------
    weight : factor of the term before it is added to the walks'.
    highest_scale, lowest_scale : tolerances of the two levels, in electronvolt; only for intensive properties.
    """

    weight: float = 1.0
    highest_scale: float = 1.0
    lowest_scale: float = 4.0
    weight_bounds: Bounds = (1e-5, 1e3)

    def coordinates(self, molecules: Sequence[Electrons], property: str) -> FloatArray:
        """One row of coordinates per molecule, such that all the term needs are their products or distances."""
        if property == "extensive":
            rows = [(item.binding / _BINDING, item.softness / _SOFTNESS) for item in molecules]
        else:
            rows = [(item.highest / self.highest_scale, item.lowest / self.lowest_scale) for item in molecules]
        return np.array(rows).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class PreparedWithElectrons(PreparedAround):
    """``inner + weight starting^2 term``; the first derivative is by the starting probability, the last by the weight."""

    left: FloatArray
    right: FloatArray
    linear: bool
    weight: float
    starting: float

    def values(self, pairs: IntArray) -> FloatArray:
        """Sums of the walks' similarities and the term."""
        return self.inner.values(pairs) + self._added(pairs)

    def values_and_gradients(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """By the inner kernel's hyperparameters and by the weight."""
        values, gradients = self.inner.values_and_gradients(pairs)
        added = self._added(pairs)
        gradients = np.column_stack([gradients, added])
        gradients[:, 0] += 2.0 * added
        return values + added, gradients

    def _added(self, pairs: IntArray) -> FloatArray:
        left, right = self.left[pairs[:, 0]], self.right[pairs[:, 1]]
        term = np.sum(left * right, axis=1) if self.linear else np.exp(-0.5 * np.sum((left - right) ** 2, axis=1))
        return np.asarray(self.weight * self.starting**2 * term)
