"""Systematic errors among the suspects: a unit, a sign, two rows swapped, one group shifted.

A pattern is a rule that turns what was expected into what was written. A suspect fits a rule if undoing the rule brings its
label back to where it was expected. How many would fit by accident is judged by how many nearly do; only rules that many more
suspects fit are proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, norm, poisson

from mislabel.decisions.evidence import FloatArray
from mislabel.spreading import evenly_spread

IntArray = NDArray[np.intp]

#: A label fits a rule when undoing it leaves at most this many standard deviations.
FIT_Z = 3.0
#: ... and explains at least this much of how far the label was off.
LEAST_IMPROVEMENT = 3.0
#: ... having been off by at least this many windows: where expectations are vague, any rule fits.
RESOLUTION = 4.0
#: Suspects that a rule must fit, and how unlikely that must be by accident (all rules together).
LEAST_SUSPECTS = 3
#: A factor that is not in the list needs more.
LEAST_UNNAMED = 5
#: Rows at most so far apart in the file are neighbours.
NEIGHBOURING = 2
SIGNIFICANCE = 0.01
#: Labels paired with others' expectations to count accidental fits.
ACCIDENT_SUSPECTS = 400
#: Values that are tried as the centre of a common factor.
MOST_CENTRES = 2000


@dataclass(frozen=True)
class Rule:
    """label = factor * expected + offset, in words."""

    name: str
    words: str
    factor: float
    offset: float = 0.0

    def undo(self, label: FloatArray) -> FloatArray:
        """What the label would have been without the error."""
        return (label - self.offset) / self.factor


_KELVIN = 273.15
RULES: tuple[Rule, ...] = (
    *(Rule(f"times {factor:g}", f"label = {factor:g} x expected", float(factor)) for factor in (10, 100, 1000, 1e6)),
    *(Rule(f"over {factor:g}", f"label = expected / {factor:g}", 1.0 / factor) for factor in (10, 100, 1000, 1e6)),
    Rule("sign", "label = -expected", -1.0),
    Rule("fahrenheit", "a label in degrees Fahrenheit where the others are in Celsius", 1.8, 32.0),
    Rule("celsius", "a label in degrees Celsius where the others are in Fahrenheit", 1 / 1.8, -32.0 / 1.8),
    Rule("kelvin", "a label in kelvin where the others are in degrees Celsius", 1.0, _KELVIN),
    Rule("not kelvin", "a label in degrees Celsius where the others are in kelvin", 1.0, -_KELVIN),
    *(
        Rule(f"{one} for {other}", f"a label in {one} where the others are in {other}", factor)
        for one, other, factor in (
            ("inches", "centimetres", 1 / 2.54),
            ("centimetres", "inches", 2.54),
            ("feet", "metres", 1 / 0.3048),
            ("metres", "feet", 0.3048),
            ("pounds", "kilograms", 1 / 0.45359237),
            ("kilograms", "pounds", 0.45359237),
            ("kcal", "kJ", 1 / 4.184),
            ("kJ", "kcal", 4.184),
            ("hartree", "eV", 1 / 27.211386),
            ("eV", "hartree", 27.211386),
            ("hartree", "kcal/mol", 1 / 627.5095),
            ("kcal/mol", "hartree", 627.5095),
            ("eV", "kcal/mol", 1 / 23.0605),
            ("kcal/mol", "eV", 23.0605),
            ("horsepower", "kilowatts", 1.3410221),
            ("kilowatts", "horsepower", 0.7456999),
            ("BTU per hour", "watts", 3.412142),
            ("miles", "kilometres", 1 / 1.609344),
            ("kilometres", "miles", 1.609344),
            ("psi", "kPa", 1 / 6.894757),
            ("kPa", "psi", 6.894757),
            ("cubic bohr", "cubic angstrom", 6.748334),
            ("cubic angstrom", "cubic bohr", 1 / 6.748334),
            ("angstrom", "bohr", 0.529177),
            ("bohr", "angstrom", 1 / 0.529177),
            ("minutes", "hours", 60.0),
            ("hours", "minutes", 1 / 60.0),
            ("seconds", "hours", 3600.0),
        )
    ),
    Rule("doubled", "label = 2 x expected", 2.0),
    Rule("halved", "label = expected / 2", 0.5),
)


@dataclass(frozen=True)
class Pattern:
    """A rule that several suspects fit.

    positions : the rows that fit it; ``corrected`` : their labels with the error undone.
    by_accident : how many were to be expected to fit it by accident; p_value : of so many or more.
    """

    name: str
    words: str
    positions: IntArray
    corrected: FloatArray
    by_accident: float
    p_value: float
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """For people: ``14 suspects fit label = 1000 x expected``."""
        return f"{self.positions.size} suspects fit {self.words}"


Finder = Callable[[IntArray], list[Pattern]]


def find_patterns(
    label: FloatArray,
    expected: FloatArray,
    variance: FloatArray,
    suspect: NDArray[np.bool_],
    groups: Mapping[str, Sequence[Any]] | None = None,
) -> list[Pattern]:
    """Rules that explain suspects, the best supported first; each suspect belongs to one pattern at most.

    variance : of the expected label. groups : categories by column, for offsets that concern one of them.
    """
    usable = suspect & np.isfinite(label) & np.isfinite(expected)
    left = np.flatnonzero(usable)
    if left.size < 2:
        return []
    found: list[Pattern] = []
    # What has a name is looked for first; a factor of no known meaning explains only what is left.
    named: list[Finder] = [
        lambda at: _rule_patterns(label, expected, variance, at),
        lambda at: _stuck(label, expected, at),
        lambda at: _swaps(label, expected, variance, at),
        lambda at: _group_offsets(label, expected, variance, at, groups or {}),
    ]
    unnamed: list[Finder] = [lambda at: _common_factor(label, expected, variance, at)]
    for finders in (named, unnamed):
        while left.size >= 2:
            candidates = [pattern for finder in finders for pattern in finder(left)]
            if not candidates:
                break
            # Of equally improbable ones, the rule that more suspects fit, then the simpler one, which comes first.
            best = min(candidates, key=lambda pattern: (pattern.p_value, -pattern.positions.size))
            found.append(best)
            left = np.setdiff1d(left, best.positions)
    return found


def _fits(
    rule: Rule, label: FloatArray, expected: FloatArray, variance: FloatArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which labels are explained by a rule; broadcasts."""
    corrected = rule.undo(label)
    after = np.abs(corrected - expected)
    before = np.abs(label - expected)
    window = FIT_Z * np.sqrt(variance)
    return (after <= window) & (before >= LEAST_IMPROVEMENT * after) & (before >= RESOLUTION * window), corrected


def _rule_patterns(label: FloatArray, expected: FloatArray, variance: FloatArray, at: IntArray) -> list[Pattern]:
    patterns = []
    for rule in RULES:
        fits, corrected = _fits(rule, label[at], expected[at], variance[at])
        count = int(np.count_nonzero(fits))
        if count < LEAST_SUSPECTS:
            continue
        accidental = _near_misses((corrected - expected[at]) / np.sqrt(variance[at]))
        p_value = float(poisson.sf(count - 1, accidental)) * len(RULES)
        if p_value <= SIGNIFICANCE:
            details = {"factor": rule.factor, "offset": rule.offset}
            patterns.append(Pattern(rule.name, rule.words, at[fits], corrected[fits], accidental, p_value, details))
    return patterns


def _near_misses(z: FloatArray) -> float:
    """Accidental fits to expect inside ``FIT_Z``, judged by how many lie outside, within 2, 5 and 10 such widths."""
    size = np.abs(z)
    near, further, far = (np.count_nonzero((size > FIT_Z) & (size <= FIT_Z * (1 + reach))) for reach in (2, 5, 10))
    return max(near / 2.0, further / 5.0, (far + 1.0) / 10.0)


def _common_factor(label: FloatArray, expected: FloatArray, variance: FloatArray, at: IntArray) -> list[Pattern]:
    """Several suspects off by one and the same factor, whatever it means."""
    std = np.sqrt(variance[at])
    usable = (label[at] * expected[at] > 0) & (FIT_Z * std < 0.2 * np.abs(expected[at]))
    at, std = at[usable], std[usable]
    if at.size < LEAST_UNNAMED:
        return []
    logs = np.log(label[at] / expected[at])
    relative = std / np.abs(expected[at])
    center = _densest(logs, relative)
    z = (logs - center) / relative
    members = np.abs(z) <= FIT_Z
    count = int(np.count_nonzero(members))
    if count < LEAST_UNNAMED or abs(center) < RESOLUTION * FIT_Z * float(np.median(relative[members])):
        return []
    accidental = _near_misses(z)
    # Any of them could have been the centre, which was put where it suits them best.
    p_value = float(poisson.sf(count - 2, accidental)) * at.size
    if p_value > SIGNIFICANCE:
        return []
    factor = float(np.exp(center))
    words = f"label = {factor:.4g} x expected"
    details = {"factor": factor, "offset": 0.0}
    return [Pattern("factor", words, at[members], label[at[members]] / factor, accidental, p_value, details)]


def _densest(logs: FloatArray, relative: FloatArray) -> float:
    """Median of the largest group of values around one of them; of many, only some are tried as centres."""
    best: FloatArray = logs[:1]
    for k in evenly_spread(logs.size, MOST_CENTRES):
        close = np.abs(logs - logs[k]) <= FIT_Z * np.sqrt(0.5 * (relative[k] ** 2 + relative**2))
        if np.count_nonzero(close) > best.size:
            best = logs[close]
    return float(np.median(best))


def _stuck(label: FloatArray, expected: FloatArray, at: IntArray) -> list[Pattern]:
    """Several suspects with exactly the same label: a dead sensor, a default value."""
    values, counts = np.unique(label[at], return_counts=True)
    best = int(np.argmax(counts))
    count = int(counts[best])
    if count < LEAST_SUSPECTS:
        return []
    members = at[label[at] == values[best]]
    # How often two labels coincide in the whole table, for labels that are rounded.
    everywhere = np.unique(label[np.isfinite(label)], return_counts=True)[1]
    chance = float(np.sum((everywhere / everywhere.sum()) ** 2))
    p_value = float(binom.sf(count - 2, at.size - 1, min(chance, 1.0))) * values.size
    if p_value > SIGNIFICANCE:
        return []
    words = f"label = {values[best]:.6g}, the same value each time (a dead sensor or a default)"
    return [
        Pattern("stuck", words, members, expected[members], chance * at.size, p_value, {"value": float(values[best])})
    ]


def _swaps(label: FloatArray, expected: FloatArray, variance: FloatArray, at: IntArray) -> list[Pattern]:
    """Pairs of suspects each of which has the label that was expected of the other."""
    if at.size < 2:
        return []

    def fit(one: IntArray, other: IntArray) -> NDArray[np.bool_]:
        error = np.abs(label[one] - expected[other])
        own = np.abs(label[one] - expected[one])
        window = FIT_Z * np.sqrt(variance[other])
        return (error <= window) & (own >= LEAST_IMPROVEMENT * error) & (own >= RESOLUTION * window)

    some = at[:ACCIDENT_SUSPECTS]
    one, other = (grid.ravel() for grid in np.meshgrid(some, some, indexing="ij"))
    once = fit(one, other)
    mutual = once & fit(other, one) & (one < other)
    close = np.abs(one - other) <= NEIGHBOURING
    # A swap by accident needs two accidents.
    apart = one != other
    single = (np.count_nonzero(once & ~mutual) + 0.5) / (np.count_nonzero(apart) + 1.0)
    patterns = []
    for where, words in ((close, "labels of two neighbouring rows swapped"), (apart, "labels of two rows swapped")):
        taken: set[int] = set()
        pairs: list[tuple[int, int]] = []
        for first, second in zip(one[mutual & where].tolist(), other[mutual & where].tolist(), strict=True):
            if first not in taken and second not in taken:
                pairs.append((first, second))
                taken |= {first, second}
        tried = int(np.count_nonzero(where & (one < other)))
        p_value = float(binom.sf(len(pairs) - 1, max(tried, 1), min(single**2, 1.0)))
        if not pairs or p_value > SIGNIFICANCE:
            continue
        positions = np.array([row for pair in pairs for row in pair], dtype=np.intp)
        corrected = np.array([label[row] for first, second in pairs for row in (second, first)])
        order = np.argsort(positions)
        accidental = 2.0 * tried * single**2
        patterns.append(
            Pattern("swapped", words, positions[order], corrected[order], accidental, p_value, {"pairs": pairs})
        )
    return patterns


def _group_offsets(
    label: FloatArray, expected: FloatArray, variance: FloatArray, at: IntArray, groups: Mapping[str, Sequence[Any]]
) -> list[Pattern]:
    """Suspects of one category that are all off by the same amount."""
    error = label - expected
    patterns: list[Pattern] = []
    tests = 0
    for column, values in groups.items():
        column_values = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
        categories = column_values.iloc[at].astype(object)
        counts = categories.value_counts()
        for category, count in counts.items():
            if count < LEAST_SUSPECTS:
                continue
            tests += 1
            members = at[(categories == category).to_numpy()]
            offset = float(np.median(error[members]))
            spread = np.sqrt(variance[members])
            same = members[np.abs(error[members] - offset) <= FIT_Z * spread]
            if same.size < max(LEAST_SUSPECTS, 0.6 * members.size) or abs(offset) < RESOLUTION * FIT_Z * np.median(
                spread
            ):
                continue
            accidental = _near_misses((error[members] - offset) / spread)
            # One member sets the offset.
            p_value = float(poisson.sf(same.size - 2, accidental))
            shown = str(category) if len(str(category)) <= 60 else str(category)[:59] + "…"
            words = f"label = expected {offset:+.4g} where {column} is {shown}"
            patterns.append(
                Pattern(
                    "offset",
                    words,
                    same,
                    label[same] - offset,
                    accidental,
                    p_value,
                    {"column": column, "category": shown, "offset": offset},
                )
            )
    return [pattern for pattern in patterns if pattern.p_value * max(tests, 1) <= SIGNIFICANCE]


def pattern_of_rows(patterns: Sequence[Pattern], size: int) -> tuple[list[str], FloatArray]:
    """For every row the pattern it belongs to (or nothing) and its corrected label (or NaN)."""
    words, corrected = [""] * size, np.full(size, np.nan)
    for pattern in patterns:
        for position, value in zip(pattern.positions, pattern.corrected, strict=True):
            words[int(position)], corrected[int(position)] = pattern.words, value
    return words, corrected


def confidence_words(p_value: float) -> str:
    """How sure a pattern is, in words."""
    if p_value < norm.sf(6.0):
        return "practically certain"
    return "very likely" if p_value < 1e-4 else "likely"
