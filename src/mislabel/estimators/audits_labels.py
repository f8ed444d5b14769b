"""The decision that follows a fit: calibrated evidence and the audit table."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mislabel.decisions import Calibration, Evidence, audit_table, calibrate, learn_odds
from mislabel.decisions.calibration import as_promised
from mislabel.decisions.detection import detection_limits
from mislabel.decisions.evidence import FloatArray
from mislabel.errors import InvalidParameterError
from mislabel.estimators.set_aside import SetAside


class AuditsLabels:
    """Mixin for estimators that leave evidence for every label, in label units."""

    _evidence: Evidence
    _calibration: Calibration | None
    _verdicts: FloatArray | None = None

    def audit(
        self,
        fdr: float = 0.05,
        *,
        score: str = "odds",
        threshold: str = "fdr",
        cutoff: float | None = None,
        confidence: float = 0.95,
        calibrated: bool = True,
        by_position: bool = False,
    ) -> pd.DataFrame:
        """One row per label, the most suspicious first.

        Parameters
        ----------
        fdr : expected fraction of clean labels among those called suspect (for ``threshold="fdr"``).
        score : orders the table. "odds" (logarithm of the odds that a label is wrong), "z", "noise_variance" (the paper's),
            "loo_error" or "gain".
        threshold, cutoff : "fdr", or "top-k" with the number of labels, or "z" with the number of standard deviations.
        confidence : probability content of the interval around the expected label.
        calibrated : whether z, p-values and intervals follow ``calibration_``: where clean labels spread more widely
            than the model promises, as those of most real tables do, they say so. False takes ``z_`` as it is, and calls labels
            suspect by Benjamini and Hochberg's rule.
        by_position : whether ``row`` is the position of the label in y instead of the user's own id.
        """
        check_is_fitted(self)
        if threshold == "fdr":
            cutoff = fdr
        elif cutoff is None:
            raise InvalidParameterError(f"threshold={threshold!r} needs a cutoff, for example cutoff=3.")
        evidence = self._calibrated_evidence if calibrated else self._evidence
        if by_position:
            evidence = replace(evidence, rows=np.arange(evidence.label.size))
        return audit_table(
            evidence,
            score=score,
            threshold=threshold,
            cutoff=cutoff,
            confidence=confidence,
            detectable=lambda suspect: self._detectable(suspect, fdr, calibrated),
        )

    def _detectable(self, suspect: np.ndarray, fdr: float, calibrated: bool) -> np.ndarray:
        calibration = self.calibration_ if calibrated else as_promised()
        return detection_limits(self._evidence, calibration, suspect, fdr).limit

    @property
    def calibration_(self) -> Calibration:
        """How far leave-one-out errors spread, compared with what was promised; found when first asked for."""
        check_is_fitted(self)
        if self._calibration is None:
            self._calibration = self._calibrated()
        return self._calibration

    def _calibrated(self, verdicts: FloatArray | None = None) -> Calibration:
        # Labels that were set aside, or are at an atom, say nothing of how far others spread.
        evidence = self._evidence
        known = np.flatnonzero(~(evidence.absurd | evidence.stands_apart))
        at_atom = int(np.count_nonzero(evidence.stands_apart & ~evidence.absurd))
        told = None if verdicts is None else verdicts[known]
        found = calibrate(evidence.errors[known], rival=True, others_right=at_atom, verdicts=told)
        log_odds = None if told is None else found.apply(evidence).log_odds
        if told is None or log_odds is None:
            return found
        return replace(found, learned=learn_odds(log_odds[known], told))

    def with_verdicts(self, verdicts: FloatArray) -> Self:
        """A copy that has learned from a review; the fit is the same, its calibration and all odds are not.

        verdicts : for each label 1 where it is known to be wrong, 0 where it is known to be right, NaN elsewhere.
        """
        check_is_fitted(self)
        learned = copy(self)
        learned._calibration, learned._verdicts = self._calibrated(verdicts), verdicts
        return learned

    def about(self, labels: FloatArray, side: NDArray[np.int8] | None = None) -> Self:
        """A copy that judges other labels of the same rows: fit and calibration stay, and so does what the others predict.

        labels : one for each row, NaN where it is missing. side : -1 for upper limits, 1 for lower ones; None for none.
        """
        check_is_fitted(self)
        judged, evidence = copy(self), self._evidence
        before = evidence.transform.inverse(evidence.label)
        sides = np.zeros(labels.size, dtype=np.int8) if side is None else side
        same = (labels == before) | (np.isnan(labels) & np.isnan(before))
        index = np.flatnonzero(~same & ~np.isclose(labels, before, rtol=1e-9, atol=0.0))
        if index.size:
            absurd = SetAside.among(labels).mask(labels.size)
            judged._evidence = evidence.about(index, labels[index], sides[index], absurd[index])
        return judged

    @property
    def _calibrated_evidence(self) -> Evidence:
        """On the scale of the fit."""
        return self.calibration_.apply(self._evidence)

    @property
    def calibrated_evidence_(self) -> Evidence:
        """Evidence with the spread that errors were found to have, in label units, one entry per label in the order of y."""
        return self._calibrated_evidence.in_label_units
