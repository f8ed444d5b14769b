"""What models that have not seen a group of rows predict for its labels.

The audited Gaussian process tells that in closed form. With ``C`` the inverse of its covariance, ``a = C y`` and ``G`` the rows
left out, the labels of ``G`` are off by ``C_GG^-1 a_G``, and these errors have the covariance ``C_GG^-1``; without those rows the
weights of the others are ``a - C_.G C_GG^-1 a_G``. Other models are fitted again, to some groups at a time less.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from mislabel.decisions.groups import GroupVerdicts, UnseenGroups, group_odds, group_verdicts
from mislabel.estimators.cross_fit import fitted_to_all, seeded
from mislabel.estimators.mean_functions import mean_named
from mislabel.estimators.prediction import ExactPredictor, LowRankPredictor
from mislabel.estimators.regressor import LabelNoiseRegressor
from mislabel.linalg.contract import Covariance, FloatArray, IntArray

#: Models that judge groups beside the audited process.
OTHER_JUDGES = ("boosting", "trees")
PROCESS = "process"
#: Groups are left out in so many parts where models are fitted again.
PARTS = 5
#: How often groups are judged, each time without those that were doubted before; and the largest share of these.
MOST_ROUNDS = 4
MOST_DOUBTED = 0.5


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What a process without some labels says about them, in units of its scaled labels.

    error : label less prediction. covariance : of these errors, own noise included.
    """

    error: FloatArray
    covariance: FloatArray


def left_out(block: FloatArray, weights: FloatArray) -> LeftOut:
    """Of labels with this block of the inverse covariance ``C`` and these entries of ``a = C y``."""
    covariance = np.linalg.inv(block)
    covariance = 0.5 * (covariance + covariance.T)
    return LeftOut(covariance @ weights, covariance)


def judge_groups(judges: GroupJudges) -> tuple[GroupVerdicts, UnseenGroups]:
    """Verdicts on all groups, and what is predicted of them by the model that predicts best.

    Groups that are wrong in the same way vouch for each other; so those that are probably wrong are taken away from what all
    groups are judged by, and all are judged again, until it is always the same ones.
    """
    doubted = np.zeros(len(judges.members), dtype=bool)
    for _ in range(MOST_ROUNDS):
        unseen = judges(doubted)
        found = group_verdicts([group_odds(groups) for groups in unseen.values()])
        before, doubted = doubted, found.wrong > 0.5
        if np.array_equal(before, doubted) or np.mean(doubted) > MOST_DOUBTED:
            break
    return found, min(unseen.values(), key=lambda groups: float(np.median(np.abs(groups.labels - groups.expected))))


@dataclass(frozen=True, eq=False)
class GroupJudges:
    """Models that judge groups they have not seen.

    model : the audited one. groups : a number for each row of the table, -1 for none.
    points : features of all rows, None where rows are compared in another way. readings : the same with features in other
        columns, by name.
    """

    model: LabelNoiseRegressor
    groups: IntArray
    points: FloatArray | None
    readings: Mapping[str, FloatArray]
    seed: int = 0

    @cached_property
    def rows(self) -> IntArray:
        """Rows with a label that counts, in the order of the table."""
        counts = self.groups[self.model._present] >= 0
        counts &= self.model._evidence.limits[self.model._present] == 0
        return np.sort(self.model._present[counts])

    @cached_property
    def _labels(self) -> FloatArray:
        return self.model._evidence.label[self.rows]

    @cached_property
    def members(self) -> list[IntArray]:
        """Places in ``rows`` of the rows of each group."""
        own = self.groups[self.rows]
        order = np.argsort(own, kind="stable")
        starts = np.searchsorted(own[order], np.arange(self.groups.max() + 2))
        return [order[start:stop] for start, stop in pairwise(starts)]

    def __call__(self, doubted: np.ndarray) -> dict[str, UnseenGroups]:
        """What each model says of every group, if it sees none of the groups that are ``doubted`` either."""
        found = {}
        if self._has_process:
            found[PROCESS] = self._by_process(doubted)
        if self.points is not None and not self.model.has_predictions_:
            for name in OTHER_JUDGES:
                own = [np.eye(rows.size) for rows in self.members]
                found[name] = self._unseen(*self._refitted(mean_named(name), doubted), own)
        return found

    @property
    def _has_process(self) -> bool:
        """Not where successive rows share their errors: there the mean model has seen rows of the group."""
        choice = self.model.mean_choice_
        return (choice is None or choice.series is None) and self.model._fit_points is not None

    def _unseen(
        self, expected: FloatArray, readings: Mapping[str, FloatArray], covariances: list[FloatArray]
    ) -> UnseenGroups:
        plain = self.model.label_transform_.is_identity
        return UnseenGroups(self.members, self._labels, expected, covariances, readings, plain)

    def _refitted(self, model: Any, doubted: np.ndarray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Predictions by a model that is fitted again without some of the groups, for all features and their readings."""
        assert self.points is not None
        own, features, labels = self.groups[self.rows], self.points[self.rows], self._labels
        expected = np.empty(labels.size)
        readings = {name: np.empty(labels.size) for name in self.readings}
        splitter = GroupKFold(min(PARTS, len(self.members)), shuffle=True, random_state=self.seed)
        for train, test in splitter.split(features, groups=own):
            train = train[~doubted[own[train]]]
            fitted = fitted_to_all(seeded(clone(model), self.seed), features[train], labels[train])
            expected[test] = fitted.predict(features[test])
            for name, points in self.readings.items():
                readings[name][test] = fitted.predict(points[self.rows[test]])
        return expected, readings

    def _by_process(self, doubted: np.ndarray) -> UnseenGroups:
        """The audited process in closed form, over its own mean model."""
        model, predictor = self.model, cast("ExactPredictor | LowRankPredictor", self.model._predictor)
        order, weights, noise = predictor.order, predictor.weights, predictor.noise
        place = np.empty(self.groups.size, dtype=np.intp)
        place[model._present if order is None else model._present[order]] = np.arange(model._present.size)
        blocks = _Blocks(predictor.covariance)
        alone = weights / predictor.covariance.inverse_diagonal()  # errors of labels that are left out one at a time
        expected, covariances = np.empty(self.rows.size), []
        readings = self._mean_of_readings(doubted)
        out = [members for members, is_out in zip(self.members, doubted, strict=True) if is_out]
        without = np.concatenate([np.zeros(0, dtype=np.intp), *out])
        for members in self.members:
            rest = np.setdiff1d(without, members, assume_unique=True)
            index = place[self.rows[np.concatenate([members, rest])]]
            own = index[: members.size]
            found = left_out(blocks.block(index), weights[index])
            error, covariance = found.error[: members.size], found.covariance[: members.size, : members.size]
            expected[members] = model._evidence.expected[self.rows[members]] + model.scale_ * (alone[own] - error)
            least = model.base_noise_variance_ / model.scale_**2
            covariances.append(model.scale_**2 * _with_base(covariance - np.diag(noise[own]), least))
            if readings:
                assert self.points is not None
                assert isinstance(predictor, ExactPredictor)
                others = blocks.weights_without(weights, index, found.error)
                before = model.kernel_(self.points[self.rows[members]], predictor.points)
                for name, change in readings.items():
                    after = model.kernel_(self.readings[name][self.rows[members]], predictor.points)
                    change[members] += expected[members] + model.scale_ * ((after - before) @ others)
        return self._unseen(expected, readings, covariances)

    def _mean_of_readings(self, doubted: np.ndarray) -> dict[str, FloatArray]:
        """By how much the mean model expects something else of other readings; none where the process cannot tell."""
        model = self.model
        if model.rank_ is not None or self.points is None or model.has_predictions_:
            return {}
        if model.mean_model_ is None:
            return {name: np.zeros(self.rows.size) for name in self.readings}
        if model.table_ is not None and model.table_.types is not None:
            return {}
        expected, readings = self._refitted(model.mean_model_, doubted)
        return {name: values - expected for name, values in readings.items()}


def _with_base(signal: FloatArray, base: float) -> FloatArray:
    """The covariance of a signal with base noise; where labels had far more noise of their own, digits were lost with it."""
    values, vectors = np.linalg.eigh(signal)
    return np.asarray((vectors * (np.maximum(values, 1e-9 * abs(float(values[-1]))) + base)) @ vectors.T)


class _Blocks:
    """Blocks of the inverse of a covariance; the covariance itself stays as it is."""

    def __init__(self, covariance: Covariance) -> None:
        self._covariance = covariance
        self._inverse = deepcopy(covariance).inverse() if covariance.size <= 10_000 else None

    def block(self, index: IntArray) -> FloatArray:
        """Rows and columns of some labels."""
        if self._inverse is None:
            return self._covariance.inverse_block(index)
        return np.asarray(self._inverse[np.ix_(index, index)])

    def weights_without(self, weights: FloatArray, index: IntArray, error: FloatArray) -> FloatArray:
        """``a - C_.G C_GG^-1 a_G``."""
        assert self._inverse is not None
        return np.asarray(weights - self._inverse[:, index] @ error)
