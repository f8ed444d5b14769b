"""The second stage of a fit where the mean is left open: which mean function, by leave-one-out predictive density.

A Gaussian process alone is fitted first; on most tables it stays. Cross-fitted predictions of the mean functions, and their
averages with those of the process, cost no fit of a process: they tell whether one of them promises more. Only then is a
process fitted over the best one, and compared. Densities are those of the calibrated mixture of clean and wrong labels, so that
wrong labels do not decide.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mislabel._common.progress import Tell
from mislabel.decisions import calibrate
from mislabel.errors import MislabelWarning
from mislabel.estimators.mean_functions import MEAN_WORDS, NONE
from mislabel.estimators.process import FittedProcess
from mislabel.likelihoods.error_densities import Errors, Intervals
from mislabel.linalg.contract import FloatArray, IntArray

CANDIDATES = ("boosting", "trees")
#: Rows on which models are compared: all of them up to the first number, else as many as the second.
COMPARED_AT_ONCE = 1500
COMPARED = 1000
#: With fewer different rows there is nothing to choose by.
LEAST_ROWS = 60
#: Copies take part, and do not count, where at least this share of the rows has none; else only rows without copies do.
MOSTLY_SINGLE = 0.9
#: Nats per label that a mean function must gain over the Gaussian process alone.
LEAST_ADVANTAGE = 0.01
#: Nats per label by which all of a mean function must lead half of it: a process has more to add to a half.
LEAST_LEAD_OF_ALL = 0.02
#: Nats per label by which predictions without a process of their own may trail and still promise a gain.
PROMISING = 0.01


@dataclass(frozen=True)
class MeanChoice:
    """Which mean function was chosen, and the mean log density per label of every candidate.

    series : how closely errors of successive rows are correlated, where that made the rows a series; else None.
    rows : labels the candidates were compared on.
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
                f"successive rows share their errors (correlation {self.series:.2f}), so each block of rows was judged by "
                "models that had not seen it (linear regression, gradient boosting and extra trees), by what its labels' errors "
                "share, and by what stands out in single ones"
            )
        if not self.densities:
            return "a Gaussian process alone (too few rows to compare models)"
        if list(self.densities) == [NONE]:
            others = " and ".join(MEAN_WORDS[name] for name in CANDIDATES)
            return (
                f"a Gaussian process alone predicts held-out labels best (mean log density per label {self.densities[NONE]:.3f}, "
                f"on at most {self.rows} rows); {others} promised no gain"
            )
        told = "; ".join(f"{_words(name)} {value:.3f}" for name, value in self.densities.items())
        return (
            f"{_words(self.name)} predicts held-out labels best "
            f"(mean log density per label, on at most {self.rows} rows: {told})"
        )


def _words(name: str) -> str:
    return "a Gaussian process alone" if name == NONE else f"one over {MEAN_WORDS[name]}"


#: Cross-fitted predictions of the mean function of a name for some labels, averaged over so many partitions into folds.
PredictsMean = Callable[[str, IntArray, int], FloatArray]
#: A process fitted to some labels, by position, less a mean.
FitsProcess = Callable[[IntArray, FloatArray], FittedProcess]


class Comparison(NamedTuple):
    """The models that a choice is made between.

    labels : of all rows. within : intervals of those that are not known exactly, else None. predict_mean, fit_process : what
        candidates consist of. repeats : partitions of a final mean.
    """

    labels: FloatArray
    predict_mean: PredictsMean
    fit_process: FitsProcess
    repeats: int
    within: Intervals | None = None


class Chosen(NamedTuple):
    """A choice, and the mean and the process of the winner where they were fitted to all labels; else None."""

    choice: MeanChoice
    out_of_fold: FloatArray | None = None
    process: FittedProcess | None = None


class _Trial(NamedTuple):
    density: float
    expected: FloatArray
    variance: FloatArray


def choose_mean(models: Comparison, single: IntArray, seed: int, tell: Tell) -> Chosen:
    """Choose between a process alone, and one over all or half of a mean function.

    single : positions of the rows without copies: copies predict each other perfectly, by any model that can remember, and do
        not count.
    """
    if single.size < LEAST_ROWS:
        return Chosen(MeanChoice(NONE, {}, 0))
    rows = np.arange(models.labels.size)
    if rows.size > COMPARED_AT_ONCE:
        rows = np.sort(np.random.default_rng(seed).permutation(single)[:COMPARED])
    elif single.size < MOSTLY_SINGLE * rows.size:
        rows = single
    trial = _Trials(models, rows, np.isin(rows, single))
    tell(f"a process alone, {rows.size} rows")
    with warnings.catch_warnings():
        # What a candidate has to warn of matters only if it is chosen.
        warnings.simplefilter("ignore", MislabelWarning)
        alone = models.fit_process(rows, np.zeros(rows.size))
    trials = {NONE: trial(alone.loo_mean, alone.loo_variance)}
    final: dict[str, tuple[FloatArray, FittedProcess]] = {NONE: (np.zeros(rows.size), alone)}
    best = _most_promising(models, rows, trials, trial, tell)
    if best is not None:
        tell(f"a process over {MEAN_WORDS[best]}")
        share = 0.5 if best.startswith("half-") else 1.0
        mean = share * models.predict_mean(best.removeprefix("half-"), rows, models.repeats)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MislabelWarning)
            over = models.fit_process(rows, mean)
        trials[best] = trial(over.loo_mean + mean, over.loo_variance)
        final[best] = mean, over
    name = NONE if best is None or trials[best].density <= trials[NONE].density + LEAST_ADVANTAGE else best
    choice = MeanChoice(name, {name: trial.density for name, trial in trials.items()}, rows.size)
    return Chosen(choice, *final[name]) if rows.size == models.labels.size else Chosen(choice)


def _most_promising(
    models: Comparison, rows: IntArray, trials: dict[str, _Trial], trial: _Trials, tell: Tell
) -> str | None:
    """The mean function, or half of one, whose predictions promise more than a process alone; None if none does."""
    labels, alone = models.labels[rows], trials[NONE]
    found: dict[str, float] = {}
    for name in CANDIDATES:
        tell(f"cross-fitting {MEAN_WORDS[name]}")
        expected = models.predict_mean(name, rows, 1)
        variance = np.full(labels.size, float(np.median(np.abs(labels - expected))) ** 2)
        found[name] = trial(expected, variance).density - LEAST_LEAD_OF_ALL
        half = 0.5 * (alone.expected + expected), 0.5 * (alone.variance + variance)
        found[f"half-{name}"] = trial(*half).density
    best = max(found, key=lambda name: found[name])
    return best if found[best] > alone.density - PROMISING else None


class _Trials:
    """Densities of some labels, for one description of what is expected of them after the other; of the rows that count."""

    def __init__(self, models: Comparison, rows: IntArray, counts: NDArray[np.bool_]) -> None:
        self._labels = models.labels[rows][counts]
        self._within = None if models.within is None else models.within[rows[counts]]
        self._counts = counts

    def __call__(self, expected: FloatArray, variance: FloatArray) -> _Trial:
        counts = self._counts
        errors = Errors.of(self._labels, expected[counts], variance[counts], intervals=self._within)
        density = calibrate(errors).log_density
        return _Trial(density if np.isfinite(density) else -np.inf, expected, variance)
