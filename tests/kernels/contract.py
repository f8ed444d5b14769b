"""The suite that every kernel inherits: it supplies itself and some points."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from mislabel.kernels.adapters import tunable
from mislabel.kernels.on_data import KernelOnData, take, take_points
from tests import naive


def within_bounds(kernel):
    theta, (low, high) = kernel.theta, np.reshape(kernel.bounds, (-1, 2)).T
    return bool(np.all((low <= theta) & (theta <= high)))


class KernelContract:
    """Subclasses return (kernel, points). Each hyperparameter must be within its bounds."""

    #: Relative error of a kernel value.
    accuracy = 1e-9
    #: The mean of the diagonal that ``starting_from`` gives, in units of the labels' variance; None where it leaves it alone.
    starting_diagonal = None

    def make(self, rng):
        raise NotImplementedError

    def cross(self, kernel, points, rows, columns):
        """The kernel between some of the points and others."""
        return kernel(take_points(points, rows), take_points(points, columns))

    @pytest.fixture
    def case(self, rng):
        kernel, points = self.make(rng)
        return kernel, points, np.asarray(kernel(points))

    @pytest.fixture
    def weights(self, case, rng):
        weights = rng.standard_normal(case[2].shape)
        return weights + weights.T

    def test_symmetric(self, case):
        _, points, matrix = case
        assert matrix.shape == (len(points), len(points))
        np.testing.assert_array_equal(matrix, matrix.T)

    def test_positive_semidefinite(self, case):
        values = np.linalg.eigvalsh(case[2])
        assert values[0] > -self.accuracy * values[-1]
        assert values[-1] > 0

    def test_diagonal(self, case):
        kernel, points, matrix = case
        np.testing.assert_allclose(kernel.diag(points), np.diag(matrix), rtol=self.accuracy)

    def test_blocks(self, case):
        kernel, points, matrix = case
        rows, columns = np.arange(1, 4), np.r_[0, 4 : len(points)]
        found = self.cross(kernel, points, rows, columns)
        np.testing.assert_allclose(found, matrix[np.ix_(rows, columns)], rtol=10 * self.accuracy, atol=1e-10)

    def test_order_of_the_points(self, case, rng):
        kernel, points, matrix = case
        order = rng.permutation(len(points))
        found = kernel(take(points, order, kernel))
        np.testing.assert_allclose(found, matrix[np.ix_(order, order)], rtol=10 * self.accuracy, atol=1e-10)

    def test_contracted_gradient_equals_finite_differences(self, case, weights):
        kernel, points, matrix = case
        found = tunable(kernel).contracted_gradient(points, weights)
        assert found.shape == kernel.theta.shape
        precise = tunable(kernel).precise()
        expected = naive.finite_difference(
            lambda theta: np.sum(weights * precise.clone_with_theta(theta)(points)), kernel.theta, 1e-5
        )
        error = max(100 * self.accuracy, 1e-7) * np.abs(weights * matrix).sum()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=error)

    def test_contracted_gradient_equals_the_gradient_contracted(self, case, weights):
        kernel, points, matrix = case
        same, gradient = kernel(points, eval_gradient=True)
        assert gradient.shape == (*matrix.shape, kernel.n_dims)
        np.testing.assert_allclose(same, matrix, rtol=self.accuracy, atol=1e-12)
        found = tunable(kernel).contracted_gradient(points, weights)
        expected = np.einsum("ij,ijk->k", weights, gradient)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(weights * matrix).sum())

    def test_other_hyperparameters(self, case):
        kernel, points, matrix = case
        theta = kernel.theta.copy()
        moved = kernel.clone_with_theta(theta + 0.1)
        np.testing.assert_allclose(moved.theta, theta + 0.1)
        np.testing.assert_array_equal(kernel.theta, theta)
        assert np.shape(kernel.bounds)[0] == theta.size == kernel.n_dims
        if theta.size:
            assert not np.allclose(moved(points), matrix)
        np.testing.assert_allclose(moved.clone_with_theta(theta)(points), matrix, rtol=self.accuracy)

    def test_scaled(self, case):
        kernel, points, matrix = case
        twice = tunable(kernel).scaled(2.5)
        assert isinstance(twice, Kernel)
        np.testing.assert_allclose(twice(points), 2.5 * matrix, rtol=self.accuracy)
        np.testing.assert_allclose(twice.diag(points), 2.5 * np.diag(matrix), rtol=self.accuracy)
        np.testing.assert_allclose(tunable(twice).scaled(0.4)(points), matrix, rtol=self.accuracy)
        np.testing.assert_array_equal(kernel(points), matrix)

    def test_a_scale_that_is_all_that_is_free(self, case):
        kernel, points, matrix = case
        power = tunable(kernel).scale_power
        if power is None:
            # Then some hyperparameter changes more than the size of the matrix, or there is none.
            moved = np.asarray(kernel.clone_with_theta(kernel.theta + 0.2)(points))
            assert kernel.n_dims != 1 or np.ptp(moved / matrix) > 1e-6
            return
        assert kernel.n_dims == 1
        moved = kernel.clone_with_theta(kernel.theta + 0.2)(points)
        np.testing.assert_allclose(moved, np.exp(0.2 * power) * matrix, rtol=self.accuracy)

    def test_where_tuning_starts(self, case):
        kernel, points, matrix = case
        started = tunable(kernel).starting_from(points, 3.0)
        assert isinstance(started, Kernel)
        assert within_bounds(started)
        expected = self.starting_diagonal
        expected = np.diag(matrix).mean() if expected is None else 3.0 * expected
        assert np.mean(started.diag(points)) == pytest.approx(expected, rel=1e-6)
        np.testing.assert_array_equal(kernel(points), matrix)

    def test_other_shapes(self, case):
        kernel, points, matrix = case
        for other in tunable(kernel).other_shapes():
            assert within_bounds(other)
            found = other(points)
            assert np.linalg.eigvalsh(found)[0] > -1e-9 * matrix.max()
            np.testing.assert_allclose(other.diag(points), kernel.diag(points))

    def test_precise(self, case):
        kernel, points, matrix = case
        precise = tunable(kernel).precise()
        np.testing.assert_array_equal(precise.theta, kernel.theta)
        np.testing.assert_allclose(precise(points), matrix, rtol=100 * self.accuracy)

    def test_properties(self, case):
        view = tunable(case[0])
        assert view.formula is case[0]
        assert view.tuning_size is None or view.tuning_size > 0
        assert isinstance(view.centers_labels, bool)
        assert view.amplitude > 0

    def test_copies(self, case):
        kernel, points, matrix = case
        for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
            assert copy is not kernel
            np.testing.assert_array_equal(copy.theta, kernel.theta)
            np.testing.assert_array_equal(copy.bounds, kernel.bounds)
            np.testing.assert_array_equal(copy(points), matrix)

    def test_on_data(self, case, weights):
        kernel, points, matrix = case
        both = KernelOnData(kernel, points)
        np.testing.assert_allclose(both.matrix(), matrix, rtol=self.accuracy)
        index = np.array([4, 1, 3])
        np.testing.assert_allclose(
            both.subset(index).matrix(), matrix[np.ix_(index, index)], rtol=10 * self.accuracy, atol=1e-10
        )
        np.testing.assert_allclose(both.scaled(2.0).matrix(), 2.0 * matrix, rtol=self.accuracy)
        np.testing.assert_array_equal(both.contract(weights), tunable(kernel).contracted_gradient(points, weights))


class DenseTwin(KernelContract):
    """Subclasses also return what the kernel should be, written plainly."""

    def dense(self, kernel, points):
        raise NotImplementedError

    def test_equals_the_dense_form(self, case):
        kernel, points, matrix = case
        np.testing.assert_allclose(matrix, self.dense(kernel, points), rtol=10 * self.accuracy, atol=1e-10)
