import numpy as np
import pytest

from mislabel.errors import JitterWarning, KernelMatrixError
from mislabel.linalg import DenseSignal, stabilizing_jitter
from mislabel.linalg.threads import blas_threads
from tests import naive


def test_a_well_conditioned_matrix_needs_none():
    assert stabilizing_jitter(DenseSignal(np.diag([1.0, 2.0, 3.0])), np.zeros(3)) == 0.0


def test_a_singular_matrix_gets_the_first_rung(rng):
    matrix = np.ones((5, 5))
    assert stabilizing_jitter(DenseSignal(matrix), np.zeros(5)) == pytest.approx(1e-8)


def test_noise_makes_jitter_unnecessary():
    assert stabilizing_jitter(DenseSignal(np.ones((5, 5))), np.full(5, 0.1)) == 0.0


def test_a_slightly_indefinite_matrix_is_reported(rng):
    matrix = naive.random_covariance(rng, 50, length=2.0)
    matrix -= 3e-6 * np.eye(50)
    with pytest.warns(JitterWarning, match="1e-05"):
        jitter = stabilizing_jitter(DenseSignal(matrix), np.zeros(50))
    assert jitter == pytest.approx(1e-5, rel=1e-3)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(KernelMatrixError, match="not positive semi-definite"):
        stabilizing_jitter(DenseSignal(np.array([[1.0, 2.0], [2.0, 1.0]])), np.zeros(2))


def test_a_zero_matrix_is_refused():
    with pytest.raises(KernelMatrixError, match="positive variances"):
        stabilizing_jitter(DenseSignal(np.zeros((3, 3))), np.zeros(3))


def test_thread_limits_are_restored():
    from threadpoolctl import threadpool_info

    before = [library["num_threads"] for library in threadpool_info()]
    for size in (10, 5000):
        with blas_threads(size):
            pass
    assert [library["num_threads"] for library in threadpool_info()] == before
