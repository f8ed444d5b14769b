"""Features of nodes whose products guess what walks of more than one node add to the solution of a pair of graphs.

To first order, ``x = V f (1 + c)`` with ``c = W V f / f``: for a pair of nodes, the expected similarity of the steps that two
walkers take from them. As a function of the two nodes that is itself a kernel, of distributions over the lengths and far ends
of edges. A few principal components of it, found on some of the nodes, say most of what there is to say. They only serve as a
first guess: what they miss is left to the solver.
"""

from __future__ import annotations

import numpy as np

from mislabel._common.spreading import evenly_spread
from mislabel.kernels.graphs.first_guess_loops import Steps, histograms, sums_over_steps
from mislabel.kernels.graphs.packing import PackedGraphs
from mislabel.kernels.graphs.slot_loops import FEATURES
from mislabel.linalg.contract import FloatArray

#: Points of the grid of lengths per length scale, at most in all, and at most of lengths and kinds together.
_POINTS_PER_SCALE = 2.0
_MOST_LENGTHS, _MOST_POINTS = 1 << 11, 1 << 14
#: Nodes that the components are found on at most, and numbers that describe them.
_MOST_NODES, _MOST_NUMBERS = 1 << 10, 1 << 20
#: Components beyond those wanted, and rounds in which they are found.
_SPARE, _ROUNDS = 8, 2


def features_of_surroundings(
    packed: PackedGraphs, similar: FloatArray, stopping: float, length_scale: float
) -> np.ndarray:
    """(nodes, 2, FEATURES) for the right-hand sides f and u, given the node similarities of all kinds in single precision."""
    root = np.sqrt(packed.degree / (1.0 - stopping))
    features = np.zeros((root.size, 2, FEATURES), np.float32)
    n_kinds = packed.node_kinds.count
    grid = _grid(packed.length, length_scale)
    if not 0 < grid.size * n_kinds <= _MOST_POINTS:
        return features
    shift = np.repeat(packed.node_start[:-1], np.diff(packed.edge_start))
    left, right = packed.left + shift, packed.right + shift
    steps = Steps(
        left,
        right,
        packed.weight / (root[left] * root[right]),
        (packed.length - grid[0]) * (_POINTS_PER_SCALE / length_scale),
        packed.node_kinds.codes,
        np.stack([root, packed.start / root], axis=1),
    )
    some = evenly_spread(root.size, min(_MOST_NODES, _MOST_NUMBERS // (grid.size * n_kinds)))
    row_of = np.full(root.size, -1)
    row_of[some] = np.arange(some.size)
    samples = np.zeros((2, some.size, grid.size, n_kinds), np.float32)
    histograms(steps, row_of, samples)
    alike = np.exp(-0.5 * ((grid[:, None] - grid) / length_scale) ** 2).astype(np.float32)
    components = np.stack([_components(one, alike, similar) for one in samples])
    sums_over_steps(steps, components, features)
    return features


def _components(samples: np.ndarray, alike: np.ndarray, similar: np.ndarray) -> np.ndarray:
    """Principal components (lengths, kinds, FEATURES) of distributions (samples, lengths, kinds), similarities being given."""
    count, lengths, n_kinds = samples.shape
    rows = samples.reshape(count, -1)

    def images(of: np.ndarray) -> np.ndarray:
        return np.reshape(similar @ (alike @ of.reshape(lengths, -1)).reshape(lengths, n_kinds, -1), of.shape)

    # A few rounds of subspace iteration, with NumPy's products alone: SciPy has threads of its own, which would wait for these.
    basis = np.random.default_rng(0).standard_normal((count, min(count, FEATURES + _SPARE)), np.float32)
    for _ in range(_ROUNDS):
        basis, _ = np.linalg.qr(rows @ images(rows.T @ basis))
    reached = images(rows.T @ basis)
    values, vectors = np.linalg.eigh(basis.T @ (rows @ reached))
    kept = np.flatnonzero(values > 1e-5 * max(values[-1], 1e-300))[-FEATURES:]
    found = np.zeros((lengths * n_kinds, FEATURES), np.float32)
    found[:, : kept.size] = reached @ (vectors[:, kept] / np.sqrt(values[kept]))
    return found.reshape(lengths, n_kinds, FEATURES)


def _grid(length: FloatArray, length_scale: float) -> FloatArray:
    """Points that the lengths lie between; none where they would be too many."""
    count = int(np.ceil(np.ptp(length) / length_scale * _POINTS_PER_SCALE)) + 2 if length.size else 0
    return (
        length.min() + length_scale / _POINTS_PER_SCALE * np.arange(count)
        if 0 < count <= _MOST_LENGTHS
        else np.zeros(0)
    )
