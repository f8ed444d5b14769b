"""Decisions from earlier audits, found again in this data: by position, by the id of the row, or by what the row holds.

What is not certain is counted and said, never guessed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.auditing.given import read_given
from mislabel.auditing.inputs import Prepared
from mislabel.data.corrections import Decision, Decisions
from mislabel.data.row_fingerprints import RowFingerprints, of_rows
from mislabel.decisions.verdicts import RIGHT, WRONG
from mislabel.errors import DecisionsError
from mislabel.report.remembered import Conflict, Opinion, Remembered

#: Labels that differ by no more than this part are the same, written in another way.
_SAME = 1e-12


def read_earlier(given: Any, labels: Sequence[str] | None) -> tuple[tuple[str, Decisions], ...]:
    """Files of decisions, or their contents, with their names; ``labels`` are what they may be about, None for anything."""
    several: list[Any] = [given] if isinstance(given, dict | str | os.PathLike) else list(given or ())
    found = []
    for k, item in enumerate(several):
        name = f"decisions {k + 1}" if isinstance(item, dict) else str(item)
        chosen = read_given(item if isinstance(item, dict) else Path(item))
        if labels is not None and chosen.label not in labels:
            raise _about_another(name, chosen, ", ".join(repr(label) for label in labels))
        found.append((name, chosen))
    return tuple(found)


def _about_another(name: str, chosen: Decisions, asked: str) -> DecisionsError:
    return DecisionsError(f"{name} is about the label {chosen.label!r}, not about {asked}: leave it out.")


def remember(prepared: Prepared) -> Prepared:
    """The same data with what was decided about it earlier."""
    request = prepared.request
    if not request.decisions:
        return prepared
    rows, found = _Rows(prepared), _Found()
    for name, chosen in request.decisions:
        if chosen.label != request.label:
            raise _about_another(name, chosen, repr(request.label))
        _match(rows, name, chosen, found)
    memory = _settled(prepared, found, tuple(name for name, _ in request.decisions))
    side = prepared.side
    if side is not None:
        changed = memory.fitted != memory.labels
        side = np.where(changed, 0, side).astype(np.int8)
    if request.model["missing"] == "raise" and not np.isnan(memory.labels).any():
        request = replace(request, model={**request.model, "missing": "predict"})
    return replace(prepared, request=request, labels=memory.fitted, side=side, remembered=memory)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of an audit, found by what decisions know of them."""

    prepared: Prepared

    @cached_property
    def ids(self) -> dict[str, list[int]] | None:
        """Where the rows with each id stand; None where positions are all they have."""
        rows = self.prepared.rows
        if self.prepared.request.id is None and np.array_equal(rows, np.arange(len(rows))):
            return None
        found: dict[str, list[int]] = defaultdict(list)
        for position, row in enumerate(rows):
            found[str(row)].append(position)
        return found

    @cached_property
    def _fingerprints(self) -> dict[tuple[str, ...], RowFingerprints | None]:
        return {}

    def contents(self, columns: tuple[str, ...]) -> RowFingerprints | None:
        """Fingerprints of the rows by these columns; None where the data has not all of them."""
        if columns not in self._fingerprints:
            prepared = self.prepared
            objects = None if columns else prepared.objects
            self._fingerprints[columns] = of_rows(prepared.frame, columns, objects, prepared.labels)
        return self._fingerprints[columns]

    def are_those_of(self, chosen: Decisions) -> bool:
        """Whether decisions were made about this very data, so that positions are the same."""
        source, size = self.prepared.source, len(self.prepared.rows)
        stated = chosen.options.as_dict()
        same_rows = all(source.read_options.get(name) == stated[name] for name in ("sheet", "header", "skip"))
        return source.fingerprint == chosen.fingerprint and chosen.rows == size and same_rows


@dataclass(eq=False)
class _Found:
    """Opinions by position, and decisions that were about no row, or about which one could not be told."""

    opinions: dict[int, list[Opinion]] = field(default_factory=lambda: defaultdict(list))
    unmatched: int = 0
    ambiguous: int = 0
    gone: int = 0
    not_looked_at: int = 0

    def missed(self, decision: Decision) -> None:
        """Count a decision about a row that is not there; one that was to be dropped is not missed."""
        if decision.action == "drop":
            self.gone += 1
        else:
            self.unmatched += 1


def _match(rows: _Rows, name: str, chosen: Decisions, found: _Found) -> None:
    """Add what one file says to what was found."""
    asked = [decision for decision in chosen.decisions if decision.reviewed or decision.action != "keep"]
    found.not_looked_at += len(chosen.decisions) - len(asked)

    def add(position: int, decision: Decision) -> None:
        reviewer, when = decision.reviewer or chosen.reviewer, decision.decided_at or chosen.exported
        found.opinions[position].append(Opinion(decision, name, reviewer, when))

    if rows.are_those_of(chosen):
        labels = rows.prepared.labels
        for decision in asked:
            own = labels[decision.position]
            known = decision if decision.label is not None or np.isnan(own) else replace(decision, label=float(own))
            add(decision.position, known)
        return
    named = rows.prepared.request.id
    if chosen.has_ids and rows.ids is not None and (chosen.id is None or named is None or chosen.id == named):
        for decision in asked:
            places = rows.ids.get(str(decision.row), [])
            if len(places) == 1:
                add(places[0], decision)
            elif places:
                found.ambiguous += 1
            else:
                found.missed(decision)
        return
    _match_by_content(rows, chosen, asked, add, found)


def _match_by_content(rows: _Rows, chosen: Decisions, asked: list[Decision], add: Any, found: _Found) -> None:
    """Rows that hold the same; of several, all or none."""
    contents = None if chosen.columns is None else rows.contents(chosen.columns)
    groups: dict[tuple[str, float | None], list[Decision]] = defaultdict(list)
    for decision in asked:
        if contents is None or decision.content is None:
            found.unmatched += 1
        else:
            groups[decision.content, decision.label].append(decision)
    for (content, _), group in groups.items():
        assert contents is not None
        first, places = group[0], contents.positions.get(content, np.zeros(0, dtype=np.intp))
        own = rows.prepared.labels[places]
        meant = places[_is(own, first.label)]
        if not meant.size and first.value is not None:
            meant = places[_is(own, first.value)]
        alike = len(group) == first.copies and all(
            (one.action, one.value) == (first.action, first.value) for one in group
        )
        if meant.size and (not alike or meant.size > first.copies):
            found.ambiguous += len(group)
        elif meant.size:
            for position in meant.tolist():
                add(position, first)
        elif places.size == first.copies == 1:
            add(int(places[0]), first)  # the row, with a label of its own since
        else:
            for decision in group:
                found.missed(decision)


def _is(labels: NDArray[np.float64], value: float | None) -> NDArray[np.bool_]:
    """Which labels are this value, as far as columns of single precision can hold it; None for those that are missing."""
    if value is None:
        return np.isnan(labels)
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    return np.asarray((np.abs(labels - value) <= _SAME * abs(value)) | (labels == single))


def _same(one: float | None, other: float | None) -> bool:
    return one is other is None or (one is not None and bool(_is(np.array([one]), other)[0]))


def _outcome(opinion: Opinion) -> tuple[str, float | None]:
    """What a decision says the right label is; keeping a label says that it is the one that was there."""
    chosen = opinion.decision
    return (
        ("drop", None) if chosen.action == "drop" else ("is", chosen.value if chosen.action != "keep" else chosen.label)
    )


def _agree(one: Opinion, other: Opinion) -> bool:
    (kind, value), (other_kind, other_value) = _outcome(one), _outcome(other)
    return kind == other_kind and _same(value, other_value)


def _in_conflict(opinions: list[Opinion]) -> tuple[Opinion, ...]:
    """Opinions about the same label that differ; those of people who looked at the row count more than those of nobody."""
    for one in opinions:
        about = [other for other in opinions if _same(other.decision.label, one.decision.label)]
        looked = [other for other in about if other.decision.reviewed] or about
        if any(not _agree(looked[0], other) for other in looked):
            return tuple(looked)
    return ()


def _fitting(opinions: list[Opinion], label: float) -> Opinion | None:
    """The opinion about a label as it is now: made about it, or made what it is; None where it is another one since."""
    own = np.array([label])
    ordered = sorted(opinions, key=lambda opinion: not opinion.decision.reviewed)
    about = [opinion for opinion in ordered if _is(own, opinion.decision.label)[0]]
    made = [
        opinion for opinion in ordered if opinion.decision.value is not None and _is(own, opinion.decision.value)[0]
    ]
    return next(iter([*about, *made]), None)


def _settled(prepared: Prepared, found: _Found, files: tuple[str, ...]) -> Remembered:
    """One decision for each row, where opinions agree and are about its label."""
    labels = prepared.labels
    nothing = np.full(labels.size, np.nan)
    memory = Remembered(
        files,
        {},
        labels,
        prepared.side,
        labels.copy(),
        np.zeros(labels.size, dtype=bool),
        labels.copy(),
        nothing,
        unmatched=found.unmatched,
        ambiguous=found.ambiguous,
        gone=found.gone,
        not_looked_at=found.not_looked_at,
    )
    for position in sorted(found.opinions):
        opinions, row = found.opinions[position], _shown_id(prepared, position)
        differing = _in_conflict(opinions)
        fitting = _fitting(opinions, float(labels[position]))
        if differing:
            memory.conflicts.append(Conflict(position, row, differing))
        elif fitting is None:
            memory.changed[position] = row
        else:
            memory.decided[position] = replace(fitting, decision=replace(fitting.decision, row=row))
            _take(memory, position, fitting.decision)
    return memory


def _shown_id(prepared: Prepared, position: int) -> str:
    row = prepared.rows[position]
    return "" if pd.isna(row) else str(row)


def _take(memory: Remembered, position: int, chosen: Decision) -> None:
    """What a decision says to the fit and to the calibration."""
    if chosen.action == "drop":
        memory.fitted[position] = np.nan
    elif chosen.value is not None:
        memory.fitted[position] = chosen.value
        memory.originals[position] = np.nan if chosen.original is None else chosen.original
    if not chosen.reviewed:
        return
    memory.right[position] = not np.isnan(memory.fitted[position])
    original = memory.originals[position]
    if not np.isnan(original):
        kept = chosen.action == "keep" or (chosen.value is not None and _same(float(original), chosen.value))
        memory.verdicts[position] = RIGHT if kept else WRONG
