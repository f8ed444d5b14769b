import numpy as np
import pandas as pd
import pytest

from mislabel.decisions.by_feature import FILE_ORDER, MOST_BINS, noise_by_feature


def test_a_bad_instrument_and_a_bad_day_come_first(rng):
    size = 1200
    days = pd.date_range("2024-01-01", periods=size, freq="h")
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=size),
            "instrument": rng.choice(["A", "B", "C"], size),
            "when": days.strftime("%Y-%m-%d %H:%M"),
            "name": [f"n{k}" for k in range(size)],
            "many": rng.integers(0, 40, size).astype(str),
            "gaps": np.where(rng.uniform(size=size) < 0.3, np.nan, rng.normal(size=size)),
        }
    )
    z = rng.normal(size=size)
    bad = (frame["instrument"] == "B").to_numpy() & (rng.uniform(size=size) < 0.2)
    z[bad] = 8.0
    z[600:640] = -7.0
    suspect = np.abs(z) > 5
    entries = {entry.column: entry for entry in noise_by_feature(frame, list(frame.columns), z, suspect)}
    assert next(iter(entries)) in ("instrument", "when", FILE_ORDER)
    assert entries["instrument"].p_value < 1e-6
    assert entries["x"].p_value > 1e-3
    assert "name" not in entries
    assert entries["when"].kind == "date"
    assert entries["when"].bins[0].name.startswith("2024-01-01")
    assert entries["many"].bins[-1].name.endswith("others")
    assert max(len(entry.bins) for entry in entries.values()) <= MOST_BINS
    for entry in entries.values():
        assert sum(item.suspects for item in entry.bins) <= suspect.sum()
    b = next(item for item in entries["instrument"].bins if item.name == "B")
    assert b.suspects == np.count_nonzero(suspect & (frame["instrument"] == "B"))
    assert sum(item.count for item in entries["gaps"].bins) == frame["gaps"].notna().sum()


def test_columns_that_cannot_be_grouped_are_left_out(rng):
    frame = pd.DataFrame({"same": [1.0] * 30, "flag": [True, False] * 15, "objects": [[1]] * 30})
    entries = noise_by_feature(frame, ["same", "flag", "objects"], rng.normal(size=30), np.zeros(30, dtype=bool))
    assert {entry.column for entry in entries} == {"flag", FILE_ORDER}
    assert noise_by_feature(frame[:3], ["flag"], np.zeros(3), np.zeros(3, dtype=bool)) == []


@pytest.mark.filterwarnings("error")
def test_odd_columns_and_numbers_are_fine(rng):
    size = 60
    frame = pd.DataFrame(
        {
            "huge": rng.normal(size=size) * 1e307,
            "extreme": rng.choice([-1.7e308, 1.7e308, 0.0, np.inf, np.nan], size),
            "complex": rng.normal(size=size) + 1j,
            "nul": [f"\x00{k % 3}" for k in range(size)],
            "lists": [[k % 3] for k in range(size)],
            "mixed": [1, "a", None, [2]] * (size // 4),
            "nothing": [None] * size,
            "long ago": [f"{k + 1:04d}-01-01" for k in range(size)],
            "middle ages": np.array(["1500-01-01"] * 30 + ["2024-01-01"] * 30, dtype="datetime64[s]"),
        }
    )
    z = rng.normal(size=size)
    z[3], z[4] = np.inf, np.nan
    entries = {entry.column: entry for entry in noise_by_feature(frame, list(frame.columns), z, np.abs(z) > 2)}
    assert len(entries["nul"].bins) == 3
    assert len(entries["huge"].bins) == MOST_BINS
    for values in (np.zeros(size), np.full(size, np.nan), np.full(size, 1e300)):
        for entry in noise_by_feature(frame, list(frame.columns), values, values > 2):
            assert entry.p_value == 1.0
    for few in range(11):
        assert noise_by_feature(frame[:few], list(frame.columns), z[:few], np.zeros(few, dtype=bool)) == []


@pytest.mark.skipif(int(pd.__version__.partition(".")[0]) < 3, reason="pandas 2 reads no text as dates before 1677")
def test_dates_of_the_first_century(rng):
    frame = pd.DataFrame({"long ago": [f"{year:04d}-01-01" for year in range(1, 61)]})
    entries = noise_by_feature(frame, ["long ago"], rng.normal(size=60), np.zeros(60, dtype=bool))
    (entry,) = (entry for entry in entries if entry.column == "long ago")
    assert entry.kind == "date"
    assert entry.bins[0].name.startswith("0001-01-01")
