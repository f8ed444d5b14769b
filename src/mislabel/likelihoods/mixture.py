"""Right and wrong labels: the latent number behind a label has the noise of a right one, or that of a wrong one as well.

The noise of a right label is normal, or a mixture of normal ones that makes a Student-t; a wrong label has an additional
variance. The numbers that all labels share follow by expectation-maximisation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mislabel.likelihoods.contract import FloatArray, Observation
from mislabel.likelihoods.observations import ExactLabels

#: The share of wrong labels is kept below this.
MOST_WRONG = 0.95
#: Wrong labels are off by at least this multiple (squared) of a typical clean error: nearer, nobody can tell them apart.
LEAST_SPREAD = 2.0
#: Steps of expectation-maximisation between two factorisations, and the relative change at which they end sooner.
MOST_STEPS = 30
STAYS = 1e-3
#: Labels from which three numbers are told well enough; of more, as many are looked at for them, spread evenly.
ENOUGH_LABELS = 50_000
#: Noise of right labels by name: shares of normal parts, and their variances as multiples of the base noise. "student" has four
#: degrees of freedom: the parts are intervals of the inverse gamma distribution that mixes normal ones to it, with their means.
TAILS: dict[str, tuple[tuple[float, float], ...]] = {
    "normal": ((1.0, 1.0),),
    "student": ((0.25, 0.2708), (0.25, 0.4759), (0.25, 0.7829), (0.2, 1.5926), (0.05, 5.9816)),
}


@dataclass(frozen=True)
class MixtureParameters:
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

    def moved(self, steps: FloatArray) -> MixtureParameters:
        """Somewhere else in those coordinates."""
        base, amplitude, odds, spread = (float(number) for number in np.exp(self.coordinates() + steps))
        return MixtureParameters(odds / (1.0 + odds), base, spread, amplitude)


@dataclass(frozen=True, eq=False)
class Cavity:
    """What all other labels say about each label, whichever of them are wrong.

    error : label minus what they predict.
    mean, signal_variance : of the signal they predict.
    variance : that of a clean label.
    wrong : probability that the label is wrong.
    log_density : of the label, under the mixture (up to ``log 2 pi / 2``).
    slope, curvature : its derivative by the mean, and minus the second one.
    clean_shift : posterior mean of the clean label, less the mean.
    """

    error: FloatArray
    mean: FloatArray
    signal_variance: FloatArray
    variance: FloatArray
    wrong: FloatArray
    log_density: FloatArray
    slope: FloatArray
    curvature: FloatArray
    clean_shift: FloatArray


@dataclass(frozen=True, eq=False)
class MixtureLikelihood:
    """Labels of which some are wrong.

    observed : what the labels say. fixed_noise : variances that every label has anyway (known measurement errors, jitter).
    relative : what the base noise is multiplied by, label by label. tails : of the noise of right labels, a name of TAILS.
    right : which labels are known to be right, whatever the others say; None where none is.
    """

    observed: Observation
    fixed_noise: FloatArray
    relative: FloatArray | float = 1.0
    tails: str = "normal"
    right: NDArray[np.bool_] | None = None

    @classmethod
    def of_exact(cls, labels: FloatArray, fixed_noise: FloatArray) -> MixtureLikelihood:
        """Labels that are known exactly."""
        return cls(ExactLabels(labels), fixed_noise)

    @property
    def labels(self) -> FloatArray:
        """One number for each label."""
        return self.observed.values

    @property
    def size(self) -> int:
        """How many labels there are."""
        return self.fixed_noise.size

    def some(self, index: NDArray[np.intp]) -> MixtureLikelihood:
        """The labels at these positions."""
        relative = self.relative[index] if isinstance(self.relative, np.ndarray) else self.relative
        right = None if self.right is None else self.right[index]
        observed, fixed_noise = self.observed.some(index), self.fixed_noise[index]
        return replace(self, observed=observed, fixed_noise=fixed_noise, relative=relative, right=right)

    def clean_noise(self, mixture: MixtureParameters) -> FloatArray:
        """Noise variance of clean labels."""
        return self.fixed_noise + mixture.base * self.relative

    def cavity(self, mean: FloatArray, signal_variance: FloatArray, mixture: MixtureParameters) -> Cavity:
        """What predictions of the signal say about each label."""
        log_shares, noise = self._parts(mixture)
        total = signal_variance + noise
        found = self.observed.moments(mean, total)
        logs = log_shares + found.log_density
        log_density = np.logaddexp.reduce(logs, axis=0)
        weight = np.exp(logs - log_density)
        slope = np.sum(weight * found.slope, axis=0)
        clean = total.copy()
        clean[-1] -= mixture.spread
        return Cavity(
            error=self.observed.error(mean),
            mean=mean,
            signal_variance=signal_variance,
            variance=signal_variance + self.clean_noise(mixture),
            wrong=weight[-1],
            log_density=log_density,
            slope=slope,
            curvature=slope**2 - np.sum(weight * found.curvature, axis=0),
            clean_shift=np.sum(weight * clean * found.slope, axis=0),
        )

    def likeliest(self, mixture: MixtureParameters, cavity: Cavity) -> MixtureParameters:
        """Share of wrong labels, base noise and spread of highest likelihood, all labels' predictions being as they are.

        By expectation-maximisation, which costs nothing beside a factorisation: one step of it for each would creep.
        """
        step = -(-self.size // ENOUGH_LABELS)
        index = np.arange(0, self.size, step)
        some = self if step == 1 else self.some(index)
        mean, signal_variance = cavity.mean[index], cavity.signal_variance[index]
        least_spread = least_spread_of(cavity.variance)
        for _ in range(MOST_STEPS):
            last = mixture
            mixture = some._maximised(mixture, mean, signal_variance, least_spread)
            if abs(np.log(mixture.base / last.base)) + abs(np.log(mixture.fraction / last.fraction)) < STAYS:
                break
        return mixture

    def _maximised(
        self, mixture: MixtureParameters, mean: FloatArray, signal_variance: FloatArray, least_spread: float
    ) -> MixtureParameters:
        """One step of expectation-maximisation. Wrong labels have clean noise as well."""
        log_shares, noise = self._parts(mixture)
        total = signal_variance + noise
        found = self.observed.moments(mean, total)
        logs = log_shares + found.log_density
        weight = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
        square = total + total**2 * found.curvature
        wrong = weight[-1]
        own = np.array([multiple for _, multiple in TAILS[self.tails]] + [1.0])[:, None] * self.relative
        base = np.sum(weight * _expected_square(mixture.base * own, total, square) / own, axis=0)
        in_doubt = wrong if self.right is None else wrong[~self.right]
        if not in_doubt.size:
            return replace(mixture, base=float(np.mean(base)))
        spread = wrong @ _expected_square(mixture.spread, total[-1], square[-1]) / wrong.sum()
        return replace(
            mixture, fraction=share_of(in_doubt), base=float(np.mean(base)), spread=max(float(spread), least_spread)
        )

    def _parts(self, mixture: MixtureParameters) -> tuple[FloatArray, FloatArray]:
        """Logarithm of the share, and noise variance, label by label, of each normal part; the last is that of wrong labels."""
        tails = TAILS[self.tails]
        shares = np.array([share * (1.0 - mixture.fraction) for share, _ in tails] + [mixture.fraction])
        log_shares = np.log(shares)[:, None]
        if self.right is not None:
            certain = np.array([*np.log([share for share, _ in tails]), -np.inf])[:, None]
            log_shares = np.where(self.right, certain, log_shares)
        rows = [self.fixed_noise + multiple * mixture.base * self.relative for _, multiple in tails]
        return log_shares, np.stack([*rows, self.clean_noise(mixture) + mixture.spread])


def mixture_density(clean: FloatArray, error: FloatArray, mixture: MixtureParameters) -> tuple[FloatArray, FloatArray]:
    """Probability that a label known exactly is wrong, and the logarithm of its density (up to ``log 2 pi / 2``)."""
    wide = clean + mixture.spread
    log_clean = np.log1p(-mixture.fraction) - 0.5 * (np.log(clean) + error**2 / clean)
    log_wrong = np.log(mixture.fraction) - 0.5 * (np.log(wide) + error**2 / wide)
    both = np.logaddexp(log_clean, log_wrong)
    return np.exp(log_wrong - both), both


def least_spread_of(variance: FloatArray) -> float:
    """The least variance that wrong labels have in addition, beside clean ones of these variances."""
    return LEAST_SPREAD * float(np.median(variance))


def share_of(wrong: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    """Share of wrong labels, kept from none and from all."""
    return kept_share(float(wrong.mean()), wrong.size)


def kept_share(fraction: float, size: int) -> float:
    """The share, neither none nor all."""
    return float(np.clip(fraction, 0.5 / (size + 1.0), MOST_WRONG))


def _expected_square(part: FloatArray | float, total: FloatArray, square: FloatArray) -> FloatArray:
    """Posterior second moment of a part, of variance ``part``, of an error with the given total variance and square."""
    share = part / total
    return np.asarray(share**2 * square + part * (1.0 - share))
