"""The arrays a decision is made from, one entry per label, in label units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Leave-one-out evidence for every label; missing labels have NaN as label, error and z.

    rows : the user's own ids.
    expected, variance : what the other labels predict, and its variance without the label's own noise.
    corrected : posterior mean of the clean label.
    degrees : clean labels spread like a Student-t with so many degrees of freedom; infinite for a normal distribution.
    wrong_fraction, wrong_std : share of wrong labels and how far they are off; zero where that is not known.
    """

    rows: NDArray[Any]
    label: FloatArray
    expected: FloatArray
    variance: FloatArray
    error: FloatArray
    z: FloatArray
    noise_variance: FloatArray
    corrected: FloatArray
    degrees: float = float("inf")
    wrong_fraction: float = 0.0
    wrong_std: float = 0.0
