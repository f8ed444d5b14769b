import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mislabel.linalg import DenseSignal
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.penalty import Penalty
from mislabel.noise.solvers import SOLVERS, UNIFORM_SOLVERS, uniform_start
from mislabel.noise.solvers.multiplicative import multiplicative_step
from mislabel.noise.solvers.uniform import UniformSpectrum, exact_uniform_noise
from tests import naive

BASE = 1e-3
# Residuals that these solvers reach on the small problem below, and the iterations they get.
CONVERGING = {"auto": (1e-8, 50), "multiplicative": (1e-4, 4000), "sqrt": (1e-3, 4000), "lbfgs": (1e-2, 2000)}
# The first-order methods of the paper's figure 3 do not converge in reasonable time: they must get most of the way.
FIRST_ORDER = ["gradient", "momentum", "rmsprop", "adam"]


def make_problem(seed, size=60, penalty=None, **options):
    rng = np.random.default_rng(seed)
    matrix, labels, wrong, _ = naive.random_problem(rng, size, **options)
    problem = NoiseProblem(DenseSignal(matrix), labels, np.full(size, BASE), penalty or Penalty())
    return problem, matrix + BASE * np.eye(size), labels, wrong


def test_every_solver_is_tested():
    assert {*CONVERGING, *FIRST_ORDER} == set(SOLVERS)


def check_reported_figures(solution, matrix, labels):
    noise = solution.state.noise
    assert (noise >= 0).all()
    assert solution.state.residual == pytest.approx(naive.kkt_residual(matrix, labels, noise), rel=1e-3, abs=1e-9)
    assert solution.state.objective == pytest.approx(naive.objective(matrix, labels, noise), rel=1e-9)


@pytest.mark.parametrize("name", list(CONVERGING))
def test_residual_checked_by_an_independent_function(name):
    problem, matrix, labels, _ = make_problem(0)
    tol, max_iter = CONVERGING[name]
    solution = SOLVERS[name](problem, uniform_start(problem), tol=tol, max_iter=max_iter)
    assert solution.converged
    assert naive.kkt_residual(matrix, labels, solution.state.noise) <= tol * 1.01
    check_reported_figures(solution, matrix, labels)


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_first_order_methods_get_most_of_the_way(name):
    problem, matrix, labels, _ = make_problem(0)
    start = uniform_start(problem)
    best = SOLVERS["auto"](problem, start, tol=1e-8, max_iter=50).state.objective
    solution = SOLVERS[name](problem, start, tol=1e-6, max_iter=1500)
    check_reported_figures(solution, matrix, labels)
    gap = naive.objective(matrix, labels, start) - best
    assert solution.state.objective - best < 0.25 * gap


@pytest.mark.parametrize("name", ["auto", "multiplicative", "sqrt", "lbfgs"])
def test_diagonal_kernel_has_a_closed_form(name, rng):
    variances = rng.uniform(0.5, 2.0, 25)
    labels = rng.normal(0, 2, 25)
    problem = NoiseProblem(DenseSignal(np.diag(variances)), labels, np.zeros(25))
    solution = SOLVERS[name](problem, uniform_start(problem), tol=1e-9, max_iter=20000)
    expected = np.maximum(labels**2 - variances, 0.0)
    np.testing.assert_allclose(solution.state.noise, expected, atol=1e-3 if name != "auto" else 1e-7)
    if name == "auto":
        assert (solution.state.noise[expected == 0] == 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_auto_descends_to_exact_zeros(seed):
    problem, matrix, labels, _ = make_problem(seed, size=120, rate=0.1 + 0.15 * seed)
    solution = SOLVERS["auto"](problem, uniform_start(problem), tol=1e-7, max_iter=50)
    assert solution.converged
    assert naive.kkt_residual(matrix, labels, solution.state.noise) <= 1.1e-7
    assert np.sum(solution.state.noise == 0) > 5
    reference = SOLVERS["multiplicative"](problem, uniform_start(problem), tol=1e-7, max_iter=300)
    assert solution.state.objective <= reference.state.objective + 1e-3 * abs(reference.state.objective)


def test_auto_never_rises_within_a_descent():
    from mislabel.noise.solvers.auto import descend

    for seed in range(10):
        problem, _, _, _ = make_problem(seed, size=80, rate=0.6, level=2.0)
        path = descend(problem, uniform_start(problem), tol=1e-8, max_iter=50).objective_path
        assert (np.diff(path) <= 1e-9 * np.abs(path[0])).all()


def test_at_the_optimum_errors_are_within_the_band():
    problem, matrix, labels, _ = make_problem(3, size=80)
    state = SOLVERS["auto"](problem, uniform_start(problem), tol=1e-9, max_iter=50).state
    # The paper's theorem: leave-one-out error <= leave-one-out standard deviation, for every label.
    assert (np.abs(state.weights / state.precision) <= (1 + 1e-6) / np.sqrt(state.precision)).all()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 12),
    log_level=st.floats(-2, 2),
    power=st.sampled_from([0.3, 0.5, 1.0]),
    weight=st.sampled_from([0.0, 0.1, 10.0]),
    exponent=st.sampled_from([1.0, 0.5]),
)
def test_the_multiplicative_path_never_rises(seed, size, log_level, power, weight, exponent):
    """Fifty random problems per example, ten thousand in all: for every kernel, and for penalties with p <= 1."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        factor = rng.standard_normal((size, rng.integers(1, size + 1)))
        matrix = factor @ factor.T
        jitter = 1e-8 * max(np.mean(np.diag(matrix)), 1e-3)
        labels = rng.standard_normal(size) * 10**log_level
        problem = NoiseProblem(DenseSignal(matrix), labels, np.full(size, jitter), Penalty(weight, power))
        state = problem.evaluate(rng.exponential(size=size) * np.mean(labels**2) + 1e-6)
        for _ in range(3):
            after = multiplicative_step(problem, state, exponent)
            assert after.objective <= state.objective + 1e-7 * (1 + abs(state.objective))
            state = after


def test_a_convex_penalty_needs_the_safeguard():
    problem = NoiseProblem(DenseSignal(np.array([[1e-12]])), np.ones(1), np.zeros(1), Penalty(100.0, 2.0))
    state = problem.evaluate(np.array([0.01]))
    factor = state.weights**2 / (state.precision + problem.penalty.slope(state.noise))
    unguarded = problem.evaluate(state.noise * factor)
    assert state.objective == pytest.approx(95.40, abs=0.01)
    assert unguarded.objective > state.objective
    assert multiplicative_step(problem, state).objective < state.objective


@pytest.mark.parametrize("penalty", [Penalty(2.0, 1.0), Penalty(2.0, 2.0)])
def test_penalised_solutions_agree_between_solvers(penalty):
    problem, matrix, labels, _ = make_problem(1, penalty=penalty)
    auto = SOLVERS["auto"](problem, uniform_start(problem), tol=1e-8, max_iter=50)
    assert auto.converged
    assert naive.kkt_residual(matrix, labels, auto.state.noise, penalty.slope(auto.state.noise)) <= 1.1e-8
    paper = SOLVERS["multiplicative"](problem, uniform_start(problem), tol=1e-5, max_iter=3000)
    assert auto.state.objective == pytest.approx(paper.state.objective, rel=1e-4)


def test_a_penalty_makes_the_solution_sparser():
    counts = []
    for weight in (0.0, 1.0, 10.0):
        problem, _, _, _ = make_problem(1, penalty=Penalty(weight, 1.0))
        noise = SOLVERS["auto"](problem, uniform_start(problem), tol=1e-7, max_iter=50).state.noise
        counts.append(noise.sum())
    assert counts[0] > counts[1] > counts[2]


def test_penalty_power_below_one():
    problem, _, _, _ = make_problem(1, penalty=Penalty(0.5, 0.5))
    solution = SOLVERS["auto"](problem, uniform_start(problem), tol=1e-7, max_iter=50)
    assert solution.converged
    free = solution.state.noise > 0
    np.testing.assert_allclose(solution.state.slope[free], 0.0, atol=1e-4)


def test_costs_and_paths_are_reported():
    problem, _, _, _ = make_problem(0)
    solution = SOLVERS["auto"](problem, uniform_start(problem), tol=1e-6, max_iter=50)
    assert len(solution.objective_path) == len(solution.cost_path) == len(solution.residual_path) == solution.n_iter + 1
    assert (np.diff(solution.cost_path) > 0).all()
    assert problem.signal.meter.n_factorizations > 3
    assert solution.residual_path[-1] == solution.state.residual


def test_the_monitor_sees_every_iteration():
    problem, _, _, _ = make_problem(0)
    seen = []
    solution = SOLVERS["multiplicative"](
        problem, uniform_start(problem), tol=1e-9, max_iter=7, monitor=lambda k, state: seen.append(state.objective)
    )
    np.testing.assert_array_equal(seen, solution.objective_path)


class TestUniform:
    def test_spectrum_equals_the_dense_objective(self, rng):
        matrix, labels, _, _ = naive.random_problem(rng, 30)
        spectrum = UniformSpectrum(matrix, labels)
        for noise in (1e-3, 0.1, 10.0):
            expected = naive.objective(matrix, labels, np.full(30, noise))
            assert spectrum.objective(noise) == pytest.approx(expected, rel=1e-8)

    @pytest.mark.parametrize("name", list(UNIFORM_SOLVERS))
    def test_both_solvers_find_the_best_of_a_fine_grid(self, name):
        problem, matrix, labels, _ = make_problem(2)
        solution = UNIFORM_SOLVERS[name](problem, uniform_start(problem), tol=1e-7, max_iter=2000)
        grid = np.geomspace(1e-4, 1e2, 2000)
        best = min(naive.objective(matrix, labels, np.full(60, noise)) for noise in grid)
        assert solution.converged
        assert np.ptp(solution.state.noise) == 0.0
        assert solution.state.objective <= best + 1e-6

    def test_the_scalar_update_never_rises(self):
        for seed in range(10):
            problem, _, _, _ = make_problem(seed)
            start = np.full(60, 10.0 ** (seed - 5))
            path = UNIFORM_SOLVERS["multiplicative"](problem, start, tol=1e-8, max_iter=200).objective_path
            assert (np.diff(path) <= 1e-9 * np.abs(path[:-1])).all()

    def test_no_noise_is_found_where_there_is_none(self, rng):
        labels = np.zeros(10)
        problem = NoiseProblem(DenseSignal(np.eye(10)), labels, np.zeros(10))
        assert exact_uniform_noise(problem) == 0.0
