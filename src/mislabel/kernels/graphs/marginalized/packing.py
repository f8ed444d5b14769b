"""Lists of graphs end to end in flat arrays: all that a kernel needs of them and that none of its hyperparameters changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mislabel.errors import InvalidGraphError
from mislabel.kernels.graphs.graph import Graph
from mislabel.linalg.contract import FloatArray, IntArray


@dataclass(frozen=True)
class Columns:
    """The attributes that a kernel looks at."""

    nodes: frozenset[str]
    edges: frozenset[str]
    length: str | None = None  # the edge attribute that a Gaussian compares
    start: str | None = None  # the node attribute that says how much each node counts as a start


@dataclass(frozen=True, eq=False)
class Labels:
    """The distinct combinations of some attributes, and which of them each node (or edge) has."""

    values: dict[str, np.ndarray]  # (count) each
    codes: IntArray  # (nodes or edges)
    count: int

    @classmethod
    def among(cls, columns: dict[str, np.ndarray], size: int) -> Labels:
        """Number the distinct rows of ``columns``; without columns all rows are the same."""
        codes = np.zeros(size, dtype=np.int64)
        count = 1
        for values in columns.values():
            distinct, inverse = np.unique(values, return_inverse=True)
            kept, codes = np.unique(codes * len(distinct) + inverse.reshape(-1), return_inverse=True)
            codes, count = codes.reshape(-1), len(kept)
        first = np.zeros(count, dtype=np.int64)
        first[codes[::-1]] = np.arange(size)[::-1]
        return cls({name: values[first] for name, values in columns.items()}, codes, count)

    def of(self, codes: IntArray) -> dict[str, np.ndarray]:
        """The attributes of some of them."""
        return {name: values[codes] for name, values in self.values.items()}


@dataclass(frozen=True, eq=False)
class PackedGraphs:
    """Graphs end to end; the edges of each in ascending order of their length."""

    names: list[str]
    node_start: IntArray  # (graphs + 1)
    edge_start: IntArray  # (graphs + 1)
    degree: FloatArray  # (nodes) sum of the weights; one for a node without edges
    start: FloatArray  # (nodes)
    left: IntArray  # (edges) counted within the graph
    right: IntArray  # (edges)
    weight: FloatArray  # (edges) halved for self-loops, both of whose directions are the same
    length: FloatArray  # (edges) zero if none is compared
    node_labels: Labels
    edge_labels: Labels

    @classmethod
    def pack(cls, graphs: Sequence[Graph], columns: Columns) -> PackedGraphs:
        """Lay the graphs out."""
        node_start, edge_start = (
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            for counts in ([graph.n_nodes for graph in graphs], [graph.n_edges for graph in graphs])
        )
        size = int(node_start[-1])
        edges = np.concatenate([np.zeros((0, 2), np.int64), *(graph.edges for graph in graphs)])
        weight = np.concatenate([np.zeros(0), *(graph.weights for graph in graphs)])
        length = np.zeros(len(edges))
        if columns.length is not None:
            length = _gathered(graphs, "edge", columns.length).astype(float)
        owner = np.repeat(np.arange(len(graphs)), np.diff(edge_start))
        order = np.lexsort((length, owner))
        left, right = edges[order].T
        weight, length, shift = weight[order], length[order], node_start[owner]
        loop = left == right
        degree = np.bincount(left + shift, weight, size)
        degree += np.bincount((right + shift)[~loop], weight[~loop], size)
        node_columns = {name: _gathered(graphs, "node", name) for name in sorted(columns.nodes)}
        edge_columns = {name: _gathered(graphs, "edge", name)[order] for name in sorted(columns.edges)}
        return cls(
            [graph.name for graph in graphs],
            node_start,
            edge_start,
            # A node without edges: the walk stops there at once, whatever its degree is said to be.
            np.where(degree > 0, degree, 1.0),
            np.ones(size) if columns.start is None else _starting_weights(graphs, columns.start),
            left,
            right,
            np.where(loop, 0.5 * weight, weight),
            length,
            Labels.among(node_columns, size),
            Labels.among(edge_columns, len(edges)),
        )

    def within(self, graph: int) -> tuple[slice, slice]:
        """Where the nodes and edges of one graph are."""
        return slice(*self.node_start[graph : graph + 2]), slice(*self.edge_start[graph : graph + 2])


def _starting_weights(graphs: Sequence[Graph], name: str) -> FloatArray:
    weights = _gathered(graphs, "node", name)
    if weights.dtype.kind not in "iuf" or not (weights > 0).all():
        raise InvalidGraphError(f"the starting weights of nodes (attribute {name!r}) must be positive numbers.")
    return np.asarray(weights, dtype=float)


def _gathered(graphs: Sequence[Graph], what: str, name: str) -> np.ndarray:
    """One attribute of all graphs, end to end."""
    columns = []
    for graph in graphs:
        attributes = graph.nodes if what == "node" else graph.edge_labels
        if name not in attributes:
            known = ", ".join(sorted(attributes)) or "none"
            raise InvalidGraphError(f"{graph.name} has no {what} attribute {name!r} (it has: {known}).")
        columns.append(attributes[name])
    joined = np.concatenate(columns) if columns else np.zeros(0)
    return joined.astype(str) if joined.dtype.kind == "O" else joined
