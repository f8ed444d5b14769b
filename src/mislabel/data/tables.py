"""From a mixed table to numbers: label, row ids and features."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.columns import LeftOut, choose_features
from mislabel.errors import (
    InvalidFeaturesError,
    InvalidLabelsError,
    InvalidParameterError,
    MissingDependencyError,
    describe_rows,
)


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Numeric features, label and the user's own row ids.

    used : the columns of the table that the features were made from.
    left_out : columns that were not used, and why.
    """

    features: NDArray[np.float64]
    feature_names: list[str]
    label: NDArray[np.float64]
    rows: NDArray[Any]
    used: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def read_labelled_table(
    frame: pd.DataFrame,
    label: str,
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> LabelledTable:
    """Split a dataframe into label, ids and numeric features.

    Constant columns, row ids and copies of the label are left out. Numeric columns are taken as they are; tables with
    categories, dates, text or missing values go through skrub's TableVectorizer.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InvalidParameterError(f"expected a pandas DataFrame, got {type(frame).__name__}.")
    for name in [label, *([id] if id is not None else []), *drop, *(features or ())]:
        check_column(frame, name)
    rows = frame.index.to_numpy() if id is None else frame[id].to_numpy()
    excluded = {label, *drop, *([id] if id is not None else [])}
    names = [name for name in (features if features is not None else frame.columns) if name not in excluded]
    numbers = _numeric_label(frame[label], rows)
    used, left_out = choose_features(frame, numbers, names, asked_for=features is not None)
    if not used:
        reasons = "".join(f" {column.column!r} was left out: {column.reason}." for column in left_out[:5])
        raise InvalidFeaturesError(
            f"no feature columns are left after taking out the label, the ids and dropped columns.{reasons}"
        )
    return LabelledTable(*_numeric_features(frame[used]), numbers, rows, used, left_out)


def check_column(frame: pd.DataFrame, name: str) -> None:
    """Complain about a column that is not there, naming the closest one that is."""
    if name not in frame.columns:
        columns = [str(column) for column in frame.columns]
        close = difflib.get_close_matches(str(name), columns, n=1)
        advice = f" Did you mean {close[0]!r}?" if close else f" Columns: {', '.join(columns[:20])}."
        raise InvalidParameterError(f"the table has no column {name!r}.{advice}")


def _numeric_label(column: pd.Series, rows: NDArray[Any]) -> NDArray[np.float64]:
    numbers = pd.to_numeric(column, errors="coerce")
    bad = np.flatnonzero(numbers.isna().to_numpy() & column.notna().to_numpy())
    if bad.size:
        example = column.iloc[bad[0]]
        raise InvalidLabelsError(
            f"the label column {column.name!r} holds {bad.size} values that are not numbers ({describe_rows(rows[bad])}, "
            f"the first is {str(example)[:40]!r}): correct or drop these rows."
        )
    return numbers.to_numpy(dtype=float)


def _numeric_features(frame: pd.DataFrame) -> tuple[NDArray[np.float64], list[str]]:
    plain = all(pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype) for dtype in frame.dtypes)
    if plain and not frame.isna().to_numpy().any():
        return frame.to_numpy(dtype=float), [str(name) for name in frame.columns]
    try:
        from skrub import TableVectorizer
    except ImportError:
        raise MissingDependencyError(
            "this table has text, categories, dates or missing values; install the table extra to encode them: "
            'pip install "mislabel[tables]"'
        ) from None
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    encoder = make_pipeline(TableVectorizer(), SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    encoded = np.asarray(encoder.fit_transform(frame), dtype=float)
    return encoded, [str(name) for name in encoder.get_feature_names_out()]
