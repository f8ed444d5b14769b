"""Tables that are read piece by piece, against the same tables read whole."""

import numpy as np
import pandas as pd
import pytest

from mislabel._common.spreading import evenly_spread
from mislabel.data import large_tables
from mislabel.data.large_tables import LargeTable, encode_pieces, learn_features
from mislabel.data.table_files import read_table
from mislabel.data.tables import read_labelled_table
from mislabel.errors import InvalidFeaturesError, InvalidParameterError, TableFileError

pytest.importorskip("pyarrow")


@pytest.fixture
def frame(rng):
    size = 500
    return pd.DataFrame(
        {
            "number": rng.standard_normal(size),
            "count": np.arange(size),
            "text number": [f"{value:.3f}" for value in rng.random(size)],
            "site": rng.choice(["a", "b", "c"], size),
            "same": 1.0,
            "label": rng.standard_normal(size),
        }
    )


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(large_tables, "BATCH_CELLS", 7)


def write(frame, path, **options):
    frame.to_parquet(path, row_group_size=64, **options)
    return path


def test_columns_rows_and_batches_are_those_of_the_whole_table(frame, tmp_path, small_batches):
    path = write(frame, tmp_path / "t.parquet", index=False)
    table, whole = LargeTable(path), read_table(path)
    assert len(table) == len(whole)
    assert table.columns == list(whole.frame.columns)
    assert table.fingerprint == whole.fingerprint
    for name in table.columns:
        pd.testing.assert_series_equal(table[name], whole.frame[name], check_names=False)
    positions = np.array([499, 3, 3, 64, 63, 128])
    found = table.rows(positions, ["text number", "site"])
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True), whole.frame.iloc[positions][["text number", "site"]].reset_index(drop=True)
    )
    starts = [start for start, _ in table.batches(["number"])]
    assert starts[0] == 0
    assert len(starts) > 1
    joined = pd.concat([batch for _, batch in table.batches(["number", "site"])], ignore_index=True)
    pd.testing.assert_frame_equal(joined, whole.frame[["number", "site"]])


def test_index_of_a_dataframe_is_no_column(frame, tmp_path):
    path = write(frame.set_index(frame["site"] + frame["count"].astype(str)), tmp_path / "t.parquet")
    assert LargeTable(path).columns == list(frame.columns)


def read_pieces(path, names=None):
    """Features, the columns they were made of, and those left out; learned from rows spread over the file."""
    table = LargeTable(path)
    asked_for = names is not None
    names = [name for name in table.columns if name != "label"] if names is None else names
    labels = table["label"].to_numpy(dtype=float)
    encoder, used, left_out = learn_features(table, labels, names, asked_for=asked_for)
    return encode_pieces(table, encoder, used), used, left_out


def test_numeric_table_gives_the_same_features(frame, tmp_path, small_batches):
    numbers = frame[["number", "count", "same", "label"]]
    path = write(numbers, tmp_path / "t.parquet", index=False)
    (features, used, left_out), whole = read_pieces(path), read_labelled_table(numbers, "label")
    assert used == whole.used == ["number"]
    assert {item.kind for item in left_out} == {"constant", "id"}
    np.testing.assert_array_equal(features, whole.features)


def test_gaps_that_the_sample_did_not_show_are_filled(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(large_tables, "SAMPLE_ROWS", 50)
    gap = 3
    assert gap not in evenly_spread(len(frame), 50)
    frame.loc[gap, "number"] = np.nan
    path = write(frame[["number", "label"]], tmp_path / "t.parquet", index=False)
    assert np.isfinite(read_pieces(path)[0]).all()


def test_mixed_table_is_encoded_batch_by_batch(frame, tmp_path):
    pytest.importorskip("skrub")
    path = write(frame, tmp_path / "t.parquet", index=False)
    features, used, _ = read_pieces(path)
    whole = read_labelled_table(read_table(path).frame, "label")
    assert used == whole.used
    np.testing.assert_allclose(features, whole.features, atol=1e-5)


def test_chosen_columns(frame, tmp_path):
    path = write(frame, tmp_path / "t.parquet", index=False)
    assert read_pieces(path, ["number", "same", "count"])[1] == ["number", "count"]


def test_what_cannot_be_read_is_said(frame, tmp_path):
    with pytest.raises(TableFileError, match="only Parquet"):
        LargeTable(tmp_path / "t.csv")
    with pytest.raises(TableFileError, match="no such file"):
        LargeTable(tmp_path / "t.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TableFileError, match="cannot be read as Parquet"):
        LargeTable(tmp_path / "bad.parquet")
    with pytest.raises(TableFileError, match="no rows"):
        LargeTable(write(frame.iloc[:0], tmp_path / "empty.parquet", index=False))
    table = LargeTable(write(frame, tmp_path / "t.parquet", index=False))
    with pytest.raises(InvalidParameterError, match="Did you mean 'label'"):
        table["lable"]
    with pytest.raises(InvalidFeaturesError, match="no feature columns"):
        learn_features(table, np.arange(len(table)), ["same"], asked_for=True)
