"""JSON lines: one object per line, its names being columns; the reader and the writer of corrected copies."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from mislabel._common.short_numbers import shortest
from mislabel.data.column_names import check_names, check_width, unique_names
from mislabel.data.formats.cells import as_written
from mislabel.data.formats.contract import ReadOptions, TableFile
from mislabel.data.formats.corrected_copy import (
    TRAIL_COLUMNS,
    Decisions,
    check_row_count,
    check_trail,
    trail_of,
)
from mislabel.data.formats.text import unpacked
from mislabel.data.formats.typed_values import text_notations, texts_of, typed_values
from mislabel.errors import TableFileError

_MARK = "\ufeff"
_MOST_LINES = 10_000_000
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, eq=False)
class JsonTable:
    """The lines of a file, and the objects in those that hold one.

    lines : with their ends, as they stand in the file. places : which of them hold an object. names : of all columns.
    """

    mark: str
    lines: list[str]
    places: list[int]
    objects: list[dict[str, Any]]
    names: list[str]

    @classmethod
    def of(cls, raw: bytes, path: Path) -> JsonTable:
        """Cut the bytes of a file into lines and objects."""
        try:
            text = unpacked(raw, path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise TableFileError(f"{path}: JSON is UTF-8, and this is not ({error}).") from None
        mark = _MARK if text.startswith(_MARK) else ""
        # Only these end a line of JSON; others may stand inside of text.
        lines = re.findall(r"[^\n]*\n|[^\n]+", text[len(mark) :])
        if len(lines) > _MOST_LINES:
            raise TableFileError(f"{path} has more than {_MOST_LINES:,} lines: convert it to Parquet first.")
        places = [k for k, line in enumerate(lines) if line.strip()]
        objects = [_object(lines[k], f"{path}, line {k + 1}") for k in places]
        if not objects:
            raise TableFileError(f"{path} holds no objects, only blank lines.")
        names = list(dict.fromkeys(name for found in objects for name in found))
        check_width(path, len(names))
        return cls(mark, lines, places, objects, names)

    def filled(self, name: str, options: ReadOptions) -> list[Any]:
        """The values of one column, None for those that stand for none."""
        values = [_plain(found.get(name)) for found in self.objects]
        if not options.na:
            return values
        texts = options.without_missing([as_written(value) for value in values])
        return [value if text else None for value, text in zip(values, texts, strict=True)]

    def written(self, name: str) -> list[str]:
        """The same as text."""
        return [as_written(_plain(found.get(name))) for found in self.objects]


def read_json_lines(path: Path, options: ReadOptions) -> TableFile:
    """Read a file with one JSON object per line."""
    raw = path.read_bytes()
    found = JsonTable.of(raw, path)
    names, notes = unique_names(found.names)
    stored = dict(zip(names, found.names, strict=True))
    columns = {name: found.filled(stored[name], options) for name in names}
    notations, doubts = text_notations(columns, options.numbers)
    typed: dict[str, pd.Series] = {}
    for name, column in columns.items():
        typed[name], note = typed_values(column, notations.get(name))
        notes += [f"column {name!r}: {note}"] if note else []
    lines = [place + 1 for place in found.places]
    return TableFile(
        path,
        "json lines",
        frame=pd.DataFrame(typed),
        header=found.names,
        written=lambda name: found.written(stored[name]),
        fingerprint=hashlib.sha256(raw).hexdigest(),
        options=options,
        lines=lines,
        rows=lines,
        notations=notations,
        notes=notes + doubts,
    )


def _plain(value: Any) -> Any:
    """A value as one of a table: what is nested stands as its JSON."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return None if isinstance(value, float) and value != value else value


def _object(line: str, where: str) -> dict[str, Any]:
    def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise TableFileError(f"{where}: {twice[:40]!r} stands there twice: remove one.")
        return found

    try:
        found = json.loads(line, object_pairs_hook=of_pairs)
    except RecursionError:
        raise TableFileError(f"{where} cannot be read as JSON: it is nested without end.") from None
    except ValueError as error:
        if isinstance(error, TableFileError):
            raise
        raise TableFileError(
            f'{where} cannot be read as JSON: {str(error)[:200]}. Every line has to be an object, as {{"x": 1, "y": 2.5}} is.'
        ) from None
    if not isinstance(found, dict):
        raise TableFileError(f'{where}: expected an object ({{"x": 1, ...}}), found {line.strip()[:40]!r}.')
    return found


def write_json_lines(source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
    """Copy the lines; only values that were decided about get new characters."""
    found = JsonTable.of(source.read_bytes(), source)
    names, _ = unique_names(found.names)
    check_names(names, chosen.label)
    check_row_count(source, len(found.objects), chosen)
    if trail:
        check_trail(source, names)
    label = found.names[names.index(chosen.label)]
    write = _value_writer(found, names, chosen)
    decided = chosen.by_position
    parts = [found.mark]
    position = {place: k for k, place in enumerate(found.places)}
    for place, line in enumerate(found.lines):
        decision = decided.get(position.get(place, -1))
        if decision is None:
            parts.append(line)
            continue
        if decision.action == "drop":
            continue
        former = found.objects[position[place]]
        if decision.value is not None:
            line = _replaced(
                line, label, write(decision.value, former.get(label)), former, f"{source}, line {place + 1}"
            )
        if trail:
            told = trail_of(decision, as_written(_plain(former.get(label))))
            for name, text in zip(TRAIL_COLUMNS, told, strict=True):
                line = _inserted(line, name, json.dumps(text))
        parts.append(line)
    encoded = "".join(parts).encode("utf-8")
    out.write(gzip.compress(encoded, mtime=0) if source.suffix.lower() == ".gz" else encoded)


def _value_writer(found: JsonTable, names: list[str], chosen: Decisions) -> Callable[[float, Any], str]:
    """From a new label to JSON: a number, or text where the former label was one."""
    columns = {name: found.filled(stored, chosen.options) for name, stored in zip(names, found.names, strict=True)}
    notation = text_notations(columns, chosen.options.numbers)[0].get(chosen.label)
    notation = None if notation is None else notation.of_column(texts_of(columns[chosen.label]))

    def write(value: float, former: Any) -> str:
        if notation is not None and isinstance(former, str) and notation.plain(former):
            return json.dumps(notation.write_like(value, former), ensure_ascii=False)
        return shortest(value)

    return write


def _spans(line: str) -> dict[str, tuple[int, int]]:
    """Where the values of an object stand in its line, by name."""
    found: dict[str, tuple[int, int]] = {}
    at = line.index("{") + 1
    while True:
        at = _past_blanks(line, at)
        if line[at] == "}":
            return found
        if line[at] == ",":
            at = _past_blanks(line, at + 1)
        name, at = _DECODER.raw_decode(line, at)
        start = _past_blanks(line, _past_blanks(line, at) + 1)
        _, at = _DECODER.raw_decode(line, start)
        found[name] = (start, at)


def _past_blanks(line: str, at: int) -> int:
    blank = _BLANK.match(line, at)
    return at if blank is None else blank.end()


def _replaced(line: str, name: str, value: str, former: dict[str, Any], where: str) -> str:
    """The line with another value; nothing is written that does not read back as it was meant."""
    spans = _spans(line)
    if name in spans:
        start, end = spans[name]
        changed = line[:start] + value + line[end:]
    else:
        changed = _inserted(line, name, value)
    if repr(_object(changed, where) | {name: None}) != repr(former | {name: None}):
        raise TableFileError(f"{where}: the label cannot be replaced without changing other values.")
    return changed


def _inserted(line: str, name: str, value: str) -> str:
    """The line with one more value at the end of its object."""
    spans = _spans(line)
    at = max((end for _, end in spans.values()), default=line.index("{") + 1)
    return f"{line[:at]}{', ' if spans else ''}{json.dumps(name, ensure_ascii=False)}: {value}{line[at:]}"
