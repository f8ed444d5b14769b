"""Labels that are known exactly, and labels of which only a side or an interval is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from mislabel.likelihoods.contract import FloatArray, Moments, Observation
from mislabel.likelihoods.error_densities import Intervals

_HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class ExactLabels(Observation):
    """The label is the latent number."""

    values: FloatArray

    def moments(self, mean: FloatArray, variance: FloatArray) -> Moments:
        """Those of a normal density."""
        return _exact(self.values - mean, variance)

    def some(self, index: NDArray[np.intp]) -> ExactLabels:
        """Those at these positions."""
        return ExactLabels(self.values[index])

    def error(self, mean: FloatArray) -> FloatArray:
        """Label less mean."""
        return np.asarray(self.values - mean)


@dataclass(frozen=True, eq=False)
class CensoredLabels(Observation):
    """Of some labels only an interval is known that holds the latent number, mostly from or to infinity."""

    within: Intervals

    @property
    def values(self) -> FloatArray:  # type: ignore[override]
        """The label, or the end of the interval that there is; its middle where there are both."""
        lower, upper = self.within.lower, self.within.upper
        low, high = np.where(np.isfinite(lower), lower, upper), np.where(np.isfinite(upper), upper, lower)
        return np.asarray(0.5 * (low + high))

    def moments(self, mean: FloatArray, variance: FloatArray) -> Moments:
        """Normal densities, and probabilities of the intervals."""
        exact = self.within.exact
        found = _exact(np.where(exact, self.within.lower, 0.0) - mean, variance)
        inside = _interval(self.within, mean, variance)
        parts = zip(
            (found.log_density, found.slope, found.curvature),
            (inside.log_density, inside.slope, inside.curvature),
            strict=True,
        )
        return Moments(*(np.where(exact, one, other) for one, other in parts))

    def some(self, index: NDArray[np.intp]) -> CensoredLabels:
        """Those at these positions."""
        return CensoredLabels(self.within[index])

    def error(self, mean: FloatArray) -> FloatArray:
        """How far the nearest end of the interval is."""
        return np.asarray(np.clip(mean, self.within.lower, self.within.upper) - mean)


def _exact(error: FloatArray, variance: FloatArray) -> Moments:
    slope = error / variance
    log_density = -0.5 * (np.log(variance) + error * slope)
    return Moments(log_density, slope, slope**2 - 1.0 / variance)


def _interval(within: Intervals, mean: FloatArray, variance: FloatArray) -> Moments:
    """``Z = Phi(b) - Phi(a)`` with the ends in standard deviations from the mean, by logarithms of the smaller tails."""
    scale = np.sqrt(variance)
    low, high = (within.lower - mean) / scale, (within.upper - mean) / scale
    flip = low > 0.0
    first, last = np.where(flip, -high, low), np.where(flip, -low, high)
    log_last = log_ndtr(last)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_inside = log_last + np.log1p(-np.exp(log_ndtr(first) - log_last))
    # An exact label has an interval of no width: whatever comes out of it is not used.
    log_inside = np.where(np.isfinite(log_inside), log_inside, -0.5 * np.minimum(np.abs(low), np.abs(high)) ** 2)
    at_low, at_high = (_density_over(end, log_inside) for end in (low, high))
    slope = (at_low - at_high) / scale
    finite_low, finite_high = (np.where(np.isfinite(end), end, 0.0) for end in (low, high))
    curvature = (finite_low * at_low - finite_high * at_high) / variance
    return Moments(log_inside + _HALF_LOG_2PI, slope, curvature)


def _density_over(end: FloatArray, log_inside: FloatArray) -> FloatArray:
    """Standard normal density at an end of the interval, over the probability of the interval; zero at infinity."""
    finite = np.where(np.isfinite(end), end, 0.0)
    ratio = np.exp(np.minimum(-0.5 * finite**2 - _HALF_LOG_2PI - log_inside, 700.0))
    return np.asarray(np.where(np.isfinite(end), ratio, 0.0))
