"""The trusted rows most similar to a given one: what the model's expectation rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mislabel.kernels.adapters import PrecomputedKernel
from mislabel.kernels.on_data import take_points

_BLOCK = 256


def nearest_trusted(
    model: Any, positions: NDArray[np.intp], trusted: NDArray[np.bool_], count: int = 5
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Positions and similarities (at most one) of the ``count`` most similar trusted rows, the most similar first.

    ``trusted`` marks rows by position; a row is never its own neighbour.
    """
    kernel, points = model._similarity, model._points
    others = np.flatnonzero(trusted)
    count = min(count, max(others.size - 1, 0))
    found = np.zeros((positions.size, count), dtype=np.intp)
    similarity = np.zeros((positions.size, count))
    if not count:
        return found, similarity
    precomputed = isinstance(kernel, PrecomputedKernel)
    roots = np.sqrt(np.asarray(points.diagonal() if precomputed else kernel.diag(points)))
    pool = None if precomputed else take_points(points, others)
    for start in range(0, positions.size, _BLOCK):
        rows = positions[start : start + _BLOCK]
        if precomputed:
            block = np.array(points[np.ix_(rows, others)], dtype=float)
        else:
            block = np.array(kernel(take_points(points, rows), pool), dtype=float)
        block /= roots[rows][:, None] * roots[others]
        block[rows[:, None] == others] = -np.inf
        best = np.argsort(-block, axis=1, kind="stable")[:, :count]
        found[start : start + _BLOCK] = others[best]
        similarity[start : start + _BLOCK] = np.take_along_axis(block, best, axis=1)
    return found, np.minimum(similarity, 1.0)
