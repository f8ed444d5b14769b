import numpy as np
import pytest
from scipy.optimize import minimize

from mislabel.errors import InvalidParameterError
from mislabel.kernels import TableKernel
from mislabel.kernels.adapters import PrecomputedKernel
from mislabel.kernels.on_data import KernelOnData
from mislabel.linalg import CostMeter
from mislabel.noise.hyperparameters import STRATEGIES, TuningTask, _Search, tune
from mislabel.noise.marginal import MarginalObjective
from mislabel.noise.penalty import Penalty
from mislabel.noise.pricing import fit_scale_mixture, fit_two_groups
from tests import naive


def make_task(friedman, size=120, rate=0.2, level=1.0, base=None, per_label=True, seed=0):
    features, labels, wrong, clean = friedman(size, rate, level, seed)
    center = np.median(labels)
    scale = 1.4826 * np.median(np.abs(labels - center))
    kernel = KernelOnData(TableKernel.for_features(features), features)
    task = TuningTask(
        kernel, (labels - center) / scale, np.zeros(size), base, per_label, Penalty(), 1.0, CostMeter(size)
    )
    return task, wrong, scale


@pytest.mark.parametrize("base", [None, 0.02])
@pytest.mark.parametrize("shape", ["matern52", "gaussian"])
def test_gradient_with_held_noise_equals_finite_differences(friedman, base, shape, rng):
    task, _, _ = make_task(friedman, size=50, base=base)
    kernel = KernelOnData(task.kernel.kernel.set_params(shape=shape), task.kernel.points)
    objective = task.objective(kernel, 3.5)
    objective.noise = rng.exponential(size=50) * (rng.random(50) < 0.3)
    phi = objective.start(0.05) + 0.1 * rng.standard_normal(objective.start(0.05).size)
    value, gradient = objective.held(phi)
    assert np.isfinite(value)
    numeric = naive.finite_difference(lambda p: objective.held(p)[0], phi, step=1e-5)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


def test_envelope_gradient_equals_finite_differences_through_the_solver(friedman):
    task, _, _ = make_task(friedman, size=60, base=0.02)
    objective = task.objective(task.kernel, 0.0)
    phi = objective.start(0.0)
    objective.noise = np.full(60, 0.1)
    objective.sweep_at(phi, threshold=1e-9)

    def reduced(point):
        objective.noise = np.full(60, 0.1)
        return objective.sweep_at(point, threshold=1e-9)

    numeric = naive.finite_difference(reduced, phi, step=1e-4)
    reduced(phi)
    _, gradient = objective.held(phi)
    np.testing.assert_allclose(gradient, numeric, rtol=0.02, atol=0.02)


def test_noise_slope_equals_finite_differences(friedman, rng):
    task, _, _ = make_task(friedman, size=40)
    objective = task.objective(task.kernel, 0.0)
    phi = objective.start(0.05)
    noise = rng.exponential(size=40)

    def value(s):
        objective.noise = s
        return objective.held(phi)[0]

    numeric = naive.finite_difference(value, noise)
    objective.noise = noise
    np.testing.assert_allclose(objective.held_with_noise_slope(phi)[2], numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strategy", list(STRATEGIES))
@pytest.mark.parametrize("base", [None, 0.0])
def test_every_strategy_finds_the_wrong_labels(friedman, strategy, base):
    task, wrong, scale = make_task(friedman, size=200, rate=0.15, level=2.0, base=base)
    tuned = tune(task, strategy, random_state=np.random.RandomState(0))
    noise = tuned.noise * scale**2
    assert np.median(noise[wrong]) > 20 * np.median(noise[~wrong]) + 1.0
    assert tuned.n_evaluations > 5
    if base is None:
        assert 0.1 < tuned.base * scale**2 / 0.25 < 3.0


def test_strategies_agree_on_the_objective(friedman):
    values = {}
    for strategy in STRATEGIES:
        task, _, _ = make_task(friedman, size=150, rate=0.1, level=3.0)
        tuned = tune(task, strategy, random_state=np.random.RandomState(0))
        price_free = tuned.objective - tuned.price * np.count_nonzero(tuned.noise)
        values[strategy] = price_free
    assert max(values.values()) - min(values.values()) < 0.05 * abs(min(values.values()))


def test_a_search_that_begins_with_similar_labels_stays_where_it_was_good_in_fewer_steps(friedman):
    task, wrong, _ = make_task(friedman)
    cold = tune(task, "bilevel", random_state=np.random.RandomState(0))
    warm = tune(task, "bilevel", random_state=np.random.RandomState(0), start=(cold.kernel, cold.base))
    assert warm.objective < cold.objective + 0.01 * task.labels.size
    assert warm.n_evaluations < cold.n_evaluations
    other, wrong, _ = make_task(friedman, rate=0.15, seed=1)
    moved = tune(other, "bilevel", random_state=np.random.RandomState(0), start=(cold.kernel, cold.base))
    assert moved.noise[wrong].sum() > 0.9 * moved.noise.sum()


def test_restarts_are_reproducible_and_not_worse(friedman):
    task, _, _ = make_task(friedman, size=100)
    once = tune(task, "bilevel", random_state=np.random.RandomState(3), n_restarts=2)
    again = tune(task, "bilevel", random_state=np.random.RandomState(3), n_restarts=2)
    np.testing.assert_array_equal(once.kernel.theta, again.kernel.theta)
    np.testing.assert_array_equal(once.noise, again.noise)


def test_the_amplitude_cannot_run_away_at_ninety_percent_noise(friedman):
    for seed in range(3):
        clean_task, _, clean_scale = make_task(friedman, size=200, rate=0.0, seed=seed)
        clean = tune(clean_task, "bilevel", random_state=np.random.RandomState(0))
        clean_variance = clean.kernel.kernel.amplitude * clean_scale**2
        for base in (None, 0.0):
            task, _, scale = make_task(friedman, size=200, rate=0.9, level=2.0, base=base, seed=seed)
            tuned = tune(task, "bilevel", random_state=np.random.RandomState(0))
            assert tuned.kernel.kernel.amplitude * scale**2 < 10 * clean_variance


def test_unknown_strategy(friedman):
    task, _, _ = make_task(friedman, size=20)
    with pytest.raises(InvalidParameterError, match="Did you mean 'bilevel'"):
        tune(task, "bilevl", random_state=np.random.RandomState(0))


def test_an_infeasible_point_is_reported_as_very_high(friedman):
    task, _, _ = make_task(friedman, size=20, base=0.0)
    objective = MarginalObjective(task.kernel, task.labels, np.full(20, -10.0), 0.0, 1.0, Penalty(), CostMeter(20))
    value, gradient = objective.held(objective.start(0.0))
    assert value > 1e20
    assert not gradient.any()


class TestTwoGroups:
    def test_recovers_a_known_mixture(self, rng):
        variance = rng.uniform(0.5, 2.0, 4000)
        wrong = rng.random(4000) < 0.2
        error = rng.normal(0, np.sqrt(variance + 50.0 * wrong))
        groups = fit_two_groups(error, variance)
        assert groups.fraction == pytest.approx(0.2, abs=0.03)
        assert groups.spread == pytest.approx(50.0, rel=0.15)
        assert groups.probability[wrong].mean() > 0.6 > 0.1 > groups.probability[~wrong].mean()

    def test_the_price_falls_with_the_fraction_of_wrong_labels(self, rng):
        prices = []
        for rate in (0.02, 0.1, 0.3, 0.5):
            wrong = rng.random(3000) < rate
            error = rng.normal(0, np.sqrt(1.0 + 100.0 * wrong))
            prices.append(fit_two_groups(error, np.ones(3000)).price(np.ones(3000)))
        assert prices == sorted(prices, reverse=True)
        # Equal odds at 10 % wrong and a hundredfold spread: z^2 = (log 101 + 2 log 9) * 101 / 100.
        z_squared = (np.log(101) + 2 * np.log(9)) * 1.01
        assert prices[1] == pytest.approx(z_squared - 1 - np.log(z_squared), rel=0.15)

    def test_mixture_evidence(self, rng):
        assert fit_scale_mixture(rng.standard_normal(400)).evidence < 9.2
        mixed = rng.standard_normal(400) * np.where(rng.random(400) < 0.3, 0.1, 1.0)
        found = fit_scale_mixture(mixed)
        assert found.evidence > 9.2
        assert found.wide_fraction == pytest.approx(0.7, abs=0.1)
        assert fit_scale_mixture(np.zeros(5)).evidence == 0.0


def scaled_task(friedman, size=80, rate=0.25, seed=0, penalty=None):
    features, labels, wrong, _ = friedman(size, rate, 1.0, seed)
    labels = (labels - np.median(labels)) / labels.std()
    squared = ((features[:, None, :5] - features[None, :, :5]) ** 2).sum(axis=2)
    kernel = PrecomputedKernel(amplitude=1.5, amplitude_bounds=(1e-3, 1e3))
    task = TuningTask(
        KernelOnData(kernel, np.exp(-squared)),
        labels,
        np.zeros(size),
        None,
        True,
        penalty or Penalty(),
        1.0,
        CostMeter(size),
    )
    return task, wrong


@pytest.mark.parametrize("penalty", [Penalty(), Penalty(0.5, 2.0)])
def test_curvature_equals_finite_differences_with_the_noise_following(friedman, penalty):
    task, _ = scaled_task(friedman, penalty=penalty)
    objective = task.objective(task.kernel, 3.5)
    phi = objective.start(0.02)
    objective.sweep_at(phi, threshold=1e-10)
    noise = objective.noise.copy()
    assert np.count_nonzero(noise) > 5

    def at(point):
        objective.noise = noise.copy()
        objective.sweep_at(point, threshold=1e-10)
        return objective.resolved_with_curvature(point)

    value, gradient, hessian = at(phi)
    np.testing.assert_allclose(
        gradient, naive.finite_difference(lambda p: at(p)[0], phi, step=1e-4), rtol=1e-4, atol=1e-3
    )
    for k in range(2):
        numeric = naive.finite_difference(lambda p, k=k: at(p)[1][k], phi, step=1e-4)
        np.testing.assert_allclose(hessian[k], numeric, rtol=2e-3, atol=1e-2)


def test_curvature_agrees_with_the_contracted_gradient(friedman):
    task, _ = scaled_task(friedman)
    objective = task.objective(task.kernel, 3.5)
    phi = objective.start(0.02)
    objective.sweep_at(phi)
    curved = objective.resolved_with_curvature(phi)
    value, gradient = objective.resolved(phi)
    assert curved[0] == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(curved[1], gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_newton_on_amplitude_and_base_noise_ends_where_nothing_pulls_in_fewer_steps(friedman, seed):
    task, _ = scaled_task(friedman, size=150, seed=seed)
    objective = task.objective(task.kernel, 3.5)
    search = _Search(task, objective, objective.start(0.1))
    search.settle_noise()
    before = search.value
    search.minimise(resolve=True, iterations=30, tolerance=1e-8)
    newton = objective.n_evaluations
    _, gradient, hessian = objective.resolved_with_curvature(search.phi)
    assert search.value < before
    assert 0.5 * gradient @ np.linalg.solve(hessian, gradient) < 1e-3
    assert np.linalg.eigvalsh(hessian)[0] > 0.0
    other = task.objective(task.kernel, 3.5)
    other.sweep_at(objective.start(0.1))
    bounds = other.bounds(search.base_bounds)
    minimize(other.resolved, objective.start(0.1), jac=True, method="L-BFGS-B", bounds=bounds)
    assert newton < other.n_evaluations


def test_kept_inverse_serves_only_the_point_it_was_made_for(friedman):
    task, _ = scaled_task(friedman)
    objective = task.objective(task.kernel, 3.5)
    phi = objective.start(0.02)
    objective.sweep_at(phi)
    before = task.meter.n_factorizations
    error, variance = objective.leave_one_out(phi)
    assert task.meter.n_factorizations == before
    objective.release()
    again = objective.leave_one_out(phi)
    assert task.meter.n_factorizations == before + 1
    np.testing.assert_allclose(error, again[0], rtol=1e-8)
    np.testing.assert_allclose(variance, again[1], rtol=1e-8)
    objective.noise = np.zeros_like(objective.noise)
    assert not np.allclose(objective.leave_one_out(phi)[0], error)
    assert task.meter.n_factorizations == before + 2
    objective.leave_one_out(phi + 0.1)
    assert task.meter.n_factorizations == before + 3
