"""Decisions about a file carried out from the command line, with what its audit says beside them."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

from mislabel.auditing.files import usual_folder
from mislabel.data.corrections import Applied, Decisions, apply_decisions, read_decisions, safe_cell

#: Numbers of audit.csv, by what they are called beside a decision.
_COLUMNS = {"expected": "expected", "expected_low": "low", "expected_high": "high", "z": "z", "q_value": "q_value"}


def apply_file(file: str | Path, decisions: str | Path, output: str | Path, **options: Any) -> Applied:
    """Write a cleaned copy of a file and its provenance; options are those of :func:`apply_decisions`.

    Numbers that older decisions do not carry are taken from the results of the audit, where these stand in the usual folder.
    """
    chosen = read_decisions(decisions)
    evidence = None
    if any(not decision.evidence for decision in chosen.decisions):
        evidence = evidence_in(usual_folder(Path(file)), chosen)
    return apply_decisions(file, decisions, output, evidence=evidence, **options)


def evidence_in(folder: Path, chosen: Decisions) -> dict[str, dict[str, float]]:
    """Numbers about the rows of decisions, by id; none where the folder holds no results of the audit that they follow."""
    wanted = {str(safe_cell(decision.row)): decision.row for decision in chosen.decisions if decision.row is not None}
    found: dict[str, dict[str, float]] = {}
    twice: set[str] = set()
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        if summary.get("sha256") != chosen.fingerprint or summary.get("label") != chosen.label:
            return {}
        with (folder / "audit.csv").open(newline="", encoding="utf-8") as lines:
            for entry in csv.DictReader(lines):
                row = wanted.get(entry["row"])
                if row is None:
                    continue
                twice |= {row} & found.keys()
                found[row] = {
                    name: float(entry[column])
                    for column, name in _COLUMNS.items()
                    if entry.get(column) and math.isfinite(float(entry[column]))
                }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error):
        return {}
    return {row: numbers for row, numbers in found.items() if row not in twice}
