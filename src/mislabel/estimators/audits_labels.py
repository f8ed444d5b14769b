"""The decision that follows a fit: calibrated evidence and the audit table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from mislabel.decisions import Calibration, Evidence, audit_table, calibrate
from mislabel.decisions.calibration import SCEPTICAL, Priors
from mislabel.errors import InvalidParameterError


class AuditsLabels:
    """Mixin for estimators that leave evidence for every label, in label units."""

    _evidence: Evidence
    _calibration: Calibration | None
    _decision: Calibration | None

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
            than the model promises, as those of most real tables do, they say so. False takes ``z_`` as it is.
        by_position : whether ``row`` is the position of the label in y instead of the user's own id.
        """
        check_is_fitted(self)
        if threshold == "fdr":
            cutoff = fdr
        elif cutoff is None:
            raise InvalidParameterError(f"threshold={threshold!r} needs a cutoff, for example cutoff=3.")
        evidence = self.calibrated_evidence_ if calibrated else self.calibration_.with_wrong_group(self._evidence)
        judged = self.judged_evidence_ if calibrated else self._sceptical().with_wrong_group(self._evidence)
        if by_position:
            evidence = replace(evidence, rows=np.arange(evidence.label.size))
        return audit_table(evidence, judged, score=score, threshold=threshold, cutoff=cutoff, confidence=confidence)

    @property
    def calibration_(self) -> Calibration:
        """How far leave-one-out errors spread, compared with ``loo_variance_``; found when first asked for."""
        check_is_fitted(self)
        if self._calibration is None:
            self._calibration = self._calibrated(None)
        return self._calibration

    def _sceptical(self) -> Calibration:
        """The same where wrong labels must earn their group: what decisions rest on."""
        check_is_fitted(self)
        if self._decision is None:
            self._decision = self._calibrated(SCEPTICAL)
        return self._decision

    def _calibrated(self, priors: Priors | None) -> Calibration:
        # Labels that were set aside, or are at an atom, say nothing of how far others spread.
        evidence = self._evidence
        error = np.where(evidence.absurd | evidence.unjudged, np.nan, evidence.error)
        return calibrate(error, evidence.variance, evidence.expected, priors)

    @property
    def calibrated_evidence_(self) -> Evidence:
        """Evidence with the spread that errors were found to have, one entry per label in the order of y."""
        return self.calibration_.apply(self._evidence)

    @property
    def judged_evidence_(self) -> Evidence:
        """What scores, ``q_value`` and ``suspect`` of the default audit follow from, in the order of y."""
        return self._sceptical().apply(self._evidence)
