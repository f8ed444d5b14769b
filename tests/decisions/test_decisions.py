from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from mislabel.decisions import AUDIT_COLUMNS, SCORES, Evidence, audit_table, p_values, q_values, score_labels, suspects
from mislabel.decisions.calibration import as_promised


def make(z, rows=None, noise=None, label=None):
    z = np.asarray(z, dtype=float)
    size = z.size
    variance = np.full(size, 4.0)
    error = 2.0 * z
    label = np.where(np.isnan(z), np.nan, 10.0) if label is None else label
    return Evidence(
        rows=np.arange(size) if rows is None else np.asarray(rows),
        label=label,
        expected=np.where(np.isnan(z), 5.0, label - error),
        variance=variance,
        error=error,
        z=z,
        noise_variance=np.maximum(error**2 - variance, 0) if noise is None else np.asarray(noise, dtype=float),
        label_noise=np.zeros(size),
        corrected=np.full(size, 7.0),
    )


def test_scores_by_name():
    evidence = make([0.5, -3.0, 2.0])
    np.testing.assert_allclose(score_labels(evidence, "z"), [0.5, 3.0, 2.0])
    np.testing.assert_allclose(score_labels(evidence, "loo_error"), [1.0, 6.0, 4.0])
    np.testing.assert_allclose(score_labels(evidence, "noise_variance"), [0.0, 32.0, 12.0])
    np.testing.assert_allclose(score_labels(evidence, "gain"), [0.0, 9 - 1 - np.log(9), 4 - 1 - np.log(4)])


KNOWN = replace(
    as_promised(), wrong_fraction=0.2, wrong_std=9.0, degrees=3.0, scale=1.0, gain=np.inf, adjusted=True, typical=1.0
)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", list(SCORES))
def test_a_worse_label_never_scores_lower(name, known):
    evidence = make(np.linspace(0, 8, 50), label=np.full(50, 20.0))
    scores = score_labels(KNOWN.apply(evidence) if known else evidence, name)
    assert (np.diff(scores) >= 0).all()


def test_odds_prefer_the_larger_of_two_errors_with_the_same_z():
    evidence = replace(make([4.0, 4.0]), variance=np.array([1.0, 0.0001]), expected=np.array([6.0, 9.96]))
    far, near = score_labels(KNOWN.apply(replace(evidence, error=np.array([4.0, 0.04]))), "odds")
    assert far > near


def test_missing_labels_score_lowest():
    evidence = KNOWN.apply(make([0.1, np.nan, 5.0]))
    scores = score_labels(evidence, "odds")
    assert scores[0] < 0
    assert scores[1] == scores.min()


def test_p_and_q_values_by_hand():
    z = np.array([4.0, 3.0, 0.1, 0.2])
    evidence = make(z)
    p = 2 * norm.sf(z)
    np.testing.assert_allclose(p_values(evidence), p)
    np.testing.assert_allclose(q_values(evidence)[:2], [4 * p[0], 2 * p[1]])


def test_false_discovery_rate_is_kept_for_clean_and_wrong_mixtures():
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(200):
        z = rng.standard_normal(300)
        z[:30] += rng.choice([-1, 1], 30) * 5.0
        called = suspects(make(z), np.abs(z), "fdr", 0.1)
        rates.append(np.sum(called[30:]) / max(np.sum(called), 1))
    assert 0.07 < np.mean(rates) < 0.11


def test_thresholds():
    evidence = make([0.5, -3.5, 2.0, np.nan])
    scores = score_labels(evidence, "z")
    assert suspects(evidence, scores, "top-k", 2).tolist() == [False, True, True, False]
    assert suspects(evidence, scores, "top-k", 4).tolist() == [True, True, True, False]
    assert suspects(evidence, scores, "z", 3.0).tolist() == [False, True, False, False]
    assert suspects(evidence, scores, "fdr", 0.05).tolist() == [False, True, False, False]


def test_table_columns_order_and_values():
    evidence = make([0.5, -6.0, 2.0, np.nan], rows=["a", "b", "c", "d"])
    table = audit_table(evidence, cutoff=0.05, confidence=0.9)
    assert list(table.columns) == AUDIT_COLUMNS
    assert table["row"].tolist() == ["b", "c", "a", "d"]
    worst = table.iloc[0]
    assert worst["suspect"]
    assert worst["suggested_label"] == 7.0
    assert worst["expected"] == 22.0
    assert worst["expected_high"] == pytest.approx(22.0 + norm.ppf(0.95) * 2.0)
    assert worst["noise_std"] == pytest.approx(np.sqrt(140.0))
    missing = table.iloc[3]
    assert np.isnan(missing["label"])
    assert missing["suggested_label"] == 7.0
    assert table.iloc[2]["suggested_label"] == 10.0


def test_ties_in_the_score_are_broken_by_z():
    table = audit_table(make([0.1, 0.9, 0.5], noise=[0, 0, 0]), score="noise_variance")
    assert table["row"].tolist() == [1, 2, 0]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=30))
def test_tables_of_any_evidence(z):
    table = audit_table(make(z))
    assert isinstance(table, pd.DataFrame)
    assert len(table) == len(z)
    assert table["p_value"].between(0, 1).all()
    assert table["q_value"].between(0, 1).all()
    assert (table["q_value"] >= table["p_value"] - 1e-12).all()
    assert (table.loc[table["suspect"], "q_value"] <= 0.05).all()


def test_q_values_are_mean_probabilities_of_being_right():
    evidence = KNOWN.apply(make([0.1, 9.0, -7.5, 1.0, np.nan, 2.0]))
    right = 1.0 / (1.0 + np.exp(evidence.log_odds))
    q = q_values(evidence)
    assert right[1] < right[2] < 0.5 < right[3]
    assert q[1] == pytest.approx(right[1])
    assert q[2] == pytest.approx((right[1] + right[2]) / 2)
    assert q[3] == pytest.approx(right[3])
    assert q[4] == 1.0


def test_labels_at_an_atom_are_judged_by_how_probable_it_is():
    evidence = make([0.0, 0.0, 9.0, 0.2])
    at_atom, chance = np.array([True, True, False, False]), np.array([0.9, 0.001, 0.5, 0.5])
    found = KNOWN.apply(replace(evidence, at_atom=at_atom, chance=chance))
    odds = np.log(0.25) + np.log(chance.mean()) - np.log(chance[:2])
    np.testing.assert_allclose(found.log_odds[:2], odds)
    np.testing.assert_allclose(p_values(found)[:2], chance[:2])
    assert q_values(found)[0] > 0.5
    # What is beside an atom where most labels are at it is the more surprising.
    rare = KNOWN.apply(replace(evidence, at_atom=at_atom, chance=np.array([0.9, 0.001, 0.99, 0.5])))
    assert rare.log_odds[2] > found.log_odds[2] + 2.0
    # Where nothing is known of wrong labels, they are not tested.
    assert q_values(replace(found, log_odds=None))[0] == 1.0
