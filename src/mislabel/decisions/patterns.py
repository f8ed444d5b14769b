"""Systematic errors among the suspects: a unit, a sign, two rows swapped, one group shifted.

A pattern is a rule that turns what was expected into what was written. A suspect fits a rule if undoing the rule brings its
label back to where it was expected. How many would fit by accident is counted on the suspects themselves, each with the
labels of all the others; only rules that many more suspects fit than that are proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, norm

from mislabel.decisions.evidence import FloatArray

IntArray = NDArray[np.intp]

#: A label fits a rule when undoing it leaves at most this many standard deviations.
FIT_Z = 3.0
#: ... and explains at least this much of how far the label was off.
LEAST_IMPROVEMENT = 3.0
#: Suspects that a rule must fit, and how unlikely that must be by accident (all rules together).
LEAST_SUSPECTS = 3
SIGNIFICANCE = 0.01
#: Labels paired with others' expectations to count accidental fits.
ACCIDENT_SUSPECTS = 400


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
    Rule("fahrenheit", "label is in degrees Fahrenheit, the others in Celsius", 1.8, 32.0),
    Rule("celsius", "label is in degrees Celsius, the others in Fahrenheit", 1 / 1.8, -32.0 / 1.8),
    Rule("kelvin", "label is in kelvin, the others in degrees Celsius", 1.0, _KELVIN),
    Rule("not kelvin", "label is in degrees Celsius, the others in kelvin", 1.0, -_KELVIN),
    *(
        Rule(f"{one} for {other}", f"label is in {one}, the others in {other}", factor)
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
        return f"{self.positions.size} suspects fit: {self.words}"


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
    finders: list[Callable[[IntArray], list[Pattern]]] = [
        lambda at: _rule_patterns(label, expected, variance, at),
        lambda at: _swaps(label, expected, variance, at),
        lambda at: _group_offsets(label, expected, variance, at, groups or {}),
    ]
    while left.size >= 2:
        candidates = [pattern for finder in finders for pattern in finder(left)]
        if not candidates:
            break
        # Ties in probability (zero) go to the rule that more suspects fit, then to the simpler one, which comes first.
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
    return (after <= FIT_Z * np.sqrt(variance)) & (before >= LEAST_IMPROVEMENT * after), corrected


def _rule_patterns(label: FloatArray, expected: FloatArray, variance: FloatArray, at: IntArray) -> list[Pattern]:
    patterns = []
    some = at if at.size <= ACCIDENT_SUSPECTS else at[:: at.size // ACCIDENT_SUSPECTS + 1]
    for rule in RULES:
        fits, corrected = _fits(rule, label[at], expected[at], variance[at])
        count = int(np.count_nonzero(fits))
        if count < LEAST_SUSPECTS:
            continue
        chosen = at[fits]
        # The rows that do not fit tell how often a wrong label fits by accident. Rows that do fit must not vouch against
        # the rule: where all suspects have it, any of their labels would fit another's expectation.
        others, _ = _fits(rule, label[some][:, None], expected[some], variance[some])
        real = np.isin(some, chosen)
        tried = ~(real[:, None] & real[None, :])
        np.fill_diagonal(tried, False)
        chance = (np.count_nonzero(others & tried) + 1.0) / (np.count_nonzero(tried) + 2.0)
        window = _window_chance(rule, label[at], expected[at], variance[at])
        chance = min(max(chance, window), 1.0)
        p_value = float(binom.sf(count - 1, at.size, chance)) * len(RULES)
        if p_value <= SIGNIFICANCE:
            words = rule.words
            patterns.append(
                Pattern(rule.name, words, chosen, corrected[fits], chance * at.size, p_value, {"factor": rule.factor, "offset": rule.offset})
            )
    return patterns


def _window_chance(rule: Rule, label: FloatArray, expected: FloatArray, variance: FloatArray) -> float:
    """Chance of a fit if wrong labels were spread evenly, on a logarithmic scale, between the extremes seen."""
    width = np.abs(rule.factor) * 2.0 * FIT_Z * np.sqrt(variance)
    spread = max(float(np.ptp(label)), float(np.ptp(expected)), float(np.max(np.abs(expected))))
    if spread == 0.0:
        return 1.0
    size = np.maximum(np.abs(rule.factor * expected + rule.offset), width)
    return float(np.mean(np.minimum(1.0, width / np.minimum(spread, 4.0 * size))))


def _swaps(label: FloatArray, expected: FloatArray, variance: FloatArray, at: IntArray) -> list[Pattern]:
    """Pairs of suspects each of which has the label that was expected of the other, next to each other in the file."""
    if at.size < 2:
        return []

    def fit(one: IntArray, other: IntArray) -> NDArray[np.bool_]:
        error = np.abs(label[one] - expected[other])
        own = np.abs(label[one] - expected[one])
        return (error <= FIT_Z * np.sqrt(variance[other])) & (own >= LEAST_IMPROVEMENT * error)

    near = np.flatnonzero(np.diff(at) <= 2)
    pairs = [(int(at[k]), int(at[k + 1])) for k in near]
    taken: set[int] = set()
    swapped: list[tuple[int, int]] = []
    for one, other in pairs:
        if one in taken or other in taken:
            continue
        first, second = np.array([one]), np.array([other])
        if fit(first, second)[0] and fit(second, first)[0]:
            swapped.append((one, other))
            taken |= {one, other}
    if not swapped:
        return []
    some = at[:ACCIDENT_SUSPECTS]
    one, other = (grid.ravel() for grid in np.meshgrid(some, some, indexing="ij"))
    apart = np.abs(one - other) > 2
    hits = np.count_nonzero(fit(one[apart], other[apart]) & fit(other[apart], one[apart]))
    chance = (hits + 1.0) / (np.count_nonzero(apart) + 2.0)
    p_value = float(binom.sf(len(swapped) - 1, max(len(pairs), 1), min(chance, 1.0)))
    if p_value > SIGNIFICANCE:
        return []
    positions = np.array([row for pair in swapped for row in pair], dtype=np.intp)
    corrected = np.array([label[row] for one, other in swapped for row in (other, one)])
    order = np.argsort(positions)
    words = "the labels of two neighbouring rows were swapped"
    return [
        Pattern("swapped", words, positions[order], corrected[order], chance * len(pairs), p_value, {"pairs": swapped})
    ]


def _group_offsets(
    label: FloatArray, expected: FloatArray, variance: FloatArray, at: IntArray, groups: Mapping[str, Sequence[Any]]
) -> list[Pattern]:
    """Suspects of one category that are all off by the same amount."""
    error = label - expected
    patterns: list[Pattern] = []
    tests = 0
    for column, values in groups.items():
        categories = pd.Series(list(values), dtype=object)[at]
        counts = categories.value_counts()
        for category, count in counts.items():
            if count < LEAST_SUSPECTS:
                continue
            tests += 1
            members = at[(categories == category).to_numpy()]
            offset = float(np.median(error[members]))
            spread = np.sqrt(variance[members])
            same = members[np.abs(error[members] - offset) <= FIT_Z * spread]
            rest = np.setdiff1d(at, members)
            if same.size < max(LEAST_SUSPECTS, 0.6 * members.size) or abs(offset) < LEAST_IMPROVEMENT * np.median(spread):
                continue
            # A wrong label anywhere lies as close to this offset with this chance; without others, the window's share.
            span = max(float(np.ptp(error[at])), 2.0 * abs(offset))
            window = float(np.mean(np.minimum(1.0, 2.0 * FIT_Z * spread / span)))
            seen = np.mean(np.abs(error[rest] - offset) <= FIT_Z * np.sqrt(variance[rest])) if rest.size >= 10 else 0.0
            chance = min(max(window, float(seen)), 1.0)
            # One member sets the offset.
            p_value = float(binom.sf(same.size - 2, members.size - 1, chance))
            shown = str(category) if len(str(category)) <= 60 else str(category)[:59] + "…"
            words = f"label = expected {offset:+.4g} where {column} is {shown}"
            patterns.append(
                Pattern(
                    "offset",
                    words,
                    same,
                    label[same] - offset,
                    chance * members.size,
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
