import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.metrics.pairwise import rbf_kernel

from mislabel.errors import InvalidParameterError, KernelMatrixError
from mislabel.kernels import CallableKernel, PrecomputedKernel, TableKernel, as_kernel, contracted_gradient
from mislabel.kernels.on_data import KernelOnData

KERNELS = [
    RBF([1.0, 2.0]),
    ConstantKernel(2.0) * Matern(1.5, nu=1.5) + WhiteKernel(0.3),
    RationalQuadratic() * ConstantKernel(3.0, "fixed"),
    ConstantKernel(2.0) * (RBF(1.0) + DotProduct()) + RBF(0.3),
    Exponentiation(RBF(0.7), 2),
    TableKernel(2.0, 1.3) + WhiteKernel(0.1),
    ConstantKernel(2.0, "fixed"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_contraction_equals_the_full_gradient(kernel, rng):
    points = rng.normal(size=(25, 2))
    weights = rng.standard_normal((25, 25))
    weights += weights.T
    expected = np.einsum("ij,ijk->k", weights, kernel(points, eval_gradient=True)[1])
    np.testing.assert_allclose(contracted_gradient(kernel, points, weights), expected, rtol=1e-8, atol=1e-9)


def test_precomputed_with_a_learnable_amplitude(rng):
    matrix = np.eye(5) * 4.0
    kernel = PrecomputedKernel().starting_from(matrix, label_variance=2.0)
    assert kernel.amplitude == pytest.approx(0.5)
    np.testing.assert_allclose(kernel(matrix), 2.0 * np.eye(5))
    weights = np.eye(5)
    gradient = kernel(matrix, eval_gradient=True)[1]
    np.testing.assert_allclose(contracted_gradient(kernel, matrix, weights), np.einsum("ij,ijk->k", weights, gradient))
    assert PrecomputedKernel().contracted_gradient(matrix, weights).size == 0


def test_prior_variance_of_a_cross_matrix_is_unknown():
    with pytest.raises(KernelMatrixError, match="prior_variance"):
        PrecomputedKernel().diag(np.ones((2, 3)))


def test_a_callable_on_arbitrary_objects():
    words = ["acid", "acids", "base", "bases", "salt"]

    def similarity(left, right):
        return len(set(left) & set(right)) / len(set(left) | set(right))

    kernel = as_kernel(similarity, words)
    assert isinstance(kernel, CallableKernel)
    matrix = kernel(words)
    assert matrix[0, 1] == similarity("acid", "acids")
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(kernel.diag(words), np.ones(5))
    np.testing.assert_array_equal(kernel(words[:2], words), matrix[:2])


def test_a_callable_on_whole_arrays(rng):
    points = rng.normal(size=(6, 2))
    np.testing.assert_allclose(as_kernel(rbf_kernel, points)(points), rbf_kernel(points))


def test_a_callable_with_a_wrong_shape():
    with pytest.raises(KernelMatrixError, match="returned shape"):
        CallableKernel(lambda left, right: np.ones((2, 2)))([1, 2, 3])


def test_as_kernel_never_changes_the_users_object(rng):
    kernel = RBF(2.0)
    assert as_kernel(kernel, None) is not kernel
    assert isinstance(as_kernel(None, rng.normal(size=(5, 2))), TableKernel)
    with pytest.raises(InvalidParameterError, match="precomputed"):
        as_kernel("precomputd", None)
    with pytest.raises(InvalidParameterError, match="scikit-learn kernel"):
        as_kernel(3.0, None)


def test_a_kernel_that_returns_nan_is_refused():
    bad = KernelOnData(CallableKernel(lambda left, right: np.nan), [1, 2, 3])
    with pytest.raises(KernelMatrixError, match="NaN"):
        bad.matrix()


def test_subsets_of_every_kind_of_points():
    index = np.array([0, 2])
    matrix = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(KernelOnData(PrecomputedKernel(), matrix).subset(index).points, [[0, 2], [6, 8]])
    np.testing.assert_array_equal(KernelOnData(RBF(), matrix).subset(index).points, matrix[index])
    assert KernelOnData(CallableKernel(len), ["a", "b", "c"]).subset(index).points == ["a", "c"]
