import numpy as np
import pytest

from mislabel.decisions.patterns import RULES, confidence_words, find_patterns


def suspects_with(rng, change, count=8, others=12, std=0.02):
    """Expected values, labels of which ``count`` were changed by a rule and ``others`` at random."""
    size = 200
    expected = rng.uniform(2, 9, size)
    label = expected + std * rng.normal(size=size)
    chosen = rng.permutation(size)[: count + others]
    ruled, random = chosen[:count], chosen[count:]
    label[ruled] = change(label[ruled])
    label[random] += rng.choice([-1, 1], others) * rng.uniform(0.5, 4.0, others)
    suspect = np.zeros(size, dtype=bool)
    suspect[chosen] = True
    return label, expected, np.full(size, std**2), suspect, set(ruled.tolist())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_recognised(rng, rule):
    label, expected, variance, suspect, ruled = suspects_with(rng, lambda value: rule.factor * value + rule.offset)
    # Rules whose factors are nearly the same cannot be told apart; what they correct can.
    found = [
        pattern
        for pattern in find_patterns(label, expected, variance, suspect)
        if ruled & set(pattern.positions.tolist())
    ]
    covered = {position for pattern in found for position in pattern.positions.tolist()}
    assert len(covered & ruled) >= 7
    for pattern in found:
        hits = np.isin(pattern.positions, list(ruled))
        np.testing.assert_allclose(pattern.corrected[hits], expected[pattern.positions[hits]], atol=0.2)


def test_a_unit_error_in_words(rng):
    label, expected, variance, suspect, ruled = suspects_with(rng, lambda value: 1000 * value, count=14, others=3)
    best = find_patterns(label, expected, variance, suspect)[0]
    assert best.sentence == "14 suspects fit label = 1000 x expected"
    assert set(best.positions.tolist()) == ruled
    assert best.by_accident < 1
    assert confidence_words(best.p_value) == "practically certain"


def test_a_factor_without_a_name(rng):
    label, expected, variance, suspect, ruled = suspects_with(rng, lambda value: 5.43 * value, count=9)
    best = find_patterns(label, expected, variance, suspect)[0]
    assert best.name == "factor"
    assert best.details["factor"] == pytest.approx(5.43, rel=0.01)
    assert set(best.positions.tolist()) == ruled


def test_swapped_neighbours(rng):
    expected = rng.uniform(2, 9, 100)
    label = expected + 0.01 * rng.normal(size=100)
    suspect = np.zeros(100, dtype=bool)
    for first in (10, 40, 70):
        label[[first, first + 1]] = label[[first + 1, first]]
        suspect[[first, first + 1]] = np.abs(expected[first] - expected[first + 1]) > 0.2
    best = find_patterns(label, expected, np.full(100, 1e-4), suspect)[0]
    assert best.words == "labels of two neighbouring rows swapped"
    np.testing.assert_allclose(best.corrected, expected[best.positions], atol=0.05)


def test_swaps_across_the_file(rng):
    expected = rng.uniform(2, 9, 100)
    label = expected + 0.005 * rng.normal(size=100)
    suspect = np.zeros(100, dtype=bool)
    for first, second in ((3, 80), (20, 60), (33, 95)):
        label[[first, second]] = label[[second, first]]
        suspect[[first, second]] = True
    best = find_patterns(label, expected, np.full(100, 2.5e-5), suspect)[0]
    assert best.words == "labels of two rows swapped"
    assert sorted(best.details["pairs"]) == [(3, 80), (20, 60), (33, 95)]


def test_a_stuck_sensor(rng):
    label, expected, variance, suspect, ruled = suspects_with(rng, lambda value: 0 * value - 9.99, count=5)
    label[list(ruled)] = -9.99
    best = next(p for p in find_patterns(label, expected, variance, suspect) if p.name == "stuck")
    assert set(best.positions.tolist()) == ruled
    np.testing.assert_array_equal(best.corrected, expected[best.positions])


def test_one_instrument_off_by_a_constant(rng):
    expected = rng.uniform(2, 9, 300)
    label = expected + 0.02 * rng.normal(size=300)
    instrument = rng.choice(["A", "B", "C"], 300)
    shifted = np.flatnonzero(instrument == "B")[:12]
    label[shifted] += 0.7
    suspect = np.zeros(300, dtype=bool)
    suspect[shifted] = True
    stray = np.flatnonzero(instrument != "B")[:6]
    label[stray] += rng.uniform(1, 3, 6)
    suspect[stray] = True
    best = find_patterns(label, expected, np.full(300, 4e-4), suspect, {"instrument": instrument.tolist()})[0]
    assert best.name == "offset"
    assert "where instrument is B" in best.words
    assert best.details["offset"] == pytest.approx(0.7, abs=0.03)
    assert set(best.positions.tolist()) == set(shifted.tolist())


def test_random_errors_have_no_pattern(rng):
    false = 0
    for _ in range(100):
        expected = rng.uniform(2, 9, 40)
        label = expected + rng.normal(0, 3, 40)
        groups = {"batch": rng.choice(list("abcd"), 40).tolist()}
        false += bool(find_patterns(label, expected, np.full(40, 1e-3), np.abs(label - expected) > 0.1, groups))
    assert false <= 6


def zero_inflated_counts(rng, size=500):
    """Counts, most of them none where next to none are expected, and evidence that is too sure of it."""
    rate = np.where(rng.uniform(size=size) < 0.8, 0.003, rng.uniform(2, 9, size))
    label = rng.poisson(rate).astype(float)
    wrong = rng.permutation(size)[:120]
    label[wrong] = rng.integers(1, 9, wrong.size)
    variance = np.maximum(rate, 0.01) * 0.05
    return label, rate, variance, np.abs(label - rate) > 4 * np.sqrt(variance)


@pytest.mark.parametrize("seed", range(10))
def test_counts_where_none_were_expected_have_no_factor(seed):
    label, expected, variance, suspect = zero_inflated_counts(np.random.default_rng(seed))
    assert np.count_nonzero(suspect) > 50
    assert find_patterns(label, expected, variance, suspect) == []


@pytest.mark.parametrize("seed", range(10))
def test_ten_is_never_called_a_hundred_where_expectations_are_shrunken(seed):
    rng = np.random.default_rng(seed)
    truth = np.exp(rng.normal(5.5, 1.0, 200))
    expected = np.exp(5.0 + 0.2 * (np.log(truth) - 5.5))
    label = truth * np.exp(rng.normal(0, 0.05, 200))
    ruled = rng.permutation(200)[:10]
    label[ruled] *= 10
    suspect = np.zeros(200, dtype=bool)
    suspect[ruled] = True
    for pattern in find_patterns(label, expected, (0.25 * expected) ** 2, suspect, degrees=4.0):
        assert pattern.name == "times 10"


def test_eight_of_ten_suspects_times_ten_are_found(rng):
    label, expected, variance, suspect, ruled = suspects_with(rng, lambda value: 10 * value, count=8, others=2, std=0.3)
    (found,) = find_patterns(label, expected, variance, suspect, degrees=5.0)
    assert found.name == "times 10"
    assert set(found.positions.tolist()) <= ruled
    assert found.positions.size >= 7


def test_units_are_named_only_where_the_label_is_of_their_quantity(rng):
    label, expected, variance, suspect, ruled = suspects_with(rng, lambda value: value / 0.3048, count=10)
    assert find_patterns(label, expected, variance, suspect, name="height")[0].name == "feet for metres"
    for name in ("energy", "price"):
        (found,) = find_patterns(label, expected, variance, suspect, name=name)
        assert found.name == "factor"
        assert found.details["factor"] == pytest.approx(1 / 0.3048, rel=0.005)
        assert set(found.positions.tolist()) <= ruled


def test_values_that_labels_have_are_not_stuck(rng):
    expected = np.where(np.arange(300) < 150, 0.0, rng.uniform(20, 50, 300))
    label = np.where(expected > 0, expected + 0.1 * rng.normal(size=300), 0.0)
    suspect = np.zeros(300, dtype=bool)
    suspect[200:220] = True
    label[200:220] = 0.0
    assert find_patterns(label, expected, np.full(300, 0.01), suspect) == []


def test_corrected_values_have_no_float_noise(rng):
    expected = np.round(rng.uniform(2000, 9000, 100), 2)
    label, suspect = expected.copy(), np.arange(100) < 12
    label[suspect] = np.round(expected[suspect] * 10, 1)
    (found,) = find_patterns(label, expected, np.full(100, 100.0), suspect)
    assert found.corrected.tolist() == expected[found.positions].tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 10])
def test_odd_numbers_have_no_pattern_and_raise_nothing(rng, size):
    everything = np.ones(size, dtype=bool)
    groups = {"nul": ["\x00"] * size, "lists": [[1]] * size}
    for value in (0.0, 1.0, 1e300, -1.7e308, 1e-300, np.nan, np.inf):
        for expected in (0.0, 1.0, 1.7e308, 1e-300):
            for variance in (0.0, 5e-324, 1.0, 1e300, np.inf, np.nan):
                arrays = (np.full(size, number) for number in (value, expected, variance))
                found = find_patterns(*arrays, everything, groups, degrees=2.2)
                assert all(np.all(np.isfinite(pattern.corrected)) for pattern in found)


def test_many_suspects(rng):
    size = 20_000
    expected = rng.uniform(2, 9, size)
    label = expected + rng.normal(0, 3, size)
    label[:4000] = 10 * (expected[:4000] + 0.03 * rng.normal(size=4000))
    groups = {"batch": [[k % 7] for k in range(size)]}
    (found,) = find_patterns(label, expected, np.full(size, 1e-3), np.ones(size, dtype=bool), groups)
    assert found.name == "times 10"
    assert np.mean(found.positions < 4000) > 0.98
    assert found.positions.size > 3900


def test_few_or_missing_suspects_are_fine():
    nothing = np.array([np.nan, 1.0, 2.0])
    assert find_patterns(nothing, np.ones(3), np.ones(3), np.array([True, True, False])) == []
