"""The trusted rows most similar to a given one: what the model's expectation rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mislabel._common.spreading import evenly_spread
from mislabel.kernels.adapters import PrecomputedKernel
from mislabel.kernels.on_data import take_points

#: Similarities computed at a time.
_BLOCK = 1_000_000
#: Among more trusted rows than this, as many are looked at, spread evenly.
MOST_CANDIDATES = 300_000


def nearest_trusted(
    model: Any, positions: NDArray[np.intp], trusted: NDArray[np.bool_], count: int = 5
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Positions and similarities (at most one) of the ``count`` most similar trusted rows, the most similar first.

    ``trusted`` marks rows by position; a row is never its own neighbour.
    """
    kernel, points = model._similarity, model._points
    others = np.flatnonzero(trusted)
    others = others[evenly_spread(others.size, MOST_CANDIDATES)]
    count = min(count, max(others.size - 1, 0))
    found = np.zeros((positions.size, count), dtype=np.intp)
    similarity = np.full((positions.size, count), -np.inf)
    if not count or not positions.size:
        return found, np.zeros((positions.size, count))
    precomputed = isinstance(kernel, PrecomputedKernel)
    mine = None if precomputed else take_points(points, positions)
    own = _roots(kernel, points, positions, mine, precomputed)
    step = max(_BLOCK // positions.size, count + 1)
    for start in range(0, others.size, step):
        some = others[start : start + step]
        theirs = None if precomputed else take_points(points, some)
        if precomputed:
            block = np.array(points[np.ix_(positions, some)], dtype=float)
        else:
            block = np.array(kernel(mine, theirs), dtype=float)
        block /= own[:, None] * _roots(kernel, points, some, theirs, precomputed)
        block[positions[:, None] == some] = -np.inf
        # Most rows come nobody closer than those before them.
        closer = np.flatnonzero((block > similarity[:, -1:]).any(axis=0))
        some, block = some[closer], block[:, closer]
        # The best so far come first: of equally similar rows the earlier one stays.
        candidates = np.hstack([found, np.broadcast_to(some, block.shape)])
        block = np.hstack([similarity, block])
        best = np.argsort(-block, axis=1, kind="stable")[:, :count]
        found = np.take_along_axis(candidates, best, axis=1)
        similarity = np.take_along_axis(block, best, axis=1)
    return found, np.minimum(similarity, 1.0)


def _roots(kernel: Any, points: Any, index: NDArray[np.intp], some: Any, precomputed: bool) -> NDArray[np.float64]:
    """Square roots of the kernel of some points with themselves."""
    own = points.diagonal()[index] if precomputed else kernel.diag(some)
    return np.asarray(np.sqrt(np.asarray(own, dtype=float)))
