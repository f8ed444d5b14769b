"""From a mixed table to its audit in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from mislabel.data.tables import read_labelled_table
from mislabel.estimators.regressor import LabelNoiseRegressor


def audit(
    frame: pd.DataFrame,
    label: str,
    fdr: float = 0.05,
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    y_err: Any = None,
    score: str = "z",
    threshold: str = "fdr",
    cutoff: float | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> pd.DataFrame:
    """Find the wrong values in one column of a table.

    Parameters
    ----------
    frame : table with numeric, categorical, date or text columns.
    label : the column to check.
    fdr : expected fraction of clean labels among those called suspect.
    id : column with row ids; else the dataframe's index.
    drop, features : columns to leave out, or the only ones to use.
    y_err : known standard deviations of the labels: an array, or the name of a column.
    score, threshold, cutoff, confidence : see :meth:`LabelNoiseRegressor.audit`.
    options : passed to :class:`LabelNoiseRegressor`.
    """
    if isinstance(y_err, str):
        drop = [*drop, y_err]
    table = read_labelled_table(frame, label, id=id, drop=drop, features=features)
    errors = frame[y_err].to_numpy(dtype=float) if isinstance(y_err, str) else y_err
    named = pd.DataFrame(table.features, index=pd.Index(table.rows))
    model = LabelNoiseRegressor(**options).fit(named, table.label, y_err=errors)
    return model.audit(fdr, score=score, threshold=threshold, cutoff=cutoff, confidence=confidence)
