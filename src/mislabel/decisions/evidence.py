"""The arrays a decision is made from, one entry per label, in label units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
#: The largest number there is.
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Leave-one-out evidence for every label; missing labels have NaN as label, error and z.

    rows : the user's own ids.
    expected, variance : what the other labels predict, and its variance without the label's own noise.
    noise_variance : of each label, beyond the base noise. label_noise : posterior mean of its error.
    corrected : posterior mean of the clean label.
    degrees : clean labels spread like a Student-t with so many degrees of freedom; infinite for a normal distribution.
    wrong_fraction, wrong_std : share of wrong labels and how far they are off; zero where that is not known.
    set_aside : labels beyond any plausible scale, which are wrong whatever else is decided; None for none.
    at_atom : labels at a value that holds a fair share of all, which are not judged; None for none.
    """

    rows: NDArray[Any]
    label: FloatArray
    expected: FloatArray
    variance: FloatArray
    error: FloatArray
    z: FloatArray
    noise_variance: FloatArray
    label_noise: FloatArray
    corrected: FloatArray
    degrees: float = float("inf")
    wrong_fraction: float = 0.0
    wrong_std: float = 0.0
    set_aside: BoolArray | None = None
    at_atom: BoolArray | None = None

    @property
    def unjudged(self) -> BoolArray:
        """``at_atom``, one entry per label in any case."""
        return np.zeros(self.label.size, dtype=bool) if self.at_atom is None else self.at_atom & ~self.absurd

    @property
    def absurd(self) -> BoolArray:
        """``set_aside``, one entry per label in any case."""
        return np.zeros(self.label.size, dtype=bool) if self.set_aside is None else self.set_aside


def in_standard_deviations(error: FloatArray, variance: FloatArray) -> FloatArray:
    """Errors over the square root of their variance, finite however large they are."""
    with np.errstate(over="ignore"):
        return np.clip(error / np.sqrt(variance), -LARGEST, LARGEST)


def squared(values: FloatArray) -> FloatArray:
    """Squares, finite however large the values are."""
    with np.errstate(over="ignore"):
        return np.minimum(values**2, LARGEST)
