"""The first stage of a fit: what the user passed in, checked once and ready to be fitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_consistent_length

from mislabel.errors import InvalidParameterError
from mislabel.estimators.copies import Copies
from mislabel.estimators.label_units import half_step_of
from mislabel.estimators.low_rank_fit import kernel_of_many
from mislabel.estimators.rank_plan import RankPlan
from mislabel.estimators.row_order import by_content
from mislabel.estimators.set_aside import SetAside
from mislabel.estimators.validation import check_label_errors, check_label_range, check_labels, check_right, check_sides
from mislabel.kernels.adapters import as_kernel
from mislabel.kernels.contract import RemoteRows
from mislabel.kernels.on_data import kept, take
from mislabel.likelihoods.atoms import Atoms
from mislabel.likelihoods.error_densities import Intervals, intervals_of, log_beside_of
from mislabel.likelihoods.transforms import Identity, Transform
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

    rows : the user's own row ids. points, labels, known_variance : of all rows, in label units, labels NaN where they are
        missing.
    side : -1 for labels that say only that a number is at most so large, 1 for at least, 0 for all others.
    atoms : values that many labels have. bounds : those of them that are taken for bounds; labels there are of such a side, too.
    apart : which labels are at other atoms and take no part; chance : for each row that a right label is at one of these.
    half_step : of labels that are written in coarse steps, else zero. transform : the scale of the fit.
    present : positions of the labels that take part, in the order of the fit.
    fit_points : the points of these.
    aside, copies : labels that take no part since they are absurd, or since another row equals theirs.
    kernel : where the fit begins. plan : None for an exact fit.
    mean_inputs : what mean models need beside the points.
    right : which labels are known to be right, whatever the others say; None where none is.
    """

    rows: np.ndarray
    points: Any
    labels: FloatArray
    known_variance: FloatArray
    side: NDArray[np.int8]
    atoms: Atoms
    half_step: float
    present: IntArray
    fit_points: Any
    aside: SetAside
    copies: Copies
    kernel: Kernel
    plan: RankPlan | None
    mean_inputs: MeanInputs
    transform: Transform = field(default_factory=Identity)
    bounds: Atoms = field(default_factory=Atoms)
    apart: NDArray[np.bool_] | None = None
    chance: FloatArray | None = None
    right: NDArray[np.bool_] | None = None

    def with_bounds(self) -> PreparedData:
        """The same where atoms that may be bounds are taken for bounds."""
        bounds = self.atoms.bounds
        side = np.where(np.isfinite(self.labels), self.side + bounds.side(self.labels), 0).astype(np.int8)
        return replace(self, bounds=bounds, side=side)

    def with_apart(self, chance: FloatArray) -> PreparedData:
        """The same where labels at atoms that are no bounds stand apart; ``chance`` is that of each row to be at one of these."""
        apart = self.atoms.holds(self.labels) & ~self.bounds.holds(self.labels)
        present = self.present[~apart[self.present]]
        points = kept(self.points, present, self.kernel)
        return replace(self, apart=apart, chance=chance, present=present, fit_points=points)

    @property
    def own_labels(self) -> FloatArray:
        """Labels that take part, in label units and in the order of the fit."""
        return self.labels[self.present]

    @property
    def fit_labels(self) -> FloatArray:
        """The same on the scale of the fit, those beyond a bound drawn in to it."""
        return self.transform.forward(np.clip(self.own_labels, self.bounds.low, self.bounds.high))

    @property
    def fit_variance(self) -> FloatArray:
        """Their known variances, there. That of rounding would be a twelfth of a squared step: labels whose noise is below a step
        would still be taken for exact, so that half a step is their standard deviation at least.
        """
        known = self.known_variance[self.present] + self.half_step**2
        return np.asarray(known * self.transform.slope(self.own_labels) ** 2)

    @property
    def own_intervals(self) -> Intervals | None:
        """Intervals of labels that are not known exactly, in label units and in the order of the fit; None where all are."""
        return intervals_of(self.own_labels, self.half_step, self.side[self.present])

    @property
    def fit_right(self) -> NDArray[np.bool_] | None:
        """Which of the labels that take part are known to be right, in the order of the fit; None where none is."""
        return None if self.right is None else self.right[self.present]

    @property
    def n_apart(self) -> int:
        """How many labels stand apart."""
        return 0 if self.apart is None else int(np.count_nonzero(self.apart))

    @property
    def log_beside(self) -> FloatArray | None:
        """For each row that takes part, :func:`log_beside_of` it; None where no label stands apart."""
        return None if self.chance is None else log_beside_of(self.chance)[self.present]

    @property
    def fit_within(self) -> Intervals | None:
        """Those of censored labels on the scale of the fit: what lies beyond a bound says no more than what lies at it."""
        side, labels = self.side[self.present], self.own_labels
        below, above = labels < self.bounds.low, labels > self.bounds.high
        side = np.where(below, -1, np.where(above, 1, side)).astype(np.int8)
        found = intervals_of(np.clip(labels, self.bounds.low, self.bounds.high), 0.0, side)
        return None if found is None else found.through(self.transform.forward)

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
    """Points that were checked, their ids, and labels as they were passed, with what was passed beside them."""

    rows: np.ndarray
    points: Any
    y: Any
    y_err: Any = None
    censored: Any = None
    right: Any = None


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
    side = check_sides(given.censored, labels.size)
    copies = (
        Copies.among(points, (labels, known_variance, side.astype(float)), present) if finds_copies else Copies.none()
    )
    present = copies.without(present)
    exact = present[side[present] == 0]
    half_step = half_step_of(labels[exact]) if given.y_err is None and learns_noise else 0.0
    atoms = Atoms.of(labels[present]) if learns_noise and not side.any() else Atoms()
    start = as_kernel(kernel, points) if plan is None or kernel is not None else kernel_of_many(points)
    if plan is None and not keeps_order:
        present = present[by_content(points, labels, present)]
    fit_points = points
    if present.size < labels.size or np.any(np.diff(present) < 0):
        fit_points = kept(points, present, start)
    return PreparedData(
        rows,
        points,
        labels,
        known_variance,
        side,
        atoms,
        half_step,
        present,
        fit_points,
        aside,
        copies,
        start,
        plan,
        mean_inputs,
        right=check_right(given.right, labels),
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
