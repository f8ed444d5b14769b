"""The column that a suspect is drawn against."""

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.report.telling import explained, telling_column


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(2)
    size = 150
    frame = pd.DataFrame(
        {
            "nothing": rng.normal(size=size),
            "much": rng.uniform(0, 3, size),
            "kind": rng.choice(["a", "b", "c"], size),
            "when": pd.date_range("2024-01-01", periods=size, freq="D"),
        }
    )
    frame["y"] = np.exp(frame["much"]) + 0.3 * (frame["kind"] == "b") + 0.05 * rng.normal(size=size)
    frame.loc[[3, 77], "y"] += 30
    frame.loc[10, "much"] = np.nan
    return audit(frame, "y", mean="none").findings


def test_the_column_that_makes_the_labels_is_found(found):
    shown = np.array([0, 3, 10, 77])
    telling = telling_column(found, found.used, shown)
    assert (telling.column, telling.kind, telling.names) == ("much", "number", None)
    assert telling.share > 0.8
    np.testing.assert_array_equal(telling.shown, found.frame["much"].to_numpy()[shown])
    assert telling.others.size == telling.labels.size
    # Suspects are not among the trusted.
    assert not set(found.frame["y"][found.suspect]) & set(telling.labels)


def test_categories_and_times_are_places_on_an_axis(found):
    telling = telling_column(found, ["kind"], np.array([0, 1]))
    if telling is not None:
        assert telling.names == ["a", "b", "c"]
    frame = found.frame.assign(late=np.where(found.frame["y"] > 6, "late", "early"))
    late = telling_column(_with(found, frame), ["late"], np.arange(5))
    assert late.names == ["early", "late"]
    assert [late.names[int(place)] for place in late.shown] == frame["late"][:5].tolist()
    days = frame.assign(when=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(frame["y"], 2), unit="D"))
    when = telling_column(_with(found, days), ["when"], np.arange(5))
    assert when.kind == "date"
    seconds = days["when"].dt.as_unit("s").astype("int64")
    np.testing.assert_array_equal(when.shown, seconds[:5])


def _with(found, frame):
    from dataclasses import replace

    return replace(found, frame=frame)


def test_columns_that_tell_nothing_are_none(found):
    assert telling_column(found, ["nothing"], np.arange(3)) is None
    assert telling_column(found, [], np.arange(3)) is None


def test_the_share_is_that_of_an_analysis_of_variance(rng):
    groups = rng.integers(0, 4, 300)
    values = groups + rng.normal(size=300)
    inside = sum(np.sum((values[groups == k] - values[groups == k].mean()) ** 2) for k in range(4))
    adjusted = 1 - (inside / 296) / (np.var(values, ddof=1))
    assert explained(values, groups) == pytest.approx(adjusted)
    missing = np.where(np.arange(300) < 150, -1, groups)
    assert explained(values, missing) == pytest.approx(explained(values[150:], groups[150:]) / 2)
    assert explained(values, np.zeros(300, dtype=int)) == 0.0
    assert explained(np.ones(300), groups) == 0.0
