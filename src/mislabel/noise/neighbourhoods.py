"""Hyperparameters from many labels, each predicted from few others, most of them near.

The marginal likelihood needs one matrix of all labels, so that large tables are tuned on a part of their rows. What only
shows where rows lie close together (a feature of which small differences matter, groups of rows that share a value) is then
missed. Leave-one-out predictions hardly need more than the nearest neighbours (Vecchia 1988) and a few labels further off
(Stein, Chi and Welty 2004), though, and those of thousands of labels are as many small matrices. Right and wrong labels are
averaged over as in :mod:`mislabel.noise.mixture`, neighbourhood by neighbourhood; the kernel is the one under which the
labels' leave-one-out density is highest. Its amplitude is left alone: neighbours say little about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from mislabel._common.progress import Progress
from mislabel.kernels.on_data import KernelOnData, take_points
from mislabel.likelihoods.mixture import Cavity, MixtureLikelihood, MixtureParameters, mixture_density
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.noise.expectation_propagation import EffectiveLabels, MovingSites
from mislabel.noise.mixture_start import with_noise

#: Labels that each prediction is made from: the nearest, and as many at random.
NEAR, FAR = 24, 24
#: Labels that take part, and those of them whose density is maximised at a time.
MOST_LABELS = 10_000
TARGETS = 500
#: Rounds of new neighbours, at most; sweeps over all effective labels, in the first and in later ones; steps of a search.
ROUNDS = 3
SWEEPS, LATER_SWEEPS = 8, 5
SEARCH_STEPS = 8
#: How far a search may go before neighbours are looked for again, as a logarithm.
REACH = float(np.log(10.0))
#: A kernel without a derivative above this has nothing but an amplitude.
FLAT = 1e-9
#: Neighbourhoods, and similarities, that are worked on at a time.
_CHUNK = 100
_SIMILARITIES = 1_000_000


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Some labels, and for each the positions of those that it is predicted from."""

    targets: IntArray
    members: IntArray

    @classmethod
    def of(cls, kernel: KernelOnData, near: int, far: int, random_state: np.random.RandomState) -> Neighbourhoods:
        """Those of all points of a kernel: the nearest ones, and some at random, which tell the level further off."""
        size = kernel.size
        count = min(near + far, size - 1)
        away = random_state.choice(np.arange(1, size), max(count - near, 0), replace=False)
        members = np.empty((size, count), dtype=np.intp)
        roots = np.sqrt(np.maximum(kernel.kernel.diag(kernel.points), np.finfo(float).tiny))
        step = max(_SIMILARITIES // size, 1)
        for start in range(0, size, step):
            rows = np.arange(start, min(start + step, size))
            similarity = np.asarray(kernel.kernel(take_points(kernel.points, rows), kernel.points)) / roots
            np.put_along_axis(similarity, (rows[:, None] + away) % size, np.inf, axis=1)
            similarity[np.arange(rows.size), rows] = -np.inf
            members[rows] = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
        return cls(np.arange(size, dtype=np.intp), members)

    def some(self, index: IntArray) -> Neighbourhoods:
        """Those of some of the labels."""
        return Neighbourhoods(self.targets[index], self.members[index])

    def chunks(self) -> Iterator[tuple[slice, Neighbourhoods]]:
        """A few at a time, and which these are."""
        for start in range(0, self.targets.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            yield part, Neighbourhoods(self.targets[part], self.members[part])

    def matrices(self, kernel: KernelOnData) -> FloatArray:
        """The similarities within each neighbourhood, the label itself last."""
        return np.stack([np.asarray(kernel.kernel(points)) for points in self._points(kernel)])

    def matrices_with_slopes(self, kernel: KernelOnData) -> tuple[FloatArray, FloatArray]:
        """The same with their derivatives, the last axis."""
        both = [kernel.kernel(points, eval_gradient=True) for points in self._points(kernel)]
        return np.stack([matrix for matrix, _ in both]), np.stack([slope for _, slope in both])

    def _points(self, kernel: KernelOnData) -> Iterator[FloatArray]:
        for target, members in zip(self.targets, self.members, strict=True):
            yield take_points(kernel.points, np.append(members, target))


@dataclass(frozen=True, eq=False)
class _Predictions:
    """What its neighbours say of each label: mean and variance of the signal.

    shares : weight of each neighbour in the mean. pulls : solution for the neighbours' labels.
    """

    mean: FloatArray
    variance: FloatArray
    shares: FloatArray
    pulls: FloatArray


def _predicted(matrices: FloatArray, labels: FloatArray, noise: FloatArray) -> _Predictions:
    among, across = matrices[:, :-1, :-1].copy(), matrices[:, :-1, -1]
    np.einsum("tii->ti", among)[...] += noise
    solution: FloatArray = np.linalg.solve(among, np.stack([across, labels], axis=2)).astype(float, copy=False)
    shares, pulls = solution[:, :, 0], solution[:, :, 1]
    variance = matrices[:, -1, -1] - np.einsum("ti,ti->t", across, shares)
    floor = np.finfo(float).eps * matrices[:, -1, -1]
    return _Predictions(np.einsum("ti,ti->t", across, pulls), np.maximum(variance, floor), shares, pulls)


@dataclass(frozen=True, eq=False)
class LocalFit:
    """Right and wrong labels averaged over, each label seen from its neighbours."""

    mixture: MixtureParameters
    cavity: Cavity
    sites: EffectiveLabels

    @property
    def log_density(self) -> float:
        """Mean over all labels, leave-one-out (up to ``log 2 pi / 2``)."""
        return float(self.cavity.log_density.mean())


def fit_locally(
    kernel: KernelOnData,
    around: Neighbourhoods,
    likelihood: MixtureLikelihood,
    start: MixtureParameters,
    sites: EffectiveLabels,
    *,
    least_base: float,
    sweeps: int = SWEEPS,
) -> LocalFit:
    """Effective labels and shared numbers under one kernel, amplitude excepted, from ``sites`` on.

    around : the neighbourhoods of all labels.
    """
    matrices = start.amplitude * around.matrices(kernel)
    moving, mixture = MovingSites(sites), start
    for sweep in range(sweeps):
        mean, variance = np.empty(likelihood.size), np.empty(likelihood.size)
        for part, some in around.chunks():
            found = _predicted(matrices[part], moving.labels[some.members], moving.noise[some.members])
            mean[part], variance[part] = found.mean, found.variance
        cavity = likelihood.cavity(mean, variance, mixture)
        if sweep == sweeps - 1:
            break
        moving.update(likelihood.clean_noise(mixture), cavity, mixture)
        if sweep:
            found_mixture = likelihood.likeliest(mixture, cavity)
            mixture = replace(found_mixture, base=max(found_mixture.base, least_base))
    return LocalFit(mixture, cavity, EffectiveLabels(moving.labels, moving.noise))


@dataclass(eq=False)
class LocalDensity:
    """Minus the mean leave-one-out log density of some labels, as a function of a kernel's hyperparameters and base noise.

    Neighbours and what the effective labels have beyond base noise are held. The kernel is scaled such that its mean diagonal
    stays as it is.
    """

    kernel: KernelOnData
    around: Neighbourhoods
    labels: FloatArray
    fixed_noise: FloatArray
    local: LocalFit

    def __post_init__(self) -> None:
        self._level = self._mean_diagonal(self.kernel)
        self._own = np.maximum(self.local.sites.noise - self.local.mixture.base, 0.0)

    def _mean_diagonal(self, kernel: KernelOnData) -> float:
        return float(np.mean(kernel.kernel.diag(take_points(kernel.points, self.around.targets))))

    @property
    def start(self) -> FloatArray:
        """Hyperparameters of the kernel and the base noise, as logarithms."""
        return np.append(self.kernel.theta, np.log(self.local.mixture.base))

    def __call__(self, phi: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at ``phi``."""
        kernel = self.kernel.at(phi[:-1])
        mean_diagonal = self._mean_diagonal(kernel)
        factor = self.local.mixture.amplitude * self._level / mean_diagonal
        mixture = replace(self.local.mixture, base=float(np.exp(phi[-1])))
        value, along, slope, level_slope = 0.0, 0.0, np.zeros(phi.size), np.zeros(phi.size - 1)
        for _, some in self.around.chunks():
            matrices, slopes = some.matrices_with_slopes(kernel)
            matrices *= factor
            slopes *= factor
            noise = self._own[some.members] + mixture.base
            found = _predicted(matrices, self.local.sites.labels[some.members], noise)
            error = self.labels[some.targets] - found.mean
            clean = found.variance + self.fixed_noise[some.targets] + mixture.base
            wrong, density = mixture_density(clean, error, mixture)
            value -= float(density.sum())
            # Derivatives of the density by mean and by variance.
            wide = clean + mixture.spread
            by_mean = error * ((1.0 - wrong) / clean + wrong / wide)
            by_variance = 0.5 * (
                (1.0 - wrong) * (error**2 / clean - 1.0) / clean + wrong * (error**2 / wide - 1.0) / wide
            )
            # With the weights u = (-shares, 1) and p = (pulls, 0) of a neighbourhood, d mean = u' dK p and d variance = u' dK u.
            ones, zeros = np.ones((error.size, 1)), np.zeros((error.size, 1))
            u = np.hstack([-found.shares, ones])
            p = np.hstack([found.pulls, zeros])
            both = by_mean[:, None] * p + by_variance[:, None] * u
            slope[:-1] -= np.einsum("ti,tijd,tj->d", u, slopes, both, optimize=True)
            along += float(np.einsum("ti,tij,tj->", u, matrices, both, optimize=True))
            level_slope += slopes[:, -1, -1].sum(axis=0) / factor
            pulled = -np.einsum("ti,ti->t", found.shares, found.pulls)
            widened = np.einsum("ti,ti->t", found.shares, found.shares) + 1.0
            slope[-1] -= mixture.base * float(by_mean @ pulled + by_variance @ widened)
        count = self.around.targets.size
        slope[:-1] += along * level_slope / (count * mean_diagonal)
        return value / count, slope / count


def doubles_per_label(n_features: int) -> int:
    """How many numbers :func:`refine_locally` holds for each label that takes part: its neighbourhood and its point."""
    return (NEAR + FAR + 1) ** 2 * 3 // 2 + n_features


def refine_locally(
    kernel: KernelOnData,
    labels: FloatArray,
    fixed_noise: FloatArray,
    mixture: MixtureParameters,
    random_state: np.random.RandomState,
    *,
    least_base: float,
    progress: Progress,
) -> tuple[KernelOnData, MixtureParameters]:
    """The kernel, from ``kernel`` on, under which neighbours predict the labels best, and the shared numbers that go with it.

    kernel : on the labels that take part; few enough for all their pairs to be looked at.
    """
    likelihood = MixtureLikelihood.of_exact(labels, fixed_noise)
    sites = with_noise(likelihood, mixture)
    best: tuple[float, KernelOnData, MixtureParameters] | None = None
    for turn in range(ROUNDS + 1):
        progress("hyperparameters, neighbourhoods", turn / (ROUNDS + 1))
        around = Neighbourhoods.of(kernel, NEAR, FAR, random_state)
        sweeps = LATER_SWEEPS if turn else SWEEPS
        local = fit_locally(kernel, around, likelihood, mixture, sites, least_base=least_base, sweeps=sweeps)
        # What suits some labels, with their neighbours held, need not suit all: then the last kernel stays.
        if best is not None and not local.log_density > best[0]:
            break
        best = local.log_density, kernel, local.mixture
        if turn == ROUNDS:
            break
        targets = np.sort(random_state.choice(labels.size, min(TARGETS, labels.size), replace=False))
        density = LocalDensity(kernel, around.some(targets), labels, fixed_noise, local)
        if not turn and not np.any(np.abs(density(density.start)[1][:-1]) > FLAT):
            break
        kernel, base = _searched(density, least_base)
        mixture, sites = replace(local.mixture, base=base), local.sites
    assert best is not None
    return best[1], best[2]


def _searched(density: LocalDensity, least_base: float) -> tuple[KernelOnData, float]:
    start = density.start
    low, high = np.vstack([density.kernel.bounds, [np.log(least_base), np.inf]]).T
    bounds = np.column_stack([np.maximum(low, start - REACH), np.minimum(high, start + REACH)])
    found = minimize(
        density,
        np.clip(start, bounds[:, 0], bounds[:, 1]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": SEARCH_STEPS},
    )
    return density.kernel.at(found.x[:-1]), float(np.exp(found.x[-1]))
