import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from mislabel.errors import InvalidFeaturesError, InvalidParameterError
from mislabel.kernels import TableKernel, contracted_gradient
from tests import naive

SCIKIT_LEARN = {"matern52": lambda scales: Matern(scales, nu=2.5), "gaussian": lambda scales: RBF(scales)}


@pytest.fixture
def points(rng):
    return rng.normal(size=(60, 3)) * [1.0, 5.0, 0.2]


@pytest.mark.parametrize("shape", list(SCIKIT_LEARN))
@pytest.mark.parametrize("scales", [1.3, np.array([0.7, 4.0, 0.3])])
class TestAgainstScikitLearn:
    def make(self, shape, scales):
        return TableKernel(2.5, scales, shape), ConstantKernel(2.5) * SCIKIT_LEARN[shape](scales)

    def test_square_matrix(self, points, shape, scales):
        ours, theirs = self.make(shape, scales)
        matrix = ours(points)
        np.testing.assert_allclose(matrix, theirs(points), rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_array_equal(ours.diag(points), np.diag(matrix))

    def test_cross_matrix(self, points, shape, scales, rng):
        ours, theirs = self.make(shape, scales)
        others = rng.normal(size=(17, 3))
        np.testing.assert_allclose(ours(others, points), theirs(others, points), rtol=1e-10, atol=1e-12)

    def test_gradient(self, points, shape, scales):
        ours, theirs = self.make(shape, scales)
        np.testing.assert_allclose(
            ours(points, eval_gradient=True)[1], theirs(points, eval_gradient=True)[1], atol=1e-9
        )

    def test_contracted_gradient(self, points, shape, scales, rng):
        ours, theirs = self.make(shape, scales)
        weights = rng.standard_normal((60, 60))
        weights += weights.T
        expected = np.einsum("ij,ijk->k", weights, theirs(points, eval_gradient=True)[1])
        np.testing.assert_allclose(ours.contracted_gradient(points, weights), expected, rtol=1e-9, atol=1e-8)

    def test_contraction_equals_finite_differences(self, points, shape, scales, rng):
        ours, _ = self.make(shape, scales)
        weights = rng.standard_normal((60, 60))
        weights += weights.T

        def value(theta):
            return np.sum(weights * ours.clone_with_theta(theta)(points))

        numeric = naive.finite_difference(value, ours.theta)
        np.testing.assert_allclose(ours.contracted_gradient(points, weights), numeric, rtol=1e-5, atol=1e-5)


def test_blocks_do_not_show(rng, monkeypatch):
    points = rng.normal(size=(130, 2))
    weights = rng.standard_normal((130, 130))
    weights += weights.T
    kernel = TableKernel(1.0, np.array([1.0, 2.0]))
    whole, slope = kernel(points), kernel.contracted_gradient(points, weights)
    monkeypatch.setattr("mislabel.kernels.table._BLOCK_ELEMENTS", 130 * 20)
    np.testing.assert_allclose(kernel(points), whole, rtol=1e-13)
    np.testing.assert_allclose(kernel.contracted_gradient(points, weights), slope, rtol=1e-10)


def test_start_follows_the_features():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 3)) * [1.0, 1000.0, 1e-6]
    kernel = TableKernel.for_features(points)
    relative = kernel.length_scale / points.std(axis=0)
    np.testing.assert_allclose(relative, relative[0])
    assert len(kernel.theta) == 4


def test_constant_features_are_harmless():
    points = np.column_stack([np.arange(10.0), np.ones(10)])
    assert np.isfinite(TableKernel.for_features(points)(points)).all()


def test_many_features_share_one_length_scale_at_first(rng):
    assert len(TableKernel.for_features(rng.normal(size=(20, 30))).theta) == 31
    points = rng.normal(size=(50, 40)) * 10.0 ** rng.uniform(-3, 3, size=40)
    kernel = TableKernel.for_features(points)
    assert len(kernel.theta) == 2
    single, gaussian = kernel.other_shapes()
    assert len(single.theta) == 41
    assert gaussian.shape == "gaussian"
    np.testing.assert_allclose(single(points), kernel(points), rtol=1e-10)
    np.testing.assert_allclose(
        single.bounds[1:] - np.log(points.std(axis=0))[:, None], np.tile(kernel.bounds[1], (40, 1))
    )
    assert len(TableKernel.for_features(rng.normal(size=(20, 301))).other_shapes()) == 1


def test_units_of_many_features_do_not_matter(rng):
    points = rng.normal(size=(60, 40))
    units = 10.0 ** rng.uniform(-4, 4, size=40)
    kernel, other = TableKernel.for_features(points), TableKernel.for_features(points * units)
    np.testing.assert_allclose(other(points * units), kernel(points), rtol=1e-9)
    np.testing.assert_allclose(other(points[:5] * units, points * units), kernel(points[:5], points), rtol=1e-9)


def test_units_equal_dividing_the_features(rng):
    points, units = rng.normal(size=(25, 3)), np.array([0.5, 2.0, 7.0])
    kernel = TableKernel(1.7, 1.2, units=units)
    plain = TableKernel(1.7, 1.2)
    matrix, gradient = kernel(points, eval_gradient=True)
    expected, slopes = plain(points / units, eval_gradient=True)
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-12)
    weights = rng.normal(size=(25, 25))
    weights += weights.T
    np.testing.assert_allclose(
        kernel.contracted_gradient(points, weights), plain.contracted_gradient(points / units, weights), rtol=1e-9
    )
    gaussian = kernel.other_shapes()[-1]
    np.testing.assert_array_equal(gaussian.units, units)
    np.testing.assert_array_equal(clone(kernel).units, units)
    np.testing.assert_array_equal(kernel.clone_with_theta(kernel.theta + 1.0).units, units)


def test_other_shapes_keep_bounds():
    kernel = TableKernel.for_features(np.random.default_rng(0).normal(size=(50, 2)))
    (other,) = kernel.other_shapes()
    assert other.shape == "gaussian"
    assert (other.bounds == kernel.bounds).all()
    assert TableKernel().other_shapes()[0].shape == "gaussian"


def test_protocol():
    kernel = TableKernel(2.0, np.array([1.0, 3.0]), amplitude_bounds="fixed")
    assert len(kernel.theta) == 2
    copy = clone(kernel)
    assert copy.amplitude == 2.0
    moved = kernel.clone_with_theta(np.log([5.0, 6.0]))
    np.testing.assert_allclose(moved.length_scale, [5.0, 6.0])
    weights = np.eye(4)
    assert kernel.contracted_gradient(np.zeros((4, 2)), weights).shape == (2,)
    assert contracted_gradient(kernel, np.zeros((4, 2)), weights).shape == (2,)


def test_errors():
    with pytest.raises(InvalidFeaturesError, match="2 length scales but the data has 3 features"):
        TableKernel(1.0, np.ones(2))(np.zeros((4, 3)))
    with pytest.raises(InvalidFeaturesError, match="2 units but the data has 3 features"):
        TableKernel(1.0, 1.0, units=np.ones(2))(np.zeros((4, 3)))
    with pytest.raises(InvalidParameterError, match="unknown kernel shape"):
        TableKernel(shape="cubic")(np.zeros((4, 3)))


class TestColumns:
    def test_only_those_that_tell_rows_apart_count(self, points):
        wide = np.column_stack([np.full(60, 0.1), points, points[:, 1], 1e6 + np.zeros(60)])
        kernel = TableKernel.for_features(wide)
        np.testing.assert_array_equal(kernel.columns, [1, 2, 3])
        plain = TableKernel.for_features(points)
        assert plain.columns is None
        for one, two in zip([kernel, *kernel.other_shapes()], [plain, *plain.other_shapes()], strict=True):
            np.testing.assert_array_equal(one(wide), two(points))
            np.testing.assert_array_equal(one(wide, wide[:7]), two(points, points[:7]))
            np.testing.assert_array_equal(one.theta, two.theta)
            np.testing.assert_array_equal(one.bounds, two.bounds)
            weights = np.cov(np.random.default_rng(0).normal(size=(60, 90)))
            np.testing.assert_array_equal(
                one.contracted_gradient(wide, weights), two.contracted_gradient(points, weights)
            )
        # Logarithms and back: the last digit may differ.
        np.testing.assert_allclose(clone(kernel).clone_with_theta(kernel.theta)(wide), kernel(wide), rtol=1e-13)

    def test_many_columns_share_a_length_scale(self, rng):
        points = rng.normal(size=(50, 40))
        wide = np.column_stack([points, points[:, :5], np.ones(50)])
        kernel, plain = TableKernel.for_features(wide), TableKernel.for_features(points)
        for one, two in zip([kernel, *kernel.other_shapes()], [plain, *plain.other_shapes()], strict=True):
            np.testing.assert_array_equal(one(wide), two(points))

    def test_constant_features_alone(self):
        kernel = TableKernel.for_features(np.full((5, 2), 0.1))
        np.testing.assert_array_equal(kernel(np.full((5, 2), 0.1)), np.ones((5, 5)))

    def test_too_few_features(self, points):
        kernel = TableKernel.for_features(np.column_stack([np.ones(60), points]))
        with pytest.raises(InvalidFeaturesError, match="needs feature 3, but the data has 2"):
            kernel(points[:, :2])
