"""Low-rank factors of a kernel on many points: randomly pivoted Cholesky, and blocks of similar points.

Both need only columns of the kernel matrix, so they work for every kernel, graphs included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from mislabel.errors import InvalidParameterError, unknown_name
from mislabel.kernels.adapters import PrecomputedKernel
from mislabel.kernels.contract import FactorBuilder, RemoteRows
from mislabel.kernels.on_data import n_features, take_points
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.mapped import let_go, new_mapped, take_mapped
from mislabel.linalg.row_blocks import FactorRows, squared_norms

#: Pivots drawn at a time.
PIVOTS_AT_ONCE = 64
#: How a factor may be kept.
STORAGES = ("double", "file")
#: Rows of the kernel evaluated at a time: at most so many, and no more numbers of factor and features than this.
ROWS = 16384
CELLS = 4_000_000
#: Rows to which new columns are added at a time.
COLUMN_ROWS = 2048
#: Pivots whose remaining variance is below this fraction of their own are copies of earlier ones.
LEAST_REMAINING = 1e-9


@dataclass(frozen=True, eq=False)
class PivotedFactor:
    """``V V'`` of rank m, exact in the rows and columns of the pivots.

    factor : ``V``, n x m: an array, or rows kept elsewhere. rest : the variance of every point that it leaves unexplained.
    pivots, pivot_points : the m pivots. root : ``V`` at the pivots, lower-triangular.
    captured : the share of the kernel's total variance that ``V V'`` explains.
    """

    factor: FloatArray | FactorRows
    rest: FloatArray
    pivots: IntArray
    pivot_points: Any
    root: FloatArray
    captured: float

    def of(self, kernel: Any, points: Any) -> FloatArray:
        """Rows of ``V`` for new points."""
        cross = np.asarray(kernel(points, self.pivot_points), dtype=float)
        return np.asarray(solve_triangular(self.root, cross.T, lower=True).T)


def new_columns(
    kernel: Any, points: Any, factor: Sequence[FloatArray], chosen: Any, known: FloatArray, root: FloatArray
) -> FloatArray:
    """The columns that new pivots add to some rows of the factor.

    factor : the columns so far, in one piece or several. known : the pivots' own rows so far; root : the Cholesky factor of
    what they leave of their kernel. Few columns are better multiplied by the inverse of a triangle than solved with it, and
    few rows at a time stay in the processor's cache from the kernel to the product.
    """
    inverse, _ = lapack.dtrtri(root, lower=1)
    found = np.empty((len(points), len(root)))
    for start in range(0, len(points), COLUMN_ROWS):
        part = slice(start, start + COLUMN_ROWS)
        # Transposed throughout, since BLAS updates in place what has columns one after the other.
        block = np.array(kernel(points[part], chosen), dtype=float, order="C").T
        first = 0
        for piece in factor:
            last = first + piece.shape[1]
            columns = np.asarray(piece[part], dtype=float).T
            block = blas.dgemm(-1.0, known[:, first:last].T, columns, 1.0, block, trans_a=1, overwrite_c=1)
            first = last
        found[part] = blas.dtrmm(1.0, inverse, block, lower=1, overwrite_b=1).T
    return found


def new_storage(shape: tuple[int, int], storage: str) -> np.ndarray:
    """Room for a factor: doubles in memory, or single precision in a file that goes when it is let go."""
    if storage not in STORAGES:
        raise unknown_name("storage", storage, STORAGES)
    if storage == "file":
        return new_mapped(shape, np.float32)
    return np.zeros(shape)


class LocalFactor(FactorBuilder):
    """A factor that grows in an array of this process."""

    def __init__(self, kernel: Any, points: Any, rank: int, storage: str = "double") -> None:
        self.size = len(points)
        self._kernel, self._points = kernel, points
        self._factor = new_storage((self.size, rank), storage)
        self._done = 0

    def diagonal(self) -> FloatArray:
        """The kernel of every point with itself."""
        return np.array(self._kernel.diag(self._points), dtype=float)

    def points(self, index: IntArray) -> Any:
        """Some of the points."""
        return take_points(self._points, index)

    def rows(self, index: IntArray) -> FloatArray:
        """Some rows of the factor, as far as it has grown."""
        return np.asarray(take_mapped(self._factor[:, : self._done], index), dtype=float)

    def extend(self, chosen: Any, known: FloatArray, root: FloatArray) -> FloatArray:
        """Add the columns of the pivots ``chosen``, some rows at a time."""
        squares = np.empty(self.size)
        end = self._done + len(root)
        # Features are there twice: as they are, and divided by the length scales.
        cells = 2 * n_features(self._points) + self._factor.shape[1]
        rows = int(np.clip(CELLS // cells, 1, ROWS))
        for start in range(0, self.size, rows):
            part = slice(start, min(start + rows, self.size))
            points = take_points(self._points, np.arange(part.start, part.stop))
            new = new_columns(self._kernel, points, [self._factor[part, : self._done]], chosen, known, root)
            self._factor[part, self._done : end] = new
            squares[part] = squared_norms(new)
            let_go(self._factor)
            let_go(self._points)
        self._done = end
        return squares

    def finish(self) -> FloatArray:
        """The factor; without the columns that were not needed."""
        return self._factor[:, : self._done]


def _builder(kernel: Kernel, points: Any, rank: int, storage: str) -> FactorBuilder:
    if isinstance(kernel, PrecomputedKernel):
        raise InvalidParameterError(
            f"a precomputed matrix of {len(points)} points has no low-rank fit, which evaluates the kernel at new points: use "
            "rank=None, or give the kernel itself instead of its matrix."
        )
    if isinstance(points, RemoteRows):
        return points.factor_builder(kernel)
    return LocalFactor(kernel, points, rank, storage)


def pivoted_factor(
    kernel: Any,
    points: Any,
    rank: int,
    random_state: np.random.RandomState,
    enough: float = 0.0,
    storage: str = "double",
) -> PivotedFactor:
    """Randomly pivoted Cholesky: pivots are drawn with the chance of what they leave unexplained.

    Fewer than ``rank`` columns come back where the kernel has no more to give, or leaves no more than ``enough`` variance on
    average. Rows that are kept elsewhere bring their own ``factor_builder``.
    """
    builder = _builder(kernel, points, rank, storage)
    diagonal = builder.diagonal()
    remaining = diagonal.copy()
    pivots: list[int] = []
    roots: list[FloatArray] = []
    while len(pivots) < rank and (not pivots or float(remaining.mean()) > enough):
        open_points = remaining > LEAST_REMAINING * diagonal
        open_points[pivots] = False
        count = min(PIVOTS_AT_ONCE, rank - len(pivots), int(np.count_nonzero(open_points)))
        if not count:
            break
        chance = np.where(open_points, remaining, 0.0)
        drawn = np.sort(random_state.choice(builder.size, count, replace=False, p=chance / chance.sum()))
        chosen, known = builder.points(drawn), builder.rows(drawn)
        corner = np.asarray(kernel(chosen), dtype=float) - known @ known.T
        kept = _independent(corner, diagonal[drawn])
        remaining[np.delete(drawn, kept)] = 0.0
        if not kept.size:
            continue
        root = np.asarray(np.linalg.cholesky(corner[np.ix_(kept, kept)]), dtype=float)
        remaining -= builder.extend(take_points(chosen, kept), known[kept], root)
        np.maximum(remaining, 0.0, out=remaining)
        pivots += drawn[kept].tolist()
        roots.append(np.hstack([known[kept], root]))
    index = np.array(pivots, dtype=np.intp)
    root = np.zeros((index.size, index.size))
    for rows in roots:
        root[rows.shape[1] - len(rows) : rows.shape[1], : rows.shape[1]] = rows
    explained = 1.0 - float(remaining.sum() / diagonal.sum())
    return PivotedFactor(builder.finish(), remaining, index, builder.points(index), root, explained)


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
    direction = np.asarray(random_state.standard_normal(rows.shape[1]))
    for _ in range(8):
        following = rows.T @ (rows @ direction)
        norm = np.linalg.norm(following)
        if norm == 0.0:
            break
        direction = following / norm
    return direction


def rest_by_block(kernel: Any, points: Any, factor: FloatArray, blocks: Blocks) -> list[FloatArray]:
    """What ``V V'`` leaves of the kernel inside every block; points and factor must be in the order of the blocks."""
    found, start = [], 0
    for block in blocks.members:
        part = np.arange(start, start + block.size)
        rows = np.asarray(factor[start : start + block.size], dtype=float)
        found.append(np.asarray(kernel(take_points(points, part)), dtype=float) - rows @ rows.T)
        start += block.size
    return found
