"""A mean function from any scikit-learn regressor, cross-fitted so that no label vouches for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict
from threadpoolctl import threadpool_limits

from mislabel.errors import InvalidParameterError
from mislabel.linalg.contract import FloatArray

FOLDS = 5
#: Contiguous stretches that rows in the order of a series are left out by.
STRETCHES = 20
#: Up to so many rows a mean model is fitted by one thread.
MANY_ROWS = 20_000


def cross_fitted_mean(
    model: Any,
    X: Any,
    labels: FloatArray,
    random_state: np.random.RandomState,
    n_jobs: int | None,
    refit: bool = True,
    in_stretches: bool = False,
) -> tuple[FloatArray, Any]:
    """Out-of-fold predictions for the training rows, and the model fitted to all of them for new rows (or None).

    Folds are drawn at random, or are contiguous stretches of rows, so that no row's neighbours in time vouch for it.
    """
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InvalidParameterError(f"mean must be a regressor with fit and predict, got {type(model).__name__}.")
    seed = int(random_state.randint(np.iinfo(np.int32).max))
    model = _seeded(clone(model), seed)
    if in_stretches:
        folds = KFold(min(STRETCHES, labels.size))
    else:
        folds = KFold(min(FOLDS, labels.size), shuffle=True, random_state=seed)
    # Boosting's threads wait for each other in a loop: on cores that others use too, small fits then take minutes.
    with threadpool_limits(1 if labels.size < MANY_ROWS else None, user_api="openmp"):
        out_of_fold = cross_val_predict(model, X, labels, cv=folds, n_jobs=n_jobs)
        return np.asarray(out_of_fold, dtype=float), clone(model).fit(X, labels) if refit else None


def _seeded(model: Any, seed: int) -> Any:
    """Fix every random_state that the user left open, so that a fit can be repeated exactly."""
    parameters = model.get_params(deep=True)
    open_seeds = {name: seed for name, value in parameters.items() if name.endswith("random_state") and value is None}
    return model.set_params(**open_seeds)
