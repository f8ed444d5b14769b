"""What a noise variance of one's own should cost: a two-group view of the leave-one-out errors.

A clean label's error is N(0, v_i); a wrong one's is N(0, v_i + spread). Expectation-maximisation finds the fraction of
wrong labels and the spread of their errors; the price at which freeing a label pays is the one at which both groups are
equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mislabel.linalg.contract import FloatArray

#: Below this many labels, explanations that blame the majority are not believed if there is another.
FEW_LABELS = 60
#: Price before anything is known of the wrong labels: a label frees itself from |z| = 2.52 on.
DEFAULT_PRICE = 3.5
PRICE_RANGE = (2.0, 10.0)
#: Twice the log-likelihood ratio from which two kinds of labels count as hidden in the base noise (chi-square, 99 %).
HIDDEN_EVIDENCE = 9.2
#: Above this fraction of noisy labels the clean ones no longer form the majority that the base noise relies on.
MAJORITY = 0.5
#: Where clean labels are of two kinds themselves, the wide one may well be the larger half, but hardly more than this.
LARGE_MAJORITY = 0.7
#: Ratio of variances from which two groups are different kinds of labels rather than one heavy-tailed one.
APART = 10.0
_ITERATIONS = 60


@dataclass(frozen=True, eq=False)
class TwoGroups:
    """Fraction of wrong labels, variance of their errors, and each label's probability and log-odds of being wrong."""

    fraction: float
    spread: float
    probability: FloatArray
    log_odds: FloatArray

    def price(self, variance: FloatArray) -> float:
        """The likelihood gain at which a label of typical leave-one-out variance is as likely wrong as clean."""
        ratio = self.spread / float(np.median(variance))
        z_squared = (np.log1p(ratio) + 2.0 * np.log((1.0 - self.fraction) / self.fraction)) * (1.0 + ratio) / ratio
        z_squared = max(float(z_squared), 1.5)
        return float(np.clip(z_squared - 1.0 - np.log(z_squared), *PRICE_RANGE))


def fit_two_groups(error: FloatArray, variance: FloatArray) -> TwoGroups:
    """Fit by expectation-maximisation; starts at a fifth of the labels wrong, with errors as large as the largest."""
    squared = error**2
    fraction = 0.2
    spread = max(float(np.mean(squared)), 10.0 * float(np.median(variance)))
    least = 1.0 / (2.0 * error.size + 2.0)
    for _ in range(_ITERATIONS):
        log_odds = _log_odds(squared, variance, fraction, spread)
        probability = 0.5 * (1.0 + np.tanh(0.5 * log_odds))
        fraction = float(np.clip(probability.mean(), least, 0.95))
        shrink = spread / (variance + spread)
        moment = (shrink * error) ** 2 + shrink * variance
        # Errors that cannot be told from clean ones must not pull the spread of the wrong ones down to zero.
        spread = max(float(probability @ moment / probability.sum()), 2.0 * float(np.median(variance)))
    log_odds = _log_odds(squared, variance, fraction, spread)
    return TwoGroups(fraction, spread, 0.5 * (1.0 + np.tanh(0.5 * log_odds)), log_odds)


def _log_odds(squared: FloatArray, variance: FloatArray, fraction: float, spread: float) -> FloatArray:
    wrong = variance + spread
    prior = np.log(fraction / (1.0 - fraction))
    return np.asarray(prior - 0.5 * np.log(wrong / variance) + 0.5 * squared * (1.0 / variance - 1.0 / wrong))


class ScaleMixture(NamedTuple):
    """Two normal groups of different spread.

    evidence : twice the log-likelihood ratio against a single group; near zero for errors of one kind.
    wide_fraction : share of the group with the larger spread.
    ratio : variance of the wide group over that of the narrow one.
    """

    evidence: float
    wide_fraction: float
    ratio: float

    @property
    def mostly_wide(self) -> bool:
        """Whether the wide group is the large majority, and beyond doubt another kind than the narrow one."""
        return self.evidence > HIDDEN_EVIDENCE and self.wide_fraction > LARGE_MAJORITY and self.ratio > APART


def fit_scale_mixture(z: FloatArray) -> ScaleMixture:
    """Are right and wrong labels both hidden in what passes for noise? Fitted by expectation-maximisation."""
    squared = z**2
    overall = float(squared.mean())
    if overall == 0.0:
        return ScaleMixture(0.0, 0.0, 1.0)
    fraction, narrow, wide = 0.5, 0.2 * overall, 2.0 * overall
    mixed = np.zeros_like(z)
    for _ in range(4 * _ITERATIONS):
        log_narrow = np.log1p(-fraction) - 0.5 * (np.log(narrow) + squared / narrow)
        log_wide = np.log(fraction) - 0.5 * (np.log(wide) + squared / wide)
        mixed = np.logaddexp(log_narrow, log_wide)
        share = np.exp(log_wide - mixed)
        fraction = float(np.clip(share.mean(), 1e-3, 1.0 - 1e-3))
        wide = max(float(share @ squared / share.sum()), 1e-12 * overall)
        narrow = max(float((1.0 - share) @ squared / (1.0 - share).sum()), 1e-6 * overall)
    single = -0.5 * (np.log(overall) + squared / overall)
    return ScaleMixture(2.0 * float(np.sum(mixed) - np.sum(single)), fraction, wide / narrow)
