"""Mean functions by name: models whose cross-fitted predictions a Gaussian process corrects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, VotingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mislabel.errors import unknown_name

AUTO = "auto"
NONE = "none"


def _half_of(name: str) -> Any:
    """A model that learns as usual and says half of what it thinks."""
    return TransformedTargetRegressor(MEANS[name](), func=np.asarray, inverse_func=halved, check_inverse=False)


def halved(prediction: Any) -> Any:
    """Half of a prediction."""
    return 0.5 * prediction


def _trees(count: int = 100) -> ExtraTreesRegressor:
    return ExtraTreesRegressor(n_estimators=count, min_samples_leaf=2)


#: A new mean function is one entry here and one in MEAN_WORDS.
MEANS: dict[str, Callable[[], Any]] = {
    "boosting": HistGradientBoostingRegressor,
    "trees": _trees,
    "linear": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
    "ensemble": lambda: VotingRegressor([(name, MEANS[name]()) for name in ("linear", "boosting", "trees")]),
    "half-boosting": lambda: _half_of("boosting"),
    "half-trees": lambda: _half_of("trees"),
}
#: What they are called where people read.
MEAN_WORDS = {
    "boosting": "gradient boosting",
    "trees": "extra trees",
    "linear": "linear regression",
    "ensemble": "linear regression, gradient boosting and extra trees together",
    "half-boosting": "half of what gradient boosting predicts",
    "half-trees": "half of what extra trees predict",
}
#: Names of before, still accepted.
OLD_NAMES = {"panel": "ensemble"}


def mean_words(name: str) -> str:
    """What the mean function of that name is called where people read."""
    return MEAN_WORDS[OLD_NAMES.get(name, name)]


def mean_named(name: str) -> Any:
    """The mean function of that name; None for "none"."""
    if name == NONE:
        return None
    name = OLD_NAMES.get(name, name)
    if name not in MEANS:
        raise unknown_name("mean", name, [AUTO, NONE, *MEANS])
    return MEANS[name]()
