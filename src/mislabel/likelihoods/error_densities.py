"""How likely errors of labels are, as Student-t or normal ones, with derivatives by their parameters.

An error is the label less what all others expect of it. It is known exactly, or, where labels were rounded or censored, within
an interval: then its density is the probability of the interval, by its width where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, stdtr

from mislabel._common.robust import robust_std
from mislabel.likelihoods.transforms import Identity, Transform

FloatArray = NDArray[np.float64]

#: Degrees of freedom of wrong labels.
WRONG_DEGREES = 8.0
#: Probabilities below this are taken to be it.
_LEAST = 1e-300
#: Relative step of the derivative by the degrees of freedom, where intervals leave no closed form.
_STEP = 1e-4
#: Intervals narrower than this part of the typical error are points: density and probability by width differ by a hundredth.
FINE = 0.5


@dataclass(frozen=True, eq=False)
class Intervals:
    """Ends of the intervals in which values lie; one that is known exactly has equal ends."""

    lower: FloatArray
    upper: FloatArray

    def __getitem__(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> Intervals:
        return Intervals(self.lower[index], self.upper[index])

    def less(self, expected: FloatArray | float) -> Intervals:
        """The same less what was expected."""
        return Intervals(self.lower - expected, self.upper - expected)

    def through(self, function: Callable[[FloatArray], FloatArray]) -> Intervals:
        """Where an increasing function takes them."""
        return Intervals(function(self.lower), function(self.upper))

    def scaled(self, scale: float) -> Intervals:
        """The same in units of ``scale``."""
        return Intervals(self.lower / scale, self.upper / scale)

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which values are known exactly."""
        return np.asarray(self.lower == self.upper)

    def narrowed(self, fine: NDArray[np.bool_], to: FloatArray | float) -> Intervals:
        """The same where the ``fine`` ones are points."""
        return Intervals(np.where(fine, to, self.lower), np.where(fine, to, self.upper))

    @property
    def log_width(self) -> FloatArray:
        """Logarithm of the width; zero where an interval has no end, or none to speak of."""
        width = self.upper - self.lower
        return np.log(np.where(np.isfinite(width) & (width > 0.0), width, 1.0))


def intervals_of(labels: FloatArray, half_step: float, side: NDArray[np.int8]) -> Intervals | None:
    """Of labels that were rounded to steps, or say only that a number is at most (side -1) or at least (1) the label; None where
    all are exact.
    """
    if not half_step and not side.any():
        return None
    lower, upper = labels - half_step, labels + half_step
    return Intervals(
        np.where(side < 0, -np.inf, np.where(side > 0, labels, lower)),
        np.where(side > 0, np.inf, np.where(side < 0, labels, upper)),
    )


def log_beside_of(chance: FloatArray, usual: float | None = None) -> FloatArray:
    """How much rarer, or more frequent, right labels beside the atoms are in each row than in all rows, as a logarithm.

    chance : that a right label is at an atom, for all rows, or for some where what is ``usual`` in all is given. Wrong labels are
    beside as often as labels in general.
    """
    return np.asarray(np.log1p(-chance) - np.log1p(-(np.mean(chance) if usual is None else usual)))


def typical_error(error: FloatArray) -> float:
    """By which intervals are told from points: the robust spread of the errors that are known."""
    known = error[np.isfinite(error)]
    return float(robust_std(known)) if known.size else 0.0


@dataclass(frozen=True, eq=False)
class Errors:
    """Labels less what was expected of them, on the scale of the fit and in label units.

    error, variance, expected : on the scale of the fit; ``variance`` is what the model promises for right labels.
    log_slope : logarithm of the derivative of the scale, at the labels.
    outer_error, outer_expected, outer_slope : in label units, and the derivative of the scale where the label was expected.
    within, outer_within : intervals of the errors on both scales; None where all are known exactly. outer_log_width : of the
        intervals in label units.
    """

    error: FloatArray
    variance: FloatArray
    expected: FloatArray
    log_slope: FloatArray
    outer_error: FloatArray
    outer_expected: FloatArray
    outer_slope: FloatArray
    within: Intervals | None = None
    outer_within: Intervals | None = None
    level: FloatArray | None = None
    log_beside: FloatArray | None = None

    @classmethod
    def of(
        cls,
        labels: FloatArray,
        expected: FloatArray,
        variance: FloatArray,
        transform: Transform | None = None,
        intervals: Intervals | None = None,
        log_beside: FloatArray | None = None,
        typical: float | None = None,
    ) -> Errors:
        """From labels and expectations on the scale of the fit, and intervals of the labels in label units.

        typical : the typical error, where these are some labels of many; else it is found here.
        """
        transform = Identity() if transform is None else transform
        outer, outer_expected = transform.inverse(labels), transform.inverse(expected)
        within = outer_within = None
        if intervals is not None:
            within = intervals.through(transform.forward).less(expected)
            outer_within = intervals.less(outer_expected)
            fine = within.upper - within.lower < FINE * (
                typical_error(labels - expected) if typical is None else typical
            )
            within, outer_within = (
                within.narrowed(fine, labels - expected),
                outer_within.narrowed(fine, outer - outer_expected),
            )
            if fine.all():
                within = outer_within = None
        return cls(
            labels - expected,
            variance,
            expected,
            transform.log_slope(outer),
            outer - outer_expected,
            outer_expected,
            transform.slope(outer_expected),
            within,
            outer_within,
            log_beside=log_beside,
        )

    def __getitem__(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> Errors:
        return Errors(
            self.error[index],
            self.variance[index],
            self.expected[index],
            self.log_slope[index],
            self.outer_error[index],
            self.outer_expected[index],
            self.outer_slope[index],
            None if self.within is None else self.within[index],
            None if self.outer_within is None else self.outer_within[index],
            None if self.level is None else self.level[index],
            None if self.log_beside is None else self.log_beside[index],
        )

    @property
    def size(self) -> int:
        """How many there are."""
        return self.error.size

    @property
    def is_limit(self) -> NDArray[np.bool_]:
        """Which labels are upper or lower limits."""
        if self.within is None:
            return np.zeros(self.size, dtype=bool)
        return np.asarray(np.isinf(self.within.lower) | np.isinf(self.within.upper))


@dataclass(frozen=True, eq=False)
class LogDensity:
    """Logarithms of densities in label units, and their derivatives by the logarithm of the variance, by the degrees and by the
    logit of the share above.
    """

    value: FloatArray
    by_log_variance: FloatArray
    by_degrees: FloatArray | float = 0.0
    by_side: FloatArray | float = 0.0


def student_constant(degrees: float) -> float:
    """Logarithm of the density of a standard Student-t at zero."""
    return float(gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees) - 0.5 * np.log(np.pi * degrees))


def student_density(errors: Errors, variance: FloatArray, degrees: float) -> LogDensity:
    """Right labels: Student-t on the scale of the fit, with this variance (the square of its scale parameter)."""
    found = _exact_student(errors, variance, degrees)
    if errors.within is not None and errors.outer_within is not None:
        found = _interval_student(errors.within, errors.outer_within, found, np.sqrt(variance), degrees)
    return found if errors.log_beside is None else replace(found, value=found.value + errors.log_beside)


def _interval_student(
    within: Intervals, outer_within: Intervals, known: LogDensity, scale: FloatArray, degrees: float
) -> LogDensity:
    """Where labels are not ``known`` exactly, the probability of their intervals."""
    low, high = within.lower / scale, within.upper / scale
    inside = _between(lambda x: stdtr(degrees, x), low, high)
    further = degrees * (1.0 + _STEP)
    by_degrees = (np.log(_between(lambda x: stdtr(further, x), low, high)) - np.log(inside)) / (_STEP * degrees)
    slope = 0.5 * (_times_student(low, degrees) - _times_student(high, degrees)) / inside
    return LogDensity(
        np.where(within.exact, known.value, np.log(inside) - outer_within.log_width),
        np.where(within.exact, known.by_log_variance, slope),
        np.where(within.exact, known.by_degrees, by_degrees),
    )


def _exact_student(errors: Errors, variance: FloatArray, degrees: float) -> LogDensity:
    ratio = errors.error**2 / (degrees * variance)
    far = np.log1p(ratio)
    value = student_constant(degrees) - 0.5 * np.log(variance) - 0.5 * (degrees + 1.0) * far + errors.log_slope
    share = ratio / (1.0 + ratio)
    by_degrees = digamma(0.5 * (degrees + 1.0)) - digamma(0.5 * degrees) - 1.0 / degrees - far
    by_degrees = 0.5 * (by_degrees + (degrees + 1.0) / degrees * share)
    return LogDensity(value, 0.5 * ((degrees + 1.0) * share - 1.0), by_degrees)


def wrong_density(errors: Errors, outer_variance: FloatArray, above: float = 0.5) -> LogDensity:
    """Wrong labels: Student-t in label units, around what was expected, with this squared scale parameter.

    above : the share of wrong labels that is too large: a unit error, or a leak, puts all of them on one side.
    """
    degrees = WRONG_DEGREES
    ratio = errors.outer_error**2 / (degrees * outer_variance)
    value = student_constant(degrees) - 0.5 * np.log(outer_variance) - 0.5 * (degrees + 1.0) * np.log1p(ratio)
    slope = 0.5 * ((degrees + 1.0) * ratio / (1.0 + ratio) - 1.0)
    side = np.sign(errors.outer_error)
    value = value + np.where(side > 0.0, np.log(2.0 * above), np.where(side < 0.0, np.log(2.0 - 2.0 * above), 0.0))
    by_side = np.where(side > 0.0, 1.0 - above, np.where(side < 0.0, -above, 0.0))
    if errors.outer_within is None:
        return LogDensity(value, slope, by_side=by_side)
    within = _interval_wrong(errors.outer_within, np.sqrt(outer_variance), above)
    exact = errors.outer_within.exact
    return LogDensity(
        np.where(exact, value, within.value),
        np.where(exact, slope, within.by_log_variance),
        by_side=np.where(exact, by_side, within.by_side),
    )


def _interval_wrong(outer_within: Intervals, scale: FloatArray, above: float) -> LogDensity:
    """Probabilities of intervals, each side of what was expected with its own share."""
    degrees = WRONG_DEGREES
    low, high = outer_within.lower / scale, outer_within.upper / scale
    sides = [
        (above, np.maximum(low, 0.0), np.maximum(high, 0.0)),
        (1.0 - above, np.minimum(low, 0.0), np.minimum(high, 0.0)),
    ]
    over, under = (2.0 * _between(lambda x: stdtr(degrees, x), *ends) for _, *ends in sides)
    inside = above * over + (1.0 - above) * under
    by_variance = sum(
        share * (_times_student(first, degrees) - _times_student(last, degrees)) for share, first, last in sides
    )
    return LogDensity(
        np.log(inside) - outer_within.log_width,
        np.asarray(by_variance / inside),
        by_side=above * (1.0 - above) * (over - under) / inside,
    )


def _between(distribution: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Probability of an interval under a symmetric distribution; the smaller tails are subtracted."""
    above = low > 0.0
    first, last = np.where(above, -high, low), np.where(above, -low, high)
    return np.maximum(np.asarray(distribution(last)) - distribution(first), _LEAST)


def _times_student(x: FloatArray, degrees: float) -> FloatArray:
    """``x`` times the density at ``x``; zero at infinity."""
    finite = np.where(np.isfinite(x), x, 0.0)
    density = np.exp(student_constant(degrees) - 0.5 * (degrees + 1.0) * np.log1p(finite**2 / degrees))
    return np.asarray(finite * density)
