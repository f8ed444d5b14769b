"""A measure of spread that a few extreme values do not move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Standard deviation of normal values over their median absolute deviation.
_MAD_TO_STD = 1.4826


def robust_std(deviations: NDArray[np.float64]) -> float:
    """Standard deviation of the bulk of these deviations from a centre, by their median size."""
    return _MAD_TO_STD * float(np.median(np.abs(deviations)))
