import numpy as np
import pandas as pd
import pytest

from mislabel.decisions.by_feature import FILE_ORDER, MOST_BINS, NO_VALUE, noise_by_feature, readable, readable_edges


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
    assert max(len(entry.bins) for entry in entries.values()) <= MOST_BINS + 1  # and one for rows without a value
    for entry in entries.values():
        assert sum(item.suspects for item in entry.bins) <= suspect.sum()
    b = next(item for item in entries["instrument"].bins if item.name == "B")
    assert b.suspects == np.count_nonzero(suspect & (frame["instrument"] == "B"))
    assert sum(item.count for item in entries["gaps"].bins) == size


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


def test_rows_without_a_value_are_a_bin_of_their_own(rng):
    size = 400
    gone = rng.uniform(size=size) < 0.2
    z = np.where(gone, 6.0, 1.0) * rng.normal(size=size)
    frame = pd.DataFrame(
        {
            "number": np.where(gone, np.nan, rng.normal(size=size)),
            "text": np.where(gone, None, rng.choice(["a", "b"], size)),
            "constant": np.where(gone, np.nan, 1.0),
            "date": pd.Series(pd.date_range("2020-01-01", periods=size)).where(~gone),
            "full": rng.normal(size=size),
        }
    )
    frame.loc[~gone & (frame.index < 20), "number"] = np.inf
    entries = {entry.column: entry for entry in noise_by_feature(frame, list(frame.columns), z, np.abs(z) > 5)}
    for name in ("number", "text", "constant", "date"):
        last = entries[name].bins[-1]
        assert (last.name, last.count) == (NO_VALUE, gone.sum())
        assert last.suspects == np.count_nonzero(np.abs(z[gone]) > 5)
        assert entries[name].p_value < 1e-6
    assert NO_VALUE not in {item.name for item in entries["full"].bins}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (np.arange(1200), [f"{100 * k} to {100 * k + 99}" for k in range(12)]),
        (np.arange(10_000, 130_000), [f"{low:,} to {low + 9999:,}" for low in range(10_000, 130_000, 10_000)]),
        (np.repeat(np.arange(1, 14), 50), ["1", *map(str, range(2, 12)), "12 to 13"]),
    ],
)
def test_bins_of_whole_numbers_end_where_the_next_begins(values, names):
    z = np.random.default_rng(0).normal(size=values.size)
    entries = noise_by_feature(pd.DataFrame({"x": values}), ["x"], z, np.abs(z) > 3)
    found = next(entry for entry in entries if entry.column == "x")
    assert [item.name for item in found.bins] == names


@pytest.mark.parametrize("scale", [1e-6, 1.0, 123_456.0, 1e12])
def test_edges_have_few_digits_and_stay_near(rng, scale):
    values = np.sort(rng.lognormal(size=2000)) * scale
    exact = np.quantile(values, np.linspace(0, 1, 13))
    edges = readable_edges(exact)
    assert edges.size == exact.size
    assert np.all(np.diff(edges) > 0)
    assert edges[0] <= values[0]
    assert edges[-1] >= values[-1]
    gaps = np.diff(exact)
    room = 0.2 * np.minimum(np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0]))
    assert np.all(np.abs(edges - exact) <= room * (1 + 1e-9))
    digits = [len(f"{edge:.15g}".split("e")[0].replace(".", "").strip("0")) for edge in edges]
    assert max(digits) <= 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.25, "0.25"),
        (-7.0, "-7"),
        (1999.0, "1999"),
        (250_000.0, "250,000"),
        (-12_345.5, "-12,345.5"),
        (1e12, "1e+12"),
    ],
)
def test_numbers_are_written_as_people_do(value, text):
    assert readable(value) == text
