"""How large an error would have to be to be noticed: errors are planted into labels that are trusted, and judged like all others.

The labels of a few rows are moved by so many standard deviations of a right label, to find from which number on most of them are
called wrong. What description of all errors goes with that, and where its cut is, then says for every row how far its label
would have to be from what is expected there. Where errors are not described (there are too few), p-values say it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from scipy.stats import norm, t

from mislabel._common.spreading import evenly_spread
from mislabel.decisions.calibration import Calibration, calibrate
from mislabel.decisions.evidence import BoolArray, Evidence, FloatArray, IntArray
from mislabel.decisions.thresholds import EVEN_ODDS, q_values

#: Share of the false discovery rate by which one label more is told in Benjamini and Hochberg's rule: half, for two sides.
_ONE_SIDE = 0.5

#: Errors are planted into this share of the labels, and into so many at least.
PLANTED = 0.02
LEAST_PLANTED = 5
#: So often, into other labels.
PLANTINGS = 2
#: Sizes of planted errors, in standard deviations of a right label: from the first at which most are noticed.
SIZES = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 50.0, 100.0)
MOSTLY = 0.8
#: An error counts as noticeable where so many labels of the row with that error would be called wrong.
POWER = 0.8
#: Limits of rows that are looked at, in standard deviations: further off, a label is no odder than at the last.
SEARCHED = tuple(np.geomspace(1.0, 300.0, 90).tolist())
#: Labels, spread evenly, among which errors are planted; more tell the same.
MOST_LABELS = 600
#: Rows beyond this many take the limits of others with the same spread.
MOST_SEARCHED = 20_000


@dataclass(frozen=True, eq=False)
class DetectionLimits:
    """The least error that would be noticed, in label units and in the order of the labels; infinite where none would be.

    size : of planted errors that were noticed, in standard deviations of a right label; infinite for none.
    """

    limit: FloatArray
    size: float


def detection_limits(evidence: Evidence, calibration: Calibration, suspect: BoolArray, fdr: float) -> DetectionLimits:
    """From evidence that is not calibrated, how it is calibrated, and which labels are called wrong at the rate ``fdr``."""
    known = np.flatnonzero(np.isfinite(evidence.z))
    if not calibration.adjusted:
        return _by_p_values(evidence, int(np.count_nonzero(suspect)), known.size, fdr)
    some = known if known.size <= MOST_LABELS else known[evenly_spread(known.size, MOST_LABELS)]
    size, cut, found = _noticed(evidence.some(some), calibration, suspect[some], fdr)
    if found is None:
        return DetectionLimits(np.full(evidence.label.size, np.inf), np.inf)
    return DetectionLimits(_limits(evidence, found, cut, size), size)


def _by_p_values(evidence: Evidence, called: int, known: int, fdr: float) -> DetectionLimits:
    """Where Benjamini and Hochberg's rule would call one label more wrong."""
    if not known:
        return DetectionLimits(np.full(evidence.label.size, np.inf), np.inf)
    size = float(norm.isf(_ONE_SIDE * fdr * min(called + 1, known) / known) + norm.ppf(POWER))
    sizes = np.full(evidence.label.size, size)
    return DetectionLimits(_in_label_units(evidence, np.sqrt(evidence.variance), sizes, sizes), size)


@dataclass(frozen=True, eq=False)
class _Planting:
    """Errors of one size in a few trusted labels: how many of them are noticed, the cut beside them, and what describes all."""

    noticed: float
    cut: float
    calibration: Calibration


def _noticed(
    evidence: Evidence, calibration: Calibration, suspect: BoolArray, fdr: float
) -> tuple[float, float, Calibration | None]:
    """The least planted errors that are noticed, in standard deviations, the cut beside them, and what describes them then."""
    trusted = np.flatnonzero(~(suspect | evidence.absurd | evidence.stands_apart | evidence.errors.is_limit))
    count = max(LEAST_PLANTED, round(PLANTED * trusted.size))
    if trusted.size <= PLANTINGS * count:
        return np.inf, np.inf, None
    std = np.sqrt(calibration.spread(evidence.variance, evidence.expected))
    # Spread over all that is promised, so that the rows stand for all others.
    ordered = trusted[np.argsort(evidence.variance[trusted], kind="stable")]
    places = np.linspace(0, ordered.size - 1, PLANTINGS * count + 2).round().astype(int)[1:-1]
    plantings: dict[int, list[_Planting]] = {}

    def is_noticed(step: int) -> bool:
        chosen = [ordered[places[first::PLANTINGS]] for first in range(PLANTINGS)]
        plantings[step] = [_planted(evidence, rows, SIZES[step] * std[rows], fdr) for rows in chosen]
        return bool(np.mean([planting.noticed for planting in plantings[step]]) >= MOSTLY)

    # Larger errors are noticed at least as well.
    step = bisect_left(range(len(SIZES)), True, key=is_noticed)
    if step == len(SIZES):
        return np.inf, np.inf, None
    strictest = max(plantings[step], key=lambda planting: planting.cut)
    return SIZES[step], strictest.cut, strictest.calibration


def _planted(evidence: Evidence, chosen: IntArray, sizes: FloatArray, fdr: float) -> _Planting:
    """Labels that are off by so much more, up and down in turn, judged like all others."""
    known = np.flatnonzero(~(evidence.absurd | evidence.stands_apart))
    label, error = evidence.label.copy(), evidence.error.copy()
    added = np.where(np.arange(chosen.size) % 2, 1.0, -1.0) * sizes
    label[chosen] += added
    error[chosen] += added
    planted = replace(evidence, label=label, error=error, z=error / np.sqrt(evidence.variance))
    right = int(np.count_nonzero(evidence.stands_apart))
    found = calibrate(planted.errors[known], rival=True, others_right=right)
    judged = found.apply(planted)
    called = q_values(judged) <= fdr
    return _Planting(float(np.mean(called[chosen])), _cut(judged, called, fdr), found)


def _cut(judged: Evidence, called: BoolArray, fdr: float) -> float:
    """Log odds from which one more label would be called wrong."""
    if judged.log_odds is None:
        return np.inf
    right = expit(-judged.log_odds[called])
    room = fdr * (right.size + 1) - right.sum()
    least = float(np.clip(room, fdr, EVEN_ODDS))
    return float(np.log1p(-least) - np.log(least))


def _limits(evidence: Evidence, calibration: Calibration, cut: float, least: float) -> FloatArray:
    """For every row, how far a label must be off; the larger of both sides, in label units.

    It is no less than the ``least`` standard deviations at which planted errors were noticed: smaller ones would not have told
    what wrong labels are like.
    """
    size = evidence.label.size
    rows = np.arange(size)
    if size > MOST_SEARCHED:
        order = np.argsort(evidence.variance, kind="stable")
        rows = order[np.linspace(0, size - 1, MOST_SEARCHED).round().astype(int)]
    part = replace(evidence.some(rows), side=None, at_atom=None, set_aside=None)
    std = np.sqrt(calibration.spread(part.variance, part.expected))
    quantile = float(norm.ppf(POWER) if np.isinf(calibration.degrees) else t.ppf(POWER, calibration.degrees))
    down, up = (np.maximum(_least_size(part, calibration, cut, std, sign) + quantile, least) for sign in (-1.0, 1.0))
    if rows.size < size:
        down, up = (np.interp(evidence.variance, evidence.variance[rows], sizes) for sizes in (down, up))
        std = np.sqrt(calibration.spread(evidence.variance, evidence.expected))
    return _in_label_units(evidence, std, down, up)


def _in_label_units(evidence: Evidence, std: FloatArray, down: FloatArray, up: FloatArray) -> FloatArray:
    """Errors of so many standard deviations downwards or upwards, the larger of both; infinite where one is."""
    centre, found = evidence.shown(evidence.expected), np.zeros(std.size)
    for sign, sizes in ((-1.0, down), (1.0, up)):
        finite = np.where(np.isfinite(sizes), sizes, 0.0)
        off = np.abs(evidence.transform.inverse(evidence.expected + sign * finite * std) - centre)
        found = np.maximum(found, np.where(np.isfinite(sizes), off, np.inf))
    return found


def _least_size(part: Evidence, calibration: Calibration, cut: float, std: FloatArray, sign: float) -> FloatArray:
    """Standard deviations from which labels off to one side are called wrong; infinite where none is."""
    found = np.full(std.size, np.inf)
    for size in SEARCHED:
        left = np.flatnonzero(np.isinf(found))
        if not left.size:
            break
        some = part.some(left)
        label = some.expected + sign * size * std[left]
        log_odds = calibration.believed(calibration.log_odds(replace(some, label=label).errors))
        found[left[log_odds >= cut]] = size
    return found
