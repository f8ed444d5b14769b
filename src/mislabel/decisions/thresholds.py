"""Thresholds by name: which labels are called suspect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit
from scipy.stats import false_discovery_control, norm, t

from mislabel._common.number_kinds import is_number
from mislabel.decisions.evidence import BoolArray, Evidence, FloatArray
from mislabel.decisions.scores import knows_wrong_labels, odds_score
from mislabel.errors import InvalidParameterError, unknown_name

#: Where more than this share of all labels would be called wrong, wrong ones must be off by so many standard deviations of a
#: typical clean one, and by more if this share of them is off to the same side: else the model does not fit, and none is.
MOST_SUSPECTS = 0.2
CLEARLY_WRONG = 4.0
CLEARLY_WRONG_ON_ONE_SIDE = 30.0
SAME_SIDE = 0.85
EVEN_ODDS = 0.5


def p_values(evidence: Evidence) -> FloatArray:
    """Two-sided p-value of z: how often a clean label would look at least this wrong; zero for labels that were set aside."""
    size = np.abs(evidence.z)
    tail = norm.sf(size) if np.isinf(evidence.degrees) else t.sf(size, evidence.degrees)
    return np.where(evidence.absurd, 0.0, np.where(np.isnan(evidence.z), 1.0, 2.0 * tail))


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
    what wrong labels are like; else Benjamini-Hochberg's adjustment of the p-values. Labels that are missing, set aside or at
    an atom are not counted as tests.
    """
    tested = ~np.isnan(evidence.z) & ~evidence.absurd & ~evidence.unjudged
    adjusted = np.where(evidence.absurd, 0.0, 1.0)
    if not tested.any():
        return adjusted
    if not knows_wrong_labels(evidence):
        adjusted[tested] = false_discovery_control(p_values(evidence)[tested], method="bh")
        return adjusted
    clean = expit(-odds_score(evidence)[tested])
    order = np.argsort(clean, kind="stable")
    share = np.empty(clean.size)
    share[order] = np.cumsum(clean[order]) / np.arange(1, clean.size + 1)
    # A label that is rather clean than wrong is not called wrong for the company it is in.
    adjusted[tested] = np.where(clean > EVEN_ODDS, clean, share)
    return adjusted


def by_false_discovery_rate(evidence: Evidence, score: FloatArray, cutoff: float) -> BoolArray:
    """At most a fraction ``cutoff`` of those called suspect are expected to be clean; none where the model does not fit."""
    if not 0.0 < _number(cutoff, "fdr") < 1.0:
        raise InvalidParameterError(f"fdr must lie between 0 and 1, got {cutoff!r}; 0.05 is a common choice.")
    called = q_values(evidence) <= cutoff
    return called & evidence.absurd if does_not_fit(evidence, called) else called


def does_not_fit(evidence: Evidence, called: BoolArray) -> bool:
    """Whether so many labels would be called wrong that it is the model which is wrong.

    That is so where few of them are clearly off, or where nearly all are off to the same side: then something that no column
    mentions is added to some labels, or taken off them.
    """
    if not knows_wrong_labels(evidence) or np.mean(called) <= MOST_SUSPECTS:
        return False
    ratio = evidence.wrong_std / float(np.sqrt(np.median(evidence.variance)))
    above = float(np.mean(evidence.error[called] > 0.0))
    one_sided = max(above, 1.0 - above) > SAME_SIDE
    return ratio < (CLEARLY_WRONG_ON_ONE_SIDE if one_sided else CLEARLY_WRONG)


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
