from dataclasses import replace

import numpy as np
import pytest

from mislabel.decisions import Evidence, audit_table, calibrate, detection
from mislabel.decisions.detection import detection_limits
from mislabel.decisions.thresholds import q_values
from mislabel.likelihoods.transforms import Logarithm

FDR = 0.05


def evidence_of(error, variance, expected, transform=None):
    zeros = np.zeros(error.size)
    label = expected + error
    made = Evidence(
        np.arange(error.size), label, expected, variance, error, error / np.sqrt(variance), zeros, zeros, label
    )
    return made if transform is None else replace(made, transform=transform)


def normal_errors(rng, size=300):
    variance = rng.uniform(0.5, 2.0, size)
    return rng.normal(0.0, np.sqrt(variance)), variance, rng.normal(0.0, 10.0, size)


def described(evidence):
    return calibrate(evidence.errors, rival=True)


def limits(evidence):
    found = described(evidence)
    return detection_limits(evidence, found, q_values(found.apply(evidence)) <= FDR, FDR)


def test_planted_errors_of_that_size_are_mostly_noticed(rng):
    evidence = evidence_of(*normal_errors(rng))
    limit = limits(evidence).limit
    assert np.isfinite(limit).all()
    noticed = {1.0: [], 0.4: []}
    for part in noticed:
        for _ in range(8):
            chosen = rng.choice(limit.size, 6, replace=False)
            error = evidence.error.copy()
            # A right label's own error comes on top.
            error[chosen] += part * limit[chosen] * rng.choice([-1.0, 1.0], chosen.size)
            planted = evidence_of(error, evidence.variance, evidence.expected)
            noticed[part].append(np.mean(q_values(described(planted).apply(planted))[chosen] <= FDR))
    assert np.mean(noticed[1.0]) > 0.7
    assert np.mean(noticed[0.4]) < 0.4


def test_rows_that_are_predicted_worse_have_larger_limits(rng):
    error, variance, expected = normal_errors(rng)
    limit = limits(evidence_of(error, variance, expected)).limit
    order = np.argsort(variance)
    assert np.all(np.diff(limit[order]) > -1e-9 * limit.max())
    assert limit[order[-1]] > 1.3 * limit[order[0]]


def test_limits_are_in_label_units(rng):
    error, variance, expected = normal_errors(rng)
    plain = limits(evidence_of(error, variance, expected)).limit
    scaled = limits(evidence_of(1000.0 * error, 1e6 * variance, 1000.0 * expected)).limit
    np.testing.assert_allclose(scaled, 1000.0 * plain, rtol=0.05)
    on_log = limits(evidence_of(0.1 * error, 0.01 * variance, 1.0 + 0.1 * expected, Logarithm(1e-3))).limit
    large = np.argsort(expected)
    assert np.median(on_log[large[-50:]]) > 3.0 * np.median(on_log[large[:50]])


def test_too_few_labels_are_judged_by_p_values(rng):
    evidence = evidence_of(*(part[:12] for part in normal_errors(rng)))
    found = described(evidence)
    assert not found.adjusted
    limit = detection_limits(evidence, found, np.zeros(12, dtype=bool), FDR).limit
    far = evidence_of(np.where(np.arange(12) == 3, limit, 0.0), evidence.variance, evidence.expected)
    assert (q_values(far) <= FDR).tolist() == [k == 3 for k in range(12)]


def test_tables_without_known_labels_have_no_limits():
    nothing = np.full(4, np.nan)
    evidence = evidence_of(nothing, np.ones(4), np.zeros(4))
    assert np.isinf(detection_limits(evidence, described(evidence), np.zeros(4, dtype=bool), FDR).limit).all()


def test_of_many_rows_some_are_looked_at(rng, monkeypatch):
    evidence = evidence_of(*normal_errors(rng))
    whole = limits(evidence).limit
    monkeypatch.setattr(detection, "MOST_SEARCHED", 40)
    np.testing.assert_allclose(limits(evidence).limit, whole, rtol=0.1)


def test_the_table_asks_for_limits_once_it_knows_the_suspects(rng):
    evidence = evidence_of(*normal_errors(rng))
    asked = []

    def detectable(suspect):
        asked.append(suspect)
        return np.arange(suspect.size, dtype=float)

    table = audit_table(described(evidence).apply(evidence), detectable=detectable)
    assert len(asked) == 1
    assert asked[0].sum() == table["suspect"].sum()
    assert table["detectable"].tolist() == table["row"].tolist()


@pytest.mark.parametrize("side", [None, "none"])
def test_exact_labels_have_no_column_of_signs(side, rng):
    evidence = evidence_of(*normal_errors(rng, 30))
    if side == "none":
        evidence = replace(evidence, side=np.zeros(30, dtype=np.int8))
    assert "censored" not in audit_table(evidence)


def test_limits_have_their_sign_in_the_table(rng):
    side = np.array([-1, 1] + [0] * 28, dtype=np.int8)
    table = audit_table(replace(evidence_of(*normal_errors(rng, 30)), side=side)).set_index("row")
    assert table["censored"].sort_index().tolist() == ["<", ">"] + [""] * 28
