"""From a mixed table to numbers: label, row ids and features."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.column_names import check_column
from mislabel.data.column_types import ColumnType, plain_column, type_of
from mislabel.data.columns import LeftOut, choose_features
from mislabel.data.labels import numbers_in
from mislabel.data.lists import NO_LISTS, ListColumns
from mislabel.errors import (
    InvalidFeaturesError,
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
    numbers = numbers_in(frame[label], rows, "label")
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


def ids_of(frame: pd.DataFrame, id: str) -> NDArray[Any]:
    """A column of ids, value by value: whole numbers stay so where some are missing."""
    column = frame[id]
    return np.asarray(column if isinstance(column.dtype, np.dtype) else column.astype(object))


class FeatureEncoder:
    """Turns columns of a table into numbers: those that are numbers stay as they are, lists of names become one column per name,
    others go through skrub.

    names : of the numbers that come out. types : which type each column has, in these rows and in further ones. sizes : what
    columns of huge numbers are divided by. lists : the columns that hold lists. pipeline : what makes numbers of plain columns;
    None where they are numbers.
    """

    def __init__(self, types: dict[str, ColumnType], sizes: dict[str, float], lists: ListColumns = NO_LISTS) -> None:
        self.names = list(lists.types(types))
        self.pipeline: Any = None
        self.types, self.sizes, self.lists = types, sizes, lists
        self._left_out: frozenset[str] = frozenset()
        self._kept: NDArray[np.intp] | None = None

    @property
    def plain_types(self) -> dict[str, ColumnType]:
        """Which type each plain column has, once lists are columns of numbers."""
        return self.lists.types(self.types)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> tuple[NDArray[np.float64], FeatureEncoder]:
        """The numbers for a whole table, and the encoder."""
        encoder, plain = cls._prepared(frame)
        if _all_numbers(plain) and not plain.isna().to_numpy().any():
            return plain.to_numpy(dtype=float), encoder
        encoder.pipeline = _mixed_encoder(encoder.plain_types)
        encoded = np.asarray(encoder.pipeline.fit_transform(plain), dtype=float)
        encoder.names = [str(name) for name in encoder.pipeline.get_feature_names_out()]
        return encoded, encoder

    @classmethod
    def learned_from(cls, sample: pd.DataFrame) -> FeatureEncoder:
        """An encoder for a table of which these are some rows; gaps may turn up in others."""
        encoder, plain = cls._prepared(sample)
        if _all_numbers(plain):
            from sklearn.impute import SimpleImputer
            from sklearn.pipeline import make_pipeline

            encoder.pipeline = make_pipeline(SimpleImputer(strategy="median", add_indicator=True))
        else:
            encoder.pipeline = _mixed_encoder(encoder.plain_types)
        encoder.pipeline.fit(plain)
        encoder.names = [str(name) for name in encoder.pipeline.get_feature_names_out()]
        return encoder

    @property
    def columns(self) -> list[str]:
        """The columns that numbers are made from."""
        return [name for name in self.types if name not in self._left_out]

    def encode(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The numbers for further rows."""
        gaps = pd.Series(np.nan, index=frame.index)
        columns = {
            name: plain_column(gaps if name in self._left_out else frame[name], kind)
            for name, kind in self.types.items()
        }
        plain = self._encodable(columns, frame.index)
        found = np.asarray(plain if self.pipeline is None else self.pipeline.transform(plain), dtype=float)
        return found if self._kept is None else found[:, self._kept]

    def without(self, left_out: Collection[str]) -> tuple[FeatureEncoder, NDArray[np.intp]]:
        """This encoder less the numbers of some columns, which further rows need not have, and which numbers are kept."""
        dropped = {output for name in left_out for output in self._outputs_of(name)}
        kept = np.flatnonzero([name not in dropped for name in self.names])
        found = copy(self)
        found._left_out, found._kept = frozenset(left_out), kept
        found.names = [self.names[position] for position in kept]
        return found, kept

    def _outputs_of(self, column: str) -> list[str]:
        """The names of the numbers that a column gives, and of those that say where it has gaps."""
        outputs = [column]
        if self.pipeline is not None and hasattr(self.pipeline[0], "input_to_outputs_"):
            outputs = [str(name) for name in self.pipeline[0].input_to_outputs_[column]]
        return [*outputs, *(f"missingindicator_{name}" for name in outputs)]

    @classmethod
    def _prepared(cls, frame: pd.DataFrame) -> tuple[FeatureEncoder, pd.DataFrame]:
        columns = {str(name): plain_column(frame[name]) for name in frame.columns}
        for name, column in columns.items():
            if pd.api.types.is_complex_dtype(column):
                raise InvalidFeaturesError(
                    f"column {name!r} holds {column.dtype} values, which cannot be used as they are: turn them into "
                    "numbers, or drop the column."
                )
        lists = ListColumns.of(pd.DataFrame(columns, index=frame.index))
        encoder = cls({name: type_of(column) for name, column in columns.items()}, _huge_sizes(columns), lists)
        return encoder, encoder._encodable(columns, frame.index)

    def _encodable(self, columns: dict[str, pd.Series], index: pd.Index) -> pd.DataFrame:
        """Plain columns with numbers that can be squared, and numbers in place of lists."""
        scaled = {
            name: _squarable(column, self.sizes.get(name)) if self.types[name] == "numbers" else column
            for name, column in columns.items()
        }
        return self.lists.apply(pd.DataFrame(scaled, index=index))


def _huge_sizes(columns: dict[str, pd.Series]) -> dict[str, float]:
    """What columns whose numbers are too large to be squared are divided by: a unit matters to no model here."""
    sizes = {}
    for name, column in columns.items():
        if type_of(column) == "numbers":
            values = np.abs(column.to_numpy(dtype=float))
            size = float(np.max(values, where=np.isfinite(values), initial=0.0))
            if size > _SQUARABLE:
                sizes[name] = size
    return sizes


def _squarable(column: pd.Series, size: float | None) -> pd.Series:
    """Numbers, divided by ``size`` if there is one; complains about those that no model can calculate with."""
    values = column.to_numpy(dtype=float)
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


def _all_numbers(frame: pd.DataFrame) -> bool:
    return all(dtype == np.float64 for dtype in frame.dtypes)


def _mixed_encoder(types: dict[str, ColumnType]) -> Any:
    """Gaps filled, text and times as numbers, all columns of spread one."""
    try:
        from skrub import TableVectorizer
    except ImportError:
        raise MissingDependencyError(
            "this table has text, categories, dates or missing values, which skrub encodes: pip install skrub."
        ) from None
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Numbers pass it by: it would round them to 32 bits, in which 20240101 and 20240102 are the same.
    numbers = [name for name, kind in types.items() if kind == "numbers"]
    vectorizer = TableVectorizer(specific_transformers=[("passthrough", numbers)] if numbers else ())
    # Long lists of texts are projected at random: always in the same way.
    vectorizer.set_params(high_cardinality__random_state=0)
    return make_pipeline(vectorizer, SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
