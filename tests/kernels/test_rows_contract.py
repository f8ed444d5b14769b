"""One suite for every source of rows: a new one supplies itself and the same rows as plain data, and inherits all tests."""

import numpy as np
import pytest

from mislabel.errors import InvalidParameterError
from mislabel.estimators.copies import Copies
from mislabel.kernels import CallableKernel, PrecomputedKernel, TableKernel
from mislabel.kernels import on_data as on_data_module
from mislabel.kernels.contract import RemoteRows
from mislabel.kernels.inducing import pivoted_factor
from mislabel.kernels.on_data import KernelOnData, each_block, kept, n_features, take, take_points
from mislabel.linalg.mapped import mapping_of, new_mapped
from tests import naive

SIZE = 60
ROWS = np.random.default_rng(7).uniform(size=(SIZE, 3))


class RowsContract:
    """Subclasses return points, and say which kernel compares them."""

    kernel = TableKernel(2.0, 0.5)

    @pytest.fixture
    def points(self):
        raise NotImplementedError

    def plain(self, index):
        """The points at some positions, as data of this process."""
        return ROWS[index]

    def dense(self):
        """The kernel matrix of all points."""
        return self.kernel(ROWS)

    def equal(self, found, expected):
        np.testing.assert_array_equal(found, expected)

    def test_length(self, points):
        assert len(points) == SIZE

    @pytest.mark.parametrize("index", [[3], [59, 0, 17, 17], [], range(10, 40), range(SIZE)], ids=str)
    def test_some_points_in_any_order(self, points, index):
        index = np.array(index, dtype=np.intp)
        taken = take(points, index, self.kernel)
        assert not isinstance(taken, RemoteRows)
        self.equal(taken, self.plain(index))
        assert len(points) == SIZE

    def test_what_was_taken_is_a_copy(self, points):
        index = np.arange(5, 9)
        taken = take(points, index, self.kernel)
        taken[0] = taken[3]
        self.equal(take(points, index, self.kernel), self.plain(index))

    def test_points_kept_for_a_fit(self, points):
        first, second = np.arange(0, SIZE, 3), np.array([1, 4, 5, 19])
        some = kept(points, first, self.kernel)
        assert len(some) == len(first)
        fewer = kept(some, second, self.kernel)
        assert len(fewer) == len(second)
        self.equal(take(fewer, np.arange(4), self.kernel), self.plain(first[second]))
        assert isinstance(fewer, RemoteRows) == isinstance(points, RemoteRows)

    def test_their_kernel(self, points):
        index = np.array([7, 2, 50, 31])
        found = KernelOnData(self.kernel, points).subset(index).matrix()
        np.testing.assert_allclose(found, self.dense()[np.ix_(index, index)], rtol=1e-10)

    def test_low_rank_factor(self, points):
        found = pivoted_factor(self.kernel, points, 20, np.random.RandomState(0))
        dense, pivots = self.dense(), found.pivots
        assert len(set(pivots.tolist())) == 20
        expected = dense[:, pivots] @ np.linalg.solve(dense[np.ix_(pivots, pivots)], dense[pivots])
        factor = found.factor if isinstance(found.factor, np.ndarray) else found.factor.take(np.arange(SIZE))
        np.testing.assert_allclose(factor @ factor.T, expected, atol=1e-7)
        np.testing.assert_allclose(found.rest, np.diag(dense) - np.diag(expected), atol=1e-7)
        self.equal(found.pivot_points, self.plain(pivots))


class FeaturesContract(RowsContract):
    """Points that are rows of numbers."""

    def test_features(self, points):
        assert n_features(points) == 3

    def test_work_by_block(self, points):
        np.testing.assert_array_equal(np.concatenate(each_block(points, _sums)), _sums(ROWS))

    def test_copies(self, points):
        labels = np.arange(float(SIZE))
        assert not Copies.among(points, (labels,), np.arange(SIZE)).positions.size


def _sums(rows):
    return rows.sum(axis=1)


class TestArray(FeaturesContract):
    @pytest.fixture
    def points(self):
        return ROWS.copy()


class TestMapped(FeaturesContract):
    @pytest.fixture
    def points(self):
        points = new_mapped(ROWS.shape, float)
        points[:] = ROWS
        return points

    def test_many_rows_go_to_another_file(self, points, monkeypatch):
        index = np.arange(SIZE)[::-1]
        assert mapping_of(take_points(points, index)) is None
        monkeypatch.setattr(on_data_module, "MAPPED_FROM", 16)
        taken = take_points(points, index)
        assert mapping_of(taken) is not None
        assert mapping_of(taken) is not mapping_of(points)
        self.equal(taken, ROWS[::-1])


def closeness(left, right):
    return float(np.exp(-abs(len(left) - len(right)) / 10.0))


class TestList(RowsContract):
    kernel = CallableKernel(closeness)

    @pytest.fixture
    def points(self):
        return self.plain(range(SIZE))

    def plain(self, index):
        return ["x" * (i + 1) for i in index]

    def dense(self):
        return np.exp(-np.abs(np.subtract.outer(np.arange(SIZE), np.arange(SIZE))) / 10.0)

    def equal(self, found, expected):
        assert found == expected

    def test_objects_have_no_features(self, points):
        assert n_features(points) == 0
        assert not Copies.among(points, (np.zeros(SIZE),), np.arange(SIZE)).positions.size


class TestTuple(TestList):
    @pytest.fixture
    def points(self):
        return tuple(self.plain(range(SIZE)))


class TestMatrix(RowsContract):
    kernel = PrecomputedKernel()
    matrix = naive.random_covariance(np.random.default_rng(3), SIZE)

    @pytest.fixture
    def points(self):
        return self.matrix.copy()

    def plain(self, index):
        return self.matrix[np.ix_(index, index)]

    def dense(self):
        return self.matrix

    def test_low_rank_factor(self, points):
        with pytest.raises(InvalidParameterError, match="matrix of 60 points has no low-rank fit"):
            pivoted_factor(self.kernel, points, 20, np.random.RandomState(0))


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'mislabel[dask]'")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


class TestWorkers(FeaturesContract):
    @pytest.fixture
    def points(self, client):
        from dask import array

        from mislabel.distributed import DistributedPoints

        return DistributedPoints.of(array.from_array(ROWS, chunks=(17, -1)), client)

    def test_they_are_not_here(self, points):
        assert isinstance(points, RemoteRows)
        assert points.shape == ROWS.shape
        assert points.local is None

    def test_the_factor_is_that_of_an_array(self, points):
        here = pivoted_factor(self.kernel, ROWS, 20, np.random.RandomState(0))
        there = pivoted_factor(self.kernel, points, 20, np.random.RandomState(0))
        np.testing.assert_array_equal(there.pivots, here.pivots)
        np.testing.assert_allclose(there.factor.take(np.arange(SIZE)), here.factor, atol=1e-10)

    def test_copies_are_found_there(self, client):
        from mislabel.distributed import DistributedPoints

        twice = DistributedPoints.of(np.vstack([ROWS, ROWS[:5]]), client)
        np.testing.assert_array_equal(twice.local[SIZE:], ROWS[:5])
        labels = np.append(np.arange(float(SIZE)), np.arange(5.0))
        found = Copies.among(twice, (labels,), np.arange(SIZE + 5))
        np.testing.assert_array_equal(np.sort(found.positions), SIZE + np.arange(5))

    def test_rows_of_any_kind_are_sent_there(self, client):
        import pandas as pd

        from mislabel.distributed import distributed_data

        labels = list(range(SIZE))
        points, found = distributed_data(ROWS.tolist(), labels, client)
        self.equal(take_points(points, np.arange(SIZE)), ROWS)
        assert found is labels
        frame = pd.DataFrame(ROWS, index=np.arange(SIZE) + 500)
        points, found = distributed_data(frame, labels, client)
        self.equal(take_points(points, np.arange(SIZE)), ROWS)
        assert found.to_dict() == dict(zip(frame.index, labels, strict=True))
        series = pd.Series(labels)
        assert distributed_data(frame, series, client)[1] is series
