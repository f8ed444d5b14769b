"""An audit of every column of numbers against all others, and which cell of a row that looks wrong is the culprit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel.auditing.assemble import Fitted, assemble, tidied
from mislabel.auditing.dask_tables import is_dask
from mislabel.auditing.fits import fitted_model
from mislabel.auditing.frames import is_frame
from mislabel.auditing.inputs import ManyLabels, Prepared, prepare_many
from mislabel.auditing.request import Request
from mislabel.auditing.result import AuditResult, AuditResults
from mislabel.auditing.summary import CellsFound
from mislabel.auditing.table_features import TableFeatures
from mislabel.data.columns import LeftOut, choose_features, columns_to_audit
from mislabel.data.molecules import MOLECULE_SUFFIXES
from mislabel.data.plain_columns import PlainColumns
from mislabel.data.tables import FeatureEncoder
from mislabel.decisions.cells import ColumnAudit, own_log_odds
from mislabel.decisions.culprits import Blame, cell_q_values, doubtful_rows, find_blame
from mislabel.decisions.evidence import FloatArray, IntArray, in_standard_deviations
from mislabel.decisions.thresholds import half_width
from mislabel.errors import InvalidFeaturesError, InvalidLabelsError, InvalidParameterError
from mislabel.estimators.other_features import OtherFeatures
from mislabel.estimators.regressor import LabelNoiseRegressor

#: The label that stands for every column of measured quantities.
ALL = "all"


def wants_all(data: Any, names: str | list[str]) -> bool:
    """Whether all columns of a table are to be audited; a frame that has a column called so means that one."""
    if names not in (ALL, [ALL]):
        return False
    if isinstance(data, str | os.PathLike):
        return Path(data).suffix.lower() not in MOLECULE_SUFFIXES
    return is_frame(data) and not is_dask(data)


def audit_all(data: Any, request: Request) -> AuditResult | AuditResults:
    """Audit every column, and say which cells are wrong."""
    table = prepare_many(data, request)
    if ALL in table.frame.columns:
        raise InvalidParameterError(
            f"the table has a column {ALL!r}, which here stands for all columns: give it another name."
        )
    _check(request)
    encoded = _Encoded.of(table, request)
    fits = {name: encoded.fit(name) for name in encoded.audited}
    return AuditResults(_Later(fits), _cells_found(encoded, list(fits.values())))


def _check(request: Request) -> None:
    """Refuse what means something for one label alone."""
    given = {
        "mean": request.wants_mean,
        "label_error": request.errors is not None,
        "kernel": not (isinstance(request.kernel, str) and request.kernel in ("auto", "table")),
        "memory": request.memory is not None,
        "client": request.client is not None,
        "decisions": bool(request.decisions),
        "threshold": request.decision["threshold"] != "fdr",
        "predictions, groups, weights and limits": not request.beside.is_empty or request.beside.censored is not None,
    }
    useless = [name for name, is_given in given.items() if is_given]
    if useless:
        raise InvalidParameterError(
            f"{', '.join(useless)}: label 'all' audits every column by a Gaussian process on all others, which must also tell "
            "what it would expect of a row with other features; leave that out, or name one label."
        )


@dataclass(frozen=True, eq=False)
class _Encoded:
    """A table whose columns were read and encoded once for all audits.

    prepared : of each audited column. plain : columns in plain types. features : the numbers of all of them.
    left_out : columns of numbers that are not audited.
    """

    prepared: dict[str, Prepared]
    plain: pd.DataFrame
    learned: PlainColumns
    features: FloatArray
    encoder: FeatureEncoder
    left_out: list[LeftOut]
    notes: list[str]

    @classmethod
    def of(cls, table: ManyLabels, request: Request) -> _Encoded:
        """Read, judge and encode the columns."""
        candidates = table.frame[request.candidates(table.frame)]
        learned = PlainColumns.of(candidates, request.numbers, typed=table.typed)
        plain, unread = learned.apply(candidates)
        audited, left_out = columns_to_audit(plain)
        prepared = {}
        for name in audited:
            try:
                prepared[name] = table.with_label(name)
            except InvalidLabelsError as error:
                left_out.append(LeftOut(name, "labels", str(error)))
        if len(prepared) < 2:
            reasons = "".join(f" {item.column!r} is not audited: {item.reason}." for item in left_out[:5])
            raise InvalidFeaturesError(
                f"there are {len(prepared)} columns of measured quantities, and it takes two to contradict each other.{reasons}"
            )
        none = np.full(len(plain), np.nan)
        used, _ = choose_features(plain, none, list(plain.columns), asked_for=request.features is not None)
        rows = next(iter(prepared.values())).rows
        kept = plain[[name for name in plain.columns if name in used or name in prepared]]
        features, encoder = FeatureEncoder.of(kept.set_axis(pd.Index(rows), axis=0))
        return cls(prepared, plain, learned, features, encoder, left_out, [*learned.notes, *unread])

    @property
    def audited(self) -> list[str]:
        """Names of the audited columns."""
        return list(self.prepared)

    def fit(self, name: str) -> tuple[Prepared, Fitted]:
        """A Gaussian process for one column on all others, copies of it left out."""
        prepared = self.prepared[name]
        others = [other for other in self.encoder.columns if other != name]
        used, left_out = choose_features(self.plain, prepared.labels, others, asked_for=prepared.asked_for)
        features, encoder = self._of_columns(used)
        model = fitted_model(prepared.request, features, prepared, mean=None)
        model.table_ = TableFeatures(self.learned, used, encoder, None)
        return prepared, Fitted(model, self.plain[used], used, left_out, self.notes)

    def _of_columns(self, used: list[str]) -> tuple[FloatArray, FeatureEncoder]:
        """The numbers of some columns; lists, whose numbers may hold those of other columns, are encoded without these."""
        if self.encoder.lists.lists:
            return FeatureEncoder.of(self.plain[used])
        encoder, kept = self.encoder.without([other for other in self.encoder.columns if other not in used])
        return self.features[:, kept], encoder


class _Later(Mapping[str, AuditResult]):
    """Audits that are put together when they are first looked at."""

    def __init__(self, fits: dict[str, tuple[Prepared, Fitted]]) -> None:
        self.fits, self._done = fits, dict[str, AuditResult]()

    def __getitem__(self, label: str) -> AuditResult:
        if label not in self._done:
            prepared, fitted = self.fits[label]
            notes = [*prepared.notes, *fitted.notes]
            if prepared.source.is_file and prepared.source.why_not is not None:
                notes.append(prepared.source.why_not)
            self._done[label] = AuditResult(assemble(prepared, fitted), prepared.source, prepared.given, notes)
        return self._done[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fits)

    def __len__(self) -> int:
        return len(self.fits)


class _Predictor:
    """What the fit of one column expects of cells in rows whose other audited cells have given values."""

    def __init__(self, model: LabelNoiseRegressor, rows: IntArray, places: list[_Place]) -> None:
        self._process, self._points, self._places = OtherFeatures(model, rows), model._points, places

    def __call__(
        self, rows: IntArray, values: FloatArray, *, with_variance: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        features = np.array(self._points[rows])
        for place in self._places:
            known = np.isfinite(values[:, place.audited])
            features[known, place.feature] = place.offset + place.slope * values[known, place.audited]
        return self._process.signal(rows, features, with_variance=with_variance)


@dataclass(frozen=True)
class _Place:
    """Where an audited column stands among the features of another: ``offset + slope * value``."""

    audited: int
    feature: int
    offset: float
    slope: float

    @classmethod
    def of(cls, audited: int, feature: int, values: FloatArray, features: FloatArray) -> _Place:
        """From the column and what it was encoded as."""
        low, high = np.nanargmin(values), np.nanargmax(values)
        slope = float((features[high, feature] - features[low, feature]) / (values[high] - values[low]))
        return cls(audited, feature, float(features[low, feature] - slope * values[low]), slope)


def _column_audits(encoded: _Encoded, fits: list[tuple[Prepared, Fitted]]) -> list[ColumnAudit]:
    models = [fitted.model for _, fitted in fits]
    odds = np.column_stack([own_log_odds(model._evidence, model.calibration_) for model in models])
    rows, found = doubtful_rows(odds), []
    for model in models:
        names, points = model.table_.encoder.names, model._points
        places = [
            _Place.of(number, names.index(name), encoded.prepared[name].labels, points)
            for number, name in enumerate(encoded.audited)
            if name in names
        ]
        found.append(ColumnAudit(model._evidence, model.calibration_, _Predictor(model, rows, places)))
    return found


def _cells_found(encoded: _Encoded, fits: list[tuple[Prepared, Fitted]]) -> CellsFound:
    """One table of all cells, under one false discovery rate."""
    columns, first = _column_audits(encoded, fits), fits[0][0]
    blame, fdr = find_blame(columns), first.request.fdr
    q_values = cell_q_values(blame.log_odds)
    labels = np.column_stack([prepared.labels for prepared, _ in fits])
    parts = [
        _column_table(encoded.audited, number, audit, blame, q_values[:, number], labels, first.request)
        for number, audit in enumerate(columns)
    ]
    table = pd.concat([part.assign(row=first.rows) for part in parts], ignore_index=True)
    positions = np.tile(np.arange(len(first.rows)), len(parts))
    order = np.lexsort((positions, -np.nan_to_num(table["score"].to_numpy(), nan=-np.inf)))
    table = table[["row", *(name for name in table.columns if name != "row")]]
    notes = [f"column {item.column!r} was not audited: {item.reason}." for item in encoded.left_out]
    decimal = first.source.decimal
    return CellsFound(
        table.iloc[order].reset_index(drop=True),
        positions[order],
        fdr,
        encoded.left_out,
        [*notes, *encoded.notes],
        first.given,
        decimal,
    )


def _column_table(
    names: list[str],
    number: int,
    audit: ColumnAudit,
    blame: Blame,
    q_values: FloatArray,
    labels: FloatArray,
    request: Request,
) -> pd.DataFrame:
    """The cells of one column, in the order of the rows; suspects that changed places get each other's value."""
    values, expected, variance = labels[:, number], blame.expected[:, number], blame.variance[:, number]
    evidence = replace(audit.evidence, variance=variance, degrees=audit.calibration.degrees)
    half = half_width(evidence, request.decision["confidence"])
    suspect = np.nan_to_num(q_values, nan=1.0) <= request.fdr
    low, high = (evidence.shown(expected + sign * half) for sign in (-1.0, 1.0))
    shown = evidence.shown(expected)
    suggested = tidied(np.where(suspect | np.isnan(values), shown, values), values, (high - low) / 2)
    partner = np.where(suspect, blame.swapped[:, number], -1)
    moved = np.flatnonzero(partner >= 0)
    suggested[moved] = labels[moved, partner[moved]]
    return pd.DataFrame(
        {
            "column": names[number],
            "value": values,
            "expected": shown,
            "expected_low": low,
            "expected_high": high,
            "suggested_value": suggested,
            "z": in_standard_deviations(evidence.label - expected, variance),
            "q_value": q_values,
            "score": blame.log_odds[:, number],
            "suspect": suspect,
            "swapped_with": [names[other] if other >= 0 else "" for other in partner],
        }
    )
