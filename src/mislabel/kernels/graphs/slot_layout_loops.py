"""Compiled loops that put the edges of graphs into slots (:mod:`slot_loops`)."""

from __future__ import annotations

import numpy as np

from mislabel._common.compiled_loops import compiled
from mislabel.kernels.graphs.solution_loops import ROW


@compiled
def assign_slots(
    edge_start: np.ndarray,
    group_of: np.ndarray,
    lane_of: np.ndarray,
    length: np.ndarray,
    width: float,
    slot_of: np.ndarray,
    shortest: np.ndarray,
    longest: np.ndarray,
) -> np.ndarray:
    """Number the slots of all graphs in the order in which they are opened; returns how many each graph has.

    Both directions of an edge, ``[edge, direction]``, have a group and a lane in it. Edges are sorted by length within each
    graph; those in a slot differ by at most ``width``, and belong to two chunks that follow each other. An edge goes where
    the longest edge so far is nearest to it. ``shortest`` and ``longest`` receive those edges of every slot.
    """
    counts = np.zeros(edge_start.shape[0] - 1, np.int64)
    group, taken = np.empty_like(shortest), np.empty_like(shortest)
    count = 0
    for g in range(counts.shape[0]):
        first_slot = still_open = count
        start = edge_start[g]
        for e in range(start, edge_start[g + 1]):
            while still_open < count and (
                length[e] - length[shortest[still_open]] > width
                or (e - start) // ROW - (shortest[still_open] - start) // ROW > 1
            ):
                still_open += 1
            for direction in range(2):
                lane = np.int64(1) << lane_of[e, direction]
                best = -1
                for slot in range(still_open, count):
                    free = group[slot] == group_of[e, direction] and not taken[slot] & lane
                    if free and (best < 0 or longest[slot] > longest[best]):
                        best = slot
                if best < 0:
                    best = count
                    shortest[best], group[best], taken[best] = e, group_of[e, direction], 0
                    count += 1
                longest[best] = e
                taken[best] |= lane
                slot_of[e, direction] = best
        counts[g] = count - first_slot
    return counts


@compiled
def _reached(
    begin: int, end: int, stop: int, shortest: np.ndarray, longest: np.ndarray, low: float, high: float
) -> tuple[int, int]:
    """The range of things with any length between two, given that of shorter ones; things in ascending order up to ``stop``."""
    while begin < stop and longest[begin] < low:
        begin += 1
    while end < stop and shortest[end] <= high:
        end += 1
    return begin, end


@compiled
def within_reach(
    start: np.ndarray,
    shortest: np.ndarray,
    longest: np.ndarray,
    origin: float,
    width: float,
    reach: float,
    first: np.ndarray,
    last: np.ndarray,
) -> None:
    """For each group and bucket of length the first and the last slot that edges in the bucket may act on.

    Slots lie between two lengths each, in ascending order; buckets are ``width`` each, from ``origin`` on.
    """
    for group in range(first.shape[0]):
        begin, end = start[group], start[group]
        for bucket in range(first.shape[1]):
            low, high = origin + bucket * width - reach, origin + (bucket + 1) * width + reach
            begin, end = _reached(begin, end, start[group + 1], shortest, longest, low, high)
            first[group, bucket], last[group, bucket] = min(begin, end), end


@compiled
def chunks_within_reach(
    edge_start: np.ndarray,
    length: np.ndarray,
    group_start: np.ndarray,
    chunk: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    origin: float,
    width: float,
    reach: float,
    first_chunk: np.ndarray,
    last_chunk: np.ndarray,
) -> None:
    """For each graph and bucket of length the chunks of edges within reach.

    Wide enough that slots within reach (``first`` to ``last`` of each group) need one chunk before and one behind at most.
    """
    for graph in range(first_chunk.shape[0]):
        start = edge_start[graph]
        begin, end = start, start
        for bucket in range(first.shape[1]):
            low, high = origin + bucket * width - reach, origin + (bucket + 1) * width + reach
            begin, end = _reached(begin, end, edge_start[graph + 1], length, length, low, high)
            least, most = np.int64(np.iinfo(np.uint32).max), np.int64(0)
            if begin < end:
                least, most = (begin - start) // ROW, (end - start + ROW - 1) // ROW
            for group in range(group_start[graph], group_start[graph + 1]):
                if last[group, bucket] > first[group, bucket]:
                    least = min(least, chunk[first[group, bucket]] + 1)
                    most = max(most, chunk[last[group, bucket] - 1] + 1)
            first_chunk[graph, bucket], last_chunk[graph, bucket] = min(least, most), most
