"""The first stage of a fit: what the user passed in, checked once and ready to be fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_consistent_length

from mislabel.errors import InvalidParameterError
from mislabel.estimators.copies import Copies
from mislabel.estimators.label_units import rounding_variance
from mislabel.estimators.low_rank_fit import kernel_of_many
from mislabel.estimators.rank_plan import RankPlan
from mislabel.estimators.row_order import by_content
from mislabel.estimators.set_aside import SetAside
from mislabel.estimators.validation import check_label_errors, check_label_range, check_labels
from mislabel.kernels.adapters import as_kernel
from mislabel.kernels.contract import RemoteRows
from mislabel.kernels.on_data import kept, take
from mislabel.linalg.contract import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class MeanInputs:
    """What mean models are given, one entry per label and each None where the user gave none.

    features : instead of the points, for instance a frame with the user's own columns.
    weights, groups : sample weights of the models' fits, and groups that no two folds share.
    predictions : out-of-fold predictions of somebody's own model, which take the place of a mean model.
    """

    features: Any = None
    weights: FloatArray | None = None
    groups: Any = None
    predictions: FloatArray | None = None

    def rows(self, index: IntArray) -> MeanInputs:
        """The same for some of the labels."""
        return MeanInputs(
            *(_rows(part, index) for part in (self.features, self.weights, self.groups, self.predictions))
        )

    def check_length(self, labels: FloatArray) -> None:
        """Refuse anything that does not have one entry per label."""
        check_consistent_length(labels, self.features, self.weights, self.groups, self.predictions)


def _rows(values: Any, index: IntArray) -> Any:
    if values is None:
        return None
    return values.iloc[index] if isinstance(values, pd.DataFrame | pd.Series) else np.asarray(values)[index]


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Checked rows and labels, and which of them take part in the fit.

    rows : the user's own row ids. points, labels, known_variance : of all rows, labels NaN where they are missing.
    present : positions of the labels that take part, in the order of the fit.
    fit_points : the points of these.
    aside, copies : labels that take no part since they are absurd, or since another row equals theirs.
    kernel : where the fit begins. plan : None for an exact fit.
    mean_inputs : what mean models need beside the points.
    """

    rows: np.ndarray
    points: Any
    labels: FloatArray
    known_variance: FloatArray
    present: IntArray
    fit_points: Any
    aside: SetAside
    copies: Copies
    kernel: Kernel
    plan: RankPlan | None
    mean_inputs: MeanInputs

    @property
    def fit_labels(self) -> FloatArray:
        """Labels that take part, in the order of the fit."""
        return self.labels[self.present]

    @property
    def fit_variance(self) -> FloatArray:
        """Their known variances."""
        return self.known_variance[self.present]

    @property
    def fit_features(self) -> Any:
        """The points of the labels that take part, in this process if they are in it at all."""
        if isinstance(self.points, RemoteRows) and self.points.local is not None:
            return self.points.local[self.present]
        return self.fit_points

    @property
    def mean_features(self) -> Any:
        """What mean models are fitted to, in the order of the fit."""
        features = self.mean_inputs.features
        return self.fit_features if features is None else _rows(features, self.present)

    @property
    def fit_mean_inputs(self) -> MeanInputs:
        """What they need beside it, in the same order."""
        return self.mean_inputs.rows(self.present)

    def in_row_order(self) -> PreparedData:
        """The same, the labels taking part in the order in which the user has them."""
        if np.all(np.diff(self.present) > 0):
            return self
        order = np.argsort(self.present)
        return replace(self, present=self.present[order], fit_points=take(self.fit_points, order, self.kernel))


@dataclass(frozen=True, eq=False)
class RowsAndLabels:
    """Points that were checked, their ids, and labels as they were passed."""

    rows: np.ndarray
    points: Any
    y: Any
    y_err: Any = None


def prepare(
    given: RowsAndLabels,
    mean_inputs: MeanInputs,
    *,
    kernel: Any,
    missing: str,
    plan_for: Any,
    keeps_order: bool,
    finds_copies: bool,
    learns_noise: bool,
) -> PreparedData:
    """Check the labels, set aside what takes no part, and decide how to fit the rest.

    plan_for : gives the rank plan for the labels and how many of them are present.
    keeps_order : whether the rows of an exact fit must come in the order given: those of kernel matrices and other objects.
    learns_noise : whether the noise of a clean label is learned, so that the step of coarse labels counts as known.
    """
    rows, points = given.rows, given.points
    labels = check_labels(given.y, rows, missing)
    check_consistent_length(points, labels)
    mean_inputs.check_length(labels)
    aside = SetAside.among(labels)
    present = np.flatnonzero(~(np.isnan(labels) | aside.mask(labels.size)))
    check_label_range(labels, present, rows)
    plan = plan_for(points, labels, present.size)
    known_variance = check_label_errors(given.y_err, labels.size, rows)
    copies = Copies.among(points, (labels, known_variance), present) if finds_copies else Copies.none()
    present = copies.without(present)
    if given.y_err is None and learns_noise:
        known_variance += rounding_variance(labels[present])
    start = as_kernel(kernel, points) if plan is None or kernel is not None else kernel_of_many(points)
    if plan is None and not keeps_order:
        present = present[by_content(points, labels, present)]
    fit_points = points
    if present.size < labels.size or np.any(np.diff(present) < 0):
        fit_points = kept(points, present, start)
    return PreparedData(
        rows, points, labels, known_variance, present, fit_points, aside, copies, start, plan, mean_inputs
    )


def check_predictions(predictions: Any, size: int) -> FloatArray | None:
    """Out-of-fold predictions as finite floats, one per label."""
    if predictions is None:
        return None
    try:
        found = np.asarray(predictions, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"predictions must be numbers, one per label: {error}") from None
    if found.shape != (size,):
        raise InvalidParameterError(f"predictions have shape {found.shape}, expected one per label: ({size},).")
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise InvalidParameterError(
            f"{bad.size} predictions are NaN or infinite (the first at position {bad[0]}): every label needs one from a "
            "model that has not seen it, for example by sklearn.model_selection.cross_val_predict."
        )
    return found
