"""Where the noise is: suspects and z by the values of each column, so that a bad day or a bad instrument shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, kruskal

from mislabel._common.dates import read_dates
from mislabel._common.spreading import evenly_spread
from mislabel.decisions.evidence import FloatArray

MOST_BINS = 12
#: Rows that are looked at, at least and at most: fewer of wide tables.
SPREAD_ROWS = (20_000, 200_000)
MOST_CELLS = 10_000_000
#: How far edges of bins may move to become readable, as a share of the narrower bin beside them.
ROUNDED_BY = 0.2
_LEAST_ROWS = 20
_LEAST_SUSPECTS = 5
#: Name of the bin of rows in which the cell is missing.
NO_VALUE = "no value"
#: Name of the pseudo-column that stands for the order of the rows.
FILE_ORDER = "position in the file"


@dataclass(frozen=True)
class NoiseBin:
    """Rows with similar values of one column."""

    name: str
    count: int
    suspects: int
    mean_abs_z: float


@dataclass(frozen=True)
class FeatureNoise:
    """How the noise depends on one column; a small ``p_value`` says that it does."""

    column: str
    kind: str  # "number", "category", "date", "order"
    bins: list[NoiseBin]
    p_value: float


class HasColumn(Protocol):
    """A table, in memory or not, of which a column can be had."""

    def __getitem__(self, name: str, /) -> Any:
        """One column."""


def noise_by_feature(
    frame: HasColumn, columns: Sequence[str], z: FloatArray, suspect: NDArray[np.bool_]
) -> list[FeatureNoise]:
    """One entry per column whose values can be grouped, and one for the order of the rows; the clearest first.

    Of many rows some are looked at, spread evenly.
    """
    found = []
    at = evenly_spread(len(z), int(np.clip(MOST_CELLS // max(len(columns), 1), *SPREAD_ROWS)))
    z, suspect = z[at], suspect[at]
    order = pd.Series(at, name=FILE_ORDER)
    spread = ((name, frame[name].iloc[at].reset_index(drop=True)) for name in columns)
    for name, column in chain(spread, [(FILE_ORDER, order)]):
        kind, codes, names = grouped(column)
        if name == FILE_ORDER:
            kind = "order"
        if names and (missing := column.isna().to_numpy()).any():
            # A cell that is missing may say more of the row than any value does.
            codes, names = np.where(missing, len(names), codes), [*names, NO_VALUE]
        entry = _entry(name, kind, codes, names, z, suspect)
        if entry is not None:
            found.append(entry)
    return sorted(found, key=lambda entry: entry.p_value)


def _entry(
    name: str, kind: str, codes: NDArray[np.intp], names: list[str], z: FloatArray, suspect: NDArray[np.bool_]
) -> FeatureNoise | None:
    known = np.isfinite(z) & (codes >= 0)
    if np.count_nonzero(known) < _LEAST_ROWS or len(names) < 2:
        return None
    size = np.abs(z)
    bins, groups, counts = [], [], []
    for code, label in enumerate(names):
        member = known & (codes == code)
        count = int(np.count_nonzero(member))
        if not count:
            continue
        hits = int(np.count_nonzero(suspect & member))
        bins.append(NoiseBin(label, count, hits, float(np.mean(np.minimum(size[member], 10.0)))))
        groups.append(size[member])
        counts.append((hits, count - hits))
    if len(bins) < 2:
        return None
    return FeatureNoise(name, kind, bins, _p_value(groups, np.array(counts)))


def _p_value(groups: list[FloatArray], counts: NDArray[np.int_]) -> float:
    """Whether |z| or the share of suspects differs between the bins; the smaller of two tests, doubled."""
    together = np.concatenate(groups)
    p_values = [float(kruskal(*groups).pvalue) if np.any(together != together[0]) else 1.0]
    if counts[:, 0].sum() >= _LEAST_SUSPECTS and counts[:, 1].any():
        p_values.append(float(chi2_contingency(counts).pvalue))
    return min(1.0, len(p_values) * float(np.nanmin(p_values)))


def grouped(column: pd.Series) -> tuple[str, NDArray[np.intp], list[str]]:
    """The kind of a column, codes of at most MOST_BINS groups of its values (-1: missing), and their names."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_complex_dtype(column):
        return _categories(column)
    if pd.api.types.is_datetime64_any_dtype(column):
        return _dates(column)
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if np.unique(values[np.isfinite(values)]).size <= MOST_BINS:
            return _categories(column)
        return "number", *_number_bins(values)
    dates = read_dates(column)
    if dates is not None and dates.nunique() > MOST_BINS:
        return _dates(dates)
    return _categories(column)


def _categories(column: pd.Series) -> tuple[str, NDArray[np.intp], list[str]]:
    text = column.astype(object).where(column.notna(), None).map(lambda value: None if value is None else str(value))
    counts = text.value_counts()
    if len(counts) > 0.5 * len(column):
        return "category", np.full(len(column), -1, dtype=np.intp), []
    top = list(counts.index[: MOST_BINS - 1]) if len(counts) > MOST_BINS else sorted(counts.index, key=_natural)
    code_of = {name: code for code, name in enumerate(top)}
    codes = np.array([code_of.get(name, -1) for name in text], dtype=np.intp)
    if len(counts) > MOST_BINS:
        codes[(codes < 0) & text.notna().to_numpy()] = len(top)
        top = [*top, f"{len(counts) - len(top)} others"]
    return "category", codes, top


def _natural(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def _number_bins(values: FloatArray) -> tuple[NDArray[np.intp], list[str]]:
    """Bins with about as many values each, between numbers that can be read."""
    known = np.isfinite(values)
    if np.count_nonzero(known) < 2:
        return _no_bins(values)
    edges, whole = readable_edges(_quantiles(values[known])), np.all(values[known] == np.round(values[known]))
    if whole and np.all(edges == np.round(edges)):
        # A bin ends before the next one begins.
        edges[0], edges[-1] = values[known].min(), values[known].max()
        edges = np.unique(edges)
        last = [*(edges[1:-1] - 1.0), edges[-1]]
        pairs = zip(edges[:-1], last, strict=True)
        names = [readable(low) if low == high else f"{readable(low)} to {readable(high)}" for low, high in pairs]
        return _codes(values, known, edges), names
    codes = _codes(values, known, edges)
    return codes, [f"{readable(low)} to {readable(high)}" for low, high in pairwise(edges)]


def _quantiles(known: FloatArray) -> FloatArray:
    # A quarter of each: differences of the largest numbers overflow.
    return np.unique(4.0 * np.quantile(known / 4.0, np.linspace(0.0, 1.0, MOST_BINS + 1)))


def readable_edges(edges: FloatArray) -> FloatArray:
    """Edges with as few digits as keep each of them near where it was, seen from its neighbours; the outer ones move outwards."""
    if edges.size < 2:
        return edges
    gaps = np.diff(edges)
    room = ROUNDED_BY * np.minimum(np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0]))
    inner = [_rounded(edge, by, np.round) for edge, by in zip(edges[1:-1], room[1:-1], strict=True)]
    return np.unique([_rounded(edges[0], room[0], np.floor), *inner, _rounded(edges[-1], room[-1], np.ceil)])


def _rounded(value: float, room: float, move: Callable[[Any], Any]) -> float:
    """The number with the fewest digits that ``move`` makes of a value without leaving its room."""
    if not np.isfinite(value) or not np.isfinite(room) or room <= 0.0:
        return float(value)
    for digits in range(-int(np.floor(np.log10(room))) - 1, 16):
        found = _scaled(move, value, digits)
        if np.isfinite(found) and abs(found - value) <= room:
            return found
    return float(value)


def _scaled(move: Callable[[Any], Any], value: float, digits: int) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        power = np.float64(10.0) ** abs(digits)
        # Dividing by a power of ten gives the nearest number that can be written with so many digits.
        return float(move(value * power) / power) if digits >= 0 else float(move(value / power) * power)


def readable(value: float) -> str:
    """A number as people write it: no exponent where it can be helped, groups of three digits in long ones."""
    size = abs(value)
    if value == 0.0 or 1e-4 <= size < 1e9:
        whole, _, rest = np.format_float_positional(value, trim="-").partition(".")
        long = f"{int(whole):,}" if size >= 1e4 else whole
        return f"{long}.{rest}" if rest else long
    return f"{value:.4g}"


def _dates(column: pd.Series) -> tuple[str, NDArray[np.intp], list[str]]:
    # Whole seconds: nanoseconds reach from 1677 to 2262 only.
    utc = pd.to_datetime(column, utc=True).dt.as_unit("s")
    seconds = np.where(utc.isna(), np.nan, utc.astype("int64").to_numpy().astype(np.float64))
    return "date", *_quantile_bins(seconds, lambda edge: str(np.datetime64(int(edge), "s").astype("datetime64[D]")))


def _quantile_bins(values: FloatArray, show: Callable[[float], str]) -> tuple[NDArray[np.intp], list[str]]:
    known = np.isfinite(values)
    if np.count_nonzero(known) < 2:
        return _no_bins(values)
    edges = _quantiles(values[known])
    return _codes(values, known, edges), [f"{show(low)} to {show(high)}" for low, high in pairwise(edges)]


def _no_bins(values: FloatArray) -> tuple[NDArray[np.intp], list[str]]:
    return np.full(values.size, -1, dtype=np.intp), []


def _codes(values: FloatArray, known: NDArray[np.bool_], edges: FloatArray) -> NDArray[np.intp]:
    codes = np.full(values.size, -1, dtype=np.intp)
    codes[known] = np.clip(np.searchsorted(edges, values[known], side="right") - 1, 0, max(edges.size - 2, 0))
    return codes
