"""How far leave-one-out errors really spread, compared with what the model promised.

Clean labels of real tables are often heavier-tailed than a Gaussian process with one base noise can say, predictions from near
duplicates are promised too sharply, and large labels are noisier than small ones. The errors themselves tell: they are
described as a mixture of clean labels, Student-t with variance ``scale * v + floor + relative * expected^2``, and wrong ones,
normal with an additional variance. That holds for every model with errors enough to tell: to believe the model's own word (t
with infinitely many degrees of freedom, scale one, the others zero) until it is clearly refuted lets more false discoveries
through than were asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from mislabel._common.robust import robust_std
from mislabel.decisions.evidence import Evidence, FloatArray, in_standard_deviations

#: Errors beyond this many tell nothing new about five numbers.
MOST_ERRORS = 5000
_LEAST_ERRORS = 50
#: Log likelihood that a calibration gains over the model's own word where it is worth a word: about one for each of its four
#: more numbers, of which the last is mostly idle.
NOTICEABLE_GAIN = 3.0
#: Promised standard deviations are not believed below this fraction of the typical error: likelihoods of exact duplicates are
#: unbounded.
_SHARPEST = 0.1
#: Logarithms (or logits) of: share of wrong labels, their variance, scale, floor, degrees of freedom less two, noise in
#: proportion to the label.
_BOUNDS = [(-9.0, 0.0), (-4.0, 14.0), (-5.0, 5.0), (-14.0, 3.0), (-1.5, 5.0), (-14.0, 5.0)]
_STARTS = [(-2.0, 2.0, 0.0, -6.0, 1.5), (-2.0, 5.0, 0.0, -1.0, 1.5), (-2.0, 3.0, 0.0, -3.0, 4.0)]
#: Scale, floor and degrees of freedom that amount to the model's own word.
_AS_PROMISED = (0.0, -14.0, 5.0)
#: Starts for noise in proportion to the label: none, and about a third of the typical squared error.
_NO_MORE, _MORE = -14.0, -1.0
_NORMAL_FROM = 60.0
#: Logarithm of the least scale under priors: clean labels that spread much less than the model promises are the peak of
#: something else, such as the commonest of coarse grades.
LEAST_SCALE = -0.7
#: Log likelihood that noise in proportion to the label must gain. It depends on where the labels' zero is: without clear signs
#: of it, labels that are shifted by a constant must get the same verdicts.
_LEAST_GAIN_BY_SIZE = 4.0


@dataclass(frozen=True)
class Priors:
    """What is believed before the errors are seen: wrong labels must earn their group.

    share : prior on the share p of wrong labels, ``(1 - p)^share``.
    spread_sd : scale of the logarithm of how far wrong labels are off, squared, around the labels' own variance.
    tail, tail_sd : centre and scale of the logarithm of the degrees of freedom of clean labels, less two.
    """

    share: float = 30.0
    spread_sd: float = 3.0
    tail: float = 0.4
    tail_sd: float = 0.5


#: The priors of a decision. Descriptions that only compare models do without.
SCEPTICAL = Priors()


@dataclass(frozen=True)
class Calibration:
    """Spread of clean labels around what the others expect.

    scale, floor, sharpest, relative : variance of a clean label is ``scale * max(v, sharpest) + floor + relative * m^2``, ``v``
        being what the model promised and ``m`` the expected label.
    degrees : of freedom of the Student-t; infinite for a normal distribution.
    wrong_fraction, wrong_std : of the other group.
    log_density : mean log predictive density of all labels under the mixture; larger is better.
    adjusted : whether this was fitted to errors; else it is the model's own word, for want of errors.
    noticeable : whether it differs from the model's own word by more than accidents do.
    """

    scale: float
    floor: float
    sharpest: float
    relative: float
    degrees: float
    wrong_fraction: float
    wrong_std: float
    log_density: float
    adjusted: bool
    noticeable: bool

    def apply(self, evidence: Evidence) -> Evidence:
        """The evidence with the spread that was found instead of the one that was promised."""
        evidence = self.with_wrong_group(evidence)
        if not self.adjusted:
            return evidence
        variance = self.scale * np.maximum(evidence.variance, self.sharpest) + self.floor
        variance = variance + self.relative * evidence.expected**2
        z = in_standard_deviations(evidence.error, variance)
        return replace(evidence, variance=variance, z=z, degrees=self.degrees)

    def with_wrong_group(self, evidence: Evidence) -> Evidence:
        """The evidence as it is, with what is known about wrong labels."""
        return replace(evidence, wrong_fraction=self.wrong_fraction, wrong_std=self.wrong_std)


def as_promised() -> Calibration:
    """The calibration that takes the model at its word."""
    nothing = float("nan")
    return Calibration(1.0, 0.0, 0.0, 0.0, float("inf"), 0.0, 0.0, nothing, adjusted=False, noticeable=False)


def calibrate(
    error: FloatArray, variance: FloatArray, expected: FloatArray | None = None, priors: Priors | None = None
) -> Calibration:
    """Describe leave-one-out errors, by how large the labels are too if ``expected`` is given; NaN errors do not count.

    priors : weigh against large groups of wrong labels and light tails; None for the highest likelihood.
    """
    known = np.isfinite(error) & (variance > 0)
    size = np.zeros(error.size) if expected is None else expected**2
    spread = _spread_of_labels(error[known] if expected is None else (expected + error)[known])
    error, variance, size = error[known], variance[known], size[known]
    if error.size > MOST_ERRORS:
        # Evenly through the sorted errors, so that the sample has the same quantiles.
        order = np.argsort(error, kind="stable")
        chosen = order[np.linspace(0, error.size - 1, MOST_ERRORS).round().astype(int)]
        error, variance, size = error[chosen], variance[chosen], size[chosen]
    unit = robust_std(error) if error.size else 0.0
    if error.size < _LEAST_ERRORS or unit == 0.0:
        return as_promised()
    e, v = error / unit, np.maximum(variance / unit**2, _SHARPEST**2)
    typical = float(np.mean(size))
    squares = size / typical if typical > 0.0 else size

    centre = 2.0 * float(np.log(spread / unit)) if spread > 0.0 else 0.0
    belief = None if priors is None else _Belief(priors, centre, e.size)

    def best(starts: Iterable[tuple[float, ...]]) -> tuple[float, FloatArray]:
        return min((_fit(e, v, squares, start, belief) for start in starts), key=lambda fit: fit[0])

    plain = best(start[:2] for start in _STARTS[:2])
    full = best([*_STARTS, (*plain[1], *_AS_PROMISED)])
    if typical > 0.0:
        by_size = best([(*full[1], _NO_MORE), *((*x, _MORE) for x in (full[1], (*plain[1], *_AS_PROMISED)))])
        if e.size * (full[0] - by_size[0]) > _LEAST_GAIN_BY_SIZE:
            full = by_size
    x = full[1]
    relative = float(np.exp(x[5])) * unit**2 / typical if x.size > 5 and x[5] > _NO_MORE else 0.0
    degrees = 2.0 + float(np.exp(x[4]))
    return Calibration(
        scale=float(np.exp(x[2])),
        floor=float(np.exp(x[3])) * unit**2,
        sharpest=(_SHARPEST * unit) ** 2,
        relative=relative,
        degrees=float("inf") if degrees > _NORMAL_FROM else degrees,
        wrong_fraction=_sigmoid(x[0]),
        wrong_std=float(np.exp(0.5 * x[1])) * unit,
        log_density=-full[0] - np.log(unit),
        adjusted=True,
        noticeable=e.size * (plain[0] - full[0]) > NOTICEABLE_GAIN,
    )


def _sigmoid(value: float) -> float:
    return float(1.0 / (1.0 + np.exp(-value)))


def _spread_of_labels(labels: FloatArray) -> float:
    """Standard deviation of the labels, the outermost hundredth drawn in."""
    if not labels.size:
        return 0.0
    return float(np.std(np.clip(labels, *np.quantile(labels, [0.005, 0.995]))))


@dataclass(frozen=True)
class _Belief:
    """Priors in the coordinates of the fit, per error: ``centre`` is the logarithm of the labels' variance there."""

    priors: Priors
    centre: float
    size: int

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Minus the logarithm of the prior, and its gradient."""
        share, slopes = _sigmoid(x[0]), np.zeros(x.size)
        value = -self.priors.share * float(np.log1p(-share))
        slopes[0] = self.priors.share * share
        beliefs = [(1, self.centre, self.priors.spread_sd)]
        beliefs += [(4, self.priors.tail, self.priors.tail_sd)] if x.size > 2 else []
        for number, centre, scale in beliefs:
            # Student-t with three degrees of freedom: what is far from the centre is unlikely, not impossible.
            off = (x[number] - centre) / scale
            value += 2.0 * float(np.log1p(off**2 / 3.0))
            slopes[number] = 4.0 * off / (3.0 + off**2) / scale
        return value / self.size, slopes / self.size


def _fit(
    e: FloatArray, v: FloatArray, squares: FloatArray, start: tuple[float, ...], belief: _Belief | None
) -> tuple[float, FloatArray]:
    """Mean negative log density and parameters of the best mixture from one start.

    A start of two numbers leaves the clean labels as the model promised, one of five has none that are noisier if larger.
    """
    square = e**2

    def value(x: FloatArray) -> tuple[float, FloatArray]:
        share, spread = _sigmoid(x[0]), np.exp(x[1])
        clean = v
        if x.size > 2:
            parts = [np.exp(x[2]) * v, np.exp(x[3]), np.exp(x[5]) * squares if x.size > 5 else 0.0]
            clean = parts[0] + parts[1] + parts[2]
        wide = clean + spread
        if x.size == 2:
            first = -0.5 * (square / clean + np.log(2.0 * np.pi * clean))
            by_clean = 0.5 * (square / clean - 1.0) / clean
        else:
            nu = 2.0 + np.exp(x[4])
            ratio = square / (nu * clean)
            constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu)
            first = constant - 0.5 * np.log(clean) - 0.5 * (nu + 1.0) * np.log1p(ratio)
            by_clean = 0.5 * ((nu + 1.0) * ratio / (1.0 + ratio) - 1.0) / clean
        second = -0.5 * (square / wide + np.log(2.0 * np.pi * wide))
        density = np.logaddexp(first + np.log1p(-share), second + np.log(share))
        wrong = np.exp(second + np.log(share) - density)
        by_wide = wrong * 0.5 * (square / wide - 1.0) / wide
        slopes = [np.mean(wrong) - share, np.mean(by_wide) * spread]
        if x.size > 2:
            by_all = (1.0 - wrong) * by_clean + by_wide
            by_nu = digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - 1.0 / nu - np.log1p(ratio)
            by_nu = 0.5 * (1.0 - wrong) * (by_nu + (nu + 1.0) / nu * ratio / (1.0 + ratio))
            slopes += [np.mean(by_all * parts[0]), np.mean(by_all) * parts[1], np.mean(by_nu) * (nu - 2.0)]
            slopes += [np.mean(by_all * parts[2])] if x.size > 5 else []
        if belief is None:
            return -float(np.mean(density)), -np.array(slopes)
        prior, prior_slopes = belief(x)
        return prior - float(np.mean(density)), prior_slopes - np.array(slopes)

    bounds = list(_BOUNDS[: len(start)])
    if belief is not None and len(start) > 2:
        bounds[2] = (LEAST_SCALE, bounds[2][1])
    start = tuple(float(np.clip(number, *bound)) for number, bound in zip(start, bounds, strict=True))
    found = minimize(value, np.array(start), jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.fun), np.asarray(found.x)
