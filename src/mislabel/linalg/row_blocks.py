"""The n x m factor of a low-rank covariance by blocks of rows, wherever they are kept.

All that a low-rank covariance asks of its factor is work on one block of rows at a time, and sums of m x m or smaller
results. Rows may so be an array of this process (in memory or mapped from a file, in double or single precision) or stay
on the workers of a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.linalg import blas

from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.mapped import let_go, take_mapped

#: Rows worked on at a time.
ROWS = 4096

#: Work on one block: called with its rows, its parts of the vectors by row, and what all blocks share.
RowWork = Callable[..., Any]


def located(bounds: IntArray, index: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Numbers of the blocks that hold some rows, where these are in ``index``, and where in the block.

    Block k holds the rows from ``bounds[k]`` to ``bounds[k + 1]``.
    """
    block = np.searchsorted(bounds, index, side="right") - 1
    for number in np.unique(block):
        inside = np.flatnonzero(block == number)
        yield int(number), inside, index[inside] - bounds[number]


class FactorRows(ABC):
    """``V``, n x m, by blocks of rows."""

    size: int
    rank: int

    @abstractmethod
    def each(self, work: RowWork, by_row: Sequence[FloatArray] = (), common: Sequence[Any] = ()) -> list[Any]:
        """``work(rows, *parts, *common)`` of every block, in the order of the rows."""

    @abstractmethod
    def total(self, work: RowWork, by_row: Sequence[FloatArray] = (), common: Sequence[Any] = ()) -> Any:
        """The sum of that over all blocks."""

    @abstractmethod
    def take(self, index: IntArray) -> FloatArray:
        """Some rows, as doubles."""

    def joined(self, work: RowWork, by_row: Sequence[FloatArray] = (), common: Sequence[Any] = ()) -> FloatArray:
        """The results of all blocks one after the other."""
        return np.concatenate(self.each(work, by_row, common))


class LocalRows(FactorRows):
    """Rows of an array of this process, of any float type; blocks are converted to double when used."""

    def __init__(self, factor: FloatArray) -> None:
        self.factor = factor
        self.size, self.rank = factor.shape

    def _blocks(self, work: RowWork, by_row: Sequence[FloatArray], common: Sequence[Any]) -> Any:
        for start in range(0, self.size, ROWS):
            part = slice(start, start + ROWS)
            rows = np.ascontiguousarray(self.factor[part], dtype=np.float64)
            let_go(self.factor)
            yield work(rows, *(vector[part] for vector in by_row), *common)

    def each(self, work: RowWork, by_row: Sequence[FloatArray] = (), common: Sequence[Any] = ()) -> list[Any]:
        """Block after block."""
        return list(self._blocks(work, by_row, common))

    def total(self, work: RowWork, by_row: Sequence[FloatArray] = (), common: Sequence[Any] = ()) -> Any:
        """Summed as they come."""
        results = self._blocks(work, by_row, common)
        found = next(results)
        for result in results:
            found += result
        return found

    def take(self, index: IntArray) -> FloatArray:
        """Some rows, as doubles."""
        return np.asarray(take_mapped(self.factor, index), dtype=np.float64)


def squared_norms(rows: FloatArray) -> FloatArray:
    """``diag(V V')``."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def weighted_gram(rows: FloatArray, variance: FloatArray) -> FloatArray:
    """The lower triangle of ``V' diag(1 / variance) V``."""
    half = (rows * (1.0 / np.sqrt(variance))[:, None]).T
    return np.asarray(blas.dsyrk(1.0, half, lower=1))


def gram_and_projection(rows: FloatArray, variance: FloatArray, values: FloatArray) -> FloatArray:
    """:func:`weighted_gram`, with ``V' (x / variance)`` as one more column."""
    found = np.empty((rows.shape[1], rows.shape[1] + 1), order="F")
    found[:, :-1] = weighted_gram(rows, variance)
    found[:, -1] = projection(rows, values / variance)
    return found


def projection(rows: FloatArray, values: FloatArray) -> FloatArray:
    """``V' x``."""
    return np.asarray(blas.dgemv(1.0, rows.T, values) if values.ndim == 1 else rows.T @ values)


def expansion(rows: FloatArray, coefficients: FloatArray) -> FloatArray:
    """``V c``."""
    single = coefficients.ndim == 1
    return np.asarray(blas.dgemv(1.0, rows.T, coefficients, trans=1) if single else rows @ coefficients)


def whitened_norms(rows: FloatArray, inverse_root: FloatArray) -> FloatArray:
    """Squared norms of the rows of ``V L^-T``, given ``L^-1``: a product runs at twice the speed of a triangular solve."""
    half = blas.dtrmm(1.0, inverse_root, np.array(rows.T, order="F"), lower=1, overwrite_b=1)
    return np.asarray(np.einsum("ij,ij->j", half, half))


def expansion_and_norms(rows: FloatArray, coefficients: FloatArray, inverse_root: FloatArray) -> FloatArray:
    """:func:`expansion` and :func:`whitened_norms` side by side."""
    return np.column_stack([expansion(rows, coefficients), whitened_norms(rows, inverse_root)])
