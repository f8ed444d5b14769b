"""Groups of rows that look wrong as a whole, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from mislabel.report.findings import Findings, GroupFindings
from mislabel.report.plain_words import count, percent, plain_text

#: Groups on the page and in the summary.
MOST_GROUPS_SHOWN = 200
_NAMED = 3


def group_line(found: GroupFindings, fdr: float) -> str:
    """How many groups look wrong, and the first of them."""
    wrong = found.table[found.table["suspect"]]
    what = f"of {count(len(found.table), 'group')} by {plain_text(found.column, 60)}"
    if not len(wrong):
        return f"None {what} looks wrong as a whole."
    told = [
        f"{plain_text(entry['group'], 60)} ({count(entry['rows'], 'row')}: {entry['words']})"
        for entry in wrong.head(_NAMED).to_dict("records")
    ]
    more = f", and {len(wrong) - len(told)} more" if len(wrong) > len(told) else ""
    verb = "looks" if len(wrong) == 1 else "look"
    return (
        f"{len(wrong)} {what} {verb} wrong as a whole at a false discovery rate of {percent(fdr)}: {'; '.join(told)}{more}. "
        "Their rows vouch for each other, and need not be suspects one by one."
    )


def group_entries(audit: Findings) -> dict[str, Any] | None:
    """The groups for the page and the summary, the most suspicious first; None where none were judged."""
    found = audit.groups
    if found is None:
        return None
    shown = found.table.head(max(MOST_GROUPS_SHOWN, int(found.table["suspect"].sum())))
    return {
        "column": found.column,
        "words": group_line(found, audit.fdr),
        "count": len(found.table),
        "suspects": int(found.table["suspect"].sum()),
        "entries": [
            {
                "group": plain_text(entry["group"], 200),
                "rows": int(entry["rows"]),
                "kind": entry["kind"],
                "size": float(entry["size"]) if np.isfinite(entry["size"]) else None,
                "words": entry["words"],
                "gain": round(float(entry["gain"]), 3),
                "p_value": float(entry["p_value"]),
                "q_value": float(entry["q_value"]),
                "suspect": bool(entry["suspect"]),
            }
            for entry in shown.to_dict("records")
        ],
    }
