"""Right and wrong labels averaged over: each label is clean or wrong, and no single explanation is settled for.

Maximum likelihood gives every label one noise variance, and where many labels are wrong it may settle for believing a wrong
one and doubting its right neighbours. Here the error of a label is a mixture, ``N(0, s0)`` if it is clean and ``N(0, s0 +
spread)`` if it is wrong, and all explanations are averaged over by expectation propagation (Minka 2001; for Gaussian
processes with outliers, Kuss 2006). Each label is replaced by an effective label with an effective noise variance, whose
influence is that of the mixture given what all *other* labels predict; and that prediction is the closed-form
leave-one-out of the effective labels. The numbers that all labels share follow by expectation-maximisation on the way, at
no further factorisation. What a label says is a :mod:`mislabel.likelihoods`: known exactly, or to one side only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mislabel.errors import KernelMatrixError
from mislabel.likelihoods.mixture import Cavity, MixtureLikelihood, MixtureParameters, kept_share, least_spread_of
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
#: A shared number changes by at most this factor in one iteration.
LARGEST_RATIO = 4.0
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
#: Precision, relative to that of a wrong label, that a label which agrees with what is expected of it keeps at least.
LEAST_PRECISION = 1e-6
#: The base noise is kept above this part of the labels' variance.
LEAST_BASE = 1e-8


@dataclass(frozen=True, eq=False)
class EffectiveLabels:
    """What stands for the labels: others, each with a noise variance."""

    labels: FloatArray
    noise: FloatArray


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """The Gaussian process given all labels, whichever of them are wrong.

    sites : effective labels with their noise variances; ``covariance`` is ``amplitude K + diag(noise)`` of these, and
        ``weights`` are its solution for them.
    objective : minus twice the logarithm of the evidence, less ``n log 2 pi``; comparable with the paper's objective.
    residual : by how much the objective changed in the last iteration, per label.
    labels : one number for each label.
    """

    mixture: MixtureParameters
    cavity: Cavity
    sites: EffectiveLabels
    weights: FloatArray
    covariance: Covariance
    objective: float
    objective_path: FloatArray
    residual: float
    converged: bool
    labels: FloatArray

    @property
    def noise_variance(self) -> FloatArray:
        """For labels that are rather wrong than clean, the variance of highest likelihood given all others; else zero."""
        excess = np.maximum(self.cavity.error**2 - self.cavity.variance, 0.0)
        return np.where(self.cavity.wrong > 0.5, excess, 0.0)

    @property
    def label_noise(self) -> FloatArray:
        """Posterior mean of each label's error, beyond that of a clean label."""
        return self.labels - self.cavity.mean - self.cavity.clean_shift


def fit_mixture(
    signal: SignalCovariance,
    likelihood: MixtureLikelihood,
    start: MixtureParameters,
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

    likelihood : what the labels say.
    least_base : the base noise stays above this.
    tol : change of the objective per label below which nothing more is done once the shared numbers stay put.
    settling : iterations, at most, before the shared numbers are learned; SETTLING unless the effective labels are good ones.
    """
    mixture, labels = start, likelihood.labels
    search = _SharedNumbers(least_base, learn_amplitude)
    moving = MovingSites(sites)
    path: list[float] = []
    limit = max(SETTLED, SETTLED_PER_LABEL * labels.size)
    learns_from, settled = SETTLING if settling is None else settling, None
    for iteration in range(max_iter):
        site_labels, site_noise = moving.labels, moving.noise
        try:
            covariance = signal.scaled(mixture.amplitude).with_noise(site_noise, site_labels)
        except KernelMatrixError:
            # The base noise has fallen to where the matrix is no longer positive definite to working precision.
            if not isinstance(signal, DenseSignal):
                raise
            mixture = search.lift(mixture, stabilizing_jitter(signal.scaled(mixture.amplitude), site_noise))
            moving.noise = site_noise = np.maximum(site_noise, likelihood.clean_noise(mixture))
            covariance = signal.scaled(mixture.amplitude).with_noise(site_noise, site_labels)
        weights, precision = covariance.solve(site_labels), covariance.inverse_diagonal()
        # Leave-one-out predictions of the effective labels.
        mean, total = site_labels - weights / precision, 1.0 / precision
        signal_variance = np.maximum(total - site_noise, np.finfo(float).eps * total)
        cavity = likelihood.cavity(mean, signal_variance, mixture)
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
        moving.update(likelihood.clean_noise(mixture), cavity, mixture)
        if iteration >= learns_from and settled is None:
            mixture = search.step(likelihood, mixture, cavity, (weights, precision, site_labels, site_noise))
    return MixtureFit(
        mixture=mixture,
        cavity=cavity,
        sites=EffectiveLabels(site_labels, site_noise),
        weights=weights,
        covariance=covariance,
        objective=path[-1],
        objective_path=np.array(path),
        residual=residual,
        converged=settled is not None,
        labels=labels,
    )


def _has_settled(path: list[float], limit: float) -> bool:
    still = len(path) > 2 and all(abs(path[-k] - path[-k - 1]) < limit for k in (1, 2))
    return still or (len(path) > STALLED and min(path[-STALLED:]) > min(path[:-STALLED]) - limit)


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

    def update(self, clean_noise: FloatArray, cavity: Cavity, mixture: MixtureParameters) -> None:
        """Towards effective labels that leave the signal with the mean and variance that the mixture leaves it with.

        Where a label is undecided its two readings lie so far apart that it *adds* to the variance; no positive noise
        variance does that. There the noise is that of a wrong label, and only the mean is matched. A label that says little (a
        censored one, far from its bound) has next to no precision. Labels that contend with each other swing to and fro: those
        go shorter ways.
        """
        slope, curvature = cavity.slope, cavity.curvature
        rest = 1.0 - cavity.signal_variance * curvature
        # No precision above that of a clean label is wanted: with this as the least divisor none overflows.
        least = np.maximum(np.abs(curvature) * clean_noise, np.finfo(float).tiny)
        wanted = np.where(curvature > 0.0, curvature / np.maximum(rest, least), 0.0)
        lowest = np.where(cavity.error == 0.0, LEAST_PRECISION, 1.0) / (clean_noise + mixture.spread)
        wanted = np.clip(wanted, lowest, 1.0 / clean_noise)
        # The label that gives the signal its matched mean, m + c slope, at this precision.
        target = cavity.mean + slope * (cavity.signal_variance + 1.0 / wanted)
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
        likelihood: MixtureLikelihood,
        mixture: MixtureParameters,
        cavity: Cavity,
        state: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    ) -> MixtureParameters:
        """The numbers of highest likelihood, given what is known of every label.

        state : weights and precisions of the effective labels, these and their noise.
        """
        found = likelihood.likeliest(mixture, cavity)
        if self._learn_amplitude:
            weights, precision, site_labels, site_noise = state
            growth = amplitude_ratio(site_labels, site_noise, weights, precision)
            found = replace(found, amplitude=mixture.amplitude * growth)
        steps = found.coordinates() - mixture.coordinates()
        self._lengthen(steps)
        limit = np.log(LARGEST_RATIO)
        moved = mixture.moved(np.clip(self._length * steps, -limit, limit))
        return replace(
            moved,
            fraction=kept_share(moved.fraction, cavity.wrong.size),
            base=max(moved.base, self._least_base),
            spread=max(moved.spread, least_spread_of(cavity.variance)),
        )

    def lift(self, mixture: MixtureParameters, jitter: float) -> MixtureParameters:
        """The base noise raised by ``jitter``, for good."""
        self._least_base = mixture.base + jitter
        return replace(mixture, base=self._least_base)

    def _lengthen(self, steps: FloatArray) -> None:
        """Secant rule: a step that left most of the way to go was too short."""
        left = np.divide(steps, self._last, out=np.zeros_like(steps), where=self._last != 0.0)
        creeping = left > 0.0
        longer = np.where(left < 1.0, self._length / np.maximum(1.0 - left, 1e-3), 2.0 * self._length)
        self._length = np.where(creeping, np.clip(longer, 1.0, LONGEST_STEP), 1.0)
        self._last = steps
