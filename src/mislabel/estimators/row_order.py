"""An order of rows that depends on what they say, not on where they stand.

Subsets and folds are drawn by position, and rounding errors depend on it. Drawn from rows in an order of their own, they do not
change when a table is sorted or shuffled; and since it is the labels that order them, nor when features or labels are given in
other units.
"""

from __future__ import annotations

import numpy as np

from mislabel.linalg.contract import FloatArray, IntArray


def by_content(points: FloatArray, labels: FloatArray, index: IntArray) -> IntArray:
    """The order of the rows ``index`` by label; rows with equal labels by their features."""
    values = labels[index]
    order = np.argsort(values, kind="stable")
    if values.size > 1 and not np.diff(values[order]).all():
        order = np.lexsort((*points[index].T[::-1], values))
    return np.asarray(order, dtype=np.intp)
