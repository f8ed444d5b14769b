"""Rows of a table that sum up others: totals, subtotals, means, told by what they say and by their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mislabel.data.number_text import MARKS, Notation, is_missing
from mislabel.data.units import measured

Row = Sequence[str]
FloatArray = NDArray[np.float64]

_SUMS = re.compile(
    r"(?i)(?:(?:zwischen|teil|gesamt|end)?summe|(?:sub|grand )[- ]?total|total|totals|gesamt(?:ergebnis|wert|betrag)?|sum|somme|"
    r"suma|totale|totaal|insgesamt|[\u03c3\u2211]).*|.* (?:total|summe|gesamt|ergebnis)"
)
#: Words that say nothing else, also where the numbers are no sums.
_SUM_ALONE = re.compile(
    r"(?i)(?:(?:zwischen|teil|gesamt|end)?summe|(?:sub|grand )?[- ]?totals?|gesamt(?:ergebnis)?|sum|insgesamt|"
    r"[\u03c3\u2211])\s*:?"
)
_OTHERS: dict[str, Callable[[FloatArray], float]] = {
    r"mittelwert|mittel|durchschnitt|mean|average|avg\.?|ø|moyenne": lambda values: float(np.mean(values)),
    r"median": lambda values: float(np.median(values)),
    r"min\.?|minimum": lambda values: float(np.min(values)),
    r"max\.?|maximum": lambda values: float(np.max(values)),
    r"std\.?|stdev|sd|standardabweichung|standard deviation": lambda values: float(np.std(values, ddof=1)),
    r"n|anzahl|count": lambda values: float(values.size),
}
_SUMMARIES = {re.compile(rf"(?i)(?:{words})\s*:?"): function for words, function in _OTHERS.items()}
#: Rows above a total, with and without a word that says what it is.
_LEAST_ABOVE, _LEAST_WITHOUT_WORD, _LEAST_ALONE = 2, 4, 8
_DECIMALS = re.compile(r"[.,]([0-9]+)[^0-9]*$")
#: Rows of the longest table of which a last row without a word is compared with the sums.
_MOST_ROWS_SUMMED = 200_000
#: Rows with such words beyond which they are a category.
_MOST_TOTALS = 1_000
#: Rows with the same word, none of which is a sum, that are a category rather than worth a note.
_A_CATEGORY = 3


def says_total(text: str) -> bool:
    """Whether a text says that its row is a total, and nothing else."""
    return _SUM_ALONE.fullmatch(text.strip()) is not None


def find_totals(rows: Sequence[Row], body: Sequence[int], numeric: Sequence[int]) -> tuple[dict[int, str], list[int]]:
    """Rows that sum up others, with what they say; and rows that say so, but whose numbers do not."""
    said = {place: word for place, k in enumerate(body) if (word := _word_of(rows[k]))}
    said = said if len(said) <= _MOST_TOTALS else {}
    last = len(body) - 1
    alone = last not in said and last <= _MOST_ROWS_SUMMED and _may_be_total(rows, body, numeric)
    if not said and not alone:
        return {}, []
    columns = _Columns(rows, body, numeric, said)
    found: list[int] = []
    for place, word in said.items():
        if columns.is_summary(place, word, found):
            found.append(place)
    if alone and columns.is_sum_without_word(last, found):
        found.append(last)
    doubtful = [body[place] for place, word in said.items() if place not in found and _SUM_ALONE.fullmatch(word)]
    return {body[place]: said.get(place, "") for place in found}, doubtful if len(doubtful) <= _A_CATEGORY else []


def _word_of(row: Row) -> str:
    """What a row that may be a summary says of itself; nothing for all others."""
    text = next((cell.strip() for cell in row if cell.strip()), "")
    if len(text) > 60 or not text or text[:1].isdigit():
        return ""
    return text if _SUMS.fullmatch(text) or any(pattern.fullmatch(text) for pattern in _SUMMARIES) else ""


def _may_be_total(rows: Sequence[Row], body: Sequence[int], numeric: Sequence[int]) -> bool:
    """Whether the last row holds numbers in columns of numbers, and nothing else."""
    row = rows[body[-1]]
    filled = [k for k, cell in enumerate(row) if cell.strip()]
    return len(body) > _LEAST_WITHOUT_WORD and bool(filled) and all(k in numeric for k in filled)


class _Numbers:
    """One column in one notation: its values by place, and their running sums."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        known = np.where(np.isfinite(values), values, 0.0)
        self._sums, self._sizes, self._terms = (
            np.concatenate([[0.0], np.cumsum(terms)]) for terms in (known, np.abs(known), known != 0.0)
        )
        self.whole = bool(np.all(known == np.round(known)))

    def between(self, start: int, stop: int, without: Sequence[int] = ()) -> tuple[float, float, int]:
        """Sum, sum of sizes, and how many there are that are not zero, from one place to another but for some."""
        gone = [self.between(k, k + 1) for k in without]
        total, size, terms = (float(sums[stop] - sums[start]) for sums in (self._sums, self._sizes, self._terms))
        return (
            total - sum(part[0] for part in gone),
            size - sum(part[1] for part in gone),
            int(terms) - sum(part[2] for part in gone),
        )


class _Columns:
    """The columns of numbers, to compare a row with those above."""

    def __init__(
        self, rows: Sequence[Row], body: Sequence[int], numeric: Sequence[int], said: Mapping[int, str]
    ) -> None:
        self._rows = [rows[k] for k in body]
        self._numeric, self._said = numeric, said
        self._cells = {c: [row[c].strip() if c < len(row) else "" for row in self._rows] for c in numeric}
        self._width = max(len(row) for row in self._rows)
        self._found: dict[int, list[_Numbers]] = {}

    def _readings(self, column: int) -> list[_Numbers]:
        """A column in each notation in which nearly all of its cells are numbers."""
        if column not in self._found:
            cells = self._cells[column]
            bare = [found.plain if (found := measured(cell)) else cell for cell in cells]
            filled = sum(not is_missing(cell) for cell in cells)
            read = [Notation(mark).parse(bare) for mark in MARKS]
            self._found[column] = [_Numbers(values) for values in read if np.isfinite(values).sum() >= 0.9 * filled - 1]
        return self._found[column]

    def _rounding(self, column: int, place: int) -> float:
        """What rounding may have changed in a cell; nothing where it has no decimals."""
        digits = _DECIMALS.search(self._cells[column][place])
        return float(10.0 ** -len(digits[1])) if digits else 0.0

    def _filled(self, place: int) -> list[int]:
        return [c for c in self._numeric if not is_missing(self._cells[c][place])]

    def is_summary(self, place: int, word: str, found: Sequence[int]) -> bool:
        """Whether the row at a place of the table is what its word says of the rows above."""
        filled = self._filled(place)
        is_last = place == len(self._rows) - 1
        if not filled:
            return is_last and _SUM_ALONE.fullmatch(word) is not None
        function = next((function for pattern, function in _SUMMARIES.items() if pattern.fullmatch(word)), None)
        if function is not None:
            at_end = all(k in self._said for k in range(place, len(self._rows)))
            above = [k for k in range(place) if k not in found]
            return at_end and all(self._is(c, place, above, function) for c in filled)
        if any(self._is_sum(c, place, found) for c in filled):
            return True
        alone = _SUM_ALONE.fullmatch(word) is not None
        return is_last and alone and (self._is_apart(place) or self._is_nearly(place, filled))

    def _is_sum(self, column: int, place: int, found: Sequence[int]) -> bool:
        """Whether a number is the sum of all rows above, of those since the last total, or of the totals."""
        start = found[-1] + 1 if found else 0
        for numbers in self._readings(column):
            value = numbers.values[place]
            everything, rows = numbers.between(0, place), numbers.between(0, place, found)
            totals = (everything[0] - rows[0], everything[1], everything[2] - rows[2])
            for total, size, terms in (rows, numbers.between(start, place), totals):
                rounding = 0.0 if numbers.whole else self._rounding(column, place) * max(1.0, float(np.sqrt(terms)))
                if terms >= _LEAST_ABOVE and abs(value - total) <= 1e-9 * size + rounding:
                    return True
        return False

    def _is(self, column: int, place: int, above: Sequence[int], function: Callable[[FloatArray], float]) -> bool:
        for numbers in self._readings(column):
            terms = numbers.values[list(above)]
            terms = terms[np.isfinite(terms)]
            if terms.size >= _LEAST_ABOVE and np.isfinite(numbers.values[place]):
                exact = 1e-9 * float(np.abs(terms).sum()) + self._rounding(column, place)
                if abs(numbers.values[place] - function(terms)) <= exact:
                    return True
        return False

    def _is_apart(self, place: int) -> bool:
        """Whether the row is empty in other columns of text, which the rows above fill."""
        first = next((c for c, cell in enumerate(self._rows[place]) if cell.strip()), 0)
        above = range(max(place - 200, 0), place)
        texts = [c for c in range(self._width) if c not in self._numeric and c != first and self._is_full(c, above)]
        row = self._rows[place]
        return bool(texts) and len(above) >= _LEAST_ABOVE and not any(c < len(row) and row[c].strip() for c in texts)

    def _is_full(self, column: int, places: Sequence[int]) -> bool:
        """Whether nearly all of some rows have something in a column."""
        filled = sum(1 for k in places if column < len(self._rows[k]) and self._rows[k][column].strip())
        return filled >= 0.9 * len(places)

    def _is_nearly(self, place: int, filled: Sequence[int]) -> bool:
        """Whether every number is near the sum of those above, which one wrong number among them may have changed."""
        if place < _LEAST_WITHOUT_WORD:
            return False
        for column in filled:
            read = [(numbers.values[place], numbers.between(0, place)[0]) for numbers in self._readings(column)]
            if not any(total > 0 and 0.5 * total <= value <= 2.0 * total for value, total in read):
                return False
        return True

    def is_sum_without_word(self, place: int, found: Sequence[int]) -> bool:
        """Whether all numbers of the last row are sums of those above, which no chance would make."""
        filled = self._filled(place)
        if not filled or not all(self._is_exactly(c, place, found) for c in filled):
            return False
        rest = [c for c in range(self._width) if c not in filled]
        return place >= _LEAST_ALONE or any(self._is_full(c, range(place)) for c in rest)

    def _is_exactly(self, column: int, place: int, found: Sequence[int]) -> bool:
        for numbers in self._readings(column):
            total, size, terms = numbers.between(0, place, found)
            rounding = 0.0 if numbers.whole else 0.51 * self._rounding(column, place)
            if (
                terms >= _LEAST_WITHOUT_WORD - 1
                and total
                and abs(numbers.values[place] - total) <= 1e-9 * size + rounding
            ):
                return True
        return False
