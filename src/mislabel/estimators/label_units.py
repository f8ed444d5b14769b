"""Between the user's labels and those of the fit, which are centred, scaled and complete."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mislabel.decisions import Evidence
from mislabel.decisions.evidence import LARGEST, in_standard_deviations, squared
from mislabel.errors import InvalidParameterError
from mislabel.estimators.copies import Copies
from mislabel.estimators.fitting import Fitted
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.robust import robust_std

#: Rounding counts from this part of the labels' variance on.
LEAST_ROUNDING = 1e-4
#: Values that occur so often are steps of a scale, not accidents.
_OFTEN = 3

#: Predicts the points at these positions, with standard deviations.
PredictAt = Callable[[IntArray], tuple[FloatArray, FloatArray]]


def center_of(labels: FloatArray, center: float | str, kernel: Any) -> float:
    """What is subtracted from the labels."""
    if center == "median":
        # Labels that are proportional to the size of a molecule must stay so.
        return float(np.median(labels)) if getattr(kernel, "centers_labels", True) else 0.0
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


def rounding_variance(labels: FloatArray) -> float:
    """Variance that coarse labels (grades, counts, few digits) have at least, half a step being their standard deviation.

    Zero for fine ones. Equal labels have an unbounded density where noise may be as small as it likes: without this, the
    commonest grade is taken for the truth, known exactly, and all others for errors. Rounding alone would be a twelfth of a
    squared step, with which the same can happen to labels whose noise is below a step.
    """
    values, counts = np.unique(labels, return_counts=True)
    steps = values[counts >= _OFTEN]
    if steps.size < 2 or 2 * counts[counts >= _OFTEN].sum() < labels.size:
        return 0.0
    variance = (0.5 * float(np.median(np.diff(steps)))) ** 2
    return variance if variance > LEAST_ROUNDING * robust_scale(labels - np.median(labels)) ** 2 else 0.0


@dataclass(frozen=True, eq=False)
class LabelEvidence:
    """What a fit says about every label, in label units and in the order of the labels; NaN where there is none.

    A missing label has the expectation of all that are there, with the variance of a clean label.
    """

    noise_variance: FloatArray
    loo_mean: FloatArray
    loo_variance: FloatArray
    loo_error: FloatArray
    z: FloatArray
    label_noise: FloatArray
    corrected: FloatArray

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        labels: FloatArray,
        present: IntArray,
        scale: float,
        predict_at: PredictAt,
        copies: Copies,
        aside: IntArray,
    ) -> LabelEvidence:
        """From a fit of the labels at the positions ``present``, in this order and divided by ``scale``.

        Labels at the positions ``aside`` took no part: they are predicted like missing ones, and all they differ by is error.
        """
        absent = np.union1d(np.flatnonzero(np.isnan(labels)), aside)
        filled, filled_variance = np.zeros(0), np.zeros(0)
        if absent.size:
            filled, filled_std = predict_at(absent)
            filled_variance = filled_std**2 + fitted.base * scale**2

        def spread(values: FloatArray, missing: FloatArray | float) -> FloatArray:
            full = np.empty(labels.size)
            full[absent] = missing
            full[present] = values
            copies.follow(full)
            return full

        loo = fitted.evidence
        error = spread(loo.error * scale, np.nan)
        label_noise = spread(loo.label_noise * scale, np.nan)
        mean = spread(labels[present] - error[present], filled)
        variance = spread(loo.variance * scale**2, filled_variance)
        noise_variance, z = spread(fitted.noise * scale**2, 0.0), spread(loo.z, np.nan)
        error[aside] = label_noise[aside] = np.clip(labels[aside], -LARGEST / 2, LARGEST / 2) - mean[aside]
        z[aside] = in_standard_deviations(error[aside], variance[aside])
        noise_variance[aside] = squared(error[aside])
        return cls(
            noise_variance=noise_variance,
            loo_mean=mean,
            loo_variance=variance,
            loo_error=error,
            z=z,
            label_noise=label_noise,
            corrected=spread(labels[present] - label_noise[present], filled),
        )

    def for_decisions(self, rows: Any, labels: FloatArray, set_aside: NDArray[np.bool_]) -> Evidence:
        """The part of it that decisions need."""
        return Evidence(
            rows=rows,
            label=labels,
            expected=self.loo_mean,
            variance=self.loo_variance,
            error=self.loo_error,
            z=self.z,
            noise_variance=self.noise_variance,
            corrected=self.corrected,
            set_aside=set_aside,
        )
