"""Lists of graphs as the flat arrays that the compiled loops work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from mislabel.errors import InvalidGraphError
from mislabel.kernels.graphs.graph import Graph
from mislabel.kernels.graphs.marginalized_loops import GraphArrays
from mislabel.kernels.graphs.solution_loops import ROW
from mislabel.kernels.graphs.vector_loops import CHUNK
from mislabel.linalg.contract import IntArray

#: How many length scales apart two lengths may be before their similarity is taken for zero: it is near 1e-6 there in
#: single precision, below 1e-14 in double.
REACH = {"float32": 5.25, "float64": 8.0}
#: Pairs of edges whose weight is below so many square roots of the tolerance do not take part in the systems that are solved.
LIGHT = 0.4
#: Buckets of length per length scale, and at most in all.
_BUCKETS_PER_SCALE = 8
_MOST_BUCKETS = 4096
_SCALE = np.sqrt(0.5 * np.log2(np.e))  # lengths times this over the length scale: the Gaussian becomes 2^-t^2


@dataclass(frozen=True, eq=False)
class Kinds:
    """The distinct combinations of some attributes, and which of them each node (or edge) has."""

    values: dict[str, np.ndarray]
    codes: IntArray
    count: int


def find_kinds(columns: dict[str, np.ndarray], size: int) -> Kinds:
    """Number the distinct rows of ``columns``; without columns all rows are of one kind."""
    codes = np.zeros(size, dtype=np.int64)
    count = 1
    for values in columns.values():
        distinct, inverse = np.unique(values, return_inverse=True)
        combined = codes * len(distinct) + inverse.reshape(-1)
        kept, codes = np.unique(combined, return_inverse=True)
        codes, count = codes.reshape(-1), len(kept)
    first = np.zeros(count, dtype=np.int64)
    first[codes[::-1]] = np.arange(size)[::-1]
    return Kinds({name: values[first] for name, values in columns.items()}, codes, count)


@dataclass(frozen=True, eq=False)
class PackedGraphs:
    """Graphs end to end, before any hyperparameter is applied."""

    node_start: IntArray
    edge_start: IntArray
    degree: np.ndarray
    start: np.ndarray
    left: IntArray
    right: IntArray
    weight: np.ndarray
    length: np.ndarray
    node_kinds: Kinds
    edge_kinds: Kinds

    @property
    def size(self) -> int:
        """Number of graphs."""
        return self.node_start.size - 1

    @classmethod
    def pack(
        cls,
        graphs: Sequence[Graph],
        node_attributes: frozenset[str],
        length: str | None,
        edge_attributes: frozenset[str],
        start: str | None = None,
    ) -> PackedGraphs:
        """Lay the graphs out; edges of each graph in ascending order of the attribute ``length``.

        The node attribute ``start`` says how much each node counts as a start.
        """
        node_start = np.concatenate([[0], np.cumsum([graph.n_nodes for graph in graphs])]).astype(np.int64)
        edge_start = np.concatenate([[0], np.cumsum([graph.n_edges for graph in graphs])]).astype(np.int64)
        edges = np.concatenate([graph.edges for graph in graphs]) if graphs else np.zeros((0, 2), np.int64)
        weight = np.concatenate([graph.weights for graph in graphs]) if graphs else np.zeros(0)
        owner = np.repeat(np.arange(len(graphs)), np.diff(edge_start))
        lengths = np.zeros(len(edges))
        if length is not None:
            lengths = _gather(graphs, "edge", length).astype(float)
        order = _sorted_within(owner, lengths)
        left, right = edges[order].T
        weight, lengths = weight[order], lengths[order]
        shift = node_start[owner]
        loop = left == right
        degree = np.bincount(left + shift, weight, node_start[-1])
        degree += np.bincount((right + shift)[~loop], weight[~loop], node_start[-1])
        node_columns = {name: _gather(graphs, "node", name) for name in sorted(node_attributes)}
        edge_columns = {name: _gather(graphs, "edge", name)[order] for name in sorted(edge_attributes)}
        return cls(
            node_start,
            edge_start,
            # A node without edges: the walk stops there at once, whatever its degree is said to be.
            np.where(degree > 0, degree, 1.0),
            np.ones(degree.size) if start is None else _starting_weights(graphs, start),
            left,
            right,
            # Both directions of a self-loop are the same.
            np.where(loop, 0.5 * weight, weight),
            lengths,
            find_kinds(node_columns, int(node_start[-1])),
            find_kinds(edge_columns, len(edges)),
        )

    def arrays(self, stopping: float, starting: float, length_scale: float | None, dtype: str) -> GraphArrays:
        """The arrays of the loops for given stopping and starting probabilities and edge length scale."""
        root = np.sqrt(self.degree / (1.0 - stopping))
        owner = np.repeat(np.arange(self.size), np.diff(self.edge_start))
        shift = self.node_start[owner]
        weight = self.weight / (root[self.left + shift] * root[self.right + shift])
        with np.errstate(divide="ignore"):
            log_weight = np.log2(weight)
        low, high, positions = self._windows(length_scale, owner, dtype)
        steps, unit = self._whole_lengths(length_scale, dtype)
        pad = np.zeros(max(CHUNK, 2 * ROW))
        # Offsets into the solutions of a pair count the bytes of two numbers for each pair of nodes.
        most = int(np.diff(self.node_start).max(initial=1))
        pair = 2 * np.dtype(dtype).itemsize
        narrow = pair * most * most < 1 << 16
        first, second = pair * self.left.astype(np.uint64), pair * self.right.astype(np.uint64)
        if narrow:
            ends = first | second << np.uint64(16) | second << np.uint64(32) | first << np.uint64(48)
        else:
            ends = first | second << np.uint64(32)

        def padded(values: np.ndarray, kind: DTypeLike) -> np.ndarray:
            return np.concatenate([values, pad.astype(values.dtype)]).astype(kind)

        return GraphArrays(
            node_start=self.node_start,
            node_kind=self.node_kinds.codes,
            node_root=root.astype(dtype),
            node_begin=(starting * self.start).astype(dtype),
            node_ratio=(starting * self.start / root).astype(dtype),
            edge_start=self.edge_start,
            edge_left=padded(self.left, np.uint32),
            edge_right=padded(self.right, np.uint32),
            edge_ends=padded(ends, np.uint64),
            edge_swapped=padded(second | first << np.uint64(32), np.uint64),
            narrow=narrow,
            edge_weight=padded(weight, dtype),
            edge_log_weight=padded(log_weight, dtype),
            edge_length=padded(steps, steps.dtype),
            length_unit=np.array([unit], dtype=dtype),
            light=np.array([LIGHT], dtype=dtype),
            edge_kind=padded(self.edge_kinds.codes, np.int64),
            window_low=low,
            window_high=high,
            positions=positions,
        )

    def buckets(self, length_scale: float | None, per_scale: int, most: int) -> tuple[float, float, int]:
        """Where buckets of length begin, how wide they are (so many to a length scale, or wider), and how many there are."""
        if length_scale is None or not self.length.size:
            return 0.0, np.inf, 1
        shortest, longest = float(self.length.min()), float(self.length.max())
        width = max(length_scale / per_scale, (longest - shortest) / most, 1e-300)
        return shortest, width, int((longest - shortest) / width) + 1

    def _windows(self, length_scale: float | None, owner: IntArray, dtype: str) -> tuple[IntArray, IntArray, IntArray]:
        """For every edge the buckets its partners lie in, and for every graph where each bucket begins."""
        counts = np.diff(self.edge_start)
        if length_scale is None or not self.length.size:
            low = np.zeros(self.length.size, np.int64)
            positions = np.column_stack([np.zeros_like(counts), counts])
            return low, low + 1, positions
        shortest, width, n_buckets = self.buckets(length_scale, _BUCKETS_PER_SCALE, _MOST_BUCKETS)
        reach = REACH[dtype] * length_scale
        bucket = ((self.length - shortest) / width).astype(np.int64)
        low = np.clip(np.floor((self.length - reach - shortest) / width), 0, n_buckets).astype(np.int64)
        high = np.clip(np.floor((self.length + reach - shortest) / width) + 1, 0, n_buckets).astype(np.int64)
        # positions[g, k]: how many edges of graph g lie in buckets below k.
        filled = np.bincount(owner * n_buckets + bucket, minlength=self.size * n_buckets).astype(np.int32)
        positions = np.zeros((self.size, n_buckets + 1), dtype=np.int32)
        np.cumsum(filled.reshape(self.size, n_buckets), axis=1, out=positions[:, 1:])
        return low, high, positions

    def _whole_lengths(self, length_scale: float | None, dtype: str) -> tuple[np.ndarray, float]:
        """Lengths as integers, as many steps as fit, and the step in units in which the Gaussian is 2^-t^2."""
        integer, most = (np.int32, 2**30) if dtype == "float32" else (np.int64, 2**52)
        if length_scale is None or not self.length.size:
            return np.zeros(self.length.size, integer), 0.0
        shortest = float(self.length.min())
        step = max(float(self.length.max()) - shortest, 1e-300) / most
        return np.round((self.length - shortest) / step).astype(integer), step * _SCALE / length_scale


def _sorted_within(owner: IntArray, lengths: np.ndarray) -> IntArray:
    """The order that sorts by owner, then by length: four times as fast as ``np.lexsort`` for some thousand owners."""
    by_length = np.argsort(lengths)
    # Integers of 16 bits are sorted by counting.
    small = owner.astype(np.min_scalar_type(owner[-1] if owner.size else 0))
    return by_length[np.argsort(small[by_length], kind="stable")]


def _starting_weights(graphs: Sequence[Graph], name: str) -> np.ndarray:
    weights = _gather(graphs, "node", name)
    if weights.dtype.kind not in "iuf" or not (weights > 0).all():
        raise InvalidGraphError(f"the starting weights of nodes (attribute {name!r}) must be positive numbers.")
    return weights.astype(float)


def _gather(graphs: Sequence[Graph], what: str, name: str) -> np.ndarray:
    """One attribute of all graphs, end to end."""
    columns = []
    for graph in graphs:
        attributes = graph.nodes if what == "node" else graph.edge_labels
        if name not in attributes:
            known = ", ".join(sorted(attributes)) or "none"
            raise InvalidGraphError(f"{graph.name} has no {what} attribute {name!r} (it has: {known}).")
        columns.append(attributes[name])
    joined = np.concatenate(columns) if columns else np.zeros(0)
    if joined.dtype.kind == "O":
        joined = joined.astype(str)
    return joined
