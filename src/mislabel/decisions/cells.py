"""Which cell of a row is wrong, where every column of numbers was audited against all others.

A wrong cell contradicts the others of its row, and they contradict it: several columns look bad at once. With ``x`` the cells of
a row, and ``r`` and ``w`` the densities of right and wrong values, "cell j alone is wrong" and "none is" compare as
``p(x_-j) w(x_j) : p(x_-j) r(x_j | x_-j)``: these are the odds of column j's own audit, so that the rivals for the blame are
weighed by their odds. Further wrong cells are judged with the first ones taken for unknown, that is for what the rest of the row
expects. Two cells that changed places are a hypothesis of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from mislabel.decisions.calibration import Calibration
from mislabel.decisions.evidence import BoolArray, Evidence, FloatArray, IntArray, in_standard_deviations
from mislabel.decisions.thresholds import EVEN_ODDS

#: Rows whose most suspicious cell has smaller log odds, before its rivals are heard, are right.
LEAST_LOG_ODDS = -3.0
#: At most so many cells of a row are called wrong, beside absurd ones.
MOST_WRONG = 4
#: So many of the most suspicious cells of a row are tried as the culprit.
RIVALS = 3
#: Log odds of cells that are wrong whatever the others say.
CERTAIN = 50.0
#: Rounds in which several wrong cells of a row are expected, each with the others as expected before.
_ROUNDS = 3


class Predicts(Protocol):
    """What a column's fit expects of some of its cells if the others of their rows had given values."""

    def __call__(
        self, rows: IntArray, values: FloatArray, *, with_variance: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """On the scale of the fit, without the cell itself; ``values`` of all audited columns are in label units."""


@dataclass(frozen=True, eq=False)
class ColumnAudit:
    """What the audit of one column says of its cells.

    evidence : as the fit promised it. calibration : how right and wrong values spread.
    """

    evidence: Evidence
    calibration: Calibration
    predict: Predicts


class Judgement(NamedTuple):
    """What is expected of cells on the scale of each column's fit, the variance promised for that, and the log odds."""

    expected: FloatArray
    promised: FloatArray
    log_odds: FloatArray

    def at(self, rows: IntArray) -> Judgement:
        """That of some rows."""
        return Judgement(self.expected[rows], self.promised[rows], self.log_odds[rows])

    def put(self, rows: IntArray, found: Judgement) -> None:
        """Replace that of some rows."""
        for mine, new in zip(self, found, strict=True):
            mine[rows] = new


class State(NamedTuple):
    """Which cells of some rows are wrong, and with which column they changed places; -1 for all others."""

    rows: IntArray
    wrong: BoolArray
    partner: IntArray

    @property
    def unknown(self) -> BoolArray:
        """Cells of which nobody knows what they should have been, but the rest of their row."""
        return self.wrong & (self.partner < 0)

    def at(self, which: IntArray) -> State:
        """Of some of the rows."""
        return State(*(part[which] for part in self))

    def copy(self) -> State:
        """The same, to be changed."""
        return State(*(part.copy() for part in self))

    def put(self, which: IntArray, found: State) -> None:
        """Replace that of some rows."""
        self.wrong[which], self.partner[which] = found.wrong, found.partner

    def blame(self, column: IntArray) -> State:
        """The same with one cell more in each row."""
        found = self.copy()
        found.wrong[np.arange(column.size), column] = True
        return found

    def swap(self, which: IntArray, column: IntArray, other: IntArray) -> None:
        """Let two cells of some rows have changed places."""
        self.wrong[which, column] = self.wrong[which, other] = True
        self.partner[which, column], self.partner[which, other] = other, column


@dataclass(frozen=True, eq=False)
class Blame:
    """What was found of every cell; arrays have one row for each of the table's, one column for each that was audited.

    log_odds : logarithm of the odds that the cell is wrong, now that its rivals in the row were heard; NaN where it is missing.
    expected, variance : on the scale of its column's fit, the wrong cells of the row taken for unknown.
    swapped : position of the column that the cell changed places with; -1 for all others.
    """

    log_odds: FloatArray
    expected: FloatArray
    variance: FloatArray
    swapped: IntArray


def find_blame(columns: Sequence[ColumnAudit]) -> Blame:
    """Say of every cell how likely it is that it is the wrong one."""
    cells = Cells(columns)
    own = cells.own()
    doubtful = doubtful_rows(own.log_odds)
    search = _Search(cells, doubtful, own.at(doubtful))
    search.run()
    log_odds, swapped = shared(own.log_odds), np.full(own.log_odds.shape, -1, dtype=np.intp)
    log_odds[doubtful], swapped[doubtful] = search.odds()
    own.put(doubtful, search.now)
    for column, audit in enumerate(columns):
        log_odds[:, column] = audit.calibration.believed(log_odds[:, column])
    log_odds = np.where(cells.sure, CERTAIN, log_odds)
    variance = np.column_stack([cells.spread_of(k, own.promised[:, k], own.expected[:, k]) for k in range(len(columns))])
    return Blame(np.where(cells.missing, np.nan, log_odds), own.expected, variance, swapped)


def doubtful_rows(log_odds: FloatArray) -> IntArray:
    """Positions of the rows that may have a wrong cell, by the odds of the columns' own audits."""
    return np.flatnonzero(log_odds.max(axis=1) > LEAST_LOG_ODDS)


def own_log_odds(audit: Evidence, calibration: Calibration) -> FloatArray:
    """Log odds of a column's cells if there is a group of wrong ones: absurd ones are wrong, missing ones are not."""
    if not calibration.adjusted:
        return np.full(audit.label.size, -np.inf)
    found = calibration.unlearned_log_odds(audit)
    return np.where(audit.absurd, CERTAIN, np.where(np.isnan(audit.label), -np.inf, found))


def shared(log_odds: FloatArray) -> FloatArray:
    """Log odds of each cell if at most one of its row is wrong."""
    found = np.empty(log_odds.shape)
    for column in range(log_odds.shape[1]):
        found[:, column] = log_odds[:, column] - _log_total(np.delete(log_odds, column, axis=1))
    return found


def cell_q_values(log_odds: FloatArray) -> FloatArray:
    """The expected share of right cells among all that look at least as wrong; NaN where the cell is missing."""
    found = np.full(log_odds.shape, np.nan)
    known = ~np.isnan(log_odds)
    clean = expit(-log_odds[known])
    order = np.argsort(clean, kind="stable")
    share = np.empty(clean.size)
    share[order] = np.cumsum(clean[order]) / np.arange(1, clean.size + 1)
    found[known] = np.where(clean > EVEN_ODDS, clean, share)
    return found


def _log_total(log_weights: FloatArray) -> FloatArray:
    """Logarithm of one plus the sum of some weights, row by row."""
    return np.asarray(np.logaddexp.reduce(log_weights, axis=1, initial=0.0))


class Cells:
    """All cells, and what is expected of them where some are wrong."""

    def __init__(self, columns: Sequence[ColumnAudit]) -> None:
        self.columns = columns
        found = [audit.evidence for audit in columns]
        self.values = np.column_stack([evidence.transform.inverse(evidence.label) for evidence in found])
        self.sure = np.column_stack([evidence.absurd for evidence in found])
        self.missing = np.isnan(self.values)
        self.n_columns = len(columns)
        self._scale = np.array([audit.calibration.scale for audit in columns])

    def own(self) -> Judgement:
        """What the audits of the columns say, each of which believes all other columns."""
        found = [audit.evidence for audit in self.columns]
        return Judgement(
            np.column_stack([evidence.expected for evidence in found]),
            np.column_stack([evidence.variance for evidence in found]),
            np.column_stack([own_log_odds(audit.evidence, audit.calibration) for audit in self.columns]),
        )

    def spread_of(self, column: int, promised: FloatArray, expected: FloatArray) -> FloatArray:
        """Variance of right values of a column, from what was promised."""
        return self.columns[column].calibration.spread(promised, expected)

    def judged(self, state: State, start: FloatArray) -> Judgement:
        """What right cells say of all cells of some rows; ``start`` is what to take unknown ones for at first."""
        rows, unknown, expected = state.rows, state.unknown, start.copy()
        for _ in range(_ROUNDS if (unknown.sum(axis=1) > 1).any() else 1):
            for column in np.flatnonzero(unknown.any(axis=0)):
                mine = np.flatnonzero(unknown[:, column])
                values = self.taken_for(state.at(mine), expected[mine])
                expected[mine, column] = self.columns[column].predict(rows[mine], values, with_variance=False)[0]
        values = self.taken_for(state, expected)
        promised, log_odds = np.empty(expected.shape), np.empty(expected.shape)
        for column, audit in enumerate(self.columns):
            found, promised[:, column] = audit.predict(rows, values)
            expected[:, column] = np.where(unknown[:, column], expected[:, column], found)
        promised += self._passed_on(state, expected, promised)
        for column, audit in enumerate(self.columns):
            evidence = with_expected(audit.evidence.some(rows), expected[:, column], promised[:, column])
            log_odds[:, column] = own_log_odds(evidence, audit.calibration)
        return Judgement(expected, promised, log_odds)

    def taken_for(self, state: State, expected: FloatArray) -> FloatArray:
        """The cells of some rows in label units, unknown ones as expected, those that changed places in their own column."""
        values = self.values[state.rows]
        for column in np.flatnonzero(state.wrong.any(axis=0)):
            mine = state.unknown[:, column]
            values[mine, column] = self.columns[column].evidence.shown(expected[mine, column])
            moved = np.flatnonzero(state.partner[:, column] >= 0)
            values[moved, column] = self.values[state.rows[moved], state.partner[moved, column]]
        return values

    def _passed_on(self, state: State, expected: FloatArray, promised: FloatArray) -> FloatArray:
        """What not knowing the unknown cells adds to the variances promised for the others."""
        added = np.zeros(expected.shape)
        for column in np.flatnonzero(state.unknown.any(axis=0)):
            mine = np.flatnonzero(state.unknown[:, column])
            some = state.at(mine)
            step = np.sqrt(self.spread_of(column, promised[mine, column], expected[mine, column]))
            ends = []
            for sign in (-1.0, 1.0):
                moved = expected[mine].copy()
                moved[:, column] += sign * step
                ends.append(self.taken_for(some, moved))
            for other, audit in enumerate(self.columns):
                if other != column:
                    low, high = (audit.predict(some.rows, values, with_variance=False)[0] for values in ends)
                    added[mine, other] += (0.5 * (high - low)) ** 2
        return added / self._scale

    def log_densities(
        self, column: int, rows: IntArray, values: FloatArray, expected: FloatArray, promised: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the densities of ``values`` as right and as wrong ones of a column, the latter times their share."""
        audit = self.columns[column]
        with np.errstate(all="ignore"):  # values that the scale does not know
            label = audit.evidence.transform.forward(values)
            changed = replace(audit.evidence.some(rows), label=label)
            right, wrong = audit.calibration.log_densities(with_expected(changed, expected, promised).errors)
        return np.nan_to_num(right, nan=-np.inf), np.nan_to_num(wrong, nan=-np.inf) + audit.calibration.log_share

    def swapped_with(self, state: State, now: Judgement, member: int) -> FloatArray:
        """By how much it is likelier that a wrong cell changed places with another than that it is wrong by itself.

        The densities of both values in each other's column, the other one judged first, without the wrong one; against those of
        both as they are. Swaps are taken to be as frequent as wrong cells, with all partners alike.
        """
        found = np.full(state.wrong.shape, -np.inf)
        here, judged = self.values[state.rows, member], (now.expected[:, member], now.promised[:, member])
        alone = self.log_densities(member, state.rows, here, *judged)[1]
        frequency = self.columns[member].calibration.log_share - np.log(max(self.n_columns - 1, 1))
        for other, audit in enumerate(self.columns):
            there = self.values[state.rows, other]
            may = np.isfinite(there) & (there != here) & (state.partner[:, other] < 0) & (other != member)
            may &= ~(self.sure[state.rows, member] | self.sure[state.rows, other])
            # A value that many have is no accident of another column.
            may &= ~(audit.evidence.stands_apart | self.columns[member].evidence.stands_apart)[state.rows]
            known = np.flatnonzero(may) if audit.calibration.adjusted else np.zeros(0, dtype=np.intp)
            if not known.size:
                continue
            rows, judged = state.rows[known], (now.expected[known, other], now.promised[known, other])
            right, wrong = self.log_densities(other, rows, there[known], *judged)
            as_they_are = alone[known] + np.where(state.wrong[known, other], wrong, right)
            values = self.taken_for(state.at(known), now.expected[known])
            values[:, other] = here[known]
            moved = self.columns[member].predict(rows, values)
            in_place = self.log_densities(other, rows, here[known], *judged)[0]
            in_place = in_place + self.log_densities(member, rows, there[known], *moved)[0]
            found[known, other] = frequency + in_place - as_they_are
        return found


def with_expected(evidence: Evidence, expected: FloatArray, variance: FloatArray) -> Evidence:
    """Evidence for the same labels where something else is expected of them."""
    error = evidence.label - expected
    if evidence.side is not None:
        error = np.where(evidence.side < 0, np.minimum(error, 0.0), error)
        error = np.where(evidence.side > 0, np.maximum(error, 0.0), error)
    error = np.where(evidence.stands_apart, 0.0, error)
    z = in_standard_deviations(error, variance)
    return replace(evidence, expected=expected, variance=variance, error=error, z=z)


class _Search:
    """Which cells of some rows are wrong: the likeliest first, the others then judged without it.

    own : what the columns' own audits say. now : what right cells say.
    """

    def __init__(self, cells: Cells, rows: IntArray, own: Judgement) -> None:
        self.cells, self.own = cells, own
        self.sure = cells.sure[rows]
        self.state = State(rows, self.sure.copy(), np.full(self.sure.shape, -1, dtype=np.intp))
        self.now = Judgement(*(part.copy() for part in own))
        #: Log odds of a swap, at both of its cells.
        self.swap_odds = np.full(self.sure.shape, -np.inf)

    def run(self) -> None:
        """Blame one cell, or two that changed places, as long as one looks wrong beside those that are blamed."""
        self._judge(np.flatnonzero(self.state.wrong.any(axis=1)))
        going = np.arange(self.state.rows.size)
        for _ in range(MOST_WRONG):
            open_odds = np.where(self.state.wrong[going], -np.inf, self.now.log_odds[going])
            going = going[open_odds.max(axis=1, initial=-np.inf) > 0.0]
            self._blame_best(going)
            right = self.state.unknown[going] & (self.now.log_odds[going] < 0.0) & ~self.sure[going]
            self.state.wrong[going] &= ~right
            self._judge(going[right.any(axis=1)])

    def _judge(self, which: IntArray) -> None:
        if which.size:
            self.now.put(which, self.cells.judged(self.state.at(which), self.now.expected[which]))

    def _blame_best(self, which: IntArray) -> None:
        """Of the most suspicious cells of each row, blame the one whose odds exceed most what then remains unexplained."""
        before, start = self.state.at(which).copy(), self.now.at(which)
        odds = np.where(before.wrong, -np.inf, start.log_odds)
        order, best = np.argsort(-odds, axis=1), np.full(which.size, -np.inf)
        for column in order[:, :RIVALS].T:
            mine = np.flatnonzero(odds[np.arange(which.size), column] > 0.0)
            own_odds, state = odds[mine, column[mine]], before.at(mine).blame(column[mine])
            found = self.cells.judged(state, start.expected[mine])
            gain, other = self._best_swap(state, found, column[mine])
            swapped = np.flatnonzero(gain > 0.0)
            if swapped.size:
                state.swap(swapped, column[mine][swapped], other[swapped])
                found.put(swapped, self.cells.judged(state.at(swapped), found.expected[swapped]))
            own_odds = own_odds + np.maximum(gain, 0.0)
            score = own_odds - remaining(found, state)
            better = np.flatnonzero(score > best[mine])
            best[mine[better]], at = score[better], which[mine[better]]
            self.state.put(at, state.at(better))
            self.now.put(at, found.at(better))
            swapped = better[gain[better] > 0.0]
            for cell in (column[mine][swapped], other[swapped]):
                self.swap_odds[which[mine[swapped]], cell] = own_odds[swapped]

    def _best_swap(self, state: State, found: Judgement, column: IntArray) -> tuple[FloatArray, IntArray]:
        """The likeliest partner of a wrong cell in each row, and the log odds that it changed places with that."""
        gain = np.full(state.wrong.shape, -np.inf)
        for member in np.unique(column):
            mine = np.flatnonzero(column == member)
            gain[mine] = self.cells.swapped_with(state.at(mine), found.at(mine), member)
        other = gain.argmax(axis=1)
        return gain[np.arange(column.size), other], other

    def odds(self) -> tuple[FloatArray, IntArray]:
        """Log odds that each cell is wrong, now that its rivals are heard, and what it changed places with."""
        state = self.state
        found = np.where(state.wrong.any(axis=1)[:, None], self.now.log_odds, shared(self.own.log_odds))
        taken = np.full(found.shape, -np.inf)
        for member in np.flatnonzero(state.wrong.any(axis=0)):
            which = np.flatnonzero(state.wrong[:, member])
            alone = np.where(
                state.partner[which, member] >= 0, self.swap_odds[which, member], self.now.log_odds[which, member]
            )
            rivals = self._in_place_of(which, member)
            total = _log_total(rivals)
            found[which, member] = alone - total
            taken[which] = np.logaddexp(taken[which], rivals - np.logaddexp(total, alone)[:, None])
        # What a cell may have done in place of a wrong one counts against it, too.
        taken = np.minimum(taken, -np.exp(-CERTAIN))
        with np.errstate(divide="ignore"):
            found = np.where(state.wrong, found, np.maximum(found, taken - np.log(-np.expm1(taken))))
        return found, state.partner

    def _in_place_of(self, which: IntArray, member: int) -> FloatArray:
        """Log odds of the cells that are not blamed if one that is, with its partner, were right, less what that leaves open."""
        state = self.state.at(which).copy()
        partner = np.flatnonzero(state.partner[:, member] >= 0)
        pair = state.partner[partner, member]
        for column in (np.full(partner.size, member), pair):
            state.wrong[partner, column], state.partner[partner, column] = False, -1
        state.wrong[:, member] = False
        base, beside = self.own.at(which), np.flatnonzero(state.wrong.any(axis=1))
        base = Judgement(*(part.copy() for part in base))
        if beside.size:
            base.put(beside, self.cells.judged(state.at(beside), self.now.expected[which][beside]))
        odds = np.where(self.state.wrong[which], -np.inf, base.log_odds)
        rivals, order = odds.copy(), np.argsort(-odds, axis=1)
        for column in order[:, : RIVALS - 1].T:
            mine = np.flatnonzero(odds[np.arange(which.size), column] > LEAST_LOG_ODDS)
            blamed = state.at(mine).blame(column[mine])
            found = self.cells.judged(blamed, base.expected[mine])
            rivals[mine, column[mine]] -= remaining(found, blamed)
        return rivals


def remaining(found: Judgement, state: State) -> FloatArray:
    """How much looks wrong still beside the cells that are blamed: the sum of positive log odds."""
    return np.asarray(np.sum(np.where(state.wrong, 0.0, np.maximum(found.log_odds, 0.0)), axis=1))
