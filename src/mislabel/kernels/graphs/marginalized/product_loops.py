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

from mislabel._common.compiled_loops import compiled, compiled_for_speed

#: The Gaussian is a Taylor polynomial of degree five, squared so often: its error is below 1e-12 up to a reach of eight length
#: scales.
SQUARINGS = 8
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


class GraphArrays(NamedTuple):
    """Many graphs end to end, under given hyperparameters. Edges of each graph are in ascending order of their length."""

    node_start: np.ndarray  # (graphs + 1) int64, where each graph's nodes begin
    edge_start: np.ndarray  # (graphs + 1) int64, where each graph's edges begin
    ends: np.ndarray  # (edges) uint64, twice the number of one end, and 32 bits further up twice that of the other
    swapped: np.ndarray  # (edges) uint64, the same the other way round
    length: np.ndarray  # (edges) float64, the attribute that a Gaussian compares; zero if there is none
    weight: (
        np.ndarray
    )  # (edges) float64, w / sqrt(d_i d_j); halved for a self-loop, both of whose directions are the same
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


class EdgePairs(NamedTuple):
    """W of a product graph: the pairs of edges within reach, window after window. Room for more than there are."""

    weight: np.ndarray  # (room) float64, W
    difference: np.ndarray  # (room) float64, of lengths
    straight: np.ndarray  # (room) uint64, where the numbers of (i, p) begin, and 32 bits further up those of (j, q)
    crossed: np.ndarray  # (room) uint64, the same for (i, q) and (j, p)


@compiled_for_speed
def find_windows(graphs: GraphArrays, a: int, b: int, reach: float, windows: np.ndarray) -> int:
    """Which edges of graph ``b`` are within ``reach`` of each edge of graph ``a``; returns how many in all.

    ``windows`` (2, edges of the largest graph) int64 receives where the window of each edge begins and ends, counted among
    the edges of all graphs. As lengths ascend, both only ever move up.
    """
    length = graphs.length
    start = stop = graphs.edge_start[b]
    behind = graphs.edge_start[b + 1]
    total = 0
    for e in range(graphs.edge_start[a + 1] - graphs.edge_start[a]):
        here = length[graphs.edge_start[a] + e]
        while start < behind and length[start] < here - reach:
            start += 1
        while stop < behind and length[stop] <= here + reach:
            stop += 1
        windows[0, e], windows[1, e] = start, stop
        total += stop - start
    return total


@compiled_for_speed
def list_edge_pairs(graphs: GraphArrays, a: int, b: int, windows: np.ndarray, pairs: EdgePairs) -> None:
    """Fill ``pairs`` for two graphs, W but for the edge kernel."""
    weight, difference, straight, crossed = pairs.weight, pairs.difference, pairs.straight, pairs.crossed
    ends, swapped, lengths, weights = graphs.ends, graphs.swapped, graphs.length, graphs.weight
    first = np.uint64(graphs.edge_start[a])
    width = np.uint64(graphs.node_start[b + 1] - graphs.node_start[b])
    at = np.uint64(0)
    for e in range(np.uint64(graphs.edge_start[a + 1]) - first):
        length, factor = lengths[first + e], weights[first + e]
        rows = width * ends[first + e]
        begin = np.uint64(windows[0, e])
        count = np.uint64(windows[1, e]) - begin
        for k in range(count):
            difference[at + k] = length - lengths[begin + k]
            weight[at + k] = factor * weights[begin + k]
            straight[at + k] = rows + ends[begin + k]
            crossed[at + k] = rows + swapped[begin + k]
        at += count


@compiled_for_speed
def weigh_by_length(count: int, difference: np.ndarray, unit: float, weight: np.ndarray) -> None:
    """Multiply W by the Gaussian ``exp(-2^SQUARINGS t^2)``, t being ``unit`` times ``difference``; both (room) float64."""
    for k in range(np.uint64(count)):
        t = difference[k] * unit
        z = t * t
        power = 1 - z * (1 - z * (1 / 2 - z * (1 / 6 - z * (1 / 24 - z * (1 / 120)))))
        for _ in range(SQUARINGS):
            power *= power
        weight[k] *= power


@compiled_for_speed
def weigh_by_labels(graphs: GraphArrays, a: int, windows: np.ndarray, tables: LabelTables, weight: np.ndarray) -> None:
    """Multiply W by the rest of the edge kernel."""
    at = 0
    for e in range(graphs.edge_start[a + 1] - graphs.edge_start[a]):
        row = tables.edge_row[graphs.edge_start[a] + e]
        for k in range(windows[0, e], windows[1, e]):
            weight[at] *= tables.edges[row, tables.edge_column[k]]
            at += 1


@compiled_for_speed
def add_product(
    count: int, weight: np.ndarray, straight: np.ndarray, crossed: np.ndarray, source: np.ndarray, target: np.ndarray
) -> None:
    """``target += W source`` for both right-hand sides; (2 n n') float64 each, which must not overlap."""
    for k in range(np.uint64(count)):
        w = weight[k]
        ip, jq, iq, jp = straight[k] & _LOW, straight[k] >> _HALF, crossed[k] & _LOW, crossed[k] >> _HALF
        target[ip] += w * source[jq]
        target[ip + _ONE] += w * source[jq + _ONE]
        target[jq] += w * source[ip]
        target[jq + _ONE] += w * source[ip + _ONE]
        target[iq] += w * source[jp]
        target[iq + _ONE] += w * source[jp + _ONE]
        target[jp] += w * source[iq]
        target[jp + _ONE] += w * source[iq + _ONE]


@compiled
def quadratic_forms(
    count: int, weight: np.ndarray, straight: np.ndarray, crossed: np.ndarray, vector: np.ndarray
) -> tuple[float, float, float]:
    """``v' W v`` for both right-hand sides, ``vector`` (2 n n') float64: f with f, u with u, f with u.

    Half the work of a product, since nothing is written.
    """
    f_f = u_u = f_u = 0.0
    for k in range(np.uint64(count)):
        w = weight[k]
        ip, jq, iq, jp = straight[k] & _LOW, straight[k] >> _HALF, crossed[k] & _LOW, crossed[k] >> _HALF
        f_f += w * (vector[ip] * vector[jq] + vector[iq] * vector[jp])
        u_u += w * (vector[ip + _ONE] * vector[jq + _ONE] + vector[iq + _ONE] * vector[jp + _ONE])
        along = vector[ip] * vector[jq + _ONE] + vector[jq] * vector[ip + _ONE]
        f_u += w * (along + vector[iq] * vector[jp + _ONE] + vector[jp] * vector[iq + _ONE])
    return 2.0 * f_f, 2.0 * u_u, f_u


@compiled_for_speed
def edge_shares(
    count: int, weight: np.ndarray, straight: np.ndarray, crossed: np.ndarray, vector: np.ndarray, out: np.ndarray
) -> None:
    """What each pair of edges contributes to ``z' W x``, ``vector`` (2 n n') float64 holding x and z; ``out`` like W."""
    for k in range(np.uint64(count)):
        ip, jq, iq, jp = straight[k] & _LOW, straight[k] >> _HALF, crossed[k] & _LOW, crossed[k] >> _HALF
        along = vector[ip] * vector[jq + _ONE] + vector[jq] * vector[ip + _ONE]
        out[k] = weight[k] * (along + vector[iq] * vector[jp + _ONE] + vector[jp] * vector[iq + _ONE])
