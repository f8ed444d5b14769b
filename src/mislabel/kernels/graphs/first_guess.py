"""Features of nodes whose products guess what walks of more than one node add to the solution of a pair of graphs.

To first order, ``x = V f (1 + c)`` with ``c = W V f / f``: for a pair of nodes, the expected similarity of the steps that two
walkers take from them. As a function of the two nodes that is itself a kernel, of distributions over the lengths and far ends
of edges. A few principal components of it, found on some of the nodes, say most of what there is to say. They only serve as a
first guess: what they miss is left to the solver.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from mislabel.kernels.graphs.packing import PackedGraphs
from mislabel.kernels.graphs.slot_loops import FEATURES
from mislabel.linalg.contract import FloatArray
from mislabel.spreading import evenly_spread

#: Nodes that the components are found on, points of the grid of lengths per length scale, at most in all, and at most of
#: lengths and kinds together.
_NODES = 128
_POINTS_PER_SCALE = 2.0
_MOST_LENGTHS, _MOST_POINTS = 1 << 11, 1 << 14


def features_of_surroundings(
    packed: PackedGraphs, similar: FloatArray, stopping: float, length_scale: float
) -> np.ndarray:
    """(nodes, 2, FEATURES) for the right-hand sides f and u, given the node similarities of all kinds."""
    root = np.sqrt(packed.degree / (1.0 - stopping))
    features = np.zeros((packed.degree.size, 2, FEATURES), np.float32)
    n_kinds = packed.node_kinds.count
    grid = _grid(packed.length, length_scale)
    if not 0 < grid.size * n_kinds <= _MOST_POINTS:
        return features
    shift = np.repeat(packed.node_start[:-1], np.diff(packed.edge_start))
    left, right = packed.left + shift, packed.right + shift
    start, end = np.concatenate([left, right]), np.concatenate([right, left])
    share = np.tile(packed.weight / (root[left] * root[right]), 2)
    # Each step is split between the two points of the grid next to its length.
    place = np.tile((packed.length - grid[0]) * (_POINTS_PER_SCALE / length_scale), 2)
    below = np.minimum(place.astype(np.int64), grid.size - 2)
    beyond = place - below
    points = np.stack([below, below + 1]) * n_kinds + packed.node_kinds.codes[end]
    alike = np.exp(-0.5 * ((grid[:, None] - grid) / length_scale) ** 2)
    some = evenly_spread(packed.degree.size, _NODES)
    for solution, size in enumerate((root, packed.start / root)):
        amount = share * size[end] / size[start]
        steps = csr_array(
            (np.concatenate([amount * (1.0 - beyond), amount * beyond]), (np.tile(start, 2), points.reshape(-1))),
            shape=(packed.degree.size, grid.size * n_kinds),
        )
        features[:, solution] = _components(steps, some, alike, similar)
    return features


def _components(steps: csr_array, some: np.ndarray, alike: FloatArray, similar: FloatArray) -> FloatArray:
    """Principal components of the rows of ``steps``, distributions over lengths and kinds whose similarities are given."""
    sample = steps[some].toarray()
    images = (alike @ sample.reshape(some.size, alike.shape[0], -1) @ similar).reshape(some.size, -1)
    last = some.size - 1
    values, vectors = eigh(sample @ images.T, subset_by_index=(max(0, last - FEATURES + 1), last))
    kept = values > 1e-6 * max(values[-1], 1e-300)
    found = np.zeros((steps.shape[0], FEATURES))
    found[:, : kept.sum()] = steps @ (images.T @ (vectors[:, kept] / np.sqrt(values[kept])))
    return found


def _grid(length: FloatArray, length_scale: float) -> FloatArray:
    """Points that the lengths lie between; none where they would be too many."""
    count = int(np.ceil(np.ptp(length) / length_scale * _POINTS_PER_SCALE)) + 2 if length.size else 0
    return (
        length.min() + length_scale / _POINTS_PER_SCALE * np.arange(count)
        if 0 < count <= _MOST_LENGTHS
        else np.zeros(0)
    )
