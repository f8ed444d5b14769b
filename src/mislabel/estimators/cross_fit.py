"""A mean function from any scikit-learn regressor, cross-fitted so that no label vouches for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict
from threadpoolctl import threadpool_limits

from mislabel.errors import InvalidLabelsError, InvalidParameterError
from mislabel.linalg.contract import FloatArray

FOLDS = 5
#: So many partitions into folds are averaged over: one alone leaves the accidents of its trees in every prediction.
REPEATS = 3
#: Up to so many rows a mean model is fitted by one thread.
MANY_ROWS = 20_000


def cross_fitted_mean(
    model: Any,
    X: Any,
    labels: FloatArray,
    random_state: np.random.RandomState,
    n_jobs: int | None,
    refit: bool = True,
    repeats: int = REPEATS,
) -> tuple[FloatArray, Any]:
    """Out-of-fold predictions for the training rows, and the model fitted to all of them for new rows (or None)."""
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InvalidParameterError(f"mean must be a regressor with fit and predict, got {type(model).__name__}.")
    if labels.size < 2:
        raise InvalidLabelsError(
            "a mean model needs at least two different rows with a label: use mean=None, or give more rows."
        )
    found = np.zeros(labels.size)
    for _ in range(repeats):
        seed = int(random_state.randint(np.iinfo(np.int32).max))
        own = seeded(clone(model), seed)
        folds = KFold(min(FOLDS, labels.size), shuffle=True, random_state=seed)
        found += out_of_fold(own, X, labels, folds, n_jobs) / repeats
    return found, fitted_to_all(own, X, labels) if refit else None


def out_of_fold(model: Any, X: Any, labels: FloatArray, folds: KFold, n_jobs: int | None) -> FloatArray:
    """A prediction for every row by the model fitted to the other folds."""
    with _few_threads(labels.size):
        return np.asarray(cross_val_predict(model, X, labels, cv=folds, n_jobs=n_jobs), dtype=float)


def fitted_to_all(model: Any, X: Any, labels: FloatArray) -> Any:
    """A copy of the model, fitted to all rows."""
    with _few_threads(labels.size):
        return clone(model).fit(X, labels)


def _few_threads(size: int) -> threadpool_limits:
    # Boosting's threads wait for each other in a loop: on cores that others use too, small fits then take minutes.
    return threadpool_limits(1 if size < MANY_ROWS else None, user_api="openmp")


def seeded(model: Any, seed: int) -> Any:
    """The model with every random_state that the user left open set, so that a fit can be repeated exactly."""
    parameters = model.get_params(deep=True)
    open_seeds = {name: seed for name, value in parameters.items() if name.endswith("random_state") and value is None}
    return model.set_params(**open_seeds)
