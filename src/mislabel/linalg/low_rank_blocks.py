"""Low rank with blocks of the rest kept: ``K = V V' + R``, where ``R`` is block-diagonal.

Similarities inside a block are exact (the partially independent conditional approximation), so that near neighbours are
not smeared out. Blocks and factor are arrays of this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import blas, lapack

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import FloatArray, IntArray, SignalCovariance
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.low_rank import ReducedCovariance, not_definite
from mislabel.linalg.row_blocks import located


class BlockLowRankSignal(SignalCovariance):
    """``amplitude * (V V' + R)``.

    factor : ``V``, n x m, C-ordered. Any float type; blocks are converted to double when used.
    rest : the dense blocks of ``R`` in the order of the rows.
    """

    def __init__(
        self,
        factor: FloatArray,
        rest: Sequence[FloatArray],
        meter: CostMeter | None = None,
        amplitude: float = 1.0,
    ) -> None:
        self.factor = factor
        self.amplitude = amplitude
        self.size, self.rank = factor.shape
        self.meter = meter if meter is not None else CostMeter(self.size)
        self.rest = list(rest)
        sizes = [len(block) for block in rest]
        if sum(sizes) != self.size:
            raise KernelMatrixError(f"the rest covers {sum(sizes)} points, the factor {self.size}.")
        self._bounds = np.concatenate([[0], np.cumsum(sizes)])

    def parts(self) -> Iterator[tuple[int, slice]]:
        """The blocks' numbers and rows."""
        for number in range(len(self._bounds) - 1):
            yield number, slice(int(self._bounds[number]), int(self._bounds[number + 1]))

    def located(self, index: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Numbers of the blocks that some points belong to, where these are in ``index``, and where in the block."""
        return located(self._bounds, index)

    def block_rows(self, number: int) -> FloatArray:
        """The rows of ``V`` of one block, with their share of the amplitude."""
        return self.factor_rows(slice(int(self._bounds[number]), int(self._bounds[number + 1])))

    def factor_rows(self, part: slice) -> FloatArray:
        """Some rows of ``V`` as a fresh array of doubles, times the root of the amplitude."""
        rows = np.array(self.factor[part], dtype=np.float64, order="C")
        if self.amplitude != 1.0:
            rows *= np.sqrt(self.amplitude)
        return rows

    def rest_block(self, number: int) -> FloatArray:
        """One block of the rest, times the amplitude, as a fresh Fortran-ordered array."""
        return np.multiply(self.rest[number], self.amplitude, order="F")

    def scaled(self, amplitude: float) -> BlockLowRankSignal:
        """The same covariance times a number; factor and blocks are shared."""
        return BlockLowRankSignal(self.factor, self.rest, self.meter, self.amplitude * amplitude)

    def diagonal(self) -> FloatArray:
        """``diag(K)``."""
        found = np.empty(self.size)
        for number, part in self.parts():
            rows = self.factor_rows(part)
            found[part] = np.einsum("ij,ij->i", rows, rows) + self.amplitude * self.rest[number].diagonal()
        return found

    def submatrix(self, index: IntArray) -> FloatArray:
        """The covariance of a subset of the points."""
        rows = np.asarray(self.factor[index], dtype=np.float64)
        found = np.asfortranarray(rows @ rows.T)
        for number, inside, local in self.located(index):
            found[np.ix_(inside, inside)] += self.rest[number][np.ix_(local, local)]
        return np.asarray(self.amplitude * found)

    def residual(self, noise: FloatArray, solution: FloatArray, rhs: FloatArray) -> FloatArray:
        """``rhs - (K + diag(noise)) @ solution``."""
        common = np.zeros(self.rank)
        for _, part in self.parts():
            common += self.factor_rows(part).T @ solution[part]
        found = rhs - noise * solution
        for number, part in self.parts():
            found[part] -= self.factor_rows(part) @ common + self.amplitude * (self.rest[number] @ solution[part])
        return np.asarray(found)

    def with_noise(self, noise: FloatArray, expected: FloatArray | None = None) -> BlockLowRankCovariance:
        """``K + diag(noise)``, factorised."""
        return BlockLowRankCovariance(self, noise)


class BlockLowRankCovariance(ReducedCovariance):
    """``V V' + D`` with ``D = R + diag(noise)``, by the matrix inversion lemma: ``B = I + V' D^-1 V``."""

    _signal: BlockLowRankSignal

    def __init__(self, signal: BlockLowRankSignal, noise: FloatArray) -> None:
        self.size = signal.size
        self._signal = signal
        self._factors: list[FloatArray] = []
        #: ``L^-1 V`` of every block, until the diagonal of the inverse was made of it.
        self._halves: list[FloatArray] = []
        reduced = np.zeros((signal.rank, signal.rank), order="F")
        logdet = 0.0
        for number, part in signal.parts():
            block = signal.rest_block(number)
            block[np.diag_indices_from(block)] += noise[part]
            lower, info = lapack.dpotrf(block, lower=1, overwrite_a=1, clean=1)
            if info != 0:
                raise not_definite(part.start + info)
            self._factors.append(lower)
            logdet += 2.0 * float(np.log(lower.diagonal()).sum())
            half = blas.dtrsm(1.0, lower, np.asfortranarray(signal.factor_rows(part)), lower=1, overwrite_b=1)
            self._halves.append(half)
            reduced = blas.dsyrk(1.0, half, trans=1, beta=1.0, c=reduced, lower=1, overwrite_c=1)
        reduced[np.diag_indices_from(reduced)] += 1.0
        self._root, info = lapack.dpotrf(reduced, lower=1, overwrite_a=1, clean=1)
        if info != 0:
            raise not_definite(info)
        self._logdet = logdet + 2.0 * float(np.log(self._root.diagonal()).sum())
        self._inverse_diagonal: FloatArray | None = None
        signal.meter.n_factorizations += 1

    def _solve_rest(self, number: int, rhs: FloatArray) -> FloatArray:
        """``D^-1 rhs`` for the rows of one block."""
        solution, _ = lapack.dpotrs(self._factors[number], np.asfortranarray(rhs), lower=1)
        return np.asarray(solution)

    def solve(self, rhs: FloatArray) -> FloatArray:
        """``D^-1 rhs - D^-1 V B^-1 V' D^-1 rhs``."""
        signal = self._signal
        first = np.empty(rhs.shape)
        common = np.zeros((signal.rank, *rhs.shape[1:]))
        for number, part in signal.parts():
            first[part] = self._solve_rest(number, rhs[part])
            common += signal.factor_rows(part).T @ first[part]
        common, _ = lapack.dpotrs(self._root, common, lower=1)
        for number, part in signal.parts():
            first[part] -= self._solve_rest(number, signal.factor_rows(part) @ common)
        return first

    def logdet(self) -> float:
        """``log|D| + log|B|``."""
        return self._logdet

    def inverse_diagonal(self) -> FloatArray:
        """``diag(D^-1)`` less the squared rows of ``D^-1 V`` times the inverse root of ``B``."""
        if self._inverse_diagonal is None:
            signal = self._signal
            found = np.empty(self.size)
            for number, part in signal.parts():
                inverse, _ = lapack.dtrtri(self._factors[number], lower=1)
                solved = blas.dtrsm(1.0, self._factors[number], self._halves[number], lower=1, trans_a=1, overwrite_b=1)
                half = blas.dtrsm(1.0, self._root, np.asfortranarray(solved.T), lower=1, overwrite_b=1)
                found[part] = np.einsum("ij,ij->j", inverse, inverse) - np.einsum("ij,ij->j", half, half)
            self._inverse_diagonal = found
            self._halves = []
        return self._inverse_diagonal

    def inverse_block(self, index: IntArray) -> FloatArray:
        """``D^-1 - W W'`` with ``W = D^-1 V L^-T``, of the rows asked for."""
        signal = self._signal
        found = np.zeros((index.size, index.size))
        projected = np.zeros((signal.rank, index.size))
        for number, inside, local in signal.located(index):
            unit = np.zeros((len(self._factors[number]), inside.size))
            unit[local, np.arange(inside.size)] = 1.0
            columns = self._solve_rest(number, unit)
            found[np.ix_(inside, inside)] = columns[local]
            projected[:, inside] = signal.block_rows(number).T @ columns
        whitened = blas.dtrsm(1.0, self._root, np.asfortranarray(projected), lower=1, overwrite_b=1)
        return np.asarray(found - whitened.T @ whitened)
