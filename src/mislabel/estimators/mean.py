"""The second stage of a fit: what is expected of every label by a mean model that has not seen it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mislabel._common.progress import Tell
from mislabel.errors import InvalidParameterError
from mislabel.estimators.blocked_cross_fit import SERIES_FROM, blocked_cross_fit, series_correlation
from mislabel.estimators.cross_fit import REPEATS, Folds, cross_fitted_mean, fitted_to_all, seeded, user_folds
from mislabel.estimators.mean_choice import Comparison, FitsProcess, MeanChoice, choose_mean
from mislabel.estimators.mean_functions import AUTO, NONE, mean_named
from mislabel.estimators.prepared import MeanInputs, PreparedData
from mislabel.estimators.process import FittedProcess
from mislabel.estimators.sample_weights import weight_parameters
from mislabel.kernels.on_data import take_points
from mislabel.linalg.contract import FloatArray, IntArray


@dataclass(frozen=True)
class MeanSettings:
    """What the user chose about the mean.

    mean : None, a name, or a regressor. cv : the user's folds.
    may_choose : whether the points are such that mean functions can be compared: features, in this process.
    """

    mean: Any
    cv: Any
    n_jobs: int | None
    may_choose: bool


@dataclass(frozen=True, eq=False)
class FittedMean:
    """What is subtracted from the labels that take part, in the order of the fit.

    model : fitted to all of them, for new rows; None without a mean model. choice : how it was chosen, where it was left open.
    """

    out_of_fold: FloatArray
    model: Any = None
    choice: MeanChoice | None = None


def fit_mean(
    data: PreparedData,
    settings: MeanSettings,
    fit_process: FitsProcess,
    random_state: np.random.RandomState,
    tell: Tell,
) -> tuple[FittedMean, FittedProcess | None]:
    """The mean, and the process over it where comparing models has already fitted that."""
    size, mean = data.present.size, settings.mean
    inputs = data.fit_mean_inputs
    if inputs.predictions is not None:
        if mean not in (None, NONE, AUTO):
            raise InvalidParameterError("predictions take the place of a mean model: leave mean out.")
        return FittedMean(data.transform.forward(inputs.predictions)), None
    choosable = settings.may_choose and np.ptp(data.fit_labels) > 0
    if mean is None or (isinstance(mean, str) and (mean == NONE or (mean == AUTO and not choosable))):
        return FittedMean(np.zeros(size)), None
    folds = user_folds(settings.cv, data.labels, data.mean_inputs.groups, data.present)
    stage = _MeanStage(data, inputs, folds, settings.n_jobs)
    if isinstance(mean, str) and mean == AUTO:
        return stage.chosen(fit_process, random_state, tell)
    tell("cross-fitting the mean model")
    model = mean_named(mean) if isinstance(mean, str) else mean
    return FittedMean(*stage.cross_fitted(model, None, random_state, REPEATS, refit=True)), None


@dataclass(frozen=True, eq=False)
class _MeanStage:
    data: PreparedData
    inputs: MeanInputs
    folds: Folds | None
    n_jobs: int | None

    def cross_fitted(
        self, model: Any, index: IntArray | None, random_state: np.random.RandomState, repeats: int, *, refit: bool
    ) -> tuple[FloatArray, Any]:
        """Out-of-fold predictions for (some of) the labels that take part, and the model fitted to them on request."""
        features, labels, inputs, folds = self.data.mean_features, self.data.fit_labels, self.inputs, self.folds
        if index is not None and index.size < labels.size:
            features, labels, inputs = _features_at(features, index), labels[index], inputs.rows(index)
            folds = None if folds is None else _folds_within(folds, index, self.data.present.size)
        return cross_fitted_mean(
            model,
            features,
            labels,
            random_state,
            self.n_jobs,
            refit,
            repeats,
            folds=folds,
            weights=inputs.weights,
            groups=inputs.groups,
        )

    def chosen(
        self, fit_process: FitsProcess, random_state: np.random.RandomState, tell: Tell
    ) -> tuple[FittedMean, FittedProcess | None]:
        """The mean function of the best predictive density, and the process over it if that was fitted to all labels."""
        seed = int(random_state.randint(np.iinfo(np.int32).max))

        def predict(name: str, index: IntArray, repeats: int) -> FloatArray:
            generator = np.random.RandomState(seed)
            return self.cross_fitted(mean_named(name), index, generator, repeats, refit=False)[0]

        labels = self.data.fit_labels
        intervals = self.data.own_intervals
        within = None if intervals is None else intervals.through(self.data.transform.forward)
        models = Comparison(labels, predict, fit_process, REPEATS, within)
        found = choose_mean(models, _single_rows(self.data.fit_features, labels), seed, tell)
        name, mean = found.choice.name, found.out_of_fold
        if name == NONE:
            return FittedMean(np.zeros(labels.size), None, found.choice), found.process
        tell("fitting the mean model")
        model = mean_named(name)
        if mean is None:
            mean, fitted = self.cross_fitted(model, None, np.random.RandomState(seed), REPEATS, refit=True)
        else:
            model = seeded(model, seed)
            weights = weight_parameters(model, self.inputs.weights)
            fitted = fitted_to_all(model, self.data.mean_features, labels, weights)
        return FittedMean(mean, fitted, found.choice), found.process


def blocked_mean(
    data: PreparedData,
    choice: MeanChoice,
    process: FittedProcess,
    random_state: np.random.RandomState,
    settings: MeanSettings,
) -> FittedMean | None:
    """The mean by blocked cross-fitting, in the order of the rows; None where successive rows do not share their errors."""
    order = np.argsort(data.present)
    shared = series_correlation(process.in_given_order(process.fitted.evidence.z)[order])
    if shared < SERIES_FROM:
        return None
    rows = data.in_row_order()
    inputs = rows.fit_mean_inputs
    expected, model = blocked_cross_fit(
        mean_named("ensemble"),
        rows.mean_features,
        rows.fit_labels,
        random_state,
        settings.n_jobs,
        folds=user_folds(settings.cv, rows.labels, rows.mean_inputs.groups, rows.present),
        weights=inputs.weights,
        groups=inputs.groups,
    )
    return FittedMean(expected, model, replace(choice, name="ensemble", series=shared))


def _single_rows(points: FloatArray, labels: FloatArray) -> IntArray:
    """Positions of the rows that no other equals, label included."""
    _, first, counts = np.unique(np.column_stack([points, labels]), axis=0, return_index=True, return_counts=True)
    return np.sort(first[counts == 1])


def _features_at(features: Any, index: IntArray) -> Any:
    return features.iloc[index] if isinstance(features, pd.DataFrame) else take_points(features, index)


def _folds_within(folds: Folds, index: IntArray, size: int) -> Folds:
    """The same folds for the rows ``index`` alone, as positions in it."""
    where = np.full(size, -1, dtype=np.intp)
    where[index] = np.arange(index.size)
    kept = [(where[train], where[test]) for train, test in folds]
    return [(train[train >= 0], test[test >= 0]) for train, test in kept if np.any(test >= 0)]
