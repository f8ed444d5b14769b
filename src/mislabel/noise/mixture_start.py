"""Where the average over right and wrong labels begins: from noise variances, from some labels, from two halves of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mislabel.linalg.contract import FloatArray, IntArray, SignalCovariance
from mislabel.linalg.dense import DenseSignal
from mislabel.noise.mixture import (
    LEAST_BASE,
    LEAST_SPREAD,
    EffectiveLabels,
    LabelKinds,
    MixtureFit,
    fit_mixture,
    share_of,
)

#: Where nothing is known: share of wrong labels, and base noise relative to the labels' variance, high and low.
FIRST_FRACTION = 0.3
FIRST_BASES = (1e-2, 1e-5)
#: How far above what some labels say the base noise of all labels begins.
FROM_ABOVE = 30.0
#: How many labels tell the shared numbers well enough to start from.
ENOUGH = 1000
#: As many labels are fitted at once, more from their halves.
SMALL = 2000


def kinds_of(noise: FloatArray, base: float, labels: FloatArray) -> LabelKinds:
    """A first guess from noise variances, one for each label, many of them zero."""
    noisy = noise > 0.0
    spread = float(noise[noisy].mean()) if noisy.any() else float(np.var(labels)) or 1.0
    return LabelKinds(share_of(noisy), base, max(spread, LEAST_SPREAD * base))


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
                with_noise(labels[index], fixed_noise[index], kinds, np.full(index.size, kinds.spread)),
                least_base=least,
                learn_amplitude=learn_amplitude,
            )
        )
    found = min(fits, key=lambda fit: fit.objective).kinds
    return replace(found, base=FROM_ABOVE * found.base)


def with_noise(
    labels: FloatArray, fixed_noise: FloatArray, kinds: LabelKinds, noise: FloatArray | None = None
) -> EffectiveLabels:
    """The labels themselves, each with ``noise`` beyond that of a clean one; all alike if it is not known."""
    own = kinds.fraction * kinds.spread if noise is None else noise
    return EffectiveLabels(labels, fixed_noise + kinds.base + own)


def fit_by_halves(
    signal: DenseSignal,
    labels: FloatArray,
    fixed_noise: FloatArray,
    start: LabelKinds,
    sites: EffectiveLabels,
    random_state: np.random.RandomState,
    **options: Any,
) -> MixtureFit:
    """As :func:`fit_mixture`, from the fits of two random halves, each found likewise: a half costs an eighth.

    What a label's own half says of it is less sure than what all labels say, and so a start that settles nothing too early.
    """
    size = labels.size
    if size <= SMALL:
        return fit_mixture(signal, labels, fixed_noise, start, sites, **options)
    values, noise, found = np.empty(size), np.empty(size), []
    for part in np.array_split(random_state.permutation(size), 2):
        index = np.sort(part)
        half = fit_by_halves(
            DenseSignal(signal.submatrix(index), signal.meter),
            labels[index],
            fixed_noise[index],
            start,
            EffectiveLabels(sites.labels[index], sites.noise[index]),
            random_state,
            **{**options, "tol": np.inf, "monitor": None},
        )
        values[index], noise[index] = half.sites.labels, half.sites.noise
        found.append(half.kinds.coordinates())
    kinds = start.moved(np.mean(found, axis=0) - start.coordinates())
    return fit_mixture(signal, labels, fixed_noise, kinds, EffectiveLabels(values, noise), settling=1, **options)
