"""The rival of a group of wrong labels: right labels alone, with tails as heavy as they need to be, on either side.

Whatever a group of wrong labels explains, a heavy tail explains too, somewhat less well: errors of right labels that are added
to some labels only (a second income, a leak) make a tail on one side. Where the tail does nearly as well, nothing says that any
label is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, expit, stdtr

from mislabel.likelihoods.error_densities import Errors, FloatArray, student_constant

#: Degrees of freedom are above this; the moments of such tails do not matter.
LEAST_DEGREES = 0.6
#: Logarithms of: scale (no lower than that of the mixture), floor, noise in proportion to the label, degrees above the least on
#: the upper and on the lower side, how much wider errors are above than below; how far the level is believed.
_BOUNDS = [(-0.7, 5.0), (-14.0, 3.0), (-14.0, 5.0), (-5.0, 4.0), (-5.0, 4.0), (-1.5, 1.5), (0.0, 1.5), (-7.0, 0.0)]
#: Starts of degrees and skew: even, heavier above, heavier below.
_STARTS = [(0.0, 0.0, 0.0), (-1.0, 1.0, 0.3), (1.0, -1.0, -0.3)]
_NONE = -14.0
#: Tails are believed to have about so many degrees of freedom, give or take this factor's logarithm: heavier ones are rare.
USUAL_DEGREES, GIVE_OR_TAKE = 3.0, 0.5
#: Differences of log likelihoods of many labels are compared: the means of both must be good to many digits.
PRECISE = {"ftol": 1e-13, "gtol": 1e-8}
_LEAST = 1e-300
#: Relative step of derivatives where intervals leave no closed form.
_STEP = 1e-5


def heavy_tailed_log_density(
    errors: Errors, variance: FloatArray, shape: tuple[float, float, float], strength: float, unit: float
) -> float:
    """The largest mean log density of errors, in label units, under a Student-t whose sides differ, with a prior on its tails.

    variance : promised. shape, strength : scale, floor and relative noise of right labels, and how far their level is believed,
        from where the search begins. unit : the typical error.
    """
    typical = float(np.mean(errors.expected**2))
    scale, floor, relative = shape
    first = (
        np.log(scale),
        np.log(max(floor / unit**2, np.exp(_NONE))),
        np.log(relative * typical / unit**2) if relative > 0.0 else _NONE,
    )
    bounds = list(_BOUNDS)
    if relative == 0.0:
        bounds[2] = (_NONE, _NONE)
    if errors.level is None:
        bounds[6] = (0.0, 0.0)
    squares = errors.expected**2 / typical if typical > 0.0 else errors.expected**2
    value = _HeavyTails(errors, variance, unit, squares)
    starts = (np.array([*first, *sides, strength, -2.0]) for sides in _STARTS)
    clipped = (np.clip(start, *np.array(bounds).T) for start in starts)
    return max(
        -float(minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=PRECISE).fun)
        for start in clipped
    )


class _HeavyTails:
    """Minus the mean log density of errors, with the prior on their tails, and its gradient."""

    def __init__(self, errors: Errors, variance: FloatArray, unit: float, squares: FloatArray) -> None:
        self.errors, self.variance, self.unit, self.squares = errors, variance, unit, squares

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at ``x``."""
        level = 0.0 if self.errors.level is None else self.errors.level
        parts = np.exp(x[0]) * self.variance, self.unit**2 * np.exp(x[1]), self.unit**2 * np.exp(x[2]) * self.squares
        widen = np.exp(2.0 * x[6] * level)
        total = (parts[0] + parts[1] + parts[2]) * widen
        degrees, skew = (LEAST_DEGREES + np.exp(x[3]), LEAST_DEGREES + np.exp(x[4])), float(x[5])
        holds = two_sided(self.errors, total, degrees, skew)
        fails = two_sided(self.errors, np.maximum(total, self.unit**2), degrees, skew)
        log_fails, log_holds = -np.logaddexp(0.0, -x[7]), -np.logaddexp(0.0, x[7])
        both = np.logaddexp(holds.value + log_holds, fails.value + log_fails)
        failed = np.exp(fails.value + log_fails - both)
        by_total = (1.0 - failed) * holds.by_log_variance
        by_total = (by_total + failed * np.where(total >= self.unit**2, fails.by_log_variance, 0.0)) / total
        slopes = [np.mean(by_total * part * widen) for part in parts]
        for which, raw in enumerate(x[3:5]):
            by_degrees = (1.0 - failed) * holds.by_degrees[which] + failed * fails.by_degrees[which]
            slopes.append(np.mean(by_degrees) * np.exp(raw))
        slopes.append(np.mean((1.0 - failed) * holds.by_skew + failed * fails.by_skew))
        slopes.append(2.0 * np.mean(by_total * total * level))
        slopes.append(np.mean(failed) - np.exp(log_fails))
        value, gradient = -float(np.mean(both)), -np.array(slopes)
        for number, found in enumerate(degrees, 3):
            # Student-t with three degrees of freedom: what is far from the centre is unlikely, not impossible.
            off = np.log(found / USUAL_DEGREES) / GIVE_OR_TAKE
            value += 2.0 * float(np.log1p(off**2 / 3.0)) / self.errors.size
            slope = 4.0 * off / (3.0 + off**2) / GIVE_OR_TAKE * (found - LEAST_DEGREES) / found
            gradient[number] += slope / self.errors.size
        return value, gradient


@dataclass(frozen=True, eq=False)
class TwoSided:
    """Log densities, and derivatives by the logarithm of the variance, by the degrees of freedom above and below, by the skew."""

    value: FloatArray
    by_log_variance: FloatArray
    by_degrees: tuple[FloatArray, FloatArray]
    by_skew: FloatArray


def two_sided(errors: Errors, variance: FloatArray, degrees: tuple[float, float], skew: float) -> TwoSided:
    """A Student-t that is wider by ``exp(skew)`` above zero, narrower below, and without a step at zero."""
    if errors.within is None or errors.outer_within is None:
        return _exact(errors, variance, degrees, skew)
    value = _interval(errors, variance, degrees, skew)

    def slope(changed: FloatArray, step: float) -> FloatArray:
        return (changed - value) / step

    h, (above, below) = _STEP, degrees
    return TwoSided(
        value,
        slope(_interval(errors, variance * np.exp(h), degrees, skew), h),
        (
            slope(_interval(errors, variance, (above * (1.0 + h), below), skew), above * h),
            slope(_interval(errors, variance, (above, below * (1.0 + h)), skew), below * h),
        ),
        slope(_interval(errors, variance, degrees, skew + h), h),
    )


def _share_above(degrees: tuple[float, float], skew: float) -> float:
    """Probability above zero: the heights of both sides are equal there."""
    return float(expit(student_constant(degrees[1]) - student_constant(degrees[0]) + 2.0 * skew))


def _exact(errors: Errors, variance: FloatArray, degrees: tuple[float, float], skew: float) -> TwoSided:
    share, is_above = _share_above(degrees, skew), errors.error > 0.0
    nu = np.where(is_above, *degrees)
    sign = np.where(is_above, 1.0, -1.0)
    ratio = errors.error**2 / (variance * np.exp(2.0 * sign * skew)) / nu
    far, part = np.log1p(ratio), ratio / (1.0 + ratio)
    constant = np.where(is_above, *(student_constant(number) for number in degrees))
    value = np.log(2.0 * np.where(is_above, share, 1.0 - share)) + constant
    value = value - 0.5 * np.log(variance) - sign * skew - 0.5 * (nu + 1.0) * far + errors.log_slope
    by_log_variance = 0.5 * ((nu + 1.0) * part - 1.0)
    rate = tuple(0.5 * (digamma(0.5 * (number + 1.0)) - digamma(0.5 * number) - 1.0 / number) for number in degrees)
    own = 0.5 * ((nu + 1.0) / nu * part - far)
    by_degrees = (
        np.where(is_above, share * rate[0] + own, share * rate[0]),
        np.where(is_above, (1.0 - share) * rate[1], (1.0 - share) * rate[1] + own),
    )
    by_skew = sign * 2.0 * by_log_variance + np.where(is_above, 2.0 * (1.0 - share), -2.0 * share)
    beside = 0.0 if errors.log_beside is None else errors.log_beside
    return TwoSided(np.asarray(value + beside), np.asarray(by_log_variance), by_degrees, np.asarray(by_skew))


def _interval(errors: Errors, variance: FloatArray, degrees: tuple[float, float], skew: float) -> FloatArray:
    assert errors.within is not None
    assert errors.outer_within is not None
    share, scale, (above, below) = _share_above(degrees, skew), np.sqrt(variance), degrees
    up, down = scale * np.exp(skew), scale * np.exp(-skew)
    lower, upper = errors.within.lower, errors.within.upper
    # Each side from its own end: far out, the rest of a distribution is lost in what it is subtracted from.
    over = stdtr(above, -np.maximum(lower, 0.0) / up) - stdtr(above, -np.maximum(upper, 0.0) / up)
    under = stdtr(below, np.minimum(upper, 0.0) / down) - stdtr(below, np.minimum(lower, 0.0) / down)
    inside = np.maximum(2.0 * share * over + 2.0 * (1.0 - share) * under, _LEAST)
    exact = _exact(errors, variance, degrees, skew).value
    beside = 0.0 if errors.log_beside is None else errors.log_beside
    return np.where(errors.within.exact, exact, np.log(inside) - errors.outer_within.log_width + beside)
