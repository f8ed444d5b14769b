"""What the audits of all columns of a table say of its cells where some of a row are wrong: unknown, or in each other's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from mislabel.decisions.calibration import Calibration
from mislabel.decisions.evidence import BoolArray, Evidence, FloatArray, IntArray, in_standard_deviations
from mislabel.likelihoods.error_densities import log_beside_of

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
        return State(self.rows[which], self.wrong[which], self.partner[which])

    def copy(self) -> State:
        """The same, to be changed."""
        return State(self.rows.copy(), self.wrong.copy(), self.partner.copy())

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


def own_log_odds(audit: Evidence, calibration: Calibration) -> FloatArray:
    """Log odds of a column's cells if there is a group of wrong ones: absurd ones are wrong, missing ones are not."""
    if not calibration.adjusted:
        return np.full(audit.label.size, -np.inf)
    found = calibration.unlearned_log_odds(audit)
    return np.where(audit.absurd, CERTAIN, np.where(np.isnan(audit.label), -np.inf, found))


def columns_in(mask: BoolArray) -> list[int]:
    """Columns that have any such cell."""
    return [int(column) for column in np.flatnonzero(mask.any(axis=0))]


class Cells:
    """All cells, and what is expected of them where some are wrong.

    own : what the audits of the columns say, each of which believes all other columns.
    """

    def __init__(self, columns: Sequence[ColumnAudit]) -> None:
        self.columns = columns = [replace(audit, evidence=audit.evidence.as_some) for audit in columns]
        found = [audit.evidence for audit in columns]
        self.values = np.column_stack([evidence.transform.inverse(evidence.label) for evidence in found])
        self.sure = np.column_stack([evidence.absurd for evidence in found])
        self.missing = np.isnan(self.values)
        self.n_columns = len(columns)
        self._scale = np.array([audit.calibration.scale for audit in columns])
        none = np.zeros(self.values.shape[0])
        # How rare values beside an atom are in a row is told by all rows, not by those in question.
        self._beside = [none if evidence.chance is None else log_beside_of(evidence.chance) for evidence in found]
        self.own = Judgement(
            np.column_stack([evidence.expected for evidence in found]),
            np.column_stack([evidence.variance for evidence in found]),
            np.column_stack([own_log_odds(audit.evidence, audit.calibration) for audit in columns]),
        )

    def spread_of(self, column: int, promised: FloatArray, expected: FloatArray) -> FloatArray:
        """Variance of right values of a column, from what was promised."""
        return self.columns[column].calibration.spread(promised, expected)

    def judged(self, state: State, start: FloatArray) -> Judgement:
        """What right cells say of all cells of some rows; ``start`` is what to take unknown ones for at first."""
        rows, unknown, expected = state.rows, state.unknown, start.copy()
        for _ in range(_ROUNDS if (unknown.sum(axis=1) > 1).any() else 1):
            for column in columns_in(unknown):
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
            evidence = replace(audit.evidence.some(rows), chance=None)
            changed = with_expected(evidence, expected[:, column], promised[:, column])
            found = own_log_odds(changed, audit.calibration) - self._beside[column][rows]
            log_odds[:, column] = np.where(evidence.stands_apart, self.own.log_odds[rows, column], found)
        return Judgement(expected, promised, log_odds)

    def taken_for(self, state: State, expected: FloatArray) -> FloatArray:
        """The cells of some rows in label units, unknown ones as expected, those that changed places in their own column."""
        values = self.values[state.rows]
        for column in columns_in(state.wrong):
            mine = state.unknown[:, column]
            values[mine, column] = self.columns[column].evidence.shown(expected[mine, column])
            moved = np.flatnonzero(state.partner[:, column] >= 0)
            values[moved, column] = self.values[state.rows[moved], state.partner[moved, column]]
        return values

    def _passed_on(self, state: State, expected: FloatArray, promised: FloatArray) -> FloatArray:
        """What not knowing the unknown cells adds to the variances promised for the others."""
        added = np.zeros(expected.shape)
        for column in columns_in(state.unknown):
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
        return np.asarray(added / self._scale)

    def log_densities(
        self, column: int, rows: IntArray, values: FloatArray, expected: FloatArray, promised: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the densities of ``values`` as right and as wrong ones of a column, the latter times their share."""
        audit = self.columns[column]
        with np.errstate(all="ignore"):  # values that the scale does not know
            label = audit.evidence.transform.forward(values)
            changed = replace(audit.evidence.some(rows), label=label, chance=None)
            right, wrong = audit.calibration.log_densities(with_expected(changed, expected, promised).errors)
        right, wrong = (np.where(np.isnan(found), -np.inf, found) for found in (right, wrong))
        return right + self._beside[column][rows], wrong + audit.calibration.log_share

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
