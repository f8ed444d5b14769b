"""Columns of lists of names, and shares of what they name."""

import numpy as np
import pandas as pd
import pytest

from mislabel.data.lists import ListColumns, holds_lists, items_of
from mislabel.data.readings import other_readings
from mislabel.data.tables import FeatureEncoder


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        ("['water', 'ethanol']", ("ethanol", "water")),
        ('["1,2-dibromoethane", "butane"]', ("1,2-dibromoethane", "butane")),
        ("(a, b, a)", ("a", "b")),
        ("red; green", ("green", "red")),
        ("red | green|blue", ("blue", "green", "red")),
        ("", ()),
        (None, ()),
        ("[]", ()),
    ],
)
def test_items_of_a_cell(cell, items):
    assert items_of(cell) == items


def test_order_and_notation_of_a_list_mean_nothing():
    assert items_of("['a', 'b']") == items_of("[b, a]")


@pytest.mark.parametrize(
    ("cells", "is_list"),
    [
        (["['a', 'b']", "['b', 'c']", "['a', 'c']", "['a', 'd']"] * 5, True),
        (["a;b", "b;c", "a;c", "c;a;b"] * 5, True),
        (["a b", "b c", "a, c", "d"] * 5, False),
        (["(12 mm)", "(13 mm)", "(14 mm)", "(15 mm)"] * 5, False),  # no name stands in two lists
        ([1.0, 2.0, 3.0, 4.0] * 5, False),
        ([None] * 20, False),
    ],
)
def test_columns_of_lists(cells, is_list):
    assert holds_lists(pd.Series(cells)) is is_list


def mixtures(count=60):
    rng = np.random.default_rng(0)
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d"), ("b", "d")]
    chosen = [pairs[k] for k in rng.integers(0, len(pairs), count)]
    share = rng.uniform(0.0, 1.0, count)
    named = [pair[k] for pair, k in zip(chosen, rng.integers(0, 2, count), strict=True)]
    return pd.DataFrame(
        {"parts": [str(list(pair)) for pair in chosen], "of": named, "x": share, "t": rng.normal(size=count)}
    )


def test_shares_do_not_depend_on_which_part_is_named():
    frame = mixtures()
    turned = frame.copy()
    for row, (parts, name) in enumerate(zip(frame["parts"], frame["of"], strict=True)):
        other = next(item for item in items_of(parts) if item != name)
        turned.loc[row, "of"], turned.loc[row, "x"] = other, 1.0 - frame["x"][row]
    lists = ListColumns.of(frame)
    one, two = lists.apply(frame), lists.apply(turned)
    assert list(one.columns) == ["t", *(f"{name} (x parts)" for name in "abcd")]
    assert one.to_numpy() == pytest.approx(two.to_numpy())
    assert one.drop(columns="t").sum(axis=1).to_numpy() == pytest.approx(1.0)


def test_lists_without_shares_become_sets():
    frame = mixtures().drop(columns="of")
    found = ListColumns.of(frame).apply(frame)
    assert set(found.drop(columns=["x", "t"]).to_numpy().ravel()) == {0.0, 1.0}


def test_encoder_reads_new_rows_in_the_same_way():
    frame = mixtures()
    encoded, encoder = FeatureEncoder.of(frame)
    assert encoded.shape == (60, 5)
    assert encoder.encode(frame.iloc[:7]) == pytest.approx(encoded[:7])
    unknown = frame.iloc[:1].assign(parts="['a', 'z']", of="z", x=0.25)
    assert np.isfinite(encoder.encode(unknown)).all()


def test_tables_without_lists_stay_as_they_are():
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 5, "b": np.arange(15.0)})
    assert ListColumns.of(frame).apply(frame) is frame


def test_readings_are_of_shares_and_of_columns_of_one_kind():
    rng = np.random.default_rng(0)
    groups = np.arange(60) // 10
    frame = pd.DataFrame(
        {
            "share": rng.uniform(size=60),
            "left": rng.normal(10.0, 1.0, 60),
            "right": rng.normal(10.0, 1.0, 60),
            "far": rng.normal(1e3, 1.0, 60),
        }
    )
    frame.loc[groups == 2, ["left", "right"]] = [[9.5, 10.5]] * 10
    found = other_readings(frame, groups)
    assert set(found) == {"share is 1 - share", "left and right are exchanged"}
    assert found["share is 1 - share"]["share"].to_numpy() == pytest.approx(1.0 - frame["share"])
    exchanged = found["left and right are exchanged"]
    assert (exchanged.loc[groups == 2, "left"] == 10.5).all()
    assert set(exchanged["left"]) <= set(frame["left"]) | set(frame["right"])


def test_exchanged_columns_of_different_kinds_are_read_where_they_were_exchanged():
    rng = np.random.default_rng(0)
    groups = np.arange(60) // 10
    frame = pd.DataFrame({"small": rng.normal(0.0, 1.0, 60), "large": rng.normal(1e3, 1.0, 60)})
    wrong = groups == 4
    frame.loc[wrong] = [0.0, 1e3]
    frame.loc[wrong, ["small", "large"]] = frame.loc[wrong, ["large", "small"]].to_numpy()
    (found,) = other_readings(frame, groups).values()
    assert found["small"].max() < 10.0
    assert found["large"].min() > 900.0
