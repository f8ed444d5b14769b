"""The last stage of a fit: what it says about every label."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mislabel.decisions import Evidence
from mislabel.decisions.evidence import LARGEST, in_standard_deviations, squared
from mislabel.estimators.prepared import PreparedData
from mislabel.estimators.process import FittedProcess
from mislabel.linalg.contract import FloatArray, IntArray

#: Predicts the points at these positions, with standard deviations.
PredictAt = Callable[[IntArray], tuple[FloatArray, FloatArray]]


def evidence_of_labels(process: FittedProcess, mean: FloatArray, data: PreparedData, predict_at: PredictAt) -> Evidence:
    """What a fit says about every label, in the order of the labels; ``mean`` is what was subtracted before.

    A missing label has the expectation of all that are there, with the variance of a clean label. Labels that were set aside
    took no part: they are predicted like missing ones, and all they differ by is error. Nor did labels at an atom. Where labels
    end, one that lies beyond is as far off as it is from the end, or from what is expected on this side of it.
    """
    fitted, scale, bounds = process.fitted, process.scale, data.bounds
    labels, aside, present = data.transform.forward(data.labels), data.aside.positions, data.present
    apart = np.zeros(labels.size, dtype=bool) if data.apart is None else data.apart
    absent = np.flatnonzero(np.isnan(labels) | apart | data.aside.mask(labels.size))
    filled, filled_variance = np.zeros(0), np.zeros(0)
    if absent.size:
        filled, filled_std = predict_at(absent)
        filled_variance = filled_std**2 + fitted.base * scale**2

    def spread(values: FloatArray, missing: FloatArray | float) -> FloatArray:
        full = np.empty(labels.size)
        full[absent] = missing
        full[present] = values
        data.copies.follow(full)
        return full

    loo = fitted.evidence
    expected = spread(process.loo_mean + mean, filled)
    variance = spread(process.loo_variance, filled_variance)
    own_noise = process.in_given_order(loo.label_noise) * scale
    corrected = spread(data.fit_labels - own_noise, filled)
    corrected[apart] = labels[apart]
    noise_variance = spread(process.in_given_order(fitted.noise) * scale**2, 0.0)
    low, high = (float(end) for end in data.transform.forward(np.array([bounds.low, bounds.high])))
    beyond = (labels < low) | (labels > high)
    expected = np.where(beyond, np.clip(expected, low, high), expected)
    error = labels - expected
    # A label that is a limit is off by as much as is expected on its other side.
    error = np.where(data.side < 0, np.minimum(labels - expected, 0.0), error)
    error = np.where(data.side > 0, np.maximum(labels - expected, 0.0), error)
    error[apart] = 0.0
    error[aside] = np.clip(labels[aside], -LARGEST / 2, LARGEST / 2) - expected[aside]
    noise_variance[aside] = squared(error[aside])
    return Evidence(
        rows=data.rows,
        label=labels,
        expected=expected,
        variance=variance,
        error=error,
        z=in_standard_deviations(error, variance),
        noise_variance=noise_variance,
        label_noise=np.where(data.aside.mask(labels.size), error, labels - np.clip(corrected, low, high)),
        corrected=np.clip(corrected, low, high),
        set_aside=data.aside.mask(labels.size),
        at_atom=data.apart,
        chance=data.chance,
        transform=data.transform,
        half_step=data.half_step,
        side=data.side,
        bounds=bounds,
    )
