"""Centre, scale and rounding of the user's labels."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from mislabel._common.robust import robust_std
from mislabel.errors import InvalidParameterError
from mislabel.kernels.adapters import tunable
from mislabel.linalg.contract import FloatArray

#: Rounding counts from this part of the labels' variance on.
LEAST_ROUNDING = 1e-4
#: Values that occur so often are steps of a scale, not accidents.
_OFTEN = 3


def center_of(labels: FloatArray, center: float | str, kernel: Any) -> float:
    """What is subtracted from the labels."""
    if center == "median":
        # Labels that are proportional to the size of a molecule must stay so.
        return float(np.median(labels)) if tunable(kernel).centers_labels else 0.0
    if center == "none":
        return 0.0
    if isinstance(center, bool) or not isinstance(center, numbers.Real) or not np.isfinite(center):
        raise InvalidParameterError(f"center must be 'median', 'none' or a number, got {center!r}.")
    return float(center)


def robust_scale(centred: FloatArray) -> float:
    """What centred labels are divided by: their spread, however many of them are wrong or equal."""
    deviation = centred - np.median(centred)
    for scale in (robust_std(deviation), np.std(deviation), np.max(np.abs(centred))):
        if scale > 1e-12 * np.max(np.abs(centred), initial=0.0):
            return float(scale)
    return 1.0


def half_step_of(labels: FloatArray) -> float:
    """Half a step of coarse labels (grades, counts, few digits); zero for fine ones.

    Equal labels have an unbounded density where noise may be as small as it likes: without this, the commonest grade is taken
    for the truth, known exactly, and all others for errors.
    """
    values, counts = np.unique(labels, return_counts=True)
    steps = values[counts >= _OFTEN]
    if steps.size < 2 or 2 * counts[counts >= _OFTEN].sum() < labels.size:
        return 0.0
    half = 0.5 * float(np.median(np.diff(steps)))
    return half if half**2 > LEAST_ROUNDING * robust_scale(labels - np.median(labels)) ** 2 else 0.0
