"""Averaging over right and wrong labels, against an average over all assignments, and at its limits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from mislabel.likelihoods import mixture
from mislabel.likelihoods.error_densities import Intervals
from mislabel.likelihoods.mixture import MixtureLikelihood, MixtureParameters
from mislabel.likelihoods.observations import CensoredLabels
from mislabel.linalg import DenseSignal
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.low_rank import LowRankSignal
from mislabel.noise import expectation_propagation, mixture_start
from mislabel.noise.expectation_propagation import fit_mixture
from mislabel.noise.mixture_start import fit_by_halves, mixture_of, mixture_of_some, with_noise
from tests import naive


@pytest.fixture
def held(monkeypatch):
    """Shared numbers stay as they are, and effective labels settle thoroughly."""
    monkeypatch.setattr(expectation_propagation, "SETTLING", 10_000)
    monkeypatch.setattr(expectation_propagation, "SETTLED", 0.0)
    monkeypatch.setattr(expectation_propagation, "SETTLED_PER_LABEL", 0.0)


def fitted(signal, labels, kinds, **options):
    chosen = {"least_base": 1e-9, "learn_amplitude": False, "max_iter": 80, **options}
    likelihood = MixtureLikelihood.of_exact(labels, np.zeros(labels.size))
    sites = with_noise(likelihood, kinds, np.full(labels.size, kinds.spread))
    return fit_mixture(signal, likelihood, kinds, sites, **chosen)


@pytest.mark.parametrize("seed", range(8))
def test_close_to_the_average_over_all_assignments(seed, held):
    rng = np.random.default_rng(seed)
    matrix, labels, _, _ = naive.random_problem(rng, 10, rate=0.3, level=2.0)
    kinds = MixtureParameters(0.3, 0.01, 2.0)
    fit = fitted(DenseSignal(matrix), labels, kinds)
    objective, wrong, mean = naive.label_mixture(matrix, labels, 0.3, 0.01, 2.0)
    # Two moments of each label are kept, not all of them: the differences seen are 0 to 1, 0.01 to 0.15, 0.01 to 0.15.
    assert fit.objective == pytest.approx(objective, abs=1.2)
    assert np.max(np.abs(fit.cavity.wrong - wrong)) < 0.2
    np.testing.assert_allclose(matrix @ fit.weights, mean, atol=0.2)
    assert fit.residual < 1e-10


def test_one_label_is_exact(held):
    # With a single label, or labels that know nothing of each other, matching two moments loses nothing of them.
    matrix, labels = np.diag([1.0, 2.0, 0.5]), np.array([0.3, -4.0, 1.2])
    fit = fitted(DenseSignal(matrix), labels, MixtureParameters(0.2, 0.05, 3.0))
    objective, wrong, mean = naive.label_mixture(matrix, labels, 0.2, 0.05, 3.0)
    assert fit.objective == pytest.approx(objective, abs=1e-9)
    np.testing.assert_allclose(fit.cavity.wrong, wrong, atol=1e-9)
    np.testing.assert_allclose(matrix @ fit.weights, mean, atol=1e-6)


def test_without_wrong_labels_it_is_plain_regression(rng, held):
    matrix, labels, _, _ = naive.random_problem(rng, 30, rate=0.0)
    fit = fitted(DenseSignal(matrix), labels, MixtureParameters(1e-12, 0.01, 1e4))
    noise = np.full(30, 0.01)
    assert fit.objective == pytest.approx(naive.objective(matrix, labels, noise), abs=1e-6)
    np.testing.assert_allclose(fit.weights, np.linalg.solve(matrix + np.diag(noise), labels), rtol=1e-6)
    assert not fit.noise_variance.any()


def test_the_same_from_a_low_rank_matrix(rng):
    factor = rng.standard_normal((60, 5))
    rest = rng.uniform(0.1, 0.3, 60)
    dense = factor @ factor.T + np.diag(rest)
    labels = factor @ rng.standard_normal(5) + np.sqrt(rest) * rng.standard_normal(60)
    labels[:12] += rng.normal(0.0, 5.0, 12)
    kinds = MixtureParameters(0.3, 0.05, 4.0)
    exact, reduced = (
        fitted(signal, labels, kinds, learn_amplitude=True)
        for signal in (DenseSignal(dense), LowRankSignal(factor, rest))
    )
    assert reduced.objective == pytest.approx(exact.objective, abs=1e-8)
    np.testing.assert_allclose(reduced.cavity.error, exact.cavity.error, atol=1e-8)
    assert reduced.mixture.amplitude == pytest.approx(exact.mixture.amplitude, rel=1e-8)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_shared_numbers_are_found(rate):
    rng = np.random.default_rng(round(100 * rate))
    size, base, spread, amplitude = 400, 0.05**2, 1.0, 2.0
    matrix = naive.random_covariance(rng, size, length=0.3)
    labels = np.linalg.cholesky(amplitude * matrix + 1e-8 * np.eye(size)) @ rng.standard_normal(size)
    labels += np.sqrt(base) * rng.standard_normal(size)
    wrong = rng.uniform(size=size) < rate
    labels[wrong] += np.sqrt(spread) * rng.standard_normal(wrong.sum())
    signal, fixed = DenseSignal(matrix), np.full(size, 1e-8)
    start = mixture_of_some(
        signal, MixtureLikelihood.of_exact(labels, fixed), float(np.var(labels)), np.arange(size), learn_amplitude=True
    )
    likelihood = MixtureLikelihood.of_exact(labels, fixed)
    sites = with_noise(likelihood, start)
    fit = fit_mixture(signal, likelihood, start, sites, least_base=1e-9, learn_amplitude=True, tol=1e-6)
    assert fit.converged
    assert fit.residual <= 1e-4
    assert fit.mixture.fraction == pytest.approx(rate, abs=0.06)
    assert np.sqrt(fit.mixture.base) == pytest.approx(0.05, rel=0.25)
    assert np.sqrt(fit.mixture.spread) == pytest.approx(1.0, rel=0.25)
    assert 0.3 < fit.mixture.amplitude / amplitude < 3.0
    assert np.mean(fit.cavity.wrong[wrong]) > np.mean(fit.cavity.wrong[~wrong]) + 0.6


def test_evidence_is_lower_where_labels_are_explained_better(rng):
    matrix, labels, _, _ = naive.random_problem(rng, 80, rate=0.2, level=2.0)
    right = fitted(DenseSignal(matrix), labels, MixtureParameters(0.2, 0.02**2, 4.0), tol=1e-6)
    doubtful = fitted(DenseSignal(matrix), labels, MixtureParameters(0.2, 0.02**2, 4.0), tol=1e-6, least_base=0.5)
    assert right.objective < doubtful.objective


def test_noise_variance_makes_the_label_as_likely_as_can_be(rng):
    matrix, labels, _, _ = naive.random_problem(rng, 60, rate=0.2, level=3.0)
    fit = fitted(DenseSignal(matrix), labels, MixtureParameters(0.2, 1e-3, 4.0))
    noisy = fit.noise_variance > 0
    assert 0 < noisy.sum() < 30
    z = fit.cavity.error / np.sqrt(fit.cavity.variance)
    np.testing.assert_allclose(z[noisy] ** 2, 1.0 + (fit.noise_variance / fit.cavity.variance)[noisy])
    assert (fit.cavity.wrong[noisy] > 0.5).all()
    # The error taken off a label never exceeds what others say, nor has the other sign.
    ratio = fit.label_noise / fit.cavity.error
    assert ((ratio >= 0) & (ratio < 1)).all()


def test_first_guess_from_noise_variances():
    kinds = mixture_of(np.array([0.0, 2.0, 0.0, 4.0]), 0.1, np.arange(4.0))
    assert (kinds.fraction, kinds.base, kinds.spread) == (0.5, 0.1, 3.0)
    none = mixture_of(np.zeros(4), 0.1, np.arange(4.0))
    assert 0 < none.fraction <= 0.1
    assert none.spread == np.var(np.arange(4.0))


def test_kinds_given_predictions_are_the_likeliest(rng, monkeypatch):
    monkeypatch.setattr(mixture, "MOST_STEPS", 5000)
    monkeypatch.setattr(mixture, "STAYS", 1e-9)
    matrix, labels, _, _ = naive.random_problem(rng, 150, rate=0.3, level=2.0)
    kinds = MixtureParameters(0.1, 0.02, 1.0, amplitude=1.5)
    cavity = fitted(DenseSignal(matrix), labels, kinds, max_iter=1).cavity
    found = MixtureLikelihood.of_exact(labels, np.zeros(150)).likeliest(kinds, cavity)

    def surprise(logs):
        fraction, base, spread = 1.0 / (1.0 + np.exp(-logs[0])), *np.exp(logs[1:])
        density = (1.0 - fraction) * norm.pdf(cavity.error, scale=np.sqrt(cavity.signal_variance + base))
        density += fraction * norm.pdf(cavity.error, scale=np.sqrt(cavity.signal_variance + base + spread))
        return -np.log(density).sum()

    def logs_of(kinds):
        return [np.log(kinds.fraction / (1.0 - kinds.fraction)), np.log(kinds.base), np.log(kinds.spread)]

    best = minimize(
        surprise, logs_of(kinds), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000}
    )
    assert surprise(logs_of(kinds)) > best.fun + 1.0
    assert surprise(logs_of(found)) == pytest.approx(best.fun, abs=1e-4)
    assert found.amplitude == 1.5


def test_coordinates_of_shared_numbers():
    kinds = MixtureParameters(0.2, 0.01, 3.0, 0.5)
    moved = kinds.moved(np.log([2.0, 3.0, 4.0, 5.0]))
    assert (moved.base, moved.amplitude, moved.spread) == pytest.approx((0.02, 1.5, 15.0))
    assert moved.fraction == pytest.approx(0.5)


def test_two_halves_lead_to_the_same_fit_with_fewer_factorisations(rng, monkeypatch):
    monkeypatch.setattr(mixture_start, "SMALL", 200)
    size = 600
    matrix, labels, _, _ = naive.random_problem(rng, size, rate=0.3, level=2.0)
    fixed, kinds = np.full(size, 1e-8), MixtureParameters(0.5, 0.1, 1.0)
    options = {"least_base": 1e-9, "learn_amplitude": True, "tol": 1e-6}
    likelihood = MixtureLikelihood.of_exact(labels, fixed)
    sites = with_noise(likelihood, kinds)
    direct = fit_mixture(DenseSignal(matrix), likelihood, kinds, sites, **options)
    signal = DenseSignal(matrix, CostMeter(size))
    halves = fit_by_halves(signal, likelihood, kinds, sites, np.random.RandomState(0), **options)
    assert halves.objective == pytest.approx(direct.objective, abs=3.0)
    np.testing.assert_allclose(halves.mixture.coordinates(), direct.mixture.coordinates(), atol=0.3)
    assert np.mean(np.abs(halves.cavity.wrong - direct.cavity.wrong)) < 0.02
    assert len(halves.objective_path) < len(direct.objective_path)
    # The halves, and theirs in turn, count as well: an eighth each, and a 64th.
    assert signal.meter.n_factorizations > len(halves.objective_path)


def test_an_objective_that_swings_without_falling_has_settled():
    falling = [100.0, 60.0, 40.0, 30.0, 22.0, 15.0, 9.0, 5.0]
    swinging = [4.0, 6.0] * 5
    assert not expectation_propagation._has_settled(falling + swinging[:3], 0.5)
    assert not expectation_propagation._has_settled([1000.0 - 5.0 * k for k in range(30)], 0.5)
    assert expectation_propagation._has_settled(falling + swinging, 0.5)


@pytest.mark.parametrize("tails", ["normal", "student"])
def test_censored_labels_say_which_side(rng, tails, held):
    # Against a plain average over a grid: one signal value behind three labels, one of which is a limit.
    matrix, base = np.ones((3, 3)) + 1e-9 * np.eye(3), 0.3
    within = Intervals(np.array([0.4, 0.9, 1.5]), np.array([0.4, 0.9, np.inf]))
    likelihood = MixtureLikelihood(CensoredLabels(within), np.zeros(3), tails=tails)
    kinds = MixtureParameters(1e-9, base, 50.0)
    sites = with_noise(likelihood, kinds)
    fit = fit_mixture(
        DenseSignal(matrix), likelihood, kinds, sites, least_base=1e-9, learn_amplitude=False, max_iter=80
    )
    values = np.linspace(-8.0, 8.0, 4001)
    shares, multiples = np.array(mixture.TAILS[tails]).T
    weight = norm.pdf(values)
    for label in (0.4, 0.9):
        weight = weight * (norm.pdf(label - values[:, None], scale=np.sqrt(base * multiples)) @ shares)
    weight = weight * (norm.sf(1.5 - values[:, None], scale=np.sqrt(base * multiples)) @ shares)
    mean = np.sum(weight * values) / weight.sum()
    np.testing.assert_allclose(matrix @ fit.weights, mean, atol=2e-2)
    step = values[1] - values[0]
    assert -0.5 * fit.objective == pytest.approx(np.log(weight.sum() * step) + 1.5 * np.log(2.0 * np.pi), abs=0.05)


def test_noise_may_differ_from_row_to_row(rng):
    size = 300
    matrix = naive.random_covariance(rng, size, length=0.5)
    relative = np.where(np.arange(size) % 2, 25.0, 0.04)
    labels = np.linalg.cholesky(matrix + 1e-9 * np.eye(size)) @ rng.standard_normal(size)
    labels += np.sqrt(0.01 * relative) * rng.standard_normal(size)
    plain = MixtureLikelihood.of_exact(labels, np.full(size, 1e-8))
    told = replace(plain, relative=relative)
    start = MixtureParameters(0.05, 0.05, 4.0)
    fits = [
        fit_mixture(DenseSignal(matrix), given, start, with_noise(given, start), least_base=1e-9, learn_amplitude=True)
        for given in (plain, told)
    ]
    assert fits[1].mixture.base == pytest.approx(0.01, rel=0.4)
    assert fits[1].objective < fits[0].objective - 100.0


def test_labels_known_to_be_right_are_not_doubted_and_count_for_no_share(rng, held):
    # Far off, but right: the signal follows them as if they were all there is, and the others are judged as before.
    matrix, labels = np.diag(np.full(6, 4.0)), np.array([0.1, -0.2, 9.0, 0.3, 9.0, -0.1])
    kinds, right = MixtureParameters(0.2, 0.05, 3.0), np.array([False, False, True, False, False, True])
    likelihood = replace(MixtureLikelihood.of_exact(labels, np.zeros(6)), right=right)
    options = {"least_base": 1e-9, "learn_amplitude": False, "max_iter": 80}
    fit = fit_mixture(DenseSignal(matrix), likelihood, kinds, with_noise(likelihood, kinds), **options)
    plain = fitted(DenseSignal(matrix), labels, kinds)
    np.testing.assert_array_equal(fit.cavity.wrong[right], 0.0)
    np.testing.assert_allclose(fit.cavity.wrong[~right], plain.cavity.wrong[~right], atol=1e-9)
    assert plain.cavity.wrong[2] > 0.3
    np.testing.assert_allclose((matrix @ fit.weights)[right], 4.0 / 4.05 * labels[right], rtol=1e-9)
    np.testing.assert_array_equal(fit.noise_variance[right], 0.0)
    # The share of wrong labels is that among those in doubt.
    found = likelihood.likeliest(kinds, fit.cavity)
    doubted = MixtureLikelihood.of_exact(labels[~right], np.zeros(4))
    alone = fitted(DenseSignal(np.diag(np.full(4, 4.0))), labels[~right], kinds)
    assert likelihood.some(np.flatnonzero(~right)).right.tolist() == [False] * 4
    assert found.fraction > 0.05
    assert doubted.likeliest(kinds, alone.cavity).fraction > 0.05
    everything = replace(likelihood, right=np.ones(6, dtype=bool))
    fit = fit_mixture(DenseSignal(matrix), everything, kinds, with_noise(everything, kinds), **options)
    assert everything.likeliest(kinds, fit.cavity).fraction == kinds.fraction
