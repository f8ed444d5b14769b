"""The audit table: one row per label, the most suspicious first."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mislabel.decisions.evidence import Evidence
from mislabel.decisions.scores import score_labels
from mislabel.decisions.thresholds import half_width, p_values, q_values, suspects

AUDIT_COLUMNS = [
    "row",
    "label",
    "expected",
    "expected_low",
    "expected_high",
    "suggested_label",
    "noise_std",
    "z",
    "p_value",
    "q_value",
    "score",
    "suspect",
]


def audit_table(
    evidence: Evidence,
    *,
    score: str = "z",
    threshold: str = "fdr",
    cutoff: float = 0.05,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Assemble the table from evidence, calibrated if it is to be.

    ``expected_low`` and ``expected_high`` bound where a clean label would lie with probability ``confidence``. The
    suggested label is the posterior mean of the clean label for suspects and missing labels, the label itself for all
    others.
    """
    half = half_width(evidence, confidence)
    scores = score_labels(evidence, score)
    suspect = suspects(evidence, scores, threshold, cutoff)
    table = pd.DataFrame(
        {
            "row": evidence.rows,
            "label": evidence.label,
            "expected": evidence.expected,
            "expected_low": evidence.expected - half,
            "expected_high": evidence.expected + half,
            "suggested_label": np.where(suspect | np.isnan(evidence.label), evidence.corrected, evidence.label),
            "noise_std": np.sqrt(evidence.noise_variance),
            "z": evidence.z,
            "p_value": p_values(evidence),
            "q_value": q_values(evidence),
            "score": scores,
            "suspect": suspect,
        },
        columns=AUDIT_COLUMNS,
    )
    # Equal scores (all trusted labels, for the paper's own score) are ordered by |z|, then as they came.
    order = np.lexsort((np.arange(scores.size), -np.abs(np.nan_to_num(evidence.z)), -scores))
    return table.iloc[order].reset_index(drop=True)
