"""The similarity of one pair of graphs by a direct solution: slow, and sure.

For the few pairs that conjugate gradients do not get to converge. With ``root = V^(1/2)`` the system of
:mod:`block_cg_loops` is ``(I - root W root) y = root f`` and ``x = root y``: symmetric, positive definite exactly where walks
die out, and defined for node similarities of zero too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import LinearOperator, cg

from mislabel.linalg.contract import FloatArray, IntArray

#: Up to this many pairs of nodes the matrix is factorised (128 megabytes); beyond, each system is solved by plain conjugate
#: gradients, which keep no matrix and lose nothing to the other system.
MOST_DENSE = 4096
#: Accuracy and number of steps there.
_ACCURACY, _STEPS = 1e-11, 20_000


class NoSolutionError(ArithmeticError):
    """The system has no solution that is a sum over walks; the message says why."""


class OneGraph(NamedTuple):
    """One graph of a pair."""

    left: IntArray  # (edges) the nodes that an edge joins
    right: IntArray  # (edges)
    length: FloatArray  # (edges)
    weight: FloatArray  # (edges) normalised by the roots of both degrees; halved for self-loops
    root: FloatArray  # (nodes) square root of the weighted degree
    ratio: FloatArray  # (nodes) starting probability over root
    node_label: IntArray  # (nodes) what the attribute kernels compare
    edge_label: IntArray  # (edges)


class PairTables(NamedTuple):
    """The attribute kernels on all nodes and edges of two graphs, and their derivatives by the logarithms of parameters."""

    nodes: FloatArray  # (n, n')
    edges: FloatArray  # (edges, edges'), the whole edge kernel
    node_gradient: list[FloatArray]
    edge_gradient: list[FloatArray]


class Solution(NamedTuple):
    """What a pair of graphs gives."""

    value: float
    by_weights: float  # derivative by the size of W
    by_edges: list[float]  # one for each of `edge_gradient`
    by_nodes: list[float]
    nodal: FloatArray  # (n, n') x / f


def solve_directly(first: OneGraph, second: OneGraph, tables: PairTables) -> Solution:
    """Kernel value, derivatives and similarities of nodes of two graphs."""
    source = np.outer(first.root, second.root)
    start = np.outer(first.ratio, second.ratio)
    coupling = _coupled(first, second, tables.edges)
    f, u = source.ravel(), start.ravel()
    if not (np.isfinite(tables.nodes).all() and np.isfinite(coupling.data).all() and np.isfinite([f, u]).all()):
        raise NoSolutionError("a similarity of their nodes or edges is NaN or infinite")
    root = np.sqrt(tables.nodes).ravel()
    x, z = _solved(coupling, root, np.column_stack([root * f, root * u])).T
    if not np.isfinite(u @ x):
        raise NoSolutionError("their similarity is larger than any number")
    # V^-1 x and V^-1 z, also where V is zero.
    inner_x, inner_z = coupling @ x + f, coupling @ z + u
    return Solution(
        float(u @ x),
        float(z @ (coupling @ x)),
        [float(z @ (_coupled(first, second, change) @ x)) for change in tables.edge_gradient],
        [float(np.sum(inner_z * change.ravel() * inner_x)) for change in tables.node_gradient],
        (x / f).reshape(source.shape),
    )


def _coupled(first: OneGraph, second: OneGraph, similar: FloatArray) -> csr_matrix:
    """W, or its derivative: every pair of edges couples its pairs of ends, straight and crossed, in both directions."""
    width = second.root.size
    size = first.root.size * width
    weight = (first.weight[:, None] * second.weight * similar).ravel()
    i, j = (width * ends[:, None] for ends in (first.left, first.right))
    straight, back = (i + second.left).ravel(), (j + second.right).ravel()
    crossed, across = (i + second.right).ravel(), (j + second.left).ravel()
    rows = np.concatenate([straight, back, crossed, across])
    columns = np.concatenate([back, straight, across, crossed])
    return csr_matrix((np.tile(weight, 4), (rows, columns)), shape=(size, size))


def _solved(coupling: csr_matrix, root: FloatArray, sources: FloatArray) -> FloatArray:
    if root.size > MOST_DENSE:
        return np.column_stack([_solved_in_steps(coupling, root, source) for source in sources.T])
    matrix = -(root[:, None] * coupling.toarray() * root)
    matrix.ravel()[:: root.size + 1] += 1.0
    try:
        return np.asarray(root[:, None] * cho_solve(cho_factor(matrix, lower=True, overwrite_a=True), sources))
    except LinAlgError:
        raise NoSolutionError("their walks do not die out: the sum over all walks is infinite") from None


def _solved_in_steps(coupling: csr_matrix, root: FloatArray, source: FloatArray) -> FloatArray:
    system = LinearOperator(coupling.shape, matvec=lambda y: y - root * (coupling @ (root * y)), dtype=float)
    found, steps = cg(system, source, rtol=_ACCURACY, maxiter=_STEPS)
    # Along a direction in which walks grow, conjugate gradients would still find a point where the residual vanishes.
    if steps != 0 or not found @ (system @ found) > 0.0:
        raise NoSolutionError(f"the solution for {root.size} pairs of nodes was not found in {_STEPS} steps")
    return np.asarray(root * found)
