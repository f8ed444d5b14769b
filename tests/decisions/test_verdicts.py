"""What verdicts of a person say of all other labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from mislabel.decisions import Evidence, audit_table, calibrate, q_values
from mislabel.decisions.verdicts import LearnedOdds, learn_odds, table_with_verdicts

DECISION = {"score": "odds", "threshold": "fdr", "cutoff": 0.05, "confidence": 0.95}


def evidence_of(expected, error):
    zeros, label = np.zeros(error.size), expected + error
    return Evidence(np.arange(error.size), label, expected, zeros + 1.0, error, error, zeros, zeros, expected)


def reviewed(evidence, verdicts):
    """Log odds before a review, and after it."""
    before = calibrate(evidence.errors, rival=True).apply(evidence).log_odds
    after = calibrate(evidence.errors, rival=True, verdicts=verdicts).apply(evidence).log_odds
    return before, learn_odds(after, verdicts)(after)


def test_without_verdicts_odds_stay_as_they_are(rng):
    odds = rng.normal(0.0, 5.0, 30)
    assert learn_odds(odds, np.full(30, np.nan)) == LearnedOdds(0.0, 1.0)


def test_learned_odds_are_the_best_of_all_shifts_and_slopes(rng):
    odds = rng.normal(2.0, 3.0, 80)
    verdicts = np.where(rng.random(80) < expit(0.4 * odds - 1.0), 1.0, 0.0)
    verdicts[:20], odds[20] = np.nan, np.nan
    found = learn_odds(odds, verdicts)
    shift, slope = np.meshgrid(np.linspace(-6, 3, 451), np.exp(np.linspace(-2, 1, 301)))
    value = -0.5 * (shift / 2.0) ** 2 - 0.5 * (np.log(slope) / 0.7) ** 2
    for known, verdict in zip(odds[21:], verdicts[21:], strict=True):
        value += np.log(expit((2 * verdict - 1) * (shift + slope * known)))
    best = np.unravel_index(np.argmax(value), value.shape)
    assert found.shift == pytest.approx(shift[best], abs=0.02)
    assert found.slope == pytest.approx(slope[best], rel=0.02)


@pytest.mark.parametrize(
    ("kind", "before", "after", "power"), [("heavy t2", 0.07, 0.09, 0.55), ("two batches", 0.3, 0.1, 0.6)]
)
def test_thirty_verdicts_bring_the_false_discoveries_of_the_rest_towards_the_promise(kind, before, after, power):
    # Right labels of two batches, one with eight times the noise of the other, are no Student-t: many of them look wrong.
    calls, false, wrong_ones = np.zeros(2), np.zeros(2), 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        size = 2500
        right = (
            rng.standard_t(2, size)
            if kind == "heavy t2"
            else rng.normal(size=size) * np.where(rng.random(size) < 0.06, 8, 1)
        )
        wrong = rng.random(size) < 0.05
        error = right + np.where(wrong, rng.choice([-1, 1], size) * rng.uniform(5, 80, size), 0.0)
        evidence = evidence_of(rng.normal(0.0, 20.0, size), error)
        suspects = np.flatnonzero(q_values(calibrate(evidence.errors, rival=True).apply(evidence)) <= 0.05)
        verdicts = np.full(size, np.nan)
        looked_at = rng.choice(suspects, 30, replace=False)
        verdicts[looked_at] = wrong[looked_at]
        rest = np.flatnonzero(np.isnan(verdicts))
        for number, odds in enumerate(reviewed(evidence, verdicts)):
            called = rest[q_values(replace(evidence, log_odds=odds).some(rest)) <= 0.05]
            calls[number] += called.size
            false[number] += np.count_nonzero(~wrong[called])
        wrong_ones += np.count_nonzero(wrong[rest])
    rates = false / calls
    assert rates[0] > before
    assert rates[1] < after
    assert abs(rates[1] - 0.05) < abs(rates[0] - 0.05)
    assert (calls[1] - false[1]) / wrong_ones > power


def test_verdicts_on_an_honest_model_change_little(rng):
    wrong = rng.random(2000) < 0.04
    error = rng.normal(size=2000) + np.where(wrong, rng.normal(0.0, 20.0, 2000), 0.0)
    evidence = evidence_of(rng.normal(0.0, 20.0, 2000), error)
    before = calibrate(evidence.errors, rival=True).apply(evidence)
    suspects = np.flatnonzero(q_values(before) <= 0.05)
    verdicts = np.full(2000, np.nan)
    looked_at = rng.choice(suspects, 30, replace=False)
    verdicts[looked_at] = wrong[looked_at]
    _, after = reviewed(evidence, verdicts)
    called = np.flatnonzero(q_values(replace(evidence, log_odds=after)) <= 0.05)
    assert np.setxor1d(called, suspects).size <= 0.1 * suspects.size


@pytest.fixture
def judged(rng):
    evidence = evidence_of(rng.normal(0.0, 5.0, 60), rng.normal(size=60))
    return replace(evidence, log_odds=np.linspace(-6.0, 6.0, 60))


def test_a_table_with_no_verdict_is_the_table(judged):
    told = np.full(60, np.nan)
    table = table_with_verdicts(judged, told, **DECISION)
    expected = audit_table(judged, **DECISION)
    assert type(table) is type(expected)
    assert table.equals(expected)


def test_known_labels_are_what_they_are_and_the_rest_is_judged_alone(judged):
    told = np.full(60, np.nan)
    told[[59, 55, 10]], told[[58, 3]] = 0.0, 1.0
    table = table_with_verdicts(judged, told, **DECISION)
    by_row = table.set_index("row")
    assert by_row.loc[[59, 55, 10], "q_value"].tolist() == [1.0, 1.0, 1.0]
    assert not by_row.loc[[59, 55, 10], "suspect"].any()
    assert by_row.loc[[58, 3], "q_value"].tolist() == [0.0, 0.0]
    assert by_row.loc[[58, 3], "suspect"].all()
    # A label that is wrong has a suggestion, one that is right has none but itself.
    np.testing.assert_array_equal(by_row.loc[[58, 3], "suggested_label"], judged.corrected[[58, 3]])
    np.testing.assert_array_equal(by_row.loc[[59, 55], "suggested_label"], judged.label[[59, 55]])
    rest = np.flatnonzero(np.isnan(told))
    np.testing.assert_array_equal(by_row.loc[rest, "q_value"], q_values(judged.some(rest)))
    assert set(table["row"][:3]) >= {58, 3}
    assert set(table["row"][-4:]) >= {59, 55, 10}
    assert sorted(table["row"]) == list(range(60))


def test_all_known_and_the_most_suspicious_that_were_asked_for(judged):
    told = np.where(np.arange(60) < 20, 0.0, 1.0)
    assert table_with_verdicts(judged, told, **DECISION)["suspect"].sum() == 40
    told = np.full(60, np.nan)
    told[[59, 5]] = 0.0, 1.0
    table = table_with_verdicts(judged, told, **{**DECISION, "threshold": "top-k", "cutoff": 4})
    assert set(table["row"][table["suspect"]]) == {5, 58, 57, 56}
    told[:50] = 1.0
    table = table_with_verdicts(judged, told, **{**DECISION, "threshold": "top-k", "cutoff": 4})
    assert table["suspect"].sum() == 50
