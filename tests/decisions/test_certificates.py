import numpy as np
import pytest
from scipy.stats import hypergeom

from mislabel.decisions.certificates import Certificate, depths_of, log_hypergeometric, most_right, sample_order
from mislabel.errors import InvalidParameterError


def reviewed(right, order, drawn, **options):
    """A certificate after so many verdicts; ``right`` says which suspects are right labels."""
    return Certificate(right.size, order, {int(k): bool(right[k]) for k in order[:drawn]}, **options)


def test_probabilities_are_hypergeometric():
    right = np.arange(31)
    np.testing.assert_allclose(np.exp(log_hypergeometric(30, right, 8, 2)), hypergeom.pmf(2, 30, right, 8), atol=1e-14)


def test_without_verdicts_nothing_is_known():
    certificate = reviewed(np.zeros(40, bool), sample_order(40, 0), 0)
    assert certificate.bound().right == 40
    assert certificate.cut() == 0
    assert len(certificate.next(10)) == 10


def test_all_verdicts_say_all():
    right = np.zeros(40, bool)
    right[[3, 17, 30]] = True
    certificate = reviewed(right, sample_order(40, 1), 40)
    assert (certificate.bound().right, certificate.bound().size) == (3, 40)
    assert certificate.bound([3, 4]).right == 1
    assert certificate.bound(np.arange(3)).right == 0
    assert certificate.cut(0.07) == 30
    assert certificate.cut(0.05) == 3
    assert certificate.next().size == 0


def test_bounds_fall_with_verdicts_and_say_how_many_halve_them():
    right, order = np.zeros(200, bool), sample_order(200, 2)
    bounds = [reviewed(right, order, drawn).bound().right for drawn in (0, 10, 20, 40, 80)]
    assert bounds[0] == 200
    assert (np.diff(bounds) < 0).all()
    assert bounds[2] < 50
    certificate = reviewed(right, order, 20)
    more = certificate.more_to_halve()
    assert reviewed(right, order, 20 + more).bound().right <= certificate.bound().right / 2
    assert reviewed(right, order, 20 + more - 2).bound().right > certificate.bound().right / 2


def test_verdicts_outside_the_sample_count_for_what_they_are():
    order = sample_order(60, 3)
    outside = int(order[30])
    certificate = Certificate(60, order, {int(order[0]): False, outside: True})
    assert certificate.sample.tolist() == [order[0]]
    assert certificate.bound([outside]).right == 1
    known = Certificate(60, order, {outside: False})
    assert known.bound([outside]).right == 0


@pytest.mark.parametrize("expected", [0.02, 0.05, 0.3])
@pytest.mark.parametrize("true_share", [0.0, 0.05, 0.3, 0.9, 1.0])
def test_bounds_hold_at_every_moment_whatever_the_truth(true_share, expected):
    # Verdict after verdict, for all suspects at once: the bound may be below the truth, ever, in one run of twenty at most.
    rng, total, broken = np.random.default_rng(0), 80, 0
    right = np.arange(total) < round(true_share * total)
    for _ in range(200):
        found, order = 0, rng.permutation(total)
        for drawn, place in enumerate(order, 1):
            found += right[place]
            if most_right(total, drawn, int(found), 0.05, expected) < right.sum():
                broken += 1
                break
    assert broken / 200 <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("where", ["worst first", "best first", "anywhere"])
def test_bounds_of_any_set_hold_together_under_a_model_that_is_wrong_in_every_way(where):
    # Right labels are where the score would have them last, or first: the set is picked after the verdicts, to look best.
    rng, total, broken = np.random.default_rng(4), 120, 0
    right = {
        "worst first": np.arange(total) < 40,
        "best first": np.arange(total) >= 80,
        "anywhere": np.arange(total) % 3 == 0,
    }[where]
    for _ in range(150):
        certificate = reviewed(right, rng.permutation(total), 40)
        sets = [np.arange(size) for size in range(1, total + 1)]
        sets += [rng.choice(total, rng.integers(1, total), replace=False) for _ in range(20)]
        sets += [np.flatnonzero(right), np.flatnonzero(~right)]
        broken += any(certificate.bound(chosen).right < right[chosen].sum() for chosen in sets)
    assert broken / 150 <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / 150)


def test_the_cut_moves_to_where_the_promise_holds():
    # The last third of the suspects are right labels: verdicts find that out, and the cut leaves them out.
    rng, total = np.random.default_rng(5), 300
    right = np.arange(total) >= 200
    certificate = reviewed(right, rng.permutation(total), 150, expected=0.05)
    cut = certificate.cut(0.1)
    assert 60 <= cut <= 222
    assert right[:cut].mean() <= 0.1


@pytest.mark.parametrize("share", [0.05, 0.2, 0.6])
def test_the_cut_is_the_longest_list_whose_own_bound_keeps_the_share(share):
    rng = np.random.default_rng(6)
    for total in (1, 7, 30, 90):
        right = rng.random(total) < np.linspace(0.0, 0.5, total)
        certificate = reviewed(right, rng.permutation(total), rng.integers(0, total + 1))
        certificate.verdicts.update({int(k): bool(right[k]) for k in rng.choice(total, total // 3, replace=False)})
        keeps = [size for size in range(1, total + 1) if certificate.bound(np.arange(size)).share <= share]
        assert certificate.cut(share) == max(keeps, default=0)


def test_many_suspects_take_no_time_to_speak_of():
    # A bound for each of the 100,000 lists of the most suspicious, one after the other, would take hours.
    total = 100_000
    right = np.arange(total) % 50 == 49
    certificate = reviewed(right, sample_order(total, 7), 3000)
    assert certificate.bound().right < 3500
    assert certificate.cut(0.05) == total
    assert 100 < reviewed(right, sample_order(total, 7), 100).more_to_halve() < total


def test_none_can_halve_a_bound_where_most_are_known_to_be_right():
    right = np.ones(20, bool)
    assert reviewed(right, sample_order(20, 8), 15).more_to_halve() is None
    assert reviewed(right, sample_order(20, 8), 20).more_to_halve() is None
    assert reviewed(right[:0], sample_order(0, 8), 0).more_to_halve() is None


def test_depths_and_bad_input():
    assert depths_of(100) == [100, 50, 25, 12]
    assert depths_of(3) == [3]
    with pytest.raises(InvalidParameterError, match="confidence must lie between 0 and 1"):
        Certificate(3, np.arange(3), {}, confidence=1.5)
