"""How far right labels of a row spread, learned from its features, what is expected of it, how sure that is, and its gaps.

A forest learns the logarithm of the leave-one-out errors, and tells it of rows that it has not seen. A logarithm does not mind
how large a few wrong labels' errors are; whether anything was learned is decided by the density of the errors, not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mislabel.estimators.array_models import Trees
from mislabel.estimators.forest import out_of_bag
from mislabel.linalg.contract import FloatArray

#: Errors below this part of the typical one are accidents.
SMALLEST = 0.05
#: What is expected of a label, and how surely, depends a little on whether the label itself is believed: trees would find that
#: out. So they are told in steps: so many over the usual range of expectations, and this one of the logarithm of the variance.
STEPS = 20
RANGE = (0.05, 0.95)
STEP_OF_LOG = 0.25
#: With fewer nothing can be learned.
LEAST_ROWS = 100


@dataclass(frozen=True, eq=False)
class NoiseByRow:
    """How noise depends on the row, for new rows.

    trees : tell the logarithm of how far a label spreads, ``usual`` on average. step : of what is expected. strength : how far
    the trees are believed.
    """

    trees: Trees
    usual: float
    step: float
    strength: float = 1.0

    def relative(self, features: FloatArray, expected: FloatArray, variance: FloatArray) -> FloatArray:
        """What the base noise of new rows is multiplied by; ``variance`` is that of right labels without any of this."""
        own = _told(expected, variance, self.step)
        level = self.trees.predict(np.column_stack([own, features])) - self.usual
        return np.asarray(np.exp(2.0 * self.strength * level))


def learn_noise_level(
    features: Any,
    expected: FloatArray,
    variance: FloatArray,
    error: FloatArray,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
) -> tuple[FloatArray, NoiseByRow] | None:
    """Logarithm of how far labels of each row spread, less its mean, by trees that have not seen the row, and that of new rows;
    None for few rows.

    features : of the rows, in this process or on workers. expected, variance, error : leave-one-out, on the scale of the fit;
        errors that are not known are NaN.
    """
    known = np.abs(error[np.isfinite(error)])
    typical = float(np.median(known)) if known.size else 0.0
    if known.size < LEAST_ROWS or typical == 0.0:
        return None
    target = np.log(np.maximum(np.abs(error), SMALLEST * typical))
    low, high = np.quantile(expected, RANGE)
    step = float(high - low) / STEPS
    level, trees = out_of_bag(features, _told(expected, variance, step), target, random_state, n_jobs)
    usual = float(np.mean(level))
    return np.asarray(level - usual), NoiseByRow(trees, usual, step)


def _told(expected: FloatArray, variance: FloatArray, step: float) -> FloatArray:
    """What trees are told of a row beside its features."""
    sure = np.log(np.maximum(variance, np.finfo(float).tiny))
    return np.column_stack([_in_steps(expected, step), _in_steps(sure, STEP_OF_LOG)])


def _in_steps(values: FloatArray, step: float) -> FloatArray:
    return np.round(values / step) if step > 0.0 else np.zeros(values.size)
