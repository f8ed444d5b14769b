"""Compiled loops of the marginalized graph kernel: for each pair of graphs, one linear system over all pairs of nodes.

Its solution is in :mod:`two_sided_loops`. Here W is a list of pairs of edges, and both solutions are interleaved, so that
every memory access serves both: for any processor, either precision, and all similarities of edges.

Four in ten pairs of edges weigh next to nothing: their lengths differ much, or they are long. Where only K is asked for they
are left out of the systems, and ``z' W x`` over them, t, is added at the end. What that neglects is of second order in them,
and at least ``t^2 / K`` (Cauchy and Schwarz), which is added too. Where t is too large all the same, the pair is computed anew
with all pairs of edges, and fewer of them count as light from there on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mislabel._common.compiled_loops import compiled_for_speed
from mislabel.kernels.graphs.solution_loops import PAD, bilinear, clear, scaled_row
from mislabel.kernels.graphs.two_sided_loops import EdgePairs, couple_all, solve
from mislabel.kernels.graphs.vector_loops import CAN_PACK, CHUNK, gaussian_weights, shifted, split_weights, tail_form

#: Room for so many pairs of edges, and chunks of them, to begin with.
_PAIRS, _CHUNKS = 1 << 14, 1 << 12
#: How much longer walks may add to the first term of K before single precision is not enough.
SINGLE_GROWTH = 2.5
#: The square of what light pairs of edges add to K, relative to K, may be this part of the tolerance: what is neglected of
#: second order was 1.3 to 4 times as large.
_TAIL_SHARE = 0.5
#: What counts as light is halved after each pair of graphs where that was too much, and doubled again in so many others.
_RECOVERY = 64
#: 2 ln 2: lengths are stored so that the Gaussian of a difference t is 2^-t^2.
_TWO_LOG_TWO = 1.3862943611198906
#: An entry of the list of chunks has the number of an edge above, that of its first partner below.
_UP, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


#: Chunks of partners, how far pairs are shifted against them, and offsets of rows, see `_list_chunks`.
ChunkLists = tuple[np.ndarray, np.ndarray, np.ndarray]


class GraphArrays(NamedTuple):
    """Many graphs as flat arrays. Edges of one graph are sorted by length; node numbers are within the graph."""

    node_start: np.ndarray  # (graphs + 1) where each graph's nodes begin
    node_kind: np.ndarray  # row or column of the table of node similarities
    node_root: np.ndarray  # square root of the weighted degree
    node_begin: np.ndarray  # starting probability
    node_ratio: np.ndarray  # starting probability over root
    edge_start: np.ndarray  # (graphs + 1) where each graph's edges begin
    edge_left: np.ndarray
    edge_right: np.ndarray
    edge_ends: (
        np.ndarray
    )  # bytes up to the nodes left, right, right, left in 16 bits each; left, right in 32 if not `narrow`
    edge_swapped: np.ndarray  # right, left in 32 bits each; not looked at if `narrow`
    narrow: bool  # whether all offsets into a pair's solutions fit into 16 bits
    edge_weight: np.ndarray  # normalised by the roots of both degrees; halved for self-loops
    edge_log_weight: np.ndarray  # logarithm of that, base 2
    edge_length: np.ndarray  # integers
    length_unit: np.ndarray  # (1) times a difference of lengths: t, of which the Gaussian is 2^-t^2
    light: np.ndarray  # (1) weights of pairs of edges below so many square roots of the tolerance are light; 0 for none
    edge_kind: np.ndarray  # row or column of the table of edge similarities
    window_low: np.ndarray  # buckets of length that an edge's partners lie in
    window_high: np.ndarray
    positions: np.ndarray  # (graphs, buckets) first edge in each bucket


class Similarity(NamedTuple):
    """Tables of node and edge similarities, by kind, and their derivatives by each hyperparameter."""

    nodes: np.ndarray  # (kinds, kinds)
    edges: np.ndarray  # (kinds, kinds); not looked at unless `tabled`
    tabled: bool
    node_slopes: np.ndarray  # (parameters, kinds, kinds)
    edge_slopes: np.ndarray


@compiled_for_speed
def _needed(left: GraphArrays, a: int, right: GraphArrays, b: int, pairs: int, chunks: int) -> tuple[int, int]:
    """At least as many pairs of edges, and chunks of them, as lie within reach: counted only where more than given might."""
    mine, others = left.edge_start[a + 1] - left.edge_start[a], right.edge_start[b + 1] - right.edge_start[b]
    if mine * others <= pairs and mine * (others // CHUNK + 1) <= chunks:
        return pairs, chunks
    pairs, chunks = 0, 0
    for e in range(left.edge_start[a], left.edge_start[a + 1]):
        count = right.positions[b, left.window_high[e]] - right.positions[b, left.window_low[e]]
        pairs += count
        chunks += (count + CHUNK - 1) // CHUNK
    return pairs, chunks


@compiled_for_speed
def _list_chunks(
    left: GraphArrays,
    a: int,
    right: GraphArrays,
    b: int,
    low: np.ndarray,
    high: np.ndarray,
    chunks: np.ndarray,
    shifts: np.ndarray,
    rows: np.ndarray,
) -> tuple[np.uint64, np.uint64]:
    """Which edges of graph b lie within reach of each edge of graph a; returns how many pairs, and in how many chunks.

    Chunks of partners are listed as (edge of a, first partner), with how far pairs are shifted against partners and the
    offsets of rows. The first chunks of every edge are written whether they are needed or not, because the processor cannot
    foresee how many are: what is not needed is overwritten by the next edge. Unsigned numbers are not looked at for whether
    they count from the end.
    """
    first, offset = np.uint64(left.edge_start[a]), np.uint64(right.edge_start[b])
    width = np.uint64(2 * left.node_root.itemsize * (right.node_start[b + 1] - right.node_start[b]))
    half = np.uint64(16 if right.narrow else 32)
    step = np.uint64(CHUNK)
    positions = right.positions[b]
    at, c = np.uint64(0), np.uint64(0)
    for e in range(np.uint64(left.edge_start[a + 1]) - first):
        start = offset + np.uint64(positions[left.window_low[first + e]])
        stop = offset + np.uint64(positions[left.window_high[first + e]])
        low[e], high[e] = start, stop
        count = stop - start
        entry = e << _UP | start
        chunks[c], chunks[c + np.uint64(1)] = entry, entry + step
        chunks[c + np.uint64(2)], chunks[c + np.uint64(3)] = entry + np.uint64(2) * step, entry + np.uint64(3) * step
        needed = (count + step - np.uint64(1)) // step
        for k in range(np.uint64(4), needed):
            chunks[c + k] = entry + k * step
        i, j = width * np.uint64(left.edge_left[first + e]), width * np.uint64(left.edge_right[first + e])
        row = i | j << half
        rows[e] = row | row << _UP if right.narrow else row
        shifts[e] = at - start
        c += needed
        at += count
    return at, c


@compiled_for_speed
def _fill_weights(
    left: GraphArrays,
    a: int,
    right: GraphArrays,
    similarity: Similarity,
    low: np.ndarray,
    high: np.ndarray,
    n_chunks: np.uint64,
    lists: ChunkLists,
    weights: np.ndarray,
    straight: np.ndarray,
    crossed: np.ndarray,
) -> None:
    """W for all pairs of edges within reach, and where in the solutions it acts, in the order of the windows."""
    first = np.uint64(left.edge_start[a])
    chunks, shifts, rows = lists
    unit = left.length_unit[0]
    for c in range(n_chunks):
        e, k = chunks[c] >> _UP, chunks[c] & _LOW
        here = k + shifts[e]
        length, weight = left.edge_length[first + e], left.edge_weight[first + e]
        # May write past the window: what it writes there is overwritten by the next.
        gaussian_weights(weights, here, right.edge_length, right.edge_weight, k, length, weight, unit)
        shifted(straight, here, right.edge_ends, k, rows[e])
        if not right.narrow:
            shifted(crossed, here, right.edge_swapped, k, rows[e])
    if similarity.tabled:
        for e in range(np.uint64(left.edge_start[a + 1]) - first):
            row = similarity.edges[left.edge_kind[first + e]]
            for k in range(low[e], high[e]):
                weights[k + shifts[e]] *= row[right.edge_kind[k]]


@compiled_for_speed
def _split_weights(
    left: GraphArrays,
    a: int,
    right: GraphArrays,
    high: np.ndarray,
    n_chunks: np.uint64,
    lists: ChunkLists,
    least: float,
    weights: np.ndarray,
    straight: np.ndarray,
    tail: np.ndarray,
    tail_ends: np.ndarray,
) -> tuple[np.uint64, np.uint64]:
    """:func:`_fill_weights` in two lists, weights above ``2^least`` and the tail; returns how many each has.

    That is decided by logarithms, because those are there before the weights are.
    """
    first = np.uint64(left.edge_start[a])
    chunks, _, rows = lists
    unit = left.length_unit[0]
    at, behind = np.uint64(0), np.uint64(0)
    for c in range(n_chunks):
        e, k = chunks[c] >> _UP, chunks[c] & _LOW
        length, weight = left.edge_length[first + e], left.edge_weight[first + e]
        near, far = split_weights(
            weights, straight, at, tail, tail_ends, behind,
            right.edge_length, right.edge_weight, k, length, weight, unit, right.edge_ends, rows[e], high[e] - k,
            right.edge_log_weight, left.edge_log_weight[first + e] - least,
        )  # fmt: skip
        at += near
        behind += far
    return at, behind


@compiled_for_speed
def _prepare(
    left: GraphArrays,
    a: int,
    right: GraphArrays,
    b: int,
    similarity: Similarity,
    node: np.ndarray,
    source: np.ndarray,
    rows: np.ndarray,
) -> float:
    """Node similarities (twice each, once per solution) and the first guesses ``V f`` and ``V u``; returns ``u' V f``.

    Nodes of one kind mostly follow each other, and their rows differ by a factor: ``rows`` keeps the last kind's, similarities
    first, then what the factors of both guesses apply to.
    """
    other = right.node_start[b]
    count = right.node_start[b + 1] - other
    similar, scaled = rows[0], rows[1]
    one = similar.dtype.type(1)
    total = 0.0
    row_total = 0.0
    at = 0
    last = -1
    for i in range(left.node_start[a], left.node_start[a + 1]):
        kind = left.node_kind[i]
        if kind != last:
            last = kind
            table = similarity.nodes[kind]
            sum_here = similar[0] * 0
            for j in range(count):
                value = table[right.node_kind[other + j]]
                similar[2 * j] = value
                similar[2 * j + 1] = value
                scaled[2 * j] = value * right.node_root[other + j]
                scaled[2 * j + 1] = value * right.node_ratio[other + j]
                sum_here += value * right.node_begin[other + j]
            row_total = np.float64(sum_here)
        # Either may write past its row: what it writes there is overwritten by the next.
        scaled_row(node, at, similar, one, one, 2 * count)
        scaled_row(source, at, scaled, left.node_root[i], left.node_ratio[i], 2 * count)
        total += row_total * np.float64(left.node_begin[i])
        at += 2 * count
    for k in range(at, at + PAD):
        node[k] = 0
        source[k] = 0
    return total


@compiled_for_speed
def _slopes(
    left: GraphArrays,
    a: int,
    right: GraphArrays,
    b: int,
    similarity: Similarity,
    low: np.ndarray,
    high: np.ndarray,
    weights: np.ndarray,
    solution: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Derivatives of one kernel value, by (edges as a whole, logarithm of the length scale, node and edge parameters)."""
    other, count = right.node_start[b], right.node_start[b + 1] - right.node_start[b]
    n_node, n_edge = similarity.node_slopes.shape[0], similarity.edge_slopes.shape[0]
    slopes[:] = 0.0
    at = 0
    for i in range(left.node_start[a], left.node_start[a + 1]):
        for j in range(other, other + count):
            kind_i, kind_j = left.node_kind[i], right.node_kind[j]
            value = np.float64(similarity.nodes[kind_i, kind_j])
            x, z = np.float64(solution[at]), np.float64(solution[at + 1])
            f = np.float64(left.node_root[i]) * np.float64(right.node_root[j])
            slopes[0] += z * (x / value - f)  # z' W x, since W x = V^-1 x - f
            for parameter in range(n_node):
                slopes[2 + parameter] += x * z * similarity.node_slopes[parameter, kind_i, kind_j] / (value * value)
            at += 2
    first = left.edge_start[a]
    at = 0
    for e in range(left.edge_start[a + 1] - first):
        row_i, row_j = 2 * count * left.edge_left[first + e], 2 * count * left.edge_right[first + e]
        length, kind = left.edge_length[first + e], left.edge_kind[first + e]
        for k in range(low[e], high[e]):
            p, q = 2 * right.edge_left[k], 2 * right.edge_right[k]
            coupled = solution[row_i + p] * solution[row_j + q + 1] + solution[row_j + q] * solution[row_i + p + 1]
            coupled += solution[row_i + q] * solution[row_j + p + 1] + solution[row_j + p] * solution[row_i + q + 1]
            change = np.float64(coupled) * np.float64(weights[at])
            difference = np.float64(length - right.edge_length[k]) * np.float64(left.length_unit[0])
            slopes[1] += _TWO_LOG_TWO * difference * difference * change
            if n_edge:
                value = np.float64(similarity.edges[kind, right.edge_kind[k]])
                for parameter in range(n_edge):
                    slope = similarity.edge_slopes[parameter, kind, right.edge_kind[k]]
                    if value != 0.0:
                        slopes[2 + n_node + parameter] += change * slope / value
            at += 1


@compiled_for_speed
def largest(starts: np.ndarray) -> int:
    """How many there are of something at most, given where those of each graph begin."""
    most = 0
    for k in range(starts.shape[0] - 1):
        most = max(most, starts[k + 1] - starts[k])
    return most


@compiled_for_speed
def pair_values(
    left: GraphArrays,
    right: GraphArrays,
    pairs: np.ndarray,
    similarity: Similarity,
    tol: float,
    linear: float,
    max_iter: int,
    values: np.ndarray,
    steps: np.ndarray,
    slopes: np.ndarray,
    nodal: np.ndarray,
) -> None:
    """Kernel values of the given pairs (graph of ``left``, graph of ``right``).

    ``steps`` receives how many steps each pair took, -1 where they were not enough; ``slopes`` (pairs, parameters) the
    derivatives, unless it is empty; ``nodal`` the solutions x / f of every pair of nodes, one pair of graphs after the
    other, unless it is empty.
    """
    low = np.empty(largest(left.edge_start) + 1, np.uint64)
    high, shifts, offsets = np.empty_like(low), np.empty_like(low), np.empty_like(low)
    chunks = np.empty(_CHUNKS, np.uint64)
    most = largest(left.node_start) * largest(right.node_start)
    vectors = np.zeros((7, 2 * most + 64), left.node_root.dtype)
    rows = np.zeros((2, 2 * largest(right.node_start) + 64), left.node_root.dtype)
    weights = np.empty(_PAIRS, left.node_root.dtype)
    straight = np.empty(weights.shape[0], np.uint64)
    crossed = np.empty(weights.shape[0], np.uint64)
    tail, tail_ends = np.empty(weights.shape[0], weights.dtype), np.empty(weights.shape[0], np.uint64)
    coupling = EdgePairs(np.zeros(1, np.uint64), weights, straight, crossed, right.narrow)
    residual, solution, moved, node, guess = vectors[0], vectors[3], vectors[4], vectors[5], vectors[6]
    derived = slopes.shape[0] > 0 or nodal.shape[0] > 0
    accuracy = linear if derived else 0.0
    number_type = weights.dtype.type
    start = number_type(np.log2(left.light[0] * np.sqrt(tol)))
    least = start
    splits = CAN_PACK and right.narrow and not similarity.tabled and not derived
    filled = 0
    for number in range(pairs.shape[0]):
        a, b = pairs[number, 0], pairs[number, 1]
        most_pairs, most_chunks = _needed(left, a, right, b, weights.shape[0] - CHUNK, chunks.shape[0] - 4)
        if most_chunks + 4 > chunks.shape[0]:
            chunks = np.empty(most_chunks + most_chunks // 2 + 4, np.uint64)
        if most_pairs + CHUNK > weights.shape[0]:
            weights = np.empty(most_pairs + most_pairs // 2 + CHUNK, left.node_root.dtype)
            straight = np.empty(weights.shape[0], np.uint64)
            crossed = np.empty(weights.shape[0], np.uint64)
            tail, tail_ends = np.empty(weights.shape[0], weights.dtype), np.empty(weights.shape[0], np.uint64)
            coupling = EdgePairs(coupling.total, weights, straight, crossed, right.narrow)
        lists = chunks, shifts, offsets
        total, n_chunks = _list_chunks(left, a, right, b, low, high, chunks, shifts, offsets)
        size = (left.node_start[a + 1] - left.node_start[a]) * (right.node_start[b + 1] - right.node_start[b])
        base = _prepare(left, a, right, b, similarity, node, guess, rows)
        whole = not splits
        while True:
            near, behind = total, np.uint64(0)
            if whole:
                _fill_weights(left, a, right, similarity, low, high, n_chunks, lists, weights, straight, crossed)
            else:
                near, behind = _split_weights(
                    left, a, right, high, n_chunks, lists, least, weights, straight, tail, tail_ends
                )
            coupling.total[0] = near
            clear(residual, 2 * size)
            couple_all(coupling, guess, residual)
            steps[number] = solve(coupling, 2 * size, node, vectors, base, tol, accuracy, max_iter)
            # K = u'x + z'r + q'V r with x = V f + V m, z = V u + V l: base + (V u)'(m + r) + r'V (l + q).
            values[number] = base + bilinear(solution, guess, moved, residual, node, 2 * size)
            if whole:
                break
            added = tail_form(tail, tail_ends, solution, behind)
            values[number] += added
            if added * added <= _TAIL_SHARE * tol * values[number] * values[number]:
                if added > 0.0:
                    values[number] += added * added / values[number]
                least = min(start, least + number_type(1 / _RECOVERY))
                break
            whole = True
            least -= number_type(1)
            solution[:] = 0  # nothing of what went wrong may reach the second try
        if derived:
            if slopes.shape[0] > 0:
                _slopes(left, a, right, b, similarity, low, high, weights, solution, slopes[number])
            if nodal.shape[0] > 0:
                at = 0
                for i in range(left.node_start[a], left.node_start[a + 1]):
                    for j in range(right.node_start[b], right.node_start[b + 1]):
                        nodal[filled] = solution[at] / (left.node_root[i] * right.node_root[j])
                        filled += 1
                        at += 2
        if not np.isfinite(values[number]):
            vectors[:] = 0  # nothing of what went wrong may reach the next pair
            steps[number] = -1
        elif weights.itemsize == 4 and values[number] > SINGLE_GROWTH * base:
            steps[number] = -1  # rounding errors of the weights have grown as much
