"""Groups that are wrong as a whole, found among groups that differ anyway."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mislabel.decisions.groups import (
    DISPLACED,
    FACTOR,
    NOISE,
    REVERSED,
    SHIFT,
    RightGroups,
    UnseenGroups,
    group_odds,
    group_verdicts,
)

SIZE, COUNT = 12, 40


def groups_with(change=None, wrong=(3, 17), seed=0, common=0.3):
    """Forty groups of twelve rows, each with a common error of its own; ``change`` spoils some."""
    rng = np.random.default_rng(seed)
    expected = rng.normal(5.0, 2.0, COUNT * SIZE)
    other = rng.normal(5.0, 2.0, COUNT * SIZE)
    members = [np.arange(k * SIZE, (k + 1) * SIZE) for k in range(COUNT)]
    labels = expected + 0.4 * rng.standard_t(6, expected.size)
    for rows in members:
        labels[rows] += common * rng.normal()
    for k in wrong if change is not None else ():
        labels[members[k]] = change(labels[members[k]], expected[members[k]], other[members[k]], rng)
    covariances = [np.eye(SIZE) for _ in members]
    return UnseenGroups(members, labels, expected, covariances, {"other": other})


CHANGES = {
    SHIFT: lambda y, *_: y + 3.0,
    FACTOR: lambda y, *_: 2.5 * y,
    NOISE: lambda y, f, o, rng: y + rng.normal(0.0, 4.0, y.size),
    DISPLACED: lambda y, *_: np.roll(y, 1),
    REVERSED: lambda y, *_: y[::-1],
    "other": lambda y, f, o, rng: y - f + o,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_of_error_is_found_and_named(kind):
    found = group_verdicts([group_odds(groups_with(CHANGES[kind]))])
    assert set(np.flatnonzero(found.q_value <= 0.05)) == {3, 17}
    assert [found.kind[k] for k in (3, 17)] == [kind, kind]


def test_right_groups_are_rarely_called_wrong():
    called = [group_verdicts([group_odds(groups_with(seed=seed, common=0.8))]).q_value <= 0.05 for seed in range(10)]
    assert np.sum(called) <= 3  # of 400


def test_p_values_of_right_groups_are_no_smaller_than_they_may_be():
    p = np.concatenate([group_verdicts([group_odds(groups_with(seed=seed))]).p_value for seed in range(10)])
    for level in (0.05, 0.2):
        assert np.mean(p <= level) <= level


def test_one_wrong_label_makes_no_wrong_group():
    def spoil(y, *_):
        y = y.copy()
        y[4] += 30.0
        return y

    found = group_verdicts([group_odds(groups_with(spoil))])
    assert not np.any(found.q_value <= 0.05)


def test_density_is_that_of_the_whole_covariance():
    groups = groups_with()
    rng = np.random.default_rng(1)
    root = rng.normal(size=(SIZE, SIZE))
    covariance = root @ root.T / SIZE + np.eye(SIZE)
    rows = groups.members[0]
    one = UnseenGroups([rows], groups.labels, groups.expected, [covariance], {})
    sums = one.sums()
    f = groups.expected[rows] - groups.expected[rows].mean()
    ridge = 0.1 * np.mean(covariance.diagonal())
    full = 0.7 * (covariance + ridge * np.eye(SIZE)) + 0.5 + 0.2 * np.outer(f, f)
    found = sums.log_density(np.array([[0.5]]), np.array([[0.2]]), np.array([[0.7]]))
    expected = multivariate_normal(np.zeros(SIZE), full).logpdf(groups.labels[rows] - groups.expected[rows])
    assert found[0, 0] == pytest.approx(expected, rel=1e-6)


def test_what_right_groups_have_in_common_is_learned():
    small, large = (group_odds(groups_with(CHANGES[SHIFT], common=common)).right for common in (0.1, 1.0))
    assert isinstance(small, RightGroups)
    assert small.common < 0.3 < large.common < 2.0
    assert 0.1 < small.variance < 0.4


def test_a_judge_that_is_mistaken_does_not_decide():
    right, wrong = group_odds(groups_with()), group_odds(groups_with(CHANGES[SHIFT]))
    found = group_verdicts([right, wrong, right])
    assert not np.any(found.q_value <= 0.05)
