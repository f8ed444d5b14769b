"""The same work on a Dask cluster: equal results, workers that die, what cannot be done."""

import os
import pickle
import signal

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from mislabel import LabelNoiseRegressor
from mislabel.cli import main
from mislabel.errors import InvalidFeaturesError, InvalidParameterError, MemoryBudgetError
from mislabel.estimators import rank_plan
from mislabel.kernels import Graph, MolecularKernel, gram_matrix

distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'mislabel[dask]'")
import dask.array as da
import dask.dataframe as dd
import pandas as pd

from mislabel.distributed import DistributedPoints, _even_places, distributed_gram_matrix


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, memory_limit="1GB", dashboard_address=None
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(rank_plan, "TUNING_ROWS", 400)
    monkeypatch.setattr(rank_plan, "BLOCK_SIZES", ())


@pytest.fixture
def data(friedman):
    return friedman(3000, 0.1, 1.0, seed=4)


@pytest.fixture
def local(data, small_steps):
    return LabelNoiseRegressor(rank=60).fit(data[0], data[1])


def assert_equal(one, two):
    assert one.base_noise_variance_ == pytest.approx(two.base_noise_variance_, rel=1e-8)
    for name in ("noise_variance_", "loo_mean_", "loo_variance_", "z_"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-8, atol=1e-8, err_msg=name)


def test_copied_rows_are_left_out_there_too(client, data, small_steps):
    features, labels, _, _ = data
    some = np.arange(0, 3000, 10)
    features, labels = np.vstack([features, features[some]]), np.append(labels, labels[some])
    model = LabelNoiseRegressor(rank=60).fit(da.from_array(features, chunks=(700, -1)), labels, client=client)
    assert_equal(model, LabelNoiseRegressor(rank=60).fit(features, labels))
    np.testing.assert_array_equal(model.z_[3000:], model.z_[some])


def test_absurd_labels_are_set_aside_there_too(client, data, small_steps):
    features, labels, _, _ = data
    labels = labels.copy()
    labels[[7, 1500]] = 9.96921e36, -1e20
    model = LabelNoiseRegressor(rank=60).fit(da.from_array(features, chunks=(700, -1)), labels, client=client)
    np.testing.assert_array_equal(model.set_aside_, [7, 1500])
    assert_equal(model, LabelNoiseRegressor(rank=60).fit(features, labels))
    assert model.audit()["row"].tolist()[:2] == [7, 1500]


def test_dask_arrays_give_the_result_of_one_machine(client, data, local):
    features, labels, _, _ = data
    model = LabelNoiseRegressor(rank=60).fit(
        da.from_array(features, chunks=(700, 3)), da.from_array(labels, chunks=900), client=client
    )
    assert_equal(model, local)
    new = np.random.default_rng(0).uniform(size=(50, features.shape[1]))
    for one, two in zip(model.predict(new, return_std=True), local.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8)
    np.testing.assert_allclose(
        model.predict(new[:4], return_cov=True)[1], local.predict(new[:4], return_cov=True)[1], atol=1e-8
    )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def test_dataframes_keep_their_row_ids(client, data, local):
    features, labels, _, _ = data
    frame = pd.DataFrame(features, columns=list("abcde"), index=np.arange(3000) + 50_000)
    lazy = dd.from_pandas(frame, npartitions=5)
    model = LabelNoiseRegressor(rank=60).fit(
        lazy, dd.from_pandas(pd.Series(labels, index=frame.index), npartitions=5), client=client
    )
    assert_equal(model, local)
    assert set(model.audit()["row"]) == set(frame.index)


def test_the_current_client_is_found(client, data, local):
    features, labels, _, _ = data
    with client.as_current():
        assert_equal(LabelNoiseRegressor(rank=60).fit(da.from_array(features, chunks=(1000, -1)), labels), local)


def test_arrays_are_sent_to_a_client(client, data, local):
    assert_equal(LabelNoiseRegressor(rank=60).fit(data[0], data[1], client=client), local)


def test_a_killed_worker_costs_only_its_blocks(client, data, local, monkeypatch):
    features, labels, _, _ = data
    from mislabel.distributed import DistributedRows

    original, calls = DistributedRows.total, []

    def total(self, *arguments):
        calls.append(1)
        if len(calls) == 5:
            pids = client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        return original(self, *arguments)

    monkeypatch.setattr(DistributedRows, "total", total)
    model = LabelNoiseRegressor(rank=60).fit(da.from_array(features, chunks=(500, -1)), labels, client=client)
    assert len(calls) > 5
    assert_equal(model, local)
    client.wait_for_workers(2, timeout=60)


def test_gram_matrices_of_graphs(client, tmp_path):
    from ase.build import molecule

    names = ["CH4", "H2O", "NH3", "C6H6", "CH3OH", "C2H6"]
    graphs = [Graph.from_ase(molecule(name)) for name in names]
    kernel = MolecularKernel(dtype="float64")
    expected = gram_matrix(kernel, graphs)
    np.testing.assert_array_equal(distributed_gram_matrix(kernel, graphs, client=client), expected)
    np.testing.assert_allclose(distributed_gram_matrix(kernel, graphs, graphs[:2], client=client), expected[:, :2])
    path = tmp_path / "some.gram"
    np.testing.assert_array_equal(distributed_gram_matrix(kernel, graphs, client=client, path=path), expected)
    np.testing.assert_array_equal(gram_matrix(kernel, graphs, path=path), expected)
    rows = list(np.random.default_rng(0).normal(size=(9, 2)))
    np.testing.assert_allclose(distributed_gram_matrix(RBF(), rows, client=client), RBF()(rows))


def test_what_cannot_be_done_is_said(client, data):
    features, labels, _, _ = data
    lazy = da.from_array(features, chunks=(1000, -1))
    with pytest.raises(InvalidParameterError, match="there is no client"):
        LabelNoiseRegressor(rank=10).fit(lazy, labels)
    with pytest.raises(InvalidParameterError, match="mean=None"):
        LabelNoiseRegressor(rank=10, mean="boosting").fit(lazy, labels, client=client)
    with pytest.raises(InvalidFeaturesError, match="NaN"):
        LabelNoiseRegressor(rank=10).fit(da.where(lazy > 0.99, np.nan, lazy), labels, client=client)
    points = DistributedPoints.of(lazy, client)
    with pytest.raises(MemoryBudgetError, match=r"on the workers, which offer 1\.4 GB; rank=\d+ would fit"):
        points.check_memory(10**6)


def test_the_command_line_on_a_scheduler(client, tmp_path, data, local, capsys):
    features, labels, _, _ = data
    path = tmp_path / "table.parquet"
    pd.DataFrame(features, columns=list("abcde")).assign(y=labels).to_parquet(path)
    where = client.scheduler_info()["address"]
    common = ["audit", str(path), "--label", "y", "--rank", "60", "--mean", "none", "--quiet"]
    assert main([*common, "--out", str(tmp_path / "there"), "--dask", where]) == 0
    assert main([*common, "--out", str(tmp_path / "here")]) == 0
    there, here = (
        pd.read_csv(tmp_path / name / "audit.csv", index_col="row").sort_index() for name in ("there", "here")
    )
    np.testing.assert_allclose(there["z"], here["z"], rtol=1e-6, atol=1e-6)
    assert (tmp_path / "there" / "report.html").exists()
    capsys.readouterr()
    assert main([*common, "--out", str(tmp_path / "no"), "--dask", "tcp://127.0.0.1:1"]) == 2
    assert "no dask scheduler answers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("held", "expected"),
    [("aabb", "aabb"), ("aaab", "aabb"), ("aaaa", "aabb"), ("xxxx", "abab"), ("ab", "ab"), ("aaa", "aab")],
)
def test_no_worker_gets_more_blocks_than_its_share(held, expected):
    class Block:
        def __init__(self, key):
            self.key = key

        def exception(self):
            return None

    class Cluster:
        def nthreads(self):
            return {"a": 1, "b": 1}

        def who_has(self, blocks):
            return {block.key: (held[block.key],) for block in blocks}

    places = _even_places(Cluster(), [Block(key) for key in range(len(held))])
    assert "".join(place for [place] in places) == expected
