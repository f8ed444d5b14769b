"""One walk on given graphs, ready to evaluate any of their pairs: what hyperparameters change of them, and tables of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mislabel.errors import SingularPairError
from mislabel.kernels.graphs.attribute_kernels import AttributeKernel, SquaredExponential, TensorProduct, split_gaussian
from mislabel.kernels.graphs.marginalized.block_cg_loops import Accuracy
from mislabel.kernels.graphs.marginalized.direct_solution import (
    NoSolutionError,
    OneGraph,
    PairTables,
    Solution,
    solve_directly,
)
from mislabel.kernels.graphs.marginalized.packing import Columns, Labels, PackedGraphs
from mislabel.kernels.graphs.marginalized.pair_loops import Gaussian, Results, evaluate_pairs
from mislabel.kernels.graphs.marginalized.product_loops import SQUARINGS, GraphArrays, LabelTables
from mislabel.linalg.contract import FloatArray, IntArray

#: Up to this many distinct labels of nodes or edges, one table serves all graphs; beyond, each block of pairs gets its own.
MOST_LABELS = 300
#: Entries that a table of a block may have.
_TABLE_ENTRIES = 1 << 20
#: Products with W after which a pair is given up and solved directly: what the two systems of a pair take from each other
#: spoils both where they do not end soon.
MOST_STEPS = 400
#: How many length scales apart two lengths may be before their similarity, 2e-6 or 1e-14, is taken for zero.
REACH = {"float32": 5.1, "float64": 8.0}
#: By how much residuals must fall for derivatives that are good to single precision.
_SINGLE_RESIDUAL = 1e-5


@dataclass(frozen=True)
class Walk:
    """Everything that defines a marginalized graph kernel."""

    node_kernel: AttributeKernel
    edge_kernel: AttributeKernel
    stopping: float
    starting: float
    tol: float
    dtype: str
    start: str | None = None  # node attribute that multiplies the starting probability

    @property
    def parts(self) -> tuple[SquaredExponential | None, AttributeKernel | None]:
        """The edge kernel as a Gaussian of lengths times the rest."""
        return split_gaussian(self.edge_kernel)

    @property
    def columns(self) -> Columns:
        """The attributes that it looks at."""
        gaussian, rest = self.parts
        return Columns(
            self.node_kernel.attributes(),
            frozenset() if rest is None else rest.attributes(),
            None if gaussian is None else gaussian.attribute,
            self.start,
        )


class PreparedWalk:
    """One walk on the pairs of one list of graphs, or of two."""

    def __init__(self, walk: Walk, packed: PackedGraphs, n_rows: int, n_columns: int | None = None) -> None:
        """``packed`` are ``n_rows`` graphs and ``n_columns`` more, if these are others."""
        self.walk, self.packed = walk, packed
        self.symmetric = n_columns is None
        self.shape = (n_rows, n_rows if n_columns is None else n_columns)
        self._offset = 0 if n_columns is None else n_rows
        gaussian, self._rest = walk.parts
        scale = np.inf if gaussian is None else gaussian.length_scale
        self._scale = scale
        self._gaussian = Gaussian(REACH[walk.dtype] * scale, np.sqrt(0.5 / 2.0**SQUARINGS) / scale)
        self._graphs = _graph_arrays(packed, walk)
        self._tables: dict[bool, LabelTables] = {}

    def values(self, pairs: IntArray) -> FloatArray:
        """Kernel values of pairs (row, column)."""
        return self._evaluate(pairs, Accuracy(self.walk.tol, 0.0, MOST_STEPS)).values

    def values_and_gradients(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same with derivatives by the logarithm of: starting, stopping probability, node and edge parameters."""
        walk = self.walk
        residual = _SINGLE_RESIDUAL if walk.dtype == "float32" else walk.tol
        found = self._evaluate(pairs, Accuracy(walk.tol, residual, MOST_STEPS), gradient=True)
        by_weights, by_length = found.gradient[:, 0], found.gradient[:, 1]
        by_nodes, by_rest = np.split(found.gradient[:, 2:], [len(walk.node_kernel.parameters())], axis=1)
        columns = [2.0 * found.values, -2.0 * walk.stopping / (1.0 - walk.stopping) * by_weights, *by_nodes.T]
        return found.values, np.column_stack([*columns, *_in_order(walk.edge_kernel, by_length, by_rest)])

    def nodal(self, pairs: IntArray) -> list[FloatArray]:
        """Similarities of all pairs of nodes, one matrix for each pair of graphs."""
        counts = np.diff(self.packed.node_start)
        shapes = [(int(counts[i]), int(counts[j + self._offset])) for i, j in pairs]
        found = self._evaluate(pairs, Accuracy(self.walk.tol, self.walk.tol, MOST_STEPS), nodal=True).nodal
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(found, ends), shapes, strict=True)]

    def _evaluate(self, pairs: IntArray, accuracy: Accuracy, *, gradient: bool = False, nodal: bool = False) -> Results:
        """Evaluate pairs, in parts whose tables of labels stay small."""
        pairs = np.ascontiguousarray(pairs + np.array([0, self._offset]))
        n_parameters = 2 + len(self.walk.node_kernel.parameters()) + (len(self._rest.parameters()) if self._rest else 0)
        counts = np.diff(self.packed.node_start)
        starts = np.concatenate([[0], np.cumsum(counts[pairs[:, 0]] * counts[pairs[:, 1]])]) if nodal else None
        results = Results(
            np.empty(len(pairs)),
            np.empty(len(pairs), np.int64),
            np.empty((len(pairs), n_parameters) if gradient else (0, 0)),
            np.empty(0 if starts is None else int(starts[-1])),
        )
        for part in self._parts(len(pairs)):
            some = Results(
                results.values[part],
                results.steps[part],
                results.gradient[part],
                results.nodal if starts is None else results.nodal[starts[part.start] : starts[part.stop]],
            )
            tables = self._label_tables(pairs[part], gradient)
            evaluate_pairs(self._graphs, tables, self._gaussian, pairs[part], accuracy, some)
        failed = results.steps < 0
        if gradient:
            failed |= ~np.isfinite(results.gradient).all(axis=1)
        for number in np.flatnonzero(failed):
            found = self._solve_directly(int(pairs[number, 0]), int(pairs[number, 1]), gradient)
            results.values[number] = found.value
            if gradient:
                by_length, *by_rest = found.by_edges
                results.gradient[number] = [found.by_weights, by_length, *found.by_nodes, *by_rest]
            if starts is not None:
                results.nodal[starts[number] : starts[number + 1]] = found.nodal.ravel()
        return results

    def _parts(self, count: int) -> list[slice]:
        """One part where a single table serves all pairs."""
        packed = self.packed
        if max(packed.node_labels.count, packed.edge_labels.count) <= MOST_LABELS:
            return [slice(0, count)]
        largest = max(int(np.diff(starts).max(initial=1)) for starts in (packed.node_start, packed.edge_start))
        step = max(1, int(np.sqrt(_TABLE_ENTRIES) / largest))
        return [slice(start, min(start + step, count)) for start in range(0, count, step)]

    def _label_tables(self, pairs: IntArray, gradient: bool) -> LabelTables:
        """Attribute kernels of all labels where they are few, else of those that occur in these pairs."""
        known = self._tables.get(gradient)
        if known is not None:
            return known
        packed = self.packed
        nodes = _tabulated(self.walk.node_kernel, packed.node_labels, packed.node_start, pairs, gradient)
        edges = _tabulated(self._rest, packed.edge_labels, packed.edge_start, pairs, gradient)
        tables = LabelTables(*nodes, *edges, self._rest is None)
        if max(packed.node_labels.count, packed.edge_labels.count) <= MOST_LABELS:
            self._tables[gradient] = tables
        return tables

    def _solve_directly(self, first: int, second: int, gradient: bool) -> Solution:
        """One pair by a direct solution."""
        one, two = self._one_graph(first), self._one_graph(second)
        packed = self.packed
        nodes, by_nodes = _table(self.walk.node_kernel, packed.node_labels, one.node_label, two.node_label, gradient)
        edges, by_edges = _table(self._rest, packed.edge_labels, one.edge_label, two.edge_label, gradient)
        squared = ((one.length[:, None] - two.length) / self._scale) ** 2
        alike = np.exp(-0.5 * squared)
        changes = [edges * alike * squared, *(change * alike for change in by_edges)] if gradient else []
        try:
            return solve_directly(one, two, PairTables(nodes, edges * alike, list(by_nodes), changes))
        except NoSolutionError as error:
            raise self._no_similarity(first, second, str(error)) from None

    def _one_graph(self, graph: int) -> OneGraph:
        arrays, packed = self._graphs, self.packed
        nodes, edges = packed.within(graph)
        return OneGraph(
            left=packed.left[edges],
            right=packed.right[edges],
            length=packed.length[edges],
            weight=arrays.weight[edges],
            root=arrays.root[nodes],
            ratio=arrays.ratio[nodes],
            node_label=packed.node_labels.codes[nodes],
            edge_label=packed.edge_labels.codes[edges],
        )

    def _no_similarity(self, first: int, second: int, why: str) -> SingularPairError:
        walk, names = self.walk, self.packed.names
        settings = [f"stopping_probability={walk.stopping:g}", f"starting_probability={walk.starting:g}"]
        for kernel in (walk.node_kernel, walk.edge_kernel):
            settings += [f"{item.name}={item.value:g}" for item in kernel.parameters()]
        return SingularPairError(
            f"graph {first} ({names[first]}) and graph {second - self._offset} ({names[second]}) have no similarity "
            f"under this kernel ({', '.join(settings)}): "
            f"{why}. Raise stopping_probability, or lower the similarities of nodes and edges to at most one."
        )


def _graph_arrays(packed: PackedGraphs, walk: Walk) -> GraphArrays:
    """What the loops look at, under given stopping and starting probabilities."""
    root = np.sqrt(packed.degree / (1.0 - walk.stopping))
    shift = np.repeat(packed.node_start[:-1], np.diff(packed.edge_start))
    left, right = 2 * packed.left.astype(np.uint64), 2 * packed.right.astype(np.uint64)
    half = np.uint64(32)
    return GraphArrays(
        node_start=packed.node_start,
        edge_start=packed.edge_start,
        ends=left | right << half,
        swapped=right | left << half,
        length=packed.length,
        weight=packed.weight / (root[packed.left + shift] * root[packed.right + shift]),
        root=root,
        ratio=walk.starting * packed.start / root,
    )


def _tabulated(
    kernel: AttributeKernel | None, labels: Labels, starts: IntArray, pairs: IntArray, gradient: bool
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Row and column of every node (or edge) in a table of the kernel, the table, and its derivatives."""
    if kernel is None:
        return labels.codes, labels.codes, np.ones((1, 1)), np.empty((0, 1, 1))
    if labels.count <= MOST_LABELS:
        every = np.arange(labels.count)
        return labels.codes, labels.codes, *_table(kernel, labels, every, every, gradient)
    places, present = [], []
    for graphs in pairs.T:
        used = np.concatenate([np.arange(starts[graph], starts[graph + 1]) for graph in np.unique(graphs)])
        codes, inverse = np.unique(labels.codes[used], return_inverse=True)
        place = np.zeros(labels.codes.size, dtype=np.int64)
        place[used] = inverse
        places.append(place)
        present.append(codes)
    return places[0], places[1], *_table(kernel, labels, present[0], present[1], gradient)


def _table(
    kernel: AttributeKernel | None, labels: Labels, rows: IntArray, columns: IntArray, gradient: bool
) -> tuple[FloatArray, FloatArray]:
    """The kernel between the labels ``rows`` and ``columns``, and its derivatives (parameters, rows, columns), if wanted."""
    shape = (rows.size, columns.size)
    if kernel is None:
        return np.ones(shape), np.empty((0, *shape))
    left, right = labels.of(rows), labels.of(columns)
    table = np.array(np.broadcast_to(kernel.table(left, right), shape), dtype=float)
    changes = [np.broadcast_to(change, shape) for change in kernel.gradients(left, right)] if gradient else []
    return table, np.array(changes, dtype=float).reshape(-1, *shape)


def _in_order(kernel: AttributeKernel, by_length: FloatArray, by_rest: FloatArray) -> list[FloatArray]:
    """Derivatives by the edge parameters in the kernel's own order, the Gaussian put back where it was."""
    gaussian, _ = split_gaussian(kernel)
    if gaussian is None:
        return list(by_rest.T)
    factors = kernel.factors if isinstance(kernel, TensorProduct) else (kernel,)
    position = next(number for number, factor in enumerate(factors) if factor is gaussian)
    before = sum(len(factor.parameters()) for factor in factors[:position])
    columns = list(by_rest.T)
    return [*columns[:before], by_length, *columns[before:]]
