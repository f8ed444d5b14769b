"""Numbers written by people: decimal points and commas, thousands marks, cells that stand for no value."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel._common.short_numbers import shortest
from mislabel.data.units import measured
from mislabel.errors import InvalidParameterError

#: Cells that stand for "no value", in lower case.
MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "-", "--", "—", "?", ".", "#div/0!", "#value!"}
    | {"#num!", "#ref!", "#name?", "#null!", "n.a.", "n. a.", "n.b.", "n. b.", "n.d.", "n. d.", "k.a.", "k. a."}
)
#: Cells that lie beyond a limit which they do not tell: of their labels nothing is known but that.
UNTOLD_LIMIT = re.compile(r"(?i)\s*[<>\u2264\u2265]=?\s*(?:lod|loq|lld|lloq|uloq|mdl|dl|ql|rl|bg|ng|nwg)\.?\s*")
#: A column counts as numeric when at least this fraction of its filled cells are numbers.
NUMERIC_FRACTION = 0.9
MARKS = (".", ",")
OTHER = {".": ",", ",": "."}
#: Marks, beside points and commas, that set groups of digits apart.
SPACES = " \u00a0\u202f\u2009'\u2019"
#: Signs that people use, as Python writes them.
SIGNS = {ord("\u2212"): "-"}
#: Signs before a number of which only a side is known: it is at most so large (-1), or at least (1).
LIMITS = {"<": -1, "<=": -1, "\u2264": -1, ">": 1, ">=": 1, "\u2265": 1}
SIGNS_OF_LIMITS = frozenset(sign[0] for sign in LIMITS)
_LIMIT = re.compile(r"\s*([<>]=?|[\u2264\u2265])\s*(.*)", re.DOTALL)
#: Longest cell that is taken for a number.
LONGEST = 400


def _pattern(decimal: str, groups: str) -> re.Pattern[str]:
    """Numbers with this decimal mark; groups of three digits are set apart by one and the same mark, if at all."""
    mark = re.escape(decimal)
    grouped = (
        rf"[1-9][0-9]{{0,2}}(?:(?P<mark>[{re.escape(groups)}])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*)(?:{mark}[0-9]*)?"
    )
    plain = rf"(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    return re.compile(rf"[+-]?(?:{grouped if groups else plain}|{plain})")


#: Numbers by their decimal mark, with any usual mark between groups of digits.
PATTERNS = {mark: _pattern(mark, OTHER[mark] + SPACES) for mark in MARKS}


@dataclass(frozen=True)
class Notation:
    """How the numbers of one column are written; of limits (``<0.5``) the number is read, and its sign left to others.

    decimal : the decimal mark. groups : marks that may stand between groups of three digits.
    thousands : the mark that does, in the larger numbers of this column; empty where there is none.
    decimals : digits after the decimal mark where all cells have the same number of them; most : the largest number of them.
    unit : what stands beside the numbers, in one spelling. example : the first cell with it.
    """

    decimal: str = "."
    thousands: str = ""
    decimals: int | None = None
    most: int | None = None
    groups: str | None = None
    unit: str = ""
    example: str = ""

    def number(self, cell: str) -> float:
        """One cell as a number; NaN where it is not one."""
        text = self.plain(cell)
        return float(text) if text else math.nan

    def plain(self, cell: str) -> str:
        """The cell in Python's notation; nothing where it is not a number."""
        if len(cell) > LONGEST:
            return ""
        text = self._without_unit(limit_in(cell)[1].strip().translate(SIGNS))
        groups = OTHER[self.decimal] + SPACES if self.groups is None else self.groups
        pattern = PATTERNS[self.decimal] if self.groups is None else _pattern(self.decimal, groups)
        if not pattern.fullmatch(text):
            return ""
        for mark in groups:
            text = text.replace(mark, "")
        return text.replace(self.decimal, ".")

    def _without_unit(self, text: str) -> str:
        found = measured(text) if self.unit else None
        return found.plain if found is not None and found.unit == self.unit else text

    def parse(self, cells: Sequence[str]) -> NDArray[np.float64]:
        """Numbers, NaN where a cell is empty or not a number."""
        if self.decimal == ".":
            numbers = plain_numbers(cells)
            doubtful = np.flatnonzero(np.isnan(numbers))
        else:
            numbers, doubtful = np.full(len(cells), np.nan), np.arange(len(cells))
        for k in doubtful.tolist():
            numbers[k] = self.number(cells[k])
        numbers[np.isinf(numbers)] = np.nan
        return numbers

    def write(self, value: float) -> str:
        """The value as this column writes numbers: its decimal and thousands marks, its digits, and no noise of rounding."""
        if not math.isfinite(value):
            return ""
        text = shortest(value)
        if "e" in text:
            return text.replace(".", self.decimal)
        sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
        whole, _, fraction = text.partition(".")
        if self.decimals is not None:
            fraction = fraction.ljust(self.decimals, "0")
        if self.thousands:
            whole = f"{int(whole):,}".replace(",", self.thousands)
        return sign + whole + (self.decimal + fraction if fraction else "")

    def write_like(self, value: float, former: str) -> str:
        """The value as :meth:`write` has it, with a unit beside it where the ``former`` cell, or else the column, has one."""
        number = self.write(value)
        if not self.unit or not number:
            return number
        like = measured(limit_in(former if self.plain(former) else self.example)[1].strip().translate(SIGNS))
        return number if like is None else like.with_number(number)

    def of_column(self, cells: Sequence[str]) -> Notation:
        """The same with the digits and the thousands mark that these cells show."""
        decimals: set[int] = set()
        grouped, ungrouped = dict.fromkeys(OTHER[self.decimal] + SPACES, 0), 0
        example = self.example
        for cell in cells:
            if not (text := self.plain(cell)) or "e" in text.lower():
                continue
            if self.unit:
                example = example or (cell if measured(limit_in(cell)[1].translate(SIGNS)) else "")
                cell = self._without_unit(limit_in(cell)[1].strip().translate(SIGNS))
            decimals.add(len(text.partition(".")[2]))
            digits = text.lstrip("+-").partition(".")[0]
            if len(digits) > 3:
                mark = next((mark for mark in grouped if mark in cell.strip()), None)
                if mark is None:
                    ungrouped += 1
                else:
                    grouped[mark] += 1
        mark, times = max(grouped.items(), key=lambda item: item[1])
        return replace(
            self,
            thousands=mark if times > ungrouped else "",
            decimals=max(decimals) if len(decimals) == 1 else None,
            most=max(decimals, default=None),
            example=example,
        )


def limit_in(cell: str) -> tuple[int, str]:
    """The side of a number that is only a limit (0 for others), and the cell without its sign."""
    found = _LIMIT.fullmatch(cell)
    return (LIMITS[found[1]], found[2]) if found else (0, cell)


def is_missing(cell: str) -> bool:
    """Whether a cell stands for "no value"."""
    return cell.strip().lower() in MISSING or (cell.lstrip()[:1] in SIGNS_OF_LIMITS and is_untold_limit(cell))


def is_untold_limit(cell: str) -> bool:
    """Whether a cell lies beyond a limit without telling it: ``<LOD``."""
    return UNTOLD_LIMIT.fullmatch(cell) is not None


def plain_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Cells in Python's notation as numbers, NaN for all others."""
    try:
        with np.errstate(over="ignore"):
            numbers = np.array(pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce"), dtype=float)
    except (ValueError, TypeError, OverflowError):  # numbers with hundreds of digits, odd characters
        return np.full(len(cells), np.nan)
    return numbers


@dataclass(frozen=True)
class NumberOptions:
    """What the user says about numbers in a file; None where that is left to be recognised.

    It decides columns that can be read so; columns whose cells can only be read in another way keep theirs.
    decimal : "." or ",". thousands : the mark between groups of three digits, or "none".
    """

    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        if self.decimal is not None and self.decimal not in MARKS:
            raise InvalidParameterError(f"the decimal mark must be '.' or ',', got {self.decimal!r}.")
        if self.thousands is None or self.thousands == "none":
            return
        if len(self.thousands) != 1 or self.thousands not in ".," + SPACES or self.thousands == self.decimal:
            raise InvalidParameterError(
                "the thousands mark must be '.', ',', a space, an apostrophe or 'none', and not the decimal mark; got "
                f"{self.thousands!r}."
            )

    @property
    def mark(self) -> str | None:
        """The decimal mark, also where only the thousands mark tells it."""
        return self.decimal or OTHER.get(self.thousands or "")

    @property
    def groups(self) -> str | None:
        """Marks between groups of digits; None where all usual ones may be."""
        if self.thousands is None:
            return None
        return "" if self.thousands == "none" else self.thousands
