"""How far leave-one-out errors really spread, compared with what the model promised, and how many of them are wrong labels'.

Right labels of real tables are often heavier-tailed than a Gaussian process with one base noise can say, predictions from near
duplicates are promised too sharply, and large labels are noisier than small ones. The errors themselves tell: they are
described as a mixture of right labels, Student-t on the scale of the fit with variance ``scale * v + floor + relative *
expected^2``, and wrong ones, normal in label units with an additional variance. Priors make wrong labels earn their group; and
the mixture has a rival that needs no wrong labels at all (``heavy_tails.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from mislabel._common.robust import robust_std
from mislabel.decisions.evidence import Evidence, FloatArray, in_standard_deviations
from mislabel.decisions.heavy_tails import PRECISE, heavy_tailed_log_density
from mislabel.decisions.verdicts import LearnedOdds
from mislabel.likelihoods.error_densities import Errors, LogDensity, student_density, wrong_density

#: Errors beyond this many tell nothing new about five numbers.
MOST_ERRORS = 5000
_LEAST_ERRORS = 50
#: Log likelihood that a calibration gains over the model's own word where it is worth a word: about one for each of its four
#: more numbers, of which the last is mostly idle.
NOTICEABLE_GAIN = 3.0
#: Promised standard deviations are not believed below this fraction of the typical error: likelihoods of exact duplicates are
#: unbounded.
_SHARPEST = 0.1
#: Where the search keeps its numbers, as logarithms or logits. Of wrong labels: their share, their variance in that of the
#: labels, how many of them are too large. Of right ones: scale, floor, degrees of freedom less two, how far the level is believed
#: (this number as it is), how often a sharp promise fails, noise in proportion to the label.
_SHARE, _SPREAD, _ABOVE, _SCALE, _FLOOR, _TAIL, _LEVEL, _FAILING, _RELATIVE = range(9)
#: So many describe wrong labels alone, with right ones as promised, and all but noise in proportion to the label.
_OF_WRONG, _OF_ALL = 3, 8
_BOUNDS = [
    (-9.0, 0.0),
    (-10.0, 80.0),
    (-4.0, 4.0),
    (-0.7, 5.0),
    (-14.0, 3.0),
    (-1.5, 5.0),
    (0.0, 1.5),
    (-7.0, 0.0),
    (-14.0, 5.0),
]
_STARTS = [
    (-2.0, 0.0, 0.0, 0.0, -6.0, 1.0, 0.5, -3.0),
    (-3.0, 0.0, 0.0, 0.0, -3.0, 1.5, 0.5, -3.0),
    (-3.0, -1.5, 0.0, -0.5, -8.0, 3.0, 0.5, -2.0),
]
#: Where the outermost label is off by so many spreads of all labels (as a logarithm, squared), a search also begins with wrong
#: labels as far off as that.
_FAR_OFF = 6.0
#: Scale, floor and degrees of freedom that amount to the model's own word, no level, and promises that hold.
_AS_PROMISED = (0.0, -14.0, 5.0, 0.0, -7.0)
#: Starts for noise in proportion to the label: none, and about a third of the typical squared error.
_NO_MORE, _MORE = -14.0, -1.0
_NORMAL_FROM = 60.0
#: Labels off by more standard deviations are at least as odd as any nearer one: which are looked at, as shares of the way.
FAR = 4.0
NEARER = tuple(np.geomspace(1e-4, 1.0, 120).tolist())
#: Log odds, before the errors are seen, that there are some wrong labels: somebody looks for them.
PRIOR_ODDS = 3.0
#: A share of wrong labels above this is contested where heavy tails are nearly as probable: below these log odds.
CONTESTED_SHARE, CONTESTED_ODDS = 0.02, 3.0
#: More labels than this share do not go wrong to one side: they are right ones of another process. Wrong labels then lie as often
#: on either side.
MOST_ON_ONE_SIDE = 0.12
#: Where more labels than this share would have to be wrong, the model rather does not fit them: each label beyond it must gain so
#: much log likelihood on average.
LARGE_PART, GAIN_OF_EACH = 0.2, 0.5
#: Log likelihood that noise in proportion to the label must gain. It depends on where the labels' zero is: without clear signs
#: of it, labels that are shifted by a constant must get the same verdicts.
_LEAST_GAIN_BY_SIZE = 4.0


@dataclass(frozen=True)
class Priors:
    """What is believed before the errors are seen: wrong labels must earn their group.

    share : prior on the share p of wrong labels, ``(1 - p)^share``.
    spread_sd : scale of the logarithm of how far wrong labels are off, squared, around the labels' own variance.
    tail, tail_sd : centre and scale of the logarithm of the degrees of freedom of right labels, less two.
    sides : wrong labels are believed to be too large as often as too small, as firmly as by so many labels on either side.
    level : prior ``exp(-level g)`` on how far the level of a row is believed.
    """

    share: float = 15.0
    spread_sd: float = 1.0
    sides: float = 2.0
    tail: float = 1.0
    tail_sd: float = 0.5
    level: float = 2.0
    failing: float = -2.0
    failing_sd: float = 1.5


SCEPTICAL = Priors()


@dataclass(frozen=True)
class Calibration:
    """Spread of right labels around what the others expect, and that of wrong ones.

    scale, floor, sharpest, relative, strength : variance of a right label is ``(scale * max(v, sharpest) + floor + relative *
        m^2) * exp(2 strength * level)``, ``v`` being what the model promised and ``m`` the expected label, on the scale of the
        fit.
    degrees : of freedom of the Student-t; infinite for a normal distribution.
    wrong_fraction, wrong_std : share of wrong labels, and how far they are off in label units. wrong_above : the share of them
        that is too large.
    log_density : mean log predictive density of all labels under the mixture, in label units; larger is better.
    gain : log likelihood that the group of wrong labels gains over right labels with tails as heavy as needed, less what is
        asked of a group that is a large part of all labels.
    adjusted : whether this was fitted to errors; else it is the model's own word, for want of errors.
    noticeable : whether it differs from the model's own word by more than accidents do.
    learned : what verdicts of a person make of the odds; None without any.
    """

    scale: float
    floor: float
    sharpest: float
    relative: float
    strength: float
    failing: float
    typical: float
    degrees: float
    wrong_fraction: float
    wrong_std: float
    wrong_above: float
    log_density: float
    gain: float
    adjusted: bool
    noticeable: bool
    learned: LearnedOdds | None = None

    @property
    def contested(self) -> bool:
        """Whether there seem to be wrong labels, but heavy tails explain them as well."""
        return self.adjusted and self.wrong_fraction > CONTESTED_SHARE and self.gain + PRIOR_ODDS < CONTESTED_ODDS

    @property
    def log_belief(self) -> tuple[float, float]:
        """Logarithms of the probabilities that there is a group of wrong labels, and that there is none."""
        odds = self.gain + PRIOR_ODDS
        return -float(np.logaddexp(0.0, -odds)), -float(np.logaddexp(0.0, odds))

    def spread(self, variance: FloatArray, expected: FloatArray, level: FloatArray | None = None) -> FloatArray:
        """Variance of right labels, from what was promised."""
        found = self.scale * np.maximum(variance, self.sharpest) + self.floor + self.relative * expected**2
        return found if level is None else found * np.exp(2.0 * self.strength * level)

    def log_densities(self, errors: Errors) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the densities of right and of wrong labels."""
        clean = self.spread(errors.variance, errors.expected, errors.level)
        degrees = min(self.degrees, np.exp(_BOUNDS[_TAIL][1]) + 2.0)
        right = student_density(errors, clean, degrees).value
        if self.failing:
            failed = student_density(errors, np.maximum(clean, self.typical), degrees).value
            right = np.logaddexp(np.log1p(-self.failing) + right, np.log(self.failing) + failed)
        wrong = wrong_density(errors, self.wrong_std**2 + clean / errors.outer_slope**2, self.wrong_above).value
        return right, wrong

    @property
    def log_share(self) -> float:
        """Logarithm of the odds that any label is wrong, if there is a group of wrong labels."""
        return float(np.log(self.wrong_fraction) - np.log1p(-self.wrong_fraction))

    def log_odds(self, errors: Errors) -> FloatArray:
        """Logarithm of the odds that a label is wrong, if there is a group of wrong labels."""
        right, wrong = self.log_densities(errors)
        return np.asarray(self.log_share + wrong - right)

    def apply(self, evidence: Evidence) -> Evidence:
        """The evidence with the spread that was found instead of the one that was promised, and with the odds."""
        if not self.adjusted:
            return evidence
        evidence = evidence.as_some
        variance = self.spread(evidence.variance, evidence.expected)
        z = in_standard_deviations(evidence.error, variance)
        with np.errstate(invalid="ignore"):  # missing labels
            log_odds = self.believed(self.unlearned_log_odds(evidence))
            if self.learned is not None:
                log_odds = self.learned(log_odds)
        return replace(evidence, variance=variance, z=z, degrees=self.degrees, log_odds=log_odds)

    def unlearned_log_odds(self, evidence: Evidence) -> FloatArray:
        """:meth:`log_odds` of evidence as it was promised: no label is right for being too far off, and those at an atom have
        odds of their own.
        """
        z = in_standard_deviations(evidence.error, self.spread(evidence.variance, evidence.expected))
        with np.errstate(invalid="ignore"):  # missing labels
            log_odds = self.log_odds(evidence.errors)
            far = np.flatnonzero(np.abs(z) > FAR)
            log_odds[far] = np.maximum(log_odds[far], self._nearer(evidence.some(far)))
            if evidence.chance is not None:
                log_odds = np.where(evidence.stands_apart, self._at_atom(evidence), log_odds)
        return log_odds

    def _nearer(self, evidence: Evidence) -> FloatArray:
        """The largest log odds of any label between each one and what is expected: nothing is right for being too far off."""
        found = np.full(evidence.label.size, -np.inf)
        for share in NEARER if found.size else ():
            label = evidence.expected + share * (evidence.label - evidence.expected)
            found = np.maximum(found, self.log_odds(replace(evidence, label=label).errors))
        return found

    def _at_atom(self, evidence: Evidence) -> FloatArray:
        """Logarithm of the odds for labels at an atom: wrong ones are there as often as labels in general."""
        assert evidence.chance is not None
        share = float(np.mean(evidence.chance)) if evidence.usual_chance is None else evidence.usual_chance
        return np.asarray(self.log_share + np.log(max(share, np.finfo(float).tiny)) - np.log(evidence.chance))

    def believed(self, log_odds: FloatArray) -> FloatArray:
        """The same odds where a group of wrong labels is only as probable as it is."""
        some, none = self.log_belief
        wrong = some - np.logaddexp(0.0, -log_odds)
        right = np.logaddexp(none, some - np.logaddexp(0.0, log_odds))
        return np.asarray(wrong - right)


def as_promised() -> Calibration:
    """The calibration that takes the model at its word."""
    nothing = float("nan")
    return Calibration(
        1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, float("inf"), 0.0, 0.0, 0.5, nothing, 0.0, adjusted=False, noticeable=False
    )


def calibrate(
    errors: Errors,
    priors: Priors | None = SCEPTICAL,
    *,
    rival: bool = False,
    others_right: int = 0,
    verdicts: FloatArray | None = None,
) -> Calibration:
    """Describe leave-one-out errors; those that are NaN do not count.

    priors : weigh against large groups of wrong labels; None for the highest likelihood.
    others_right : labels beside these that are right, such as those at an atom: the share of wrong ones is that among all.
    rival : whether to find out what the group of wrong labels gains over heavy tails, which takes as long again.
    verdicts : of a person, for each label: 1 for a wrong one, 0 for a right one, NaN where there is none.
    """
    some = _some(errors)
    errors, verdicts = errors[some], None if verdicts is None else verdicts[some]
    numbers = errors.error[~errors.is_limit]
    unit = robust_std(numbers) if numbers.size else 0.0
    if numbers.size < _LEAST_ERRORS or unit == 0.0:
        return as_promised()
    with threadpool_limits(1, user_api="blas"):
        # Threads of BLAS would wait for each other over vectors of a few numbers.
        return _described(_Fit(errors, unit, priors, others_right, verdicts), rival)


def _described(fit: _Fit, rival: bool) -> Calibration:
    found = _best_description(fit)
    if found.wrong_fraction * abs(2.0 * found.wrong_above - 1.0) > MOST_ON_ONE_SIDE:
        fit.sides_are_even = True
        found = _best_description(fit)
    if not rival or (fit.verdicts is not None and np.any(fit.verdicts == 1.0)):
        # A label that was found to be wrong leaves no doubt that there are such.
        return found
    errors, shape = fit.errors, (found.scale, found.floor, found.relative)
    variance = np.maximum(errors.variance, found.sharpest)
    heavy = heavy_tailed_log_density(errors, variance, shape, found.strength, fit.unit)
    beyond = max(0.0, found.wrong_fraction - LARGE_PART)
    return replace(found, gain=errors.size * (found.log_density - heavy - GAIN_OF_EACH * beyond))


def _best_description(fit: _Fit) -> Calibration:
    plain = fit.best(start[:_OF_WRONG] for start in _STARTS[:2])
    full = fit.best([*_STARTS, *fit.far_starts, (*plain[1], *_AS_PROMISED)])
    if fit.typical > 0.0:
        by_size = fit.best([(*full[1], _NO_MORE), *((*x, _MORE) for x in (full[1], (*plain[1], *_AS_PROMISED)))])
        if fit.errors.size * (full[0] - by_size[0]) > _LEAST_GAIN_BY_SIZE:
            full = by_size
    return fit.described(full[1], noticeable=fit.errors.size * (plain[0] - full[0]) > NOTICEABLE_GAIN)


def _some(errors: Errors) -> NDArray[np.intp]:
    """Errors that are known; of many, some evenly through the sorted ones, so that these have the same quantiles."""
    known = np.flatnonzero(np.isfinite(errors.error) & (errors.variance > 0))
    if known.size > MOST_ERRORS:
        order = known[np.argsort(errors.error[known], kind="stable")]
        known = order[np.linspace(0, known.size - 1, MOST_ERRORS).round().astype(int)]
    return known


def _sigmoid(value: float) -> float:
    return float(1.0 / (1.0 + np.exp(-value)))


def _spread_of(labels: FloatArray) -> float:
    """Standard deviation of the labels, the outermost hundredth drawn in."""
    return float(np.std(np.clip(labels, *np.quantile(labels, [0.005, 0.995]))))


class _Fit:
    """The search for a description of some errors.

    unit : the typical one. sides_are_even : whether as many wrong labels are too large as are too small.
    """

    def __init__(
        self,
        errors: Errors,
        unit: float,
        priors: Priors | None,
        others_right: int = 0,
        verdicts: FloatArray | None = None,
    ) -> None:
        self.errors, self.unit, self.priors, self.verdicts = errors, unit, priors, verdicts
        self.others_right, self.sides_are_even = others_right / errors.size, False
        self.sharpest = (_SHARPEST * unit) ** 2
        self.variance = np.maximum(errors.variance, self.sharpest)
        outer = errors.outer_error
        self.outer_spread = _spread_of(outer + errors.outer_expected) or robust_std(outer) or 1.0
        self.typical = float(np.mean(errors.expected**2))
        self.squares = errors.expected**2 / self.typical if self.typical > 0.0 else errors.expected**2

    @property
    def far_starts(self) -> list[tuple[float, ...]]:
        """Where the search begins for few labels that are wrong a hundredfold."""
        reach = 2.0 * float(np.log(max(np.max(np.abs(self.errors.outer_error)) / self.outer_spread, 1.0)))
        few = -float(np.log(self.errors.size))
        return [(few, reach, *_STARTS[0][_ABOVE:])] if reach > _FAR_OFF else []

    def best(self, starts: Iterable[tuple[float, ...]]) -> tuple[float, FloatArray]:
        """Mean negative log density (with the priors) and parameters, from the best of several starts."""
        return min((self._searched(start) for start in starts), key=lambda fit: fit[0])

    def _searched(self, start: tuple[float, ...]) -> tuple[float, FloatArray]:
        """A start of three numbers leaves right labels as promised, one of eight has none that are noisier if larger."""
        bounds = list(_BOUNDS[: len(start)])
        if self.sides_are_even:
            bounds[_ABOVE] = (0.0, 0.0)
        if len(start) > _LEVEL and self.errors.level is None:
            bounds[_LEVEL] = (0.0, 0.0)
        clipped = np.array([np.clip(number, *bound) for number, bound in zip(start, bounds, strict=True)])
        found = minimize(self, clipped, jac=True, method="L-BFGS-B", bounds=bounds, options=PRECISE)
        return float(found.fun), np.asarray(found.x)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at ``x``."""
        errors, share, above = self.errors, _sigmoid(x[_SHARE]), _sigmoid(x[_ABOVE])
        parts = self._parts(x)
        clean = np.asarray(sum(parts))
        degrees = 2.0 + np.exp(x[_TAIL] if x.size > _OF_WRONG else _AS_PROMISED[2])
        right = student_density(errors, clean, degrees)
        if x.size > _OF_WRONG:
            failing = _sigmoid(x[_FAILING])
            failed = student_density(errors, np.maximum(clean, self.unit**2), degrees)
            either = np.logaddexp(right.value + np.log1p(-failing), failed.value + np.log(failing))
            has_failed = np.exp(failed.value + np.log(failing) - either)
            holds = clean >= self.unit**2
            right = LogDensity(
                either,
                (1.0 - has_failed) * right.by_log_variance + has_failed * np.where(holds, failed.by_log_variance, 0.0),
                (1.0 - has_failed) * right.by_degrees + has_failed * failed.by_degrees,
            )
        spread, within = np.exp(x[_SPREAD]) * self.outer_spread**2, clean / errors.outer_slope**2
        wrong = wrong_density(errors, spread + within, above)
        both = self._either(right.value + np.log1p(-share), wrong.value + np.log(share))
        is_wrong = np.exp(wrong.value + np.log(share) - both)
        if self.verdicts is not None:
            is_wrong = np.where(np.isnan(self.verdicts), is_wrong, self.verdicts)
        by_spread = is_wrong * wrong.by_log_variance / (spread + within)
        slopes = [np.mean(is_wrong) - share, np.mean(by_spread) * spread, np.mean(is_wrong * wrong.by_side)]
        if x.size > _OF_WRONG:
            by_clean = ((1.0 - is_wrong) * right.by_log_variance + by_spread * within) / clean
            by_degrees = np.mean((1.0 - is_wrong) * right.by_degrees) * np.exp(x[_TAIL])
            slopes += [np.mean(by_clean * parts[0]), np.mean(by_clean * parts[1]), by_degrees]
            slopes += [0.0 if errors.level is None else 2.0 * np.mean(by_clean * clean * errors.level)]
            slopes += [np.mean((1.0 - is_wrong) * (has_failed - failing))]
            slopes += [np.mean(by_clean * parts[2])] if x.size > _OF_ALL else []
        slopes[_SHARE] -= self.others_right * share
        value = -float(np.mean(both)) - self.others_right * float(np.log1p(-share))
        gradient = -np.array(slopes)
        if self.priors is not None:
            prior, prior_slopes = self._prior(x, self.priors)
            value, gradient = value + prior / errors.size, gradient + prior_slopes / errors.size
        return value, gradient

    def _either(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """Log density of labels that are right or wrong; of those with a verdict, that of their own group."""
        both = np.logaddexp(right, wrong)
        if self.verdicts is None:
            return both
        return np.where(np.isnan(self.verdicts), both, np.where(self.verdicts > 0.0, wrong, right))

    def _parts(self, x: FloatArray) -> list[FloatArray]:
        """Of the variance of right labels."""
        if x.size == _OF_WRONG:
            return [self.variance]
        parts = [np.exp(x[_SCALE]) * self.variance, np.full(self.errors.size, np.exp(x[_FLOOR]) * self.unit**2)]
        if x.size > _OF_ALL:
            parts.append(np.exp(x[_RELATIVE]) * self.unit**2 * self.squares)
        level = self.errors.level
        return parts if level is None else [part * np.exp(2.0 * x[_LEVEL] * level) for part in parts]

    def _prior(self, x: FloatArray, priors: Priors) -> tuple[float, FloatArray]:
        """Minus the logarithm of the prior, and its gradient."""
        share, above, slopes = _sigmoid(x[_SHARE]), _sigmoid(x[_ABOVE]), np.zeros(x.size)
        value = -priors.share * float(np.log1p(-share))
        slopes[_SHARE] = priors.share * share
        value -= priors.sides * float(np.log(4.0 * above * (1.0 - above)))
        slopes[_ABOVE] = priors.sides * (2.0 * above - 1.0)
        beliefs = [(_SPREAD, 0.0, priors.spread_sd, 1.0)]
        if x.size > _OF_WRONG:
            beliefs += [(_TAIL, priors.tail, priors.tail_sd, 3.0), (_FAILING, priors.failing, priors.failing_sd, 3.0)]
        for number, centre, scale, degrees in beliefs:
            # Student-t: what is far from the centre is unlikely, not impossible; least of all labels wrong a thousandfold.
            off = (x[number] - centre) / scale
            value += 0.5 * (degrees + 1.0) * float(np.log1p(off**2 / degrees))
            slopes[number] = (degrees + 1.0) * off / (degrees + off**2) / scale
        if x.size > _OF_WRONG:
            value, slopes[_LEVEL] = value + priors.level * float(x[_LEVEL]), priors.level
        return value, slopes

    def described(self, x: FloatArray, *, noticeable: bool) -> Calibration:
        """What parameters mean."""
        density = -self(x)[0] + (0.0 if self.priors is None else self._prior(x, self.priors)[0] / self.errors.size)
        relative = 0.0
        if x.size > _OF_ALL and x[_RELATIVE] > _NO_MORE:
            relative = float(np.exp(x[_RELATIVE])) * self.unit**2 / self.typical
        degrees = 2.0 + float(np.exp(x[_TAIL]))
        return Calibration(
            scale=float(np.exp(x[_SCALE])),
            floor=float(np.exp(x[_FLOOR])) * self.unit**2,
            sharpest=self.sharpest,
            relative=relative,
            strength=float(x[_LEVEL]),
            failing=_sigmoid(x[_FAILING]),
            typical=self.unit**2,
            degrees=float("inf") if degrees > _NORMAL_FROM else degrees,
            wrong_fraction=_sigmoid(x[_SHARE]),
            wrong_std=float(np.exp(0.5 * x[_SPREAD])) * self.outer_spread,
            wrong_above=_sigmoid(x[_ABOVE]),
            log_density=float(density),
            gain=float("inf"),
            adjusted=True,
            noticeable=noticeable,
        )
