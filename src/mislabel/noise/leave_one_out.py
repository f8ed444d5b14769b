"""Leave-one-out evidence for every label, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mislabel.linalg.contract import FloatArray


@dataclass(frozen=True, eq=False)
class LeaveOneOutEvidence:
    """What all other labels say about each label.

    mean : what they predict.
    variance : the variance of that prediction *without* the label's own noise variance (base noise included).
    error : label minus mean.
    z : error over the square root of variance.
    label_noise : posterior mean of the label's error, ``s_i a_i``.
    """

    mean: FloatArray
    variance: FloatArray
    error: FloatArray
    z: FloatArray
    label_noise: FloatArray


def trusted_variance(precision: FloatArray, noise: FloatArray, fixed_noise: FloatArray) -> FloatArray:
    """``v_i = 1 / b_i - s_i``, kept from cancelling below the fixed noise that it contains."""
    return np.maximum(1.0 / precision - noise, np.maximum(fixed_noise, np.finfo(float).eps / precision))


def leave_one_out_evidence(
    labels: FloatArray, noise: FloatArray, fixed_noise: FloatArray, weights: FloatArray, precision: FloatArray
) -> LeaveOneOutEvidence:
    """Evidence from ``a = C y`` and ``b = diag(C)``.

    The test statistic divides by ``sqrt(v_i)`` and not by ``1 / sqrt(b_i)``: at the optimum the latter ratio is at
    most one for every label (the paper's theorem), so it could never flag anything.
    """
    error = weights / precision
    variance = trusted_variance(precision, noise, fixed_noise)
    return LeaveOneOutEvidence(
        mean=labels - error,
        variance=variance,
        error=error,
        z=error / np.sqrt(variance),
        label_noise=noise * weights,
    )
