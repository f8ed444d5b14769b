"""Kernel values of many pairs of graphs, their derivatives, and similarities of nodes: one pair after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mislabel._common.compiled_loops import compiled, compiled_for_speed
from mislabel.kernels.graphs.marginalized.block_cg_loops import Accuracy, Vectors, begin, solve
from mislabel.kernels.graphs.marginalized.product_loops import (
    SQUARINGS,
    EdgePairs,
    GraphArrays,
    LabelTables,
    edge_shares,
    find_windows,
    list_edge_pairs,
    weigh_by_labels,
    weigh_by_length,
)

#: Room for so many pairs of edges to begin with.
_ROOM = 1 << 14


class Gaussian(NamedTuple):
    """The part of the edge kernel that compares lengths."""

    reach: float  # how much two lengths may differ and still matter; infinite if they are not compared
    unit: float  # differences of lengths times this are t of ``exp(-2^SQUARINGS t^2)``; zero if they are not compared


class Results(NamedTuple):
    """What is computed of each pair; the last two only if they have room for it."""

    values: np.ndarray  # (pairs) float64, K
    steps: np.ndarray  # (pairs) int64, products with W that it took, -1 where it did not converge
    gradient: np.ndarray  # (pairs, 2 + P + Q) or (0, 0) float64, see `differentiate`
    nodal: np.ndarray  # (all pairs of nodes, pair of graphs after pair of graphs) or (0) float64, x / f


@compiled_for_speed
def largest(starts: np.ndarray) -> int:
    """How many there are of something at most, given where those of each graph begin, (graphs + 1) int64."""
    most = 0
    for k in range(starts.shape[0] - 1):
        most = max(most, starts[k + 1] - starts[k])
    return most


@compiled_for_speed
def room_for(count: int) -> EdgePairs:
    """Room for so many pairs of edges."""
    return EdgePairs(np.empty(count), np.empty(count), np.empty(count, np.uint64), np.empty(count, np.uint64))


@compiled_for_speed
def differentiate_by_nodes(
    graphs: GraphArrays, a: int, b: int, tables: LabelTables, solution: np.ndarray, out: np.ndarray
) -> None:
    """``out`` (P) float64: ``(V^-1 z)' dV (V^-1 x)`` for the parameters of the node kernel."""
    first, last = graphs.node_start[b], graphs.node_start[b + 1]
    at = 0
    for i in range(graphs.node_start[a], graphs.node_start[a + 1]):
        row = tables.node_row[i]
        for p in range(first, last):
            change = solution[2 * at] * solution[2 * at + 1]
            for k in range(out.shape[0]):
                out[k] += change * tables.node_gradient[k, row, tables.node_column[p]]
            at += 1


@compiled_for_speed
def differentiate_by_edges(
    graphs: GraphArrays, a: int, windows: np.ndarray, tables: LabelTables, share: np.ndarray, out: np.ndarray
) -> None:
    """``out`` (Q) float64: ``z' dW x`` for the parameters of the rest of the edge kernel, given each pair's share of z'Wx."""
    at = 0
    for e in range(graphs.edge_start[a + 1] - graphs.edge_start[a]):
        row = tables.edge_row[graphs.edge_start[a] + e]
        for edge in range(windows[0, e], windows[1, e]):
            column = tables.edge_column[edge]
            value = tables.edges[row, column]
            if value != 0.0:
                for k in range(out.shape[0]):
                    out[k] += share[at] * tables.edge_gradient[k, row, column] / value
            at += 1


@compiled_for_speed
def differentiate(
    size: int, count: int, pairs: EdgePairs, unit: float, vectors: Vectors, out: np.ndarray
) -> np.ndarray:
    """``out`` (2) float64: derivatives of K by the logarithms of the size of W (``z'Wx``) and of the length scale s.

    As ``dW / dlog s = W (l - l')^2 / s^2``, the second is a sum over what each of ``count`` pairs of edges contributes to the
    first, which is returned. ``vectors`` of ``size`` pairs of nodes holds both solutions.
    """
    similarity, solution, both = vectors.similarity, vectors.solution, vectors.direction
    difference, share = pairs.difference, np.empty(count)
    for k in range(size):
        both[2 * k], both[2 * k + 1] = similarity[k] * solution[2 * k], similarity[k] * solution[2 * k + 1]
    edge_shares(count, pairs.weight, pairs.straight, pairs.crossed, both, share)
    total = by_length = 0.0
    for k in range(count):
        t = difference[k] * unit
        total += share[k]
        by_length += share[k] * t * t
    out[0], out[1] = total, 2.0 * 2.0**SQUARINGS * by_length
    return share


@compiled_for_speed
def nodal(graphs: GraphArrays, a: int, b: int, similarity: np.ndarray, solution: np.ndarray, out: np.ndarray) -> None:
    """``out`` (n n') float64: x / f, given V and V^-1 x."""
    at = 0
    for i in range(graphs.node_start[a], graphs.node_start[a + 1]):
        for p in range(graphs.node_start[b], graphs.node_start[b + 1]):
            out[at] = similarity[at] * solution[2 * at] / (graphs.root[i] * graphs.root[p])
            at += 1


@compiled
def evaluate_pairs(
    graphs: GraphArrays,
    tables: LabelTables,
    gaussian: Gaussian,
    numbers: np.ndarray,
    accuracy: Accuracy,
    results: Results,
) -> None:
    """Fill ``results`` for the pairs of graphs ``numbers``, (pairs, 2) int64."""
    most = largest(graphs.node_start) ** 2
    both = np.empty((5, 2 * most))
    vectors = Vectors(np.empty(most), both[0], both[1], both[2], both[3], both[4])
    windows = np.empty((2, largest(graphs.edge_start)), np.int64)
    pairs = room_for(_ROOM)
    n_node = tables.node_gradient.shape[0]
    filled = 0
    for number in range(numbers.shape[0]):
        a, b = numbers[number, 0], numbers[number, 1]
        count = find_windows(graphs, a, b, gaussian.reach, windows)
        if count > pairs.weight.shape[0]:
            pairs = room_for(2 * count)
        list_edge_pairs(graphs, a, b, windows, pairs)
        weigh_by_length(count, pairs.difference, gaussian.unit, pairs.weight)
        if not tables.trivial:
            weigh_by_labels(graphs, a, windows, tables, pairs.weight)
        size = begin(graphs, a, b, tables, vectors)
        results.values[number], results.steps[number] = solve(count, pairs, size, vectors, accuracy)
        if results.gradient.shape[0] > 0:
            out = results.gradient[number]
            out[:] = 0.0
            share = differentiate(size, count, pairs, gaussian.unit, vectors, out[:2])
            differentiate_by_nodes(graphs, a, b, tables, vectors.solution, out[2 : 2 + n_node])
            if not tables.trivial:
                differentiate_by_edges(graphs, a, windows, tables, share, out[2 + n_node :])
        if results.nodal.shape[0] > 0:
            nodal(graphs, a, b, vectors.similarity, vectors.solution, results.nodal[filled : filled + size])
            filled += size
