"""Scores by name: larger means more suspicious. A new score is a function of Evidence and an entry in SCORES."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mislabel.decisions.evidence import LARGEST, Evidence, FloatArray, squared
from mislabel.errors import unknown_name


def odds_score(evidence: Evidence) -> FloatArray:
    """Logarithm of the odds that the label is wrong rather than right; ``|z|`` where nothing is known about wrong labels.

    Of two labels with the same z, the one that is further off scores higher: a small error can be many standard deviations where
    the others predict sharply, but it is not what wrong labels look like.
    """
    return z_score(evidence) if evidence.log_odds is None else evidence.log_odds


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
    z_squared = np.maximum(squared(evidence.z), 1.0)
    return np.asarray(z_squared - 1.0 - np.log(z_squared))


SCORES: dict[str, Callable[[Evidence], FloatArray]] = {
    "odds": odds_score,
    "z": z_score,
    "noise_variance": noise_variance_score,
    "loo_error": error_score,
    "gain": gain_score,
}


def score_labels(evidence: Evidence, name: str) -> FloatArray:
    """Score every label; missing ones no higher than any other, those that were set aside highest."""
    if name not in SCORES:
        raise unknown_name("score", name, list(SCORES))
    scores = SCORES[name](evidence)
    lowest = float(np.min(scores, where=~np.isnan(scores), initial=0.0))
    scores = np.nan_to_num(scores, nan=lowest, posinf=LARGEST)
    if evidence.log_odds is None:
        scores = np.where(evidence.stands_apart, lowest, scores)
    absurd = evidence.absurd
    if absurd.any():
        highest = min(2.0 * float(np.max(scores, where=~absurd, initial=0.0)), LARGEST)
        scores = np.where(absurd, np.maximum(np.maximum(scores, np.abs(evidence.z)), highest), scores)
    return scores
