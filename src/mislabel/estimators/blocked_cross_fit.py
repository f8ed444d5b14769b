"""Blocked cross-fitting, for rows in the order of time that share their errors: how they are noticed, and how each block is
judged by models that have not seen it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from mislabel._common.robust import robust_std
from mislabel.estimators.cross_fit import Folds, fitted_to_all, folds_of, out_of_fold, seeded
from mislabel.estimators.sample_weights import weight_parameters
from mislabel.linalg.contract import FloatArray
from mislabel.noise.drift import errors_of_series

#: Correlation of successive rows' evidence from which on the rows are a series: neighbours share their errors, so a label
#: must not be judged by its neighbours. Rows in arbitrary order stay below 0.1.
SERIES_FROM = 0.25
_LEAST_SERIES = 200
#: Contiguous blocks of rows, each judged by models of the others.
BLOCKS = 20


def series_correlation(z: np.ndarray) -> float:
    """How closely the evidence against successive rows is correlated; robust against a few extreme rows."""
    scale = robust_std(z)
    if z.size < _LEAST_SERIES or not scale > 0:
        return 0.0
    clipped = np.clip(z / scale, -3.0, 3.0)
    return float(np.corrcoef(clipped[:-1], clipped[1:])[0, 1])


def blocked_cross_fit(
    ensemble: Any,
    X: Any,
    labels: FloatArray,
    random_state: np.random.RandomState,
    n_jobs: int | None,
    *,
    folds: Folds | None = None,
    weights: FloatArray | None = None,
    groups: Any = None,
) -> tuple[FloatArray, Any]:
    """What every label should have been, and the ensemble fitted to all rows.

    Each block of rows is predicted by an ensemble that has not seen it; what successive labels share of the errors that are
    left, and what stands out in single ones, is put down to the labels. Blocks are of successive rows, where the user has
    named neither folds nor groups. weights : sample weights for the fits.
    """
    ensemble = seeded(clone(ensemble), int(random_state.randint(np.iinfo(np.int32).max)))
    params = weight_parameters(ensemble, weights)
    blocks = folds_of(labels.size, groups, BLOCKS) if folds is None else folds
    residual = labels - out_of_fold(ensemble, X, labels, blocks, n_jobs, params)
    return labels - errors_of_series(residual), fitted_to_all(ensemble, X, labels, params)
