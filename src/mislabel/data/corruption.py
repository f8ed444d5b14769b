"""Labels made wrong on purpose, for experiments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from mislabel.errors import InvalidLabelsError, InvalidParameterError


class CorruptedLabels(NamedTuple):
    """Corrupted labels, the noise that was added, and which labels it was added to."""

    labels: NDArray[np.float64]
    noise: NDArray[np.float64]
    mask: NDArray[np.bool_]


def corrupt_labels(y: ArrayLike, rate: float, level: float, random_state: Any = None) -> CorruptedLabels:
    """Add normal noise to a random fraction of the labels, as the paper's experiments do.

    Parameters
    ----------
    y : clean labels.
    rate : fraction of labels to corrupt, 0 to 1; that many labels exactly (rounded).
    level : standard deviation of the noise relative to the standard deviation of y.
    random_state : seed, Generator or RandomState.
    """
    labels = np.array(y, dtype=float)
    if labels.ndim != 1 or not np.isfinite(labels).all():
        raise InvalidLabelsError("corrupt_labels needs a one-dimensional array of finite labels.")
    if not 0.0 <= rate <= 1.0:
        raise InvalidParameterError(f"rate is a fraction between 0 and 1, got {rate!r}.")
    if not level >= 0.0:
        raise InvalidParameterError(f"level is a ratio >= 0, got {level!r}.")
    if isinstance(random_state, np.random.Generator):
        generator: Any = random_state
    else:
        generator = check_random_state(random_state)
    mask = np.zeros(labels.size, dtype=bool)
    mask[generator.permutation(labels.size)[: round(rate * labels.size)]] = True
    noise = np.zeros(labels.size)
    noise[mask] = generator.normal(0.0, level * labels.std(), np.count_nonzero(mask))
    return CorruptedLabels(labels + noise, noise, mask)
