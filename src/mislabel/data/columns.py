"""What each column of a table is good for: features are used; constants, ids and copies of the label are named and left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.column_types import plain_column

#: A text column is an id when at least this fraction of its filled cells occur once.
_UNIQUE_FRACTION = 0.98
#: Texts with more words than this on average are descriptions, not codes.
_WORDS_OF_A_CODE = 1.5
#: A column that goes with the label more closely than this was computed from it.
_COPY_CORRELATION = 1.0 - 1e-6
_COPY_RANK_CORRELATION = 0.9999
_COPY_EQUAL = 0.98
#: Spread over size below which a correlation is rounding.
_CONSTANT = 1e-12
_LEAST_ROWS_TO_JUDGE = 20
_LEAST_VALUES_TO_JUDGE = 10
#: A column of at most so many different whole numbers may be one of categories.
_FEW_WHOLE_NUMBERS = 12
#: A column with fewer values is not audited.
_LEAST_VALUES_TO_AUDIT = 50
_ID_NAME = re.compile(r"(?i)(^|[\W_])(id|ids|uuid|guid|index|idx|nr|no|number|key|row|unnamed: 0)([\W_]|$)")


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used as a feature, and why."""

    column: str
    kind: str  # "constant", "empty", "id", "leak"
    reason: str


def choose_features(
    frame: pd.DataFrame, label: NDArray[np.float64], names: Sequence[str], *, asked_for: bool
) -> tuple[list[str], list[LeftOut]]:
    """Split candidate columns into features and those to leave out.

    Columns that the user ``asked_for`` by name are only refused where they hold no information at all.
    """
    kept: list[str] = []
    left_out: list[LeftOut] = []
    for name in names:
        column = plain_column(frame[name])
        verdict = _no_information(column, frame[name])
        if verdict is None and not asked_for and len(frame) >= _LEAST_ROWS_TO_JUDGE:
            verdict = _copy_of_label(column, label) or _row_id(column, name)
        if verdict is None:
            kept.append(name)
        else:
            left_out.append(LeftOut(name, *verdict))
    return kept, left_out


def columns_to_audit(plain: pd.DataFrame) -> tuple[list[str], list[LeftOut]]:
    """Columns of measured quantities, each of which can be a label, and other columns of numbers with the reason against them."""
    chosen: list[str] = []
    left_out: list[LeftOut] = []
    for name in map(str, plain.columns):
        column = plain[name]
        if column.dtype != np.float64:
            continue
        verdict = _no_information(column, column) or _row_id(column, name) or _no_measurement(column)
        if verdict is None:
            chosen.append(name)
        else:
            left_out.append(LeftOut(name, *verdict))
    return chosen, left_out


def _no_measurement(column: pd.Series) -> tuple[str, str] | None:
    values = column.dropna().to_numpy(dtype=float)
    different = np.unique(values)
    if values.size < _LEAST_VALUES_TO_AUDIT:
        return "few", f"only {values.size} of its cells have a value, and {_LEAST_VALUES_TO_AUDIT} are needed"
    if different.size <= 2:
        return "classes", "it has two different values, which are classes"
    if different.size <= _FEW_WHOLE_NUMBERS and np.all(different == np.round(different)):
        return "classes", f"its {different.size} different values are whole numbers, as those of categories are"
    return None


def _no_information(column: pd.Series, as_given: pd.Series) -> tuple[str, str] | None:
    filled = column.notna()
    if not filled.any():
        return "empty", "it has no values"
    if filled.all() and bool((column == column.iloc[0]).all()):
        return "constant", f"every row has the value {_short(as_given.iloc[0])}"
    return None


def _short(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _copy_of_label(column: pd.Series, label: NDArray[np.float64]) -> tuple[str, str] | None:
    if column.dtype != np.float64:
        return None
    values = column.to_numpy(dtype=float)
    both = np.isfinite(values) & np.isfinite(label)
    if np.count_nonzero(both) < _LEAST_ROWS_TO_JUDGE or np.unique(values[both]).size < _LEAST_VALUES_TO_JUDGE:
        return None
    x, y = values[both], label[both]
    if np.ptp(y) == 0.0 or np.unique(y).size < _LEAST_VALUES_TO_JUDGE:
        return None
    equal = np.mean(np.isclose(x, y, rtol=1e-9, atol=0.0))
    if equal >= _COPY_EQUAL:
        return "leak", f"it equals the label in {100 * equal:.4g} % of the rows"
    x, y = (part / np.max(np.abs(part)) for part in (x, y))  # squares of huge numbers overflow
    if np.ptp(x) < _CONSTANT or np.ptp(y) < _CONSTANT:
        return None
    if abs(np.corrcoef(x, y)[0, 1]) >= _COPY_CORRELATION:
        return "leak", "it is the label in another unit"
    ranks = np.corrcoef(pd.Series(x).rank(), pd.Series(y).rank())[0, 1]
    if abs(ranks) >= _COPY_RANK_CORRELATION:
        return (
            "leak",
            f"it rises and falls with the label exactly (rank correlation {ranks:.5f}), as if computed from it",
        )
    return None


def _row_id(column: pd.Series, name: str) -> tuple[str, str] | None:
    filled = column.dropna()
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_complex_dtype(column) or len(filled) < 2:
        return None
    if pd.api.types.is_numeric_dtype(column):
        values = filled.to_numpy(dtype=float)
        if not np.all(values == np.round(values)):
            return None
        if len(filled) == len(column) and np.all(np.diff(values) == 1):
            return "id", "it counts the rows"
        if _ID_NAME.search(name) and np.unique(values).size >= _UNIQUE_FRACTION * len(column):
            return "id", "its name says id and its values differ from row to row"
        return None
    if filled.nunique() < _UNIQUE_FRACTION * len(column):
        return None
    sample = filled.iloc[:500]
    if np.mean([len(text.split()) for text in sample]) > _WORDS_OF_A_CODE:
        return None
    if pd.to_datetime(sample, errors="coerce", format="mixed", utc=True).notna().mean() > 0.9:
        return None
    return "id", "its values differ from row to row"
