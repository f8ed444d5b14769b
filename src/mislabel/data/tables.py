"""From a mixed table to numbers: label, row ids and features."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.columns import LeftOut, choose_features, encodable_text
from mislabel.data.formats.contract import as_dates
from mislabel.errors import (
    InvalidFeaturesError,
    InvalidLabelsError,
    InvalidParameterError,
    MissingDependencyError,
    describe_rows,
)

#: Larger numbers overflow when they are squared and added.
_SQUARABLE = 1e100


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
    for name in [label, *([id] if id is not None else []), *drop, *(features or ())]:
        check_column(frame, name)
    rows = frame.index.to_numpy() if id is None else ids_of(frame, id)
    excluded = {label, *drop, *([id] if id is not None else [])}
    names = [name for name in (features if features is not None else frame.columns) if name not in excluded]
    numbers = numeric_label(frame[label], rows)
    used, left_out = choose_features(frame, numbers, names, asked_for=features is not None)
    if not used:
        raise nothing_left(left_out)
    encoded, encoder = FeatureEncoder.of(frame[used])
    return LabelledTable(encoded, encoder.names, numbers, rows, used, left_out)


def nothing_left(left_out: Sequence[LeftOut]) -> InvalidFeaturesError:
    """The error for a table without features."""
    reasons = "".join(f" {column.column!r} was left out: {column.reason}." for column in left_out[:5])
    return InvalidFeaturesError(
        f"no feature columns are left after taking out the label, the ids and dropped columns.{reasons}"
    )


class HasColumns(Protocol):
    """A table, in memory or not."""

    @property
    def columns(self) -> Any:
        """Names of its columns."""
        ...


def check_column(frame: HasColumns, name: str) -> None:
    """Complain about a column that is not there, naming the closest one that is."""
    if name not in frame.columns:
        columns = [str(column) for column in frame.columns]
        close = difflib.get_close_matches(str(name), columns, n=1)
        advice = f" Did you mean {close[0]!r}?" if close else f" Columns: {', '.join(columns[:20])}."
        raise InvalidParameterError(f"the table has no column {name!r}.{advice}")


def with_text_names(
    frame: pd.DataFrame, label: Any, id: Any, drop: Sequence[Any], features: Sequence[Any] | None
) -> tuple[pd.DataFrame, str, str | None, list[str], list[str] | None]:
    """A table whose columns are all called by different texts, and the names of columns likewise."""
    if not isinstance(frame, pd.DataFrame):
        raise InvalidParameterError(f"expected a pandas DataFrame, got {type(frame).__name__}.")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidFeaturesError(f"two columns of the table are called {twice!r}: rename one of them.")
    if names != list(frame.columns):
        frame = frame.set_axis(names, axis=1)
    asked = None if features is None else list(dict.fromkeys(str(name) for name in features))
    return frame, str(label), None if id is None else str(id), [str(name) for name in drop], asked


def ids_of(frame: pd.DataFrame, id: str) -> NDArray[Any]:
    """A column of ids, value by value: whole numbers stay so where some are missing."""
    column = frame[id]
    return np.asarray(column if isinstance(column.dtype, np.dtype) else column.astype(object))


def numeric_label(column: pd.Series, rows: NDArray[Any]) -> NDArray[np.float64]:
    """The labels as numbers; complains about values that are none, naming their rows."""
    return numeric_column(column, rows, "label")


def numeric_column(column: pd.Series, rows: NDArray[Any], what: str) -> NDArray[np.float64]:
    """A column as numbers; complains about values that are none, naming their rows."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise InvalidLabelsError(f"the {what} column {column.name!r} holds dates or times; numbers are needed.")
    if pd.api.types.is_complex_dtype(column):
        raise InvalidLabelsError(f"the {what} column {column.name!r} holds complex numbers; real ones are needed.")
    plain = column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column
    try:
        numbers = pd.to_numeric(plain, errors="coerce")
    except TypeError:  # lists and the like
        numbers = pd.to_numeric(plain.map(str), errors="coerce")
    values = np.array(numbers.to_numpy(dtype=float, na_value=np.nan))
    bad = np.flatnonzero(np.isnan(values) & column.notna().to_numpy())
    if bad.size:
        example = column.iloc[bad[0]]
        raise InvalidLabelsError(
            f"the {what} column {column.name!r} holds {bad.size} values that are not numbers ({describe_rows(rows[bad])}, "
            f"the first is {str(example)[:40]!r}): correct or drop these rows."
        )
    return values


class FeatureEncoder:
    """Turns columns of a table into numbers: those that are numbers stay as they are, others go through skrub.

    names : of the numbers that come out.
    """

    def __init__(self, pipeline: Any, names: list[str], sizes: dict[str, float]) -> None:
        self._pipeline, self.names, self._sizes = pipeline, names, sizes

    @classmethod
    def of(cls, frame: pd.DataFrame) -> tuple[NDArray[np.float64], FeatureEncoder]:
        """The numbers for a whole table, and the encoder."""
        sizes = _huge_sizes(frame)
        frame = _encodable(frame, sizes)
        if _all_numbers(frame) and not frame.isna().to_numpy().any():
            return frame.to_numpy(dtype=float), cls(None, [str(name) for name in frame.columns], sizes)
        pipeline = _mixed_encoder()
        encoded = np.asarray(pipeline.fit_transform(frame), dtype=float)
        return encoded, cls(pipeline, [str(name) for name in pipeline.get_feature_names_out()], sizes)

    @classmethod
    def learned_from(cls, sample: pd.DataFrame) -> FeatureEncoder:
        """An encoder for a table of which these are some rows; gaps may turn up in others."""
        sizes = _huge_sizes(sample)
        sample = _encodable(sample, sizes)
        if _all_numbers(sample):
            from sklearn.impute import SimpleImputer
            from sklearn.pipeline import make_pipeline

            pipeline = make_pipeline(SimpleImputer(strategy="median", add_indicator=True))
        else:
            pipeline = _mixed_encoder()
        pipeline.fit(sample)
        return cls(pipeline, [str(name) for name in pipeline.get_feature_names_out()], sizes)

    def encode(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The numbers for further rows."""
        frame = _encodable(frame, self._sizes)
        return np.asarray(frame if self._pipeline is None else self._pipeline.transform(frame), dtype=float)


def _huge_sizes(frame: pd.DataFrame) -> dict[str, float]:
    """What columns whose numbers are too large to be squared are divided by: a unit matters to no model here."""
    sizes = {}
    for name in frame.columns:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column) or _is_odd(column):
            continue
        values = np.abs(column.to_numpy(dtype=float, na_value=np.nan))
        size = float(np.max(values, where=np.isfinite(values), initial=0.0))
        if size > _SQUARABLE:
            sizes[name] = size
    return sizes


def _encodable(frame: pd.DataFrame, sizes: dict[str, float]) -> pd.DataFrame:
    """The columns in types that can be encoded: numbers that can be squared, dates, categories, text without odd characters."""
    columns = {name: _encodable_column(frame[name], sizes.get(name)) for name in frame.columns}
    return pd.DataFrame(columns, index=frame.index)


def _is_odd(column: pd.Series) -> bool:
    return pd.api.types.is_complex_dtype(column) or pd.api.types.is_timedelta64_dtype(column)


def _encodable_column(column: pd.Series, size: float | None) -> pd.Series:
    if _is_odd(column):
        raise InvalidFeaturesError(
            f"column {column.name!r} holds {column.dtype} values, which cannot be used as they are: turn them into numbers, "
            "or drop the column."
        )
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        infinite = np.flatnonzero(np.isinf(values))
        if infinite.size:
            raise InvalidFeaturesError(
                f"column {column.name!r} holds {infinite.size} infinite values ({describe_rows(column.index[infinite])}): "
                "empty these cells, or drop the rows or the column."
            )
        if size is not None:
            return pd.Series(values / size, index=column.index, name=column.name)
        if np.nanmax(np.abs(values), initial=0.0) > _SQUARABLE:
            raise InvalidFeaturesError(
                f"column {column.name!r} holds numbers beyond {_SQUARABLE:.0e} in some rows only: give it another unit."
            )
        return column
    if isinstance(column.dtype, pd.CategoricalDtype) and all(isinstance(item, str) for item in column.cat.categories):
        return column
    text = (
        column.astype(object)
        .where(column.notna(), None)
        .map(lambda value: None if value is None else encodable_text(value))
    )
    return as_dates(text)


def _all_numbers(frame: pd.DataFrame) -> bool:
    return all(pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype) for dtype in frame.dtypes)


def _mixed_encoder() -> Any:
    try:
        from skrub import TableVectorizer
    except ImportError:
        raise MissingDependencyError(
            "this table has text, categories, dates or missing values, which skrub encodes: pip install skrub."
        ) from None
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(TableVectorizer(), SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
