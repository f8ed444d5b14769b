"""Columns of dates written as text: one notation for the whole column, or none at all; times with offsets from UTC.

Whether 03/04/2024 is in March or in April no single value can say. The order of day and month is decided once, from all values of
a column; where nothing tells it, the column is not read as dates.
"""

from __future__ import annotations

import pandas as pd

#: Share of the values that must follow the notation; the others count as missing.
LEAST_READ = 0.9
_THREE_NUMBERS = (
    r"^\s*(?P<first>\d{1,4})(?P<mark>[-./])(?P<second>\d{1,2})(?P=mark)(?P<third>\d{1,4})(?P<time>(?:[T\s,].*)?)$"
)
#: Dates that are not three numbers with a mark between them.
_OTHER_NOTATIONS = (
    *(f"%d{mark}{month}{mark}%Y" for month in ("%b", "%B") for mark in ("-", " ", ".")),
    *(f"{month} %d, %Y" for month in ("%b", "%B")),
    *(f"%Y{mark}%b{mark}%d" for mark in ("-", " ")),
    "%Y%m%d",
    "%Y-%m",
)
_TIMES = ("", " %H:%M", " %H:%M:%S")
_HALF_DAYS = (" %I:%M %p", " %I:%M:%S %p")

#: Dates with times and an offset from UTC, of which clocks change twice a year.
_WITH_OFFSET = r"\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:Z|[+-]\d{2}:?\d{2})\s*"
#: Values looked at before all others.
_FIRST_VALUES = 20


def as_dates(column: pd.Series) -> pd.Series:
    """Times with offsets from UTC, which may differ from row to row, as times in UTC; other text stays as it is."""
    filled = column.dropna()
    first = filled.iloc[:_FIRST_VALUES].astype(str)
    if not len(filled) or not first.str.fullmatch(_WITH_OFFSET).all() or not filled.str.fullmatch(_WITH_OFFSET).all():
        return column
    try:
        return pd.to_datetime(column, utc=True, format="ISO8601")
    except (ValueError, OverflowError):
        return column


def read_dates(column: pd.Series) -> pd.Series | None:
    """The dates in a column of text, in universal time, missing where there is none; None if it is not one of clear dates."""
    text = column.astype(object).where(column.notna(), None).map(lambda value: None if value is None else str(value))
    known = text.dropna()
    if known.empty or not known.str.contains(r"\d").all():
        return None
    parts = known.str.extract(_THREE_NUMBERS)
    followed = parts["mark"].notna()
    if followed.mean() >= LEAST_READ:
        dates = _three_numbers(parts[followed])
    elif followed.any():
        return None
    else:
        dates = _other_notation(known)
    if dates is None or dates.notna().sum() < LEAST_READ * len(known):
        return None
    return dates.reindex(column.index)


def _three_numbers(parts: pd.DataFrame) -> pd.Series | None:
    """Dates from three numbers and a time, once their order is clear."""
    if parts["mark"].nunique() > 1:
        return None
    numbers = parts[["first", "second", "third"]].astype(int)
    digits = parts[["first", "second", "third"]].apply(lambda texts: texts.str.len())
    order = _order(numbers, digits, str(parts["mark"].iloc[0]))
    if order is None:
        return None
    year, month, day = (numbers[name] for name in order)
    if (digits[order[0]] < 4).all():
        # As in POSIX: 69 to 99 are of the last century.
        year = year + 1900 + 100 * (year < 69)
    date = year.map("{:04d}".format) + "-" + month.map("{:02d}".format) + "-" + day.map("{:02d}".format)
    time = parts["time"].str.replace(r"^[T\s,]+", "", regex=True).str.strip()
    return _read((date + " " + time).str.strip(), "%Y-%m-%d")


def _order(numbers: pd.DataFrame, digits: pd.DataFrame, mark: str) -> tuple[str, str, str] | None:
    """Which of the three numbers are year, month and day."""
    first, second, third = numbers["first"], numbers["second"], numbers["third"]
    if (digits["first"] == 4).all() and (digits["third"] <= 2).all():
        # A year comes before the month; a month above 12 tells that this one does not.
        return ("first", "second", "third") if (second <= 12).all() else None
    if not (digits["first"] <= 2).all():
        return None
    if not ((digits["third"] == 4).all() or ((digits["third"] == 2).all() and (mark == "." or (third > 31).any()))):
        return None
    day_first, month_first = bool((first > 12).any()), bool((second > 12).any())
    if day_first and month_first:
        return None
    if month_first:
        return "third", "first", "second"
    # Points are put between day, month and year in this order only.
    return ("third", "second", "first") if day_first or mark == "." else None


def _read(text: pd.Series, date: str) -> pd.Series:
    """Dates and times in ISO notation, or with hours of half a day."""
    read = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
    for time in _HALF_DAYS:
        if read.notna().all():
            break
        read = max(
            read, pd.to_datetime(text, errors="coerce", format=date + time, utc=True), key=lambda dates: dates.count()
        )
    return read


def _other_notation(text: pd.Series) -> pd.Series | None:
    """Dates with the month in letters, or without marks: the first notation that reads enough of them."""
    text = text.str.strip()
    first = text.head(1)
    for notation in _OTHER_NOTATIONS:
        for time in _TIMES:
            # One value first: most notations fail at once.
            if pd.to_datetime(first, errors="coerce", format=notation + time, utc=True).notna().all():
                dates = pd.to_datetime(text, errors="coerce", format=notation + time, utc=True)
                if dates.notna().mean() >= LEAST_READ:
                    return dates
    return None
