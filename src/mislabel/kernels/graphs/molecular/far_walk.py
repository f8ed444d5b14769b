"""A second walk beside the first: wider graphs, and atoms told apart by how many neighbours they are bonded to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mislabel.kernels.block_kernel import Bounds
from mislabel.kernels.contract import PreparedKernel
from mislabel.kernels.wrappers import PreparedAround
from mislabel.linalg.contract import FloatArray, IntArray


@dataclass(frozen=True)
class FarWalk:
    """A second walk on molecules, over a wider graph whose atoms are compared by their coordination number too.

    Parameters
    ----------
    weight : factor of its similarities before they are added to those of the first walk.
    stopping_probability, edge_length_scale, zoom : as in :class:`MolecularKernel`, which gives element prior and adjacency.
    coordination_scale : tolerance of coordination numbers (how many neighbours an atom is bonded to).
    """

    weight: float = 0.1
    stopping_probability: float = 0.05
    edge_length_scale: float = 0.07
    zoom: float = 0.8
    coordination_scale: float = 0.5
    weight_bounds: Bounds = (1e-5, 10.0)


@dataclass(frozen=True, eq=False)
class PreparedTwoWalks(PreparedAround):
    """``near + weight far``, with derivatives by the shared hyperparameters, those of the near walk, and the weight."""

    far: PreparedKernel
    weight: float

    def values(self, pairs: IntArray) -> FloatArray:
        """Sums of both walks."""
        return self.inner.values(pairs) + self.weight * self.far.values(pairs)

    def values_and_gradients(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """By starting and stopping probability, element prior, edge length scale and weight."""
        near, by_near = self.inner.values_and_gradients(pairs)
        far, by_far = self.far.values_and_gradients(pairs)
        values, added = near + self.weight * far, self.weight * far
        by_prior = by_near[:, 2] + self.weight * by_far[:, 2]
        return values, np.column_stack([2.0 * values, by_near[:, 1], by_prior, by_near[:, 3], added])
