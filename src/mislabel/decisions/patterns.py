"""Systematic errors among the suspects: a unit, a sign, two rows swapped, one group shifted.

A pattern is a rule that turns what was expected into what was written. It is proposed where the labels are much more likely
under the rule than as wrong labels of no rule, as labels that broke any other rule, or as labels that broke this rule but
belong to other rows: a Bayes factor that has to pay for every rule that was tried. A suspect belongs to a rule only where its
own label says so clearly. A wrong suggestion is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, norm

from mislabel._common.spreading import evenly_spread
from mislabel.decisions.evidence import FloatArray
from mislabel.decisions.pattern_density import LARGEST, IntArray, Suspects, support
from mislabel.decisions.pattern_rules import PLAIN_RULES, RULES, Rule, rules_for, without_float_noise

__all__ = ["RULES", "Pattern", "Rule", "confidence_words", "find_patterns"]

#: A label belongs to a group around a value when it lies within so many standard deviations of it.
FIT_Z = 3.0
#: Labels that a rule concerns are off by at least so many standard deviations: others are nearly right, and any rule fits.
RESOLUTION = 4.0
#: ... those of an offset or a factor of no name, by so many.
RESOLUTION_UNNAMED = 8.0
#: A factor can be told where the expectation is so many standard deviations from zero.
AWAY_FROM_ZERO = 3.0
#: ... and a label may belong to a factor that others tell, where its expectation is so many from zero.
BARELY_AWAY_FROM_ZERO = 2.0
#: ... one of no name, so many.
AWAY_FROM_ZERO_UNNAMED = 15.0
#: Log odds from which a suspect belongs to a rule.
CLEAR = 3.0
#: Weight of rival rules that no other suspects speak for, once there is a rule.
UNSUPPORTED = 0.05
#: Suspects that a rule must fit, and how unlikely that must be by accident (all rules together).
LEAST_SUSPECTS = 3
#: A factor that is not in the list needs more.
LEAST_UNNAMED = 5
#: Rows at most so far apart in the file are neighbours.
NEIGHBOURING = 2
SIGNIFICANCE = 0.01
#: ... for equal labels, which rounding makes too.
SIGNIFICANCE_STUCK = 0.001
#: Suspects of which every pair is tried as swapped.
ACCIDENT_SUSPECTS = 400
#: Values that are tried as the centre of a common factor.
MOST_CENTRES = 2000
#: Range of logarithms in which a common factor may lie.
FACTOR_RANGE = 20.0
#: Suspects of a category that must share its offset.
OFFSET_SHARE = 0.6


@dataclass(frozen=True)
class Pattern:
    """A rule that several suspects fit.

    positions : the rows that fit it; ``corrected`` : their labels with the error undone.
    by_accident : how many of them are to be expected to fit it by accident.
    p_value : bound on the probability of a pattern so clear where there is none, for all rules that were tried.
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


@dataclass(frozen=True, eq=False)
class _Categories:
    """One column of categories at the suspects.

    positions : of the suspects. codes : for each of them the position of its category in ``shown``.
    """

    name: str
    shown: list[str]
    positions: IntArray
    codes: IntArray

    @classmethod
    def of(cls, name: str, values: Sequence[Any], positions: IntArray) -> _Categories:
        """Categories by what they look like: values need not be hashable."""
        column = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
        text = [_shown(value) for value in column.iloc[positions].astype(object)]
        shown = sorted(set(text))
        code_of = {category: code for code, category in enumerate(shown)}
        return cls(name, shown, positions, np.array([code_of[category] for category in text], dtype=np.intp))

    def members(self, positions: IntArray) -> Iterator[tuple[str, IntArray]]:
        """Each category and which of the suspects at these positions are of it."""
        codes = self.codes[np.searchsorted(self.positions, positions)]
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(self.shown)))
        yield from zip(self.shown, np.split(order, ends[:-1]), strict=True)


Finder = Callable[[Suspects], list[Pattern]]


def find_patterns(
    label: FloatArray,
    expected: FloatArray,
    variance: FloatArray,
    suspect: NDArray[np.bool_],
    groups: Mapping[str, Sequence[Any]] | None = None,
    *,
    name: str = "",
    degrees: float = float("inf"),
) -> list[Pattern]:
    """Rules that explain suspects, the best supported first; each suspect belongs to one pattern at most.

    variance, degrees : of a clean label around the expected one, a Student-t with so many degrees of freedom.
    groups : categories by column, for offsets that concern one of them.
    name : of the label; units are named only where it speaks of their quantity, or of nothing known.
    """
    left = _suspects(label, expected, variance, suspect, degrees, rules_for(name))
    columns = [_Categories.of(column, values, left.positions) for column, values in (groups or {}).items()]
    # What has a name is looked for first; a factor of no known meaning explains only what is left.
    named: list[Finder] = [
        _rule_patterns,
        _stuck,
        _swaps,
        lambda suspects: _group_offsets(suspects, columns),
    ]
    unnamed: list[Finder] = [_common_factor]
    found: list[Pattern] = []
    for finders in (named, unnamed):
        while left.size >= 2:
            candidates = [pattern for finder in finders for pattern in finder(left)]
            if not candidates:
                break
            # Of equally improbable ones, the rule that more suspects fit, then the simpler one, which comes first.
            best = min(candidates, key=lambda pattern: (pattern.p_value, -pattern.positions.size))
            found.append(best)
            left = left.without(best.positions)
    return found


def _suspects(
    label: FloatArray,
    expected: FloatArray,
    variance: FloatArray,
    suspect: NDArray[np.bool_],
    degrees: float,
    rules: tuple[Rule, ...],
) -> Suspects:
    """The suspects of which something can be said: finite numbers, none so large that its square overflows."""
    std = np.sqrt(np.where(variance > 0.0, variance, np.nan))
    usable = np.ones(label.size, dtype=bool)
    for values in (label, expected, std):
        usable &= np.isfinite(values) & (np.abs(values) < LARGEST)
    # Numbers have 16 digits: nothing is sharper.
    std = np.maximum(std, 1e-12 * np.abs(np.where(usable, expected, 0.0)) + 1.0 / LARGEST)
    at, other = np.flatnonzero(usable & suspect), np.flatnonzero(usable & ~suspect)
    return Suspects(at, label[at], expected[at], std[at], label[other], expected[other], std[other], degrees, rules)


def _pattern(
    words: tuple[str, str],
    positions: IntArray,
    corrected: FloatArray,
    odds: FloatArray,
    log_p: float,
    details: dict[str, Any],
) -> Pattern:
    """A pattern from the log odds of those that fit it; ``words`` are its name and what it says."""
    accidental = float(np.sum(1.0 / (1.0 + np.exp(np.clip(odds, -50.0, 50.0)))))
    p_value = float(np.exp(min(log_p, 0.0)))
    return Pattern(*words, positions, without_float_noise(corrected), accidental, p_value, details)


@dataclass(frozen=True, eq=False)
class _Explanation:
    """A rule as it explains suspects: log densities of their labels, standardised errors left, and how far these reach.

    reach : the width on a logarithmic scale of what counts as explained.
    """

    density: FloatArray
    z: FloatArray
    reach: FloatArray


def _explained(suspects: Suspects, rule: Rule, wider: float = 1.0) -> _Explanation:
    std = wider * suspects.std
    z = (rule.undo(suspects.label) - suspects.expected) / std
    reach = FIT_Z * std * abs(rule.factor) / np.maximum(np.abs(suspects.error), std)
    density = suspects.clean(rule.undo(suspects.label), suspects.expected, std) - np.log(abs(rule.factor))
    return _Explanation(density, z, reach)


def _members(
    suspects: Suspects,
    rule: _Explanation,
    rivals: FloatArray,
    able: IntArray,
    price: float,
    vague: IntArray | None = None,
) -> tuple[IntArray, FloatArray, float]:
    """Suspects that follow a rule, their log odds, and the logarithm of a bound on its p-value.

    rivals : the largest log density of each label under any other rule. able : suspects that speak for or against the rule.
    vague : suspects whose expectation is too vague for that, but which may belong to a rule that others established.
    """
    near = np.abs(rule.z) <= FIT_Z
    # Most rules fail here already, without the dearer densities.
    bound = price - support((rule.density - rivals)[able])[0]
    if not np.any(near[able]) or bound > np.log(SIGNIFICANCE):
        return able[:0], rivals[:0], bound
    reach = float(np.median(rule.reach[able][near[able]]))
    other = suspects.background(np.flatnonzero(~near), reach)
    total, odds = support((rule.density - np.maximum(other, rivals))[able])
    log_p = price - total
    if log_p > np.log(SIGNIFICANCE):
        return able[:0], rivals[:0], log_p
    # Rivals that nothing else speaks for count for less now.
    gain = rule.density - np.maximum(other, rivals + np.log(UNSUPPORTED)) + odds
    at = able if vague is None else np.union1d(able, vague)
    chosen = at[gain[at] >= CLEAR]
    return chosen, gain[chosen], log_p


def _rule_patterns(suspects: Suspects) -> list[Pattern]:
    rules, rivals = suspects.rules, suspects.rivals
    off = np.abs(suspects.error) >= RESOLUTION * suspects.std
    sharp = np.abs(suspects.expected) >= AWAY_FROM_ZERO * suspects.std
    patterns = []
    vague = np.flatnonzero(off & (np.abs(suspects.expected) >= BARELY_AWAY_FROM_ZERO * suspects.std))
    for index, rule in enumerate(rules):
        able = np.flatnonzero(off if rule.offset else off & sharp)
        explained = _explained(suspects, rule)
        if np.count_nonzero(np.abs(explained.z[able]) <= FIT_Z) < LEAST_SUSPECTS:
            continue
        # Plain rules share one half of what is believed beforehand, units the other.
        price = float(np.log(2.0 * (len(PLAIN_RULES) if rule in PLAIN_RULES else len(rules) - len(PLAIN_RULES))))
        other = np.max(np.delete(rivals, index, axis=0), axis=0)
        if price - support((explained.density - other)[able])[0] > np.log(SIGNIFICANCE):
            continue
        other = np.maximum(other, suspects.with_other_rows(rule))
        chosen, odds, log_p = _members(suspects, explained, other, able, price, vague)
        if chosen.size < LEAST_SUSPECTS:
            continue
        corrected = rule.undo(suspects.label[chosen])
        details = {"factor": rule.factor, "offset": rule.offset}
        patterns.append(_pattern((rule.name, rule.words), suspects.positions[chosen], corrected, odds, log_p, details))
    return patterns


def _common_factor(suspects: Suspects) -> list[Pattern]:
    """Several suspects off by one and the same factor, whatever it means."""
    able = np.flatnonzero(
        (suspects.label * np.sign(suspects.expected) > 0.0)
        & (np.abs(suspects.expected) >= AWAY_FROM_ZERO_UNNAMED * suspects.std)
        & (np.abs(suspects.error) >= RESOLUTION_UNNAMED * suspects.std)
    )
    if able.size < LEAST_UNNAMED:
        return []
    label, expected, std = suspects.label[able], suspects.expected[able], suspects.std[able]
    logs, relative = np.log(np.abs(label)) - np.log(np.abs(expected)), std / np.abs(expected)
    alike = _densest(logs, relative)
    if alike.size < LEAST_UNNAMED:
        return []
    rule = Rule("factor", "", float(np.exp(np.median(logs[alike]))), quantity="any")
    others = suspects.with_other_rows(rule)
    rivals = np.maximum(np.max(suspects.rivals, axis=0), others)
    # So many factors could have been told apart.
    price = float(np.log(FACTOR_RANGE / np.median(relative[alike])))
    explained = _explained(suspects, rule, np.sqrt(1.0 + 1.0 / alike.size))
    chosen, odds, log_p = _members(suspects, explained, rivals, able, price)
    if chosen.size < LEAST_UNNAMED:
        return []
    words = ("factor", f"label = {rule.factor:.4g} x expected")
    details = {"factor": rule.factor, "offset": 0.0}
    return [_pattern(words, suspects.positions[chosen], rule.undo(suspects.label[chosen]), odds, log_p, details)]


def _densest(logs: FloatArray, relative: FloatArray) -> IntArray:
    """The largest group of values around one of them; of many, only some are tried as centres."""
    best = np.zeros(0, dtype=np.intp)
    for k in evenly_spread(logs.size, MOST_CENTRES):
        close = np.abs(logs - logs[k]) <= FIT_Z * np.sqrt(0.5 * (relative[k] ** 2 + relative**2))
        if np.count_nonzero(close) > best.size:
            best = np.flatnonzero(close)
    return best


def _stuck(suspects: Suspects) -> list[Pattern]:
    """Several suspects with exactly the same label: a dead sensor, a default value."""
    values, counts = np.unique(suspects.label, return_counts=True)
    best = int(np.argmax(counts))
    value, count = float(values[best]), int(counts[best])
    trusted, trusted_counts = np.unique(suspects.trusted, return_counts=True)
    # Labels of this value that nothing speaks against: it is a value that labels have.
    if count < LEAST_SUSPECTS or np.sum(trusted_counts[trusted == value]) > count:
        return []
    # How often other values coincide, for labels that are rounded.
    chance = max(
        float(np.max(np.delete(counts, best), initial=1) - 1) / suspects.size,
        float(np.max(trusted_counts[trusted != value], initial=1)) / max(suspects.trusted.size, 1),
    )
    log_p = float(binom.logsf(count - 2, suspects.size - 1, min(chance, 1.0)) + np.log(values.size))
    if log_p > np.log(SIGNIFICANCE_STUCK):
        return []
    members = suspects.label == value
    words = f"label = {value:.6g}, the same value each time (a dead sensor or a default)"
    accidental = chance * suspects.size
    return [
        Pattern(
            "stuck",
            words,
            suspects.positions[members],
            suspects.expected[members],
            accidental,
            float(np.exp(min(log_p, 0.0))),
            {"value": value},
        )
    ]


def _swaps(suspects: Suspects) -> list[Pattern]:
    """Pairs of suspects each of which has the label that was expected of the other."""
    if suspects.size < 2:
        return []
    rivals = np.maximum(np.max(suspects.rivals, axis=0), suspects.of_trusted_rows())
    other = np.maximum(suspects.background(np.arange(suspects.size)), rivals)
    off = np.abs(suspects.error) >= RESOLUTION * suspects.std
    patterns = []
    for first, second, words in _pairs(suspects.positions):
        able = off[first] & off[second]
        if not np.any(able):
            continue
        first, second = first[able], second[able]
        gain = (
            suspects.clean(suspects.label[first], suspects.expected[second], suspects.std[second])
            + suspects.clean(suspects.label[second], suspects.expected[first], suspects.std[first])
            - (other[first] + other[second])
        )
        # From one pair to all suspects.
        shares = np.geomspace(1.0, max(0.5 * suspects.size, 2.0), 4) / (able.size + 1.0)
        total, odds = support(gain, np.unique(np.minimum(shares, 0.9)))
        log_p = float(np.log(2.0) - total)
        fits = np.flatnonzero(gain + odds >= CLEAR)
        if not fits.size or log_p > np.log(SIGNIFICANCE):
            continue
        fits = fits[np.argsort(-gain[fits], kind="stable")]
        at, kept = _disjoint(first[fits], second[fits])
        positions, corrected = suspects.positions[at].ravel(), suspects.label[at[:, ::-1]].ravel()
        order = np.argsort(positions)
        details = {"pairs": [(int(one), int(two)) for one, two in suspects.positions[at]]}
        each = np.repeat(gain[fits[kept]] + odds, 2)
        patterns.append(_pattern(("swapped", words), positions[order], corrected[order], each, log_p, details))
    return patterns


def _pairs(positions: IntArray) -> Iterator[tuple[IntArray, IntArray, str]]:
    """Pairs of suspects that can have been swapped: neighbours, then any two of the first."""
    size = positions.size
    near = [(np.arange(size - step), np.arange(step, size)) for step in range(1, min(NEIGHBOURING, size - 1) + 1)]
    first, second = (np.concatenate(parts) for parts in zip(*near, strict=True))
    close = positions[second] - positions[first] <= NEIGHBOURING
    if np.any(close):
        yield first[close], second[close], "labels of two neighbouring rows swapped"
    first, second = np.triu_indices(min(size, ACCIDENT_SUSPECTS), 1)
    yield first, second, "labels of two rows swapped"


def _disjoint(first: IntArray, second: IntArray) -> tuple[IntArray, list[int]]:
    """The first pairs that share no member, and which they are."""
    taken: set[int] = set()
    pairs, kept = [], []
    for k, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if not taken & set(pair):
            pairs.append(pair)
            kept.append(k)
            taken |= set(pair)
    return np.array(pairs, dtype=np.intp), kept


def _group_offsets(suspects: Suspects, columns: Sequence[_Categories]) -> list[Pattern]:
    """Suspects of one category that are all off by the same amount."""
    categories = [
        (column.name, category, members)
        for column in columns
        for category, members in column.members(suspects.positions)
        if members.size >= LEAST_SUSPECTS
    ]
    if not categories:
        return []
    rivals = np.max(suspects.rivals, axis=0)
    patterns = []
    for column, category, members in categories:
        offset, std = float(np.median(suspects.error[members])), suspects.std[members]
        same = np.count_nonzero(np.abs(suspects.error[members] - offset) <= FIT_Z * std)
        enough = max(LEAST_SUSPECTS, OFFSET_SHARE * members.size)
        typical = float(np.median(std))
        if same < enough or abs(offset) < RESOLUTION_UNNAMED * typical:
            continue
        explained = _explained(suspects, Rule("offset", "", 1.0, offset), np.sqrt(1.0 + 1.0 / same))
        # Every category was tried, and so many offsets could have been told apart.
        price = float(np.log(len(categories)) + np.log1p(abs(offset) / typical))
        chosen, odds, log_p = _members(suspects, explained, rivals, members, price)
        if chosen.size < enough or _fitted_otherwise(suspects, chosen):
            continue
        words = ("offset", f"label = expected {offset:+.4g} where {column} is {category}")
        details = {"column": column, "category": category, "offset": offset}
        corrected = suspects.label[chosen] - offset
        patterns.append(_pattern(words, suspects.positions[chosen], corrected, odds, log_p, details))
    return patterns


def _fitted_otherwise(suspects: Suspects, at: IntArray) -> bool:
    """Whether a rule of the list explains most of these suspects too: labels that are nearly the same cannot tell."""
    label, expected, std = suspects.label[at], suspects.expected[at], suspects.std[at]
    return any(
        np.count_nonzero(np.abs(rule.undo(label) - expected) <= FIT_Z * std) > 0.5 * at.size for rule in suspects.rules
    )


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def confidence_words(p_value: float) -> str:
    """How sure a pattern is, in words."""
    if p_value < norm.sf(6.0):
        return "practically certain"
    return "very likely" if p_value < 1e-4 else "likely"
