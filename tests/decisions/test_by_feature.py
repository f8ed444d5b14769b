import numpy as np
import pandas as pd

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
