"""The arrays a decision is made from, one entry per label."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mislabel.likelihoods.atoms import Atoms
from mislabel.likelihoods.error_densities import Errors, intervals_of, log_beside_of, typical_error
from mislabel.likelihoods.transforms import Identity, Transform

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]
#: The largest number there is.
LARGEST = float(np.finfo(np.float64).max)


#: Fields of Evidence that have one entry per label.
_PER_LABEL = (
    "rows",
    "label",
    "expected",
    "variance",
    "error",
    "z",
    "noise_variance",
    "label_noise",
    "corrected",
    "log_odds",
    "set_aside",
    "at_atom",
    "side",
    "chance",
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Leave-one-out evidence for every label, on the scale of the fit; missing labels have NaN as label, error and z.

    rows : the user's own ids.
    expected, variance : what the other labels predict, and its variance without the label's own noise.
    noise_variance : of each label, beyond the base noise. label_noise : posterior mean of its error.
    corrected : posterior mean of the clean label.
    degrees : right labels spread like a Student-t with so many degrees of freedom; infinite for a normal distribution.
    log_odds : logarithm of the odds that a label is wrong; None where that is not known.
    set_aside : labels beyond any plausible scale, which are wrong whatever else is decided; None for none.
    at_atom : labels at a value that holds a fair share of all, and stand apart; None for none. chance : for each row, that a
        right label is at one of these values.
    transform : the scale of the fit. half_step : in label units, where labels are written in coarse steps; else zero.
    side : -1 for labels that are upper limits, 1 for lower ones, 0 for all others; None where there are none. bounds : where
        labels end, in label units; what is expected on this scale may lie beyond.
    typical, usual_chance : the typical error, and the mean of ``chance``, of all labels that these are some of; None where these
        are all.
    """

    rows: NDArray[Any]
    label: FloatArray
    expected: FloatArray
    variance: FloatArray
    error: FloatArray
    z: FloatArray
    noise_variance: FloatArray
    label_noise: FloatArray
    corrected: FloatArray
    degrees: float = float("inf")
    log_odds: FloatArray | None = None
    set_aside: BoolArray | None = None
    at_atom: BoolArray | None = None
    transform: Transform = field(default_factory=Identity)
    half_step: float = 0.0
    side: NDArray[np.int8] | None = None
    bounds: Atoms = field(default_factory=Atoms)
    chance: FloatArray | None = None
    typical: float | None = None
    usual_chance: float | None = None

    @property
    def errors(self) -> Errors:
        """How far labels are off, for those who describe it."""
        side = np.zeros(self.label.size, dtype=np.int8) if self.side is None else self.side
        intervals = intervals_of(self.transform.inverse(self.label), self.half_step, side)
        beside = None if self.chance is None else log_beside_of(self.chance, self.usual_chance)
        return Errors.of(self.label, self.expected, self.variance, self.transform, intervals, beside, self.typical)

    @property
    def as_some(self) -> Evidence:
        """The same where what all labels have in common stays as it is if some of them are looked at."""
        typical = typical_error(self.label - self.expected) if self.typical is None else self.typical
        usual = self.usual_chance
        if self.chance is not None and usual is None:
            usual = float(np.mean(self.chance))
        return replace(self, typical=typical, usual_chance=usual)

    def some(self, index: NDArray[np.intp]) -> Evidence:
        """That of some labels."""
        own = {name: getattr(self, name) for name in _PER_LABEL}
        chosen: dict[str, Any] = {name: None if values is None else values[index] for name, values in own.items()}
        return replace(self, **chosen)

    def shown(self, values: FloatArray) -> FloatArray:
        """Values on the scale of the fit as labels, which end at the bounds."""
        return np.asarray(np.clip(self.transform.inverse(values), self.bounds.low, self.bounds.high))

    def about(self, index: NDArray[np.intp], labels: FloatArray, side: NDArray[np.int8], absurd: BoolArray) -> Evidence:
        """The same evidence about other labels, in label units, of some rows: what the others predict stays as it is.

        side : of these labels. absurd : which of them lie beyond any plausible scale.
        """
        label = self.label.copy()
        label[index] = self.transform.forward(labels)
        own = label[index] - self.expected[index]
        error = np.clip(error_of(label[index], self.expected[index], side), -LARGEST / 2, LARGEST / 2)
        changed: dict[str, Any] = {
            "error": error,
            "z": in_standard_deviations(error, self.variance[index]),
            "noise_variance": np.maximum(np.nan_to_num(squared(error)) - self.variance[index], 0.0),
            "label_noise": np.where(side == 0, own, error),
            "corrected": self.expected[index],
            "set_aside": absurd,
            "at_atom": np.zeros(index.size, dtype=bool),
            "side": side,
        }
        found: dict[str, Any] = {"label": label}
        for name, values in changed.items():
            before = getattr(self, name)
            if before is None and not values.any():
                continue
            found[name] = np.zeros(label.size, dtype=values.dtype) if before is None else before.copy()
            found[name][index] = values
        return replace(self, **found)

    @property
    def in_label_units(self) -> Evidence:
        """The same in the user's units; standard deviations are half the distance between the ends of plus and minus one."""
        if self.transform.is_identity and not self.bounds.has_bounds:
            return self
        label, corrected = self.transform.inverse(self.label), self.transform.inverse(self.corrected)
        expected = self.shown(self.expected)
        spread = self.transform.spread(self.expected, np.sqrt(self.variance))
        # How far the standard deviation of a label's own noise reaches from the label towards what was expected.
        towards = self.label - np.sign(self.error) * np.sqrt(self.noise_variance)
        return replace(
            self,
            label=label,
            expected=expected,
            variance=squared(spread),
            error=label - expected,
            noise_variance=squared(np.nan_to_num(label - self.transform.inverse(towards))),
            label_noise=label - corrected,
            corrected=corrected,
            transform=Identity(),
            bounds=Atoms(),
            typical=None,
        )

    @property
    def limits(self) -> NDArray[np.int8]:
        """``side``, one entry per label in any case, without that of labels at bounds, which nobody wrote so."""
        none = np.zeros(self.label.size, dtype=np.int8)
        return none if self.side is None or self.bounds.has_bounds else self.side

    @property
    def stands_apart(self) -> BoolArray:
        """``at_atom``, one entry per label in any case."""
        return np.zeros(self.label.size, dtype=bool) if self.at_atom is None else self.at_atom & ~self.absurd

    @property
    def absurd(self) -> BoolArray:
        """``set_aside``, one entry per label in any case."""
        return np.zeros(self.label.size, dtype=bool) if self.set_aside is None else self.set_aside


def error_of(label: FloatArray, expected: FloatArray, side: NDArray[np.int8]) -> FloatArray:
    """How far labels are off; one that is a limit, by as much as is expected on its other side."""
    error = label - expected
    error = np.where(side < 0, np.minimum(error, 0.0), error)
    return np.where(side > 0, np.maximum(error, 0.0), error)


def in_standard_deviations(error: FloatArray, variance: FloatArray) -> FloatArray:
    """Errors over the square root of their variance, finite however large they are."""
    with np.errstate(over="ignore"):
        return np.clip(error / np.sqrt(variance), -LARGEST, LARGEST)


def squared(values: FloatArray) -> FloatArray:
    """Squares, finite however large the values are."""
    with np.errstate(over="ignore"):
        return np.minimum(values**2, LARGEST)
