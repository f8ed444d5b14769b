"""Rows in the order of time that share their errors: how they are noticed, and how each is judged without its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.ensemble import VotingRegressor
from sklearn.model_selection import KFold

from mislabel.estimators.cross_fit import fitted_to_all, out_of_fold, seeded
from mislabel.linalg.contract import FloatArray

#: Correlation of successive rows' evidence from which on the rows are a series: neighbours share their errors, so a label
#: must not be judged by its neighbours. Rows in arbitrary order stay below 0.1.
SERIES_FROM = 0.25
_LEAST_SERIES = 200
#: Contiguous stretches of rows, each judged by models of the others.
STRETCHES = 20
#: Fewer and longer ones, by which the models are weighed: the farther away, the less do shared errors help a prediction.
FAR_STRETCHES = 5
_ROUNDS = 10
_HEAVY = 1e3


def series_correlation(z: np.ndarray) -> float:
    """How closely the evidence against successive rows is correlated; robust against a few extreme rows."""
    scale = np.median(np.abs(z))
    if z.size < _LEAST_SERIES or not scale > 0:
        return 0.0
    clipped = np.clip(z / (1.4826 * scale), -3.0, 3.0)
    return float(np.corrcoef(clipped[:-1], clipped[1:])[0, 1])


def judged_by_stretches(
    panel: VotingRegressor, X: Any, labels: FloatArray, random_state: np.random.RandomState, n_jobs: int | None
) -> tuple[FloatArray, VotingRegressor]:
    """Predictions for every stretch of rows by a weighted panel that has not seen it, and the panel fitted to all rows.

    Models that learn what neighbours share, errors included, predict near stretches well and far ones badly: far ones give
    the weights.
    """
    panel = seeded(clone(panel), int(random_state.randint(np.iinfo(np.int32).max)))
    far, near = (
        np.column_stack(
            [out_of_fold(model, X, labels, KFold(min(count, labels.size)), n_jobs) for _, model in panel.estimators]
        )
        for count in (FAR_STRETCHES, STRETCHES)
    )
    weights = panel_weights(far, labels)
    return near @ weights, fitted_to_all(panel.set_params(weights=weights), X, labels)


def panel_weights(predictions: FloatArray, labels: FloatArray) -> FloatArray:
    """Weights, none negative and together one, with which columns of predictions are nearest to the labels.

    Nearest by nearly absolute errors (least squares, large errors counted less in each round), so that wrong labels do not
    decide.
    """
    weights = np.full(predictions.shape[1], 1.0 / predictions.shape[1])
    for _ in range(_ROUNDS):
        error = np.abs(labels - predictions @ weights)
        usual = float(np.median(error))
        if not usual > 0:
            break
        trust = np.sqrt(usual / np.maximum(error, usual))
        # One more row, as heavy as can be, for the sum.
        heavy = _HEAVY * float(np.sqrt(np.sum((trust[:, None] * predictions) ** 2)) or 1.0)
        rows = np.vstack([trust[:, None] * predictions, np.full(weights.size, heavy)])
        weights, _ = nnls(rows, np.append(trust * labels, heavy))
        weights /= weights.sum()
    return np.asarray(weights)
