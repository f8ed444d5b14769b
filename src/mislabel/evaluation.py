"""How good was a detection? For experiments in which the wrong labels are known."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve, r2_score, roc_auc_score

from mislabel.errors import InvalidParameterError


@dataclass(frozen=True)
class DetectionReport:
    """Quality of a ranking of labels by suspicion.

    r2 : coefficient of determination between inferred and actual label noise (NaN where no noise is given).
    auroc, average_precision : threshold-free quality of the ranking.
    precision_at_70, precision_at_95 : best precision at a recall of at least 70 and 95 %.
    false_discovery_rate, recall : of the labels called suspect (NaN where no suspects are given).
    """

    r2: float
    auroc: float
    average_precision: float
    precision_at_70: float
    precision_at_95: float
    false_discovery_rate: float
    recall: float

    def as_dict(self) -> dict[str, float]:
        """All figures by name."""
        return asdict(self)

    def __getitem__(self, name: str) -> float:
        """A figure by name, as in a dict."""
        return self.as_dict()[name]


def precision_at_recall(mask: NDArray[np.bool_], score: NDArray[np.float64], recall: float) -> float:
    """Best precision among all thresholds whose recall is at least ``recall``."""
    precisions, recalls, _ = precision_recall_curve(mask, score)
    return float(precisions[recalls >= recall].max())


def detection_report(
    mask: ArrayLike,
    score: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    inferred_noise: ArrayLike | None = None,
    suspect: ArrayLike | None = None,
) -> DetectionReport:
    """Compare a score per label with the truth.

    Parameters
    ----------
    mask : True where the label is really wrong.
    score : larger means more suspicious.
    noise, inferred_noise : actual and inferred error of every label (for R^2).
    suspect : True where the label was called suspect (for the realised false-discovery rate and recall).
    """
    truth = np.asarray(mask, dtype=bool)
    values = np.asarray(score, dtype=float)
    if truth.shape != values.shape or truth.ndim != 1:
        raise InvalidParameterError(f"mask has shape {truth.shape} and score {values.shape}; they must be equal.")
    if not np.isfinite(values).all():
        raise InvalidParameterError("score contains NaN or infinite values; give such labels a finite score first.")
    if truth.all() or not truth.any():
        raise InvalidParameterError(
            "mask must contain both wrong and right labels; detection cannot be scored otherwise."
        )
    r2 = float("nan")
    if noise is not None and inferred_noise is not None:
        r2 = float(r2_score(np.asarray(noise, dtype=float), np.asarray(inferred_noise, dtype=float)))
    false_discovery_rate = recall = float("nan")
    if suspect is not None:
        called = np.asarray(suspect, dtype=bool)
        false_discovery_rate = float(np.sum(called & ~truth) / max(np.sum(called), 1))
        recall = float(np.sum(called & truth) / np.sum(truth))
    return DetectionReport(
        r2=r2,
        auroc=float(roc_auc_score(truth, values)),
        average_precision=float(average_precision_score(truth, values)),
        precision_at_70=precision_at_recall(truth, values, 0.70),
        precision_at_95=precision_at_recall(truth, values, 0.95),
        false_discovery_rate=false_discovery_rate,
        recall=recall,
    )
