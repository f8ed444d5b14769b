"""Other readings of a table's columns: what its features would be if a group of rows had them in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

IntArray = NDArray[np.intp]

#: Share of a column's values that must lie between 0 and 1 for it to be a column of shares.
_MOSTLY = 0.9
#: Columns with fewer different values are codes.
_LEAST_VALUES = 5
#: Pairs of columns that are exchanged at most.
MOST_PAIRS = 20


def other_readings(frame: pd.DataFrame, groups: IntArray) -> dict[str, pd.DataFrame]:
    """Tables in which every group is read in another way, by a name in words.

    A share may be that of the other part, and two columns of numbers may have been exchanged. Groups for which a reading makes no
    sense, since values would lie where the column has none, stay as they are. groups : a number for each row, -1 for none.
    """
    numbers = [str(name) for name in frame.columns if frame[name].dtype == np.float64]
    numbers = [name for name in numbers if frame[name].nunique() >= _LEAST_VALUES]
    found = {}
    for name in numbers:
        values = frame[name].to_numpy()
        inside = (values >= 0.0) & (values <= 1.0)
        if np.mean(inside[np.isfinite(values)]) >= _MOSTLY:
            found[f"{name} is 1 - {name}"] = frame.assign(**{name: np.where(inside, 1.0 - values, values)})
    found.update(_exchanged(frame, numbers, groups))
    return found


def _exchanged(frame: pd.DataFrame, names: list[str], groups: IntArray) -> Iterator[tuple[str, pd.DataFrame]]:
    """Pairs of columns exchanged in groups whose values both columns could hold; those for most rows first."""
    pairs = []
    for one, other in combinations(names, 2):
        first, second = frame[one].to_numpy(), frame[other].to_numpy()
        fits = _fits(first, second, groups) & _fits(second, first, groups)
        if fits.any():
            pairs.append((int(np.count_nonzero(fits)), one, other, fits))
    for _, one, other, fits in sorted(pairs, key=lambda pair: -pair[0])[:MOST_PAIRS]:
        first, second = frame[one].to_numpy(), frame[other].to_numpy()
        changed = {one: np.where(fits, second, first), other: np.where(fits, first, second)}
        yield f"{one} and {other} are exchanged", frame.assign(**changed)


def _fits(values: NDArray[np.float64], other: NDArray[np.float64], groups: IntArray) -> NDArray[np.bool_]:
    """Rows of groups whose values all lie within those that the other column has in the other groups."""
    known = pd.DataFrame({"low": values, "high": values, "other low": other, "other high": other})
    ways = {"low": "min", "high": "max", "other low": "min", "other high": "max"}
    ends = known[groups >= 0].groupby(groups[groups >= 0]).agg(ways)
    low, high = ends["low"].to_numpy(), ends["high"].to_numpy()
    fits = (low >= _of_others(ends["other low"].to_numpy())) & (high <= -_of_others(-ends["other high"].to_numpy()))
    found = np.zeros(groups.size, dtype=bool)
    found[groups >= 0] = fits[np.searchsorted(ends.index.to_numpy(), groups[groups >= 0])]
    return found


def _of_others(lowest: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lowest value of all other groups, for each group."""
    order = np.argsort(lowest)
    found = np.full(lowest.size, lowest[order[0]])
    found[order[0]] = lowest[order[min(1, lowest.size - 1)]]
    return found
