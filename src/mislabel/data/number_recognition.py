"""How the columns of a file write their numbers, told by their cells.

"12.345" and "12,345" can each be read in two ways. Every column of numbers is read in one notation, told by its own cells where
they leave no doubt, else by the other columns of numbers in the file; where nothing tells, the choice is stated in a note.
Columns of text are never asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mislabel._common.short_numbers import shortest
from mislabel._common.spreading import evenly_spread
from mislabel.data.number_text import (
    LONGEST,
    MARKS,
    MISSING,
    NUMERIC_FRACTION,
    OTHER,
    PATTERNS,
    SIGNS,
    SPACES,
    Notation,
    NumberOptions,
    is_missing,
    limit_in,
    plain_numbers,
)
from mislabel.data.units import measured

#: Share of a column's cells that must leave no doubt, and share of rows that must be filled, for it to tell about others.
_SURE_FRACTION = 0.1
_VOTING_FRACTION = 0.5
#: Whole numbers in a column by whose size its doubtful cells are read.
_LEAST_WHOLE = 5
_SIZES_KEPT = 1000
_DOUBTFUL_KEPT = 1000
#: Different numbers beside limits (``<0.5``) with which a column is one of numbers; with fewer it may be one of brackets.
_LEAST_BESIDE_LIMITS = 6
#: Share of a column's cells that must have a unit beside the number for it to be that of all.
_UNIT_FRACTION = 0.5
#: Cells looked at, evenly through a column, before all others.
_LOOKED_AT = 2000
#: Columns named in one note.
_MOST_NAMED = 3
_DOUBTFUL = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,])[0-9]{3}")


@dataclass(frozen=True)
class Doubtful:
    """Cells that are two numbers: how many, where the first one stands, and the texts of some."""

    count: int = 0
    first: int = -1
    texts: tuple[str, ...] = ()

    @classmethod
    def at(cls, where: Sequence[int], cells: Sequence[str]) -> Doubtful:
        """The cells at these positions."""
        return cls(len(where), where[0], tuple(cells[k].strip() for k in where[:_DOUBTFUL_KEPT])) if where else cls()

    def followed_by(self, other: Doubtful, rows: int) -> Doubtful:
        """These cells and those of the next piece of the column, ``rows`` further on."""
        first = self.first if self.count or not other.count else rows + other.first
        return Doubtful(self.count + other.count, first, (self.texts + other.texts)[:_DOUBTFUL_KEPT])


@dataclass(frozen=True)
class ColumnCells:
    """What the cells of one column say about how it writes numbers.

    rows : cells looked at. filled : those that hold something. readable : how many are numbers with each decimal mark.
    sure : how many are numbers with this mark only. doubtful : cells that are two numbers, by the mark in them.
    grouped : those of the sure ones in which the other mark sets thousands apart.
    sizes : some of the numbers that leave no doubt, whole ones included. whole : how many whole numbers there are.
    limits : how many numbers are only limits; beside them stand the different cells ``beside``, of which a few are kept.
    units : how many cells hold a number and a unit, by the unit. without_units : the same column with these units taken away,
        where there are any.
    """

    rows: int
    filled: int
    readable: dict[str, int]
    sure: dict[str, int]
    grouped: dict[str, int]
    doubtful: dict[str, Doubtful]
    sizes: list[float]
    whole: int
    limits: int = 0
    beside: frozenset[str] = frozenset()
    units: dict[str, int] = field(default_factory=dict)
    without_units: ColumnCells | None = None

    @classmethod
    def of(cls, cells: Sequence[str]) -> ColumnCells:
        """Look at all cells of a column; at some of them where all are numbers in Python's notation and these leave no doubt."""
        if len(cells) > 2 * _LOOKED_AT and (found := cls._of_plain_numbers(cells)) is not None:
            return found
        readable, sure, grouped = (dict.fromkeys(MARKS, 0) for _ in range(3))
        where: dict[str, list[int]] = {mark: [] for mark in MARKS}
        sizes: list[float] = []
        filled = whole = limits = 0
        beside: set[str] = set()
        units: dict[str, int] = {}
        for k, cell in enumerate(cells):
            text = cell.strip()
            if text.lower() in MISSING or is_missing(text):
                continue
            filled += 1
            if len(text) > LONGEST:
                continue
            side, text = limit_in(text.translate(SIGNS))
            limits += side != 0
            if not side:
                beside.add(text)
            if len(beside) > _LEAST_BESIDE_LIMITS:
                beside.remove(max(beside))
            if doubt := _DOUBTFUL.fullmatch(text):
                where[doubt[1]].append(k)
                readable["."] += 1
                readable[","] += 1
                continue
            ways = [mark for mark in MARKS if PATTERNS[mark].fullmatch(text)]
            if not ways and (beside_unit := measured(text)) is not None:
                units[beside_unit.unit] = units.get(beside_unit.unit, 0) + 1
            for mark in ways:
                readable[mark] += 1
            if len(ways) == 1:
                sure[ways[0]] += 1
                grouped[ways[0]] += OTHER[ways[0]] in text
            whole += len(ways) == 2
            if ways and len(sizes) < _SIZES_KEPT:
                sizes.append(abs(Notation(ways[0]).number(text)))
        doubtful = {mark: Doubtful.at(where[mark], cells) for mark in MARKS}
        look = cls(
            len(cells), filled, readable, sure, grouped, doubtful, sizes, whole, limits, frozenset(beside), units
        )
        return look if not units else replace(look, without_units=cls.of([without_unit(cell) for cell in cells]))

    @classmethod
    def _of_plain_numbers(cls, cells: Sequence[str]) -> ColumnCells | None:
        """A column of numbers in Python's notation, of which some tell about all; None where it is another."""
        some = cls.of([cells[k] for k in evenly_spread(len(cells), _LOOKED_AT)])
        if not some.sure["."] or some.sure[","]:
            return None
        filled = [cell for cell in cells if not is_missing(cell)]
        if not np.isfinite(plain_numbers(filled)).all():
            return None
        count, share = len(filled), some.sure["."] / max(some.filled, 1)
        readable, sure, none = {".": count, ",": 0}, {".": int(share * count), ",": 0}, dict.fromkeys(MARKS, 0)
        return cls(len(cells), count, readable, sure, none, some.doubtful, some.sizes, 0, 0, some.beside)

    def with_numbers_beside(self, texts: Iterable[str]) -> ColumnCells:
        """The same where the column holds these numbers, too, but not as text."""
        return replace(self, beside=frozenset(sorted(self.beside | set(texts))[:_LEAST_BESIDE_LIMITS]))

    def followed_by(self, other: ColumnCells) -> ColumnCells:
        """This piece of a column and the next one together."""
        if self.without_units is not None or other.without_units is not None:
            units = {unit: self.units.get(unit, 0) + other.units.get(unit, 0) for unit in {**self.units, **other.units}}
            bare = (self.without_units or self).followed_by(other.without_units or other)
            plain = replace(self, without_units=None).followed_by(replace(other, without_units=None))
            return replace(plain, units=units, without_units=bare)
        return ColumnCells(
            self.rows + other.rows,
            self.filled + other.filled,
            {mark: self.readable[mark] + other.readable[mark] for mark in MARKS},
            {mark: self.sure[mark] + other.sure[mark] for mark in MARKS},
            {mark: self.grouped[mark] + other.grouped[mark] for mark in MARKS},
            {mark: self.doubtful[mark].followed_by(other.doubtful[mark], self.rows) for mark in MARKS},
            (self.sizes + other.sizes)[:_SIZES_KEPT],
            self.whole + other.whole,
            self.limits + other.limits,
        ).with_numbers_beside(self.beside | other.beside)

    @property
    def unit(self) -> str:
        """The unit that stands beside the numbers, in most of the column's cells; nothing where there is none, or several."""
        if len(self.units) != 1 or self.without_units is None or not self.without_units.is_numeric:
            return ""
        unit, count = next(iter(self.units.items()))
        return unit if count >= _UNIT_FRACTION * self.filled else ""

    @property
    def has_mixed_units(self) -> bool:
        """Whether this is a column of numbers in several units."""
        return len(self.units) > 1 and self.without_units is not None and self.without_units.is_numeric

    @property
    def is_numeric(self) -> bool:
        """Whether this is a column of numbers."""
        if self.limits > (1.0 - NUMERIC_FRACTION) * self.filled and len(self.beside) < _LEAST_BESIDE_LIMITS:
            return False
        return self.filled > 0 and any(self.reads_as(mark) for mark in MARKS)

    @property
    def readable_at_all(self) -> int:
        """How many cells are numbers without a unit, with either decimal mark."""
        return max(self.readable.values())

    def reads_as(self, mark: str) -> bool:
        """Whether nearly all cells are numbers with this decimal mark."""
        return self.readable[mark] >= NUMERIC_FRACTION * self.filled

    @property
    def own_mark(self) -> str | None:
        """The decimal mark that the column's own cells leave no doubt about."""
        for mark in sorted(MARKS, key=lambda mark: -self.sure[mark]):
            # A few cells are typing errors rather than a reason to read all others a thousandfold.
            enough = self.sure[mark] >= _SURE_FRACTION * self.doubtful[OTHER[mark]].count
            if self.sure[mark] and self.sure[mark] > self.sure[OTHER[mark]] and enough:
                return mark
        return None

    def is_mixed(self, mark: str) -> bool:
        """Whether the column, read with this decimal mark, holds cells that were written with the other one.

        Some can only be read so; others would be far from the size of the rest if their mark stood for thousands.
        """
        other = self.doubtful[OTHER[mark]]
        if not self.sure[OTHER[mark]] and not other.count:
            return False
        if self.grouped[mark] and not self.sure[OTHER[mark]]:
            return False
        if self.sure[OTHER[mark]] or not any(self.sizes):
            return self.sure[OTHER[mark]] > 0 or self.doubtful[mark].count > 0
        return self.nearer_as_decimal(OTHER[mark])

    def nearer_as_decimal(self, mark: str) -> bool:
        """Whether doubtful cells with this mark are nearer to the size of the others if it is the decimal mark."""
        sizes = np.log10([size for size in self.sizes if size and math.isfinite(size)] or [1.0])
        values = np.log10([abs(Notation(mark).number(text)) for text in self.doubtful[mark].texts])
        typical = float(np.median(sizes))
        return bool(np.median(np.abs(values - typical)) <= np.median(np.abs(values + 3.0 - typical)))

    @property
    def in_doubt(self) -> bool:
        """Whether cells can be read in two ways and no other cell of the column says how."""
        return self.own_mark is None and any(cells.count for cells in self.doubtful.values())

    def votes(self, rows: int) -> bool:
        """Whether the column tells how its file writes numbers."""
        mark = self.own_mark
        return (
            self.is_numeric
            and mark is not None
            and self.sure[mark] >= _VOTING_FRACTION * self.filled
            and self.filled >= _VOTING_FRACTION * rows
        )


def recognise_notations(
    columns: Mapping[str, Sequence[str]], *, delimiter: str, options: NumberOptions | None = None
) -> tuple[dict[str, Notation | None], list[str]]:
    """How each column of a text table writes numbers (None: it holds text), and notes about cells that could be two numbers."""
    return notations_of({name: ColumnCells.of(cells) for name, cells in columns.items()}, delimiter, options)


def notations_of(
    looks: Mapping[str, ColumnCells], delimiter: str | None, options: NumberOptions | None = None
) -> tuple[dict[str, Notation | None], list[str]]:
    """The same from what the cells of each column say; ``delimiter`` is that of a text table."""
    options = options or NumberOptions()
    units = {name: look.unit for name, look in looks.items()}
    mixed = [_mixed_units(name, look) for name, look in looks.items() if look.has_mixed_units]
    bare = [_without_unit(name, look) for name, look in looks.items() if units[name] and look.readable_at_all]
    looks = {name: look.without_units if look.without_units and units[name] else look for name, look in looks.items()}
    rows = max((look.rows for look in looks.values()), default=0)
    votes = {look.own_mark for look in looks.values() if look.votes(rows)}
    file_mark = next(iter(votes)) if len(votes) == 1 else None
    found: dict[str, Notation | None] = {}
    doubts: list[str] = []
    for name, look in looks.items():
        if not look.is_numeric:
            found[name] = None
            continue
        mark, reason = _mark_of(look, file_mark, delimiter, options)
        groups = options.groups
        if groups is None and look.is_mixed(mark):
            groups = SPACES  # "1,234" beside "1.5" and "2,5" is nobody's thousands
        found[name] = Notation(mark, groups=groups, unit=units[name])
        if not look.reads_as(mark):
            found[name] = None
        elif reason is not None:
            doubts.append(_doubt(name, look, mark, reason))
    return found, [*_few(doubts), *mixed, *bare]


def _mixed_units(name: str, look: ColumnCells) -> str:
    return (
        f"column {name!r}: its numbers have several units ({units_in_words(look.units)}), so it was read as text. Bring them to "
        "one unit to have them read as numbers"
    )


def _without_unit(name: str, look: ColumnCells) -> str:
    unit, bare = look.unit, look.readable_at_all
    told = "1 cell has no unit and was" if bare == 1 else f"{bare} cells have no unit and were"
    return f"column {name!r}: {told} taken to be in {unit}, as the other {look.units[unit]} are"


def units_in_words(units: Mapping[str, int]) -> str:
    """How many cells have which unit, the commonest first: ``kW in 20 cells, W in 1 cell``."""
    commonest = sorted(units.items(), key=lambda item: -item[1])
    return ", ".join(f"{unit} in {count} cell{'' if count == 1 else 's'}" for unit, count in commonest[:4])


def without_unit(cell: str) -> str:
    """The cell without the unit beside its number, if it has one."""
    side, text = limit_in(cell.strip().translate(SIGNS))
    found = measured(text.strip()) if len(cell) <= LONGEST else None
    return cell if found is None else ("<>"[side > 0] if side else "") + found.plain


def _mark_of(
    look: ColumnCells, file_mark: str | None, delimiter: str | None, options: NumberOptions
) -> tuple[str, str | None]:
    """The decimal mark of a column, and the reason where it is a guess."""
    if options.mark is not None and (look.own_mark is None or look.reads_as(options.mark)):
        return options.mark, None
    if look.own_mark is not None:
        return look.own_mark, None
    if not look.in_doubt:
        return file_mark or ".", None
    doubtful = {mark for mark, cells in look.doubtful.items() if cells.count}
    if file_mark is not None:
        reason = None if doubtful == {file_mark} else "as other columns use a decimal " + _called(file_mark)
        return file_mark, reason
    if len(doubtful) == 1:
        mark = next(iter(doubtful))
        if look.whole >= _LEAST_WHOLE and any(look.sizes):
            decimal = mark if look.nearer_as_decimal(mark) else OTHER[mark]
            return decimal, "nearer to the size of the column's whole numbers"
        if mark == "," and delimiter is not None:
            return ("," if delimiter == ";" else "."), f"as files separated by {delimiter!r} usually mean it"
    return ".", "as a decimal point is commoner"


def _called(mark: str) -> str:
    return "comma" if mark == "," else "point"


def _doubt(name: str, look: ColumnCells, mark: str, reason: str) -> str:
    first = min((cells for cells in look.doubtful.values() if cells.count), key=lambda cells: cells.first)
    k, cell = first.first, first.texts[0]
    count = sum(cells.count for cells in look.doubtful.values())
    readings = {one: shortest(Notation(one).number(cell)) for one in MARKS}
    return (
        f"column {name!r}: {cell!r} (position {k}{f', and {count - 1} more such cells' if count > 1 else ''}) can be "
        f"{readings[mark]} or {readings[OTHER[mark]]}; read as {readings[mark]}, {reason}. Pass --decimal {OTHER[mark]} if "
        "it is the other"
    )


def _few(doubts: list[str]) -> list[str]:
    if len(doubts) <= _MOST_NAMED:
        return doubts
    return [
        *doubts[:_MOST_NAMED],
        f"{len(doubts) - _MOST_NAMED} more columns hold numbers that can be read in two ways",
    ]
