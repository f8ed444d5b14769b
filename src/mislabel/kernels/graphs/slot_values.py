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

#: In place of the number of steps: neither graph of the pair has slots, or the other has too many edges.
TOO_LARGE = -2
#: Edges and slots whose weights are kept at most: sixteen megabytes.
_MOST_WORK = 1 << 18


@dataclass(frozen=True, eq=False)
class SlotValues:
    """Many graphs, laid out for the loops over slots."""

    arrays: GraphArrays
    slots: SlotArrays
    n_edges: IntArray
    n_slots: IntArray
    small: np.ndarray  # whether a graph has slots

    @classmethod
    def of(
        cls, packed: PackedGraphs, arrays: GraphArrays, similar: FloatArray, stopping: float, length_scale: float
    ) -> SlotValues:
        """Lay the graphs out, given their arrays in single precision and the similarities of all kinds of nodes."""
        features = features_of_surroundings(packed, similar, stopping, length_scale)
        slots = lay_out_slots(packed, arrays, length_scale, features)
        small = np.diff(packed.node_start) <= MOST_NODES
        return cls(arrays, slots, np.diff(packed.edge_start), np.diff(slots.slot_start), small)

    def evaluate(
        self,
        pairs: IntArray,
        similar: FloatArray,
        node_slopes: FloatArray,
        accuracy: tuple[float, float, int],
        slopes: bool,
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Kernel values of pairs of graphs, their derivatives, and how many steps they took.

        ``similar`` and ``node_slopes`` are the similarities of all kinds of nodes and their derivatives by each parameter;
        ``accuracy`` is that of values, that of solutions if derivatives are asked for, and how many steps may be taken. The
        number of steps is -1 where these were not enough, and :data:`TOO_LARGE` where nothing was done.
        """
        values, steps = np.empty(len(pairs)), np.full(len(pairs), TOO_LARGE)
        derived = np.empty((len(pairs), 2 + len(node_slopes)) if slopes else (0, 0))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            relative = np.where(similar > 0, node_slopes / similar.astype(float) ** 2, 0.0)
        relative = np.clip(relative, -1e30, 1e30).astype(np.float32)
        one, two = pairs.T
        work, turned = (
            np.where(self.small[slots], self.n_edges[edges] * self.n_slots[slots], np.inf)
            for edges, slots in ((one, two), (two, one))
        )
        for columns, chosen in (((0, 1), work <= turned), ((1, 0), work > turned)):
            which = np.flatnonzero(chosen & (np.minimum(work, turned) <= _MOST_WORK))
            some = np.ascontiguousarray(pairs[which][:, columns])
            found = (
                np.empty(which.size),
                np.empty(which.size, np.int64),
                np.empty((which.size * slopes, derived.shape[1])),
            )
            slot_pair_values(self.arrays, self.slots, some, similar, relative, *accuracy, *found)
            values[which], steps[which] = found[:2]
            if slopes:
                derived[which] = found[2]
        return values, derived, steps
