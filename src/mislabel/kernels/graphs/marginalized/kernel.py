"""The marginalized graph kernel, under scikit-learn's kernel protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from mislabel.errors import InvalidParameterError
from mislabel.kernels.block_kernel import BlockKernel, Bounds, Parameter, with_itself
from mislabel.kernels.graphs.attribute_kernels import AttributeKernel, Constant
from mislabel.kernels.graphs.graph import Graph
from mislabel.kernels.graphs.marginalized.packing import PackedGraphs
from mislabel.kernels.graphs.marginalized.pairs import PreparedWalk, Walk
from mislabel.linalg.contract import FloatArray

PRECISIONS = ("float32", "float64")


class WalkKernel(BlockKernel):
    """A kernel that is proportional to the square of its starting probability, in either precision."""

    starting_probability: float
    tol: float

    @property
    def scale_power(self) -> float | None:
        """Two where the starting probability is all that is free: the matrix keeps its shape; else None."""
        return 2.0 if [item.name for item in self.parameters() if not item.fixed] == ["starting_probability"] else None

    def precise(self) -> WalkKernel:
        """The same kernel in double precision."""
        kernel: WalkKernel = clone(self).set_params(dtype="float64", tol=min(self.tol, 1e-8))
        return kernel

    def scaled(self, factor: float) -> WalkKernel:
        """This kernel times a number."""
        starting = self.starting_probability * float(np.sqrt(factor))
        kernel: WalkKernel = clone(self).set_params(starting_probability=starting)
        return kernel


class MarginalizedGraphKernel(WalkKernel):
    """Expected similarity of simultaneous random walks on two graphs (Kashima et al. 2003; Tang and de Jong 2019).

    Parameters
    ----------
    node_kernel, edge_kernel : similarities of node and edge attributes, between 0 and 1; None for one everywhere.
    stopping_probability : chance that a walk ends at each step; small values see far.
    starting_probability : weight of every node as a start; the kernel is proportional to its square.
    starting_attribute : name of a node attribute by which that weight is multiplied; None for none.
    tol : relative error of a kernel value.
    dtype : "float32" is fast and good to about 1e-7, "float64" is needed for nuggets below 1e-5 of the diagonal.
    n_jobs : threads; None or -1 for all cores.

    Calling it on lists of :class:`Graph` gives the matrix of similarities; ``nodal=True`` those of all pairs of nodes.
    """

    def __init__(
        self,
        node_kernel: AttributeKernel | None = None,
        edge_kernel: AttributeKernel | None = None,
        stopping_probability: float = 0.01,
        starting_probability: float = 1.0,
        stopping_probability_bounds: Bounds = (1e-4, 0.5),
        starting_probability_bounds: Bounds = (1e-4, 1e4),
        tol: float = 1e-7,
        dtype: str = "float32",
        n_jobs: int | None = None,
        starting_attribute: str | None = None,
    ) -> None:
        self.node_kernel = node_kernel
        self.edge_kernel = edge_kernel
        self.stopping_probability = stopping_probability
        self.starting_probability = starting_probability
        self.stopping_probability_bounds = stopping_probability_bounds
        self.starting_probability_bounds = starting_probability_bounds
        self.tol = tol
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.starting_attribute = starting_attribute

    def parameters(self) -> tuple[Parameter, ...]:
        """Starting and stopping probability, then those of the node and edge kernels."""
        return (
            Parameter("starting_probability", self.starting_probability, self.starting_probability_bounds),
            Parameter("stopping_probability", self.stopping_probability, self.stopping_probability_bounds),
            *self._nodes.parameters(),
            *self._edges.parameters(),
        )

    def with_values(self, values: Sequence[float]) -> MarginalizedGraphKernel:
        """The same kernel with other hyperparameters."""
        queue = iter(values)
        starting, stopping = next(queue), next(queue)
        nodes, edges = self._nodes.with_values(queue), self._edges.with_values(queue)
        settings = self.get_params(deep=False)
        settings.update(
            starting_probability=starting, stopping_probability=stopping, node_kernel=nodes, edge_kernel=edges
        )
        return type(self)(**settings)

    @property
    def _nodes(self) -> AttributeKernel:
        return self.node_kernel if self.node_kernel is not None else Constant(1.0)

    @property
    def _edges(self) -> AttributeKernel:
        return self.edge_kernel if self.edge_kernel is not None else Constant(1.0)

    def prepared(self, X: Sequence[Graph], Y: Sequence[Graph] | None = None) -> PreparedWalk:
        """This kernel on these graphs, laid out for evaluation by blocks."""
        if not 0 < self.stopping_probability < 1:
            raise InvalidParameterError(f"stopping_probability must be in (0, 1), got {self.stopping_probability!r}.")
        if not self.starting_probability > 0:
            raise InvalidParameterError(f"starting_probability must be positive, got {self.starting_probability!r}.")
        if self.dtype not in PRECISIONS:
            raise InvalidParameterError(f"dtype must be 'float32' or 'float64', got {self.dtype!r}.")
        walk = Walk(
            self._nodes,
            self._edges,
            self.stopping_probability,
            self.starting_probability,
            self.tol,
            self.dtype,
            self.starting_attribute,
        )
        left, right = _checked(X), None if Y is None else _checked(Y)
        together, columns = [*left, *(right or [])], walk.columns
        packed = self.memory.recall((columns, len(left)), together, lambda: PackedGraphs.pack(together, columns))
        return PreparedWalk(walk, packed, len(left), None if right is None else len(right))

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False, nodal: bool = False) -> Any:
        """Similarities of all graphs in X with all in Y (or X)."""
        return _nodal_matrix(self.prepared(X, Y)) if nodal else super().__call__(X, Y, eval_gradient)

    def diag(self, X: Any, nodal: bool = False) -> Any:
        """Similarity of every graph with itself; ``nodal=True``: of every node with itself."""
        if not nodal:
            return super().diag(X)
        return np.concatenate([np.diag(block) for block in self.prepared(X).nodal(with_itself(len(X)))])


def _checked(items: Any) -> list[Graph]:
    graphs = list(items)
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Graph):
            raise InvalidParameterError(
                f"item {number} is a {type(graph).__name__}, not a Graph: use Graph.from_ase, from_rdkit, from_smiles or "
                "from_networkx, or MolecularKernel, which takes molecules as they are."
            )
    return graphs


def _nodal_matrix(prepared: PreparedWalk) -> FloatArray:
    rows, columns = prepared.shape
    blocks = prepared.nodal(
        np.array([(i, j) for i in range(rows) for j in range(columns)], dtype=np.int64).reshape(-1, 2)
    )
    return np.block([[blocks[i * columns + j] for j in range(columns)] for i in range(rows)])
