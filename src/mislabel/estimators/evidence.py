"""The last stage of a fit: what it says about every label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mislabel.decisions import Evidence
from mislabel.decisions.evidence import LARGEST, error_of, in_standard_deviations, squared
from mislabel.estimators.prepared import PreparedData
from mislabel.estimators.process import FittedProcess
from mislabel.likelihoods.atoms import Atoms
from mislabel.likelihoods.transforms import Transform
from mislabel.linalg.contract import FloatArray, IntArray

#: Predicts the points at these positions, with standard deviations.
PredictAt = Callable[[IntArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class KindOfLabels:
    """Labels in their own unit, and what kind of labels they are; see :class:`Evidence`."""

    rows: NDArray[Any]
    labels: FloatArray
    side: NDArray[np.int8]
    absurd: NDArray[np.bool_]
    apart: NDArray[np.bool_] | None
    chance: FloatArray | None
    transform: Transform
    half_step: float
    bounds: Atoms


@dataclass(frozen=True, eq=False)
class Expectations:
    """What others say of every label, on the scale of the fit.

    expected, variance : of the label. noise_variance : beyond the base noise. corrected : posterior mean of the clean label.
    """

    expected: FloatArray
    variance: FloatArray
    noise_variance: FloatArray
    corrected: FloatArray


def evidence_of_labels(process: FittedProcess, mean: FloatArray, data: PreparedData, predict_at: PredictAt) -> Evidence:
    """What a fit says about every label, in the order of the labels; ``mean`` is what was subtracted before.

    A missing label has the expectation of all that are there, with the variance of a clean label. Labels that were set aside
    took no part: they are predicted like missing ones. Nor did labels at an atom.
    """
    fitted, scale = process.fitted, process.scale
    labels, present = data.transform.forward(data.labels), data.present
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
    noise_variance = spread(process.in_given_order(fitted.noise) * scale**2, 0.0)
    kind = KindOfLabels(
        data.rows,
        data.labels,
        data.side,
        data.aside.mask(labels.size),
        data.apart,
        data.chance,
        data.transform,
        data.half_step,
        data.bounds,
    )
    return evidence_against(kind, Expectations(expected, variance, noise_variance, corrected))


def evidence_against(kind: KindOfLabels, found: Expectations) -> Evidence:
    """Labels compared with what others say of them.

    All that labels which were set aside differ by is error; those that stand apart have none. Where labels end, one that lies
    beyond is as far off as it is from the end, or from what is expected on this side of it.
    """
    bounds, aside, side = kind.bounds, kind.absurd, kind.side
    labels = kind.transform.forward(kind.labels)
    apart = np.zeros(labels.size, dtype=bool) if kind.apart is None else kind.apart
    corrected, noise_variance, variance = found.corrected.copy(), found.noise_variance.copy(), found.variance
    corrected[apart] = labels[apart]
    low, high = (float(end) for end in kind.transform.forward(np.array([bounds.low, bounds.high])))
    beyond = (labels < low) | (labels > high)
    expected = np.where(beyond, np.clip(found.expected, low, high), found.expected)
    error = error_of(labels, expected, side)
    error[apart] = 0.0
    error[aside] = np.clip(labels[aside], -LARGEST / 2, LARGEST / 2) - expected[aside]
    noise_variance[aside] = squared(error[aside])
    return Evidence(
        rows=kind.rows,
        label=labels,
        expected=expected,
        variance=variance,
        error=error,
        z=in_standard_deviations(error, variance),
        noise_variance=noise_variance,
        label_noise=np.where(aside, error, labels - np.clip(corrected, low, high)),
        corrected=np.clip(corrected, low, high),
        set_aside=aside,
        at_atom=kind.apart,
        chance=kind.chance,
        transform=kind.transform,
        half_step=kind.half_step,
        side=side,
        bounds=bounds,
    )
