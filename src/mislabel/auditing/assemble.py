"""From a fitted model to everything that is known at the end of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.auditing.inputs import Prepared
from mislabel.data.columns import LeftOut
from mislabel.decisions import Pattern, find_patterns, noise_by_feature, table_with_verdicts
from mislabel.decisions.verdicts import RIGHT, WRONG
from mislabel.estimators.regressor import LabelNoiseRegressor
from mislabel.report.findings import Findings, Table
from mislabel.report.remembered import Remembered

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
class Fitted:
    """A model and what it was fitted to.

    columns : the table with its columns in plain types, as far as they were ``used``. left_out : columns that were not.
    """

    model: LabelNoiseRegressor
    columns: Table
    used: list[str]
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def assemble(prepared: Prepared, fitted: Fitted) -> Findings:
    """The audit table with the user's row ids, patterns and exact corrections, and where the noise is."""
    request, memory = prepared.request, prepared.remembered
    model = fitted.model if memory is None else _taught(fitted.model, memory, memory.verdicts)
    table = model.audit(request.fdr, **request.decision, by_position=True)
    if memory is not None:
        cutoff = request.fdr if request.decision["threshold"] == "fdr" else request.decision["cutoff"]
        table = _known_apart(table, model, memory, {**request.decision, "cutoff": cutoff})
    positions = table["row"].to_numpy(dtype=np.intp)
    table["row"] = prepared.rows[positions]
    suspect = np.zeros(len(table), dtype=bool)
    suspect[positions] = table["suspect"].to_numpy()
    evidence = model.calibrated_evidence_
    patterns = find_patterns(
        evidence.label,
        evidence.expected,
        evidence.variance,
        suspect,
        _groups(fitted.columns, fitted.used),  # type: ignore[arg-type]  # columns are sequences
        name=request.label,
        degrees=evidence.degrees,
    )
    where = np.argsort(positions)
    table["suggested_label"] = _tidy(table)
    digits = decimals_of(table["label"].to_numpy(dtype=float))
    for pattern in patterns:
        # What a rule corrects is exact, but for decimals that no label has.
        table.loc[where[pattern.positions], "suggested_label"] = np.round(pattern.corrected, digits)
    if memory is not None:
        table = _with_decided(table, positions, memory)
    by_feature = noise_by_feature(fitted.columns, fitted.used, evidence.z, suspect)
    return Findings(
        table,
        positions,
        prepared.frame,
        request.label,
        request.id,
        request.fdr,
        model,
        fitted.used,
        fitted.left_out,
        patterns,
        by_feature,
        request.decision["threshold"],
        request.decision["cutoff"],
        request.decision["score"],
        request.decision["confidence"],
        () if prepared.objects is not None else tuple(request.candidates(prepared.frame)),
        prepared.objects,
        memory,
    )


def _taught(model: LabelNoiseRegressor, memory: Remembered, verdicts: NDArray[np.float64]) -> LabelNoiseRegressor:
    """A model that has learned from verdicts on the labels that they were about, and judges those that the data has."""
    before = model.about(memory.originals)
    learned = before.with_verdicts(verdicts) if not np.isnan(verdicts).all() else before
    _ = learned.calibration_
    return learned.about(memory.labels, memory.side)


def _with_earlier(verdicts: NDArray[np.float64], memory: Remembered) -> NDArray[np.float64]:
    """New verdicts, and nothing to ask about labels that were decided earlier."""
    known, decided = verdicts.copy(), np.array(sorted(memory.decided), dtype=np.intp)
    known[decided[np.isnan(known[decided])]] = RIGHT
    return known


def _known_apart(
    table: pd.DataFrame, model: LabelNoiseRegressor, memory: Remembered, decision: dict[str, Any]
) -> pd.DataFrame:
    """The audit ``table`` where labels that were decided earlier are no suspects, and all others are judged by themselves.

    ``row`` is the position of the label.
    """
    known = _with_earlier(np.full(len(table), np.nan), memory)
    found = table_with_verdicts(model._calibrated_evidence, known, **decision)
    ranks = np.argsort(table["row"].to_numpy(dtype=np.intp))[found["row"].to_numpy(dtype=np.intp)]
    for name in table.columns.intersection(["detectable", "censored"]):
        found[name] = table[name].to_numpy()[ranks]
    return found


def _with_decided(table: pd.DataFrame, positions: NDArray[np.intp], memory: Remembered) -> pd.DataFrame:
    """The table with a column that says what was decided, and new values as suggestions."""
    table["decided"] = memory.actions[positions]
    where = np.argsort(positions)
    for position, opinion in memory.decided.items():
        if opinion.decision.value is not None:
            table.loc[where[position], "suggested_label"] = opinion.decision.value
    return table


def with_verdicts(found: Findings, right: Mapping[int, bool], values: Mapping[int, float]) -> Findings:
    """The same after a review: the odds of all other labels have learned from it.

    right : verdicts by position. values : corrected labels that somebody decided on.
    """
    verdicts = np.full(len(found.table), np.nan)
    for position, is_right in right.items():
        verdicts[position] = RIGHT if is_right else WRONG
    memory, known = found.remembered, verdicts
    if memory is None:
        model = found.model.with_verdicts(verdicts)
    else:
        model = _taught(found.model, memory, np.where(np.isnan(verdicts), memory.verdicts, verdicts))
        known = _with_earlier(verdicts, memory)
    table: pd.DataFrame = table_with_verdicts(
        model._calibrated_evidence,
        known,
        score=found.score,
        threshold=found.threshold,
        cutoff=found.fdr if found.threshold == "fdr" else found.cutoff,
        confidence=found.confidence,
    )
    positions = table["row"].to_numpy(dtype=np.intp)
    # Which errors would be noticed is as before, and what no verdict changes.
    for name in found.table.columns.intersection(["row", "detectable", "censored", "group", "group_suspect"]):
        table[name] = found.table[name].to_numpy()[found.ranks][positions]
    table["suggested_label"] = _tidy(table)
    where, digits = np.argsort(positions), decimals_of(table["label"].to_numpy(dtype=float))
    suspect = table["suspect"].to_numpy(dtype=bool)[where]
    patterns = [kept for pattern in found.patterns if (kept := _among(pattern, suspect)).positions.size]
    for pattern in patterns:
        table.loc[where[pattern.positions], "suggested_label"] = np.round(pattern.corrected, digits)
    for position, value in values.items():
        if verdicts[position] == WRONG:
            table.loc[where[position], "suggested_label"] = value
    if memory is not None:
        table = _with_decided(table, positions, memory)
    return replace(found, table=table, positions=positions, model=model, patterns=patterns)


def _among(pattern: Pattern, suspect: NDArray[np.bool_]) -> Pattern:
    """A pattern of those that are suspects still."""
    still = suspect[pattern.positions]
    return replace(pattern, positions=pattern.positions[still], corrected=pattern.corrected[still])


def _tidy(table: pd.DataFrame) -> NDArray[np.float64]:
    """Suggestions without digits that mean nothing: no more than nearly all labels have, rounded to a hundredth of the
    interval's half width or finer.
    """
    half = (table["expected_high"] - table["expected_low"]).to_numpy(dtype=float) / 2
    return tidied(table["suggested_label"].to_numpy(dtype=float), table["label"].to_numpy(dtype=float), half)


def tidied(
    suggested: NDArray[np.float64], label: NDArray[np.float64], half: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Suggestions for labels without digits that mean nothing; ``half`` is half the width of each one's interval."""
    suggested, own = suggested.copy(), decimals_of(label)
    changed = np.flatnonzero((suggested != label) & np.isfinite(suggested) & (half > 0))
    for k in changed:
        digits = min(int(np.ceil(2.0 - np.log10(half[k]))), own)
        suggested[k] = round(suggested[k], digits)
    return suggested


def decimals_of(labels: NDArray[np.float64]) -> int:
    """Digits after the decimal mark that nearly all labels do with."""
    known = labels[np.isfinite(labels)]
    known = known[np.abs(known) < _EXACT]
    for digits in range(_MOST_DECIMALS if known.size else 0):
        if np.mean(np.round(known, digits) == known) >= _SAME_GRID:
            return digits
    return _MOST_DECIMALS


def _groups(frame: Any, columns: Sequence[str]) -> dict[str, pd.Series]:
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
