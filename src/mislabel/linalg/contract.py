"""What a covariance matrix must offer; everything above this room is written against it.

A :class:`SignalCovariance` is ``K``. Adding a diagonal of noise variances to it gives a :class:`Covariance`
``K + diag(noise)``, which can be solved with, and whose inverse diagonal yields leave-one-out predictions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mislabel.linalg.cost import CostMeter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class LeaveOneOut(NamedTuple):
    """Closed-form leave-one-out quantities of a Gaussian process.

    error : label minus its prediction from all other labels, ``a_i / b_i``.
    variance : predictive variance of the left-out *label*, its own noise included, ``1 / b_i``.
    """

    error: FloatArray
    variance: FloatArray


class Covariance(ABC):
    """A symmetric positive definite matrix ``C^-1 = K + diag(noise)``, ready to be solved with."""

    size: int

    @abstractmethod
    def solve(self, rhs: FloatArray) -> FloatArray:
        """Return ``C @ rhs`` for a vector or a matrix of columns."""

    def quadratic(self, rhs: FloatArray, solution: FloatArray | None = None) -> float:
        """Return ``rhs' C rhs``; ``solution`` is ``C @ rhs`` where that is known."""
        return float(rhs @ (self.solve(rhs) if solution is None else solution))

    @abstractmethod
    def logdet(self) -> float:
        """Return ``log |K + diag(noise)|``."""

    @abstractmethod
    def inverse_diagonal(self) -> FloatArray:
        """Return ``diag(C)``."""

    @abstractmethod
    def inverse(self) -> FloatArray:
        """Return all of ``C`` as a dense symmetric array; the caller may overwrite it."""

    def inverse_block(self, index: IntArray) -> FloatArray:
        """Return the rows and columns of ``C`` that belong to some labels; the caller may overwrite it."""
        return np.array(self.inverse()[np.ix_(index, index)])

    def take_inverse(self) -> FloatArray:
        """The lower triangle of :meth:`inverse`, without a copy where possible; what is above it means nothing.

        Once the caller overwrites it, this object is spent.
        """
        return self.inverse()

    def leave_one_out(self, labels: FloatArray) -> LeaveOneOut:
        """Leave-one-out errors and label variances (the paper's section 3.1)."""
        precision = self.inverse_diagonal()
        return LeaveOneOut(error=self.solve(labels) / precision, variance=1.0 / precision)


class SignalCovariance(ABC):
    """The covariance ``K`` of the noise-free signal at the labelled points."""

    size: int
    meter: CostMeter

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return ``diag(K)``."""

    @abstractmethod
    def scaled(self, amplitude: float) -> SignalCovariance:
        """Return ``amplitude * K``, without a second matrix."""

    @abstractmethod
    def submatrix(self, index: IntArray) -> FloatArray:
        """Return the dense covariance of a subset of the points; the caller may overwrite it."""

    @abstractmethod
    def residual(self, noise: FloatArray, solution: FloatArray, rhs: FloatArray) -> FloatArray:
        """Return ``rhs - (K + diag(noise)) @ solution`` accurately enough to refine ``solution`` with it."""

    @abstractmethod
    def with_noise(self, noise: FloatArray, expected: FloatArray | None = None) -> Covariance:
        """Return ``K + diag(noise)``, factorised; raises KernelMatrixError if it is not positive definite.

        ``expected`` is a vector that will be solved for: where every look at the data costs, its part is done on the way.
        """
