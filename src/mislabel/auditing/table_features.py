"""How the columns of an audited table become features: those of its own rows, and those of new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer

from mislabel._common.dates import read_dates
from mislabel.auditing.frames import is_frame, pandas_of
from mislabel.data.column_names import check_column, with_text_names
from mislabel.data.column_types import ColumnType, plain_column, type_of
from mislabel.data.labels import FloatArray
from mislabel.data.plain_columns import PlainColumns
from mislabel.data.tables import FeatureEncoder


@dataclass(frozen=True, eq=False)
class TableFeatures:
    """What was learned of the columns that an audit used.

    plain : how they come in plain types. encoder : how these become numbers.
    types : those of the columns as the mean model gets them, where it picks some by name, else None.
    """

    plain: PlainColumns
    used: list[str]
    encoder: FeatureEncoder
    types: dict[str, ColumnType] | None

    def takes(self, rows: Any) -> bool:
        """Whether these are rows of a table, rather than numbers already."""
        return is_frame(rows)

    def of_rows(self, rows: Any) -> tuple[FloatArray, pd.DataFrame | None]:
        """The features of new rows as numbers, and what else the mean model needs; the rows are a frame of any kind."""
        frame = with_text_names(pandas_of(rows))
        for name in self.used:
            check_column(frame, name)
        columns = self.plain.apply(frame[self.used])[0]
        return self.encoder.encode(columns), None if self.types is None else named_columns(columns, self.types)


def named_columns(plain: pd.DataFrame, types: dict[str, ColumnType] | None = None) -> pd.DataFrame:
    """Plain columns as models that pick them by name get them, of ``types`` where these are known.

    Dates that are written as text are dates, whether or not somebody has read them before. A gap in a text is NaN, as in a
    table that pandas read.
    """
    return plain.assign(**{name: _named(plain[name], (types or {}).get(name)) for name in plain.columns})


def types_of(named: pd.DataFrame) -> dict[str, ColumnType]:
    """The type of every column."""
    return {str(name): type_of(named[name]) for name in named.columns}


def _named(column: pd.Series, wanted: ColumnType | None) -> pd.Series:
    if column.dtype != object:
        return column
    dates = None if wanted == "text" else read_dates(column)
    if dates is not None:
        return plain_column(dates)
    return plain_column(column, wanted) if wanted == "times" else column.where(column.notna(), np.nan)


def picks_columns(mean: Any) -> bool:
    """Whether a mean model has a part that may pick columns by name, and so wants the table rather than numbers.

    Of scikit-learn's own transformers these are ColumnTransformer and FunctionTransformer; of all others nobody knows.
    """
    if not hasattr(mean, "get_params"):
        return False
    return any(_may_pick(part) for part in (mean, *mean.get_params(deep=True).values()))


def _may_pick(part: Any) -> bool:
    if isinstance(part, ColumnTransformer | FunctionTransformer):
        return True
    return hasattr(part, "transform") and not type(part).__module__.startswith("sklearn.")
