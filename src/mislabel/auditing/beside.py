"""What is known of every row beside its features: predictions, groups and weights, from arrays or columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.auditing.contents import column_beside
from mislabel.auditing.inputs import Prepared
from mislabel.data.labels import FloatArray, numbers_in
from mislabel.errors import InvalidParameterError, describe_rows


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
    given = _column(prepared, "censored")
    side: Any = prepared.side if given is None else given
    if prepared.request.beside.is_empty:
        return BesideRows(prepared.errors, side)
    predictions = _numbers(prepared, "predictions")
    _refuse(
        prepared,
        predictions,
        lambda values: ~np.isfinite(values),
        "predictions are missing or infinite",
        "every row needs one from a model that has not seen its label, for example by "
        "sklearn.model_selection.cross_val_predict",
    )
    errors, std = prepared.errors, _numbers(prepared, "prediction_std")
    _refuse(prepared, std, _no_size, "entries of prediction_std are negative or missing", "give standard deviations")
    if std is not None:
        own = np.zeros(len(prepared.rows)) if errors is None else np.asarray(errors, dtype=float)
        errors = np.hypot(own, std)
    weights = _numbers(prepared, "sample_weight")
    _refuse(prepared, weights, _no_size, "entries of sample_weight are negative or missing", "give numbers from 0 up")
    return BesideRows(errors, side, predictions, _groups(prepared), weights)


def _no_size(values: FloatArray) -> NDArray[np.bool_]:
    return ~((values >= 0.0) & np.isfinite(values))


def _refuse(
    prepared: Prepared,
    values: FloatArray | None,
    is_bad: Callable[[FloatArray], NDArray[np.bool_]],
    what: str,
    advice: str,
) -> None:
    """Complain about values that cannot be, naming their rows."""
    bad = np.flatnonzero(is_bad(values)) if values is not None else np.zeros(0, dtype=np.intp)
    if bad.size:
        raise InvalidParameterError(f"{bad.size} {what} ({describe_rows(prepared.rows[bad])}): {advice}.")


def _column(prepared: Prepared, name: str) -> pd.Series | None:
    """What was given under a name, one entry per row."""
    given = getattr(prepared.request.beside, name)
    return None if given is None else column_beside(given, prepared.frame, prepared.rows, name)


def _numbers(prepared: Prepared, name: str) -> FloatArray | None:
    column = _column(prepared, name)
    if column is None:
        return None
    return numbers_in(column, prepared.rows, name.replace("_", " "), numbers=prepared.request.numbers)


def groups_judged(prepared: Prepared) -> pd.Series | None:
    """The group of every row, where groups are judged as a whole; None where they are not."""
    return _column(prepared, "group")


def _groups(prepared: Prepared) -> Any:
    column = _column(prepared, "groups")
    column = groups_judged(prepared) if column is None else column
    if column is None:
        return None
    # Rows without a group are one of their own together.
    return pd.factorize(column.astype(object))[0]
