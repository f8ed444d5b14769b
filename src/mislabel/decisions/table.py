"""The audit table: one row per label, the most suspicious first."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, cast

import numpy as np
import pandas as pd

from mislabel.decisions.evidence import BoolArray, Evidence, FloatArray
from mislabel.decisions.scores import score_labels
from mislabel.decisions.thresholds import half_width, p_values, q_values, suspects

_ROWS_IN_NOTEBOOK = 20

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
    "detectable",
]


class AuditTable(pd.DataFrame):
    """A dataframe that, in a notebook, begins with what was found and shows the rows that matter."""

    _metadata: ClassVar[list[str]] = []

    @property
    def _constructor(self) -> type[AuditTable]:
        return AuditTable

    def _repr_html_(self) -> str | None:
        if not set(AUDIT_COLUMNS) <= set(self.columns):
            return cast("str | None", pd.DataFrame(self)._repr_html_())  # type: ignore[operator]
        suspects = int(self["suspect"].sum())
        shown = min(max(suspects, 5), _ROWS_IN_NOTEBOOK, len(self))
        with pd.option_context("display.float_format", "{:.5g}".format):
            rows = pd.DataFrame(self.head(shown)).to_html(index=False, escape=True, border=0)
        more = f" The first {shown} of {len(self):,} rows:" if shown < len(self) else ""
        return f"<p><strong>{suspects:,} of {len(self):,} labels look wrong.</strong>{more}</p>{rows}"


def audit_table(
    evidence: Evidence,
    *,
    score: str = "odds",
    threshold: str = "fdr",
    cutoff: float = 0.05,
    confidence: float = 0.95,
    detectable: Callable[[BoolArray], FloatArray] | None = None,
) -> AuditTable:
    """Assemble the table from evidence, calibrated if it is to be.

    ``expected_low`` and ``expected_high`` bound where a right label would lie with probability ``confidence``. The
    suggested label is the posterior mean of the right label for suspects and missing labels, the label itself for all
    others. Where labels are censored, a column of that name says so. ``detectable`` says, given which labels are suspect, how
    large an error of each row would have to be to be noticed.
    """
    half = half_width(evidence, confidence)
    scores = score_labels(evidence, score)
    suspect = suspects(evidence, scores, threshold, cutoff)
    shown = evidence.in_label_units
    table = AuditTable(
        {
            "row": shown.rows,
            "label": shown.label,
            "expected": shown.expected,
            "expected_low": evidence.shown(evidence.expected - half),
            "expected_high": evidence.shown(evidence.expected + half),
            "suggested_label": np.where(suspect | np.isnan(shown.label), shown.corrected, shown.label),
            "noise_std": np.sqrt(shown.noise_variance),
            "z": shown.z,
            "p_value": p_values(evidence),
            "q_value": q_values(evidence),
            "score": scores,
            "suspect": suspect,
            "detectable": np.full(suspect.size, np.inf) if detectable is None else detectable(suspect),
        },
        columns=AUDIT_COLUMNS,
    )
    if (limits := evidence.limits).any():
        table["censored"] = np.array(["", ">", "<"])[limits]
    # Equal scores (all trusted labels, for the paper's own score) are ordered by |z|, then as they came.
    order = np.lexsort((np.arange(scores.size), -np.abs(np.nan_to_num(evidence.z)), -scores))
    return table.iloc[order].reset_index(drop=True)
