"""What is known of every row beside its features: predictions, groups and weights, from arrays or columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mislabel.auditing.inputs import Prepared
from mislabel.data.labels import FloatArray, numbers_in
from mislabel.errors import InvalidParameterError


@dataclass(frozen=True, eq=False)
class BesideRows:
    """One entry per row each, or None.

    errors : known standard deviations of the label less the prediction. side : of labels that are only limits.
    """

    errors: Any = None
    side: Any = None
    predictions: FloatArray | None = None
    groups: Any = None
    sample_weight: FloatArray | None = None


def beside_rows(prepared: Prepared) -> BesideRows:
    """Arrays as they are, columns read."""
    beside = prepared.request.beside
    given = _column(prepared, "censored")
    side: Any = prepared.side if given is None else given
    if beside.is_empty:
        return BesideRows(prepared.errors, side)
    predictions = _numbers(prepared, "predictions")
    if predictions is not None and np.isnan(predictions).any():
        gone = np.flatnonzero(np.isnan(predictions))
        raise InvalidParameterError(
            f"{gone.size} predictions are missing (the first in row {prepared.rows[gone[0]]}): every row needs one from a "
            "model that has not seen its label, for example by sklearn.model_selection.cross_val_predict."
        )
    errors, std = prepared.errors, _numbers(prepared, "prediction_std")
    if std is not None:
        own = np.zeros(len(prepared.rows)) if errors is None else np.asarray(errors, dtype=float)
        errors = np.hypot(own, std)
    weights = _numbers(prepared, "sample_weight")
    if weights is not None and not np.all(weights >= 0.0):
        raise InvalidParameterError("sample_weight must be numbers that are not negative, one per row.")
    return BesideRows(errors, side, predictions, _groups(prepared), weights)


def _column(prepared: Prepared, name: str) -> pd.Series | None:
    """What was given under a name, one entry per row."""
    given = getattr(prepared.request.beside, name)
    if given is None:
        return None
    column = prepared.frame[given] if isinstance(given, str) else pd.Series(np.asarray(given))
    if len(column) != len(prepared.rows):
        raise InvalidParameterError(
            f"{name} has {len(column)} entries for {len(prepared.rows)} rows: one each is needed."
        )
    return column.rename(given if isinstance(given, str) else name)


def _numbers(prepared: Prepared, name: str) -> FloatArray | None:
    column = _column(prepared, name)
    if column is None:
        return None
    return numbers_in(column, prepared.rows, name.replace("_", " "), numbers=prepared.request.numbers)


def _groups(prepared: Prepared) -> Any:
    column = _column(prepared, "groups")
    if column is None:
        return None
    # Rows without a group are one of their own together.
    return pd.factorize(column.astype(object))[0]
