"""The first choice of a fit: the scale on which right labels spread evenly, by leave-one-out predictive density.

Densities are those of labels in their own units, so that scales can be compared, under the mixture of right and wrong labels,
whose wrong ones are described in label units on every scale: a wrong label costs the same on all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mislabel._common.progress import Tell
from mislabel.decisions import calibrate
from mislabel.errors import InvalidParameterError, MislabelWarning, unknown_name
from mislabel.estimators.prepared import PreparedData
from mislabel.estimators.process import FittedProcess
from mislabel.likelihoods.error_densities import Errors
from mislabel.likelihoods.transforms import TRANSFORMS, Identity, Transform
from mislabel.linalg.contract import FloatArray, IntArray

AUTO = "auto"
#: Labels on which scales are compared: all of them up to the first number, else as many as the second.
COMPARED_AT_ONCE = 500
COMPARED = 400
#: With fewer there is nothing to choose by.
LEAST_LABELS = 60
#: Nats per label that another scale must gain over the labels as they are.
LEAST_ADVANTAGE = 0.005
#: A scale that makes many labels wrong is none: prior ``(1 - share)^MANY_WRONG`` on the share of wrong labels.
MANY_WRONG = 100.0
#: Only labels that reach further up than down are looked at, but for scales that are even: others squeeze large labels. These are
#: the quantiles between which labels reach, with room for wrong ones beyond.
REACH = (0.2, 0.8)
EVEN = ("asinh", "logit")

#: A process fitted to some labels on a scale, by position.
FitsOnScale = Callable[[IntArray, Transform], FittedProcess]


@dataclass(frozen=True)
class ScaleChoice:
    """Which scale was chosen, and the mean log density per label of every candidate; none where nothing was compared.

    process : that of the chosen scale, on the labels that were compared; None where none were.
    """

    name: str
    densities: dict[str, float]
    process: FittedProcess | None = field(default=None, repr=False, compare=False)


def named_scale(name: str, labels: FloatArray) -> Transform:
    """The scale of this name for some labels; refuses one that does not suit them."""
    if name not in TRANSFORMS:
        raise unknown_name("label_transform", name, [AUTO, *TRANSFORMS])
    found = TRANSFORMS[name](labels)
    if found is None:
        raise InvalidParameterError(
            f"the transform {name!r} does not suit these labels, which reach from {labels.min():g} to {labels.max():g} (log and "
            "sqrt want positive ones, logit shares or percentages): use 'auto' or 'none'."
        )
    return found


def choose_scale(
    data: PreparedData, fit: FitsOnScale, random_state: np.random.RandomState, tell: Tell
) -> tuple[Transform, ScaleChoice]:
    """The scale of highest density, of those that suit the labels that take part."""
    labels = data.own_labels
    candidates = candidates_for(labels)
    if len(candidates) < 2:
        return Identity(), ScaleChoice(Identity.name, {})
    index = np.arange(labels.size)
    if labels.size > COMPARED_AT_ONCE:
        index = np.sort(random_state.choice(labels.size, COMPARED, replace=False))
    densities, processes = {}, {}
    with warnings.catch_warnings():
        # What a candidate has to warn of matters only if it is chosen.
        warnings.simplefilter("ignore", MislabelWarning)
        for transform in candidates:
            tell(f"labels {transform.words}")
            processes[transform.name] = process = fit(index, transform)
            densities[transform.name] = _density(process, data, index, transform)
    best = max(candidates, key=lambda transform: densities[transform.name])
    if densities[best.name] < densities[Identity.name] + LEAST_ADVANTAGE:
        best = candidates[0]
    return best, ScaleChoice(best.name, densities, processes[best.name])


def candidates_for(labels: FloatArray) -> list[Transform]:
    """The labels as they are, and the scales that may suit them better."""
    found: list[Transform] = [Identity()]
    if labels.size < LEAST_LABELS:
        return found
    low, median, high = np.quantile(labels, [REACH[0], 0.5, REACH[1]])
    up = high - median > median - low
    for name, make in TRANSFORMS.items():
        transform = make(labels) if name != Identity.name and (up or name in EVEN) else None
        if transform is not None:
            found.append(transform)
    return found


def _density(process: FittedProcess, data: PreparedData, index: IntArray, transform: Transform) -> float:
    scaled, intervals = transform.forward(data.own_labels[index]), data.own_intervals
    beside = None if data.log_beside is None else data.log_beside[index]
    part = None if intervals is None else intervals[index]
    errors = Errors.of(scaled, process.loo_mean, process.loo_variance, transform, part, beside)
    found = calibrate(errors, others_right=data.n_apart * index.size // max(data.present.size, 1))
    if not np.isfinite(found.log_density):
        return -np.inf
    return found.log_density + MANY_WRONG * float(np.log1p(-found.wrong_fraction)) / index.size
