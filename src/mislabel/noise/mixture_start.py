"""Where the average over right and wrong labels begins: from noise variances, from some labels, from two halves of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mislabel.likelihoods.mixture import LEAST_SPREAD, MixtureLikelihood, MixtureParameters, share_of
from mislabel.linalg.contract import FloatArray, IntArray, SignalCovariance
from mislabel.linalg.dense import DenseSignal
from mislabel.noise.expectation_propagation import LEAST_BASE, EffectiveLabels, MixtureFit, fit_mixture

#: Where nothing is known: share of wrong labels, and base noise relative to the labels' variance, high and low.
FIRST_FRACTION = 0.3
FIRST_BASES = (1e-2, 1e-5)
#: How far above what some labels say the base noise of all labels begins.
FROM_ABOVE = 30.0
#: How many labels tell the shared numbers well enough to start from.
ENOUGH = 1000
#: As many labels are fitted at once, more from their halves.
SMALL = 2000


def mixture_of(noise: FloatArray, base: float, labels: FloatArray) -> MixtureParameters:
    """A first guess from noise variances, one for each label, many of them zero."""
    noisy = noise > 0.0
    spread = float(noise[noisy].mean()) if noisy.any() else float(np.var(labels)) or 1.0
    return MixtureParameters(share_of(noisy), base, max(spread, LEAST_SPREAD * base))


def mixture_of_some(
    signal: SignalCovariance,
    likelihood: MixtureLikelihood,
    variance: float,
    index: IntArray,
    *,
    learn_amplitude: bool,
) -> MixtureParameters:
    """The shared numbers from some of the labels, without any guess: the better of a high and a low start of the base noise.

    From above the base noise comes down to the truth unless most labels are wrong and pass for noise that all share. The base
    noise returned is higher than the one found, because it is a start for all labels: at a low base noise, a wrong label that
    is believed early makes its right neighbours look wrong, and they stay so.

    variance : that of the labels, roughly.
    """
    some, part = DenseSignal(signal.submatrix(index)), likelihood.some(index)
    least, spread = LEAST_BASE * variance, max(float(np.var(part.labels)), variance)
    fits = []
    for start in FIRST_BASES:
        mixture = MixtureParameters(FIRST_FRACTION, start * variance, spread)
        sites = with_noise(part, mixture, np.full(index.size, spread))
        fits.append(fit_mixture(some, part, mixture, sites, least_base=least, learn_amplitude=learn_amplitude))
    found = min(fits, key=lambda fit: fit.objective).mixture
    return replace(found, base=FROM_ABOVE * found.base)


def with_noise(
    likelihood: MixtureLikelihood, mixture: MixtureParameters, noise: FloatArray | None = None
) -> EffectiveLabels:
    """The labels themselves, each with ``noise`` beyond that of a clean one; all alike if it is not known."""
    own = mixture.fraction * mixture.spread if noise is None else noise
    return EffectiveLabels(likelihood.labels, likelihood.clean_noise(mixture) + own)


def fit_by_halves(
    signal: DenseSignal,
    likelihood: MixtureLikelihood,
    start: MixtureParameters,
    sites: EffectiveLabels,
    random_state: np.random.RandomState,
    **options: Any,
) -> MixtureFit:
    """As :func:`fit_mixture`, from the fits of two random halves, each found likewise: a half costs an eighth.

    What a label's own half says of it is less sure than what all labels say, and so a start that settles nothing too early.
    """
    size = likelihood.size
    if size <= SMALL:
        return fit_mixture(signal, likelihood, start, sites, **options)
    values, noise, found = np.empty(size), np.empty(size), []
    for part in np.array_split(random_state.permutation(size), 2):
        index = np.sort(part)
        half = fit_by_halves(
            DenseSignal(signal.submatrix(index), signal.meter),
            likelihood.some(index),
            start,
            EffectiveLabels(sites.labels[index], sites.noise[index]),
            random_state,
            **{**options, "tol": np.inf, "monitor": None},
        )
        values[index], noise[index] = half.sites.labels, half.sites.noise
        found.append(half.mixture.coordinates())
    mixture = start.moved(np.mean(found, axis=0) - start.coordinates())
    return fit_mixture(signal, likelihood, mixture, EffectiveLabels(values, noise), settling=1, **options)
