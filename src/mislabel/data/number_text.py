"""Numbers written by people: decimal points and commas, thousands separators, marks for missing values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Cells that stand for "no value", in lower case.
MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "-", "--", "—", "?", ".", "#div/0!", "#value!"}
)
_SPACES = " \u00a0\u202f\u2009'\u2019"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_SIGN = r"[+\-\u2212]?"
_PLAIN = re.compile(rf"{_SIGN}\d+{_EXPONENT}")
#: Shapes that tell which of the two characters is the decimal mark.
_SURELY = {
    ".": re.compile(
        rf"{_SIGN}(?:\d*\.\d{{1,2}}|\d*\.\d{{4,}}|\d{{4,}}\.\d*|0\d*\.\d+|\.\d+|\d+\.\d*[eE][+-]?\d+|\d+\.|\d{{1,3}}(?:,\d{{3}})+\.\d*)"
        rf"{_EXPONENT}|{_SIGN}\d{{1,3}}(?:,\d{{3}}){{2,}}"
    ),
    ",": re.compile(
        rf"{_SIGN}(?:\d*,\d{{1,2}}|\d*,\d{{4,}}|\d{{4,}},\d*|0\d*,\d+|,\d+|\d+,\d*[eE][+-]?\d+|\d{{1,3}}(?:\.\d{{3}})+,\d*)"
        rf"{_EXPONENT}|{_SIGN}\d{{1,3}}(?:\.\d{{3}}){{2,}}"
    ),
}
_MAY_BE = {".": re.compile(rf"{_SIGN}\d{{1,3}}\.\d{{3}}"), ",": re.compile(rf"{_SIGN}\d{{1,3}},\d{{3}}")}
_OTHER = {".": ",", ",": "."}


@dataclass(frozen=True)
class NumberStyle:
    """The decimal mark of a file."""

    decimal: str = "."

    def parse(self, cells: Iterable[str]) -> NDArray[np.float64]:
        """Numbers, NaN where a cell is empty or not a number."""
        return np.array([self.number(cell) for cell in cells], dtype=float)

    def number(self, cell: str) -> float:
        """One cell as a number; NaN where it is not one."""
        try:
            if self.decimal == "." and "_" not in cell:
                return float(cell)
        except ValueError:
            pass
        text = cell.strip().translate(_SIGNS)
        grouped = self._grouped(text)
        if not grouped:
            return float("nan")
        return float(grouped)

    def _grouped(self, text: str) -> str:
        """The cell in Python's notation, or nothing where it is not a number."""
        pattern = _GROUPED[self.decimal]
        if not pattern.fullmatch(text):
            return ""
        for mark in (_OTHER[self.decimal], *_SPACES):
            text = text.replace(mark, "")
        return text.replace(self.decimal, ".")

    def write(self, value: float) -> str:
        """The shortest text that reads back as the value."""
        if not np.isfinite(value):
            return ""
        text = repr(float(value))
        if text.endswith(".0"):
            text = text[:-2]
        return text.replace(".", self.decimal)


_SIGNS = {ord("\u2212"): "-"}


def _grouped_pattern(decimal: str) -> re.Pattern[str]:
    group = re.escape(_OTHER[decimal] + _SPACES)
    mark = re.escape(decimal)
    whole = rf"\d{{1,3}}(?:[{group}]\d{{3}})+|\d+"
    return re.compile(rf"[+-]?(?:(?:{whole})(?:{mark}\d*)?|{mark}\d+){_EXPONENT}")


_GROUPED = {decimal: _grouped_pattern(decimal) for decimal in (".", ",")}


def is_missing(cell: str) -> bool:
    """Whether a cell stands for "no value"."""
    return cell.strip().lower() in MISSING


def recognise_style(columns: Iterable[Sequence[str]], *, delimiter: str) -> NumberStyle:
    """Which decimal mark a file uses, from cells of which some leave no doubt.

    "1,234" alone may be 1234 or 1.234: other cells of the file decide, then whether the file separates its cells by
    semicolons, as spreadsheets of countries with a decimal comma do.
    """
    sure = {".": 0, ",": 0}
    perhaps = {".": 0, ",": 0}
    for column in columns:
        for cell in column:
            text = cell.strip()
            if not text or _PLAIN.fullmatch(text) or len(text) > 40:
                continue
            for mark in (".", ","):
                sure[mark] += bool(_SURELY[mark].fullmatch(text))
                perhaps[mark] += bool(_MAY_BE[mark].fullmatch(text))
    if sure[","] != sure["."]:
        return NumberStyle("," if sure[","] > sure["."] else ".")
    if perhaps[","] and not perhaps["."] and delimiter == ";":
        return NumberStyle(",")
    return NumberStyle(".")
