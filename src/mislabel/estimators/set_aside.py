"""Labels beyond any plausible scale: fill values, sentinels and typing errors that no fit should have to look at.

A label of 1e12 among labels of about 1 is wrong, whatever the features say; but squares of it leave no digits for the others.
Such labels are set aside before anything is scaled or fitted. They take part as labels that are absent: the others predict
them, and nothing depends on how absurd they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mislabel.errors import describe_rows
from mislabel.linalg.contract import FloatArray, IntArray

#: A label is absurd from so many times the others' spread on, if there is a gap of this factor below it; ...
FAR = 1e6
GAP = 1e3
#: ... and from so many times on without a gap: squares of it leave no digits for the others.
FAR_BEYOND_DIGITS = 1e9
#: With fewer labels there is no telling which of them are the others.
LEAST_LABELS = 5
#: At most so many different values, or this part of all labels, are absurd: more are labels of another kind, like rain among
#: days without any. A value that is repeated, like a fill value, counts once.
HANDFUL = 3
FEW = 0.003
#: At most this part of all labels, repetitions included.
MOST = 0.3
#: Quantiles of the deviations from the median that serve as their spread: the first that is not zero. High ones, so that labels
#: over many decades and many equal ones have the spread of their tail.
SPREAD_QUANTILES = (0.9, 0.95, 0.99, 1.0)
#: Differences below this part of the labels' size are rounding, and no spread.
ROUNDING = 1e-12
_NAMED = 5


@dataclass(frozen=True, eq=False)
class SetAside:
    """Positions of labels that were set aside, in ascending order, and the range of all others."""

    positions: IntArray
    low: float = float("nan")
    high: float = float("nan")

    @classmethod
    def among(cls, labels: FloatArray) -> SetAside:
        """Look for absurd labels; NaN labels do not count."""
        present = np.flatnonzero(~np.isnan(labels))
        values = labels[present]
        # Quarters cannot overflow when they are subtracted, and only ratios matter.
        deviation = np.abs(values / 4.0 - np.median(values / 4.0)) if values.size else values
        order = np.argsort(deviation, kind="stable")
        cut = _first_absurd(values[order], deviation[order])
        outer = np.sort(present[order[cut:]])
        if not outer.size:
            return cls(outer)
        inner = values[order[:cut]]
        return cls(outer, float(inner.min()), float(inner.max()))

    def mask(self, size: int) -> NDArray[np.bool_]:
        """Which of ``size`` labels were set aside."""
        found = np.zeros(size, dtype=bool)
        found[self.positions] = True
        return found

    def sentence(self, rows: NDArray[np.generic], labels: FloatArray) -> str:
        """Which labels were set aside and why, for people; empty if none was."""
        if not self.positions.size:
            return ""
        values = labels[self.positions]
        told = ", ".join(f"{value:.6g}" for value in dict.fromkeys(values[:_NAMED].tolist()))
        more = ", ..." if np.unique(values).size > len(set(values[:_NAMED].tolist())) else ""
        one = self.positions.size == 1
        return (
            f"{describe_rows(rows[self.positions], _NAMED)} ({told}{more}) {'is' if one else 'are'} far outside the range of all "
            f"other labels ({self.low:.6g} to {self.high:.6g}): set aside before the fit and predicted from the others"
        )


@dataclass(frozen=True)
class Plausible:
    """Labels further than ``reach`` from ``middle`` are beyond any plausible scale; both in quarters, which cannot overflow."""

    middle: float = 0.0
    reach: float = float("inf")

    @classmethod
    def beside(cls, labels: FloatArray) -> Plausible:
        """For one label more beside these, none of which was set aside; NaN ones do not count."""
        values = labels[~np.isnan(labels)] / 4.0
        if values.size + 1 < LEAST_LABELS:
            return cls()
        middle = float(np.median(values))
        deviation = np.sort(np.abs(values - middle))
        spread, largest = _spread(deviation, abs(middle), True), float(deviation[-1])
        if not spread > 0.0:
            return cls()
        reach = max(FAR * spread, GAP * largest)
        if spread >= largest / FAR_BEYOND_DIGITS:
            reach = min(reach, FAR_BEYOND_DIGITS * spread)
        return cls(middle, reach)

    def excludes(self, labels: FloatArray) -> NDArray[np.bool_]:
        """Which labels are to be set aside; no missing ones."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(labels / 4.0 - self.middle) > self.reach)


def _first_absurd(values: FloatArray, deviation: FloatArray) -> int:
    """Where the absurd labels begin, both arrays being in the order of ``deviation``; their size if there are none."""
    size = values.size
    if size < LEAST_LABELS:
        return size
    middle = abs(float(np.median(values / 4.0)))
    few = max(HANDFUL, int(FEW * size))
    begins = np.append(True, values[1:] != values[:-1])
    beyond = np.cumsum(begins[::-1])[::-1]  # different values from here on
    cuts = np.arange(size - int(MOST * size), size)
    cuts = cuts[begins[cuts] & (beyond[cuts] <= few)]
    gap = deviation[cuts] / GAP > deviation[cuts - 1]
    huge = deviation[cuts] / FAR_BEYOND_DIGITS > _spread(deviation[: size - int(MOST * size)], middle, True)
    for cut, with_gap in zip(map(int, cuts[gap | huge]), gap[gap | huge].tolist(), strict=True):
        spread = _spread(deviation[:cut], middle, size - cut <= few)
        if not spread > 0.0:
            continue
        if with_gap and deviation[cut] / FAR > spread:
            return cut
        if deviation[cut] / FAR_BEYOND_DIGITS > spread >= deviation[cut - 1] / FAR_BEYOND_DIGITS:
            return cut
    return size


def _spread(deviation: FloatArray, middle: float, few: bool) -> float:
    """Spread of labels by their deviations, ascending, from the median; that itself where all are equal and others are few."""
    floor = ROUNDING * middle
    for quantile in SPREAD_QUANTILES:
        spread = float(deviation[int(np.ceil(quantile * deviation.size)) - 1])
        if spread > floor:
            return spread
    return middle if few else 0.0
