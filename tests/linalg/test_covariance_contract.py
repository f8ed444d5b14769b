"""One suite for every covariance: a new one supplies itself and its dense form, and inherits all tests."""

import numpy as np
import pytest

from mislabel.errors import KernelMatrixError
from mislabel.linalg import DenseCovariance, DenseSignal
from mislabel.linalg.dense import largest_asymmetry
from mislabel.linalg.low_rank import LowRankSignal
from mislabel.linalg.low_rank_blocks import BlockLowRankSignal
from mislabel.linalg.row_blocks import LocalRows
from mislabel.noise.objective import NoiseProblem
from tests import naive


class CovarianceContract:
    """Subclasses return (signal, dense K, noise)."""

    size = 40

    def make(self, rng):
        raise NotImplementedError

    @pytest.fixture
    def parts(self, rng):
        signal, dense, noise = self.make(rng)
        return signal, dense, noise, dense + np.diag(noise)

    # Every quantity must be right whatever was asked for before it: some implementations work in place.
    @pytest.fixture(params=["fresh", "after inverse_diagonal", "after inverse"])
    def covariance(self, parts, request):
        covariance = parts[0].with_noise(parts[2])
        if request.param == "after inverse_diagonal":
            covariance.inverse_diagonal()
        elif request.param == "after inverse":
            covariance.inverse()
        return covariance

    def test_size_and_diagonal(self, parts):
        signal, dense, _, _ = parts
        assert signal.size == len(dense)
        np.testing.assert_allclose(signal.diagonal(), np.diag(dense))

    def test_scaled(self, parts, rng):
        signal, dense, noise, _ = parts
        twice = signal.scaled(2.0).scaled(1.5)
        total = 3.0 * dense + np.diag(noise)
        rhs = rng.standard_normal(len(dense))
        np.testing.assert_allclose(twice.diagonal(), 3.0 * np.diag(dense))
        np.testing.assert_allclose(twice.submatrix(np.array([0, 3])), 3.0 * dense[np.ix_([0, 3], [0, 3])])
        solution = twice.with_noise(noise).solve(rhs)
        np.testing.assert_allclose(solution, np.linalg.solve(total, rhs), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(twice.residual(noise, rhs, rhs), rhs - total @ rhs, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(signal.diagonal(), np.diag(dense))

    def test_submatrix(self, parts):
        signal, dense, _, _ = parts
        index = np.array([1, 5, 7])
        np.testing.assert_allclose(signal.submatrix(index), dense[np.ix_(index, index)])

    def test_solve_vector(self, parts, covariance, rng):
        rhs = rng.standard_normal(len(parts[3]))
        np.testing.assert_allclose(covariance.solve(rhs), np.linalg.solve(parts[3], rhs), rtol=1e-7, atol=1e-9)

    def test_solve_matrix(self, parts, covariance, rng):
        rhs = rng.standard_normal((len(parts[3]), 3))
        np.testing.assert_allclose(covariance.solve(rhs), np.linalg.solve(parts[3], rhs), rtol=1e-7, atol=1e-9)

    def test_logdet(self, parts, covariance):
        assert covariance.logdet() == pytest.approx(np.linalg.slogdet(parts[3])[1], rel=1e-10)

    def test_inverse_diagonal(self, parts, covariance):
        np.testing.assert_allclose(covariance.inverse_diagonal(), np.diag(np.linalg.inv(parts[3])), rtol=1e-9)

    def test_inverse(self, parts, covariance):
        inverse = covariance.inverse()
        np.testing.assert_allclose(inverse, np.linalg.inv(parts[3]), rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(inverse, inverse.T)

    def test_inverse_block(self, parts, covariance, rng):
        dense = np.linalg.inv(parts[3])
        index = rng.permutation(covariance.size)[: covariance.size // 2]
        np.testing.assert_allclose(covariance.inverse_block(index), dense[np.ix_(index, index)], rtol=1e-8, atol=1e-9)

    def test_leave_one_out_equals_refits(self, parts, rng):
        signal, dense, noise, _ = parts
        labels = rng.standard_normal(len(dense))
        found = signal.with_noise(noise).leave_one_out(labels)
        for i in range(0, len(labels), 7):
            mean, variance = naive.leave_one_out(dense, labels, noise, i)
            assert labels[i] - found.error[i] == pytest.approx(mean, rel=1e-8, abs=1e-8)
            assert found.variance[i] == pytest.approx(variance + noise[i], rel=1e-8)

    def test_what_was_expected_and_what_was_not_are_both_solved_for(self, parts, rng):
        signal, _, noise, total = parts
        expected, other = rng.standard_normal((2, len(total)))
        for order in ("quadratic first", "solution first", "diagonal first"):
            covariance = signal.with_noise(noise, expected)
            if order == "diagonal first":
                covariance.inverse_diagonal()
            if order != "quadratic first":
                np.testing.assert_allclose(
                    covariance.solve(expected), np.linalg.solve(total, expected), rtol=1e-7, atol=1e-9
                )
            for rhs in (expected, other):
                solution = np.linalg.solve(total, rhs)
                assert covariance.quadratic(rhs) == pytest.approx(rhs @ solution, rel=1e-8)
                assert covariance.quadratic(rhs, solution) == pytest.approx(rhs @ solution, rel=1e-8)
                np.testing.assert_allclose(covariance.solve(rhs), solution, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(covariance.inverse_diagonal(), np.diag(np.linalg.inv(total)), rtol=1e-9)

    def test_the_signal_is_not_changed(self, parts):
        signal, _, noise, _ = parts
        before = signal.with_noise(noise).logdet()
        signal.with_noise(2 * noise).inverse()
        assert signal.with_noise(noise).logdet() == before


class TestDense(CovarianceContract):
    def make(self, rng):
        dense = naive.random_covariance(rng, self.size)
        return DenseSignal(np.asfortranarray(dense)), dense, rng.uniform(0.05, 0.5, self.size)

    def test_sizes_beyond_one_block(self, rng):
        dense = naive.random_covariance(rng, 300)
        noise = rng.uniform(0.1, 1, 300)
        found = DenseSignal(dense).with_noise(noise).inverse_diagonal()
        np.testing.assert_allclose(found, np.diag(np.linalg.inv(dense + np.diag(noise))), rtol=1e-9)

    def test_costs_are_counted(self, rng):
        signal, _, noise = self.make(rng)
        signal.with_noise(noise)
        assert signal.meter.units == pytest.approx(1 / 3)
        signal.with_noise(noise).inverse_diagonal()
        assert signal.meter.units == pytest.approx(1)
        signal.with_noise(noise).inverse()
        assert signal.meter.units == pytest.approx(2)
        assert signal.meter.n_factorizations == 3

    def test_not_positive_definite(self):
        with pytest.raises(KernelMatrixError, match="leading minor 2 of 2"):
            DenseCovariance(np.asfortranarray([[1.0, 2.0], [2.0, 1.0]]))


def test_a_state_takes_two_passes_over_the_factor(rng):
    class Counted(LocalRows):
        passes = 0

        def each(self, *arguments):
            type(self).passes += 1
            return super().each(*arguments)

        def total(self, *arguments):
            type(self).passes += 1
            return super().total(*arguments)

    labels = rng.standard_normal(30)
    signal = LowRankSignal(Counted(rng.standard_normal((30, 4))), rng.random(30))
    problem = NoiseProblem(signal, labels, np.full(30, 0.1))
    problem.objective(np.zeros(30))
    assert Counted.passes == 1
    problem.evaluate(np.zeros(30))
    assert Counted.passes == 3


class TestLowRankDiagonalRest(CovarianceContract):
    def make(self, rng):
        factor = rng.standard_normal((self.size, 6))
        rest = rng.uniform(0.1, 1.0, self.size)
        return LowRankSignal(factor, rest), factor @ factor.T + np.diag(rest), rng.uniform(0.05, 0.5, self.size)

    def test_more_rows_than_one_part(self, rng, monkeypatch):
        monkeypatch.setattr("mislabel.linalg.row_blocks.ROWS", 7)
        signal, dense, noise = self.make(rng)
        whole = np.linalg.inv(dense + np.diag(noise))
        np.testing.assert_allclose(signal.with_noise(noise).inverse_diagonal(), np.diag(whole), rtol=1e-9)
        labels = rng.standard_normal(self.size)
        np.testing.assert_allclose(signal.with_noise(noise).solve(labels), whole @ labels, rtol=1e-8)

    def test_single_precision_storage(self, rng):
        signal, dense, noise = self.make(rng)
        single = LowRankSignal(signal.rows.factor.astype(np.float32), signal.rest)
        labels = rng.standard_normal(self.size)
        exact = np.linalg.solve(dense + np.diag(noise), labels)
        np.testing.assert_allclose(single.with_noise(noise).solve(labels), exact, rtol=1e-4, atol=1e-5)


class TestLowRankBlockRest(CovarianceContract):
    def make(self, rng):
        factor = rng.standard_normal((self.size, 6))
        rest = [naive.random_covariance(rng, size) for size in (15, 1, 24)]
        dense = factor @ factor.T
        start = 0
        for block in rest:
            dense[start : start + len(block), start : start + len(block)] += block
            start += len(block)
        return BlockLowRankSignal(factor, rest), dense, rng.uniform(0.05, 0.5, self.size)


@pytest.mark.parametrize("maker", [TestDense, TestLowRankDiagonalRest, TestLowRankBlockRest])
def test_residual(maker, rng):
    signal, dense, noise = maker().make(rng)
    solution, rhs = rng.standard_normal((2, signal.size))
    expected = rhs - (dense + np.diag(noise)) @ solution
    np.testing.assert_allclose(signal.residual(noise, solution, rhs), expected, rtol=1e-9, atol=1e-9)


def test_scaling_a_low_rank_covariance(rng):
    for maker in (TestLowRankDiagonalRest, TestLowRankBlockRest):
        signal, dense, _ = maker().make(rng)
        np.testing.assert_allclose(signal.scaled(2.5).submatrix(np.arange(signal.size)), 2.5 * dense)


def test_low_rank_needs_a_rest_of_the_right_size(rng):
    with pytest.raises(KernelMatrixError, match="the rest covers 3 points, the factor 4"):
        BlockLowRankSignal(rng.standard_normal((4, 2)), [np.eye(3)])
    with pytest.raises(KernelMatrixError, match="the rest covers 3 points, the factor 4"):
        LowRankSignal(rng.standard_normal((4, 2)), np.ones(3))
    with pytest.raises(KernelMatrixError, match="not positive definite"):
        LowRankSignal(rng.standard_normal((4, 2)), np.zeros(4)).with_noise(np.zeros(4))


def test_what_labels_explain_at_new_points(rng):
    signal, dense, noise = TestLowRankDiagonalRest().make(rng)
    signal = signal.scaled(1.7)
    covariance = signal.with_noise(noise)
    rows = rng.standard_normal((3, signal.rank))
    cross = 1.7 * rows @ signal.rows.factor.T
    expected = cross @ np.linalg.inv(1.7 * dense + np.diag(noise)) @ cross.T
    np.testing.assert_allclose(covariance.explained(rows), expected, rtol=1e-9)
    np.testing.assert_allclose(covariance.explained_variance(rows), np.diag(expected), rtol=1e-9)
    np.testing.assert_allclose(covariance.without_rows().explained(rows), expected, rtol=1e-9)
    labels = rng.standard_normal(signal.size)
    np.testing.assert_allclose(rows @ covariance.coefficients(labels), cross @ covariance.solve(labels), rtol=1e-8)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_largest_asymmetry_is_found(order):
    matrix = np.random.default_rng(0).random((70, 70))
    matrix = np.asarray(matrix + matrix.T, order=order)
    assert largest_asymmetry(matrix) == (0, 0)
    matrix[3, 65] += 1e-9
    matrix[66, 2] -= 1e-6
    assert largest_asymmetry(matrix) == (2, 66)
