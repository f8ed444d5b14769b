"""What a fit expects of its own labels if their rows had other features: the own label of a row takes no part in it.

Removing label i from ``C = (K + S)^-1`` is a change of rank one: the weights ``a = C y`` of all others become
``a - C_i a_i / C_ii``, and what they tell of a new point, ``k' C k``, loses ``(k' C_i)^2 / C_ii``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mislabel.errors import InvalidParameterError
from mislabel.estimators.prediction import ExactPredictor
from mislabel.linalg.contract import FloatArray, IntArray

#: Rows of features that are compared with all others at a time.
_BLOCK = 1024


class OtherFeatures:
    """Leave-one-out predictions of some labels at features that are not their own, on the scale of the fit.

    model : a fitted LabelNoiseRegressor without a mean model. rows : positions of the labels in question.

    A low-rank fit predicts by all labels: among so many, one that is in doubt counts for little.
    """

    def __init__(self, model: Any, rows: IntArray) -> None:
        if model.mean_model_ is not None or model.has_predictions_:
            raise InvalidParameterError("predictions at other features need a Gaussian process without a mean model.")
        self._model, self._rows = model, rows
        self._where = np.full(model.labels_.size, -1, dtype=np.intp)
        self._where[rows] = np.arange(rows.size)
        place = model._place[rows]
        self._taking_part = place >= 0
        if isinstance(model._predictor, ExactPredictor):
            self._without_own(model._predictor, place)
        evidence = model._evidence
        # What the own noise of a right label adds to the variance of the signal is the same at all features.
        self._noise = np.zeros(rows.size)
        _, latent = self.signal(rows, model._points[rows], with_variance=True)
        self._noise = np.maximum(evidence.variance[rows] - latent, 0.0)

    def _without_own(self, predictor: ExactPredictor, place: IntArray) -> None:
        """Weights of the others, and the column of the inverse that each label has."""
        weights, size = predictor.weights, predictor.weights.size
        chosen = np.flatnonzero(self._taking_part)
        unit = np.zeros((size, place.size), order="F")
        unit[place[chosen], chosen] = 1.0
        columns = np.asarray(predictor.covariance.solve(unit))
        own = np.ones(place.size)
        own[chosen] = columns[place[chosen], chosen]
        share = np.zeros(place.size)
        share[chosen] = weights[place[chosen]] / own[chosen]
        self._weights = weights[:, None] - columns * share
        self._columns = columns / np.sqrt(own)

    def signal(
        self, rows: IntArray, features: FloatArray, *, with_variance: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Expected labels and their variances (zero unless requested) for some of the rows, each with features of its own."""
        expected, variance = np.empty(rows.size), np.zeros(rows.size)
        for start in range(0, rows.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            expected[part], explained = self._block(self._where[rows[part]], features[part], with_variance)
            if with_variance:
                prior = np.asarray(self._model.kernel_.diag(features[part]))
                variance[part] = np.maximum(prior - explained, 0.0)
        model = self._model
        noise = self._noise[self._where[rows]] if with_variance else 0.0
        return model.center_ + model.scale_ * expected, model.scale_**2 * variance + noise

    def _block(self, where: IntArray, features: FloatArray, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        predictor = self._model._predictor
        if not isinstance(predictor, ExactPredictor):
            explained = predictor.explained_variance(features) if with_variance else np.zeros(where.size)
            return predictor.signal(features), explained
        cross = np.asarray(predictor.kernel(features, predictor.points))
        expected = np.einsum("ij,ji->i", cross, self._weights[:, where])
        if not with_variance:
            return expected, np.zeros(where.size)
        explained = np.einsum("ij,ji->i", cross, predictor.covariance.solve(np.asfortranarray(cross.T)))
        return expected, explained - np.einsum("ij,ji->i", cross, self._columns[:, where]) ** 2
