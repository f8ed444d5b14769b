"""Scores by name: larger means more suspicious. A new score is a function of Evidence and an entry in SCORES."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mislabel.decisions.evidence import Evidence, FloatArray
from mislabel.errors import unknown_name


def noise_variance_score(evidence: Evidence) -> FloatArray:
    """The learned noise variance: the paper's own score. All trusted labels tie at zero."""
    return evidence.noise_variance


def error_score(evidence: Evidence) -> FloatArray:
    """Absolute leave-one-out error, in label units."""
    return np.abs(evidence.error)


def z_score(evidence: Evidence) -> FloatArray:
    """Absolute leave-one-out error in units of what the other labels can predict."""
    return np.abs(evidence.z)


def gain_score(evidence: Evidence) -> FloatArray:
    """Fall of -2 log likelihood when the label gets its best own variance; zero inside one standard deviation."""
    z_squared = np.maximum(evidence.z**2, 1.0)
    return np.asarray(z_squared - 1.0 - np.log(z_squared))


SCORES: dict[str, Callable[[Evidence], FloatArray]] = {
    "z": z_score,
    "noise_variance": noise_variance_score,
    "loo_error": error_score,
    "gain": gain_score,
}


def score_labels(evidence: Evidence, name: str) -> FloatArray:
    """Score every label; missing labels score zero."""
    if name not in SCORES:
        raise unknown_name("score", name, list(SCORES))
    return np.nan_to_num(SCORES[name](evidence), nan=0.0, posinf=np.finfo(float).max)
