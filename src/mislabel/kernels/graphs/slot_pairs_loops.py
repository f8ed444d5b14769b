"""Kernel values of pairs of graphs by slots (:mod:`slot_loops`): in single precision, on processors that can reorder rows.

The first graph of a pair is taken edge by edge, the second by slots of edges. Unlike the loops over single pairs of edges
(:mod:`marginalized_loops`) these have no use for leaving light pairs out: lanes are there anyway.
"""

from __future__ import annotations

import numpy as np

from mislabel._common.compiled_loops import compiled_for_speed
from mislabel.kernels.graphs.marginalized_loops import SINGLE_GROWTH, GraphArrays, largest
from mislabel.kernels.graphs.slot_loops import (
    Place,
    SlotArrays,
    SlotPairs,
    couple_again,
    couple_first,
    node_slope,
    prepare_rows,
    weigh_chunks,
    weigh_slopes,
)
from mislabel.kernels.graphs.solution_loops import ROW, clear, complete, product, two_sided_value
from mislabel.kernels.graphs.two_sided_loops import solve


@compiled_for_speed
def _rows(count: int, columns: int) -> np.ndarray:
    """Room for so many rows, each in one piece of the cache."""
    room = np.empty((count + 1) * columns, np.float32)
    skipped = (-room.ctypes.data % 64) // 4
    return room[skipped : skipped + count * columns].reshape((count, columns))


@compiled_for_speed
def _largest_pair(left: GraphArrays, slots: SlotArrays, pairs: np.ndarray) -> tuple[int, int, int]:
    """Rows of nodes, at least as many edges and slots, and edges and chunks, as any of the pairs has."""
    rows, items, chunks = 1, 1, 1
    for number in range(pairs.shape[0]):
        a, b = pairs[number, 0], pairs[number, 1]
        nodes, edges = left.node_start[a + 1] - left.node_start[a], left.edge_start[a + 1] - left.edge_start[a]
        rows = max(rows, nodes * (slots.row_start[b + 1] - slots.row_start[b]))
        items = max(items, edges * (slots.slot_start[b + 1] - slots.slot_start[b]))
        chunks = max(chunks, edges * ((left.edge_start[b + 1] - left.edge_start[b]) // ROW + 3))
    return rows, items, chunks


@compiled_for_speed
def slot_pair_values(
    left: GraphArrays,
    slots: SlotArrays,
    pairs: np.ndarray,
    similar: np.ndarray,
    node_slopes: np.ndarray,
    tol: float,
    linear: float,
    max_iter: int,
    values: np.ndarray,
    steps: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Kernel values of the given pairs (graph of ``left``, graph of ``slots``), given the similarities of kinds of nodes.

    ``steps`` receives how many steps each pair took, -1 where they were not enough; ``slopes`` (pairs, parameters) the
    derivatives, unless it is empty: by edges as a whole, by the logarithm of the length scale, and by each parameter of which
    ``node_slopes`` (parameters, kinds, kinds) has dV / V^2. ``linear`` is how accurate solutions are to be for those.
    """
    most_rows, most_items, most_chunks = _largest_pair(left, slots, pairs)
    n_rows = most_rows + 1  # wide graphs may look one row further
    vectors = _rows(8 * n_rows, 2 * ROW).reshape((8, n_rows, 2 * ROW))
    vectors[:] = 0
    weights, chunks = _rows(most_items, ROW), _rows(most_chunks, ROW)
    chunk_start = np.empty(largest(left.edge_start) + 1, np.int64)
    place = np.empty(4, np.int64)
    coupling = SlotPairs(
        slots, left.edge_left, left.edge_right, left.edge_length, left.edge_weight, left.length_unit, place, chunks,
        chunk_start, weights,
    )  # fmt: skip
    residual, solution, image, moved = vectors[0], vectors[1], vectors[3], vectors[4]
    node, plain, guess = vectors[5], vectors[6], vectors[7]
    n_kinds = similar.shape[1]
    derived = slopes.shape[0] > 0
    accuracy = linear if derived else 0.0
    for number in range(pairs.shape[0]):
        a, b = pairs[number, 0], pairs[number, 1]
        first, last = left.node_start[a], left.node_start[a + 1]
        count = (last - first) * (slots.row_start[b + 1] - slots.row_start[b]) * 2 * ROW
        place[Place.FIRST_EDGE.value] = left.edge_start[a]
        place[Place.N_EDGES.value] = left.edge_start[a + 1] - left.edge_start[a]
        place[Place.OTHER.value], place[Place.OTHER_EDGE.value] = b, left.edge_start[b]
        base, value = prepare_rows(slots, b, left, first, last, similar, n_kinds, node, plain, guess, residual)
        weigh_chunks(coupling)
        couple_first(coupling, guess, residual)
        steps[number] = solve(coupling, count, node, vectors, base, tol, accuracy, max_iter)
        values[number] = value + two_sided_value(plain, guess, moved, residual, node, count)
        if derived:
            complete(solution, guess, moved, residual, node, count)
            clear(image, count)
            couple_again(coupling, solution, image)
            slopes[number, 0] = product(solution, image, count)
            clear(image, count)
            weigh_slopes(coupling)
            couple_first(coupling, solution, image)
            slopes[number, 1] = product(solution, image, count)
            for k in range(node_slopes.shape[0]):
                slopes[number, 2 + k] = node_slope(slots, b, left, first, last, node_slopes[k], n_kinds, solution)
        if not np.isfinite(values[number]):
            vectors[:] = 0  # nothing of what went wrong may reach the next pair
            steps[number] = -1
        elif values[number] > SINGLE_GROWTH * base:
            steps[number] = -1  # rounding errors of the weights have grown as much
