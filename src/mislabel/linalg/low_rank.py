"""Low rank with the rest kept: ``K = V V' + R``, where ``R`` is diagonal or block-diagonal.

Everything is one or two passes over blocks of rows of ``V`` and one m x m reduction; only ``V`` is held at full length, in
double or single precision, in memory or mapped from a file. With a block-diagonal rest (partially independent
conditional), similarities inside a block are exact, so that near neighbours are not smeared out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import blas, lapack

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import Covariance, FloatArray, IntArray, SignalCovariance
from mislabel.linalg.cost import CostMeter

#: Rows worked on at a time where the rest is diagonal.
ROWS = 8192


class LowRankSignal(SignalCovariance):
    """``V V' + R``.

    factor : ``V``, n x m, C-ordered. Any float type; blocks are converted to double when used.
    rest : a vector (diagonal ``R``), or the dense blocks of ``R`` in the order of the rows.
    """

    def __init__(
        self, factor: FloatArray, rest: FloatArray | Sequence[FloatArray], meter: CostMeter | None = None
    ) -> None:
        self.factor = factor
        self.size, self.rank = factor.shape
        self.meter = meter if meter is not None else CostMeter(self.size)
        self.rest = rest if isinstance(rest, np.ndarray) else list(rest)
        sizes = [self.size] if isinstance(rest, np.ndarray) else [len(block) for block in rest]
        if sum(sizes) != self.size or (isinstance(rest, np.ndarray) and rest.shape != (self.size,)):
            raise KernelMatrixError(f"the rest covers {sum(sizes)} points, the factor {self.size}.")
        self._bounds = np.concatenate([[0], np.cumsum(sizes)])

    @property
    def has_blocks(self) -> bool:
        """Whether the rest is block-diagonal."""
        return isinstance(self.rest, list)

    def parts(self) -> Iterator[tuple[int, slice]]:
        """Row blocks with their number: those of the rest, or of convenient size."""
        if self.has_blocks:
            for number in range(len(self._bounds) - 1):
                yield number, slice(int(self._bounds[number]), int(self._bounds[number + 1]))
        else:
            for number, start in enumerate(range(0, self.size, ROWS)):
                yield number, slice(start, min(start + ROWS, self.size))

    def rows(self, part: slice) -> FloatArray:
        """Some rows of ``V`` as a fresh array of doubles."""
        return np.array(self.factor[part], dtype=np.float64, order="C")

    def scaled(self, amplitude: float) -> LowRankSignal:
        """The same covariance times a number."""
        rest = [amplitude * block for block in self.rest] if self.has_blocks else amplitude * np.asarray(self.rest)
        return LowRankSignal((self.factor * self.factor.dtype.type(np.sqrt(amplitude))), rest, self.meter)

    def diagonal(self) -> FloatArray:
        """``diag(K)``."""
        found = np.empty(self.size)
        for number, part in self.parts():
            own = self.rest[number].diagonal() if self.has_blocks else self.rest[part]
            rows = self.rows(part)
            found[part] = np.einsum("ij,ij->i", rows, rows) + own
        return found

    def submatrix(self, index: IntArray) -> FloatArray:
        """The covariance of a subset of the points."""
        rows = np.asarray(self.factor[index], dtype=np.float64)
        found = np.asfortranarray(rows @ rows.T)
        if not self.has_blocks:
            found[np.diag_indices_from(found)] += np.asarray(self.rest)[index]
            return found
        block = np.searchsorted(self._bounds, index, side="right") - 1
        for number in np.unique(block):
            inside = np.flatnonzero(block == number)
            local = index[inside] - self._bounds[number]
            found[np.ix_(inside, inside)] += self.rest[number][np.ix_(local, local)]
        return found

    def residual(self, noise: FloatArray, solution: FloatArray, rhs: FloatArray) -> FloatArray:
        """``rhs - (K + diag(noise)) @ solution``."""
        common = np.zeros(self.rank)
        for _, part in self.parts():
            common += self.rows(part).T @ solution[part]
        found = rhs - noise * solution
        for number, part in self.parts():
            own = self.rest[number] @ solution[part] if self.has_blocks else self.rest[part] * solution[part]
            found[part] -= self.rows(part) @ common + own
        return np.asarray(found)

    def with_noise(self, noise: FloatArray) -> LowRankCovariance:
        """``K + diag(noise)``, factorised."""
        return LowRankCovariance(self, noise)


class LowRankCovariance(Covariance):
    """``V V' + D`` with ``D = R + diag(noise)``, by the matrix inversion lemma: ``B = I + V' D^-1 V``."""

    def __init__(self, signal: LowRankSignal, noise: FloatArray) -> None:
        self.size = signal.size
        self._signal = signal
        self._noise = np.asarray(noise, dtype=float)
        self._factors: list[FloatArray] = []
        reduced = np.zeros((signal.rank, signal.rank), order="F")
        logdet = 0.0
        for number, part in signal.parts():
            if signal.has_blocks:
                block = np.array(signal.rest[number], order="F")
                block[np.diag_indices_from(block)] += self._noise[part]
                lower, info = lapack.dpotrf(block, lower=1, overwrite_a=1, clean=1)
                if info != 0:
                    raise _not_definite(part.start + info)
                self._factors.append(lower)
                logdet += 2.0 * float(np.log(lower.diagonal()).sum())
                half = blas.dtrsm(1.0, lower, np.asfortranarray(signal.rows(part)), lower=1, overwrite_b=1).T
            else:
                total = np.asarray(signal.rest[part]) + self._noise[part]
                if not (total > 0).all():
                    raise _not_definite(part.start + int(np.argmin(total)) + 1)
                logdet += float(np.log(total).sum())
                half = (signal.rows(part) / np.sqrt(total)[:, None]).T
            reduced = blas.dsyrk(1.0, half, beta=1.0, c=reduced, lower=1, overwrite_c=1)
        reduced[np.diag_indices_from(reduced)] += 1.0
        self._root, info = lapack.dpotrf(reduced, lower=1, overwrite_a=1, clean=1)
        if info != 0:
            raise _not_definite(info)
        self._logdet = logdet + 2.0 * float(np.log(self._root.diagonal()).sum())
        self._inverse_diagonal: FloatArray | None = None
        signal.meter.n_factorizations += 1

    def _solve_rest(self, number: int, part: slice, rhs: FloatArray) -> FloatArray:
        """``D^-1 rhs`` for the rows of one part."""
        if not self._signal.has_blocks:
            total = np.asarray(self._signal.rest[part]) + self._noise[part]
            return np.asarray(rhs / (total if rhs.ndim == 1 else total[:, None]))
        solution, _ = lapack.dpotrs(self._factors[number], np.asfortranarray(rhs), lower=1)
        return np.asarray(solution)

    def solve(self, rhs: FloatArray) -> FloatArray:
        """``D^-1 rhs - D^-1 V B^-1 V' D^-1 rhs``."""
        signal = self._signal
        first = np.empty(rhs.shape)
        common = np.zeros((signal.rank, *rhs.shape[1:]))
        for number, part in signal.parts():
            first[part] = self._solve_rest(number, part, rhs[part])
            common += signal.rows(part).T @ first[part]
        common, _ = lapack.dpotrs(self._root, common, lower=1)
        for number, part in signal.parts():
            first[part] -= self._solve_rest(number, part, signal.rows(part) @ common)
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
                if signal.has_blocks:
                    lower = self._factors[number]
                    inverse, _ = lapack.dtrtri(lower, lower=1)
                    own = np.einsum("ij,ij->j", inverse, inverse)
                    solved = self._solve_rest(number, part, signal.rows(part))
                    half = blas.dtrsm(1.0, self._root, np.asfortranarray(solved.T), lower=1, overwrite_b=1)
                    found[part] = own - np.einsum("ij,ij->j", half, half)
                else:
                    total = np.asarray(signal.rest[part]) + self._noise[part]
                    half = blas.dtrsm(1.0, self._root, signal.rows(part).T, lower=1, overwrite_b=1)
                    leverage = np.einsum("ij,ij->j", half, half) / total
                    found[part] = np.maximum(1.0 - leverage, np.finfo(float).eps) / total
            self._inverse_diagonal = found
        return self._inverse_diagonal

    def inverse(self) -> FloatArray:
        """All of ``C``: n x n, for tests and small problems."""
        found = self.solve(np.eye(self.size))
        return np.asfortranarray(0.5 * (found + found.T))

    def to_dense(self) -> FloatArray:
        """``K + diag(noise)`` as n x n."""
        dense = self._signal.submatrix(np.arange(self.size))
        dense[np.diag_indices_from(dense)] += self._noise
        return np.asarray(dense)


def _not_definite(row: int) -> KernelMatrixError:
    return KernelMatrixError(
        f"the low-rank covariance is not positive definite (row {row}): a label needs some base noise, or the kernel is not "
        "positive semi-definite."
    )
