import numpy as np
import pytest

from mislabel.linalg import DenseSignal
from mislabel.linalg.low_rank import LowRankSignal
from mislabel.linalg.low_rank_blocks import BlockLowRankSignal
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.penalty import Penalty
from mislabel.noise.solvers import simultaneous
from mislabel.noise.solvers.simultaneous import solve_simultaneous
from tests import naive


def low_rank_problem(rng, size=400, rank=12, price=0.0, blocks=False):
    factor = rng.standard_normal((size, rank))
    if blocks:
        signal = BlockLowRankSignal(factor, [0.3 * naive.random_covariance(rng, 40) for _ in range(size // 40)])
    else:
        signal = LowRankSignal(factor, rng.uniform(0.05, 0.2, size))
    labels = factor @ rng.standard_normal(rank) + 0.4 * rng.standard_normal(size)
    labels[: size // 8] += 6 * rng.standard_normal(size // 8)
    return NoiseProblem(signal, labels, np.full(size, 0.02), Penalty(0.0, 1.0, price))


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("price", [0.0, 3.5])
def test_it_converges_downhill(rng, blocks, price):
    problem = low_rank_problem(rng, blocks=blocks, price=price)
    found = solve_simultaneous(problem, np.zeros(problem.size), tol=1e-6, max_iter=200)
    assert found.converged
    assert found.state.residual <= 1e-6
    path = found.objective_path
    assert np.all(np.diff(path) <= 1e-9 * (1 + np.abs(path[:-1])))


def test_the_optimum_is_that_of_the_dense_problem(rng):
    problem = low_rank_problem(rng, size=200)
    found = solve_simultaneous(problem, np.full(200, 0.1), tol=1e-7, max_iter=300)
    dense = NoiseProblem(DenseSignal(problem.signal.submatrix(np.arange(200))), problem.labels, problem.fixed_noise)
    state = dense.evaluate(found.state.noise)
    assert state.objective == pytest.approx(found.state.objective, rel=1e-8)
    np.testing.assert_allclose(state.weights, found.state.weights, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(state.precision, found.state.precision, rtol=1e-8)
    assert state.residual < 1e-6


def test_strongly_coupled_labels_still_descend(rng):
    # A kernel that nearly interpolates: every label matters to all others.
    dense = naive.random_covariance(rng, 60)
    problem = NoiseProblem(
        DenseSignal(np.asfortranarray(dense)), 3 * rng.standard_normal(60), np.full(60, 1e-4), Penalty(0.0, 1.0, 3.0)
    )
    found = solve_simultaneous(problem, np.zeros(60), tol=1e-4, max_iter=100)
    path = found.objective_path
    assert np.all(np.diff(path) <= 1e-9 * (1 + np.abs(path[:-1])))
    assert found.state.objective < path[0]


def test_contending_labels_are_settled_among_themselves(rng, monkeypatch):
    # Groups of near copies that disagree: each blames the other, and all would step aside at once.
    factor = np.repeat(rng.standard_normal((150, 20)), 3, axis=0)
    labels = factor @ rng.standard_normal(20) + 0.01 * rng.standard_normal(450)
    labels[::7] += 3 * rng.standard_normal(labels[::7].size)
    rest = np.tile([1e-6, 1e-6, 1e-3], 150)
    problem = NoiseProblem(LowRankSignal(factor, rest), labels, np.full(450, 1e-4), Penalty(0.0, 1.0, 3.0))

    def cost():
        before = problem.signal.meter.n_factorizations
        found = solve_simultaneous(problem, np.zeros(450), tol=1e-4, max_iter=100)
        return found, problem.signal.meter.n_factorizations - before

    settled, evaluations = cost()
    monkeypatch.setattr(simultaneous, "CONTENDERS", 0)
    together, more = cost()
    assert settled.converged
    assert settled.state.objective <= together.state.objective + 1e-6 * abs(together.state.objective)
    assert evaluations < more
