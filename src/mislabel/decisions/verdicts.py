"""What verdicts of a person say of all other labels: their odds, and the audit table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit

from mislabel.decisions.evidence import Evidence, FloatArray
from mislabel.decisions.table import AuditTable, audit_table

#: Verdicts: NaN stands for none.
RIGHT, WRONG = 0.0, 1.0
#: Log odds beyond these count as these where they are compared with verdicts.
_LARGEST = 60.0
#: The log odds of a calibration that is right need no shift and no slope: standard deviations of the shift, and of the logarithm
#: of the slope, and how far they may go.
_SHIFT_SD, _SLOPE_SD = 2.0, 0.7
_BOUNDS = [(-12.0, 6.0), (-3.0, 1.5)]


@dataclass(frozen=True)
class LearnedOdds:
    """What verdicts make of log odds: ``shift + slope * log_odds``."""

    shift: float = 0.0
    slope: float = 1.0

    def __call__(self, log_odds: FloatArray) -> FloatArray:
        """What becomes of log odds; larger ones stay larger."""
        return np.asarray(self.shift + self.slope * log_odds)


def learn_odds(log_odds: FloatArray, verdicts: FloatArray) -> LearnedOdds:
    """Penalised logistic regression of verdicts on log odds; without verdicts they stay as they are.

    Rows may have been picked for review at random, and by anything that the log odds tell.
    """
    known = ~np.isnan(verdicts) & ~np.isnan(log_odds)
    odds, is_wrong = np.clip(log_odds[known], -_LARGEST, _LARGEST), verdicts[known]

    def cost(x: FloatArray) -> tuple[float, FloatArray]:
        predictor = x[0] + np.exp(x[1]) * odds
        value = np.sum(np.logaddexp(0.0, predictor) - is_wrong * predictor)
        slopes = expit(predictor) - is_wrong
        prior = 0.5 * (x[0] / _SHIFT_SD) ** 2 + 0.5 * (x[1] / _SLOPE_SD) ** 2
        by_slope = np.sum(slopes * np.exp(x[1]) * odds) + x[1] / _SLOPE_SD**2
        return float(value + prior), np.array([np.sum(slopes) + x[0] / _SHIFT_SD**2, by_slope])

    shift, slope = minimize(cost, np.zeros(2), jac=True, method="L-BFGS-B", bounds=_BOUNDS).x
    return LearnedOdds(float(shift), float(np.exp(slope)))


def table_with_verdicts(evidence: Evidence, verdicts: FloatArray, **decision: Any) -> AuditTable:
    """The audit table where some labels are known: right ones are no suspects, wrong ones are, the rest are judged by themselves.

    ``row`` is the position of the label. Of the most suspicious that were asked for, those known to be wrong are some.
    """
    evidence = replace(evidence, rows=np.arange(evidence.label.size))
    rest, known = (np.flatnonzero(which) for which in (np.isnan(verdicts), ~np.isnan(verdicts)))
    wrong = int(np.count_nonzero(verdicts == WRONG))
    if decision["threshold"] == "top-k":
        decision = {**decision, "cutoff": min(max(decision["cutoff"] - wrong, 0), rest.size)}
    parts: list[pd.DataFrame] = [audit_table(evidence.some(rest), **decision)] if rest.size else []
    if known.size:
        shown = {name: decision[name] for name in ("score", "confidence")}
        parts.append(_known(audit_table(evidence.some(known), **shown), evidence, verdicts, parts))
    table = pd.concat(parts, ignore_index=True)
    order = np.lexsort((table["row"], -table["z"].abs().fillna(0.0), -table["score"]))
    return cast(AuditTable, table.iloc[order].reset_index(drop=True))


def _known(table: pd.DataFrame, evidence: Evidence, verdicts: FloatArray, others: list[pd.DataFrame]) -> pd.DataFrame:
    """Rows with a verdict, which come before all others or after them."""
    positions = table["row"].to_numpy(dtype=np.intp)
    is_wrong = verdicts[positions] == WRONG
    score = table["score"].to_numpy(dtype=float)
    scores = [score, *(other["score"].to_numpy(dtype=float) for other in others)]
    most, least = max(part.max() for part in scores), min(part.min() for part in scores)
    return table.assign(
        suspect=is_wrong,
        q_value=np.where(is_wrong, 0.0, 1.0),
        score=np.where(is_wrong, most, least),
        suggested_label=np.where(
            is_wrong, evidence.in_label_units.corrected[positions], table["label"].to_numpy(dtype=float)
        ),
    )
