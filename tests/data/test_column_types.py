"""The same values in different types give the same features, to the last digit, under the same names."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mislabel.data.column_types import plain_column, type_of
from mislabel.data.columns import choose_features
from mislabel.data.labels import numbers_in
from mislabel.data.tables import FeatureEncoder, read_labelled_table
from mislabel.errors import InvalidFeaturesError

ROWS = 60
RNG = np.random.default_rng(8)
GONE = RNG.random(ROWS) < 0.2
WHOLE = RNG.integers(0, 9, ROWS)
YES = WHOLE > 4
WORDS = RNG.choice(["low", "mid", "high"], ROWS)
CODES = np.array([f"code {k % 45} of {k % 7}" for k in range(ROWS)])
TIMES = pd.Series(pd.date_range("2024-02-28 22:00", periods=ROWS, freq="37h"))
DATES = [time.date() for time in TIMES]


def with_gaps(values, dtype=object):
    return pd.Series([None if gone else value for gone, value in zip(GONE, values, strict=True)], dtype=dtype)


def arrow(name, *arguments):
    pa = pytest.importorskip("pyarrow")
    return pd.ArrowDtype(getattr(pa, name)(*arguments))


def durations():
    return pd.Series(pd.to_timedelta(WHOLE, "h"))


#: Sets of columns that hold the same values.
SAME = {
    "whole numbers": [
        lambda: pd.Series(WHOLE),
        lambda: pd.Series(WHOLE, dtype="uint8"),
        lambda: pd.Series(WHOLE, dtype="Int64"),
        lambda: pd.Series(WHOLE, dtype="float32"),
        lambda: pd.Series(WHOLE, dtype="Float64"),
        lambda: pd.Series(WHOLE.tolist(), dtype=object),
        lambda: pd.Series([Decimal(int(value)) for value in WHOLE]),
        lambda: pd.Series(pd.Categorical(WHOLE)),
        lambda: pd.Series(pd.arrays.SparseArray(WHOLE)),
        lambda: pd.Series(WHOLE, dtype=arrow("int32")),
        lambda: pd.Series([Decimal(int(value)) for value in WHOLE], dtype=arrow("decimal128", 10, 2)),
    ],
    "numbers with gaps": [
        lambda: pd.Series(np.where(GONE, np.nan, WHOLE)),
        lambda: with_gaps(WHOLE.tolist()),
        lambda: with_gaps(WHOLE.tolist(), "Int64"),
        lambda: with_gaps(WHOLE.tolist(), "Float64"),
        lambda: with_gaps(WHOLE.tolist(), arrow("float64")),
        lambda: with_gaps([Decimal(int(value)) for value in WHOLE], arrow("decimal128", 10, 2)),
        lambda: with_gaps(WHOLE.tolist()).astype("category"),
    ],
    "yes or no": [
        lambda: pd.Series(YES),
        lambda: pd.Series(YES, dtype="boolean"),
        lambda: pd.Series(YES.tolist(), dtype=object),
        lambda: pd.Series(YES.astype(str), dtype=object),
        lambda: pd.Series(pd.Categorical(YES)),
        lambda: pd.Series(YES, dtype=arrow("bool_")),
        lambda: pd.Series(YES.astype(int)),
    ],
    "yes or no with gaps": [
        lambda: with_gaps(YES.tolist(), "boolean"),
        lambda: with_gaps(YES.tolist()),
        lambda: with_gaps([str(value).lower() for value in YES]),
        lambda: with_gaps(YES.astype(float), float),
    ],
    "words": [
        lambda: pd.Series(WORDS, dtype=object),
        lambda: pd.Series(WORDS, dtype="string"),
        lambda: pd.Series(WORDS.tolist()),
        lambda: pd.Series(pd.Categorical(WORDS)),
        lambda: pd.Series(pd.Categorical(WORDS, ["low", "never", "mid", "high"], ordered=True)),
        lambda: pd.Series(WORDS, dtype=arrow("string")),
    ],
    "words with gaps": [
        lambda: with_gaps(WORDS),
        lambda: with_gaps(WORDS, "string"),
        lambda: with_gaps(WORDS).astype(pd.CategoricalDtype(["low", "mid", "high"], ordered=True)),
        lambda: with_gaps(WORDS).fillna(np.nan),
    ],
    "many texts": [
        lambda: pd.Series(CODES, dtype=object),
        lambda: pd.Series(CODES, dtype="string"),
        lambda: pd.Series(pd.Categorical(CODES)),
    ],
    "times": [
        lambda: TIMES,
        lambda: TIMES.dt.as_unit("s"),
        lambda: TIMES.dt.tz_localize("UTC"),
        lambda: TIMES.dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata"),
        lambda: TIMES.astype(object),
        lambda: TIMES.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin").map(lambda time: time.isoformat()),
        lambda: TIMES.astype(arrow("timestamp", "us")),
        lambda: TIMES.astype(str),
    ],
    "times with gaps": [
        lambda: TIMES.where(~GONE),
        lambda: with_gaps(TIMES),
        lambda: TIMES.where(~GONE).dt.tz_localize("UTC").dt.tz_convert("America/Lima"),
    ],
    "dates": [
        lambda: pd.Series(DATES, dtype=object),
        lambda: pd.to_datetime(pd.Series(DATES)),
        lambda: pd.Series(DATES, dtype=arrow("date32")),
        lambda: pd.Series([date.isoformat() for date in DATES], dtype=object),
    ],
    "durations": [
        durations,
        lambda: durations().dt.total_seconds(),
        lambda: durations().astype(object),
        lambda: durations().astype(arrow("duration", "us")),
    ],
    "durations with gaps": [
        lambda: durations().where(~GONE),
        lambda: durations().dt.total_seconds().where(~GONE),
    ],
}


def features_of(column, **others):
    frame = pd.DataFrame({"y": np.random.default_rng(3).normal(size=ROWS), "x": column, **others})
    return read_labelled_table(frame, "y")


@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "beside text"])
@pytest.mark.parametrize("what", SAME)
def test_the_type_of_a_column_changes_no_feature(what, mixed):
    others = {"kind": np.where(YES, "a", "b")} if mixed else {}
    first, *rest = [features_of(make(), **others) for make in SAME[what]]
    assert "x" in first.used
    for other in rest:
        assert other.feature_names == first.feature_names
        assert other.used == first.used
        np.testing.assert_array_equal(other.features, first.features)


@pytest.mark.parametrize("make", SAME["numbers with gaps"])
def test_the_type_of_a_label_changes_nothing(make):
    np.testing.assert_array_equal(numbers_in(make(), np.arange(ROWS), "label"), np.where(GONE, np.nan, WHOLE))


@pytest.mark.parametrize("dtype", [object, float, "Int64", "boolean", "string", "category", "datetime64[ns, UTC]"])
def test_columns_without_values_are_left_out_in_every_type(dtype):
    frame = pd.DataFrame({"y": np.arange(30.0), "a": np.arange(30.0) ** 2 % 7})
    frame["x"] = pd.Series([None] * 30, dtype=object).astype(dtype)
    table = read_labelled_table(frame, "y")
    assert table.feature_names == ["a"]
    assert [(item.column, item.kind) for item in table.left_out] == [("x", "empty")]


@pytest.mark.parametrize("dtype", [int, object, "Int64", "Float64", "category"])
def test_columns_are_left_out_for_the_same_reasons_in_every_type(dtype):
    label = np.random.default_rng(2).normal(size=40)
    frame = pd.DataFrame({"counts": np.arange(40), "constant": 7, "sample_id": np.arange(40)[::-1] * 3}).astype(dtype)
    used, left_out = choose_features(frame, label, list(frame), asked_for=False)
    assert used == []
    assert [item.kind for item in left_out] == ["id", "constant", "id"]
    assert left_out[1].reason.startswith("every row has the value '7")


def test_numbers_beside_text_keep_all_their_digits():
    days = 20_240_101 + np.arange(ROWS) % 2
    table = features_of(pd.Series(days), kind=np.where(YES, "a", "b"))
    assert np.unique(table.features[:, table.feature_names.index("x")]).size == 2


def test_huge_numbers_beside_text_are_no_reason_to_fail():
    column = pd.Series(1e60 * np.random.default_rng(1).normal(size=ROWS))
    table = features_of(column, kind=np.where(YES, "a", "b"))
    np.testing.assert_allclose(np.corrcoef(table.features[:, table.feature_names.index("x")], column / 1e60)[0, 1], 1.0)


def test_features_are_the_same_every_time():
    first, second = (features_of(pd.Series(CODES)) for _ in range(2))
    np.testing.assert_array_equal(first.features, second.features)


def test_further_rows_have_the_types_that_were_learned():
    frame = pd.DataFrame({"flag": with_gaps(YES.tolist()), "when": TIMES, "word": WORDS, "size": WHOLE * 1.5})
    encoder = FeatureEncoder.learned_from(frame)
    whole = encoder.encode(frame)
    for piece in (frame.iloc[:7], frame[~GONE], frame[GONE], frame.astype(object).iloc[20:30]):
        np.testing.assert_array_equal(encoder.encode(piece), whole[piece.index])


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        (["1.5", "x", None], "numbers", [1.5, np.nan, np.nan]),
        ([None, None, None], "numbers", [np.nan] * 3),
        (["true", "false", None], "text", ["true", "false", None]),
        ([1, 2, None], "text", ["1", "2", None]),
    ],
)
def test_a_piece_of_a_column_is_read_as_the_whole_of_it(values, wanted, expected):
    plain = plain_column(pd.Series(values, dtype=object), wanted)
    assert type_of(plain) == wanted
    pd.testing.assert_series_equal(plain, pd.Series(expected, dtype=float if wanted == "numbers" else object))


def test_times_that_are_none_are_missing_where_times_are_wanted():
    values = ["2024-01-02", "soon", None]
    plain = plain_column(pd.Series(values, dtype=object), "times")
    assert plain.tolist() == [pd.Timestamp("2024-01-02"), pd.NaT, pd.NaT]
    assert plain_column(pd.Series([None, None], dtype=object), "times").isna().all()


def test_values_without_a_number_are_refused_or_text():
    with pytest.raises(InvalidFeaturesError, match="complex128"):
        features_of(pd.Series(WHOLE * 1j))
    huge = pd.Series([10**400, *WHOLE[1:].tolist()], dtype=object)
    with pytest.raises(InvalidFeaturesError, match="1 infinite values"):
        features_of(huge)
    mixed = plain_column(pd.Series([1, "a", datetime.date(2024, 1, 2)], dtype=object))
    assert mixed.tolist() == ["1", "a", "2024-01-02"]
