import numpy as np
import pandas as pd
import pytest

from mislabel._common.dates import read_dates
from mislabel.decisions.by_feature import noise_by_feature

YEAR = pd.Series(pd.date_range("2024-01-01", "2024-12-31", tz="UTC"))
NOTATIONS = {
    "ISO": "%Y-%m-%d",
    "ISO with a time": "%Y-%m-%dT%H:%M:%S",
    "day first with points": "%d.%m.%Y",
    "day first with points, year of two digits": "%d.%m.%y",
    "day first with slashes": "%d/%m/%Y",
    "month first with slashes": "%m/%d/%Y",
    "month first with hyphens": "%m-%d-%Y",
    "year first with slashes": "%Y/%m/%d",
    "month first, half days": "%m/%d/%Y %I:%M:%S %p",
    "month in letters": "%d-%b-%Y",
    "month written out": "%B %d, %Y",
    "without marks": "%Y%m%d",
}


@pytest.mark.parametrize("notation", NOTATIONS.values(), ids=NOTATIONS)
def test_every_day_of_a_year_is_read_as_it_was_written(notation):
    assert len(YEAR) == 366
    read = read_dates(YEAR.dt.strftime(notation))
    assert read is not None
    assert (read == YEAR).all()


def test_numbers_without_leading_zeros():
    text = YEAR.map(
        lambda day: f"{day.day}.{day.month}.{day.year} 7:05" if day.day > 9 else f"{day.day}.{day.month}.{day.year}"
    )
    read = read_dates(text)
    assert read is not None
    assert (read.dt.date == YEAR.dt.date).all()


@pytest.mark.parametrize("mark", ["/", "-"])
def test_where_nothing_tells_day_from_month_there_are_no_dates(mark):
    text = pd.Series([f"{first:02d}{mark}{second:02d}{mark}2024" for first in range(1, 13) for second in range(1, 13)])
    assert read_dates(text) is None
    frame = pd.DataFrame({"when": text})
    entries = noise_by_feature(frame, ["when"], np.linspace(-1, 1, len(text)), np.zeros(len(text), dtype=bool))
    assert "when" not in {entry.column for entry in entries}


def test_one_value_above_twelve_decides_for_the_column():
    text = [f"{first:02d}/{second:02d}/2024" for first in range(1, 13) for second in range(1, 13)]
    day_first, month_first = read_dates(pd.Series([*text, "13/01/2024"])), read_dates(pd.Series([*text, "01/13/2024"]))
    assert day_first is not None
    assert month_first is not None
    assert str(day_first[1].date()) == "2024-02-01"
    assert str(month_first[1].date()) == "2024-01-02"


def test_a_column_that_contradicts_itself_has_no_dates():
    assert read_dates(pd.Series(["13/01/2024", "01/13/2024"] * 20)) is None
    assert read_dates(pd.Series(["13.01.2024", "01.13.2024"] * 20)) is None
    assert read_dates(pd.Series(["2024-13-01", "2024-01-13"] * 20)) is None
    assert read_dates(pd.Series(["13.01.2024", "2024-01-13"] * 20)) is None
    assert read_dates(pd.Series(["01-02-03", "04-05-06"] * 20)) is None


def test_offsets_that_change_with_the_season():
    text = YEAR.map(lambda day: f"{day:%Y-%m-%d}T12:00:00{'+02:00' if 4 <= day.month <= 9 else '+01:00'}")
    read = read_dates(text)
    assert read is not None
    assert read[0] == pd.Timestamp("2024-01-01 11:00", tz="UTC")
    assert read[182] == pd.Timestamp("2024-07-01 10:00", tz="UTC")
    entries = noise_by_feature(
        pd.DataFrame({"when": text}), ["when"], np.linspace(-1, 1, 366), np.zeros(366, dtype=bool)
    )
    entry = next(entry for entry in entries if entry.column == "when")
    assert entry.kind == "date"
    starts = [item.name[:10] for item in entry.bins]
    assert len(starts) == 12
    assert starts == sorted(starts)


def test_days_and_months_are_not_swapped_in_the_bins():
    frame = pd.DataFrame({"when": YEAR.dt.strftime("%d.%m.%Y")})
    suspect = (YEAR.dt.month == 3).to_numpy()
    entries = noise_by_feature(frame, ["when"], np.where(suspect, 9.0, 0.5), suspect)
    hit = [item for entry in entries if entry.column == "when" for item in entry.bins if item.suspects]
    assert all("2024-03" in item.name for item in hit)
    assert sum(item.suspects for item in hit) == 31


@pytest.mark.parametrize(
    "values",
    [
        ["10.0.0.1", "10.0.0.2"],
        ["A-1", "A-2"],
        ["1.5", "2.5"],
        ["99.99.9999", "98.97.9999"],
        ["31.02.2024", "30.02.2024"],
        [[1, 2], [3]],
        ["\x00", "1\x00"],
        ["", " "],
        [None, None],
        ["12345678901234567890", "1e300"],
        ["2024-01-01", "no date 1"],
    ],
    ids=str,
)
def test_text_that_is_not_a_date(values):
    assert read_dates(pd.Series(values * 20, dtype=object)) is None


def test_a_few_odd_values_are_missing():
    text = YEAR.dt.strftime("%Y-%m-%d").astype(object)
    text[5], text[9] = None, "unknown 1"
    read = read_dates(text)
    assert read is not None
    assert np.flatnonzero(read.isna()).tolist() == [5, 9]
