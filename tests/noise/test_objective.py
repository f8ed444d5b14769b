import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from mislabel.linalg import DenseSignal
from mislabel.noise import objective as fast
from mislabel.noise.information import mixed_information
from mislabel.noise.leave_one_out import leave_one_out_evidence
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.penalty import Penalty
from tests import naive


@pytest.fixture
def problem(rng):
    matrix, labels, _, _ = naive.random_problem(rng, 30)
    noise = rng.uniform(0.01, 1.0, 30)
    return matrix, labels, noise


def test_objective_equals_scikit_learns_likelihood(rng):
    points = rng.uniform(size=(40, 2))
    labels = rng.standard_normal(40)
    noise = rng.uniform(0.01, 1.0, 40)
    reference = GaussianProcessRegressor(RBF(0.5), alpha=noise, optimizer=None).fit(points, labels)
    covariance = DenseSignal(RBF(0.5)(points)).with_noise(noise)
    expected = -2 * reference.log_marginal_likelihood() - 40 * np.log(2 * np.pi)
    assert fast.negative_log_likelihood(covariance, labels) == pytest.approx(expected, rel=1e-12)


def test_gradient_equals_finite_differences(problem):
    matrix, labels, noise = problem
    covariance = DenseSignal(matrix).with_noise(noise)
    slope = fast.gradient(covariance.solve(labels), covariance.inverse_diagonal())
    numeric = naive.finite_difference(lambda s: naive.objective(matrix, labels, s), noise)
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-6)


def information(problem, mixture):
    matrix, labels, noise = problem
    covariance = DenseSignal(matrix).with_noise(noise)
    lower = np.tril(mixed_information(covariance.inverse(), covariance.solve(labels), np.arange(noise.size), mixture))
    return lower + np.tril(lower, -1).T


def test_hessian_equals_finite_differences(problem):
    matrix, labels, noise = problem
    curved = information(problem, 1.0)
    for i in range(0, 30, 6):
        numeric = naive.finite_difference(lambda s, i=i: naive.gradient(matrix, labels, s)[i], noise)
        np.testing.assert_allclose(curved[i], numeric, rtol=1e-4, atol=1e-5)


def test_average_information_has_no_negative_curvature(problem):
    curvatures = np.linalg.eigvalsh(information(problem, 0.5))
    assert curvatures.min() > -1e-9 * curvatures.max()
    assert np.linalg.eigvalsh(information(problem, 1.0)).min() < -1e-3 * curvatures.max()


@pytest.mark.parametrize("penalty", [Penalty(), Penalty(0.7, 1.0), Penalty(0.7, 2.0), Penalty(0.7, 0.5)])
def test_state_of_a_penalised_problem(problem, penalty):
    matrix, labels, noise = problem
    state = NoiseProblem(DenseSignal(matrix), labels, np.full(30, 0.1), penalty).evaluate(noise)

    def penalised(s):
        return naive.objective(matrix + 0.1 * np.eye(30), labels, s) + penalty.weight * np.sum(s**penalty.power)

    assert state.objective == pytest.approx(penalised(noise), rel=1e-10)
    np.testing.assert_allclose(state.slope, naive.finite_difference(penalised, noise), rtol=1e-4, atol=1e-5)
    expected = naive.kkt_residual(matrix + 0.1 * np.eye(30), labels, noise, penalty.slope(noise))
    assert state.residual == pytest.approx(expected, rel=1e-9)


def test_leave_one_out_evidence_equals_real_refits(problem):
    matrix, labels, noise = problem
    noise = noise.copy()
    noise[::3] = 0.0
    base = 0.02
    state = NoiseProblem(DenseSignal(matrix), labels, np.full(30, base)).evaluate(noise)
    found = leave_one_out_evidence(labels, noise, np.full(30, base), state.weights, state.precision)
    for i in range(30):
        mean, variance = naive.leave_one_out(matrix, labels, noise + base, i)
        assert found.mean[i] == pytest.approx(mean, rel=1e-8, abs=1e-8)
        assert found.variance[i] == pytest.approx(variance + base, rel=1e-8)
        assert found.z[i] == pytest.approx((labels[i] - mean) / np.sqrt(variance + base), rel=1e-8)
    posterior = labels - noise * np.linalg.solve(matrix + np.diag(noise + base), labels)
    np.testing.assert_allclose(labels - found.label_noise, posterior, atol=1e-10)


def test_gain_of_freeing_one_label(problem):
    matrix, labels, noise = problem
    noise = noise.copy()
    noise[4] = 0.0
    labels = labels.copy()
    labels[4] += 5.0
    mean, variance = naive.leave_one_out(matrix, labels, noise, 4)
    z_squared = (labels[4] - mean) ** 2 / variance
    freed = noise.copy()
    freed[4] = (labels[4] - mean) ** 2 - variance
    fall = naive.objective(matrix, labels, noise) - naive.objective(matrix, labels, freed)
    assert fast.likelihood_gain(np.array([z_squared]))[0] == pytest.approx(fall, rel=1e-6)
