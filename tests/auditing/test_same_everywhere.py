"""The same content gives the same audit, to the last digit, whatever it comes as."""

import decimal

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from skrub import DatetimeEncoder

from mislabel import audit
from mislabel.cli import main
from mislabel.data.plain_columns import PlainColumns

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
OPTIONS = {"id": "sample", "mean": "none"}


@pytest.fixture(scope="module")
def expected(mixed_file):
    """The audit of the file."""
    return audit(mixed_file, "y", **OPTIONS)


def assert_same(result, expected):
    pd.testing.assert_frame_equal(
        pd.DataFrame(result.findings.table), pd.DataFrame(expected.findings.table), check_exact=True
    )
    assert result.summary["columns"] == expected.summary["columns"]
    assert result.summary["patterns"] == expected.summary["patterns"]
    assert result.summary["summary"] == expected.summary["summary"]


def test_the_planted_errors_are_found(expected):
    assert set(expected.suspects["row"]) == {"S007", "S030", "S055"}
    assert [item["column"] for item in expected.summary["columns"]["left_out"]] == ["site"]
    assert expected.summary["missing_labels"] == 1
    assert expected.summary["columns"]["used"] == [
        "length",
        "count",
        "checked",
        "sure",
        "day",
        "moment",
        "kind",
        "gaps",
    ]


@pytest.mark.parametrize(
    "read",
    [
        pd.read_csv,
        lambda path: pd.read_csv(path, dtype_backend="numpy_nullable"),
        lambda path: pd.read_csv(path, dtype_backend="pyarrow"),
        lambda path: pd.read_csv(path, dtype=str),
        lambda path: pd.read_csv(path, parse_dates=["day", "moment"]),
        lambda path: pd.read_csv(path).astype({"kind": "category", "count": "int16"}),
        lambda path: pd.read_csv(path, parse_dates=["moment"]).assign(
            moment=lambda frame: frame["moment"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
        ),
        lambda path: pd.read_csv(path).assign(
            gaps=lambda frame: [None if value != value else decimal.Decimal(str(value)) for value in frame["gaps"]]
        ),
        pl.read_csv,
        pl.scan_csv,
        lambda path: pl.read_csv(path, try_parse_dates=True),
        lambda path: pl.read_csv(path).with_columns(
            pl.col("kind").cast(pl.Categorical), pl.col("gaps").cast(pl.Decimal(scale=3))
        ),
        lambda path: pl.read_csv(path).with_columns(pl.col("kind").cast(pl.Enum(["steel", "zinc", "brass"]))),
        lambda path: pa.Table.from_pandas(pd.read_csv(path)),
        lambda path: pl.read_csv(path, try_parse_dates=True).to_arrow(),
    ],
    ids=[
        "pandas",
        "nullable",
        "arrow types",
        "all text",
        "dates",
        "categories",
        "time zone",
        "decimals",
        "polars",
        "lazy polars",
        "polars dates",
        "polars categories and decimals",
        "polars enums",
        "pyarrow",
        "pyarrow dates",
    ],
)
def test_every_kind_of_frame_gives_the_audit_of_the_file(mixed_file, expected, read):
    assert_same(audit(read(mixed_file), "y", **OPTIONS), expected)


@pytest.fixture(scope="module")
def by_names(mixed_file):
    """The audit of the file by a mean model that picks columns by name, and that model."""
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["kind", "checked"]),
        (make_pipeline(DatetimeEncoder("hour"), SimpleImputer()), "moment"),
        (make_pipeline(DatetimeEncoder("day"), SimpleImputer()), "day"),
        (SimpleImputer(), ["gaps", "sure"]),
        ("passthrough", ["length", "count"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
    )
    model = make_pipeline(columns, Ridge())
    return audit(mixed_file, "y", id="sample", mean=model), model


@pytest.mark.parametrize(
    "read",
    [
        lambda path: pd.read_csv(path, parse_dates=["day", "moment"]).astype({"kind": "category", "count": "int16"}),
        lambda path: pd.read_csv(path, dtype_backend="pyarrow"),
        lambda path: pl.read_csv(path, try_parse_dates=True).with_columns(pl.col("kind").cast(pl.Categorical)),
        lambda path: pl.read_csv(path, try_parse_dates=True).to_arrow(),
    ],
    ids=["pandas", "arrow types", "polars", "pyarrow"],
)
def test_means_that_pick_columns_by_name_get_the_same(mixed_file, by_names, read):
    expected, model = by_names
    frame = read(mixed_file)
    result = audit(frame, "y", id="sample", mean=model)
    assert_same(result, expected)
    np.testing.assert_allclose(result.model.predict(frame[:20]), expected.model.predict(frame[:20]), rtol=1e-4)


def test_the_command_line_gives_it_too(mixed_file, expected, tmp_path):
    where = ["--label", "y", "--id", "sample", "--mean", "none", "--quiet", "--out", str(tmp_path / "out")]
    assert main(["audit", str(mixed_file), *where]) == 0
    written = pd.read_csv(tmp_path / "out" / "audit.csv", float_precision="round_trip")
    pd.testing.assert_frame_equal(written, pd.DataFrame(expected.findings.table), check_exact=True)


@pytest.mark.parametrize("suffix", ["parquet", "xlsx"])
def test_other_files_give_it_too(mixed, expected, tmp_path, suffix):
    path = tmp_path / f"mixed.{suffix}"
    {"parquet": mixed.to_parquet, "xlsx": mixed.to_excel}[suffix](path, index=False)
    assert_same(audit(path, "y", **OPTIONS), expected)


def test_features_and_labels_apart_give_it_too(mixed, expected):
    features = mixed.drop(columns=["y", "site"])
    result = audit(features, mixed["y"], **OPTIONS)
    pd.testing.assert_frame_equal(result.findings.table, expected.findings.table, check_exact=True)


def test_defaults_are_those_of_the_command_line(mixed_file, tmp_path):
    frame = pd.read_csv(mixed_file)
    assert main(["audit", str(mixed_file), "--label", "y", "--quiet", "--out", str(tmp_path / "out")]) == 0
    written = pd.read_csv(tmp_path / "out" / "audit.csv", float_precision="round_trip")
    result = audit(frame, "y")
    assert result.model.mean_choice_ is not None
    pd.testing.assert_frame_equal(written, pd.DataFrame(result.findings.table), check_exact=True)


def test_nullable_labels(mixed_file, expected):
    frame = pd.read_csv(mixed_file)
    tenths = (frame["y"] * 10_000).round()
    result = audit(frame.assign(y=tenths.astype("Int64")), "y", **OPTIONS)
    same = audit(frame.assign(y=tenths), "y", **OPTIONS)
    assert_same(result, same)
    assert set(result.suspects["row"]) == set(expected.suspects["row"])


def test_plain_columns_are_of_few_types():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "truth": pd.array([True, False, True], dtype="boolean"),
            "doubt": pd.array([True, None, False], dtype="boolean"),
            "date": pd.to_datetime(["2024-01-02", None, "2024-01-03"]),
            "time": pd.to_datetime(["2024-01-02 10:00", "2024-01-03 00:00", None]).tz_localize("Asia/Tokyo"),
            "category": pd.Categorical(["b", "a", None], ordered=True),
            "number text": ["1,5", "NA", "2,25"],
            "text": pd.array(["x", None, "?"], dtype="string"),
            "mixed": ["x", 1, 2.5],
        }
    )
    learned = PlainColumns.of(frame)
    plain, notes = learned.apply(frame)
    assert notes == learned.notes == []
    np.testing.assert_array_equal(plain["whole"], [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(plain["number text"], [1.5, np.nan, 2.25])
    assert plain["truth"].dtype == bool
    np.testing.assert_array_equal(plain["doubt"], [1.0, np.nan, 0.0])
    assert plain["date"].tolist() == [pd.Timestamp("2024-01-02"), pd.NaT, pd.Timestamp("2024-01-03")]
    assert plain["time"].tolist() == [pd.Timestamp("2024-01-02 01:00"), pd.Timestamp("2024-01-02 15:00"), pd.NaT]
    assert plain["category"].tolist() == ["b", "a", None]
    assert plain["text"].tolist() == ["x", None, None]
    assert plain["mixed"].tolist() == ["x", "1", "2.5"]
    again, _ = PlainColumns.of(plain).apply(plain)
    pd.testing.assert_frame_equal(again, plain)


def test_what_comes_in_comes_out(mixed_file):
    for data in (pl.read_csv(mixed_file), pa.Table.from_pandas(pd.read_csv(mixed_file)), pd.read_csv(mixed_file)):
        result = audit(data, "y", **OPTIONS)
        assert isinstance(result.table, type(data))
        assert isinstance(result.suspects, type(data))
        assert nw.from_native(result.table)["row"].to_list() == result.findings.table["row"].tolist()
        assert len(result) == len(result.table) == 90
