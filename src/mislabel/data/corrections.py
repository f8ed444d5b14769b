"""Decisions about labels, and the cleaned file that they make of the one they were made about."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from mislabel._common.atomic_files import atomic_write_all
from mislabel._common.number_kinds import is_number, is_whole
from mislabel.data.formats.contract import ReadOptions, fingerprint_of
from mislabel.data.formats.corrected_copy import Decision, Decisions, safe_cell
from mislabel.data.formats.registry import FileFormat, MoleculeFormat, TableFormat, format_of, suffix_of
from mislabel.data.provenance import as_bytes, provenance, provenance_path
from mislabel.errors import DecisionsError, InvalidParameterError, TableFileError

__all__ = [
    "FORMAT",
    "Applied",
    "Decision",
    "Decisions",
    "apply_decisions",
    "decisions_in",
    "read_decisions",
    "safe_cell",
    "why_not_written",
]

FORMAT = "mislabel-decisions/1"
ACTIONS = ("accept", "edit", "keep", "drop")
#: Bytes of a decisions file that are read at most.
_LARGEST = 500_000_000
#: Notes are cut at so many characters, names and times at so many.
_LONGEST_NOTE, _LONGEST_NAME = 10_000, 200
#: Numbers that an entry may carry beside a decision.
EVIDENCE = ("expected", "low", "high", "z", "q_value")


@dataclass(frozen=True)
class Applied:
    """What was written: the cleaned file, with how many changes, and its provenance beside it."""

    target: Path
    corrected: int
    dropped: int
    kept: int
    provenance: Path


def read_decisions(path: str | Path) -> Decisions:
    """Read and check a decisions.json."""
    path = Path(path)
    if not path.exists():
        raise DecisionsError(f"{path}: no such file.")
    if path.is_dir() or path.stat().st_size > _LARGEST:
        raise DecisionsError(
            f"{path} is not a decisions file: it is {'a folder' if path.is_dir() else 'far too large'}."
        )
    return decisions_in(path.read_bytes(), path)


def decisions_in(raw: bytes, path: Path) -> Decisions:
    """The decisions in the bytes of a decisions.json, checked; errors name the ``path``."""
    try:
        content = json.loads(raw.decode("utf-8-sig"))
    except RecursionError:
        raise DecisionsError(f"{path} is not a decisions file: its entries are nested without end.") from None
    except ValueError as error:  # not JSON, not UTF-8, or numbers of thousands of digits
        raise DecisionsError(f"{path} is not a decisions file: {str(error)[:200]}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise DecisionsError(f"{path} is not a decisions file of this version ({FORMAT}): found {str(found)[:80]!r}.")
    try:
        found = _checked(content, path)
    except DecisionsError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DecisionsError(f"{path} is damaged: {type(error).__name__} {str(error)[:200]}.") from None
    seen: set[int] = set()
    for decision in found.decisions:
        if decision.position in seen:
            raise DecisionsError(f"{path} decides twice about the row at position {decision.position}.")
        seen.add(decision.position)
    return found


def _checked(content: dict[str, Any], path: Path) -> Decisions:
    source = content["file"]
    rows = source["rows"]
    if not is_whole(rows) or rows < 0:
        raise DecisionsError(f"{path} is damaged: the number of rows is {str(rows)[:40]!r}.")
    sheet, header, skip, na = (source.get(name) for name in ("sheet", "header", "skip", "na"))
    if not isinstance(na, list | None) or not isinstance(header, str | None):
        raise DecisionsError(f"{path} is damaged: how the file was read is not told in its words.")
    options = ReadOptions.stated(
        sheet=None if sheet is None else _text(sheet, "sheet", path),
        decimal=source.get("decimal"),
        thousands=source.get("thousands"),
        header=header,
        skip=skip,
        na=None if na is None else [_text(text, "na", path) for text in na],
    )
    return Decisions(
        fingerprint=_text(source["sha256"], "sha256", path),
        label=_text(content["label"], "label", path),
        rows=rows,
        decisions=[_decision(item, rows, path) for item in content["decisions"]],
        file=str(source.get("name", "")),
        options=options,
        id=_maybe_text(content, "id", path),
        columns=_columns(content, path),
        reviewer=_short_text(content, "reviewer", path),
        exported=_short_text(content, "exported", path),
        audit=_settings(content, path),
    )


def _maybe_text(item: dict[str, Any], name: str, path: Path) -> str | None:
    """A text that may be missing."""
    value = item.get(name)
    return None if value is None else _text(value, name, path)


def _short_text(item: dict[str, Any], name: str, path: Path) -> str:
    """A name or a time, in one line; empty where it is missing."""
    return _plain_note(_maybe_text(item, name, path) or "")[:_LONGEST_NAME].replace("\n", " ").strip()


def _columns(content: dict[str, Any], path: Path) -> tuple[str, ...] | None:
    names = content.get("content")
    if not (names is None or isinstance(names, list)):
        raise DecisionsError(f"{path} is damaged: content is not a list of columns.")
    return None if names is None else tuple(_text(name, "a column of the content", path) for name in names)


def _settings(content: dict[str, Any], path: Path) -> dict[str, Any]:
    found = content.get("audit")
    if found is None:
        return {}
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise DecisionsError(f"{path} is damaged: audit is not a list of settings.")
    return {str(name)[:_LONGEST_NAME]: value for name, value in found.items()}


def _number(item: dict[str, Any], name: str, path: Path) -> float | None:
    """A number that may be missing."""
    value = item.get(name)
    if value is None or (is_number(value) and _is_finite(value)):
        return None if value is None else float(value)
    raise DecisionsError(f"{path} is damaged: {name} of a row is not a number but {str(value)[:40]!r}.")


def _text(value: Any, name: str, path: Path) -> str:
    if not isinstance(value, str):
        raise DecisionsError(f"{path} is damaged: {name} is not text but {str(value)[:40]!r}.")
    return value


def _decision(item: dict[str, Any], rows: int, path: Path) -> Decision:
    position, action = item["position"], item["action"]
    if not is_whole(position) or not 0 <= position < rows:
        raise DecisionsError(f"{path}: there is no row at position {str(position)[:40]}; the file has {rows} rows.")
    if action not in ACTIONS:
        raise DecisionsError(f"{path}: unknown action {str(action)[:40]!r} for the row at position {position}.")
    value = item.get("value")
    if action not in ("accept", "edit"):
        value = None
    elif not is_number(value) or not _is_finite(value):
        raise DecisionsError(
            f"{path}: the new label of the row at position {position} is not a number: {str(value)[:40]!r}."
        )
    note, reviewed = item.get("note"), item.get("reviewed", False)
    if not isinstance(reviewed, bool):
        raise DecisionsError(
            f"{path}: whether the row at position {position} was reviewed is true or false, not {str(reviewed)[:40]!r}."
        )
    copies, evidence, label = item.get("copies", 1), item.get("evidence") or {}, item.get("label")
    if not is_whole(copies) or copies < 1:
        raise DecisionsError(f"{path} is damaged: the row at position {position} is there {str(copies)[:40]} times.")
    return Decision(
        position,
        action,
        value,
        "" if note is None else _plain_note(str(note)),
        reviewed,
        row=None if item.get("row") is None else str(item["row"]),
        label=float(label) if is_number(label) and _is_finite(label) else None,
        former=_number(item, "former", path),
        content=_maybe_text(item, "content", path),
        copies=copies,
        reviewer=_short_text(item, "reviewer", path),
        decided_at=_short_text(item, "exported", path),
        evidence={name: found for name in EVIDENCE if (found := _number(evidence, name, path)) is not None},
    )


def _plain_note(note: str) -> str:
    """A note without characters that files and terminals cannot hold."""
    kept = "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in note)
    return kept[:_LONGEST_NOTE]


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:  # whole numbers beyond all doubles
        return False


def apply_decisions(
    source: str | Path,
    decisions: str | Path,
    target: str | Path,
    *,
    trail: bool = False,
    overwrite: bool = False,
    reviewer: str | None = None,
    evidence: dict[str, dict[str, float]] | None = None,
) -> Applied:
    """Write a copy of ``source`` with the labels corrected and rows dropped as decided, and its provenance beside it.

    Every other cell stays as it was. ``trail`` adds columns that say what was done to which row. Both files are complete or not
    there at all. ``reviewer`` is who decided, where the decisions do not say so row by row; ``evidence`` has numbers by row id
    for decisions that carry none.
    """
    source, target = Path(source), Path(target)
    chosen = read_decisions(decisions)
    if not source.is_file():
        raise TableFileError(f"{source}: {'that is a folder, not a file' if source.is_dir() else 'no such file'}.")
    format, beside = _checked_format(source, target, trail), provenance_path(target)
    for written in (target, beside):
        _check_place(written, (source, Path(decisions)), overwrite)
    if not target.parent.is_dir():
        raise TableFileError(f"the folder {target.parent} for the cleaned file does not exist.")
    found = fingerprint_of(source)
    if found != chosen.fingerprint:
        raise DecisionsError(
            f"{source} is not the file these decisions were made about{f' ({chosen.file})' if chosen.file else ''}: its "
            f"contents differ (fingerprint {found[:12]}, expected {chosen.fingerprint[:12]}). Apply them to the file that "
            "was audited, or audit this one."
        )
    try:
        with atomic_write_all([beside, target], overwrite=overwrite) as (told, out):
            format.write_copy(source, chosen, out, trail)
            if fingerprint_of(source) != chosen.fingerprint:
                raise DecisionsError(f"{source} changed while it was being copied: nothing was written.")
            files = {
                "source": {"file": source.name, "sha256": found},
                "decisions": {"file": Path(decisions).name, "sha256": fingerprint_of(Path(decisions))},
                "cleaned": {"file": target.name, "sha256": _fingerprint(out)},
            }
            known = _with_labels(chosen, format, source)
            told.write(as_bytes(provenance(known, files, reviewer=reviewer, evidence=evidence)))
    except FileExistsError:
        raise TableFileError(
            f"{target} or {beside.name} appeared meanwhile: choose another name, or allow --overwrite."
        ) from None
    actions = [decision.action for decision in chosen.decisions]
    changed = actions.count("accept") + actions.count("edit")
    return Applied(target, changed, actions.count("drop"), actions.count("keep"), beside)


def _check_place(target: Path, originals: tuple[Path, ...], overwrite: bool) -> None:
    """Refuse to write over an input, a folder, or anything that may not be replaced."""
    if not os.path.lexists(target):
        return
    for original in originals:
        if target.exists() and os.path.samefile(original, target):
            raise TableFileError(f"{target} is the input: choose another name for the cleaned file.")
    if target.is_dir():
        raise TableFileError(f"{target} is a folder: give the cleaned file a name.")
    if not overwrite:
        raise TableFileError(f"{target} exists: choose another name, or allow it to be replaced with --overwrite.")


def _fingerprint(written: BinaryIO) -> str:
    """SHA-256 of what was written so far."""
    written.flush()
    written.seek(0)
    found = hashlib.file_digest(written, "sha256").hexdigest()  # type: ignore[arg-type]
    written.seek(0, os.SEEK_END)
    return found


def _with_labels(chosen: Decisions, format: FileFormat, source: Path) -> Decisions:
    """The decisions with the labels that they are about; those that do not say them themselves are read from the file."""
    if all(decision.label is not None for decision in chosen.decisions):
        return chosen
    column: Any
    if isinstance(format, MoleculeFormat):
        column = format.read(source).properties[chosen.label]
    else:
        assert isinstance(format, TableFormat)
        column = format.read(source, chosen.options).frame[chosen.label]
    labels = pd.to_numeric(pd.Series(column), errors="coerce").to_numpy(dtype=float, na_value=np.nan)

    def with_label(decision: Decision) -> Decision:
        own = float(labels[decision.position])
        return replace(decision, label=own) if decision.label is None and math.isfinite(own) else decision

    return replace(chosen, decisions=[with_label(decision) for decision in chosen.decisions])


def why_not_written(source: Path) -> str | None:
    """The reason why decisions about a file cannot be applied to it; None where they can."""
    try:
        return format_of(source).why_not_written
    except TableFileError:
        return f"Decisions cannot be written back into {source.suffix or 'such'} files."


def _checked_format(source: Path, target: Path, trail: bool) -> FileFormat:
    """The format of the source, if a copy with this name can be written in it."""
    format = format_of(source)
    if format.why_not_written is not None:
        raise TableFileError(f"{source}: {format.why_not_written}")
    if format.kind == "molecules":
        if target.suffix.lower() != source.suffix.lower():
            raise TableFileError(
                f"a cleaned {source.suffix} file is written as {source.suffix}, not {target.suffix!r}."
            )
        if trail:
            raise InvalidParameterError("a trail needs columns: it can be added to tables, not to files of molecules.")
        return format
    packed = source.suffix.lower() == ".gz"
    if suffix_of(target) not in format.suffixes or packed != (target.suffix.lower() == ".gz"):
        kind = f"{format.name} table{' packed as .gz' if packed else ''}"
        raise TableFileError(f"{source.name} is a {kind}; the cleaned file must be one too, not {target.name!r}.")
    if format.packed and (".tsv" in source.name.lower()) != (".tsv" in target.name.lower()):
        raise TableFileError(
            f"{target.name!r}: tabs go with .tsv, other marks do not; give the copy the ending of {source.name!r}."
        )
    return format
