"""Predictions of a forest for rows that its trees have not seen, and for new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits

from mislabel.estimators.array_models import Trees, forest_in_arrays
from mislabel.kernels.contract import RemoteRows
from mislabel.linalg.contract import FloatArray, IntArray

TREES = 100
LEAST_IN_LEAF = 10
#: Share of the columns that are looked at for a split.
COLUMNS = 0.5
#: Rows from which a forest learns; more tell it little.
MOST_ROWS = 10_000
_ROWS_AT_ONCE = 100_000


def out_of_bag(
    features: Any,
    own: FloatArray,
    target: FloatArray,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
) -> tuple[FloatArray, Trees]:
    """What trees that have not seen a row predict for it, and all trees, for new rows: further columns first, then features.

    features : of n rows, in this process or on workers. own : (n, k) further columns. target : NaN where it is not known.
    """
    index = np.flatnonzero(np.isfinite(target))
    if index.size > MOST_ROWS:
        index = np.sort(random_state.choice(index, MOST_ROWS, replace=False))
    forest = RandomForestRegressor(
        TREES,
        min_samples_leaf=LEAST_IN_LEAF,
        max_features=COLUMNS,
        oob_score=True,
        random_state=random_state.randint(np.iinfo(np.int32).max),
        n_jobs=n_jobs,
    )
    with threadpool_limits(1):
        forest.fit(_columns(features, own, index), target[index])
    found = np.empty(target.size)
    found[index] = forest.oob_prediction_
    rest = np.setdiff1d(np.arange(target.size), index)
    for part in np.array_split(rest, max(-(-rest.size // _ROWS_AT_ONCE), 1)):
        if part.size:
            found[part] = forest.predict(_columns(features, own, part))
    # A row that every tree has seen has no prediction.
    trees = forest_in_arrays(forest)
    assert trees is not None  # one target
    return np.where(np.isfinite(found), found, np.mean(target[index])), trees


def _columns(features: Any, own: FloatArray, index: IntArray) -> FloatArray:
    rows = features.take_rows(index) if isinstance(features, RemoteRows) else np.asarray(features[index])
    return np.column_stack([own[index], rows])
