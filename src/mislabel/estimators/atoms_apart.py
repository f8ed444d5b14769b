"""What becomes of labels at an atom: they stand apart, or say only that the number behind them lies at a bound or beyond.

Both describe all labels, those at the atom by a probability and those beside it by a density, so that they can be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mislabel.decisions import Calibration, calibrate
from mislabel.errors import MislabelWarning
from mislabel.estimators.array_models import Trees
from mislabel.estimators.forest import out_of_bag
from mislabel.estimators.prepared import PreparedData
from mislabel.estimators.process import FittedProcess
from mislabel.likelihoods.error_densities import Errors
from mislabel.linalg.contract import FloatArray, IntArray

#: Labels beside the atoms without which nothing stands apart.
LEAST_BESIDE = 50
#: Chances of being at an atom are drawn to that of all rows as by one row among so many: leaves of a forest hold few.
ROWS_BEHIND = 10.0
#: Rows on which both are compared, at most.
COMPARED = 500
#: A description that makes many labels wrong is none: prior ``(1 - share)^MANY_WRONG`` on the share of wrong labels.
MANY_WRONG = 100.0

#: A process fitted to some of the labels that take part, by position.
FitsOn = Callable[[PreparedData, IntArray], FittedProcess]


@dataclass(frozen=True, eq=False)
class ChanceOfAtom:
    """How often a right label of a new row is at an atom.

    everywhere : in all rows. trees : what features tell of it; None where there are none. share : of these atoms that stand
    apart, where others are bounds.
    """

    everywhere: float
    trees: Trees | None = None
    share: float = 1.0

    def of(self, features: FloatArray) -> FloatArray:
        """One number for each row."""
        if self.trees is None:
            return np.full(len(features), self.share * self.everywhere)
        return self.share * self.drawn(self.trees.predict(features))

    def drawn(self, found: FloatArray) -> FloatArray:
        """What trees tell, drawn to all rows."""
        return np.asarray((ROWS_BEHIND * found + self.everywhere) / (ROWS_BEHIND + 1.0))


def chance_of_atom(
    held: np.ndarray, features: Any, random_state: np.random.RandomState, n_jobs: int | None
) -> tuple[FloatArray, ChanceOfAtom]:
    """For each row, how often a right label is at an atom, by what the features tell of others (the same for all without any),
    and that of new rows.
    """
    rule = ChanceOfAtom(float(held.mean()))
    if features is None or not features.shape[1]:
        return np.full(held.size, rule.everywhere), rule
    found, trees = out_of_bag(features, np.zeros((held.size, 0)), held.astype(float), random_state, n_jobs)
    return rule.drawn(found), ChanceOfAtom(rule.everywhere, trees)


def bounds_or_apart(
    data: PreparedData, apart: PreparedData, chance: FloatArray, fit: FitsOn, random_state: np.random.RandomState
) -> PreparedData:
    """The better description of the labels of ``data``: with bounds, or ``apart``, whose rows are at atoms by ``chance``."""
    bounded, size = data.with_bounds(), data.present.size
    if bounded.atoms.values != bounded.bounds.values:
        bounded = bounded.with_apart(_chance_of_others(data, apart))
    index = np.arange(size)
    if size > COMPARED:
        index = np.sort(random_state.choice(size, COMPARED, replace=False))
    with warnings.catch_warnings():
        # What a candidate has to warn of matters only if it is chosen.
        warnings.simplefilter("ignore", MislabelWarning)
        densities = [_log_density(candidate, data.present[index], chance[index], fit) for candidate in (apart, bounded)]
    return apart if densities[0] >= densities[1] else bounded


def _chance_of_others(data: PreparedData, apart: PreparedData) -> FloatArray:
    """The chances of all rows where only atoms that are no bounds stand apart: in proportion to these."""
    assert apart.chance is not None
    held = data.atoms.holds(data.labels)
    others = np.mean(~data.atoms.bounds.holds(data.labels[held]))
    return np.asarray(float(others) * apart.chance)


def _log_density(data: PreparedData, positions: IntArray, chance: FloatArray, fit: FitsOn) -> float:
    """Of the labels at ``positions``, all together."""
    taking_part = np.flatnonzero(np.isin(data.present, positions))
    process = fit(data, taking_part)
    intervals, beside = data.own_intervals, data.log_beside
    errors = Errors.of(
        data.fit_labels[taking_part],
        process.loo_mean,
        process.loo_variance,
        data.transform,
        None if intervals is None else intervals[taking_part],
        None if beside is None else beside[taking_part],
    )
    held = np.zeros(positions.size, dtype=bool) if data.apart is None else data.apart[positions]
    found = calibrate(errors, others_right=int(np.count_nonzero(held)))
    if not np.isfinite(found.log_density):
        return -np.inf
    # Errors say how the chance to be beside the atoms compares with that of all rows.
    everywhere = 0.0 if data.chance is None else float(np.log1p(-np.mean(data.chance)))
    at_atoms = float(np.sum(np.log(chance[held])))
    return taking_part.size * (found.log_density + everywhere) + _prior(found) + at_atoms


def _prior(found: Calibration) -> float:
    return MANY_WRONG * float(np.log1p(-found.wrong_fraction))
