"""From arrays to a verdict: scores, thresholds, calibration, error patterns, the audit table."""

from mislabel.decisions.by_feature import FeatureNoise, NoiseBin, grouped, noise_by_feature
from mislabel.decisions.calibration import Calibration, calibrate
from mislabel.decisions.evidence import Evidence
from mislabel.decisions.patterns import Pattern, find_patterns
from mislabel.decisions.scores import SCORES, score_labels
from mislabel.decisions.table import AUDIT_COLUMNS, AuditTable, audit_table
from mislabel.decisions.thresholds import THRESHOLDS, coverage, p_values, q_values, suspects
from mislabel.decisions.verdicts import learn_odds, table_with_verdicts

__all__ = [
    "AUDIT_COLUMNS",
    "SCORES",
    "THRESHOLDS",
    "AuditTable",
    "Calibration",
    "Evidence",
    "FeatureNoise",
    "NoiseBin",
    "Pattern",
    "audit_table",
    "calibrate",
    "coverage",
    "find_patterns",
    "grouped",
    "learn_odds",
    "noise_by_feature",
    "p_values",
    "q_values",
    "score_labels",
    "suspects",
    "table_with_verdicts",
]
