"""The last stage of a fit: what it says about every label, in label units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mislabel.decisions import Evidence
from mislabel.decisions.atoms import at_atoms
from mislabel.decisions.evidence import LARGEST, in_standard_deviations, squared
from mislabel.estimators.fitting import Fitted
from mislabel.estimators.prepared import PreparedData
from mislabel.linalg.contract import FloatArray, IntArray

#: Predicts the points at these positions, with standard deviations.
PredictAt = Callable[[IntArray], tuple[FloatArray, FloatArray]]


def evidence_in_label_units(
    fitted: Fitted,
    scale: float,
    order: IntArray | None,
    data: PreparedData,
    predict_at: PredictAt,
) -> Evidence:
    """What a fit, of labels divided by ``scale``, says about every label, in label units and in the order of the labels.

    A missing label has the expectation of all that are there, with the variance of a clean label. Labels that were set aside
    took no part: they are predicted like missing ones, and all they differ by is error. ``order`` is that of the fit where it
    is not the order of ``data.present``.
    """
    labels, aside = data.labels, data.aside.positions
    present = data.present if order is None else data.present[order]
    absent = np.union1d(np.flatnonzero(np.isnan(labels)), aside)
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
    error = spread(loo.error * scale, np.nan)
    label_noise = spread(loo.label_noise * scale, np.nan)
    mean = spread(labels[present] - error[present], filled)
    variance = spread(loo.variance * scale**2, filled_variance)
    noise_variance, z = spread(fitted.noise * scale**2, 0.0), spread(loo.z, np.nan)
    error[aside] = label_noise[aside] = np.clip(labels[aside], -LARGEST / 2, LARGEST / 2) - mean[aside]
    z[aside] = in_standard_deviations(error[aside], variance[aside])
    noise_variance[aside] = squared(error[aside])
    return Evidence(
        rows=data.rows,
        label=labels,
        expected=mean,
        variance=variance,
        error=error,
        z=z,
        noise_variance=noise_variance,
        label_noise=label_noise,
        corrected=spread(labels[present] - label_noise[present], filled),
        set_aside=data.aside.mask(labels.size),
        at_atom=at_atoms(labels),
    )
