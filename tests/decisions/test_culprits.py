"""Which cell of a row is wrong, where the columns' distribution is known: normal, with conditionals in closed form."""

from itertools import chain, combinations

import numpy as np
import pytest

from mislabel.decisions import Evidence, calibrate
from mislabel.decisions.cells import CERTAIN, ColumnAudit
from mislabel.decisions.culprits import cell_q_values, doubtful_rows, find_blame, shared

SIZE = 400
#: Four columns of one size each, and one that has nothing to do with them.
COVARIANCE = np.eye(5)
COVARIANCE[:4, :4] = 0.95 + 0.05 * np.eye(4)
MEANS = np.array([0.0, 4.0, -4.0, 8.0, 0.0])


def conditional(column, values):
    """Mean and variance of one column given all others."""
    others = [other for other in range(5) if other != column]
    weights = np.linalg.solve(COVARIANCE[np.ix_(others, others)], COVARIANCE[others, column])
    expected = MEANS[column] + (values[:, others] - MEANS[others]) @ weights
    return expected, np.full(len(values), COVARIANCE[column, column] - COVARIANCE[column, others] @ weights)


def audits(values):
    """What an audit that knows the distribution says of every column; missing features are at their mean."""
    filled, found = np.where(np.isnan(values), MEANS, values), []
    for column in range(5):
        expected, variance = conditional(column, filled)
        label = values[:, column]
        error, zeros = label - expected, np.zeros(len(values))
        evidence = Evidence(
            np.arange(len(values)), label, expected, variance, error, error / np.sqrt(variance), zeros, zeros, label
        )

        def predict(rows, cells, *, with_variance=True, column=column):
            expected, variance = conditional(column, np.where(np.isnan(cells), MEANS, cells))
            return expected, variance if with_variance else np.zeros(len(rows))

        found.append(ColumnAudit(evidence, calibrate(evidence.errors, rival=True), predict))
    return found


@pytest.fixture
def right(rng):
    return rng.multivariate_normal(MEANS, COVARIANCE, SIZE)


def own_suspects(columns):
    return np.column_stack([audit.calibration.apply(audit.evidence).log_odds > 0.0 for audit in columns])


def test_names_the_wrong_cell_and_not_those_it_contradicts(right, rng):
    values, wrong = right.copy(), np.zeros((SIZE, 5), dtype=bool)
    for row in range(0, SIZE, 10):
        column = (row // 10) % 4
        values[row, column] += 3.0 * rng.choice([-1.0, 1.0])
        wrong[row, column] = True
    columns = audits(values)
    found = find_blame(columns).log_odds > 0.0
    assert np.count_nonzero(own_suspects(columns) & ~wrong) > 10  # innocent cells of the same rows look bad, too
    assert np.mean(found[wrong]) > 0.95
    assert np.count_nonzero(found & ~wrong) <= 2


def test_finds_two_wrong_cells_of_a_row(right):
    values, wrong = right.copy(), np.zeros((SIZE, 5), dtype=bool)
    for row in range(0, SIZE, 20):
        values[row, [0, 2]] += [4.0, -5.0]
        wrong[row, [0, 2]] = True
    found = find_blame(audits(values)).log_odds > 0.0
    assert np.mean(found[wrong]) > 0.9
    assert np.mean(wrong[found]) > 0.9


def test_finds_cells_that_changed_places(right):
    values = right.copy()
    rows = np.arange(0, SIZE, 25)
    values[np.ix_(rows, [1, 3])] = right[np.ix_(rows, [3, 1])]
    blame = find_blame(audits(values))
    assert (blame.swapped[rows][:, [1, 3]] == [3, 1]).all()
    assert (blame.log_odds[rows][:, [1, 3]] > 0.0).all()
    others = np.setdiff1d(np.arange(SIZE), rows)
    assert (blame.swapped[others] == -1).all()


def test_what_is_expected_of_a_wrong_cell_is_what_right_ones_say(right):
    values = right.copy()
    values[50, 2] += 40.0
    blame = find_blame(audits(values))
    for column in (0, 1, 2, 3):
        assert blame.expected[50, column] == pytest.approx(right[50, column], abs=1.0)


def test_missing_cells_are_no_suspects(right):
    values = right.copy()
    values[10, 1], values[20, 3] = np.nan, np.nan
    values[30, 0] += 6.0
    log_odds = find_blame(audits(values)).log_odds
    assert np.isnan(log_odds[[10, 20], [1, 3]]).all()
    assert np.count_nonzero(np.isnan(log_odds)) == 2
    assert np.isnan(cell_q_values(log_odds)[10, 1])


def test_absurd_cells_are_certainly_wrong_and_blame_nobody_else(right):
    values = right.copy()
    values[40, 1] = 1e7
    columns = audits(values)
    evidence = columns[1].evidence
    absurd = Evidence(**{**evidence.__dict__, "set_aside": np.arange(SIZE) == 40})
    columns[1] = ColumnAudit(absurd, columns[1].calibration, columns[1].predict)
    log_odds = find_blame(columns).log_odds[40]
    assert log_odds[1] == CERTAIN
    assert (np.delete(log_odds, 1) < 0.0).all()


def test_rows_nobody_doubts_are_left_alone(right):
    columns = audits(right)
    blame = find_blame(columns)
    calm = np.setdiff1d(
        np.arange(SIZE), doubtful_rows(np.column_stack([c.calibration.unlearned_log_odds(c.evidence) for c in columns]))
    )
    assert calm.size > SIZE / 2
    assert (blame.log_odds[calm] < 0.0).all()
    np.testing.assert_array_equal(blame.expected[calm], np.column_stack([c.evidence.expected for c in columns])[calm])


def test_rivals_share_the_blame_as_in_a_list_of_hypotheses():
    log_odds = np.array([[1.0, 3.0, -2.0], [-5.0, -6.0, -np.inf]])
    weights = np.exp(log_odds)
    for row in range(2):
        hypotheses = [1.0, *weights[row]]
        for column in range(3):
            chance = weights[row, column] / sum(hypotheses)
            expected = -np.inf if chance == 0.0 else np.log(chance / (1.0 - chance))
            assert shared(log_odds)[row, column] == pytest.approx(expected)


def test_q_values_are_mean_chances_of_being_right_over_all_cells():
    log_odds = np.array([[4.0, np.nan, -3.0], [2.0, 0.5, -6.0]])
    clean = 1.0 / (1.0 + np.exp(log_odds))
    found = cell_q_values(log_odds)
    worse = sorted(chain(clean[~np.isnan(clean)]))
    for (row, column), chance in np.ndenumerate(clean):
        if np.isnan(chance):
            assert np.isnan(found[row, column])
        elif chance <= 0.5:
            assert found[row, column] == pytest.approx(np.mean([other for other in worse if other <= chance]))
        else:
            assert found[row, column] == chance
    assert all(found[a] <= found[b] for a, b in combinations([(0, 0), (1, 0), (1, 1)], 2))
