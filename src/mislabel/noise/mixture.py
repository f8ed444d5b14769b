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
from mislabel.linalg.contract import Covariance, FloatArray, IntArray, SignalCovariance
from mislabel.linalg.dense import DenseSignal
from mislabel.linalg.jitter import stabilizing_jitter
from mislabel.noise.objective import amplitude_ratio

#: Share of the way to its new effective label that every label goes in one iteration: at first, and at least.
FIRST_SHARE, LEAST_SHARE = 0.7, 0.05
#: What that share is multiplied with after a label has swung back, and after it has gone on.
SHORTER, LONGER = 0.5, 1.1
#: Relative moves below this are rounding.
ROUNDING = 1e-6
#: Iterations before the shared numbers are learned: the effective labels come first.
SETTLING = 3
#: The share of wrong labels is kept below this.
MOST_WRONG = 0.95
#: Wrong labels are off by at least this multiple (squared) of a typical clean error: nearer, nobody can tell them apart.
LEAST_SPREAD = 2.0
#: A shared number changes by at most this factor in one iteration.
LARGEST_RATIO = 4.0
#: Expectation-maximisation creeps where the data say little: its steps are lengthened by what the last one left, at most so far.
LONGEST_STEP = 8.0
#: The fit ends when the objective, minus twice a log likelihood, has twice in a row changed by less than this ...
SETTLED = 0.5
#: ... or than this per label, or when it has not fallen by as much in so many iterations: a few labels may swing for ever.
SETTLED_PER_LABEL = 1e-4
STALLED = 8
#: Then the shared numbers stay, and the effective labels may settle further, in at most so many iterations.
POLISHING = 10
MAX_ITER = 100
#: Where nothing is known: share of wrong labels, and base noise relative to the labels' variance, high and low.
FIRST_FRACTION = 0.3
FIRST_BASES = (1e-2, 1e-5)
#: The base noise is kept above this part of the labels' variance.
LEAST_BASE = 1e-8
#: How far above what some labels say the base noise of all labels begins.
FROM_ABOVE = 30.0
#: How many labels tell the shared numbers well enough to start from.
ENOUGH = 1000


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

    site_labels, site_noise : effective labels and their noise variances; ``covariance`` is ``amplitude K + diag(site_noise)``
        and ``weights`` are its solution for the effective labels.
    objective : minus twice the logarithm of the evidence, less ``n log 2 pi``; comparable with the paper's objective.
    residual : by how much the objective changed in the last iteration, per label.
    """

    kinds: LabelKinds
    cavity: Cavity
    site_labels: FloatArray
    site_noise: FloatArray
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


def kinds_of(noise: FloatArray, base: float, labels: FloatArray) -> LabelKinds:
    """A first guess from noise variances, one for each label, many of them zero."""
    noisy = noise > 0.0
    spread = float(noise[noisy].mean()) if noisy.any() else float(np.var(labels)) or 1.0
    return LabelKinds(_fraction(noisy), base, max(spread, LEAST_SPREAD * base))


def kinds_of_some(
    signal: SignalCovariance,
    labels: FloatArray,
    fixed_noise: FloatArray,
    variance: float,
    index: IntArray,
    *,
    learn_amplitude: bool,
) -> LabelKinds:
    """The shared numbers from some of the labels, without any guess: the better of a high and a low start of the base noise.

    From above the base noise comes down to the truth unless most labels are wrong and pass for noise that all share. The base
    noise returned is higher than the one found, because it is a start for all labels: at a low base noise, a wrong label that
    is believed early makes its right neighbours look wrong, and they stay so.

    variance : that of the labels, roughly.
    """
    some = DenseSignal(signal.submatrix(index))
    least = LEAST_BASE * variance
    fits = []
    for start in FIRST_BASES:
        kinds = LabelKinds(FIRST_FRACTION, start * variance, max(float(np.var(labels[index])), variance))
        fits.append(
            fit_mixture(
                some,
                labels[index],
                fixed_noise[index],
                kinds,
                np.full(index.size, kinds.spread),
                least_base=least,
                learn_amplitude=learn_amplitude,
            )
        )
    found = min(fits, key=lambda fit: fit.objective).kinds
    return replace(found, base=FROM_ABOVE * found.base)


def fit_mixture(
    signal: SignalCovariance,
    labels: FloatArray,
    fixed_noise: FloatArray,
    start: LabelKinds,
    noise: FloatArray,
    *,
    least_base: float,
    learn_amplitude: bool,
    tol: float = np.inf,
    max_iter: int = MAX_ITER,
    monitor: Callable[[int, float], None] | None = None,
) -> MixtureFit:
    """Iterate from ``noise``, one variance for every label beyond base and fixed noise, until predictions stay put.

    fixed_noise : variances that every label has anyway (known measurement errors, jitter).
    least_base : the base noise stays above this.
    tol : change of the objective per label below which nothing more is done once the shared numbers stay put.
    """
    kinds = start
    search = _SharedNumbers(least_base, learn_amplitude)
    sites = _Sites(labels, fixed_noise + kinds.base + noise)
    path: list[float] = []
    settled: int | None = None
    for iteration in range(max_iter):
        site_labels, site_noise = sites.labels, sites.noise
        try:
            covariance = signal.scaled(kinds.amplitude).with_noise(site_noise, site_labels)
        except KernelMatrixError:
            # The base noise has fallen to where the matrix is no longer positive definite to working precision.
            if not isinstance(signal, DenseSignal):
                raise
            kinds = search.lift(kinds, stabilizing_jitter(signal.scaled(kinds.amplitude), site_noise))
            sites.noise = site_noise = np.maximum(site_noise, fixed_noise + kinds.base)
            covariance = signal.scaled(kinds.amplitude).with_noise(site_noise, site_labels)
        weights, precision = covariance.solve(site_labels), covariance.inverse_diagonal()
        cavity = _cavity(labels, site_labels, site_noise, weights, precision, fixed_noise + kinds.base, kinds)
        path.append(_objective(covariance, site_labels, weights, precision, cavity))
        residual = abs(path[-1] - path[-2]) / labels.size if iteration else np.inf
        if monitor is not None:
            monitor(iteration, residual)
        if settled is None and iteration > SETTLING and _has_settled(path, labels.size):
            settled = iteration
        polished = settled is not None and (residual <= tol or iteration >= settled + POLISHING)
        if polished or iteration == max_iter - 1:
            break
        sites.update(labels, fixed_noise + kinds.base, cavity, kinds)
        if iteration >= SETTLING and settled is None:
            kinds = search.step(kinds, cavity, weights, precision, site_labels, site_noise)
    return MixtureFit(
        kinds=kinds,
        cavity=cavity,
        site_labels=site_labels,
        site_noise=site_noise,
        weights=weights,
        covariance=covariance,
        objective=path[-1],
        objective_path=np.array(path),
        residual=residual,
        converged=settled is not None,
    )


def _has_settled(path: list[float], size: int) -> bool:
    limit = max(SETTLED, SETTLED_PER_LABEL * size)
    still = len(path) > 2 and all(abs(path[-k] - path[-k - 1]) < limit for k in (1, 2))
    return still or (len(path) > STALLED + SETTLING and min(path[-STALLED:]) > min(path[:-STALLED]) - limit)


def _cavity(
    labels: FloatArray,
    site_labels: FloatArray,
    site_noise: FloatArray,
    weights: FloatArray,
    precision: FloatArray,
    clean_noise: FloatArray,
    kinds: LabelKinds,
) -> Cavity:
    """Leave-one-out predictions of the effective labels, and what they say about the real ones."""
    error = labels - site_labels + weights / precision
    total = 1.0 / precision
    signal_variance = np.maximum(total - site_noise, np.finfo(float).eps * total)
    clean = signal_variance + clean_noise
    wide = clean + kinds.spread
    log_clean = np.log1p(-kinds.fraction) - 0.5 * (np.log(clean) + error**2 / clean)
    log_wrong = np.log(kinds.fraction) - 0.5 * (np.log(wide) + error**2 / wide)
    both = np.logaddexp(log_clean, log_wrong)
    return Cavity(error, signal_variance, clean, np.exp(log_wrong - both), both)


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


class _Sites:
    """Effective labels with their noise variances, and how far each goes in one iteration."""

    def __init__(self, labels: FloatArray, noise: FloatArray) -> None:
        self.labels, self.noise = labels, noise
        self._share = np.full(labels.size, FIRST_SHARE)
        self._last = np.zeros(labels.size)

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
        wanted = np.where(curvature > 0.0, curvature / np.maximum(rest, np.finfo(float).tiny), 0.0)
        wanted = np.clip(wanted, 1.0 / (clean_noise + kinds.spread), 1.0 / clean_noise)
        # The label that gives the signal its matched mean, m + c pull, at this precision.
        target = labels - cavity.error + pull * (cavity.signal_variance + 1.0 / wanted)
        precision = 1.0 / self.noise
        move = wanted - precision
        swings = move * self._last < -((ROUNDING * precision) ** 2)
        self._share = np.clip(np.where(swings, SHORTER, LONGER) * self._share, LEAST_SHARE, 1.0)
        self._last = move
        mixed = precision + self._share * move
        self.labels = ((1.0 - self._share) * precision * self.labels + self._share * wanted * target) / mixed
        self.noise = 1.0 / mixed


class _SharedNumbers:
    """Expectation-maximisation for the numbers that all labels share, with longer steps where it creeps."""

    def __init__(self, least_base: float, learn_amplitude: bool) -> None:
        self._least_base, self._learn_amplitude = least_base, learn_amplitude
        self._last = np.zeros(2)
        self._length = np.ones(2)

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
        right, wrong = 1.0 - cavity.wrong, cavity.wrong
        base = _expected_square(kinds.base, cavity.variance, cavity.error)
        spread = _expected_square(kinds.spread, cavity.variance + kinds.spread, cavity.error)
        # Wrong labels have clean noise as well.
        wide_base = _expected_square(kinds.base, cavity.variance + kinds.spread, cavity.error)
        base_ratio = float((right @ base + wrong @ wide_base) / (cavity.wrong.size * kinds.base))
        new_spread = max(float(wrong @ spread / wrong.sum()), LEAST_SPREAD * float(np.median(cavity.variance)))
        growth = amplitude_ratio(site_labels, site_noise, weights, precision) if self._learn_amplitude else 1.0
        steps = np.log([base_ratio, growth])
        self._lengthen(steps)
        limit = np.log(LARGEST_RATIO)
        ratios = np.exp(np.clip(self._length * steps, -limit, limit))
        return replace(
            kinds,
            fraction=_fraction(wrong),
            base=max(kinds.base * float(ratios[0]), self._least_base),
            spread=new_spread,
            amplitude=kinds.amplitude * float(ratios[1]),
        )

    def lift(self, kinds: LabelKinds, jitter: float) -> LabelKinds:
        """The base noise raised by ``jitter``, for good."""
        self._least_base = kinds.base + jitter
        return replace(kinds, base=self._least_base)

    def _lengthen(self, steps: FloatArray) -> None:
        """Secant rule: a step that left most of the way to go was too short."""
        left = np.divide(steps, self._last, out=np.zeros(2), where=self._last != 0.0)
        creeping = left > 0.0
        longer = np.where(left < 1.0, self._length / np.maximum(1.0 - left, 1e-3), 2.0 * self._length)
        self._length = np.where(creeping, np.clip(longer, 1.0, LONGEST_STEP), 1.0)
        self._last = steps


def _fraction(wrong: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    """Share of wrong labels, kept from none and from all."""
    return float(np.clip(wrong.mean(), 0.5 / (wrong.size + 1.0), MOST_WRONG))


def _expected_square(part: float, total: FloatArray, error: FloatArray) -> FloatArray:
    """Posterior second moment of a part, of variance ``part``, of an error with the given total variance."""
    share = part / total
    return np.asarray((share * error) ** 2 + part * (1.0 - share))
