"""Low-rank factors of a kernel on many points: randomly pivoted Cholesky, and blocks of similar points.

Both need only columns of the kernel matrix, so they work for every kernel, graphs included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mislabel.kernels.on_data import take_points
from mislabel.linalg.contract import FloatArray, IntArray

#: Pivots drawn at a time, and rows of the kernel evaluated at a time.
PIVOTS_AT_ONCE = 64
ROWS = 16384
#: Pivots whose remaining variance is below this fraction of their own are copies of earlier ones.
LEAST_REMAINING = 1e-9


@dataclass(frozen=True, eq=False)
class PivotedFactor:
    """``V V'`` of rank m, exact in the rows and columns of the pivots.

    factor : ``V``, n x m. pivots : positions of the m pivots. root : ``V`` at the pivots, lower-triangular.
    captured : the share of the kernel's total variance that ``V V'`` explains.
    """

    factor: FloatArray
    pivots: IntArray
    root: FloatArray
    captured: float

    def of(self, kernel: Any, points: Any, pivot_points: Any) -> FloatArray:
        """Rows of ``V`` for new points."""
        cross = np.asarray(kernel(points, pivot_points), dtype=float)
        return np.asarray(solve_triangular(self.root, cross.T, lower=True).T)


def pivoted_factor(
    kernel: Any, points: Any, rank: int, random_state: np.random.RandomState, dtype: Any = np.float64
) -> PivotedFactor:
    """Randomly pivoted Cholesky: pivots are drawn with the chance of what they leave unexplained.

    Fewer than ``rank`` columns come back where the kernel has no more to give.
    """
    size = len(points)
    diagonal = np.array(kernel.diag(points), dtype=float)
    remaining = diagonal.copy()
    factor = np.zeros((size, rank), dtype=dtype)
    pivots: list[int] = []
    while len(pivots) < rank:
        open_points = remaining > LEAST_REMAINING * diagonal
        open_points[pivots] = False
        count = min(PIVOTS_AT_ONCE, rank - len(pivots), int(np.count_nonzero(open_points)))
        if not count:
            break
        chance = np.where(open_points, remaining, 0.0)
        drawn = np.sort(random_state.choice(size, count, replace=False, p=chance / chance.sum()))
        done = len(pivots)
        chosen = take_points(points, drawn)
        corner = np.asarray(kernel(chosen), dtype=float)
        known = np.asarray(factor[drawn, :done], dtype=float)
        corner = corner - known @ known.T
        kept = _independent(corner, diagonal[drawn])
        if not kept.size:
            remaining[drawn] = 0.0
            continue
        remaining[np.delete(drawn, kept)] = 0.0
        drawn, chosen, known = drawn[kept], take_points(chosen, kept), known[kept]
        root = np.linalg.cholesky(corner[np.ix_(kept, kept)])
        for start in range(0, size, ROWS):
            part = slice(start, min(start + ROWS, size))
            block = np.asarray(kernel(take_points(points, np.arange(part.start, part.stop)), chosen), dtype=float)
            block -= np.asarray(factor[part, :done], dtype=float) @ known.T
            new = solve_triangular(root, block.T, lower=True, overwrite_b=True).T
            factor[part, done : done + kept.size] = new
            remaining[part] -= np.einsum("ij,ij->i", new, new)
        np.maximum(remaining, 0.0, out=remaining)
        pivots += drawn.tolist()
    rank = len(pivots)
    index = np.array(pivots, dtype=np.intp)
    root = np.tril(np.asarray(factor[index, :rank], dtype=float))
    explained = 1.0 - float(remaining.sum() / diagonal.sum())
    return PivotedFactor(factor[:, :rank], index, root, explained)


def _independent(corner: FloatArray, scale: FloatArray) -> IntArray:
    """A greedy subset of the points whose covariance can be factorised."""
    left = corner.copy()
    kept: list[int] = []
    for k in range(len(left)):
        pivot = left[k, k]
        if pivot <= LEAST_REMAINING * scale[k]:
            continue
        kept.append(k)
        column = left[:, k] / np.sqrt(pivot)
        left = left - np.outer(column, column)
    return np.array(kept, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of similar points, and the halvings that made them, by which new points find theirs.

    members : positions of the points of every block.
    splits : for every inner node its centre, direction, threshold and two children (a block's number as ``-1 - number``).
    """

    members: list[IntArray]
    splits: list[tuple[FloatArray, FloatArray, float, list[int]]]

    def of(self, rows: FloatArray) -> IntArray:
        """The block that each new point, given as a row of ``V``, belongs to."""
        found = np.zeros(len(rows), dtype=np.intp)
        if not self.splits:
            return found
        waiting = [(0, np.arange(len(rows)))]
        while waiting:
            node, index = waiting.pop()
            center, direction, threshold, children = self.splits[node]
            above = (rows[index] - center) @ direction > threshold
            for child, some in zip(children, (index[~above], index[above]), strict=True):
                if child < 0:
                    found[some] = -1 - child
                elif some.size:
                    waiting.append((child, some))
        return found


def similar_blocks(factor: FloatArray, block_size: int, random_state: np.random.RandomState) -> Blocks:
    """Split the points into blocks of at most ``block_size`` similar ones, by halving along the direction of most spread."""
    members: list[IntArray] = []
    splits: list[tuple[FloatArray, FloatArray, float, list[int]]] = []
    waiting: list[tuple[IntArray, int]] = [(np.arange(len(factor), dtype=np.intp), -1)]
    while waiting:
        index, parent = waiting.pop()
        if index.size <= block_size:
            if parent >= 0:
                splits[parent][3].append(-1 - len(members))
            members.append(index)
            continue
        if parent >= 0:
            splits[parent][3].append(len(splits))
        rows = np.asarray(factor[index], dtype=float)
        center = rows.mean(axis=0)
        rows -= center
        direction = _main_direction(rows, random_state)
        along = rows @ direction
        pieces = int(np.ceil(index.size / block_size))
        cut = round(index.size * (pieces // 2) / pieces)
        order = np.argsort(along, kind="stable")
        threshold = 0.5 * float(along[order[cut - 1]] + along[order[cut]])
        splits.append((center, direction, threshold, []))
        # The lower half must come back first: children are listed in that order.
        node = len(splits) - 1
        waiting += [(index[order[cut:]], node), (index[order[:cut]], node)]
    return Blocks(members, splits)


def _main_direction(rows: FloatArray, random_state: np.random.RandomState) -> FloatArray:
    """The direction of most spread, by a few power iterations."""
    direction = random_state.standard_normal(rows.shape[1])
    for _ in range(8):
        following = rows.T @ (rows @ direction)
        norm = np.linalg.norm(following)
        if norm == 0.0:
            break
        direction = following / norm
    return np.asarray(direction)


def rest_of(kernel: Any, points: Any, factor: FloatArray, blocks: Blocks | None) -> Any:
    """What ``V V'`` leaves of the kernel: its diagonal, or its blocks (then points must be in the order of the blocks)."""
    if blocks is None:
        squares = np.concatenate(
            [
                np.einsum("ij,ij->i", rows, rows)
                for rows in (
                    np.asarray(factor[start : start + ROWS], dtype=float) for start in range(0, len(factor), ROWS)
                )
            ]
        )
        return np.maximum(np.asarray(kernel.diag(points)) - squares, 0.0)
    found, start = [], 0
    for block in blocks.members:
        part = np.arange(start, start + block.size)
        rows = np.asarray(factor[start : start + block.size], dtype=float)
        found.append(np.asarray(kernel(take_points(points, part)), dtype=float) - rows @ rows.T)
        start += block.size
    return found
