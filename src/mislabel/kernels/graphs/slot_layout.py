"""Graphs as groups of slots: the arrays that :mod:`slot_pairs_loops` works on, where the processor can make use of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mislabel.kernels.graphs.marginalized_loops import GraphArrays
from mislabel.kernels.graphs.packing import REACH, PackedGraphs
from mislabel.kernels.graphs.slot_layout_loops import assign_slots, chunks_within_reach, within_reach
from mislabel.kernels.graphs.slot_loops import FEATURES, ROW_BYTES, SlotArrays, lane_order
from mislabel.kernels.graphs.solution_loops import ROW
from mislabel.linalg.contract import IntArray

#: Graphs of more nodes are taken edge by edge only.
MOST_NODES = 48
#: How many length scales the lengths in one slot may differ by.
WIDTH = 11.0
#: Buckets of length per length scale, and in all: few, so that what lies within reach of all of them stays in the cache.
_BUCKETS_PER_SCALE = 4
_MOST_BUCKETS = 1024


def lay_out_slots(packed: PackedGraphs, arrays: GraphArrays, length_scale: float, features: np.ndarray) -> SlotArrays:
    """Slots of all graphs that have few enough nodes, given their arrays in single precision."""
    edges = _SlotEdges.of(packed, length_scale)
    origin, width, n_buckets = packed.buckets(length_scale, _BUCKETS_PER_SCALE, _MOST_BUCKETS)
    reach = REACH["float32"] * length_scale
    n_slots, n_groups = edges.chunk.size, len(edges.group)
    first, last = (np.zeros((n_groups, n_buckets), np.uint32) for _ in range(2))
    group_first = np.append(edges.group_first, n_slots)
    within_reach(group_first, edges.shortest, edges.longest, origin, width, reach, first, last)
    group_start = np.searchsorted(edges.group[:, 0], np.arange(packed.size + 1))
    first_chunk, last_chunk = (np.zeros((packed.size, n_buckets), np.uint32) for _ in range(2))
    buckets = origin, width, reach
    chunks_within_reach(
        packed.edge_start, packed.length, group_start, edges.chunk, first, last, *buckets, first_chunk, last_chunk
    )
    order = aligned_zeros((n_slots, ROW), np.int32)
    order[edges.slot, edges.target % ROW] = lane_order(
        edges.source % (2 * ROW), edges.position - ROW * edges.chunk[edges.slot]
    )
    rows = _NodeRows.of(packed)
    return SlotArrays(
        group_start=group_start,
        begin=edges.group[:, 2] * (2 * ROW_BYTES),
        end=edges.group[:, 1] * ROW_BYTES,
        first=first,
        last=last,
        slot_start=edges.slot_start,
        order=order,
        chunk=4 * ROW * edges.chunk,
        first_chunk=first_chunk,
        last_chunk=last_chunk,
        n_buckets=np.array([n_buckets]),
        row_start=rows.start,
        kinds=rows.put(arrays.node_kind, np.int32),
        roots=rows.put(np.stack([arrays.node_root, arrays.node_ratio], axis=1), np.float32),
        begins=rows.put(arrays.node_begin, np.float32),
        features=features,
        row_features=rows.put(features.reshape(-1, 2 * FEATURES), np.float32),
        edge_bucket=((packed.length - origin) / width).astype(np.uint32),
    )


@dataclass(frozen=True, eq=False)
class _SlotEdges:
    """Both directions of all edges of the graphs that get slots, with the slot of each; slots and groups of all graphs."""

    slot: IntArray
    position: IntArray  # among the edges of the graph
    target: IntArray
    source: IntArray
    slot_start: IntArray  # (graphs + 1)
    shortest: np.ndarray  # (slots) length of the shortest and the longest edge
    longest: np.ndarray
    chunk: IntArray  # (slots) first chunk of edges
    group: IntArray  # (groups, 3) graph, row of the nodes its edges end at, pair of rows that they come from
    group_first: IntArray  # (groups) first slot

    @classmethod
    def of(cls, packed: PackedGraphs, length_scale: float) -> _SlotEdges:
        small = np.diff(packed.node_start) <= MOST_NODES
        counts = np.diff(packed.edge_start)
        owner = np.repeat(np.arange(packed.size), counts)
        edge = np.flatnonzero(small[owner])
        owner = owner[edge]
        start = np.concatenate([[0], np.cumsum(counts * small)]).astype(np.int64)
        left, right = packed.left[edge], packed.right[edge]
        target, source = np.stack([left, right], axis=1), np.stack([right, left], axis=1)
        rows = -(-MOST_NODES // ROW)
        key = (owner[:, None] * rows + target // ROW) * rows + source // (2 * ROW)
        slot = np.empty(key.shape, np.int64)
        width = WIDTH * length_scale
        shortest, longest = np.empty(key.size, np.int64), np.empty(key.size, np.int64)
        n_slots = assign_slots(start, key, target % ROW, packed.length[edge], width, slot, shortest, longest)
        slot_start = np.concatenate([[0], np.cumsum(n_slots)]).astype(np.int64)
        # From the order in which they were opened to that of their groups.
        group_key = np.empty(slot_start[-1], np.int64)
        group_key[slot] = key
        order = np.argsort(group_key, kind="stable")
        number = np.empty_like(order)
        number[order] = np.arange(order.size)
        slot, group_key, shortest, longest = number[slot], group_key[order], shortest[order], longest[order]
        position = edge - packed.edge_start[owner]
        keys, group_first = np.unique(group_key, return_index=True)
        group = np.stack([keys // rows**2, keys // rows % rows, keys % rows], axis=1)
        return cls(
            slot.reshape(-1),
            np.repeat(position, 2),
            target.reshape(-1),
            source.reshape(-1),
            slot_start,
            packed.length[edge[shortest]],
            packed.length[edge[longest]],
            position[shortest] // ROW,
            group,
            group_first,
        )


@dataclass(frozen=True, eq=False)
class _NodeRows:
    """The nodes of all graphs in rows of sixteen, each graph beginning a new one."""

    start: IntArray  # (graphs + 1) first row
    row: IntArray  # (nodes)
    lane: IntArray

    @classmethod
    def of(cls, packed: PackedGraphs) -> _NodeRows:
        counts = np.diff(packed.node_start)
        start = np.concatenate([[0], np.cumsum(-(-counts // ROW))]).astype(np.int64)
        owner = np.repeat(np.arange(packed.size), counts)
        position = np.arange(owner.size) - packed.node_start[owner]
        return cls(start, start[owner] + position // ROW, position % ROW)

    def put(self, values: np.ndarray, dtype: type) -> np.ndarray:
        """Numbers of the nodes, (nodes) or (nodes, several), as (rows, 16) or (rows, several x 16)."""
        columns = values[:, None] if values.ndim == 1 else values
        out = aligned_zeros((int(self.start[-1]), columns.shape[1] * ROW), dtype)
        out.reshape(-1, columns.shape[1], ROW)[self.row, :, self.lane] = columns
        return out


def aligned_zeros(shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Zeros of which every 64 bytes lie in one piece of the cache."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, np.uint8)
    skipped = -room.ctypes.data % 64
    return room[skipped : skipped + size].view(dtype).reshape(shape)
