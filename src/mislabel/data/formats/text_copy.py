"""Corrected text tables: the original, character for character, but for the cells that were decided about."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mislabel.data.column_names import check_names, unique_names
from mislabel.data.formats.contract import Dialect
from mislabel.data.formats.corrected_copy import (
    TRAIL_COLUMNS,
    Decision,
    Decisions,
    check_row_count,
    check_trail,
    trail_of,
)
from mislabel.data.formats.text import CutText, Record, cut_text, records_of
from mislabel.data.number_recognition import recognise_notations
from mislabel.data.number_text import Notation
from mislabel.errors import TableFileError


def write_text_table(source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
    """Copy a text table; only the labels that were decided about get new characters."""
    text = cut_text(source.read_bytes(), source, chosen.options)
    names, _ = unique_names(text.names)
    check_names(names, chosen.label)
    check_row_count(source, len(text.rows), chosen)
    if trail:
        check_trail(source, names)
        if text.header is None:
            raise TableFileError(
                f"{source}: a trail needs a header to name its columns, and the file was read without one."
            )
    at = names.index(chosen.label)
    editor = _Editor(text.dialect, len(names), at, source)
    notation = _label_notation(text, names, chosen)
    decided = chosen.by_position
    parts = [text.mark, text.before]
    if text.header is not None:
        parts.append(editor.extended(text.header, TRAIL_COLUMNS if trail else ()))
    for position, record in enumerate(text.rows):
        decision = decided.get(position)
        parts.append(record.gap)
        if decision is not None and decision.action == "drop":
            continue
        trailing = _trail_cells(decision, record, at, text.dialect.encoding) if trail else ()
        if decision is not None and decision.value is not None:
            former = record.cells[at] if at < len(record.cells) else ""
            record = editor.replaced(record, notation.write_like(decision.value, former), notation.number)
        parts.append(editor.extended(record, trailing))
    parts.append(text.after)
    encoded = "".join(parts).encode(text.dialect.encoding.removesuffix("-sig"))
    out.write(gzip.compress(encoded, mtime=0) if source.suffix.lower() == ".gz" else encoded)


def _label_notation(text: CutText, names: Sequence[str], chosen: Decisions) -> Notation:
    """How the label writes its numbers, as the reader sees it: the other columns may tell."""
    columns = {name: chosen.options.without_missing(cells) for name, cells in text.columns(names).items()}
    found, _ = recognise_notations(columns, delimiter=text.dialect.delimiter, options=chosen.options.numbers)
    notation = found[chosen.label]
    return Notation() if notation is None else notation.of_column(columns[chosen.label])


def _trail_cells(decision: Decision | None, record: Record, at: int, encoding: str) -> tuple[str, ...]:
    if decision is None:
        return ("", "", "")
    action, former, note = trail_of(decision, record.cells[at] if at < len(record.cells) else "")
    plain = encoding.removesuffix("-sig")
    return action, former, note.encode(plain, errors="backslashreplace").decode(plain)


@dataclass(frozen=True)
class _Editor:
    """Changes one cell of a record, and nothing else."""

    dialect: Dialect
    width: int
    at: int
    source: Path

    def replaced(self, record: Record, cell: str, number: Any) -> Record:
        """The record with another label."""
        raw, end = _split_end(record.raw)
        missing = self.at + 1 - max(len(record.cells), 1)
        if missing > 0:
            raw += self.dialect.delimiter * missing
        start, stop = self._span(raw)
        old = raw[start:stop]
        quoted = old.startswith('"') or self.dialect.delimiter in cell
        changed = raw[:start] + (f'"{cell}"' if quoted else cell) + raw[stop:] + end
        cells = [*(record.cells or [""]), *[""] * missing]
        cells[self.at] = cell
        # Nothing is written that does not read back as it was meant.
        found = next(reversed(records_of(changed, self.dialect.delimiter, self.source))).cells[: self.width]
        if found != cells or not np.isfinite(number(cell)):
            raise TableFileError(
                f"{self.source}, line {record.line}: the label cannot be replaced without changing other cells of the row."
            )
        return Record(cells, changed, record.line, record.surplus, record.gap)

    def extended(self, record: Record, cells: Sequence[str]) -> str:
        """The characters of the record, with further cells at its end."""
        if not cells:
            return record.raw
        raw, end = _split_end(record.raw)
        missing = self.width - max(len(record.cells), 1)
        if record.surplus:
            if not raw.endswith(self.dialect.delimiter * record.surplus):
                raise TableFileError(
                    f"{self.source}, line {record.line}: cells beyond the header leave no room for a trail."
                )
            raw = raw[: -record.surplus]
        added = io.StringIO(newline="")
        csv.writer(added, delimiter=self.dialect.delimiter, lineterminator="").writerow(cells)
        return raw + self.dialect.delimiter * (missing + 1) + added.getvalue() + end

    def _span(self, raw: str) -> tuple[int, int]:
        """Where the label stands in a record."""
        start = 0
        for _ in range(self.at):
            start = self._end_of_cell(raw, start) + 1
        return start, self._end_of_cell(raw, start)

    def _end_of_cell(self, raw: str, start: int) -> int:
        at = start
        if raw[at : at + 1] == '"':
            at += 1
            while (closing := raw.find('"', at)) >= 0 and raw[closing + 1 : closing + 2] == '"':
                at = closing + 2
            at = closing + 1 if closing >= 0 else len(raw)
        end = raw.find(self.dialect.delimiter, at)
        return len(raw) if end < 0 else end


def _split_end(raw: str) -> tuple[str, str]:
    for end in ("\r\n", "\n", "\r"):
        if raw.endswith(end):
            return raw[: -len(end)], end
    return raw, ""
