"""The product graph of two graphs, and products of its weights with vectors: what takes most of the time of a kernel value.

A node of the product graph is a pair of nodes (i, p), i of the first graph and p of the second; pair number ``k = i n' + p``,
n' being the size of the second graph. Edge (i, j) of the first graph and edge (p, q) of the second give it four entries of

    W = (w x w') o E / (f f'),        f = sqrt(d d'),

in either direction: between (i, p) and (j, q), and between (i, q) and (j, p). All four are the same number

    w_ij / sqrt(d_i d_j)  *  w'_pq / sqrt(d'_p d'_q)  *  exp(-(l_ij - l_pq)^2 / 2 s^2)  *  the rest of the edge kernel,

so that W is kept as one number per pair of edges. Edges of each graph are sorted by length; of the second graph those whose
length is within reach of an edge of the first follow each other: its *window*. Others are so unlike that they do not matter.

Vectors over the product graph hold two numbers for each pair of nodes, one of either right-hand side (:mod:`block_cg_loops`):
number ``2 k`` and number ``2 k + 1``. Numbers of nodes are unsigned, since compiled code asks of others whether they count
from the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mislabel._common.compiled_loops import compiled_for_speed

#: The Gaussian is a Taylor polynomial of degree eight, squared so often: right to rounding up to a reach of eight length scales.
SQUARINGS = 6
_ONE, _TWO = np.uint64(1), np.uint64(2)


class GraphArrays(NamedTuple):
    """Many graphs end to end, under given hyperparameters. Edges of each graph are in ascending order of their length."""

    node_start: np.ndarray  # (graphs + 1) int64, where each graph's nodes begin
    edge_start: np.ndarray  # (graphs + 1) int64, where each graph's edges begin
    left: np.ndarray  # (edges) uint32, one end, counted within the graph
    right: np.ndarray  # (edges) uint32, the other end
    length: np.ndarray  # (edges) float64, the attribute that a Gaussian compares; zero if there is none
    weight: np.ndarray  # (edges) float64, w / sqrt(d_i d_j); halved for a self-loop, both of whose directions are the same
    root: np.ndarray  # (nodes) float64, sqrt(d)
    ratio: np.ndarray  # (nodes) float64, starting probability over sqrt(d)


class LabelTables(NamedTuple):
    """Attribute kernels, evaluated for all labels that occur, and their derivatives by the logarithms of P, Q parameters."""

    node_row: np.ndarray  # (nodes) int64, row of `nodes` where the node belongs to the first graph of a pair
    node_column: np.ndarray  # (nodes) int64, column where it belongs to the second
    nodes: np.ndarray  # (rows, columns) float64, the node kernel
    node_gradient: np.ndarray  # (P, rows, columns) float64, none where no derivatives are wanted
    edge_row: np.ndarray  # (edges) int64, the same for edges
    edge_column: np.ndarray  # (edges) int64
    edges: np.ndarray  # (rows, columns) float64, the edge kernel but for its Gaussian
    edge_gradient: np.ndarray  # (Q, rows, columns) float64
    trivial: bool  # whether the edge kernel is a Gaussian alone: `edges` is not looked at


class OneGraph(NamedTuple):
    """One graph of a pair: the parts of :class:`GraphArrays` and :class:`LabelTables` that belong to it."""

    left: np.ndarray  # (edges) uint32
    right: np.ndarray  # (edges) uint32
    length: np.ndarray  # (edges) float64
    weight: np.ndarray  # (edges) float64
    root: np.ndarray  # (nodes) float64
    ratio: np.ndarray  # (nodes) float64
    node_label: np.ndarray  # (nodes) int64, rows for the first graph, columns for the second
    edge_label: np.ndarray  # (edges) int64


class EdgePairs(NamedTuple):
    """W of a product graph: the pairs of edges within reach, window after window."""

    first: OneGraph
    second: OneGraph
    low: np.ndarray  # (at least the edges of the first graph) int64, first edge of each window
    high: np.ndarray  # (at least the edges of the first graph) int64, first edge behind it
    weight: np.ndarray  # (at least the pairs of edges) float64, W
    difference: np.ndarray  # (at least the pairs of edges) float64, of lengths


@compiled_for_speed
def graph_of(graphs: GraphArrays, number: int, node_label: np.ndarray, edge_label: np.ndarray) -> OneGraph:
    """The parts of one graph; labels (nodes of all graphs) and (edges of all graphs), rows or columns of the tables."""
    nodes = slice(graphs.node_start[number], graphs.node_start[number + 1])
    edges = slice(graphs.edge_start[number], graphs.edge_start[number + 1])
    return OneGraph(
        graphs.left[edges],
        graphs.right[edges],
        graphs.length[edges],
        graphs.weight[edges],
        graphs.root[nodes],
        graphs.ratio[nodes],
        node_label[nodes],
        edge_label[edges],
    )


@compiled_for_speed
def find_windows(first: np.ndarray, second: np.ndarray, reach: float, low: np.ndarray, high: np.ndarray) -> int:
    """For ascending lengths ``first`` and ``second``, which of the second are within ``reach``; returns how many in all.

    ``low`` and ``high`` receive where the window of each of the first begins and ends. Both only ever move up.
    """
    start = stop = total = 0
    count = second.shape[0]
    for e in range(first.shape[0]):
        while start < count and second[start] < first[e] - reach:
            start += 1
        while stop < count and second[stop] <= first[e] + reach:
            stop += 1
        low[e], high[e] = start, stop
        total += stop - start
    return total


@compiled_for_speed
def weigh(pairs: EdgePairs, unit: float) -> int:
    """Compute W, but for the rest of the edge kernel; returns how many numbers it has.

    ``unit`` is what differences of lengths are multiplied by so that the Gaussian is ``exp(-2^SQUARINGS t^2)``.
    """
    weight, difference = pairs.weight, pairs.difference
    at = np.uint64(0)
    for e in range(np.uint64(pairs.first.left.shape[0])):
        length, factor = pairs.first.length[e], pairs.first.weight[e]
        begin = np.uint64(pairs.low[e])
        count = np.uint64(pairs.high[e]) - begin
        for k in range(count):
            difference[at + k] = length - pairs.second.length[begin + k]
            weight[at + k] = factor * pairs.second.weight[begin + k]
        at += count
    for k in range(at):
        t = difference[k] * unit
        z = t * t
        # exp(-z), with z small: then squared until it is exp(-64 z).
        power = 1 - z * (1 - z / 2 * (1 - z / 3 * (1 - z / 4 * (1 - z / 5 * (1 - z / 6 * (1 - z / 7 * (1 - z / 8)))))))
        for _ in range(SQUARINGS):
            power *= power
        weight[k] *= power
    return np.int64(at)


@compiled_for_speed
def weigh_by_labels(pairs: EdgePairs, table: np.ndarray) -> None:
    """Multiply W by the rest of the edge kernel, ``table`` (rows, columns)."""
    at = 0
    for e in range(pairs.first.left.shape[0]):
        row = table[pairs.first.edge_label[e]]
        for k in range(pairs.low[e], pairs.high[e]):
            weight = row[pairs.second.edge_label[k]]
            pairs.weight[at] *= weight
            at += 1


@compiled_for_speed
def add_product(pairs: EdgePairs, source: np.ndarray, target: np.ndarray) -> None:
    """``target += W source`` for both right-hand sides; (2 n n') float64 each, which must not overlap."""
    left, right, weights = pairs.second.left, pairs.second.right, pairs.weight
    width = _TWO * np.uint64(pairs.second.root.shape[0])
    at = np.uint64(0)
    for e in range(np.uint64(pairs.first.left.shape[0])):
        i, j = width * np.uint64(pairs.first.left[e]), width * np.uint64(pairs.first.right[e])
        for k in range(np.uint64(pairs.low[e]), np.uint64(pairs.high[e])):
            weight = weights[at]
            p, q = _TWO * np.uint64(left[k]), _TWO * np.uint64(right[k])
            ip, iq, jp, jq = i + p, i + q, j + p, j + q
            target[ip] += weight * source[jq]
            target[ip + _ONE] += weight * source[jq + _ONE]
            target[jq] += weight * source[ip]
            target[jq + _ONE] += weight * source[ip + _ONE]
            target[iq] += weight * source[jp]
            target[iq + _ONE] += weight * source[jp + _ONE]
            target[jp] += weight * source[iq]
            target[jp + _ONE] += weight * source[iq + _ONE]
            at += _ONE


@compiled_for_speed
def quadratic_forms(pairs: EdgePairs, vector: np.ndarray) -> tuple[float, float, float]:
    """``v' W v`` for both right-hand sides, ``vector`` (2 n n') float64: f with f, u with u, f with u.

    Half the work of a product, since nothing is written.
    """
    left, right, weights = pairs.second.left, pairs.second.right, pairs.weight
    width = _TWO * np.uint64(pairs.second.root.shape[0])
    at = np.uint64(0)
    f_with_f = u_with_u = f_with_u = 0.0
    for e in range(np.uint64(pairs.first.left.shape[0])):
        i, j = width * np.uint64(pairs.first.left[e]), width * np.uint64(pairs.first.right[e])
        for k in range(np.uint64(pairs.low[e]), np.uint64(pairs.high[e])):
            p, q = _TWO * np.uint64(left[k]), _TWO * np.uint64(right[k])
            ip, iq, jp, jq = i + p, i + q, j + p, j + q
            f_ip, f_iq, f_jp, f_jq = vector[ip], vector[iq], vector[jp], vector[jq]
            u_ip, u_iq, u_jp, u_jq = vector[ip + _ONE], vector[iq + _ONE], vector[jp + _ONE], vector[jq + _ONE]
            f_with_f += weights[at] * (f_ip * f_jq + f_iq * f_jp)
            u_with_u += weights[at] * (u_ip * u_jq + u_iq * u_jp)
            f_with_u += weights[at] * (f_ip * u_jq + f_jq * u_ip + f_iq * u_jp + f_jp * u_iq)
            at += _ONE
    return 2.0 * f_with_f, 2.0 * u_with_u, f_with_u


@compiled_for_speed
def edge_shares(pairs: EdgePairs, vector: np.ndarray, out: np.ndarray) -> None:
    """What each pair of edges contributes to ``z' W x``, ``vector`` (2 n n') float64 holding x and z; ``out`` like W."""
    left, right, weights = pairs.second.left, pairs.second.right, pairs.weight
    width = _TWO * np.uint64(pairs.second.root.shape[0])
    at = np.uint64(0)
    for e in range(np.uint64(pairs.first.left.shape[0])):
        i, j = width * np.uint64(pairs.first.left[e]), width * np.uint64(pairs.first.right[e])
        for k in range(np.uint64(pairs.low[e]), np.uint64(pairs.high[e])):
            p, q = _TWO * np.uint64(left[k]), _TWO * np.uint64(right[k])
            ip, iq, jp, jq = i + p, i + q, j + p, j + q
            straight = vector[ip] * vector[jq + _ONE] + vector[jq] * vector[ip + _ONE]
            crossed = vector[iq] * vector[jp + _ONE] + vector[jp] * vector[iq + _ONE]
            out[at] = weights[at] * (straight + crossed)
            at += _ONE
