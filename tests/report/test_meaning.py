"""What the opening line says of the rate: true in every case, and nothing promised where nothing can be."""

from types import SimpleNamespace

import numpy as np
import pytest

from mislabel import audit
from mislabel.report.kind_words import kind_facts, meaning_line, promise_line


def findings(*, suspects=20, threshold="fdr", cutoff=None, fdr=0.05, set_aside=0, **calibration):
    known = {"adjusted": True, "contested": False, "wrong_fraction": 0.05, "degrees": 8.0, **calibration}
    evidence = SimpleNamespace(absurd=np.arange(100) < set_aside)
    model = SimpleNamespace(calibration_=SimpleNamespace(**known), calibrated_evidence_=evidence)
    return SimpleNamespace(model=model, n_suspects=suspects, threshold=threshold, cutoff=cutoff, fdr=fdr)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            {},
            "Of the labels called wrong at a rate of 5 %, about one in 20 is expected to be right, on average over tables",
        ),
        ({"fdr": 0.3}, "at a rate of 30 %, about 30 % are expected to be right"),
        (
            {"adjusted": False},
            "too few labels to tell how right ones spread: the rate of 5 % takes the model at its word",
        ),
        ({"wrong_fraction": 0.5}, "the model may not fit: trust the ranking more than the cut"),
        ({"degrees": 2.1}, "such heavy tails here that a rate would be a guess"),
        (
            {"suspects": 2, "set_aside": 2},
            "beyond any plausible scale, whatever the rate; at 5 % none of the others is",
        ),
        ({"suspects": 0}, "At a rate of 5 % no label is called wrong"),
        (
            {"suspects": 0, "contested": True},
            "right labels with heavy tails explain that as well as wrong ones do: none is",
        ),
        (
            {"suspects": 0, "contested": True, "wrong_fraction": 0.3},
            "30 % of the labels would have to be wrong: rather, what the others predict does not fit them",
        ),
        (
            {"suspects": 0, "adjusted": False},
            "no label is called wrong; there are too few to tell how right ones spread",
        ),
        ({"threshold": "top-k", "cutoff": 20}, "The 20 most suspicious labels were asked for: nothing is promised"),
        (
            {"threshold": "top-k", "cutoff": 1, "suspects": 1},
            "The most suspicious label was asked for: nothing is promised",
        ),
        ({"threshold": "z", "cutoff": 3.0}, "off by more than 3 standard deviations: nothing is promised"),
    ],
)
def test_each_case_has_a_line_of_its_own(case, words):
    line = meaning_line(findings(**case))
    assert words in line
    assert line.endswith(".")
    assert line.count(". ") <= 1
    proof = "verdicts on a random sample of the suspects"
    assert (proof in promise_line(findings(**case))) == (case.get("suspects", 20) > 0)


@pytest.mark.parametrize("decision", [{}, {"threshold": "top-k", "cutoff": 4}, {"threshold": "z", "cutoff": 4.0}])
def test_the_summary_holds_the_line_of_its_audit(friedman, decision):
    features, labels, _, _ = friedman(120, 0.05, 3.0, 0)
    found = audit(features, labels, mean="none", **decision)
    assert promise_line(found.findings) in found.summary["trust"]


def test_what_kind_of_labels_these_are(rng):
    size = 200
    x = rng.uniform(0, 3, size)
    counts = rng.poisson(np.exp(x)).astype(float)
    found = audit(np.column_stack([x, rng.normal(size=size)]), counts, mean="none")
    facts = kind_facts(found.findings, ".")
    assert facts["Steps"].startswith("Labels come in steps of 1, as counts")
    limits = [
        f"<{value:.2f}" if k < 9 else f"{value:.2f}" for k, value in enumerate(np.exp(x) + rng.normal(0, 0.1, size))
    ]
    import pandas as pd

    found = audit(pd.DataFrame({"x": x, "y": limits}), "y", mean="none")
    assert "are 9 upper limits" in kind_facts(found.findings, ".")["Limits"]


def test_one_suspect_has_no_pattern(friedman):
    features, labels, _, _ = friedman(100, 0.0, 0.0, 0)
    labels[17] += 60
    found = audit(features, labels, mean="none", threshold="top-k", cutoff=1)
    first, _, pattern = found.summary["summary"]
    assert first == "1 of 100 labels looks wrong since the most suspicious one was asked for."
    assert pattern == "One suspect alone shows no pattern."
