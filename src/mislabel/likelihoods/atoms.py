"""Values that hold a fair share of the labels: zeros, detection limits, caps. They are a kind of label of their own.

A count that is mostly zero, a balance of nothing, a percentage at 100: no smooth model expects them, and by their errors they
would be called wrong as a block. Such labels stand apart: whether a label is at an atom is one question, which features may
answer, and where it is beside the atoms another, which the others beside them answer. Where hardly any label lies beyond an
atom it may be a bound instead: then a label there says only that the number behind it lies there or beyond (Tobin 1958).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

#: An atom holds at least this share of the labels, and so many of them.
LEAST_SHARE = 0.05
LEAST_COUNT = 10
#: It is held so many times more often than any of the values beside it, of which so many on either side are looked at: the
#: commonest of coarse grades is no atom.
STANDS_OUT = 5.0
BESIDE = 3
#: Where at most so many common values, each of which so many labels have, hold most labels, others than the lowest and the
#: highest of them must stand out further.
COARSE, COMMON, MOSTLY = 20, 0.01, 0.9
STANDS_OUT_INSIDE = 10.0
#: Quantiles of the other labels that tell their range. A value further outside than this range is a fill value, not an atom.
RANGE = (0.05, 0.95)
#: An atom is a bound where at most this share of the labels, and of those at the atom, lies beyond it: these may be wrong.
BEYOND = 0.1
BEYOND_OF_ATOM = 0.5


@dataclass(frozen=True)
class Atoms:
    """Values that many labels have; ``low`` and ``high`` are those that may be bounds, infinite where there is none."""

    values: tuple[float, ...] = ()
    low: float = -np.inf
    high: float = np.inf

    @classmethod
    def of(cls, labels: FloatArray) -> Atoms:
        """Of some labels; NaN ones do not count."""
        known = labels[np.isfinite(labels)]
        values, low, high = tuple(find_atoms(known).tolist()), -np.inf, np.inf
        for value in values:
            most = min(BEYOND * known.size, BEYOND_OF_ATOM * np.count_nonzero(known == value))
            if np.count_nonzero(known < value) <= most:
                low = max(low, value)
            elif np.count_nonzero(known > value) <= most:
                high = min(high, value)
        return cls(values, low, high)

    @property
    def has_bounds(self) -> bool:
        """Whether one of them may be a bound."""
        return bool(np.isfinite(self.low) or np.isfinite(self.high))

    @property
    def bounds(self) -> Atoms:
        """Only those that may be bounds, taken for such."""
        return Atoms(tuple(value for value in (self.low, self.high) if np.isfinite(value)), self.low, self.high)

    def side(self, labels: FloatArray) -> NDArray[np.int8]:
        """-1 for labels at the lower bound, 1 at the upper one, else 0."""
        return np.asarray((labels == self.high).astype(np.int8) - (labels == self.low).astype(np.int8))

    def holds(self, labels: FloatArray) -> BoolArray:
        """Which labels are at one of them."""
        return np.isin(labels, self.values)


def find_atoms(labels: FloatArray) -> FloatArray:
    """The values that are atoms, in ascending order; NaN labels do not count."""
    known = labels[np.isfinite(labels)]
    values, counts = np.unique(known, return_counts=True)
    if values.size < 2:
        return np.zeros(0)
    often = np.flatnonzero((counts >= LEAST_SHARE * known.size) & (counts >= LEAST_COUNT))
    common = np.flatnonzero(counts >= COMMON * known.size)
    if common.size <= COARSE and counts[common].sum() >= MOSTLY * known.size:
        inside = np.setdiff1d(often, common[[0, -1]])
        often = np.setdiff1d(often, [k for k in inside if not _stands_out(counts, int(k), STANDS_OUT_INSIDE)])
    return np.array([values[k] for k in often if _stands_out(counts, int(k)) and _is_near(known, float(values[k]))])


def _stands_out(counts: np.ndarray, position: int, times: float = STANDS_OUT) -> bool:
    beside = np.concatenate(
        [counts[max(position - BESIDE, 0) : position], counts[position + 1 : position + 1 + BESIDE]]
    )
    return bool(counts[position] >= times * np.max(beside))


def _is_near(labels: FloatArray, value: float) -> bool:
    others = labels[labels != value]
    low, high = np.quantile(others, RANGE)
    reach = high - low
    return bool(others.min() - reach <= value <= others.max() + reach)
