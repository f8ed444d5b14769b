"""A gate: judges new rows against those of an audit, by the model that the audit kept beside its report."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.auditing.beside import beside_rows
from mislabel.auditing.check_result import CheckResult
from mislabel.auditing.frames import pandas_of
from mislabel.auditing.gate_files import KeptGate, model_in, read_gate, table_of
from mislabel.auditing.inputs import Prepared, prepare, prepare_file
from mislabel.auditing.request import Beside, Request
from mislabel.auditing.table_features import TableFeatures
from mislabel.data.column_names import check_column, with_text_names
from mislabel.data.formats.contract import ReadOptions
from mislabel.data.number_text import is_missing
from mislabel.data.table_files import TableFile, read_table
from mislabel.decisions import table_with_verdicts
from mislabel.errors import GateError, InvalidFeaturesError, InvalidParameterError, describe_rows
from mislabel.estimators.new_labels import NewLabels, evidence_of_new
from mislabel.estimators.saved_model import RestoredModel, restored
from mislabel.estimators.validation import check_label_errors, check_sides


class Gate:
    """Judges new rows against accepted ones.

    The accepted rows are those of an audit, which keeps what is needed for that beside its report. A new row gets the verdict
    that it would get if it were appended to them and everything else of that audit stayed as it was. Accepted rows that were
    suspects hardly count: the model believes them as little as it did then.

    >>> gate = Gate.load("prices-audit")  # doctest: +SKIP
    >>> checked = gate.check("new-prices.csv")  # doctest: +SKIP
    >>> checked.ok, checked.suspects  # doctest: +SKIP
    """

    def __init__(self, kept: KeptGate, folder: Path) -> None:
        self._kept, self.folder = kept, folder

    @classmethod
    def load(cls, folder: str | Path) -> Gate:
        """The gate in a folder that :func:`mislabel.audit_file`, ``mislabel audit`` or ``result.write`` wrote."""
        folder = Path(folder)
        kept = read_gate(folder)
        if kept.why_not is not None:
            raise GateError(f"{folder}: {kept.why_not}")
        return cls(kept, folder)

    @property
    def label(self) -> str:
        """The column that is judged."""
        return str(self._kept.words["label"])

    @property
    def rows(self) -> int:
        """How many rows were audited."""
        return int(self._kept.words["rows"])

    def check(
        self,
        data: Any,
        labels: Any = None,
        *,
        fdr: float | None = None,
        id: str | None = None,
        sheet: str | None = None,
    ) -> CheckResult:
        """Judge new rows.

        Parameters
        ----------
        data : the path of a file, a frame of any kind with the same columns as the audited one, or features and ``labels``.
        labels : beside features that were audited as an array.
        fdr : expected fraction of right labels among those called suspect; default: that of the audit.
        id : column with row ids; default: that of the audit where the new rows have it, else their positions.
        sheet : of a workbook; default: that of the audit.
        """
        prepared, lines, name = self._prepared(data, labels, fdr, id, sheet)
        features, notes = self._features(prepared)
        new, known = self._new_labels(prepared, features), self._restored
        evidence = evidence_of_new(known.model, known.rules, new, known.accepted)
        evidence = replace(evidence, typical=known.typical, usual_chance=known.usual_chance)
        verdicts = np.full(len(prepared.rows), np.nan) if known.accepted is None else known.accepted.verdicts_on(new)
        decision = dict(self._kept.words["decision"])
        threshold, cutoff = decision["threshold"], decision["cutoff"]
        if fdr is not None or threshold != "z":
            # So many of the most suspicious rows of an audit say nothing of new ones.
            threshold, cutoff = "fdr", prepared.request.fdr
        table = table_with_verdicts(
            known.calibration.apply(evidence),
            verdicts,
            score=decision["score"],
            threshold=threshold,
            cutoff=float(cutoff),
            confidence=decision["confidence"],
        ).drop(columns="detectable")
        positions = table["row"].to_numpy(dtype=np.intp)
        table["row"] = prepared.rows[positions]
        if lines is not None:
            table["line"] = lines[positions]
        cut = threshold, float(cutoff)
        return CheckResult(pd.DataFrame(table), self.label, name, self.rows, *cut, positions, notes)

    @cached_property
    def _restored(self) -> RestoredModel:
        try:
            return restored(model_in(self._kept))
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise GateError(
                f"{self.folder}: the gate cannot be read by this version ({error}): audit the accepted rows again."
            ) from None

    @cached_property
    def _table(self) -> TableFeatures | None:
        told = self._kept.words["table"]
        return None if told is None else table_of(told, self._kept.arrays)

    def _request(self, fdr: float | None, id: str | None) -> Request:
        words = self._kept.words
        beside = dict(words["beside"])
        errors = beside.pop("errors")
        return Request(
            self.label,
            float(words["decision"]["fdr"] if fdr is None else fdr),
            id,
            errors=errors,
            reading=ReadOptions(numbers=self._reading(None).numbers),
            model={"mean": None},
            beside=Beside(**beside),
            of_new_rows=True,
        )

    def _reading(self, sheet: str | None) -> ReadOptions:
        """How new files are read: as the audited one, but that the layout of each is its own."""
        read = self._kept.words["read"]
        return ReadOptions.stated(
            sheet=sheet or read["sheet"], decimal=read["decimal"], thousands=read["thousands"], na=read.get("na")
        )

    def _prepared(
        self, data: Any, labels: Any, fdr: float | None, id: str | None, sheet: str | None
    ) -> tuple[Prepared, NDArray[np.intp] | None, str]:
        """Rows and labels, the lines they stand in where that is known, and what they are called."""
        request = self._request(fdr, id)
        if isinstance(data, str | os.PathLike):
            path = Path(data)
            table = read_table(path, options=self._reading(sheet))
            prepared = prepare_file(path, table, self._with_id(request, table.frame))
            lines = None if table.lines is None else np.asarray(table.lines, dtype=np.intp)
            return replace(prepared, frame=self._as_written(prepared.frame, table)), lines, str(data)
        if sheet is not None:
            raise InvalidParameterError("sheet goes with a file.")
        if labels is None:
            request = self._with_id(request, with_text_names(pandas_of(data)))
        prepared = prepare(data, labels, request)
        return prepared, None, prepared.source.name

    def _with_id(self, request: Request, frame: pd.DataFrame) -> Request:
        """With the ids of the audit, where the new rows have that column."""
        known = self._kept.words["id"]
        return replace(request, id=known) if request.id is None and known in frame.columns else request

    def _as_written(self, frame: Any, table: TableFile) -> Any:
        """A file's rows, text where the audit had text: a few cells of codes may all look like numbers."""
        kinds = {} if self._table is None else self._table.plain.kinds
        changed = {}
        for name, kind in kinds.items():
            if kind == "text" and name in frame.columns and pd.api.types.is_numeric_dtype(frame[name].dtype):
                changed[name] = [None if is_missing(cell) else cell for cell in table.filled(name)]
        return frame.assign(**{name: pd.Series(cells, dtype=object) for name, cells in changed.items()})

    def _features(self, prepared: Prepared) -> tuple[NDArray[np.float64], list[str]]:
        """The features of new rows, and what could not be read of them."""
        frame = prepared.frame
        if self._table is None:
            return np.zeros((len(prepared.rows), 0)), []
        assert isinstance(frame, pd.DataFrame)
        notes = []
        for name in self._table.used:
            check_column(frame, name)
        columns, unread = self._table.plain.apply(frame[self._table.used])
        for name in self._table.used:
            gone = columns[name].isna().to_numpy()
            odd = np.flatnonzero(gone & frame[name].notna().to_numpy())
            odd = odd[[not is_missing(str(value)) for value in frame[name].iloc[odd]]] if odd.size else odd
            if odd.size and not any(note.startswith(f"column {name!r}") for note in unread):
                kind = self._table.plain.kinds[name]
                notes.append(
                    f"column {name!r} holds {odd.size} values that are no {kind} ({describe_rows(prepared.rows[odd])}): taken "
                    "for gaps."
                )
            if gone.any() and self._table.encoder.pipeline is None:
                at = np.flatnonzero(gone)
                raise InvalidFeaturesError(
                    f"column {name!r} has no number in {describe_rows(prepared.rows[at])}, and no accepted row has a gap there: "
                    "fill it in, or audit rows with gaps as well."
                )
        return self._table.encoder.encode(columns), [*notes, *unread]

    def _new_labels(self, prepared: Prepared, features: NDArray[np.float64]) -> NewLabels:
        beside, size = beside_rows(prepared), len(prepared.rows)
        return NewLabels(
            prepared.rows,
            features,
            prepared.labels,
            check_label_errors(beside.errors, size, prepared.rows),
            check_sides(beside.side, size),
            beside.predictions,
        )
