"""Which groups of rows are wrong as a whole, from what models that have not seen a group predict for it.

Errors of one group have much in common even where its labels are right: the model knows less about an unseen group than it says,
and a batch has its ways. How far right groups are off, and how much more some of them spread than others, is therefore learned
from all groups. A group is wrong where its errors are far more likely under one of several alternatives: a shift or a factor
common to its labels, labels that stand in other rows, features that stand in other columns, or far more noise. Alternatives are
averaged, so that many of them cost something; such an average exceeds 1 / p by accident with a probability of at most p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp
from scipy.stats import chi2, norm

from mislabel._common.robust import robust_std
from mislabel.decisions.evidence import FloatArray

SHIFT, FACTOR, NOISE = "shift", "factor", "noise"
DISPLACED, REVERSED = "displaced rows", "reversed rows"
#: What a wrong group may be, and how likely each is before looking; other readings of the features have what is left.
PRIOR = {SHIFT: 0.25, FACTOR: 0.15, NOISE: 0.1, DISPLACED: 0.15, REVERSED: 0.1}
#: Standard deviations of a shift, in those of all labels; of a factor less one; and how many times larger the variance is.
SHIFTS = (0.25, 0.5, 1.0, 2.0, 8.0)
FACTORS = (0.25, 1.0, 4.0)
NOISES = (4.0, 16.0, 64.0)
#: Errors further from their group's median than so many of its standard deviations are drawn in to there: single wrong labels are
#: found one by one.
FARTHEST = 4.0
#: Part of the average variance that is added to the covariance a model claims.
RIDGE = 0.1
#: Degrees of freedom of what right groups have in common.
DEGREES = 10.0
#: Nodes for the variance of a group and for what its errors have in common, in pairs.
_LEVELS = np.repeat(norm.ppf((np.arange(7) + 0.5) / 7), 5)
_TAILS = np.tile(DEGREES / chi2.ppf((np.arange(5) + 0.5) / 5, DEGREES), 7)
#: Share of wrong groups that is likely before looking: that of a beta distribution's mean, and how many groups that is worth.
EXPECTED_WRONG, WORTH = 0.1, 10.0
_MOST_WRONG = 0.4


@dataclass(frozen=True, eq=False)
class UnseenGroups:
    """Errors of every group by models that have not seen it, on the scale of the fit.

    members : positions of each group's rows, in the order of the table. labels, expected : one per row.
    covariances : of each group's errors, up to a factor. readings : what would be expected of each row if its features stood in
        other columns; by name.
    has_factor : whether a factor common to the labels is another thing than a shift.
    """

    members: Sequence[np.ndarray]
    labels: FloatArray
    expected: FloatArray
    covariances: Sequence[FloatArray]
    readings: Mapping[str, FloatArray]
    has_factor: bool = True

    @cached_property
    def spread(self) -> float:
        """Of the labels."""
        return max(robust_std(self.labels - np.median(self.labels)), float(np.std(self.labels)) * 0.1) or 1.0

    @cached_property
    def _roots(self) -> list[FloatArray]:
        """Cholesky factors of the covariances."""
        found = []
        for covariance in self.covariances:
            own = np.array(covariance, dtype=float)
            own[np.diag_indices_from(own)] += RIDGE * float(np.mean(own.diagonal())) + 1e-12 * self.spread**2
            found.append(cholesky(own, lower=True))
        return found

    def sums(self, errors: FloatArray | None = None, displaced: str = "") -> _Sums:
        """What the densities need of every group."""
        entries = []
        for rows, root in zip(self.members, self._roots, strict=True):
            error = self.labels[rows] - self.expected[rows] if errors is None else errors[rows]
            if displaced:
                error = self.labels[rows][_order(rows.size, displaced)] - self.expected[rows]
            entries.append(_sums_of(_drawn_in(error), self.expected[rows], root))
        return _Sums(*np.array(entries).T)

    @cached_property
    def alternatives(self) -> dict[str, _Sums]:
        """Of labels in other rows and features in other columns."""
        found = {name: self.sums(displaced=name) for name in ("down", "up", "reversed")}
        return found | {name: self.sums(self.labels - other) for name, other in self.readings.items()}


def _order(size: int, displaced: str) -> np.ndarray:
    """Where the label of each row stands, if labels are displaced."""
    rows = np.arange(size)
    return rows[::-1] if displaced == "reversed" else np.roll(rows, 1 if displaced == "up" else -1)


def _drawn_in(error: FloatArray) -> FloatArray:
    """Errors without those of single labels that are far off."""
    middle = float(np.median(error))
    reach = FARTHEST * robust_std(error - middle)
    return np.clip(error, middle - reach, middle + reach) if reach > 0 else error


def _sums_of(error: FloatArray, expected: FloatArray, root: FloatArray) -> tuple[float, ...]:
    """Rows, mean of the expected values, log-determinant, and products of whitened errors, ones and expected values less mean."""
    middle = float(np.mean(expected))
    columns = np.column_stack([error, np.ones(error.size), expected - middle])
    e, one, f = solve_triangular(root, columns, lower=True).T
    logdet = 2.0 * float(np.log(root.diagonal()).sum())
    return error.size, middle, logdet, e @ e, one @ e, f @ e, one @ one, one @ f, f @ f


@dataclass(frozen=True, eq=False)
class _Sums:
    """One number per group each: see :func:`_sums_of`."""

    size: FloatArray
    middle: FloatArray
    logdet: FloatArray
    squares: FloatArray
    common: FloatArray
    slope: FloatArray
    ones: FloatArray
    mixed: FloatArray
    products: FloatArray

    def log_density(self, common: FloatArray, slope: FloatArray, variance: FloatArray) -> FloatArray:
        """Of errors with covariance ``variance C + common 1 1' + slope f f'``; a row of each for every group, or one."""
        parts = self.size, self.logdet, self.squares, self.common, self.slope, self.ones, self.mixed, self.products
        size, logdet, squares, p1, p2, g11, g12, g22 = (part[:, None] for part in parts)
        b1, b2 = common / variance, slope / variance
        # det(I + B G) and p' B (I + B G)^-1 p of two columns.
        det = (1.0 + b1 * g11) * (1.0 + b2 * g22) - b1 * b2 * g12**2
        explained = (
            b1 * p1**2 * (1.0 + b2 * g22) + b2 * p2**2 * (1.0 + b1 * g11) - 2.0 * b1 * b2 * g12 * p1 * p2
        ) / det
        quadratic = (squares - explained) / variance
        return np.asarray(-0.5 * (size * np.log(2.0 * np.pi * variance) + logdet + np.log(det) + quadratic))


@dataclass(frozen=True)
class RightGroups:
    """How errors of right groups spread.

    common : standard deviation of what a group's errors have in common. slope : of the part that is in proportion to what is
        expected, less its mean. variance : of the rest, over what the model claims, in a typical group; by a factor of
        ``exp(unequal)`` more or less in others. wrong : share of wrong groups.
    """

    common: float
    slope: float
    variance: float
    unequal: float
    wrong: float

    def log_density(self, sums: _Sums, shift: float = 0.0, factor: float = 0.0, noise: float = 1.0) -> FloatArray:
        """Of each group's errors, with a further common one, a factor that differs from one by so much, and more noise."""
        variance = noise * self.variance * np.exp(self.unequal * _LEVELS)
        common = self.common**2 * _TAILS + shift**2 + (factor * sums.middle[:, None]) ** 2
        found = sums.log_density(common, (self.slope**2 * _TAILS + factor**2)[None, :], variance[None, :])
        return np.asarray(logsumexp(found, axis=1) - np.log(_LEVELS.size))


@dataclass(frozen=True, eq=False)
class GroupOdds:
    """How much likelier each group's errors are if it is wrong.

    log_odds : of each kind of error (rows) for each group (columns), log density less that of a right group. kinds : their names.
    prior : how likely each kind is before looking. right : how right groups spread.
    """

    kinds: list[str]
    prior: FloatArray
    log_odds: FloatArray
    right: RightGroups

    @property
    def total(self) -> FloatArray:
        """Of any kind of error."""
        return np.asarray(logsumexp(self.log_odds + np.log(self.prior)[:, None], axis=0))


def group_odds(groups: UnseenGroups) -> GroupOdds:
    """Learn how right groups spread, and compare every group with that."""
    null = groups.sums()
    right = _learned(groups, null)
    kinds, prior, found = _compared(groups, null, right)
    return GroupOdds(kinds, prior, found, right)


def _simple(groups: UnseenGroups, null: _Sums, right: RightGroups) -> dict[str, FloatArray]:
    """Log densities where the labels stand where they belong: shifted, times a factor, and noisier."""
    found = {SHIFT: _mean([right.log_density(null, shift=size * groups.spread) for size in SHIFTS])}
    if groups.has_factor:
        found[FACTOR] = _mean([right.log_density(null, factor=size) for size in FACTORS])
    found[NOISE] = _mean([right.log_density(null, noise=size) for size in NOISES])
    return found


def _compared(groups: UnseenGroups, null: _Sums, right: RightGroups) -> tuple[list[str], FloatArray, FloatArray]:
    """Kinds of error, how likely they are, and the log odds of each for every group."""
    found = _simple(groups, null, right)
    others = {name: right.log_density(sums) for name, sums in groups.alternatives.items()}
    found[DISPLACED] = _mean([others.pop("down"), others.pop("up")])
    found[REVERSED] = others.pop("reversed")
    rest = (1.0 - sum(PRIOR.values())) / max(len(others), 1)
    prior = np.array([*(PRIOR[name] for name in found), *(rest for _ in others)])
    found |= others
    return list(found), prior / prior.sum(), np.array(list(found.values())) - right.log_density(null)


def _mean(densities: list[FloatArray]) -> FloatArray:
    return np.asarray(logsumexp(densities, axis=0) - np.log(len(densities)))


def _learned(groups: UnseenGroups, null: _Sums) -> RightGroups:
    """Of the highest likelihood, where some groups may be wrong."""
    within = (null.squares - null.common**2 / null.ones) / np.maximum(null.size - 1.0, 1.0)
    several = within[null.size > 1]
    typical = float(np.median(several)) if several.size else float(np.median(null.squares))
    typical = max(typical, 1e-12)
    common = max(robust_std(null.common / null.ones), 1e-4 * groups.spread)
    start = np.array([0.0, np.log(0.05), 0.0, np.log(0.5), np.log(1.0 / 3.0)])

    def parameters(x: FloatArray) -> RightGroups:
        size = np.exp(np.clip(x, -8.0, 8.0))
        return RightGroups(
            common * size[0], size[1], typical * size[2], min(size[3], 3.0), _MOST_WRONG * float(expit(x[4]))
        )

    def cost(x: FloatArray) -> float:
        right = parameters(x)
        of_right, of_wrong = right.log_density(null), _mean(list(_simple(groups, null, right).values()))
        likelihood = np.logaddexp(np.log1p(-right.wrong) + of_right, np.log(right.wrong) + of_wrong)
        belief = WORTH * (EXPECTED_WRONG * np.log(right.wrong) + (1.0 - EXPECTED_WRONG) * np.log1p(-right.wrong))
        away = np.array([0.02, 0.1, 0.02, 0.5, 0.0]) * (x - start) ** 2
        return -float(likelihood.sum() + belief - away.sum())

    found = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 250, "xatol": 0.02, "fatol": 0.02})
    return parameters(found.x)


@dataclass(frozen=True, eq=False)
class GroupVerdicts:
    """One entry per group each.

    kind, gain : the likeliest kind of error, and by how many nats it is likelier than a right group.
    log_odds : of being wrong in any way, over all judges, without how frequent wrong groups are.
    p_value : how probable such odds are for a right group, at most. wrong : the probability that it is wrong.
    q_value : mean probability of being right among the groups at least as suspicious.
    """

    kind: list[str]
    gain: FloatArray
    log_odds: FloatArray
    p_value: FloatArray
    wrong: FloatArray
    q_value: FloatArray


def group_verdicts(judges: Sequence[GroupOdds]) -> GroupVerdicts:
    """What several judges say together: the median of their odds, so that one that is mistaken does not decide."""
    total = np.median([judge.total for judge in judges], axis=0)
    by_kind: dict[str, list[FloatArray]] = {}
    for judge in judges:
        for name, prior, odds in zip(judge.kinds, judge.prior, judge.log_odds, strict=True):
            by_kind.setdefault(name, []).append(odds + np.log(prior))
    names = list(by_kind)
    joint = np.array([np.median(by_kind[name], axis=0) for name in names])
    best = np.argmax(joint, axis=0)
    share = _share_of_wrong(total)
    wrong = expit(total + np.log(share) - np.log1p(-share))
    order = np.argsort(-total, kind="stable")
    q_value = np.empty(total.size)
    q_value[order] = np.cumsum(1.0 - wrong[order]) / np.arange(1, total.size + 1)
    return GroupVerdicts(
        [names[k] for k in best],
        joint[best, np.arange(total.size)],
        total,
        np.exp(-np.maximum(total, 0.0)),
        wrong,
        np.minimum(q_value, 1.0),
    )


def _share_of_wrong(log_odds: FloatArray) -> float:
    """The likeliest share of wrong groups."""

    def cost(share: float) -> float:
        likelihood = np.logaddexp(np.log1p(-share), np.log(share) + log_odds).sum()
        return -float(likelihood + WORTH * (EXPECTED_WRONG * np.log(share) + (1.0 - EXPECTED_WRONG) * np.log1p(-share)))

    return float(minimize_scalar(cost, bounds=(1e-4, _MOST_WRONG), method="bounded").x)
