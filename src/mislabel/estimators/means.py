"""Mean functions by name, and the choice between them by leave-one-out predictive density."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, VotingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mislabel.decisions import calibrate
from mislabel.errors import MislabelWarning, unknown_name
from mislabel.estimators.cross_fit import REPEATS, cross_fitted_mean

AUTO = "auto"
NONE = "none"


def _half_of(name: str) -> Any:
    """A model that learns as usual and says half of what it thinks."""
    return TransformedTargetRegressor(MEANS[name](), func=np.asarray, inverse_func=_halved, check_inverse=False)


def _halved(prediction: Any) -> Any:
    return 0.5 * prediction


def _trees(count: int = 100) -> ExtraTreesRegressor:
    return ExtraTreesRegressor(n_estimators=count, min_samples_leaf=2)


#: A new mean function is one entry here; those in CANDIDATES take part in the choice.
MEANS: dict[str, Callable[[], Any]] = {
    "boosting": HistGradientBoostingRegressor,
    "trees": _trees,
    "linear": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
    "panel": lambda: VotingRegressor([(name, MEANS[name]()) for name in ("linear", "boosting", "trees")]),
    "half-boosting": lambda: _half_of("boosting"),
    "half-trees": lambda: _half_of("trees"),
}
#: What they are called where people read.
MEAN_WORDS = {
    "boosting": "gradient boosting",
    "trees": "extra trees",
    "linear": "linear regression",
    "panel": "linear regression, gradient boosting and extra trees together",
    "half-boosting": "half of what gradient boosting predicts",
    "half-trees": "half of what extra trees predict",
}
CANDIDATES = (NONE, "boosting", "trees")
#: Rows on which the candidates are compared: first few, then, where those do not decide, more.
CHOICE_ROWS = (300, 1000)
#: A first look at few rows is worth it where there are so many times more.
WORTH_A_LOOK = 2.0
#: With fewer different rows there is nothing to choose by.
LEAST_ROWS = 60
#: Nats per label by which a candidate must trail on few rows to be given up.
DECISIVE = 0.3
#: Nats per label by which a mean function without a Gaussian process must trail one alone not to be tried with one.
HOPELESS = 0.5
#: Nats per label that a mean function must gain over the Gaussian process alone.
LEAST_ADVANTAGE = 0.01


@dataclass(frozen=True)
class MeanChoice:
    """Which mean function was chosen, and the mean log density per label of every candidate.

    series : how closely errors of successive rows are correlated, where that made the rows a series; else None.
    rows : labels the last candidates were compared on.
    """

    name: str
    densities: dict[str, float]
    rows: int
    series: float | None = None

    @property
    def sentence(self) -> str:
        """For people."""
        if self.series is not None:
            return (
                f"successive rows share their errors (correlation {self.series:.2f}), so each stretch of rows was judged by "
                "models that had not seen it (linear regression, gradient boosting and extra trees), by what its labels' errors "
                "share, and by what stands out in single ones"
            )
        if not self.densities:
            return "a Gaussian process alone (too few rows to compare models)"
        told = "; ".join(f"{_candidate_words(name)} {value:.3f}" for name, value in self.densities.items())
        return (
            f"{_candidate_words(self.name)} predicts held-out labels best "
            f"(mean log density per label, on at most {self.rows} rows: {told})"
        )


def _candidate_words(name: str) -> str:
    return "a Gaussian process alone" if name == NONE else f"one over {MEAN_WORDS[name]}"


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
    # Copies of a row predict each other perfectly, by any model that can remember: they do not count.
    _, first = np.unique(np.column_stack([points, labels]), axis=0, return_index=True)
    order = np.random.default_rng(seed).permutation(np.sort(first))
    if order.size < LEAST_ROWS:
        return MeanChoice(NONE, {}, 0)
    left = list(CANDIDATES)
    trials: dict[str, _Trial] = {}
    compared = labels
    stages = _stages(order.size)
    for stage, size in enumerate(stages):
        rows = np.sort(order[:size])
        if len(left) == 1:
            break
        compared = labels[rows]
        for step, name in enumerate(left):
            progress(f"comparing models on {rows.size} rows: {name}", 0.02 + 0.1 * stage + 0.1 * step / len(left))
            at_least = trials[NONE].density - HOPELESS if NONE in trials else -np.inf
            # One partition into folds tells which candidates are out of the question; the choice needs what a fit will have.
            repeats = REPEATS if size == stages[-1] else 1
            trials[name] = _tried(model, name, points[rows], compared, known_errors[rows], seed, at_least, repeats)
        best = max(left, key=lambda name: trials[name].density)
        left = [name for name in left if trials[name].density > trials[best].density - DECISIVE]
    best = max(left, key=lambda name: trials[name].density)
    halfway = _halfway(trials, left, compared)
    if halfway is not None:
        trials[halfway[0]] = halfway[1]
        if halfway[1].density > trials[best].density + LEAST_ADVANTAGE:
            best = halfway[0]
    if NONE in left and not trials[best].density > trials[NONE].density + LEAST_ADVANTAGE:
        best = NONE
    return MeanChoice(best, {name: trial.density for name, trial in trials.items()}, compared.size)


class _Trial(NamedTuple):
    """Mean log density of the labels, and what the others predict for each, with its variance, where that was fitted."""

    density: float
    expected: Any = None
    variance: Any = None


def _halfway(trials: dict[str, _Trial], left: list[str], labels: Any) -> tuple[str, _Trial] | None:
    """The process alone and the best mean function, averaged; None where one of them is out of the question.

    With the same hyperparameters, that is a process over half of the mean function.
    """
    others = [name for name in left if name != NONE and trials[name].expected is not None]
    if NONE not in left or not others:
        return None
    best = max(others, key=lambda name: trials[name].density)
    expected, variance = (
        0.5 * (getattr(trials[NONE], what) + getattr(trials[best], what)) for what in ("expected", "variance")
    )
    density = calibrate(labels - expected, variance, expected).log_density
    return f"half-{best}", _Trial(density if np.isfinite(density) else -np.inf)


def _tried(
    model: Any, name: str, points: Any, labels: Any, known_errors: Any, seed: int, at_least: float, repeats: int
) -> _Trial:
    """A Gaussian process over the cross-fitted mean; the mean alone where that does not promise a density of ``at_least``."""
    mean = 0.0
    if name != NONE:
        mean, _ = cross_fitted_mean(MEANS[name](), points, labels, np.random.RandomState(seed), None, False, repeats)
        error = labels - mean
        bare = calibrate(error, np.full(error.size, float(np.median(np.abs(error))) ** 2)).log_density
        if bare < at_least:
            return _Trial(bare)
    trial = clone(model).set_params(mean=None, rank=None, verbose=0, missing="raise", random_state=seed)
    with warnings.catch_warnings():
        # What a candidate has to warn of matters only if it is chosen.
        warnings.simplefilter("ignore", MislabelWarning)
        trial.fit(points, labels - mean, known_errors)
    expected = trial.loo_mean_ + mean
    density = calibrate(trial.loo_error_, trial.loo_variance_, expected).log_density
    return _Trial(density if np.isfinite(density) else -np.inf, expected, trial.loo_variance_)


def _stages(size: int) -> list[int]:
    """Numbers of rows on which candidates are compared, of all those there are: few first where that saves much."""
    stages = [min(rows, size) for rows in CHOICE_ROWS]
    return [stages[-1]] if stages[-1] < WORTH_A_LOOK * stages[0] else stages
