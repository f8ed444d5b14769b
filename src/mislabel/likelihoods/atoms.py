"""Values that hold a fair share of the labels: zeros, detection limits, caps. They are a kind of label of their own.

A count that is mostly zero, a balance of nothing, a percentage at 100: no smooth model expects them, and by their errors they
would be called wrong as a block. They neither say how far other labels spread nor are judged by it.
"""

from __future__ import annotations

import numpy as np

from mislabel.decisions.evidence import BoolArray, FloatArray

#: An atom holds at least this share of the labels, and so many of them.
LEAST_SHARE = 0.05
LEAST_COUNT = 10
#: It is held so many times more often than the values beside it, of which so many on either side are looked at: the commonest of
#: coarse grades is no atom.
STANDS_OUT = 5.0
BESIDE = 3
#: On a scale of at most so many values only the lowest and the highest can be atoms.
COARSE = 20
#: Quantiles of the other labels that tell their range. A value further outside than this range is a fill value, not an atom.
RANGE = (0.05, 0.95)


def find_atoms(labels: FloatArray) -> FloatArray:
    """The values that are atoms, in ascending order; NaN labels do not count."""
    known = labels[np.isfinite(labels)]
    values, counts = np.unique(known, return_counts=True)
    if values.size < 2:
        return np.zeros(0)
    often = np.flatnonzero((counts >= LEAST_SHARE * known.size) & (counts >= LEAST_COUNT))
    if values.size <= COARSE:
        often = often[(often == 0) | (often == values.size - 1)]
    return np.array([values[k] for k in often if _stands_out(counts, int(k)) and _is_near(known, float(values[k]))])


def at_atoms(labels: FloatArray) -> BoolArray:
    """Which labels are at an atom."""
    return np.isin(labels, find_atoms(labels))


def _stands_out(counts: np.ndarray, position: int) -> bool:
    beside = np.concatenate(
        [counts[max(position - BESIDE, 0) : position], counts[position + 1 : position + 1 + BESIDE]]
    )
    return bool(counts[position] >= STANDS_OUT * np.median(beside))


def _is_near(labels: FloatArray, value: float) -> bool:
    others = labels[labels != value]
    low, high = np.quantile(others, RANGE)
    reach = high - low
    return bool(others.min() - reach <= value <= others.max() + reach)
