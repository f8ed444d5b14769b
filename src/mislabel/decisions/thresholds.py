"""Thresholds by name: which labels are called suspect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit
from scipy.stats import false_discovery_control, norm, t

from mislabel._common.number_kinds import is_number
from mislabel.decisions.evidence import BoolArray, Evidence, FloatArray
from mislabel.errors import InvalidParameterError, unknown_name

#: A label that is rather right than wrong is not called wrong for the company it is in.
EVEN_ODDS = 0.5


def p_values(evidence: Evidence) -> FloatArray:
    """Two-sided p-value of z: how often a right label would look at least this wrong; zero for labels that were set aside.

    For a label at an atom, how often a right label of such a row is there.
    """
    size = np.abs(evidence.z)
    chance = 1.0 if evidence.chance is None else evidence.chance
    tail = norm.sf(size) if np.isinf(evidence.degrees) else t.sf(size, evidence.degrees)
    found = np.where(evidence.stands_apart, chance, 2.0 * tail)
    return np.where(evidence.absurd, 0.0, np.where(np.isnan(evidence.z), 1.0, found))


def half_width(evidence: Evidence, confidence: float) -> FloatArray:
    """Half the width of the interval that holds a clean label with this probability."""
    if not 0.0 < _number(confidence, "confidence") < 1.0:
        raise InvalidParameterError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    return np.asarray(_largest_z(confidence, evidence.degrees) * np.sqrt(evidence.variance))


def coverage(z: FloatArray, degrees: float, shares: FloatArray) -> FloatArray:
    """How many labels lie inside intervals that should hold given shares of clean ones."""
    size = np.sort(np.abs(z[np.isfinite(z)]))
    return np.asarray(np.searchsorted(size, _largest_z(shares, degrees), side="right") / max(size.size, 1))


def _largest_z(share: float | FloatArray, degrees: float) -> FloatArray:
    """The |z| that this share of clean labels stays below."""
    upper = 0.5 + np.asarray(share) / 2.0
    return np.asarray(norm.ppf(upper) if np.isinf(degrees) else t.ppf(upper, degrees))


def q_values(evidence: Evidence) -> FloatArray:
    """The expected share of clean labels among all that look at least as wrong.

    It is the mean of their local false-discovery rates, the probabilities that each of them is clean, where the errors told
    what wrong labels are like; else Benjamini-Hochberg's adjustment of the p-values, and labels at an atom are not counted.
    Labels that are missing or set aside are never counted.
    """
    tested = ~np.isnan(evidence.z) & ~evidence.absurd
    if evidence.log_odds is None:
        tested &= ~evidence.stands_apart
    adjusted = np.where(evidence.absurd, 0.0, 1.0)
    if not tested.any():
        return adjusted
    if evidence.log_odds is None:
        adjusted[tested] = false_discovery_control(p_values(evidence)[tested], method="bh")
        return adjusted
    clean = expit(-evidence.log_odds[tested])
    order = np.argsort(clean, kind="stable")
    share = np.empty(clean.size)
    share[order] = np.cumsum(clean[order]) / np.arange(1, clean.size + 1)
    adjusted[tested] = np.where(clean > EVEN_ODDS, clean, share)
    return adjusted


def by_false_discovery_rate(evidence: Evidence, score: FloatArray, cutoff: float) -> BoolArray:
    """At most a fraction ``cutoff`` of those called suspect are expected to be right."""
    if not 0.0 < _number(cutoff, "fdr") < 1.0:
        raise InvalidParameterError(f"fdr must lie between 0 and 1, got {cutoff!r}; 0.05 is a common choice.")
    return q_values(evidence) <= cutoff


def by_rank(evidence: Evidence, score: FloatArray, cutoff: float) -> BoolArray:
    """The ``cutoff`` labels of highest score."""
    if not float(_number(cutoff, "the top-k cut-off")).is_integer() or cutoff < 0:
        raise InvalidParameterError(f"top-k needs a whole number >= 0, got {cutoff!r}.")
    if cutoff > score.size:
        raise InvalidParameterError(
            f"top-k asks for {int(cutoff)} suspects, but there are only {score.size} labels: give a smaller number."
        )
    chosen = np.zeros(score.size, dtype=bool)
    chosen[np.argsort(-score, kind="stable")[: int(cutoff)]] = True
    return chosen & ~np.isnan(evidence.z)


def by_z(evidence: Evidence, score: FloatArray, cutoff: float) -> BoolArray:
    """Labels more than ``cutoff`` standard deviations from what is expected, and those that were set aside."""
    if not _number(cutoff, "the z cut-off") > 0:
        raise InvalidParameterError(f"the z cut-off must be positive, got {cutoff!r}; 3 is a common choice.")
    return (np.abs(np.nan_to_num(evidence.z, nan=0.0)) > cutoff) | evidence.absurd


def _number(cutoff: float, what: str) -> float:
    if not is_number(cutoff):
        raise InvalidParameterError(f"{what} must be a number, got {cutoff!r}.")
    return float(cutoff)


THRESHOLDS: dict[str, Callable[[Evidence, FloatArray, float], BoolArray]] = {
    "fdr": by_false_discovery_rate,
    "top-k": by_rank,
    "z": by_z,
}


def suspects(evidence: Evidence, score: FloatArray, threshold: str, cutoff: float) -> BoolArray:
    """Which labels to call suspect."""
    if threshold not in THRESHOLDS:
        raise unknown_name("threshold", threshold, list(THRESHOLDS))
    return THRESHOLDS[threshold](evidence, score, cutoff)
