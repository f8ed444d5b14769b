"""Where the labels of a cleaned file come from: who changed which one, when, on what evidence, from which file and audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mislabel._common.version import __version__
from mislabel.data.formats.corrected_copy import Decision, Decisions

FORMAT = "mislabel-provenance/1"
#: What the name of the cleaned file gets for its provenance.
SUFFIX = ".provenance.json"
#: Who decided, where nobody says so.
UNKNOWN = "unknown"


def provenance_path(target: Path) -> Path:
    """``prices-cleaned.csv.provenance.json`` of ``prices-cleaned.csv``: the whole name, so that no two files share one."""
    return target.with_name(f"{target.name}{SUFFIX}")


def provenance(
    chosen: Decisions, files: dict[str, dict[str, str]], *, reviewer: str | None, evidence: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The content of a provenance file.

    files : name and SHA-256 of "source", "decisions" and "cleaned". reviewer : who decided, whatever the decisions say.
    evidence : numbers beside decisions that carry none, by the id of the row.
    """
    found = sorted(chosen.decisions, key=lambda decision: decision.position)
    return {
        "format": FORMAT,
        "mislabel": __version__,
        **files,
        "label": chosen.label,
        "id": chosen.id,
        "rows": chosen.rows,
        "audit": chosen.audit,
        "changes": [
            _entry(decision, chosen, reviewer, evidence or {}) for decision in found if _changes_anything(decision)
        ],
        "kept": [
            _entry(decision, chosen, reviewer, evidence or {}) for decision in found if not _changes_anything(decision)
        ],
    }


def _changes_anything(decision: Decision) -> bool:
    """Whether a decision leaves the file with another label or without the row."""
    return decision.action == "drop" or (decision.value is not None and decision.value != decision.label)


def _entry(decision: Decision, chosen: Decisions, reviewer: str | None, evidence: dict[str, Any]) -> dict[str, Any]:
    former = {} if decision.former is None else {"first": decision.former}
    return {
        "position": decision.position,
        "row": decision.row,
        "action": decision.action,
        "old": decision.label,
        "new": decision.value,
        **former,
        "reviewer": decision.reviewer or reviewer or chosen.reviewer or UNKNOWN,
        "reviewed": decision.reviewed,
        "decided": decision.decided_at or chosen.exported or None,
        "note": decision.note,
        "evidence": decision.evidence or evidence.get(decision.row or "") or None,
    }


def as_bytes(content: dict[str, Any]) -> bytes:
    """The file itself."""
    return (json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
