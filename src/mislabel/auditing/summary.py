"""What was found, for machines and people: the content of summary.json, which prints as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel._common.version import __version__
from mislabel.auditing.given import Given
from mislabel.data.columns import LeftOut
from mislabel.report.cell_words import cell_lines
from mislabel.report.content import Source
from mislabel.report.drawn_sample import DrawnSample
from mislabel.report.findings import Findings
from mislabel.report.group_words import group_entries
from mislabel.report.plain_words import plain_text
from mislabel.report.words import model_line, summary_lines, trust_lines

_WORST_IN_SUMMARY = 100
_LONGEST_LINE = 2000


class Summary(dict[str, Any]):
    """The content of summary.json as a dict; printed, it is the audit in words.

    >>> result.summary["suspects"]  # doctest: +SKIP
    35
    >>> print(result.summary)  # doctest: +SKIP
    35 of 600 labels look wrong at a false discovery rate of 5 %.
    """

    def as_dict(self) -> dict[str, Any]:
        """What summary.json holds."""
        return dict(self)

    def __str__(self) -> str:
        if "audits" in self:
            cells = [plain_text(line, _LONGEST_LINE) for line in self.get("cells", {}).get("summary", [])]
            audits = [f"{plain_text(name)}: {entry['summary'][0]}" for name, entry in self["audits"].items()]
            return "\n".join([*cells, *audits])
        lines = [*self["summary"], self["model"]["words"], *self["trust"]]
        return "\n".join(plain_text(line, _LONGEST_LINE) for line in lines)

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return Summary, (dict(self),)


def summary_of_several(audits: Mapping[str, Summary]) -> Summary:
    """One summary of the audits of several labels of the same data."""
    first = next(iter(audits.values()))
    shared = {name: first[name] for name in ("mislabel", "file", "sha256", "read_as", "rows", "fdr")}
    suspects = sum(audit["suspects"] for audit in audits.values())
    return Summary({**shared, "labels": list(audits), "suspects": suspects, "audits": dict(audits)})


@dataclass(frozen=True, eq=False)
class CellsFound:
    """What an audit of all columns found of their cells.

    table : one row per cell. positions : of the row of each. left_out : columns that were not audited.
    decimal : the mark of the file.
    """

    table: pd.DataFrame
    positions: NDArray[np.intp]
    fdr: float
    left_out: list[LeftOut]
    notes: list[str]
    given: Given
    decimal: str = "."


def summary_of_cells(several: Summary, found: CellsFound) -> Summary:
    """The summary of several audits with what was found of cells."""
    table = found.table
    worst = np.flatnonzero(table["suspect"].to_numpy())[:_WORST_IN_SUMMARY]
    numbers = ("value", "expected", "suggested_value", "z", "q_value")
    cells = {
        "cells": int(table["value"].notna().sum()),
        "suspects": int(table["suspect"].sum()),
        "summary": cell_lines(table, found.fdr, found.decimal),
        "not_audited": [{"column": item.column, "kind": item.kind, "reason": item.reason} for item in found.left_out],
        "worst": [
            {
                "row": str(entry["row"]),
                "position": int(found.positions[rank]),
                "column": str(entry["column"]),
                **{name: _finite(entry[name]) for name in numbers},
                "swapped_with": entry["swapped_with"] or None,
            }
            for rank, entry in zip(worst.tolist(), table.iloc[worst].to_dict("records"), strict=True)
        ],
        "notes": found.notes,
    }
    return Summary({**several, "cells": cells})


def summary(audit: Findings, source: Source, notes: Sequence[str] = (), no_gate: str | None = None) -> Summary:
    """What was found, for machines; ``no_gate`` says why new rows cannot be judged by it."""
    memory = audit.remembered
    return Summary(
        {
            "mislabel": __version__,
            "file": source.name,
            "sha256": source.fingerprint,
            "read_as": source.described,
            "reading": source.reading.as_dict(),
            "label": audit.label,
            "id": audit.id,
            "rows": len(audit.table),
            "missing_labels": int(audit.table["label"].isna().sum()),
            "copied_rows": audit.model.n_copies_,
            "suspects": audit.n_suspects,
            "fdr": audit.fdr if audit.threshold == "fdr" else None,
            "threshold": audit.threshold,
            "cutoff": audit.cutoff,
            "summary": [*summary_lines(audit, source.decimal), *([] if memory is None else memory.lines())],
            "decided_before": None if memory is None else memory.as_dict(),
            "conflicts": [] if memory is None else [conflict.as_dict() for conflict in memory.conflicts],
            "model": _model(audit),
            "label_kind": _label_kind(audit),
            "detectable": _detectable(audit),
            "trust": trust_lines(audit, source.decimal),
            "calibration": _calibration(audit),
            "columns": {
                "used": audit.used,
                "left_out": [
                    {"column": item.column, "kind": item.kind, "reason": item.reason} for item in audit.left_out
                ],
            },
            "patterns": _patterns(audit),
            "groups": group_entries(audit),
            "worst": _worst(audit),
            "certificate": DrawnSample.of(audit, source).as_dict(),
            "notes": [*notes, *source.notes],
            "no_gate": no_gate,
        }
    )


def _model(audit: Findings) -> dict[str, Any]:
    model, choice = audit.model, audit.model.mean_choice_
    return {
        "words": model_line(audit),
        "mean": choice.name if choice is not None else None,
        "log_density": {name: _finite(value) for name, value in choice.densities.items()} if choice else None,
        "kernel": str(model.kernel_),
        "base_noise_std": float(np.sqrt(model.base_noise_variance_)),
        "base_noise_status": model.base_noise_status_,
        "residual": _finite(model.residual_),
        "converged": model.converged_,
    }


def _label_kind(audit: Findings) -> dict[str, Any]:
    model, signs = audit.model, audit.censored or []
    choice = model.scale_choice_
    return {
        "scale": model.label_transform_.name,
        "log_density": None if choice is None else {name: _finite(value) for name, value in choice.densities.items()},
        "atoms": [float(value) for value in model.atoms_.values],
        "atoms_are_bounds": model.bounds_.has_bounds,
        "upper_limits": signs.count("<"),
        "lower_limits": signs.count(">"),
    }


def _detectable(audit: Findings) -> dict[str, Any]:
    """Quantiles over the rows of the least error that would be noticed, None where none would be."""
    limit = np.sort(audit.table["detectable"].to_numpy(dtype=float))
    places = {"tenth": 0.1, "median": 0.5, "nine_tenths": 0.9}
    return {name: _finite(limit[int(share * (limit.size - 1))]) for name, share in places.items()}


def _calibration(audit: Findings) -> dict[str, Any]:
    calibration = audit.model.calibration_
    return {
        "adjusted": calibration.adjusted,
        "noticeable": calibration.noticeable,
        "scale": calibration.scale,
        "floor_std": float(np.sqrt(calibration.floor)),
        "relative_std": float(np.sqrt(calibration.relative)),
        "degrees_of_freedom": _finite(calibration.degrees),
        "share_of_wrong_labels": calibration.wrong_fraction,
    }


def _patterns(audit: Findings) -> list[dict[str, Any]]:
    ids = audit.table["row"].to_numpy()
    return [
        {
            "name": pattern.name,
            "words": pattern.words,
            "sentence": pattern.sentence,
            "rows": [str(row) for row in ids[audit.ranks[pattern.positions]].tolist()],
            "expected_by_accident": _finite(pattern.by_accident),
            "p_value": _finite(pattern.p_value),
        }
        for pattern in audit.patterns
    ]


def _worst(audit: Findings) -> list[dict[str, Any]]:
    worst = np.flatnonzero(audit.table["suspect"].to_numpy())[:_WORST_IN_SUMMARY]
    rows = audit.table.iloc[worst].to_dict("records")
    return [
        {
            "row": str(entry["row"]),
            "position": int(position),
            "label": _finite(entry["label"]),
            "expected": _finite(entry["expected"]),
            "suggested": _finite(entry["suggested_label"]),
            "z": _finite(entry["z"]),
            "q_value": _finite(entry["q_value"]),
        }
        for position, entry in zip(audit.positions[worst], rows, strict=True)
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
