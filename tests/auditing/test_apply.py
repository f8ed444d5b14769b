"""Corrected data comes back as what it was, changed only where decided."""

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from mislabel.auditing.frames import Changes, corrected_frame, corrected_series

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
CHANGES = Changes({1: 2.5, 3: 7.0}, {0})
WHOLE = Changes({1: 2.0}, set())


@pytest.fixture
def frame():
    return pd.DataFrame(
        {"a": ["x", "y", None, "w"], "y": [10, 20, 30, 40], "z": pd.Categorical(list("abca"))}, index=[5, 5, 6, 7]
    )


@pytest.mark.parametrize(
    ("dtype", "after", "kept"),
    [
        ("int64", "float64", "int64"),
        ("Int64", "Float64", "Int64"),
        ("int64[pyarrow]", "Float64", "int64[pyarrow]"),
        ("float64", "float64", "float64"),
        ("float32", "float32", "float32"),
        ("Float64", "Float64", "Float64"),
        ("double[pyarrow]", "double[pyarrow]", "double[pyarrow]"),
    ],
)
def test_pandas_keeps_index_types_and_all_else(frame, dtype, after, kept):
    frame = frame.astype({"y": dtype})
    before = frame.copy()
    found = corrected_frame(frame, "y", CHANGES)
    assert found["y"].tolist() == [2.5, 30, 7]
    assert found["y"].dtype == after
    assert found.index.tolist() == [5, 6, 7]
    pd.testing.assert_frame_equal(found.drop(columns="y"), frame.iloc[1:].drop(columns="y"))
    pd.testing.assert_frame_equal(frame, before)
    assert corrected_frame(frame, "y", WHOLE)["y"].dtype == kept


@pytest.mark.parametrize("dtype", ["object", "str", "string"])
def test_labels_that_are_text_stay_text(frame, dtype):
    frame["y"] = pd.Series(["10", "20", "30", "40"], dtype=dtype, index=frame.index)
    found = corrected_frame(frame, "y", CHANGES)
    assert found["y"].tolist() == ["2.5", "30", "7"]
    assert found["y"].dtype == frame["y"].dtype


def test_names_that_are_no_text(frame):
    found = corrected_frame(frame.set_axis([0, 1, 2], axis=1), "1", CHANGES)
    assert found[1].tolist() == [2.5, 30, 7]


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, lambda frame: pl.from_pandas(frame).lazy()])
def test_other_frames(frame, make):
    frame = frame.reset_index(drop=True)
    data = make(frame)
    found = corrected_frame(data, "y", CHANGES)
    assert type(found) is type(data)
    found = nw.from_native(found).lazy().collect()
    assert found["y"].to_list() == [2.5, 30, 7]
    assert found["a"].to_list() == ["y", None, "w"]
    assert found.columns[:3] == ["a", "y", "z"]
    assert nw.from_native(corrected_frame(data, "y", WHOLE)).lazy().collect()["y"].dtype == nw.Int64


@pytest.mark.parametrize("make", [np.array, list, pd.Series, pl.Series])
def test_labels_beside_features(make):
    labels = make([10, 20, 30, 40])
    found = corrected_series(labels, CHANGES)
    assert type(found) is type(labels)
    assert list(found) == [2.5, 30, 7]
    assert list(labels) == [10, 20, 30, 40]
