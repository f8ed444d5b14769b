"""How many of the suspects are right labels at most, from verdicts on a random sample of them: no model is needed for that.

Suspects are drawn in random order without replacement, and each is found to be right or wrong. If K of N suspects are right
labels, the verdicts so far are hypergeometric. A prior on K turns them into a posterior; by Ville's inequality, the ratio of
prior and posterior at the true K ever exceeds ``1 / alpha`` with a probability of at most ``alpha``, whatever the prior
(Waudby-Smith and Ramdas 2020). So the bound holds at every moment: looking at it after each verdict, and stopping when one
likes, is allowed.

Bounds for the suspects of highest score, at several depths, share the error probability; together they bound any set of suspects
(Goeman and Solari 2011): of those inside such a depth no more are right than its bound says, of those outside all may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from mislabel.errors import InvalidParameterError

#: Share of the error probability that goes to the bound for all suspects; the depths share the rest.
FOR_ALL = 0.5
#: Depths with fewer suspects have no bound of their own.
LEAST_DEPTH = 8

IntArray = NDArray[np.intp]


def log_hypergeometric(total: int, right: IntArray, drawn: int, found: int) -> NDArray[np.float64]:
    """Logarithm of the probability of ``found`` right ones among ``drawn``, if ``right`` of ``total`` are; -inf if impossible."""
    wrong = total - right
    possible = (right >= found) & (wrong >= drawn - found)
    a, b = np.maximum(right, found), np.maximum(wrong, drawn - found)
    logs = (
        gammaln(a + 1.0)
        - gammaln(a - found + 1.0)
        + gammaln(b + 1.0)
        - gammaln(b - (drawn - found) + 1.0)
        - gammaln(total + 1.0)
        + gammaln(total - drawn + 1.0)
        + gammaln(drawn + 1.0)
        - gammaln(found + 1.0)
        - gammaln(drawn - found + 1.0)
    )
    return np.where(possible, logs, -np.inf)


def most_right(total: int, drawn: int, found: int, alpha: float, expected: float) -> int:
    """The most of ``total`` that are right, at all times with probability ``1 - alpha``, after a random sample.

    drawn, found : verdicts so far, and how many of them say "right". expected : share of right ones that is believed in
        beforehand; the bound holds whatever it is, and is sharpest near the truth.
    """
    counts = np.arange(total + 1)
    weight = (1.0 - expected) / expected
    prior = (
        gammaln(total + 1.0)
        - gammaln(counts + 1.0)
        - gammaln(total - counts + 1.0)
        + betaln(counts + 1.0, total - counts + weight)
        - betaln(1.0, weight)
    )
    likelihood = log_hypergeometric(total, counts, drawn, found)
    evidence = np.logaddexp.reduce(prior + likelihood)
    # prior / posterior = evidence / likelihood
    return int(counts[likelihood > evidence + np.log(alpha)].max())


def depths_of(total: int) -> list[int]:
    """How many of the most suspicious have a bound of their own: all, half of them, a quarter, ..."""
    found = [total]
    while found[-1] // 2 >= LEAST_DEPTH:
        found.append(found[-1] // 2)
    return found


def sample_order(count: int, seed: int) -> IntArray:
    """The random order in which suspects are put to a reviewer."""
    return np.random.default_rng(seed).permutation(count)


@dataclass(frozen=True)
class Bound:
    """At most ``right`` of ``size`` suspects are right labels."""

    right: int
    size: int

    @property
    def share(self) -> float:
        """As a share; zero for none."""
        return self.right / self.size if self.size else 0.0


@dataclass(frozen=True, eq=False)
class Certificate:
    """What verdicts say of the suspects, the most suspicious first.

    count : suspects. order : in which they were drawn. verdicts : True for a right label, by place among the suspects; those on
        the first of the order, without a gap, are the random sample.
    confidence : of all bounds together. expected : share of right labels that was promised.
    """

    count: int
    order: IntArray
    verdicts: Mapping[int, bool]
    confidence: float = 0.95
    expected: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise InvalidParameterError(f"confidence must lie between 0 and 1, got {self.confidence!r}.")

    @cached_property
    def sample(self) -> IntArray:
        """Suspects of the random sample, in the order of their verdicts."""
        known = np.array([int(place) in self.verdicts for place in self.order], dtype=bool)
        drawn = int(np.argmin(known)) if not known.all() else self.order.size
        return self.order[:drawn]

    @property
    def found_right(self) -> int:
        """Right labels in the sample."""
        return sum(self.verdicts[int(place)] for place in self.sample)

    def next(self, size: int = 10) -> IntArray:
        """The suspects to look at next, in this order."""
        drawn = self.sample.size
        return self.order[drawn : drawn + size]

    @cached_property
    def _bounds(self) -> dict[int, int]:
        """The most right labels among the first so many suspects, by depth; verdicts outside the sample count, too."""
        depths = depths_of(self.count) if self.count else []
        found: dict[int, int] = {}
        for number, depth in enumerate(depths):
            share = FOR_ALL if number == 0 else (1.0 - FOR_ALL) / (len(depths) - 1)
            alpha = (1.0 - self.confidence) * (share if len(depths) > 1 else 1.0)
            inside = self.sample[self.sample < depth]
            right = sum(self.verdicts[int(place)] for place in inside)
            found[depth] = most_right(depth, inside.size, right, alpha, self.expected)
        return found

    @cached_property
    def _known(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which suspects are known to be right, and which to be wrong."""
        right, wrong = np.zeros(self.count, dtype=bool), np.zeros(self.count, dtype=bool)
        for place, verdict in self.verdicts.items():
            (right if verdict else wrong)[place] = True
        return right, wrong

    def bound(self, places: Sequence[int] | IntArray | None = None) -> Bound:
        """For all suspects, or for any set of them that you pick, also after looking at the verdicts."""
        chosen = np.arange(self.count) if places is None else np.unique(np.asarray(places, dtype=np.intp))
        right, wrong = self._known
        inside = np.zeros(self.count, dtype=bool)
        inside[chosen] = True
        most = int(np.count_nonzero(inside & ~wrong))
        for depth, limit in self._bounds.items():
            # Right ones found elsewhere in the depth leave fewer for the set.
            left = limit - int(np.count_nonzero(right[:depth] & ~inside[:depth]))
            most = min(most, left + int(np.count_nonzero(inside[depth:] & ~wrong[depth:])))
        return Bound(max(most, int(np.count_nonzero(inside & right))), chosen.size)

    def cut(self, share: float | None = None) -> int:
        """How many of the most suspicious may be called wrong so that at most this share of them is right; zero for none."""
        share = self.expected if share is None else share
        sizes = np.arange(self.count + 1)
        right, wrong = (np.concatenate([[0], np.cumsum(known)]) for known in self._known)
        most = sizes - wrong
        for depth, limit in self._bounds.items():
            # As in ``bound``, for the most suspicious of every size at once.
            left = limit - np.maximum(right[depth] - right, 0)
            most = np.minimum(most, left + np.maximum((sizes - wrong) - (depth - wrong[depth]), 0))
        holds = np.maximum(most, right) <= share * sizes
        return int(sizes[holds].max())

    def more_to_halve(self) -> int | None:
        """How many more verdicts would halve the bound for all suspects, if they go on like those so far; None if none can."""
        drawn, found = self.sample.size, self.found_right
        known = self.bound().right
        if not known:
            return None
        rate = found / drawn if drawn else self.expected
        alpha = (1.0 - self.confidence) * (FOR_ALL if len(self._bounds) > 1 else 1.0)

        def halve(more: int) -> bool:
            right = min(found + int(rate * more + 0.5), drawn + more)
            return most_right(self.count, drawn + more, right, alpha, self.expected) <= known / 2

        most = self.count - drawn
        if most <= 0 or not halve(most):
            return None
        few, enough = 0, 1
        while not halve(enough):
            few, enough = enough, min(2 * enough, most)
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if halve(middle) else (middle, enough)
        return enough
