"""From a table or a set of molecules to its audit, with everything a reviewer wants to know, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.columns import LeftOut
from mislabel.data.large_tables import LargeTable, read_large_table
from mislabel.data.molecules import MoleculeSet
from mislabel.data.tables import ids_of, numeric_column, read_labelled_table, with_text_names
from mislabel.decisions import FeatureNoise, Pattern, find_patterns, noise_by_feature
from mislabel.errors import InvalidParameterError
from mislabel.estimators.low_rank_fit import AUTO
from mislabel.estimators.neighbours import nearest_trusted
from mislabel.estimators.regressor import LabelNoiseRegressor
from mislabel.progress import ProgressReporter

#: Columns with at most this many different values can have an offset of their own.
MOST_GROUPS = 50
#: Suggestions get the decimals that this share of the labels do with, up to so many.
_SAME_GRID = 0.95
_MOST_DECIMALS = 15
#: Numbers above have no digits after the decimal mark anyway.
_EXACT = 2.0**52
#: Rows in which most columns of numbers already show more.
FIRST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Audit:
    """An audit and what it rests on.

    table : one row per label, the most suspicious first; ``positions`` says where each row stands in ``frame``.
    frame : the user's table. used, left_out : its columns that were features, and those that were not.
    patterns : systematic errors; their corrected labels are the suggestions for the rows concerned.
    by_feature : how the noise depends on the columns.
    """

    table: pd.DataFrame
    positions: NDArray[np.intp]
    frame: pd.DataFrame | LargeTable
    label: str
    id: str | None
    fdr: float
    model: LabelNoiseRegressor
    used: list[str]
    left_out: list[LeftOut]
    patterns: list[Pattern]
    by_feature: list[FeatureNoise]

    def frame_rows(self, positions: NDArray[np.intp], columns: Sequence[str]) -> pd.DataFrame:
        """Some rows of the user's table."""
        if isinstance(self.frame, LargeTable):
            return self.frame.rows(positions, columns)
        return self.frame.iloc[positions][list(columns)]

    @property
    def n_suspects(self) -> int:
        """How many labels look wrong."""
        return int(self.table["suspect"].sum())

    @property
    def ranks(self) -> NDArray[np.intp]:
        """Where in ``table`` each row of ``frame`` stands: the inverse of ``positions``."""
        return np.argsort(self.positions)

    def neighbours(self, positions: Sequence[int], count: int = 5) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The most similar rows that are not suspect themselves, and how similar they are."""
        trusted = np.ones(len(self.table), dtype=bool)
        trusted[self.positions[(self.table["suspect"] | self.table["label"].isna()).to_numpy()]] = False
        return nearest_trusted(self.model, np.asarray(positions, dtype=np.intp), trusted, count)


def audit(
    frame: pd.DataFrame,
    label: str,
    fdr: float = 0.05,
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    y_err: Any = None,
    score: str = "odds",
    threshold: str = "fdr",
    cutoff: float | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> pd.DataFrame:
    """Find the wrong values in one column of a table.

    Parameters
    ----------
    frame : table with numeric, categorical, date or text columns.
    label : the column to check.
    fdr : expected fraction of clean labels among those called suspect.
    id : column with row ids; else the dataframe's index.
    drop, features : columns to leave out, or the only ones to use.
    y_err : known standard deviations of the labels: an array, or the name of a column.
    score, threshold, cutoff, confidence : see :meth:`LabelNoiseRegressor.audit`.
    options : passed to :class:`LabelNoiseRegressor`.
    """
    decision = {"score": score, "threshold": threshold, "cutoff": cutoff, "confidence": confidence}
    found = audit_table_of(
        frame, label, fdr, id=id, drop=drop, features=features, y_err=y_err, decision=decision, **options
    )
    return found.table


def audit_table_of(
    frame: pd.DataFrame,
    label: str,
    fdr: float = 0.05,
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    y_err: Any = None,
    decision: dict[str, Any] | None = None,
    client: Any = None,
    **options: Any,
) -> Audit:
    """As :func:`audit`, with the model, the patterns and the columns that were used; ``decision`` goes to its audit.

    With a dask ``client`` the fit is made on its workers.
    """
    frame, label, id, drop, features = with_text_names(frame, label, id, drop, features)
    if isinstance(y_err, str):
        drop = [*drop, y_err]
    labelled = read_labelled_table(frame, label, id=id, drop=drop, features=features)
    errors = numeric_column(frame[y_err], labelled.rows, "label error") if isinstance(y_err, str) else y_err
    named = pd.DataFrame(labelled.features, index=pd.Index(labelled.rows))
    model = LabelNoiseRegressor(**options).fit(named, labelled.label, y_err=errors, client=client)
    return _assemble(model, frame, label, id, fdr, labelled.used, labelled.left_out, decision)


def audit_large_table(
    table: LargeTable,
    label: str,
    fdr: float = 0.05,
    *,
    memory: float | str | None,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    y_err: str | None = None,
    decision: dict[str, Any] | None = None,
    mean: Any = None,
    rank: int | str | None = AUTO,
    verbose: int = 0,
    **options: Any,
) -> Audit:
    """Audit a table that does not fit into ``memory``: features and the factor of the kernel are kept in temporary files."""
    if mean not in (None, "none", AUTO):
        raise InvalidParameterError(
            f"the mean model {mean!r} needs the whole table in memory: leave the memory budget out, or use mean 'none'."
        )
    with ProgressReporter(verbose) as progress:
        labelled = read_large_table(
            table, label, id=id, drop=[*drop, *([y_err] if y_err else [])], features=features, progress=progress
        )
    errors = numeric_column(table[y_err], labelled.rows, "label error") if y_err is not None else None
    model = LabelNoiseRegressor(
        mean=None, rank=AUTO if rank is None else rank, storage="file", memory=memory, verbose=verbose, **options
    )
    model.fit(labelled.features, labelled.label, y_err=errors)
    return _assemble(model, table, label, id, fdr, labelled.used, labelled.left_out, decision)


def audit_molecules(
    molecules: MoleculeSet,
    label: str,
    fdr: float = 0.05,
    *,
    frame: pd.DataFrame | None = None,
    id: str | None = None,
    y_err: Any = None,
    decision: dict[str, Any] | None = None,
    **options: Any,
) -> Audit:
    """Audit one property of a set of molecules; ``options`` name the kernel.

    ``frame`` is the table the molecules came from, if they did; else they describe themselves.
    """
    model = LabelNoiseRegressor(**options).fit(molecules, molecules.labels(label), y_err=y_err)
    shown = molecules.describe() if frame is None else frame
    used = [name for name in shown.columns if name not in (label, id)]
    return _assemble(model, shown, label, id, fdr, used, [], decision)


def _assemble(
    model: LabelNoiseRegressor,
    frame: pd.DataFrame | LargeTable,
    label: str,
    id: str | None,
    fdr: float,
    used: list[str],
    left_out: list[LeftOut],
    decision: dict[str, Any] | None,
) -> Audit:
    size = len(frame)
    rows = model.rows_ if id is None else ids_of(frame, id)
    table = model.audit(fdr, **(decision or {}), by_position=True)
    positions = table["row"].to_numpy(dtype=np.intp)
    table["row"] = rows[positions]
    suspect = np.zeros(size, dtype=bool)
    suspect[positions] = table["suspect"].to_numpy()
    evidence = model.calibrated_evidence_
    seen = (evidence.label, evidence.expected, evidence.variance, suspect, _groups(frame, used))
    patterns = find_patterns(*seen, name=label, degrees=evidence.degrees)
    where = np.argsort(positions)
    table["suggested_label"] = _tidy(table)
    digits = _decimals(table["label"].to_numpy(dtype=float))
    for pattern in patterns:
        # What a rule corrects is exact, but for decimals that no label has.
        table.loc[where[pattern.positions], "suggested_label"] = np.round(pattern.corrected, digits)
    by_feature = noise_by_feature(frame, used, evidence.z, suspect)
    return Audit(table, positions, frame, label, id, fdr, model, used, left_out, patterns, by_feature)


def _tidy(table: pd.DataFrame) -> NDArray[np.float64]:
    """Suggestions without digits that mean nothing: no more than nearly all labels have, rounded to a hundredth of the
    interval's half width or finer.
    """
    suggested = table["suggested_label"].to_numpy(dtype=float).copy()
    label = table["label"].to_numpy(dtype=float)
    half = (table["expected_high"] - table["expected_low"]).to_numpy() / 2
    own = _decimals(label)
    changed = np.flatnonzero((suggested != label) & np.isfinite(suggested) & (half > 0))
    for k in changed:
        digits = min(int(np.ceil(2.0 - np.log10(half[k]))), own)
        suggested[k] = round(suggested[k], digits)
    return suggested


def _decimals(labels: NDArray[np.float64]) -> int:
    """Digits after the decimal mark that nearly all labels do with."""
    known = labels[np.isfinite(labels)]
    known = known[np.abs(known) < _EXACT]
    for digits in range(_MOST_DECIMALS if known.size else 0):
        if np.mean(np.round(known, digits) == known) >= _SAME_GRID:
            return digits
    return _MOST_DECIMALS


def _groups(frame: pd.DataFrame | LargeTable, columns: Sequence[str]) -> dict[str, pd.Series]:
    """Columns whose values may stand for an instrument, a batch, an operator."""
    groups = {}
    for name in columns:
        column = frame[name]
        try:
            if column.iloc[:FIRST_ROWS].nunique() > MOST_GROUPS or column.nunique() > MOST_GROUPS:
                continue
            values = column.astype(object).where(column.notna(), "")
            if 1 < values.nunique() <= MOST_GROUPS:
                groups[name] = values.astype("category")
        except TypeError:  # lists and the like
            continue
    return groups
