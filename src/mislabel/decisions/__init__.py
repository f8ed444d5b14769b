"""From arrays to a verdict: scores, thresholds, corrections, the audit table."""

from mislabel.decisions.evidence import Evidence
from mislabel.decisions.scores import SCORES, score_labels
from mislabel.decisions.table import AUDIT_COLUMNS, audit_table
from mislabel.decisions.thresholds import THRESHOLDS, p_values, q_values, suspects

__all__ = [
    "AUDIT_COLUMNS",
    "SCORES",
    "THRESHOLDS",
    "Evidence",
    "audit_table",
    "p_values",
    "q_values",
    "score_labels",
    "suspects",
]
