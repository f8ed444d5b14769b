"""Decisions as Python makes them: every suspect accepted, and what was decided earlier as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from mislabel.data.corrections import FORMAT
from mislabel.report.content import Source, audit_settings
from mislabel.report.findings import Findings


def accepted(found: Findings, source: Source) -> dict[str, Any]:
    """The suspects of an audit with their suggestions, in the format that the page exports."""
    table, contents = found.table, found.fingerprints
    chosen = np.flatnonzero((table["suspect"] & np.isfinite(table["suggested_label"])).to_numpy())
    entries: list[dict[str, Any]] = [
        {
            "position": int(position),
            "row": str(entry["row"]),
            "label": float(entry["label"]),
            "action": "accept",
            "value": float(entry["suggested_label"]),
            "note": "",
            "reviewed": False,
            "evidence": {
                "expected": float(entry["expected"]),
                "low": float(entry["expected_low"]),
                "high": float(entry["expected_high"]),
                "z": float(entry["z"]),
                "q_value": float(entry["q_value"]),
            },
        }
        for position, entry in zip(found.positions[chosen], table.iloc[chosen].to_dict("records"), strict=True)
    ]
    if found.remembered is not None:
        entries += found.remembered.entries()
    if contents is not None:
        for entry in entries:
            entry["content"] = contents.text(entry["position"])
            if (copies := int(contents.copies[entry["position"]])) > 1:
                entry["copies"] = copies
    file = {"name": source.name, "sha256": source.fingerprint, "rows": len(table)}
    return {
        "format": FORMAT,
        "file": {**file, **source.read_options},
        "label": found.label,
        "id": found.id,
        "content": None if contents is None else list(contents.columns),
        "audit": audit_settings(found),
        "decisions": sorted(entries, key=lambda entry: entry["position"]),
    }
