import numpy as np
import pytest

from mislabel.linalg import DenseSignal
from mislabel.noise.information import mixed_information
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.penalty import Penalty
from mislabel.noise.solvers.coordinate_moves import best_noise, coordinate_targets, sweep_block
from mislabel.noise.solvers.newton import condition_on_zeros, newton_step
from mislabel.noise.solvers.sweeps import SweepState, sweep
from tests import naive


@pytest.mark.parametrize(("weight", "power"), [(0.0, 1.0), (0.5, 1.0), (0.5, 2.0), (0.5, 0.5), (3.0, 1.5)])
@pytest.mark.parametrize("price", [0.0, 3.5])
def test_best_noise_of_one_label_equals_a_fine_grid(weight, power, price, rng):
    for _ in range(20):
        error, variance = rng.normal(0, 3), rng.uniform(0.1, 2.0)
        grid = np.concatenate([[0.0], np.geomspace(1e-6, 2 * error**2 + 1e-5, 20000)])
        total = variance + grid
        values = np.log(total) + error**2 / total + weight * grid**power + price * (grid > 0)
        found = best_noise(error, variance, Penalty(weight, power, price))
        total = variance + found
        value = np.log(total) + error**2 / total + weight * found**power + price * (found > 0)
        assert value <= values.min() + 1e-6


@pytest.mark.parametrize("penalty", [Penalty(), Penalty(price=3.5), Penalty(0.5), Penalty(0.5, 0.5, 2.0)])
def test_targets_of_all_labels_are_those_of_each(penalty, rng):
    precision, noise = rng.uniform(0.2, 2.0, 200), rng.uniform(0.0, 0.4, 200)
    weights, fixed = rng.normal(0.0, 2.0, 200), np.full(200, 0.01)
    variance = np.maximum(1.0 / precision - noise, fixed)
    each = [best_noise(e, v, penalty) for e, v in zip(weights / precision, variance, strict=True)]
    np.testing.assert_allclose(coordinate_targets(noise, weights, precision, fixed, penalty), each, rtol=1e-12)
    assert 0 < np.count_nonzero(each) < 200


def test_moves_within_a_block_are_those_of_new_inverses(rng):
    root = rng.normal(size=(12, 12))
    signal, labels, fixed = root @ root.T / 4.0, rng.normal(0.0, 3.0, 12), np.full(12, 0.1)
    noise = rng.uniform(0.0, 0.5, 12)
    start = naive.objective(signal + np.diag(fixed), labels, noise)
    inverse = np.asfortranarray(np.linalg.inv(signal + np.diag(fixed + noise)))
    weights, moved = inverse @ labels, noise.copy()
    change = sweep_block(inverse, weights, moved, fixed, Penalty(), 0.0)
    for k in range(12):
        current = np.linalg.inv(signal + np.diag(fixed + noise))
        variance = 1.0 / current[k, k] - noise[k]
        noise[k] = best_noise((current @ labels)[k] / current[k, k], variance, Penalty())
    np.testing.assert_allclose(moved, noise, rtol=1e-8, atol=1e-10)
    expected = np.linalg.inv(signal + np.diag(fixed + noise))
    np.testing.assert_allclose(inverse, expected, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(weights, expected @ labels, rtol=1e-7, atol=1e-10)
    assert change == pytest.approx(naive.objective(signal + np.diag(fixed), labels, noise) - start)


@pytest.mark.parametrize("mixture", [1.0, 0.75, 0.5])
@pytest.mark.parametrize("free", [[], [2, 3, 7], list(range(1, 300, 2))])
def test_information_of_free_labels(mixture, free, rng):
    root, weights, free = rng.normal(size=(300, 300)), rng.normal(size=300), np.array(free, dtype=int)
    inverse = root @ root.T
    part = inverse[np.ix_(free, free)]
    expected = 2.0 * mixture * np.outer(weights[free], weights[free]) * part + (1.0 - 2.0 * mixture) * part**2
    found = mixed_information(np.asfortranarray(np.tril(inverse)), weights, free, mixture)
    np.testing.assert_allclose(np.tril(found), np.tril(expected), rtol=1e-10, atol=1e-10)
    assert found.flags.f_contiguous


@pytest.fixture
def state(rng):
    matrix, labels, _, _ = naive.random_problem(rng, 150)
    problem = NoiseProblem(DenseSignal(matrix), labels, np.full(150, 0.01))
    return (
        problem,
        matrix + 0.01 * np.eye(150),
        labels,
        SweepState.from_state(problem, problem.evaluate(np.full(150, 0.3))),
    )


def test_updates_keep_inverse_weights_and_objective_exact(state):
    _, matrix, labels, swept = state
    moves = sweep(swept, threshold=0.01, max_sweeps=3)
    assert moves > 150
    inverse = np.linalg.inv(matrix + np.diag(swept.noise))
    np.testing.assert_allclose(np.tril(swept.inverse), np.tril(inverse), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(swept.weights, inverse @ labels, rtol=1e-6, atol=1e-8)
    assert swept.objective == pytest.approx(naive.objective(matrix, labels, swept.noise), rel=1e-9)


def test_sweeps_never_raise_the_objective(state):
    _, _, _, swept = state
    before = swept.objective
    for _ in range(10):
        sweep(swept, threshold=0.0, max_sweeps=1)
        assert swept.objective <= before + 1e-9
        before = swept.objective


def test_sweeps_end_where_no_single_label_wants_to_move(state):
    _, matrix, labels, swept = state
    sweep(swept, threshold=1e-6, max_sweeps=2000, enough=0.0)
    assert naive.kkt_residual(matrix, labels, swept.noise) < 1e-4


def test_conditioning_on_zeros_keeps_the_problem(state):
    _, matrix, labels, swept = state
    sweep(swept, threshold=0.01)
    active = swept.active(0.7)
    noise = swept.noise.copy()
    reduced, reduced_state = condition_on_zeros(swept.restricted(active))
    after = newton_step(reduced, reduced_state).noise
    full_after = noise.copy()
    full_after[active] = after
    expected = naive.objective(matrix, labels, full_after) - naive.objective(matrix, labels, noise)
    found = reduced.objective(after) - reduced.objective(noise[active])
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-7)
    full_slope = naive.gradient(matrix, labels, noise)[active]
    np.testing.assert_allclose(reduced_state.slope, full_slope, rtol=1e-5, atol=1e-6)


def test_a_price_keeps_labels_at_zero(rng):
    matrix, labels, wrong, _ = naive.random_problem(rng, 150, rate=0.1)
    free = {}
    for price in (0.0, 3.5, 10.0):
        problem = NoiseProblem(DenseSignal(matrix), labels, np.full(150, 1e-3), Penalty(price=price))
        swept = SweepState.from_state(problem, problem.evaluate(np.zeros(150)))
        sweep(swept, threshold=1e-4, max_sweeps=200, enough=0.0)
        free[price] = set(np.flatnonzero(swept.noise))
        gains = swept.weights**2 / swept.precision
        zeros = swept.noise == 0
        gains = np.maximum(gains[zeros], 1)
        assert (gains - 1 - np.log(gains) <= price + 0.05).all()
    assert len(free[0.0]) > len(free[3.5]) >= len(free[10.0])
    assert len(free[3.5] & set(np.flatnonzero(wrong))) > 0.6 * len(free[3.5])
