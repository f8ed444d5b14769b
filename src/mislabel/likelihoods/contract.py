"""What a label says of the latent number behind it, the signal with its noise.

All other labels make that number normal, with a mean and a variance. An observation says how probable the label then is, and how
that changes with the mean: the density and two derivatives are all that expectation propagation needs. With the latent number
``s ~ N(m, V)`` and ``Z(m) = integral p(label | s) N(s; m, V) ds``,

    E[s | label] = m + V Z'/Z,     E[(s - m)^2 | label] = V + V^2 Z''/Z.

A new kind of label is one subclass; ``tests/likelihoods/test_observation_contract.py`` compares it with brute force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """Of ``Z`` for every label: its logarithm plus ``log(2 pi) / 2``, ``Z'/Z`` and ``Z''/Z``."""

    log_density: FloatArray
    slope: FloatArray
    curvature: FloatArray


class Observation(ABC):
    """What some labels say of their latent numbers.

    values : one number for each, where a search begins: the label itself, or the bound of a censored one.
    """

    values: FloatArray

    @abstractmethod
    def moments(self, mean: FloatArray, variance: FloatArray) -> Moments:
        """For latent numbers of these means and variances, (n,) each, or (k, n) for k descriptions at once."""

    @abstractmethod
    def some(self, index: NDArray[np.intp]) -> Observation:
        """Those at these positions."""

    @abstractmethod
    def error(self, mean: FloatArray) -> FloatArray:
        """How far each label is from what is expected of it; zero where it agrees with that."""
