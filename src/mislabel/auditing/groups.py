"""Groups of rows that may be wrong as a whole: which they are, what models say that have not seen them, and in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import f_oneway

from mislabel._common.robust import robust_std
from mislabel.auditing.assemble import Fitted
from mislabel.auditing.beside import groups_judged
from mislabel.auditing.inputs import Prepared
from mislabel.auditing.table_features import TableFeatures
from mislabel.data.plain_columns import cells_of
from mislabel.data.readings import other_readings
from mislabel.decisions.evidence import Evidence, FloatArray
from mislabel.decisions.groups import DISPLACED, FACTOR, NOISE, REVERSED, SHIFT, UnseenGroups
from mislabel.errors import InvalidParameterError
from mislabel.estimators.group_evidence import GroupJudges, judge_groups
from mislabel.report.findings import Findings, GroupFindings
from mislabel.report.plain_words import number, percent, plain_text

#: How right groups spread is learned from the groups themselves: fewer say too little.
LEAST_GROUPS = 8
#: A column of batches has groups of at least so many rows on average.
LEAST_ROWS = 2.0
#: Groups in whose errors something is shared are offered: so many rows each on average, and this p-value.
_OFFERED_ROWS = 4.0
_OFFERED_P = 1e-4
_CLIPPED = 3.0


def check_groups(prepared: Prepared) -> None:
    """Refuse, before anything is fitted, groups that cannot be judged."""
    given = groups_judged(prepared)
    if given is None:
        return
    name = plain_text(given.name, 60)
    if not isinstance(prepared.frame, pd.DataFrame):
        raise InvalidParameterError(
            "groups are judged as a whole in tables that this process holds in memory: leave group or the memory budget out."
        )
    count, rows = given.nunique(), int(given.notna().sum())
    if count < LEAST_GROUPS:
        raise InvalidParameterError(
            f"group {name!r} has {count} different values: how far right groups are off is learned from all of them, for which "
            f"at least {LEAST_GROUPS} are needed."
        )
    if rows < LEAST_ROWS * count:
        raise InvalidParameterError(
            f"group {name!r} has {count} different values in {rows} rows: name a column whose values several rows share, such as "
            "a batch or an instrument."
        )


def with_groups(found: Findings, prepared: Prepared, fitted: Fitted) -> Findings:
    """The findings with a verdict on every group, where that was asked for."""
    given = groups_judged(prepared)
    if given is None:
        return found
    codes, names = pd.factorize(given.astype(object))
    judges = _judges(fitted, codes)
    empty = [size == 0 for size in map(len, judges.members)]
    if sum(not nothing for nothing in empty) < LEAST_GROUPS:
        raise InvalidParameterError(
            f"only {len(empty) - sum(empty)} groups have labels: at least {LEAST_GROUPS} are needed."
        )
    if any(empty):  # numbers without gaps, of those that have labels
        kept = np.flatnonzero(~np.array(empty))
        place = np.full(len(names), -1)
        place[kept] = np.arange(kept.size)
        codes, names = np.where(codes >= 0, place[codes], -1), names[kept]
        judges = replace(judges, groups=codes)
    verdicts, unseen = judge_groups(judges)
    model = found.model
    rows = []
    for k, kind in enumerate(verdicts.kind):
        size, words = _size(kind, unseen, k, judges.rows, model._evidence, prepared.source.decimal)
        rows.append((names[k], int(np.count_nonzero(codes == k)), kind, size, words))
    table = pd.DataFrame(rows, columns=["group", "rows", "kind", "size", "words"])
    table["gain"], table["p_value"], table["q_value"] = verdicts.gain, verdicts.p_value, verdicts.q_value
    table["suspect"] = (verdicts.q_value <= found.fdr) & (verdicts.wrong > 0.5)
    order = np.argsort(-verdicts.log_odds, kind="stable")
    place = np.append(np.argsort(order), -1)
    table = table.iloc[order].reset_index(drop=True)
    groups = GroupFindings(str(given.name), table, place[codes].astype(np.intp))
    of_rows = groups.of_rows[found.positions]
    own = found.table.assign(
        group=np.append(np.array(cells_of(table["group"]), dtype=object), "")[of_rows],
        group_suspect=np.append(table["suspect"].to_numpy(), False)[of_rows],
    )
    return replace(found, table=own, groups=groups)


def _judges(fitted: Fitted, codes: np.ndarray) -> GroupJudges:
    """Models and features; readings of columns only where the model knows how columns become features."""
    model, features, plain = fitted.model, fitted.model.table_, fitted.columns
    if not isinstance(features, TableFeatures) or not isinstance(plain, pd.DataFrame):
        points = model._points if isinstance(model._points, np.ndarray) and model._points.shape[1:] != () else None
        is_matrix = isinstance(model.kernel, str) and model.kernel == "precomputed"
        return GroupJudges(model, codes, None if is_matrix else points, {})
    readings = {name: features.encoder.encode(frame) for name, frame in other_readings(plain, codes).items()}
    return GroupJudges(model, codes, features.encoder.encode(plain), readings)


def _size(
    kind: str, unseen: UnseenGroups, k: int, rows: np.ndarray, evidence: Evidence, decimal: str
) -> tuple[float, str]:
    """How large an error of this kind would be, and the sentence that says so."""
    members = unseen.members[k]
    label, expected = unseen.labels[members], unseen.expected[members]
    error = label - expected
    own = evidence.in_label_units.label[rows[members]]
    if kind == SHIFT:
        shift = float(np.median(own - evidence.shown(label - np.median(error))))
        return shift, f"labels are shifted by {number(shift, 3, decimal)}"
    if kind == FACTOR:
        factor = float(label @ expected / max(expected @ expected, np.finfo(float).tiny))
        return factor, f"labels are {number(factor, 3, decimal)} times what is expected"
    others = np.concatenate([unseen.labels[m] - unseen.expected[m] for j, m in enumerate(unseen.members) if j != k])
    if kind == NOISE:
        ratio = robust_std(error - np.median(error)) / max(robust_std(others), np.finfo(float).tiny)
        return ratio, f"errors are {number(ratio, 2, decimal)} times as large as elsewhere"
    if kind in (DISPLACED, REVERSED):
        orders = [label[::-1]] if kind == REVERSED else [np.roll(label, 1), np.roll(label, -1)]
        left = min(_typical(order - expected) for order in orders)
        what = "labels stand in reverse order" if kind == REVERSED else "labels stand one row off"
    else:
        left = _typical(label - unseen.readings[kind][members]) if kind in unseen.readings else np.nan
        what = plain_text(kind, 120)
    explained = 1.0 - left / max(_typical(error), np.finfo(float).tiny)
    if not np.isfinite(explained):
        return float("nan"), what
    return explained, f"{what}: then {percent(max(explained, 0.0))} of the typical error goes away"


def _typical(errors: FloatArray) -> float:
    return float(np.median(np.abs(errors)))


def offered_groups(prepared: Prepared, fitted: Fitted, found: Findings) -> list[str]:
    """A note that names a column whose groups share their errors, where none was named."""
    frame = prepared.frame
    if prepared.request.beside.group is not None or not isinstance(frame, pd.DataFrame) or prepared.objects is not None:
        return []
    evidence = found.model.calibrated_evidence_
    known = np.isfinite(evidence.z) & (evidence.limits == 0)
    z = np.clip(evidence.z, -_CLIPPED, _CLIPPED)
    best: tuple[float, str] | None = None
    for name in prepared.request.candidates(frame):
        p_value = _shared(frame[name], z, known)
        if p_value is not None and p_value < _OFFERED_P and (best is None or p_value < best[0]):
            best = p_value, name
    if best is None:
        return []
    return [
        f"errors of rows with one value of column {best[1]!r} have something in common (p = {best[0]:.1g}): if that is a batch, "
        "an instrument, an operator or a file, name it as the group (--group), and each is judged as a whole."
    ]


def _shared(column: pd.Series, z: FloatArray, known: np.ndarray) -> float | None:
    """The p-value of groups sharing their errors; None for a column that is none of batches."""
    if pd.api.types.is_float_dtype(column.dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if not np.all(values[np.isfinite(values)] == np.round(values[np.isfinite(values)])):
            return None
    try:
        codes = pd.factorize(column)[0]
    except TypeError:  # lists and the like
        return None
    codes, errors = codes[known & (codes >= 0)], z[known & (codes >= 0)]
    sizes = np.bincount(codes) if codes.size else np.zeros(0)
    sizes = sizes[sizes > 0]
    if sizes.size < LEAST_GROUPS or codes.size < _OFFERED_ROWS * sizes.size:
        return None
    parts = [errors[codes == k] for k in np.unique(codes)]
    p_value = float(f_oneway(*parts).pvalue)
    return p_value if np.isfinite(p_value) else None
