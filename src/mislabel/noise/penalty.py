"""Prices on the noise variances: the paper's ``lambda * ||s||_p^p`` and a fixed price per noisy label."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from mislabel.errors import InvalidParameterError
from mislabel.linalg.contract import FloatArray


@dataclass(frozen=True)
class Penalty:
    """``weight * sum(s ** power)`` plus ``price`` for every label whose noise variance is not zero.

    ``weight`` and ``power`` are the paper's section 4.3. ``price`` is the limit power -> 0: a label may have a noise
    variance of its own only if that lowers the objective by more than ``price``.
    """

    weight: float = 0.0
    power: float = 1.0
    price: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.weight, numbers.Real) and self.weight >= 0 and np.isfinite(self.weight)):
            raise InvalidParameterError(f"penalty must be a finite number >= 0, got {self.weight!r}.")
        if not (isinstance(self.power, numbers.Real) and self.power > 0 and np.isfinite(self.power)):
            raise InvalidParameterError(f"penalty_power must be a finite number > 0, got {self.power!r}.")

    def value(self, noise: FloatArray) -> float:
        """The penalty at these noise variances."""
        total = self.price * np.count_nonzero(noise) if self.price else 0.0
        if self.weight:
            total += self.weight * np.sum(noise**self.power)
        return float(total)

    def slope(self, noise: FloatArray) -> FloatArray:
        """Derivative ``lambda p s^(p-1)``; infinite at zero for powers below one."""
        if not self.weight:
            return np.zeros_like(noise)
        with np.errstate(divide="ignore"):
            return np.asarray(self.weight * self.power * noise ** (self.power - 1.0))

    def curvature(self, noise: FloatArray) -> FloatArray:
        """Second derivative where it is positive (power above one), else zero: a safe term for Newton steps."""
        if not self.weight or self.power <= 1.0:
            return np.zeros_like(noise)
        with np.errstate(divide="ignore"):
            bend = self.weight * self.power * (self.power - 1.0) * noise ** (self.power - 2.0)
        return np.asarray(np.where(np.isfinite(bend), bend, 0.0))

    def rescaled(self, factor: float) -> Penalty:
        """The same penalty when noise variances are measured in units of ``factor``."""
        return Penalty(self.weight * factor**self.power, self.power, self.price)
