"""A matrix cut into square blocks, which are computed in any order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mislabel.linalg.contract import FloatArray, IntArray


class Blocks:
    """A matrix cut into square blocks; of a symmetric one only those on and below the diagonal are worked on."""

    def __init__(self, shape: tuple[int, int], symmetric: bool, pairs_per_block: int) -> None:
        edge = max(1, int(np.sqrt(pairs_per_block)))
        self.shape = shape
        self.rows = [(start, min(start + edge, shape[0])) for start in range(0, shape[0], edge)]
        self.columns = [(start, min(start + edge, shape[1])) for start in range(0, shape[1], edge)]
        self.index = [
            (i, j) for i in range(len(self.rows)) for j in range(len(self.columns)) if not symmetric or j <= i
        ]
        self.symmetric = symmetric

    def __len__(self) -> int:
        return len(self.index)

    def pairs(self, number: int) -> IntArray:
        """The pairs of one block, row by row; on the diagonal only those not above it."""
        i, j = self.index[number]
        rows, columns = np.arange(*self.rows[i]), np.arange(*self.columns[j])
        pairs = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        return pairs[pairs[:, 0] >= pairs[:, 1]] if self.symmetric and i == j else pairs

    def largest_first(self, numbers: Iterable[int]) -> list[int]:
        """Blocks in an order in which nobody waits long for the last: those on the diagonal have half as much to do."""
        return sorted(numbers, key=lambda number: self.symmetric and self.index[number][0] == self.index[number][1])

    def store(self, number: int, values: FloatArray, out: np.ndarray) -> None:
        """Write one block where it belongs, and its mirror image where the matrix is symmetric."""
        i, j = self.index[number]
        (top, bottom), (left, right) = self.rows[i], self.columns[j]
        if self.symmetric and i == j:
            pairs = self.pairs(number)
            block = np.empty((bottom - top, right - left), dtype=out.dtype)
            block[pairs[:, 0] - top, pairs[:, 1] - left] = values
            block[pairs[:, 1] - top, pairs[:, 0] - left] = values
        else:
            block = values.reshape(bottom - top, right - left)
        out[top:bottom, left:right] = block
        if self.symmetric and i != j:
            out[left:right, top:bottom] = block.T

    def stored(self, number: int, matrix: np.ndarray) -> tuple[bytes, bytes | None]:
        """The bytes of one block, row by row, and those of its mirror image turned back; None where it has none."""
        i, j = self.index[number]
        (top, bottom), (left, right) = self.rows[i], self.columns[j]
        plain = np.asarray(matrix)
        block = plain[top:bottom, left:right].tobytes()
        return block, plain[left:right, top:bottom].T.tobytes() if self.symmetric and i != j else None
