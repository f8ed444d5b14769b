"""Mean functions by name, and the choice between them by leave-one-out predictive density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mislabel.errors import unknown_name

AUTO = "auto"
NONE = "none"
#: A new mean function is one entry here; those in CANDIDATES take part in the choice.
MEANS: dict[str, Callable[[], Any]] = {
    "boosting": HistGradientBoostingRegressor,
    "trees": lambda: ExtraTreesRegressor(n_estimators=100, min_samples_leaf=2),
    "linear": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
}
CANDIDATES = (NONE, "boosting", "trees")
#: Rows on which the candidates are compared where there are more.
CHOICE_ROWS = 1000
#: Nats per label that a mean function must gain over the Gaussian process alone.
LEAST_ADVANTAGE = 0.01


@dataclass(frozen=True)
class MeanChoice:
    """Which mean function was chosen, and the mean log density per label of every candidate.

    rows : labels the candidates were compared on.
    """

    name: str
    densities: dict[str, float]
    rows: int

    @property
    def sentence(self) -> str:
        """For people."""
        names = {NONE: "a Gaussian process alone", "boosting": "one over gradient boosting", "trees": "one over extra trees"}
        told = "; ".join(f"{names.get(name, name)} {value:.3f}" for name, value in self.densities.items())
        return (
            f"{names.get(self.name, self.name)} predicts held-out labels best "
            f"(mean log density per label on {self.rows} rows: {told})"
        )


def mean_named(name: str) -> Any:
    """The mean function of that name; None for "none"."""
    if name == NONE:
        return None
    if name not in MEANS:
        raise unknown_name("mean", name, [AUTO, NONE, *MEANS])
    return MEANS[name]()


def choose_mean(model: Any, points: Any, labels: Any, known_errors: Any, seed: int, progress: Any) -> MeanChoice:
    """Fit ``model`` with every candidate to (some of) the labels; the best predictive density wins.

    Densities are those of the calibrated mixture of clean and wrong labels, so wrong ones do not decide.
    """
    present = np.flatnonzero(~np.isnan(labels))
    rows = np.sort(np.random.default_rng(seed).permutation(present)[:CHOICE_ROWS])
    densities: dict[str, float] = {}
    for step, name in enumerate(CANDIDATES):
        progress(f"comparing models: {name if name != NONE else 'Gaussian process alone'}", 0.25 * step / len(CANDIDATES))
        trial = clone(model).set_params(mean=mean_named(name), verbose=0, missing="raise", random_state=seed)
        trial.fit(points[rows], labels[rows], None if known_errors is None else known_errors[rows])
        densities[name] = trial.calibration_.log_density
    best = max(densities, key=lambda name: (densities[name] if np.isfinite(densities[name]) else -np.inf))
    if not densities[best] > densities[NONE] + LEAST_ADVANTAGE:
        best = NONE
    return MeanChoice(best, densities, rows.size)
