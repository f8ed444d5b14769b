import numpy as np
import pytest

from mislabel.kernels import TableKernel
from mislabel.kernels.inducing import Blocks, pivoted_factor, rest_by_block, similar_blocks


@pytest.fixture
def points(rng):
    return rng.uniform(size=(300, 3))


@pytest.fixture
def kernel():
    return TableKernel(2.0, 0.5)


def test_the_factor_is_the_nystroem_approximation_of_its_pivots(points, kernel):
    found = pivoted_factor(kernel, points, 40, np.random.RandomState(0))
    dense = kernel(points)
    pivots = found.pivots
    assert len(set(pivots.tolist())) == 40
    expected = dense[:, pivots] @ np.linalg.solve(dense[np.ix_(pivots, pivots)], dense[pivots])
    np.testing.assert_allclose(found.factor @ found.factor.T, expected, atol=1e-7)
    np.testing.assert_allclose(found.root @ found.root.T, dense[np.ix_(pivots, pivots)], atol=1e-9)
    assert found.captured == pytest.approx(np.trace(expected) / np.trace(dense), abs=1e-9)
    new = np.random.default_rng(1).uniform(size=(5, 3))
    rows = found.of(kernel, new)
    np.testing.assert_allclose(
        rows @ found.factor.T,
        kernel(new, points[pivots]) @ np.linalg.solve(dense[np.ix_(pivots, pivots)], dense[pivots]),
        atol=1e-7,
    )


def test_more_columns_capture_more(points, kernel):
    captured = [pivoted_factor(kernel, points, rank, np.random.RandomState(0)).captured for rank in (10, 50, 150, 300)]
    assert captured == sorted(captured)
    assert captured[-1] == pytest.approx(1.0, abs=1e-8)


def test_duplicates_and_low_rank_kernels_end_early(kernel):
    points = np.repeat(np.random.default_rng(0).uniform(size=(20, 2)), 10, axis=0)
    found = pivoted_factor(kernel, points, 100, np.random.RandomState(0))
    assert found.factor.shape == (200, 20)
    assert found.captured == pytest.approx(1.0, abs=1e-8)


def test_it_stops_where_little_is_left(points, kernel):
    found = pivoted_factor(kernel, points, 300, np.random.RandomState(0), enough=0.01)
    assert 10 < found.factor.shape[1] < 300
    assert found.rest.mean() <= 0.01


def test_lists_of_objects_work(points, kernel):
    class OnLists:
        def diag(self, X):
            return kernel.diag(np.array(X))

        def __call__(self, X, Y=None):
            return kernel(np.array(X), None if Y is None else np.array(Y))

    listed = pivoted_factor(OnLists(), list(points), 30, np.random.RandomState(0))
    arrays = pivoted_factor(kernel, points, 30, np.random.RandomState(0))
    np.testing.assert_allclose(listed.factor, arrays.factor)


@pytest.mark.parametrize("block_size", [20, 64, 300])
def test_blocks_are_a_partition_that_new_points_find(points, kernel, block_size):
    factor = pivoted_factor(kernel, points, 60, np.random.RandomState(0)).factor
    blocks = similar_blocks(factor, block_size, np.random.RandomState(0))
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks.members)), np.arange(300))
    assert max(block.size for block in blocks.members) <= block_size
    routed = blocks.of(factor)
    for number, block in enumerate(blocks.members):
        np.testing.assert_array_equal(routed[block], number)


def test_blocks_of_equal_points_are_still_of_the_right_size():
    blocks = similar_blocks(np.ones((50, 3)), 16, np.random.RandomState(0))
    assert isinstance(blocks, Blocks)
    assert sorted(block.size for block in blocks.members) == [12, 12, 13, 13]


def test_what_is_left_is_positive_semi_definite(points, kernel):
    found = pivoted_factor(kernel, points, 60, np.random.RandomState(0))
    factor = found.factor
    np.testing.assert_allclose(found.rest, 2.0 - np.sum(factor**2, axis=1), atol=1e-9)
    blocks = similar_blocks(factor, 50, np.random.RandomState(0))
    order = np.concatenate(blocks.members)
    for block, members in zip(rest_by_block(kernel, points[order], factor[order], blocks), blocks.members, strict=True):
        dense = kernel(points[members]) - factor[members] @ factor[members].T
        np.testing.assert_allclose(block, dense, atol=1e-10)
        assert np.linalg.eigvalsh(block).min() > -1e-9
