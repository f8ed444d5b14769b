"""Kernel values of many pairs of graphs: tables of similarities, blocks of pairs, threads."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mislabel.errors import SingularPairError
from mislabel.kernels.graphs.direct_solution import NoSolutionError, OneGraph, PairTables, Solution, solve_directly
from mislabel.kernels.graphs.graph import Graph
from mislabel.kernels.graphs.marginalized_loops import GraphArrays, Similarity, pair_values
from mislabel.kernels.graphs.packing import Kinds, PackedGraphs
from mislabel.kernels.graphs.pieces import Attributes, Piece, SquaredExponential, split_gaussian
from mislabel.kernels.graphs.slot_values import CAN_REORDER, TOO_LARGE, SlotValues
from mislabel.linalg.contract import FloatArray, IntArray

#: Up to this many kinds of nodes or edges, one table serves all graphs; beyond, each block of pairs gets its own.
MAX_KINDS = 300
#: Entries that a table of a block may have.
_TABLE_ENTRIES = 1 << 20
#: Steps after which a pair is given up in double precision and solved directly: what the two systems of a pair take from each
#: other spoils both where they do not end soon.
MAX_STEPS = 400
#: Steps after which a pair is given up in single precision and done in double.
SINGLE_STEPS = 8
#: Accuracy of derivatives in single precision: by how much residuals must fall. First guesses by slots are ten times better.
SINGLE_SLOPES = 1e-5
SLOT_SLOPES = 1e-4


@dataclass(frozen=True)
class Walk:
    """Everything that defines a marginalized graph kernel."""

    node_kernel: Piece
    edge_kernel: Piece
    stopping: float
    starting: float
    tol: float
    dtype: str
    start: str | None = None  # node attribute that multiplies the starting probability


class PairEngine:
    """Evaluates one kernel on the pairs of one list of graphs (or of two)."""

    def __init__(self, walk: Walk, left: Sequence[Graph], right: Sequence[Graph] | None = None) -> None:
        self.walk = walk
        self.gaussian, self.rest = split_gaussian(walk.edge_kernel)
        self.symmetric = right is None
        together = list(left) if right is None else [*left, *right]
        self.shape = (len(left), len(left if right is None else right))
        self._offset = 0 if right is None else len(left)
        self.packed = PackedGraphs.pack(
            together,
            walk.node_kernel.attributes(),
            self.gaussian.attribute if self.gaussian else None,
            self.rest.attributes() if self.rest is not None else frozenset(),
            walk.start,
        )
        self.arrays = self._lay_out(walk)
        self._tables: dict[tuple[str, bool], tuple[FloatArray, FloatArray]] = {}
        self._slots = self._lay_out_slots()
        self._double: PairEngine | None = None
        self._names = [graph.name for graph in together]

    def _lay_out(self, walk: Walk) -> GraphArrays:
        scale = self.gaussian.length_scale if self.gaussian else None
        return self.packed.arrays(walk.stopping, walk.starting, scale, walk.dtype)

    def values(self, pairs: IntArray) -> FloatArray:
        """Kernel values of pairs (row, column)."""
        return self._run(pairs, slopes=False)[0]

    def values_and_slopes(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same with derivatives by the logarithm of: starting, stopping probability, node and edge parameters."""
        values, raw = self._run(pairs, slopes=True)
        walk = self.walk
        n_node = len(walk.node_kernel.parameters())
        slopes = [2.0 * values, -2.0 * walk.stopping / (1.0 - walk.stopping) * raw[:, 0]]
        slopes += [raw[:, 2 + k] for k in range(n_node)]
        slopes += _in_order(walk.edge_kernel, self.gaussian, raw[:, 1], raw[:, 2 + n_node :])
        return values, np.column_stack(slopes)

    def nodal(self, pairs: IntArray) -> list[FloatArray]:
        """Similarities of all pairs of nodes, one matrix for each pair of graphs."""
        if self.walk.dtype == "float32":
            return self._in_double().nodal(pairs)
        counts = np.diff(self.packed.node_start)
        shapes = [(counts[i], counts[j + self._offset]) for i, j in pairs]
        found = np.empty(sum(int(rows * columns) for rows, columns in shapes), dtype=self.walk.dtype)
        self._call(pairs, np.empty(len(pairs)), np.empty((0, 0)), found, False)
        ends = np.cumsum([rows * columns for rows, columns in shapes])
        return [
            found[end - rows * columns : end].reshape(rows, columns)
            for end, (rows, columns) in zip(ends, shapes, strict=True)
        ]

    def _lay_out_slots(self) -> SlotValues | None:
        """The same graphs for the fastest loops, where there are such."""
        walk, packed = self.walk, self.packed
        few = packed.node_kinds.count <= MAX_KINDS
        if not (CAN_REORDER and few and walk.dtype == "float32") or self.rest is not None or self.gaussian is None:
            return None
        similar, _ = self._table_of_all("node", walk.node_kernel, packed.node_kinds, False)
        return SlotValues.of(packed, self.arrays, similar, walk.stopping, self.gaussian.length_scale)

    def _shifted(self, pairs: IntArray) -> IntArray:
        """Pairs with columns counted among all graphs."""
        return np.asarray(pairs + np.array([0, self._offset]))

    def _run(self, pairs: IntArray, *, slopes: bool) -> tuple[FloatArray, FloatArray]:
        """Values and raw derivatives: by slots where that can be done, else edge by edge."""
        if self._slots is None:
            return self._run_by_edges(pairs, slopes)
        tables = self._table_of_all("node", self.walk.node_kernel, self.packed.node_kinds, slopes)
        accuracy = self.walk.tol, SLOT_SLOPES, SINGLE_STEPS
        values, raw, steps = self._slots.evaluate(self._shifted(pairs), *tables, accuracy, slopes)
        for which, run in (
            (steps == TOO_LARGE, self._run_by_edges),
            ((steps < 0) & (steps != TOO_LARGE), lambda pairs, slopes: self._in_double()._run(pairs, slopes=slopes)),
        ):
            if which.any():
                values[which], some = run(pairs[which], slopes)
                if slopes:
                    raw[which] = some
        return values, raw

    def _run_by_edges(self, pairs: IntArray, slopes: bool) -> tuple[FloatArray, FloatArray]:
        values = np.empty(len(pairs))
        n_rest = len(self.rest.parameters()) if self.rest is not None else 0
        raw = np.empty((len(pairs), 2 + len(self.walk.node_kernel.parameters()) + n_rest) if slopes else (0, 0))
        for part in self._parts(pairs):
            self._call(pairs[part], values[part], raw[part] if slopes else raw, np.empty(0, self.walk.dtype), slopes)
        return values, raw

    def _parts(self, pairs: IntArray) -> list[slice]:
        """Split the pairs so that the tables of a part stay small; one part where a single table serves all."""
        count = len(pairs)
        if self.packed.node_kinds.count <= MAX_KINDS and self.packed.edge_kinds.count <= MAX_KINDS:
            return [slice(0, count)]
        edges, nodes = np.diff(self.packed.edge_start), np.diff(self.packed.node_start)
        largest = max(int(edges.max(initial=1)), int(nodes.max(initial=1)), 1)
        step = max(1, int(np.sqrt(_TABLE_ENTRIES) / largest))
        return [slice(start, min(start + step, count)) for start in range(0, count, step)]

    def _call(
        self, pairs: IntArray, values: FloatArray, slopes: FloatArray, nodal: np.ndarray, with_slopes: bool
    ) -> None:
        rows, columns = pairs[:, 0], pairs[:, 1] + self._offset
        left, right = self.arrays, self.arrays
        packed = self.packed
        node, left, right = self._tabulate(
            "node", self.walk.node_kernel, packed.node_kinds, packed.node_start, rows, columns, left, right, with_slopes
        )
        edge, left, right = self._tabulate(
            "edge", self.rest, packed.edge_kinds, packed.edge_start, rows, columns, left, right, with_slopes
        )
        similarity = Similarity(node[0], edge[0], self.rest is not None, node[1], edge[1])
        shifted = np.ascontiguousarray(np.column_stack([rows, columns]))
        steps = np.empty(len(pairs), dtype=np.int64)
        single = self.walk.dtype == "float32"
        most = SINGLE_STEPS if single else MAX_STEPS
        linear = SINGLE_SLOPES if single else self.walk.tol
        pair_values(left, right, shifted, similarity, self.walk.tol, linear, most, values, steps, slopes, nodal)
        if with_slopes:  # nodes so different that their similarity is zero
            steps[~np.isfinite(slopes).all(axis=1)] = -1
        if single and (steps < 0).any():
            # Nearly equal graphs make nearly singular systems, which single precision spoils: few pairs, done in double.
            hard = np.flatnonzero(steps < 0)
            doubled = self._in_double()
            if with_slopes:
                values[hard], slopes[hard] = doubled._run(pairs[hard], slopes=True)
            else:
                values[hard] = doubled.values(pairs[hard])
            return
        self._solve_hard(shifted, np.flatnonzero(steps < 0), values, slopes, nodal)

    def _solve_hard(
        self, shifted: IntArray, hard: IntArray, values: FloatArray, slopes: FloatArray, nodal: np.ndarray
    ) -> None:
        """Solve pairs directly that did not converge, and put what they give where it belongs."""
        counts = np.diff(self.packed.node_start)
        ends = np.cumsum(counts[shifted[:, 0]] * counts[shifted[:, 1]])
        for number in hard:
            found = self._directly(int(shifted[number, 0]), int(shifted[number, 1]), len(slopes) > 0)
            values[number] = found.value
            if len(slopes):
                slopes[number] = found.slopes
            if len(nodal):
                nodal[ends[number] - found.nodal.size : ends[number]] = found.nodal.ravel()

    def _directly(self, first: int, second: int, with_slopes: bool) -> Solution:
        """One pair by a direct solution; derivatives are in the order of the loops."""
        one, two = (self._one_graph(graph) for graph in (first, second))
        node, node_slopes = self._table_of_pair(self.walk.node_kernel, "node", first, second, with_slopes)
        edge, edge_slopes = np.ones((one.left.size, two.left.size)), list[FloatArray]()
        if self.rest is not None:
            edge, edge_slopes = self._table_of_pair(self.rest, "edge", first, second, with_slopes)
        by_length = np.zeros_like(edge)
        if self.gaussian is not None:
            lengths = [self.packed.length[slice(*self.packed.edge_start[g : g + 2])] for g in (first, second)]
            squared = ((lengths[0][:, None] - lengths[1]) / self.gaussian.length_scale) ** 2
            gaussian = np.exp(-0.5 * squared)
            edge, by_length, edge_slopes = (
                edge * gaussian,
                edge * gaussian * squared,
                [s * gaussian for s in edge_slopes],
            )
        tables = PairTables(node, edge, node_slopes, [by_length, *edge_slopes] if with_slopes else [])
        try:
            found = solve_directly(one, two, tables)
        except NoSolutionError as error:
            raise self._no_similarity(first, second, str(error)) from None
        if not np.isfinite(found.value):
            raise self._no_similarity(first, second, "their similarity is larger than any number")
        n_edge = len(tables.edge_slopes)
        order = [0, 1, *range(1 + n_edge, len(found.slopes)), *range(2, 1 + n_edge)] if with_slopes else []
        return found._replace(slopes=found.slopes[order])

    def _one_graph(self, graph: int) -> OneGraph:
        packed, walk = self.packed, self.walk
        nodes, edges = (slice(*starts[graph : graph + 2]) for starts in (packed.node_start, packed.edge_start))
        root = np.sqrt(packed.degree[nodes] / (1.0 - walk.stopping))
        left, right = packed.left[edges], packed.right[edges]
        weight = packed.weight[edges] / (root[left] * root[right])
        return OneGraph(root, walk.starting * packed.start[nodes], left, right, weight)

    def _table_of_pair(
        self, piece: Piece, what: str, first: int, second: int, with_slopes: bool
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Similarities of all nodes (or edges) of two graphs, in double precision, and their derivatives."""
        kinds, starts = getattr(self.packed, f"{what}_kinds"), getattr(self.packed, f"{what}_start")
        codes = [kinds.codes[slice(*starts[graph : graph + 2])] for graph in (first, second)]
        values = [{name: column[code] for name, column in kinds.values.items()} for code in codes]
        table, slopes = _table(piece, (values[0], values[1]), (codes[0].size, codes[1].size), with_slopes, "float64")
        return table, list(slopes) if with_slopes else []

    def _no_similarity(self, first: int, second: int, why: str) -> SingularPairError:
        walk = self.walk
        settings = [f"stopping_probability={walk.stopping:g}", f"starting_probability={walk.starting:g}"]
        settings += [
            f"{item.name}={item.value:g}"
            for piece in (walk.node_kernel, walk.edge_kernel)
            for item in piece.parameters()
        ]
        return SingularPairError(
            f"graph {first} ({self._names[first]}) and graph {second - self._offset} ({self._names[second]}) have no similarity "
            f"under this kernel ({', '.join(settings)}): "
            f"{why}. Raise stopping_probability, or lower the similarities of nodes and edges to at most one."
        )

    def _in_double(self) -> PairEngine:
        """The same engine in double precision, made when it is first needed."""
        if self._double is None:
            engine = copy(self)
            engine.walk = replace(self.walk, dtype="float64", tol=min(self.walk.tol, 1e-9))
            engine.arrays = self._lay_out(engine.walk)
            engine._tables = {}
            engine._slots = None
            self._double = engine
        return self._double

    def _table_of_all(self, what: str, piece: Piece, kinds: Kinds, with_slopes: bool) -> tuple[FloatArray, FloatArray]:
        """Similarities of all kinds that there are."""
        key = (what, with_slopes)
        if key not in self._tables:
            self._tables[key] = _table(
                piece, (kinds.values, kinds.values), (kinds.count, kinds.count), with_slopes, self.walk.dtype
            )
        return self._tables[key]

    def _tabulate(
        self,
        what: str,
        piece: Piece | None,
        kinds: Kinds,
        starts: IntArray,
        rows: IntArray,
        columns: IntArray,
        left: GraphArrays,
        right: GraphArrays,
        with_slopes: bool,
    ) -> tuple[tuple[FloatArray, FloatArray], GraphArrays, GraphArrays]:
        """Similarities by kind, of all kinds where they are few, else of those that occur in these pairs."""
        dtype = self.walk.dtype
        if piece is None:
            return (np.ones((1, 1), dtype), np.empty((0, 1, 1))), left, right
        if kinds.count <= MAX_KINDS:
            return self._table_of_all(what, piece, kinds, with_slopes), left, right
        field = f"{what}_kind"
        local = []
        for graphs, arrays in ((rows, left), (columns, right)):
            codes = kinds.codes
            used = np.concatenate([np.arange(starts[g], starts[g + 1]) for g in np.unique(graphs)])
            present, inverse = np.unique(codes[used], return_inverse=True)
            renumbered = np.zeros(getattr(arrays, field).size, dtype=np.int64)
            renumbered[used] = inverse
            changed: dict[str, Any] = {field: renumbered}
            local.append((present, arrays._replace(**changed)))
        (first, left), (second, right) = local
        values = [{name: column[which] for name, column in kinds.values.items()} for which in (first, second)]
        return _table(piece, (values[0], values[1]), (first.size, second.size), with_slopes, dtype), left, right


def _table(
    piece: Piece, sides: tuple[Attributes, Attributes], shape: tuple[int, int], with_slopes: bool, dtype: str
) -> tuple[FloatArray, FloatArray]:
    table = np.broadcast_to(piece.table(*sides), shape).astype(dtype)
    if not with_slopes:
        return table, np.empty((0, 1, 1))
    slopes = [np.broadcast_to(slope, shape) for slope in piece.slopes(*sides)]
    return table, np.array(slopes, dtype=float).reshape(-1, *shape)


def _in_order(
    piece: Piece, gaussian: SquaredExponential | None, by_length: FloatArray, rest: FloatArray
) -> list[FloatArray]:
    """Derivatives by the edge parameters in the kernel's own order, the Gaussian put back where it was."""
    if gaussian is None:
        return list(rest.T)
    columns: list[FloatArray] = []
    used = 0
    placed = False
    for part in getattr(piece, "pieces", (piece,)):
        if part is gaussian and not placed:
            columns.append(by_length)
            placed = True
        else:
            count = len(part.parameters())
            columns += list(rest[:, used : used + count].T)
            used += count
    return columns
