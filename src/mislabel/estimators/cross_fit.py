"""A mean function from any scikit-learn regressor, cross-fitted so that no label vouches for itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, check_cv, cross_val_predict
from threadpoolctl import threadpool_limits

from mislabel.errors import InvalidLabelsError, InvalidParameterError
from mislabel.estimators.sample_weights import routed, weight_parameters
from mislabel.linalg.contract import FloatArray, IntArray

FOLDS = 5
#: So many partitions into folds are averaged over: one alone leaves the accidents of its trees in every prediction.
REPEATS = 3
#: Up to so many rows a mean model is fitted by one thread.
MANY_ROWS = 20_000

#: Positions of the rows to learn from and to predict, for every fold.
Folds = list[tuple[IntArray, IntArray]]


def cross_fitted_mean(
    model: Any,
    X: Any,
    labels: FloatArray,
    random_state: np.random.RandomState,
    n_jobs: int | None,
    refit: bool = True,
    repeats: int = REPEATS,
    *,
    folds: Folds | None = None,
    weights: FloatArray | None = None,
    groups: Any = None,
) -> tuple[FloatArray, Any]:
    """Out-of-fold predictions for the training rows, and the model fitted to all of them for new rows (or None).

    folds : the user's own, in which case they are used once. weights : sample weights for the model's fits.
    groups : rows of one group are predicted by models that have seen none of it.
    """
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InvalidParameterError(f"mean must be a regressor with fit and predict, got {type(model).__name__}.")
    if labels.size < 2:
        raise InvalidLabelsError(
            "a mean model needs at least two different rows with a label: use mean=None, or give more rows."
        )
    found = np.zeros(labels.size)
    repeats = repeats if folds is None else 1
    for _ in range(repeats):
        seed = int(random_state.randint(np.iinfo(np.int32).max))
        own = seeded(clone(model), seed)
        params = weight_parameters(own, weights)
        partition = folds_of(labels.size, groups, FOLDS, seed) if folds is None else folds
        found += out_of_fold(own, X, labels, partition, n_jobs, params) / repeats
    return found, fitted_to_all(own, X, labels, params) if refit else None


def out_of_fold(
    model: Any, X: Any, labels: FloatArray, folds: Any, n_jobs: int | None, params: dict[str, FloatArray] | None = None
) -> FloatArray:
    """A prediction for every row by the model fitted to the other folds."""
    with _few_threads(labels.size), routed(model, params):
        found = cross_val_predict(model, X, labels, cv=folds, n_jobs=n_jobs, params=params or None)
    return np.asarray(found, dtype=float).reshape(labels.size)


def fitted_to_all(model: Any, X: Any, labels: FloatArray, params: dict[str, FloatArray] | None = None) -> Any:
    """A copy of the model, fitted to all rows."""
    with _few_threads(labels.size), routed(model, params):
        return clone(model).fit(X, labels, **(params or {}))


def user_folds(cv: Any, labels: FloatArray, groups: Any, present: IntArray) -> Folds | None:
    """The folds of the user's splitter, which sees all rows in their own order, as positions in ``present``.

    cv : a number of folds, a scikit-learn splitter, or pairs of positions; None for none.
    """
    if cv is None:
        return None
    where = np.full(labels.size, -1, dtype=np.intp)
    where[present] = np.arange(present.size)
    try:
        # Splitters need to know how many rows there are, not what is in them; missing labels take no part.
        pairs: Iterable[Any] = check_cv(cv).split(np.zeros((labels.size, 1)), np.nan_to_num(labels), groups)
        folds = [tuple(where[np.asarray(part)] for part in pair) for pair in pairs]
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidParameterError(f"cv={cv!r} gives no folds for {labels.size} rows: {error}") from None
    kept = [(train[train >= 0], test[test >= 0]) for train, test in folds]
    counts = np.bincount(np.concatenate([test for _, test in kept]), minlength=present.size)
    if not np.all(counts == 1):
        raise InvalidParameterError(
            f"cv={cv!r} predicts {np.count_nonzero(counts == 0)} rows never and {np.count_nonzero(counts > 1)} more than once: "
            "every label needs one prediction by a model that has not seen it. Use a splitter whose test folds are a partition, "
            "such as KFold or GroupKFold."
        )
    return [(train, test) for train, test in kept if test.size]


def folds_of(size: int, groups: Any, most: int, seed: int | None = None) -> Any:
    """Up to so many folds, none of which share a group: shuffled by a seed, else of successive rows."""
    shuffle = seed is not None
    if groups is None:
        return KFold(min(most, size), shuffle=shuffle, random_state=seed)
    count = np.unique(np.asarray(groups)).size
    if count < 2:
        raise InvalidParameterError(
            "groups must tell at least two groups apart, so that one can be judged by the others."
        )
    splitter = GroupKFold(min(most, count), shuffle=shuffle, random_state=seed)
    return list(splitter.split(np.zeros(size), groups=np.asarray(groups)))


def _few_threads(size: int) -> threadpool_limits:
    # Boosting's threads wait for each other in a loop: on cores that others use too, small fits then take minutes.
    return threadpool_limits(1 if size < MANY_ROWS else None, user_api="openmp")


def seeded(model: Any, seed: int) -> Any:
    """The model with every random_state that the user left open set, so that a fit can be repeated exactly."""
    parameters = model.get_params(deep=True)
    open_seeds = {name: seed for name, value in parameters.items() if name.endswith("random_state") and value is None}
    return model.set_params(**open_seeds)
