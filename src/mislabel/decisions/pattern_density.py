"""How likely the labels of suspects are: under a rule, and as wrong labels of no rule.

A rule turns the predictive density of a clean label, a Student-t around what was expected, into a density of the label that was
written. What speaks for the rule is this density over that of a wrong label of no rule, which is taken as the largest of several:
the clean label itself, errors and labels and ratios like those of the other suspects, any label of the table. A density that is
too large makes patterns rarer, never more frequent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from mislabel._common.robust import robust_std
from mislabel._common.spreading import evenly_spread
from mislabel.decisions.evidence import FloatArray
from mislabel.decisions.pattern_rules import Rule

IntArray = NDArray[np.intp]

#: Numbers beyond this are not errors of any rule, and their squares overflow.
LARGEST = 1e100
#: Tails of the predictive density are at least as heavy as with so many degrees of freedom.
MOST_DEGREES = 30.0
#: How often the expectation of a suspect is worth nothing, so that any label of the table may have been meant.
FAILED_EXPECTATION = 0.5
#: ... in a unit that is not usual.
FAILED_UNIT = 0.05
#: Weight of "this rule, but with the expectation of another row" as a wrong label of no rule. Powers of ten carry labels to where
#: no others are, units less so; other rules carry them to where a label of another row may well be, and weigh one.
OTHER_ROW_POWER, OTHER_ROW_UNIT = 0.05, 0.2
#: Bandwidths of densities on logarithmic scales.
BANDWIDTHS = (0.1, 0.5)
#: Weight of one further observation anywhere within e^-20 to e^20.
_ANYWHERE = -np.log(40.0)
#: Densities at more values than this are interpolated between so many.
MOST_EXACT = 500
_MOST_CENTRES = 200
_NEVER = -1e6


@dataclass(frozen=True, eq=False)
class Suspects:
    """Suspects and the trusted labels beside them.

    positions : of the suspects. label, expected, std : theirs; std of a clean label around its expectation.
    trusted : labels that are not suspect; trusted_expected, trusted_std : what was expected of them.
    degrees : of freedom of the Student-t. rules : that any of the labels may have broken.
    """

    positions: IntArray
    label: FloatArray
    expected: FloatArray
    std: FloatArray
    trusted: FloatArray
    trusted_expected: FloatArray
    trusted_std: FloatArray
    degrees: float
    rules: tuple[Rule, ...]

    @property
    def size(self) -> int:
        """How many suspects there are."""
        return self.positions.size

    def without(self, positions: IntArray) -> Suspects:
        """The suspects that are left when some were explained."""
        left = ~np.isin(self.positions, positions)
        return replace(
            self,
            positions=self.positions[left],
            label=self.label[left],
            expected=self.expected[left],
            std=self.std[left],
        )

    @cached_property
    def error(self) -> FloatArray:
        """Label less expected."""
        return self.label - self.expected

    def background(self, others: IntArray, reach: float = 0.0) -> FloatArray:
        """Log density of each label as a wrong one like those of some suspects, or as a right one; the largest of several.

        reach : least bandwidth on logarithmic scales. What lies so close to a rule follows it or does so by accident, and must be
            judged by what lies further away.
        """
        parts = [
            self.clean(self.label, self.expected, self.std),
            _signed_density(self.error, float(np.median(self.std)), others, reach),
            _signed_density(self.label - self._center, self._spread, others, reach),
            self.marginal(self.label),
            self._ratios(others, reach),
        ]
        return np.asarray(np.max(parts, axis=0))

    def clean(self, label: FloatArray, expected: FloatArray, std: FloatArray) -> FloatArray:
        """Log density of a right label; broadcasts."""
        nu = min(self.degrees, MOST_DEGREES)
        z = np.clip((label - expected) / std, -LARGEST, LARGEST)
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu)
        return np.asarray(constant - np.log(std) - 0.5 * (nu + 1.0) * np.log1p(z**2 / nu))

    def under(self, rule: Rule) -> FloatArray:
        """Log density of each label if it broke the rule."""
        return np.asarray(self.clean(rule.undo(self.label), self.expected, self.std) - np.log(abs(rule.factor)))

    def with_other_rows(self, rule: Rule) -> FloatArray:
        """Log density of each label if it broke the rule, with the expectation of any other row."""
        undone = rule.undo(self.label)
        density = self._of_trusted_rows(undone)
        if self.size > MOST_EXACT:
            density = np.maximum(
                density, _interpolated(lambda some: self._of_rows(some, self.expected, self.std), undone)
            )
        elif self.size > 1:
            chosen = evenly_spread(self.size, _MOST_CENTRES)
            logs = self.clean(undone[:, None], self.expected[chosen], self.std[chosen])
            logs[np.arange(self.size)[:, None] == chosen] = _NEVER
            density = np.maximum(density, _log_sum(logs) - np.log(chosen.size - 1.0))
        return np.asarray(density - np.log(abs(rule.factor)) + np.log(_other_row_weight(rule)))

    def of_trusted_rows(self) -> FloatArray:
        """Log density of each label as that of any row that is not suspect."""
        return self._of_trusted_rows(self.label)

    def _of_trusted_rows(self, label: FloatArray) -> FloatArray:
        if not self.trusted.size:
            return np.full(label.size, _NEVER)
        return _interpolated(lambda some: self._of_rows(some, self.trusted_expected, self.trusted_std), label)

    def _of_rows(self, label: FloatArray, expected: FloatArray, std: FloatArray) -> FloatArray:
        chosen = evenly_spread(expected.size, _MOST_CENTRES)
        logs = self.clean(label[:, None], expected[chosen], std[chosen])
        return np.asarray(_log_sum(logs) - np.log(chosen.size))

    @cached_property
    def rivals(self) -> FloatArray:
        """Log density of each label if it broke a rule whose expectation may be worth nothing; one row for each rule."""
        return np.array([self._rival(rule) for rule in self.rules]).reshape(len(self.rules), self.size)

    def _rival(self, rule: Rule) -> FloatArray:
        failed = self.marginal(rule.undo(self.label)) - np.log(abs(rule.factor))
        often = FAILED_UNIT if rule.quantity else FAILED_EXPECTATION
        return np.asarray(np.logaddexp(self.under(rule) + np.log1p(-often), failed + np.log(often)))

    def marginal(self, label: FloatArray) -> FloatArray:
        """Log density of labels among those that are trusted."""
        if self.trusted.size < 2:
            return np.full(label.shape, _NEVER)
        unit = self._spread
        scaled = np.clip((label - self._center) / unit, -LARGEST, LARGEST)
        signed = self._signed_trusted(np.arcsinh(scaled)) - np.log(np.hypot(1.0, scaled)) - np.log(unit)
        if self._log_trusted is None:
            return np.asarray(signed)
        logs = np.log(np.where(label > 0.0, label, 1.0))
        return np.asarray(np.where(label > 0.0, np.maximum(signed, self._log_trusted(logs) - logs), signed))

    @cached_property
    def _signed_trusted(self) -> Callable[[FloatArray], FloatArray]:
        scaled = np.clip((self.trusted - self._center) / self._spread, -LARGEST, LARGEST)
        return _tabulated_density(np.arcsinh(scaled))

    @cached_property
    def _log_trusted(self) -> Callable[[FloatArray], FloatArray] | None:
        return _tabulated_density(np.log(self.trusted)) if np.all(self.trusted > 0.0) else None

    @cached_property
    def _center(self) -> float:
        return float(np.median(self.trusted)) if self.trusted.size else float(np.median(self.label))

    @cached_property
    def _spread(self) -> float:
        values = self.trusted if self.trusted.size > 1 else self.label
        return max(robust_std(values - self._center), float(np.median(self.std)))

    def _ratios(self, others: IntArray, reach: float) -> FloatArray:
        """Log density of each label as a ratio to what was expected like those of the other suspects."""
        density = np.full(self.size, _NEVER)
        same = (self.label != 0.0) & (np.sign(self.label) == np.sign(self.expected))
        size = np.log(np.abs(np.where(same, self.label, 1.0)))
        logs = size - np.log(np.abs(np.where(same, self.expected, 1.0)))
        some = others[same[others]]
        share = np.log((some.size + 1.0) / (others.size + 1.0))
        return np.where(same, smooth_density(logs, some, reach) - size + share, density)


def _other_row_weight(rule: Rule) -> float:
    if rule.quantity:
        return OTHER_ROW_UNIT
    return OTHER_ROW_POWER if abs(np.log(abs(rule.factor))) > np.log(9.0) else 1.0


def _signed_density(values: FloatArray, unit: float, others: IntArray, reach: float) -> FloatArray:
    """Log density of values of both signs and any size among some of them, smooth in ``arsinh(value / unit)``."""
    scaled = np.clip(values / unit, -LARGEST, LARGEST)
    density = smooth_density(np.arcsinh(scaled), others, reach)
    return np.asarray(density - np.log(np.hypot(1.0, scaled)) - np.log(unit))


def _interpolated(density: Callable[[FloatArray], FloatArray], values: FloatArray) -> FloatArray:
    """A log density at values; at many of them, from its values at some."""
    if values.size <= MOST_EXACT:
        return density(values)
    some = np.unique(np.sort(values)[evenly_spread(values.size, MOST_EXACT)])
    return np.interp(values, some, density(some))


def _log_sum(logs: FloatArray) -> FloatArray:
    """Logarithm of the sum of exponentials over the last axis."""
    top = np.max(logs, axis=-1)
    return np.asarray(top + np.log(np.sum(np.exp(logs - top[..., None]), axis=-1)))


def _tabulated_density(sample: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Log of a kernel density estimate, from a table of it."""
    reach = 6.0 * BANDWIDTHS[1]
    low, high = float(np.min(sample)) - reach, float(np.max(sample)) + reach
    # Ten values within the narrowest kernel, where the sample is not spread too widely for that.
    grid = np.linspace(low, high, int(np.clip(10.0 * (high - low) / BANDWIDTHS[0], 100, 5000)))
    table = _kernel_density(grid, sample, _bandwidth(sample), None)
    return lambda values: np.interp(values, grid, table)


def smooth_density(values: FloatArray, others: IntArray, reach: float = 0.0) -> FloatArray:
    """Log of a kernel density estimate at values from some of them, none from itself; one more observation may lie anywhere."""
    if not others.size:
        return np.full(values.size, _ANYWHERE)
    sample = values[others]
    width = max(_bandwidth(sample), reach)
    if values.size > MOST_EXACT:
        return _interpolated(lambda some: _kernel_density(some, sample, width, None), values)
    return _kernel_density(values, sample, width, others)


def _kernel_density(values: FloatArray, sample: FloatArray, width: float, own: IntArray | None) -> FloatArray:
    """Kernel density estimate of a sample; ``own`` says which of the values are in the sample and do not count for themselves."""
    # Through the sorted sample, so that the chosen ones have the same quantiles.
    chosen = np.argsort(sample, kind="stable")[evenly_spread(sample.size, MOST_EXACT)]
    logs = -0.5 * ((values[:, None] - sample[chosen]) / width) ** 2
    count: FloatArray | float = float(chosen.size)
    if own is not None:
        mine = np.arange(values.size)[:, None] == own[chosen]
        logs[mine] = _NEVER
        count = chosen.size - np.count_nonzero(mine, axis=1).astype(np.float64)
    density = _log_sum(logs) - np.log(width) - 0.5 * np.log(2.0 * np.pi)
    return np.asarray(np.logaddexp(density, _ANYWHERE) - np.log(count + 1.0))


def _bandwidth(sample: FloatArray) -> float:
    """Silverman's rule, within bounds."""
    low, high = np.quantile(sample, [0.25, 0.75])
    spread = min(float(np.std(sample)), (high - low) / 1.34) or float(np.std(sample))
    return float(np.clip(0.9 * spread * sample.size**-0.2, *BANDWIDTHS))


#: Shares of suspects that may follow a rule, equally likely.
_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])


def support(gain: FloatArray, shares: FloatArray = _SHARES) -> tuple[float, float]:
    """Log Bayes factor of "some share follows the rule" against "none does", and log odds of following it that any has.

    gain : log density under the rule less that of a wrong label of no rule.
    """
    by_share = np.array([np.sum(np.logaddexp(np.log1p(-share), np.log(share) + gain)) for share in shares])
    total = float(logsumexp(by_share) - np.log(shares.size))
    share = float(np.exp(by_share - logsumexp(by_share)) @ shares)
    return total, float(np.log(share) - np.log1p(-share))
