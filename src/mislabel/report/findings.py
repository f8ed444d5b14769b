"""Everything known at the end of an audit: what the page, the summary and the result show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.columns import LeftOut
from mislabel.data.large_tables import PiecewiseTable
from mislabel.data.row_fingerprints import RowFingerprints, of_rows
from mislabel.decisions import FeatureNoise, Pattern
from mislabel.estimators.neighbours import nearest_trusted
from mislabel.estimators.regressor import LabelNoiseRegressor
from mislabel.report.remembered import Remembered

#: A table in memory, or one of which columns and rows are had when needed.
Table = pd.DataFrame | PiecewiseTable


@dataclass(frozen=True, eq=False)
class GroupFindings:
    """Groups of rows that may be wrong as a whole.

    column : what they are called. table : one row per group, the most suspicious first. of_rows : the group of every row of the
    user's table as its place in ``table``, -1 for none.
    """

    column: str
    table: pd.DataFrame
    of_rows: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Findings:
    """What an audit found, and what it rests on.

    table : one row per label, the most suspicious first; ``positions`` says where each row stands in ``frame``.
    frame : the user's table. used, left_out : its columns that were features, and those that were not.
    patterns : systematic errors; their corrected labels are the suggestions for the rows concerned.
    by_feature : how the noise depends on the columns.
    threshold, cutoff : how suspects were called, where not by their false discovery rate.
    score, confidence : what orders the table, and the probability content of its intervals.
    candidates, objects : columns, or molecules, by which a row is known again.
    remembered : what was decided earlier.
    groups : which groups of rows are wrong as a whole, where that was asked for.
    """

    table: pd.DataFrame
    positions: NDArray[np.intp]
    frame: Table
    label: str
    id: str | None
    fdr: float
    model: LabelNoiseRegressor
    used: list[str]
    left_out: list[LeftOut]
    patterns: list[Pattern]
    by_feature: list[FeatureNoise]
    threshold: str = "fdr"
    cutoff: float | None = None
    score: str = "odds"
    confidence: float = 0.95
    candidates: tuple[str, ...] = ()
    objects: Any = None
    remembered: Remembered | None = None
    groups: GroupFindings | None = None

    @cached_property
    def fingerprints(self) -> RowFingerprints | None:
        """By what rows are known again, in the order of ``frame``; None where that cannot be told."""
        labels = self.table["label"].to_numpy(dtype=float)[self.ranks]
        return of_rows(self.frame, self.candidates, self.objects, labels)

    def frame_rows(self, positions: NDArray[np.intp], columns: Sequence[str]) -> pd.DataFrame:
        """Some rows of the user's table."""
        if isinstance(self.frame, pd.DataFrame):
            return self.frame.iloc[positions][list(columns)]
        return self.frame.rows(positions, columns)

    @property
    def n_suspects(self) -> int:
        """How many labels look wrong."""
        return int(self.table["suspect"].sum())

    @property
    def suspect(self) -> NDArray[np.bool_]:
        """Which labels look wrong, in the order of ``frame``."""
        found = np.zeros(len(self.table), dtype=bool)
        found[self.positions] = self.table["suspect"].to_numpy(dtype=bool)
        return found

    @property
    def censored(self) -> list[str] | None:
        """Signs of labels that are only limits, in the order of ``table``; None where all are exact."""
        return self.table["censored"].tolist() if "censored" in self.table else None

    @property
    def ranks(self) -> NDArray[np.intp]:
        """Where in ``table`` each row of ``frame`` stands: the inverse of ``positions``."""
        return np.argsort(self.positions)

    def neighbours(self, positions: Sequence[int], count: int = 5) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The most similar rows that are not suspect themselves, and how similar they are; none where rows are elsewhere."""
        if self.model._points is None:
            return np.zeros((len(positions), 0), dtype=np.intp), np.zeros((len(positions), 0))
        trusted = np.ones(len(self.table), dtype=bool)
        trusted[self.positions[(self.table["suspect"] | self.table["label"].isna()).to_numpy()]] = False
        if self.remembered is not None:
            known = self.remembered
            trusted &= (known.fitted == known.labels) | np.isnan(known.labels)
        return nearest_trusted(self.model, np.asarray(positions, dtype=np.intp), trusted, count)
