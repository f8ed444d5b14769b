"""Groups that are wrong as a whole: from the call to the page."""

import json

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.errors import InvalidParameterError

FAST = {"mean": "none", "label_transform": "none", "row_noise": "none", "verbose": 0}


def table(seed=0, count=20, size=12):
    """A table of batches, of which B03 is shifted and B11 has two columns exchanged."""
    rng = np.random.default_rng(seed)
    n = count * size
    frame = pd.DataFrame({"a": rng.normal(0.0, 1.0, n), "b": rng.normal(0.0, 1.0, n), "c": rng.choice(["u", "v"], n)})
    frame["batch"] = [f"B{k:02}" for k in np.repeat(np.arange(count), size)]
    frame["y"] = (
        3.0 * frame["a"]
        - frame["b"]
        + (frame["c"] == "u")
        + rng.normal(0.0, 0.1, n)
        + np.repeat(rng.normal(0.0, 0.1, count), size)
    )
    frame.loc[frame["batch"] == "B03", "y"] += 4.0
    other = frame["batch"] == "B11"
    frame.loc[other, ["a", "b"]] = frame.loc[other, ["b", "a"]].to_numpy()
    return frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def found(frame):
    return audit(frame, "y", group="batch", **FAST)


def test_groups_are_named_with_what_is_wrong(found):
    groups = found.groups
    assert list(groups.columns) == ["group", "rows", "kind", "size", "words", "gain", "p_value", "q_value", "suspect"]
    assert set(groups[groups["suspect"]]["group"]) == {"B03", "B11"}
    kinds = groups.set_index("group")
    assert kinds.loc["B03", "kind"] == "shift"
    assert kinds.loc["B03", "size"] == pytest.approx(4.0, abs=0.5)
    assert kinds.loc["B11", "kind"] == "a and b are exchanged"
    assert (kinds["rows"] == 12).all()


def test_the_groups_column_is_no_feature(found):
    assert "batch" not in found.findings.used


def test_rows_say_their_group(frame, found):
    rows = found.table.set_index("row").sort_index()
    assert rows["group"].tolist() == frame["batch"].tolist()
    assert (rows["group_suspect"] == frame["batch"].isin(["B03", "B11"]).to_numpy()).all()


def test_summary_page_and_files_say_it(found, tmp_path):
    found.write(tmp_path / "out")
    entry = json.loads((tmp_path / "out" / "summary.json").read_text())["groups"]
    assert (entry["column"], entry["count"], entry["suspects"]) == ("batch", 20, 2)
    assert {group["group"] for group in entry["entries"] if group["suspect"]} == {"B03", "B11"}
    assert "2 of 20 groups by batch look wrong as a whole" in found.summary["summary"][-1]
    assert '"groups":{"column":"batch"' in (tmp_path / "out" / "report.html").read_text()


def test_an_array_does_as_well_as_a_column(frame, found):
    other = audit(frame.drop(columns="batch"), "y", group=frame["batch"].to_numpy(), **FAST)
    assert set(other.groups[other.groups["suspect"]]["group"]) == {"B03", "B11"}
    pd.testing.assert_frame_equal(other.groups, found.groups)


def test_order_of_rows_within_groups_is_that_of_the_table():
    frame = table(seed=1).sort_values("batch", kind="stable").reset_index(drop=True)
    own = frame["batch"] == "B07"
    frame.loc[own, "y"] = np.roll(frame.loc[own, "y"].to_numpy(), 1)
    groups = audit(frame, "y", group="batch", **FAST).groups.set_index("group")
    assert groups.loc["B07", "kind"] == "displaced rows"
    assert groups.loc["B07", "suspect"]


def test_rows_without_a_group_belong_to_none(frame):
    gaps = frame.assign(batch=frame["batch"].where(frame["batch"] != "B05"))
    found = audit(gaps, "y", group="batch", **FAST)
    assert len(found.groups) == 19
    assert (found.table.set_index("row")["group"].sort_index() == "").sum() == 12


def test_verdicts_keep_the_groups(found):
    decisions = found.decisions
    decisions["decisions"] = [
        {
            "position": 0,
            "row": "0",
            "label": float(found.table.set_index("row").loc[0, "label"]),
            "action": "keep",
            "value": None,
            "note": "",
            "reviewed": True,
        }
    ]
    learned = found.with_verdicts(decisions)
    pd.testing.assert_frame_equal(learned.groups, found.groups)
    rows, before = (table.set_index("row").sort_index() for table in (learned.table, found.table))
    assert (rows["group"] == before["group"]).all()


def test_without_a_group_there_are_none(frame):
    found = audit(frame.drop(columns="batch"), "y", **FAST)
    assert found.groups is None
    assert found.summary["groups"] is None
    assert "group" not in found.table


def test_a_column_whose_groups_share_errors_is_offered():
    rng = np.random.default_rng(0)
    frame = table().drop(columns="batch")
    frame["y"] = rng.normal(size=len(frame))
    lot = np.repeat(np.arange(30), 8)
    frame["lot"] = rng.permutation(30)[lot]  # its number says nothing, but its rows go together
    frame["y"] += np.sin(1e3 * frame["lot"]) * 3.0
    found = audit(frame, "y", **{**FAST, "kernel": "table"}, features=["a", "lot"])
    offered = [note for note in found.notes if "--group" in note]
    assert len(offered) <= 1
    assert all("'lot'" in note for note in offered)


@pytest.mark.parametrize(
    ("group", "message"),
    [("c", "at least 8"), (np.arange(240), "several rows share"), ("nothing", "nothing")],
)
def test_groups_that_cannot_be_judged_are_refused(frame, group, message):
    with pytest.raises(Exception, match=message) as error:
        audit(frame, "y", group=group, **FAST)
    assert isinstance(error.value, InvalidParameterError) or group == "nothing"


def test_lists_of_names_stay_features():
    rng = np.random.default_rng(0)
    names = dict(zip("abcdef", rng.normal(0.0, 5.0, 6), strict=True))
    pairs = [(one, other) for one in names for other in names if one < other]
    rows = [
        (str([one, other]), one if rng.random() < 0.5 else other, rng.uniform())
        for one, other in pairs
        for _ in range(10)
    ]
    frame = pd.DataFrame(rows, columns=["parts", "of", "x"])
    shares = [
        (x, names[of], names[next(name for name in "abcdef" if f"'{name}'" in parts and name != of)])
        for parts, of, x in frame.itertuples(index=False)
    ]
    frame["y"] = [x * one + (1.0 - x) * other + rng.normal(0.0, 0.05) for x, one, other in shares]
    wrong = frame["parts"] == "['b', 'e']"
    frame.loc[wrong, "x"] = 1.0 - frame.loc[wrong, "x"]
    found = audit(frame, "y", group="parts", **FAST)
    assert "parts" in found.findings.used
    assert found.groups["group"][0] == "['b', 'e']"
    assert found.groups["kind"][0] == "x is 1 - x"
    assert found.groups["suspect"].sum() == 1


def test_predictions_of_another_model_judge_groups_alone(frame):
    exact = 3.0 * frame["a"] - frame["b"] + (frame["c"] == "u")
    found = audit(frame.assign(model=exact), "y", group="batch", predictions="model", verbose=0)
    assert {"B03", "B11"} >= set(found.groups["group"][:2])
    assert found.groups.set_index("group").loc["B03", "kind"] == "shift"
