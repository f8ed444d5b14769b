"""Dask dataframes, and frames with a client: the audit of one machine."""

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.auditing import dask_tables
from mislabel.errors import DecisionsError, InvalidParameterError, MemoryBudgetError
from mislabel.estimators import rank_plan

distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'mislabel[dask]'")
import dask.dataframe as dd

OPTIONS = {"id": "sample", "mean": "none"}


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None)
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def here(mixed):
    return audit(mixed, "y", **OPTIONS)


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr(dask_tables, "_COPIES", 1e15)


def test_a_table_that_fits_gives_the_very_same_audit(mixed, here, client):
    lazy = dd.from_pandas(mixed, npartitions=4)
    for result in (
        audit(lazy, "y", **OPTIONS),
        audit(lazy, "y", client=client, **OPTIONS),
        audit(mixed, "y", client=client, **OPTIONS),
    ):
        pd.testing.assert_frame_equal(result.table, here.table, check_exact=True)
    with client.as_current():
        pd.testing.assert_frame_equal(audit(lazy, "y", **OPTIONS).table, here.table, check_exact=True)


def test_features_apart_from_labels(mixed, here):
    lazy = dd.from_pandas(mixed.drop(columns=["y", "site"]), npartitions=3)
    labels = dd.from_pandas(mixed["y"], npartitions=2)
    pd.testing.assert_frame_equal(audit(lazy, labels, **OPTIONS).table, here.table, check_exact=True)


@pytest.mark.parametrize("lazy_labels", [True, False])
def test_corrected_pairs_of_dask_come_back_as_dask(mixed, lazy_labels):
    lazy = dd.from_pandas(mixed.drop(columns=["y", "site"]), npartitions=3)
    labels = dd.from_pandas(mixed["y"], npartitions=2) if lazy_labels else mixed["y"]
    result = audit(lazy, labels, **OPTIONS)
    entries = result.decisions["decisions"]
    entries[0]["action"] = "drop"
    X, y = result.apply()
    assert isinstance(X, dd.DataFrame)
    assert isinstance(y, dd.Series if lazy_labels else pd.Series)
    X, y = X.compute(), y.compute() if lazy_labels else y
    assert X.index.tolist() == y.index.tolist() == [k for k in range(90) if k != entries[0]["position"]]
    assert y[entries[1]["position"]] == entries[1]["value"]


def test_dask_data_that_was_changed_in_place_is_refused(mixed):
    lazy = dd.from_pandas(mixed, npartitions=2)
    result = audit(lazy, "y", **OPTIONS)
    lazy["length"] = lazy["length"] + 1.0
    with pytest.raises(DecisionsError, match="changed in place"):
        result.apply()


def test_predictions_and_ids_of_rows_on_workers(client, small_memory, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"{417 + k:05d}" for k in range(300)]
    frame = pd.DataFrame({"name": names, "length": rng.uniform(-2, 2, 300)})
    given = np.sin(frame["length"].to_numpy())
    frame["y"] = given + 0.02 * rng.normal(size=300)
    frame.loc[[7, 130], "y"] += 2.0
    options = {"id": "name", "predictions": given, "row_noise": "none", "label_transform": "none"}
    result = audit(dd.from_pandas(frame, npartitions=3), "y", client=client, **options)
    assert sorted(result.table["row"]) == names
    assert set(result.suspects["row"]) == {"00424", "00547"}
    alone = audit(frame, "y", **options)
    np.testing.assert_allclose(result.model.loo_mean_, alone.model.loo_mean_, rtol=1e-6, atol=1e-8)
    assert result.report(tmp_path / "report.html").exists()


@pytest.mark.parametrize("mean", ["none", "linear", "auto"])
def test_many_rows_are_fitted_by_the_workers(friedman, client, monkeypatch, mean):
    monkeypatch.setattr(rank_plan, "BLOCK_SIZES", ())
    monkeypatch.setattr(rank_plan, "TUNING_ROWS", 400)
    features, labels, _, _ = friedman(2000, 0.1, 1.0, 4)
    frame = pd.DataFrame(features, columns=list("abcde")).assign(y=labels)
    frame.loc[[3, 900], "y"] = np.nan
    there = audit(frame, "y", client=client, mean=mean, rank=50)
    alone = audit(frame, "y", mean=mean, rank=50)
    assert there.notes == []
    for name in ("expected", "z", "noise_std"):
        np.testing.assert_allclose(
            there.table.set_index("row")[name].sort_index(),
            alone.table.set_index("row")[name].sort_index(),
            rtol=1e-8,
            atol=1e-8,
        )


def test_rows_of_a_large_table_stay_where_they_are(client, small_memory, tmp_path):
    rng = np.random.default_rng(0)
    size, wrong = 300, {7, 130, 255}
    frame = pd.DataFrame(
        {"length": rng.uniform(-2, 2, size), "kind": pd.Categorical(rng.choice(["a", "b", "c"], size))}
    )
    frame["moment"] = pd.date_range("2024-01-01", periods=size, freq="7h", tz="Europe/Berlin")
    frame["gaps"] = pd.array(np.where(rng.random(size) < 0.1, None, rng.integers(0, 9, size)), dtype="Int64")
    frame["y"] = np.sin(frame["length"]) + (frame["kind"] == "b") + 0.02 * rng.normal(size=size)
    frame.loc[sorted(wrong), "y"] += 2.0
    result = audit(dd.from_pandas(frame, npartitions=5), "y", client=client, rank=100)
    assert "stayed on the workers" in result.notes[0]
    alone = audit(frame, "y", mean="none")
    assert result.findings.used == alone.findings.used
    assert set(result.suspects["row"]) == set(alone.suspects["row"]) == wrong
    close = (
        result.table.set_index("row")["expected"].sort_index() - alone.table.set_index("row")["expected"].sort_index()
    )
    assert close.abs().max() < 0.1
    result.write(tmp_path / "out")
    assert (tmp_path / "out" / "report.html").exists()
    cleaned = result.apply()
    assert isinstance(cleaned, dd.DataFrame)
    cleaned = cleaned.compute()
    assert set(cleaned.index[cleaned["y"] != frame["y"]]) == wrong
    with pytest.raises(InvalidParameterError, match="needs the whole table in memory"):
        audit(dd.from_pandas(frame, npartitions=5), "y", client=client, mean="trees")


def test_what_does_not_fit_needs_a_client(mixed, small_memory):
    with pytest.raises(MemoryBudgetError, match="Pass client= to leave its rows on workers"):
        audit(dd.from_pandas(mixed, npartitions=2), "y", **OPTIONS)


def test_rows_that_every_partition_counts_anew_are_called_by_their_position(mixed, tmp_path):
    for k in range(2):
        mixed.iloc[45 * k : 45 * (k + 1)].to_csv(tmp_path / f"{k}.csv", index=False)
    lazy = dd.read_csv(str(tmp_path / "*.csv"))
    assert sorted(audit(lazy, "y", mean="none").table["row"]) == list(range(90))
