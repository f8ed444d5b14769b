"""Right and wrong labels averaged over: each label is clean or wrong, and no single explanation is settled for.

Maximum likelihood gives every label one noise variance, and where many labels are wrong it may settle for believing a wrong
one and doubting its right neighbours. Here the error of a label is a mixture, ``N(0, s0)`` if it is clean and ``N(0, s0 +
spread)`` if it is wrong, and all explanations are averaged over by expectation propagation (Minka 2001; for Gaussian
processes with outliers, Kuss 2006). Each label is replaced by an effective label with an effective noise variance, whose
influence is that of the mixture given what all *other* labels predict; and that prediction is the closed-form
leave-one-out of the effective labels. The numbers that all labels share follow by expectation-maximisation on the way, at
no further factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import Covariance, FloatArray, SignalCovariance
from mislabel.linalg.dense import DenseSignal
from mislabel.linalg.jitter import stabilizing_jitter
from mislabel.noise.objective import amplitude_ratio

#: Share of the way to its new effective label that every label goes in one iteration: at first, and at least.
FIRST_SHARE, LEAST_SHARE = 0.7, 0.05
#: What that share is multiplied with after a label has swung back, and after it has gone on.
SHORTER, LONGER = 0.5, 1.1
#: Relative moves below this are rounding.
ROUNDING = 1e-6
#: Iterations, at most, before the shared numbers are learned: the effective labels come first.
SETTLING = 3
#: The share of wrong labels is kept below this.
MOST_WRONG = 0.95
#: Wrong labels are off by at least this multiple (squared) of a typical clean error: nearer, nobody can tell them apart.
LEAST_SPREAD = 2.0
#: A shared number changes by at most this factor in one iteration.
LARGEST_RATIO = 4.0
#: Steps of expectation-maximisation between two factorisations, and the relative change at which they end sooner.
MOST_STEPS = 30
STAYS = 1e-3
#: Labels from which three numbers are told well enough; of more, as many are looked at for them, spread evenly.
ENOUGH_LABELS = 50_000
#: The shared numbers creep where the data say little: steps are lengthened by what the last one left, at most so far.
LONGEST_STEP = 4.0
#: The fit ends when the objective, minus twice a log likelihood, has twice in a row changed by less than this ...
SETTLED = 1.0
#: ... or than this per label, or when it has not fallen by as much in so many iterations: a few labels may swing for ever.
SETTLED_PER_LABEL = 2e-4
STALLED = 8
#: Then the shared numbers stay, and the effective labels may settle further, in at most so many iterations.
POLISHING = 10
MAX_ITER = 100
#: The base noise is kept above this part of the labels' variance.
LEAST_BASE = 1e-8


@dataclass(frozen=True)
class LabelKinds:
    """The numbers that all labels share.

    fraction : share of wrong labels.
    base : noise variance of a clean label.
    spread : what a wrong one has in addition.
    amplitude : factor on the signal's covariance.
    """

    fraction: float
    base: float
    spread: float
    amplitude: float = 1.0

    def coordinates(self) -> FloatArray:
        """Logarithms of base, amplitude, odds of a wrong label, and spread: any four numbers are allowed."""
        return np.log([self.base, self.amplitude, self.fraction / (1.0 - self.fraction), self.spread])

    def moved(self, steps: FloatArray) -> LabelKinds:
        """Somewhere else in those coordinates."""
        base, amplitude, odds, spread = (float(number) for number in np.exp(self.coordinates() + steps))
        return LabelKinds(odds / (1.0 + odds), base, spread, amplitude)


@dataclass(frozen=True, eq=False)
class EffectiveLabels:
    """What stands for the labels: others, each with a noise variance."""

    labels: FloatArray
    noise: FloatArray


@dataclass(frozen=True, eq=False)
class Cavity:
    """What all other labels say about each label, whichever of them are wrong.

    error : label minus what they predict.
    signal_variance : variance of the signal they predict.
    variance : that of a clean label.
    wrong : probability that the label is wrong.
    log_density : of the label, under the mixture (up to ``log 2 pi / 2``).
    """

    error: FloatArray
    signal_variance: FloatArray
    variance: FloatArray
    wrong: FloatArray
    log_density: FloatArray


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """The Gaussian process given all labels, whichever of them are wrong.

    sites : effective labels with their noise variances; ``covariance`` is ``amplitude K + diag(noise)`` of these, and
        ``weights`` are its solution for them.
    objective : minus twice the logarithm of the evidence, less ``n log 2 pi``; comparable with the paper's objective.
    residual : by how much the objective changed in the last iteration, per label.
    """

    kinds: LabelKinds
    cavity: Cavity
    sites: EffectiveLabels
    weights: FloatArray
    covariance: Covariance
    objective: float
    objective_path: FloatArray
    residual: float
    converged: bool

    @property
    def noise_variance(self) -> FloatArray:
        """For labels that are rather wrong than clean, the variance of highest likelihood given all others; else zero."""
        excess = np.maximum(self.cavity.error**2 - self.cavity.variance, 0.0)
        return np.where(self.cavity.wrong > 0.5, excess, 0.0)

    @property
    def label_noise(self) -> FloatArray:
        """Posterior mean of each label's error, beyond that of a clean label."""
        share = self.kinds.spread / (self.cavity.variance + self.kinds.spread)
        return self.cavity.wrong * share * self.cavity.error


def fit_mixture(
    signal: SignalCovariance,
    labels: FloatArray,
    fixed_noise: FloatArray,
    start: LabelKinds,
    sites: EffectiveLabels,
    *,
    least_base: float,
    learn_amplitude: bool,
    tol: float = np.inf,
    max_iter: int = MAX_ITER,
    settling: int | None = None,
    monitor: Callable[[int, float], None] | None = None,
) -> MixtureFit:
    """Iterate from the effective labels ``sites`` until predictions stay put.

    fixed_noise : variances that every label has anyway (known measurement errors, jitter).
    least_base : the base noise stays above this.
    tol : change of the objective per label below which nothing more is done once the shared numbers stay put.
    settling : iterations, at most, before the shared numbers are learned; SETTLING unless the effective labels are good ones.
    """
    kinds = start
    search = _SharedNumbers(least_base, learn_amplitude)
    moving = MovingSites(sites)
    path: list[float] = []
    limit = max(SETTLED, SETTLED_PER_LABEL * labels.size)
    learns_from, settled = SETTLING if settling is None else settling, None
    for iteration in range(max_iter):
        site_labels, site_noise = moving.labels, moving.noise
        try:
            covariance = signal.scaled(kinds.amplitude).with_noise(site_noise, site_labels)
        except KernelMatrixError:
            # The base noise has fallen to where the matrix is no longer positive definite to working precision.
            if not isinstance(signal, DenseSignal):
                raise
            kinds = search.lift(kinds, stabilizing_jitter(signal.scaled(kinds.amplitude), site_noise))
            moving.noise = site_noise = np.maximum(site_noise, fixed_noise + kinds.base)
            covariance = signal.scaled(kinds.amplitude).with_noise(site_noise, site_labels)
        weights, precision = covariance.solve(site_labels), covariance.inverse_diagonal()
        # Leave-one-out predictions of the effective labels.
        error, total = labels - site_labels + weights / precision, 1.0 / precision
        signal_variance = np.maximum(total - site_noise, np.finfo(float).eps * total)
        cavity = cavity_of(error, signal_variance, fixed_noise + kinds.base, kinds)
        path.append(_objective(covariance, site_labels, weights, precision, cavity))
        residual = abs(path[-1] - path[-2]) / labels.size if iteration else np.inf
        if monitor is not None:
            monitor(iteration, residual)
        if iteration < learns_from and residual * labels.size < limit:
            learns_from = iteration
        if settled is None and iteration > learns_from + 1 and _has_settled(path[learns_from:], limit):
            settled = iteration
        polished = settled is not None and (residual <= tol or iteration >= settled + POLISHING)
        if polished or iteration == max_iter - 1:
            break
        moving.update(labels, fixed_noise + kinds.base, cavity, kinds)
        if iteration >= learns_from and settled is None:
            kinds = search.step(kinds, cavity, weights, precision, site_labels, site_noise)
    return MixtureFit(
        kinds=kinds,
        cavity=cavity,
        sites=EffectiveLabels(site_labels, site_noise),
        weights=weights,
        covariance=covariance,
        objective=path[-1],
        objective_path=np.array(path),
        residual=residual,
        converged=settled is not None,
    )


def _has_settled(path: list[float], limit: float) -> bool:
    still = len(path) > 2 and all(abs(path[-k] - path[-k - 1]) < limit for k in (1, 2))
    return still or (len(path) > STALLED and min(path[-STALLED:]) > min(path[:-STALLED]) - limit)


def cavity_of(error: FloatArray, signal_variance: FloatArray, clean_noise: FloatArray, kinds: LabelKinds) -> Cavity:
    """What predictions of the signal say about each label."""
    clean = signal_variance + clean_noise
    return Cavity(error, signal_variance, clean, *mixture_density(clean, error, kinds))


def mixture_density(clean: FloatArray, error: FloatArray, kinds: LabelKinds) -> tuple[FloatArray, FloatArray]:
    """Probability that a label is wrong, and the logarithm of its density (up to ``log 2 pi / 2``)."""
    wide = clean + kinds.spread
    log_clean = np.log1p(-kinds.fraction) - 0.5 * (np.log(clean) + error**2 / clean)
    log_wrong = np.log(kinds.fraction) - 0.5 * (np.log(wide) + error**2 / wide)
    both = np.logaddexp(log_clean, log_wrong)
    return np.exp(log_wrong - both), both


def _objective(
    covariance: Covariance,
    site_labels: FloatArray,
    weights: FloatArray,
    precision: FloatArray,
    cavity: Cavity,
) -> float:
    """``-2 log`` evidence: that of the effective labels, each one's own share replaced by that of the mixture."""
    site_error = weights / precision
    own = np.log(precision) - precision * site_error**2
    effective = covariance.logdet() + covariance.quadratic(site_labels, weights)
    return effective - float(np.sum(2.0 * cavity.log_density - own))


class MovingSites:
    """Effective labels with their noise variances, and how far each goes in one iteration."""

    def __init__(self, start: EffectiveLabels) -> None:
        self.labels, self.noise = start.labels, start.noise
        self._share = np.full(start.labels.size, FIRST_SHARE)
        self._last = np.zeros(start.labels.size)

    def update(self, labels: FloatArray, clean_noise: FloatArray, cavity: Cavity, kinds: LabelKinds) -> None:
        """Towards effective labels that leave the signal with the mean and variance that the mixture leaves it with.

        Where a label is undecided its two readings lie so far apart that it *adds* to the variance; no positive noise
        variance does that. There the noise is that of a wrong label, and only the mean is matched. Labels that contend
        with each other swing to and fro: those go shorter ways.
        """
        variance, wide = cavity.variance, cavity.variance + kinds.spread
        pull_clean, pull_wrong = cavity.error / variance, cavity.error / wide
        right = 1.0 - cavity.wrong
        pull = right * pull_clean + cavity.wrong * pull_wrong  # d log density / d mean
        mean_square = right * pull_clean**2 + cavity.wrong * pull_wrong**2
        curvature = right / variance + cavity.wrong / wide - (mean_square - pull**2)
        rest = 1.0 - cavity.signal_variance * curvature
        # No precision above that of a clean label is wanted: with this as the least divisor none overflows.
        least = np.maximum(np.abs(curvature) * clean_noise, np.finfo(float).tiny)
        wanted = np.where(curvature > 0.0, curvature / np.maximum(rest, least), 0.0)
        wanted = np.clip(wanted, 1.0 / (clean_noise + kinds.spread), 1.0 / clean_noise)
        # The label that gives the signal its matched mean, m + c pull, at this precision.
        target = labels - cavity.error + pull * (cavity.signal_variance + 1.0 / wanted)
        precision = 1.0 / self.noise
        move = wanted - precision
        swings = move * self._last < -((ROUNDING * precision) ** 2)
        self._share = np.clip(np.where(swings, SHORTER, LONGER) * self._share, LEAST_SHARE, 1.0)
        self._last = move
        mixed = (1.0 - self._share) * precision + self._share * wanted  # of positive terms: it cannot cancel
        self.labels = ((1.0 - self._share) * precision * self.labels + self._share * wanted * target) / mixed
        self.noise = 1.0 / mixed


class _SharedNumbers:
    """Expectation-maximisation for the numbers that all labels share, with longer steps where it creeps."""

    def __init__(self, least_base: float, learn_amplitude: bool) -> None:
        self._least_base, self._learn_amplitude = least_base, learn_amplitude
        self._last = np.zeros(4)
        self._length = np.ones(4)

    def step(
        self,
        kinds: LabelKinds,
        cavity: Cavity,
        weights: FloatArray,
        precision: FloatArray,
        site_labels: FloatArray,
        site_noise: FloatArray,
    ) -> LabelKinds:
        """The numbers of highest likelihood, given what is known of every label."""
        found = likeliest_kinds(kinds, cavity)
        if self._learn_amplitude:
            growth = amplitude_ratio(site_labels, site_noise, weights, precision)
            found = replace(found, amplitude=kinds.amplitude * growth)
        steps = found.coordinates() - kinds.coordinates()
        self._lengthen(steps)
        limit = np.log(LARGEST_RATIO)
        moved = kinds.moved(np.clip(self._length * steps, -limit, limit))
        return replace(
            moved,
            fraction=_kept(moved.fraction, cavity.wrong.size),
            base=max(moved.base, self._least_base),
            spread=max(moved.spread, _least_spread(cavity)),
        )

    def lift(self, kinds: LabelKinds, jitter: float) -> LabelKinds:
        """The base noise raised by ``jitter``, for good."""
        self._least_base = kinds.base + jitter
        return replace(kinds, base=self._least_base)

    def _lengthen(self, steps: FloatArray) -> None:
        """Secant rule: a step that left most of the way to go was too short."""
        left = np.divide(steps, self._last, out=np.zeros_like(steps), where=self._last != 0.0)
        creeping = left > 0.0
        longer = np.where(left < 1.0, self._length / np.maximum(1.0 - left, 1e-3), 2.0 * self._length)
        self._length = np.where(creeping, np.clip(longer, 1.0, LONGEST_STEP), 1.0)
        self._last = steps


def likeliest_kinds(kinds: LabelKinds, cavity: Cavity) -> LabelKinds:
    """Share of wrong labels, base noise and spread of highest likelihood, all labels' predictions being as they are.

    By expectation-maximisation, which costs nothing beside a factorisation: one step of it for each would creep.
    """
    some = slice(None, None, -(-cavity.error.size // ENOUGH_LABELS))
    error, others = cavity.error[some], cavity.variance[some] - kinds.base
    least_spread = _least_spread(cavity)
    for _ in range(MOST_STEPS):
        last, clean = kinds, others + kinds.base
        wide = clean + kinds.spread
        wrong = mixture_density(clean, error, kinds)[0]
        # Wrong labels have clean noise as well.
        clean_square = _expected_square(kinds.base, clean, error)
        wide_square = _expected_square(kinds.base, wide, error)
        spread = wrong @ _expected_square(kinds.spread, wide, error) / wrong.sum()
        kinds = replace(
            kinds,
            fraction=share_of(wrong),
            base=float(np.mean((1.0 - wrong) * clean_square + wrong * wide_square)),
            spread=max(float(spread), least_spread),
        )
        if abs(np.log(kinds.base / last.base)) + abs(np.log(kinds.fraction / last.fraction)) < STAYS:
            break
    return kinds


def _least_spread(cavity: Cavity) -> float:
    return LEAST_SPREAD * float(np.median(cavity.variance))


def share_of(wrong: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    """Share of wrong labels, kept from none and from all."""
    return _kept(float(wrong.mean()), wrong.size)


def _kept(fraction: float, size: int) -> float:
    return float(np.clip(fraction, 0.5 / (size + 1.0), MOST_WRONG))


def _expected_square(part: float, total: FloatArray, error: FloatArray) -> FloatArray:
    """Posterior second moment of a part, of variance ``part``, of an error with the given total variance."""
    share = part / total
    return np.asarray((share * error) ** 2 + part * (1.0 - share))
