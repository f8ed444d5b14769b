"""A count of the cubic work done, in units of n^3 floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass

CHOLESKY = 1 / 3
TRIANGULAR_INVERSE = 1 / 3
INVERSE_FROM_CHOLESKY = 2 / 3
INVERSE_FROM_TRIANGULAR = 1 / 3


@dataclass
class CostMeter:
    """Adds up factorisations and n^3 units; ``size`` is the n that one unit refers to."""

    size: int
    n_factorizations: int = 0
    units: float = 0.0

    def add(self, units: float, size: int) -> None:
        """Count ``units`` times ``size`` cubed operations."""
        self.units += units * (size / self.size) ** 3

    def add_update(self, rank: int, size: int) -> None:
        """Count a symmetric rank-``rank`` update of a ``size`` x ``size`` matrix: ``size^2 rank`` operations."""
        self.units += rank * size**2 / self.size**3

    def add_cholesky(self, size: int) -> None:
        """Count one Cholesky factorisation."""
        self.n_factorizations += 1
        self.add(CHOLESKY, size)
