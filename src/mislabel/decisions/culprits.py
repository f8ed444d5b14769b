"""Which cell of a row is wrong, where every column of numbers was audited against all others.

A wrong cell contradicts the others of its row, and they contradict it: several columns look bad at once. With ``x`` the cells of
a row, and ``r`` and ``w`` the densities of right and wrong values, "cell j alone is wrong" and "none is" compare as
``p(x_-j) w(x_j) : p(x_-j) r(x_j | x_-j)``: these are the odds of column j's own audit, so that the rivals for the blame are
weighed by their odds. Further wrong cells are judged with the first ones taken for unknown, that is for what the rest of the row
expects. Two cells that changed places are a hypothesis of its own.

The columns' audits do not agree on one distribution of the row, as the formula has it. Odds are therefore lessened by what still
looks wrong in the row once a cell is blamed: one wrong cell that explains everything is preferred to one that asks for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mislabel.decisions.cells import CERTAIN, Cells, ColumnAudit, Judgement, State, columns_in
from mislabel.decisions.evidence import FloatArray, IntArray
from mislabel.decisions.thresholds import EVEN_ODDS

#: Rows whose most suspicious cell has smaller log odds, before its rivals are heard, are right.
LEAST_LOG_ODDS = -3.0
#: At most so many cells, or pairs of cells, of a row are blamed, beside absurd ones.
MOST_WRONG = 4
#: So many of the most suspicious cells of a row are tried as the culprit.
RIVALS = 3


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
    doubtful = doubtful_rows(cells.own.log_odds)
    search = _Search(cells, doubtful)
    search.run()
    log_odds, swapped = shared(cells.own.log_odds), np.full(cells.values.shape, -1, dtype=np.intp)
    log_odds[doubtful], swapped[doubtful] = search.odds()
    now = Judgement(*(part.copy() for part in cells.own))
    now.put(doubtful, search.now)
    for column, audit in enumerate(columns):
        log_odds[:, column] = audit.calibration.believed(log_odds[:, column])
    log_odds = np.where(cells.sure, CERTAIN, log_odds)
    variance = np.column_stack(
        [cells.spread_of(k, now.promised[:, k], now.expected[:, k]) for k in range(len(columns))]
    )
    return Blame(np.where(cells.missing, np.nan, log_odds), now.expected, variance, swapped)


def doubtful_rows(log_odds: FloatArray) -> IntArray:
    """Positions of the rows that may have a wrong cell, by the odds of the columns' own audits."""
    return np.flatnonzero(log_odds.max(axis=1) > LEAST_LOG_ODDS)


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


class _Search:
    """Which cells of some rows are wrong: the likeliest first, the others then judged without it.

    own : what the columns' own audits say. now : what right cells say.
    """

    def __init__(self, cells: Cells, rows: IntArray) -> None:
        self.cells, self.own = cells, cells.own.at(rows)
        self.sure = cells.sure[rows]
        self.state = State(rows, self.sure.copy(), np.full(self.sure.shape, -1, dtype=np.intp))
        self.now = cells.own.at(rows)
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
        before, start = self.state.at(which), self.now.at(which)
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
        found = np.where(np.any(state.wrong, axis=1, keepdims=True), self.now.log_odds, shared(self.own.log_odds))
        taken = np.full(found.shape, -np.inf)
        # Nobody else is to blame for absurd cells: they are wrong whatever the others are.
        blamed = state.wrong & ~self.sure
        for member in columns_in(blamed):
            which = np.flatnonzero(blamed[:, member])
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
        state = self.state.at(which)
        partner = np.flatnonzero(state.partner[:, member] >= 0)
        pair = state.partner[partner, member]
        for column in (np.full(partner.size, member), pair):
            state.wrong[partner, column], state.partner[partner, column] = False, -1
        state.wrong[:, member] = False
        base, beside = self.own.at(which), np.flatnonzero(state.wrong.any(axis=1))
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
