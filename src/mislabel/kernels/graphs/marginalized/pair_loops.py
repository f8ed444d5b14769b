"""Kernel values of many pairs of graphs, their derivatives, and similarities of nodes: one pair after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mislabel._common.compiled_loops import compiled_for_speed
from mislabel.kernels.graphs.marginalized.block_cg_loops import Accuracy, Vectors, begin, solve, workspace
from mislabel.kernels.graphs.marginalized.product_loops import (
    SQUARINGS,
    EdgePairs,
    GraphArrays,
    LabelTables,
    edge_shares,
    find_windows,
    graph_of,
    weigh,
    weigh_by_labels,
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
def differentiate(pairs: EdgePairs, count: int, vectors: Vectors, tables: LabelTables, unit: float, out: np.ndarray) -> None:
    """Derivatives of K, given both solutions: ``dK = z' dW x + (V^-1 z)' dV (V^-1 x)``.

    ``out`` (2 + P + Q) float64 receives those by the size of W, by the logarithm of the length scale s, and by the parameters
    of the node kernel and of the rest of the edge kernel. ``count`` is the number of pairs of edges. As
    ``dW / dlog s = W (l - l')^2 / s^2``, all that concerns W are sums over what each pair of edges contributes to z'Wx.
    """
    first, second = pairs.first, pairs.second
    solution, direction = vectors.solution, vectors.direction
    n_node, n_edge = tables.node_gradient.shape[0], tables.edge_gradient.shape[0]
    out[:] = 0.0
    at = 0
    for i in range(first.root.shape[0]):
        for p in range(second.root.shape[0]):
            x, z = solution[2 * at], solution[2 * at + 1]
            direction[2 * at], direction[2 * at + 1] = vectors.similarity[at] * x, vectors.similarity[at] * z
            for k in range(n_node):
                out[2 + k] += x * z * tables.node_gradient[k, first.node_label[i], second.node_label[p]]
            at += 1
    share = np.empty(count)
    edge_shares(pairs, direction, share)
    for k in range(count):
        t = pairs.difference[k] * unit
        out[0] += share[k]
        out[1] += share[k] * t * t
    out[1] *= 2.0 * 2.0**SQUARINGS
    if n_edge:
        at = 0
        for e in range(first.left.shape[0]):
            row = first.edge_label[e]
            for edge in range(pairs.low[e], pairs.high[e]):
                value = tables.edges[row, second.edge_label[edge]]
                if value != 0.0:
                    for k in range(n_edge):
                        slope = tables.edge_gradient[k, row, second.edge_label[edge]]
                        out[2 + n_node + k] += share[at] * slope / value
                at += 1


@compiled_for_speed
def evaluate_pairs(
    graphs: GraphArrays,
    tables: LabelTables,
    gaussian: Gaussian,
    numbers: np.ndarray,
    accuracy: Accuracy,
    results: Results,
) -> None:
    """Fill ``results`` for the pairs of graphs ``numbers``, (pairs, 2) int64."""
    vectors = workspace(largest(graphs.node_start) ** 2)
    low = np.empty(largest(graphs.edge_start), np.int64)
    high = np.empty_like(low)
    weight, difference = np.empty(_ROOM), np.empty(_ROOM)
    filled = 0
    for number in range(numbers.shape[0]):
        first = graph_of(graphs, numbers[number, 0], tables.node_row, tables.edge_row)
        second = graph_of(graphs, numbers[number, 1], tables.node_column, tables.edge_column)
        count = find_windows(first.length, second.length, gaussian.reach, low, high)
        if count > weight.shape[0]:
            weight, difference = np.empty(2 * count), np.empty(2 * count)
        pairs = EdgePairs(first, second, low, high, weight, difference)
        weigh(pairs, gaussian.unit)
        if not tables.trivial:
            weigh_by_labels(pairs, tables.edges)
        size = begin(first, second, tables.nodes, vectors)
        results.values[number], results.steps[number] = solve(pairs, vectors, size, accuracy)
        if results.gradient.shape[0] > 0:
            differentiate(pairs, count, vectors, tables, gaussian.unit, results.gradient[number])
        if results.nodal.shape[0] > 0:
            for k in range(size):
                source = first.root[k // second.root.shape[0]] * second.root[k % second.root.shape[0]]
                results.nodal[filled + k] = vectors.similarity[k] * vectors.solution[2 * k] / source
            filled += size
