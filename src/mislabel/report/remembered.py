"""What was decided about labels before an audit, and what became of it in this one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mislabel.data.corrections import Decision
from mislabel.errors import describe_rows
from mislabel.report.plain_words import count, number, plain_text

#: Rows that are named in a sentence.
_NAMED = 5


@dataclass(frozen=True)
class Opinion:
    """What one file of decisions says about a row; ``file`` is its name."""

    decision: Decision
    file: str
    reviewer: str = ""
    exported: str = ""

    @property
    def words(self) -> str:
        """For people: ``keep 3.5 (anna.json, Anna)``."""
        chosen = self.decision
        value = chosen.label if chosen.action == "keep" else chosen.value
        what = chosen.action if value is None else f"{chosen.action} {number(value)}"
        told = [plain_text(name, 60) for name in (PurePath(self.file).name, self.reviewer) if name]
        return f"{what} ({', '.join(told)})"

    def as_dict(self) -> dict[str, Any]:
        """For summary.json."""
        chosen = self.decision
        return {
            "file": self.file,
            "reviewer": self.reviewer,
            "action": chosen.action,
            "label": chosen.label,
            "value": chosen.value,
            "note": chosen.note,
        }


@dataclass(frozen=True)
class Conflict:
    """A row that two files decide differently about: it stays open."""

    position: int
    row: str
    opinions: tuple[Opinion, ...]

    @property
    def words(self) -> str:
        """For people."""
        return f"row {plain_text(self.row)}: {', '.join(opinion.words for opinion in self.opinions)}"

    def as_dict(self) -> dict[str, Any]:
        """For summary.json."""
        return {
            "row": self.row,
            "position": self.position,
            "opinions": [opinion.as_dict() for opinion in self.opinions],
        }


@dataclass(frozen=True, eq=False)
class Remembered:
    """Earlier decisions as far as they are about rows of this audit.

    files : names of the files of decisions. decided : the decision about each row that has one, by position.
    labels : as the data has them; side : -1 for upper limits, 1 for lower ones, None for none. fitted : the labels that the fit
        is given: new values, and NaN for rows to drop. right : which of these are known to be right.
    originals, verdicts : the labels that decisions were made about, and what these say of them: 0 right, 1 wrong, NaN nothing.
    conflicts : rows with two opinions. changed : ids of rows whose label is neither the old nor the new one.
    unmatched : decisions whose rows are not in the data; ambiguous : those that several rows may be meant by; gone : dropped rows
        that are not there any more. not_looked_at : labels that were kept without anybody having looked at them.
    """

    files: tuple[str, ...]
    decided: dict[int, Opinion]
    labels: NDArray[np.float64]
    side: NDArray[np.int8] | None
    fitted: NDArray[np.float64]
    right: NDArray[np.bool_]
    originals: NDArray[np.float64]
    verdicts: NDArray[np.float64]
    conflicts: list[Conflict] = field(default_factory=list)
    changed: dict[int, str] = field(default_factory=dict)
    unmatched: int = 0
    ambiguous: int = 0
    gone: int = 0
    not_looked_at: int = 0

    @property
    def open(self) -> list[int]:
        """Positions of rows that are asked for again, since opinions differ or their label is another one now."""
        return sorted({*self.changed, *(conflict.position for conflict in self.conflicts)})

    @property
    def actions(self) -> NDArray[np.object_]:
        """What was decided about each row, in the order of the data; empty where nothing was."""
        found = np.full(self.labels.size, "", dtype=object)
        for position, opinion in self.decided.items():
            found[position] = opinion.decision.action
        return found

    @property
    def tally(self) -> dict[str, int]:
        """How many labels were kept, accepted, edited and dropped."""
        found = Counter(opinion.decision.action for opinion in self.decided.values())
        return {action: found[action] for action in ("keep", "accept", "edit", "drop")}

    def entries(self) -> list[dict[str, Any]]:
        """The decisions in the format that the page exports, about the rows as they stand here."""
        found = []
        for position, opinion in sorted(self.decided.items()):
            chosen, label = opinion.decision, self.labels[position]
            entry: dict[str, Any] = {
                "position": position,
                "row": chosen.row,
                "label": None if np.isnan(label) else float(label),
                "action": chosen.action,
                "value": chosen.value,
                "note": chosen.note,
                "reviewed": chosen.reviewed,
                "reviewer": opinion.reviewer,
                "exported": opinion.exported,
            }
            original = chosen.original
            if original is not None and original != entry["label"]:
                entry["former"] = original
            if chosen.evidence:
                entry["evidence"] = chosen.evidence
            found.append(entry)
        return found

    def as_dict(self) -> dict[str, Any]:
        """For summary.json."""
        return {
            "files": list(self.files),
            "labels": len(self.decided),
            **self.tally,
            "changed": list(self.changed.values()),
            "unmatched": self.unmatched,
            "ambiguous": self.ambiguous,
            "dropped_before": self.gone,
            "not_looked_at": self.not_looked_at,
        }

    def lines(self) -> list[str]:
        """What became of earlier decisions, in sentences."""
        told = {"keep": "kept", "accept": "accepted with a new value", "edit": "edited", "drop": "dropped"}
        parts = [f"{size:,} {told[action]}" for action, size in self.tally.items() if size]
        total = len(self.decided)
        were, are = ("was", "is") if total == 1 else ("were", "are")
        lines = ["None of these labels was decided earlier."]
        if total:
            decided = f"{count(total, 'label')} {were} decided earlier ({', '.join(parts)})"
            lines = [f"{decided} and {are} not asked for again."]
        if self.conflicts:
            shown = "; ".join(conflict.words for conflict in self.conflicts[:_NAMED])
            more = len(self.conflicts) - _NAMED
            are = "is" if len(self.conflicts) == 1 else "are"
            lines.append(
                f"Reviewers differ about {count(len(self.conflicts), 'row')}, which {are} asked for again: {shown}"
                f"{f'; and {more:,} more' if more > 0 else ''}."
            )
        return lines

    def notes(self) -> list[str]:
        """What could not be remembered, in sentences."""
        found = []
        if self.changed:
            rows = [plain_text(row) for row in self.changed.values()]
            found.append(
                f"{count(len(rows), 'label')} {'is' if len(rows) == 1 else 'are'} neither what was decided about nor the new "
                f"value ({describe_rows(rows)}): asked for again."
            )
        if self.unmatched:
            found.append(f"{count(self.unmatched, 'decision')} could not be matched with any row of this data.")
        if self.ambiguous:
            found.append(
                f"{count(self.ambiguous, 'decision')} could be about several rows that hold the same, and not all of those were "
                "decided alike: asked for again. An id column tells such rows apart."
            )
        if self.gone:
            were, are = ("was", "is") if self.gone == 1 else ("were", "are")
            found.append(f"{count(self.gone, 'row')} that {were} dropped earlier {are} not in this data any more.")
        if self.not_looked_at:
            found.append(
                f'{count(self.not_looked_at, "label")} kept without "reviewed": true, which says that nobody looked at '
                f"{'it' if self.not_looked_at == 1 else 'them'}: judged like all others."
            )
        return found
