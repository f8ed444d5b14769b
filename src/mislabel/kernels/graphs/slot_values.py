"""Kernel values by slots: which graph of a pair is taken edge by edge, and which by slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mislabel.kernels.graphs.first_guess import features_of_surroundings
from mislabel.kernels.graphs.marginalized_loops import GraphArrays
from mislabel.kernels.graphs.packing import PackedGraphs
from mislabel.kernels.graphs.slot_layout import MOST_NODES, lay_out_slots
from mislabel.kernels.graphs.slot_loops import CAN_REORDER, SlotArrays
from mislabel.kernels.graphs.slot_pairs_loops import slot_pair_values
from mislabel.linalg.contract import FloatArray, IntArray

__all__ = ["CAN_REORDER", "TOO_LARGE", "SlotValues"]

#: In place of the number of steps: neither graph of the pair has slots.
TOO_LARGE = -2


@dataclass(frozen=True, eq=False)
class SlotValues:
    """Many graphs, laid out for the loops over slots."""

    arrays: GraphArrays
    slots: SlotArrays
    similar: FloatArray  # by kinds of nodes
    n_edges: IntArray
    n_slots: IntArray
    small: np.ndarray  # whether a graph has slots

    @classmethod
    def of(
        cls, packed: PackedGraphs, arrays: GraphArrays, similar: FloatArray, stopping: float, length_scale: float | None
    ) -> SlotValues:
        """Lay the graphs out, given their arrays in single precision and the similarities of all kinds of nodes."""
        features = features_of_surroundings(packed, similar.astype(float), stopping, length_scale)
        slots = lay_out_slots(packed, arrays, length_scale, features)
        small = np.diff(packed.node_start) <= MOST_NODES
        return cls(arrays, slots, similar, np.diff(packed.edge_start), np.diff(slots.slot_start), small)

    def values(self, pairs: IntArray, tol: float, max_iter: int) -> tuple[FloatArray, IntArray]:
        """Kernel values of pairs of graphs, and how many steps they took: -1 for too many, or :data:`TOO_LARGE`."""
        values, steps = np.empty(len(pairs)), np.full(len(pairs), TOO_LARGE)
        one, two = pairs.T
        work, turned = (
            np.where(self.small[slots], self.n_edges[edges] * self.n_slots[slots], np.inf)
            for edges, slots in ((one, two), (two, one))
        )
        for columns, chosen in (((0, 1), work <= turned), ((1, 0), work > turned)):
            which = np.flatnonzero(chosen & (self.small[one] | self.small[two]))
            some = np.ascontiguousarray(pairs[which][:, columns])
            found, taken = np.empty(which.size), np.empty(which.size, np.int64)
            slot_pair_values(self.arrays, self.slots, some, self.similar, tol, max_iter, found, taken)
            values[which], steps[which] = found, taken
        return values, steps
