"""What a fit says of labels that it has not seen: the evidence that they would get if they were among those of the fit.

What all other labels say of a label that is left out is what all labels of the fit say of a new one: the posterior at its row.
The scale of the labels, what is known of their noise, and which labels stand apart are those of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mislabel.decisions import Evidence
from mislabel.decisions.evidence import FloatArray
from mislabel.estimators.atoms_apart import ChanceOfAtom
from mislabel.estimators.copies import row_hashes
from mislabel.estimators.evidence import Expectations, KindOfLabels, evidence_against
from mislabel.estimators.noise_level import NoiseByRow
from mislabel.estimators.prepared import MeanInputs, PreparedData
from mislabel.estimators.process import LARGEST_KNOWN
from mislabel.estimators.set_aside import Plausible
from mislabel.estimators.stages import FittedStages
from mislabel.kernels.adapters import PrecomputedKernel
from mislabel.likelihoods.error_densities import intervals_of
from mislabel.likelihoods.mixture import MixtureLikelihood, MixtureParameters
from mislabel.likelihoods.observations import CensoredLabels, ExactLabels


@dataclass(frozen=True, eq=False)
class RulesForNew:
    """What a fit keeps for labels that it has not seen, beside what it predicts.

    mixture, tails : of right and wrong labels; None where they were not told apart. base : noise variance that every label has.
    noise_by_row, chance : where noise depends on the row, and where labels at the values ``apart`` are a kind of their own.
    plausible : which labels are to be set aside. half_step : of labels that are written in coarse steps.
    """

    mixture: MixtureParameters | None
    tails: str
    base: float
    noise_by_row: NoiseByRow | None = None
    chance: ChanceOfAtom | None = None
    apart: tuple[float, ...] | None = None
    plausible: Plausible = field(default_factory=Plausible)
    half_step: float = 0.0


@dataclass(frozen=True, eq=False)
class NewLabels:
    """Rows that were not in the fit.

    rows : the user's own ids. points : their features. labels : in label units, NaN where missing. known_variance : of the
    labels. side : -1 for labels that are upper limits, 1 for lower ones. predictions : of the user's own model.
    """

    rows: NDArray[Any]
    points: FloatArray
    labels: FloatArray
    known_variance: FloatArray
    side: NDArray[np.int8]
    predictions: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Accepted:
    """Evidence for the rows of the fit itself, by which a new row that is one of them is known again.

    keys : a number for each row that equal rows share, label included, in ascending order. verdicts : of a person, 1 for wrong
    and 0 for right labels, NaN where there is none. The rest is on the scale of the fit.
    """

    keys: NDArray[np.uint64]
    expected: FloatArray
    variance: FloatArray
    noise_variance: FloatArray
    corrected: FloatArray
    chance: FloatArray
    verdicts: FloatArray

    @classmethod
    def of(cls, keys: NDArray[np.uint64], evidence: Evidence, verdicts: FloatArray | None = None) -> Accepted:
        """From what a fit, and a person, said of its rows."""
        order = np.argsort(keys, kind="stable")
        chance = np.zeros(keys.size) if evidence.chance is None else evidence.chance
        told = np.full(keys.size, np.nan) if verdicts is None else verdicts
        parts = evidence.expected, evidence.variance, evidence.noise_variance, evidence.corrected, chance, told
        return cls(keys[order], *(part[order] for part in parts))

    def verdicts_on(self, new: NewLabels) -> FloatArray:
        """What a person said of new rows that are rows of the fit."""
        at, own = self.among(new)
        found = np.full(new.labels.size, np.nan)
        found[at] = self.verdicts[own]
        return found

    def among(self, new: NewLabels) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of new rows that are rows of the fit, and of these."""
        if not self.keys.size:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        keys = row_hashes(new.points, (new.labels, new.known_variance, new.side.astype(float)))
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        same = np.flatnonzero(self.keys[at] == keys)
        return same, at[same]


def rules_for_new(found: FittedStages, tails: str) -> RulesForNew:
    """What the stages of a fit say of labels that it has not seen."""
    data, fitted = found.data, found.process.fitted
    apart = None if data.apart is None else tuple(sorted({*data.atoms.values} - {*data.bounds.values}))
    plausible = Plausible.beside(np.delete(data.labels, data.aside.positions))
    return RulesForNew(
        fitted.mixture, tails, fitted.base, found.noise_by_row, found.chance, apart, plausible, data.half_step
    )


def row_keys(data: PreparedData) -> NDArray[np.uint64] | None:
    """A number for every row of a fit, by which it is known again; None where rows are no features in this process."""
    if not isinstance(data.points, np.ndarray) or isinstance(data.kernel, PrecomputedKernel):
        return None
    # Labels at a bound are of a side, too, but new rows have only those that were given.
    side = np.zeros(data.side.size) if data.bounds.has_bounds else data.side.astype(float)
    return row_hashes(data.points, (data.labels, data.known_variance, side))


def predicted_on_scale(
    model: Any, points: FloatArray, predictions: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of new points, on the scale of the fit: what the mean expects, the prediction, and its standard deviation."""
    mean = np.broadcast_to(model._mean_at(points, MeanInputs(predictions=predictions)), len(points))
    return mean, *model._on_scale(points, mean, True)


def evidence_of_new(model: Any, rules: RulesForNew, new: NewLabels, accepted: Accepted | None = None) -> Evidence:
    """The evidence for new labels, on the scale of the fit and not yet calibrated.

    model : a fitted LabelNoiseRegressor. A row that is one of the fit, label included, has the evidence that it had there.
    """
    assert rules.mixture is not None
    transform, bounds, scale = model.label_transform_, model.bounds_, model.scale_
    side = np.where(np.isfinite(new.labels), new.side + bounds.side(new.labels), 0).astype(np.int8)
    absurd = rules.plausible.excludes(new.labels)
    apart = None if rules.apart is None else np.isin(new.labels, rules.apart) & ~absurd
    chance = None if rules.chance is None else rules.chance.of(new.points)
    mean, expected, std = predicted_on_scale(model, new.points, new.predictions)
    variance = std**2 + rules.base * scale**2
    noise_variance, corrected = np.zeros(expected.size), expected.copy()
    judged = np.flatnonzero(np.isfinite(new.labels) & ~absurd & (True if apart is None else ~apart))
    if judged.size:
        part = NewLabels(
            new.rows[judged], new.points[judged], new.labels[judged], new.known_variance[judged], side[judged]
        )
        found = _judged(model, rules, part, mean[judged], expected[judged], std[judged])
        variance[judged], noise_variance[judged], corrected[judged] = found
    if accepted is not None:
        at, own = accepted.among(new)
        expected[at], variance[at] = accepted.expected[own], accepted.variance[own]
        noise_variance[at], corrected[at] = accepted.noise_variance[own], accepted.corrected[own]
        if chance is not None:
            chance[at] = accepted.chance[own]
    kind = KindOfLabels(new.rows, new.labels, side, absurd, apart, chance, transform, rules.half_step, bounds)
    return evidence_against(kind, Expectations(expected, variance, noise_variance, corrected))


def _judged(
    model: Any, rules: RulesForNew, new: NewLabels, mean: FloatArray, expected: FloatArray, std: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Variance without the label's own noise, that noise, and the posterior mean of the clean label."""
    assert rules.mixture is not None
    transform, bounds, scale = model.label_transform_, model.bounds_, model.scale_
    known = (new.known_variance + rules.half_step**2) * transform.slope(new.labels) ** 2
    known = np.minimum(known / scale**2, LARGEST_KNOWN)
    signal_variance = (std / scale) ** 2
    relative = np.ones(expected.size)
    if rules.noise_by_row is not None:
        total = scale**2 * (signal_variance + known + rules.base)
        relative = rules.noise_by_row.relative(new.points, expected, total)
    labels = np.clip(new.labels, bounds.low, bounds.high)
    own = transform.forward(labels)
    within = intervals_of(labels, 0.0, new.side)
    observed: ExactLabels | CensoredLabels = ExactLabels((own - mean) / scale)
    if within is not None:
        observed = CensoredLabels(within.through(transform.forward).less(mean).scaled(scale))
    likelihood = MixtureLikelihood(observed, known, relative, rules.tails)
    cavity = likelihood.cavity((expected - mean) / scale, signal_variance, rules.mixture)
    noise = np.where(cavity.wrong > 0.5, np.maximum(cavity.error**2 - cavity.variance, 0.0), 0.0)
    label_noise = observed.values - cavity.mean - cavity.clean_shift
    return scale**2 * cavity.variance, scale**2 * noise, own - scale * label_noise
