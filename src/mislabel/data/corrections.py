"""Decisions about labels, and the cleaned file that they make of the one they were made about."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel.data.large_tables import LargeTable
from mislabel.data.table_files import TableFile, fingerprint_of, read_table, table_reader
from mislabel.data.tables import check_column
from mislabel.errors import DecisionsError, MissingDependencyError, TableFileError

FORMAT = "mislabel-decisions/1"
ACTIONS = ("accept", "edit", "keep", "drop")
TRAIL_COLUMNS = ("mislabel_action", "mislabel_original", "mislabel_note")
#: Rows of a Parquet file in memory at a time.
_ROWS_COPIED = 65_536
#: Cells that begin so are taken for formulas by spreadsheets.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Decision:
    """What to do with the label of one row; ``position`` counts the rows of the file from zero."""

    position: int
    action: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Decisions:
    """All decisions about one column of one file."""

    fingerprint: str
    label: str
    rows: int
    decisions: list[Decision]
    file: str = ""
    sheet: str | None = None


@dataclass(frozen=True)
class Applied:
    """What was written."""

    target: Path
    corrected: int
    dropped: int
    kept: int


def safe_cell(value: Any) -> Any:
    """Text that a spreadsheet shows instead of computing; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return "'" + value
    return value


def read_decisions(path: str | Path) -> Decisions:
    """Read and check a decisions.json."""
    path = Path(path)
    if not path.exists():
        raise DecisionsError(f"{path}: no such file.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DecisionsError(f"{path} is not a decisions file: {error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise DecisionsError(f"{path} is not a decisions file of this version ({FORMAT}): found {found!r}.")
    try:
        source = content["file"]
        rows = int(source["rows"])
        decisions = [_decision(item, rows, path) for item in content["decisions"]]
        found = Decisions(
            str(source["sha256"]),
            str(content["label"]),
            rows,
            decisions,
            str(source.get("name", "")),
            source.get("sheet"),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DecisionsError):
            raise
        raise DecisionsError(f"{path} is damaged: {type(error).__name__} {error}.") from None
    positions = [decision.position for decision in decisions]
    if len(set(positions)) != len(positions):
        twice = next(position for position in positions if positions.count(position) > 1)
        raise DecisionsError(f"{path} decides twice about the row at position {twice}.")
    return found


def _decision(item: dict[str, Any], rows: int, path: Path) -> Decision:
    position, action = item["position"], item["action"]
    if not isinstance(position, int) or not 0 <= position < rows:
        raise DecisionsError(f"{path}: there is no row at position {position!r}; the file has {rows} rows.")
    if action not in ACTIONS:
        raise DecisionsError(f"{path}: unknown action {action!r} for the row at position {position}.")
    value = item.get("value")
    if action in ("accept", "edit"):
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise DecisionsError(f"{path}: the new label of the row at position {position} is not a number: {value!r}.")
        value = float(value)
    else:
        value = None
    return Decision(position, action, value, str(item.get("note") or ""))


def apply_decisions(
    source: str | Path, decisions: str | Path, target: str | Path, *, trail: bool = False, overwrite: bool = False
) -> Applied:
    """Write a copy of ``source`` with the labels corrected and rows dropped as decided.

    Every other cell stays as it was. ``trail`` adds columns that say what was done to which row. The target is complete
    or not there at all.
    """
    source, target = Path(source), Path(target)
    chosen = read_decisions(decisions)
    if not source.exists():
        raise TableFileError(f"{source}: no such file.")
    writer = _writer(source, target)
    if target.exists():
        if os.path.samefile(source, target) or os.path.samefile(decisions, target):
            raise TableFileError(f"{target} is the input: choose another name for the cleaned file.")
        if not overwrite:
            raise TableFileError(f"{target} exists: choose another name, or allow it to be replaced with --overwrite.")
    if target.parent and not target.parent.is_dir():
        raise TableFileError(f"the folder {target.parent} for the cleaned file does not exist.")
    found = fingerprint_of(source)
    if found != chosen.fingerprint:
        raise DecisionsError(
            f"{source} is not the file these decisions were made about{f' ({chosen.file})' if chosen.file else ''}: its "
            f"contents differ (fingerprint {found[:12]}, expected {chosen.fingerprint[:12]}). Apply them to the file that "
            "was audited, or audit this one."
        )
    partial = target.with_name(target.name + ".part")
    try:
        writer(source, chosen, partial, trail)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    actions = [decision.action for decision in chosen.decisions]
    changed = actions.count("accept") + actions.count("edit")
    return Applied(target, changed, actions.count("drop"), actions.count("keep"))


def _writer(source: Path, target: Path) -> Callable[[Path, Decisions, Path, bool], None]:
    if source.suffix.lower() in MOLECULE_WRITERS:
        if target.suffix.lower() != source.suffix.lower():
            raise TableFileError(
                f"a cleaned {source.suffix} file is written as {source.suffix}, not {target.suffix!r}."
            )
        return MOLECULE_WRITERS[source.suffix.lower()]
    table_reader(source)
    kind, wanted = _kind(source), _kind(target)
    if kind != wanted:
        raise TableFileError(f"{source.name} is a {kind} table; the cleaned file must be one too, not {target.name!r}.")
    return TABLE_WRITERS[kind]


def _kind(path: Path) -> str:
    suffixes = {suffix.lower() for suffix in path.suffixes[-2:]}
    if suffixes & {".parquet"}:
        return "Parquet"
    if suffixes & {".xlsx"}:
        return "Excel"
    if suffixes & {".csv", ".tsv", ".txt"}:
        return "text"
    raise TableFileError(f"{path}: cleaned tables are written as csv, tsv, txt, parquet or xlsx.")


def _checked(source: Path, chosen: Decisions) -> TableFile:
    table = read_table(source, chosen.sheet)
    _check_table(source, table.frame, chosen)
    return table


def _check_table(source: Path, table: pd.DataFrame | LargeTable, chosen: Decisions) -> None:
    check_column(table, chosen.label)
    if len(table) != chosen.rows:
        raise DecisionsError(f"{source} has {len(table)} rows, the decisions were made about {chosen.rows}.")


def _write_text(source: Path, chosen: Decisions, partial: Path, trail: bool) -> None:
    table = _checked(source, chosen)
    assert table.dialect is not None
    dialect = table.dialect
    at = list(table.cells.columns).index(chosen.label)
    by_position = {decision.position: decision for decision in chosen.decisions}
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=dialect.delimiter, lineterminator=dialect.line_end)
    writer.writerow([*table.header, *(TRAIL_COLUMNS if trail else ())])
    for position, cells in enumerate(table.cells.itertuples(index=False, name=None)):
        decision = by_position.get(position)
        if decision is not None and decision.action == "drop":
            continue
        row = list(cells)
        if decision is not None and decision.value is not None:
            row[at] = dialect.numbers.write(decision.value)
        if trail:
            row += ["", "", ""] if decision is None else [decision.action, cells[at], safe_cell(decision.note)]
        writer.writerow(row)
    encoded = text.getvalue().encode(dialect.encoding, errors="strict" if not trail else "replace")
    if source.suffix.lower() == ".gz":
        encoded = gzip.compress(encoded, mtime=0)
    partial.write_bytes(encoded)


def _write_parquet(source: Path, chosen: Decisions, partial: Path, trail: bool) -> None:
    """Piece by piece: the table need not fit into memory."""
    table = LargeTable(source)
    _check_table(source, table, chosen)
    import pyarrow as pa
    from pyarrow import parquet

    by_position = {decision.position: decision for decision in chosen.decisions}
    with parquet.ParquetFile(source) as stored:
        schema = stored.schema_arrow
        at = schema.get_field_index(table.stored_name(chosen.label))
        kind = _label_type(schema.field(at).type, chosen.decisions)
        schema = schema.set(at, schema.field(at).with_type(kind))
        for name in TRAIL_COLUMNS if trail else ():
            schema = schema.append(pa.field(name, pa.string()))
        with parquet.ParquetWriter(partial, schema) as writer:
            first = 0
            for batch in stored.iter_batches(_ROWS_COPIED):
                decided = [by_position.get(first + k) for k in range(batch.num_rows)]
                original = batch.column(at)
                columns = [*batch.columns]
                columns[at] = _decided_labels(original, decided, kind)
                if trail:
                    columns += [pa.array(values, pa.string()) for values in _trail_cells(original, decided)]
                kept = pa.array([decision is None or decision.action != "drop" for decision in decided])
                writer.write_batch(pa.record_batch(columns, schema=schema).filter(kept))
                first += batch.num_rows


def _label_type(stored: Any, decisions: Sequence[Decision]) -> Any:
    """The type of the corrected column: as it was, unless it cannot hold the new values."""
    import pyarrow as pa

    new = [decision.value for decision in decisions if decision.value is not None]
    if pa.types.is_floating(stored) or pa.types.is_string(stored) or pa.types.is_large_string(stored) or not new:
        return stored
    whole = all(value == round(value) for value in new)
    return stored if pa.types.is_integer(stored) and whole else pa.float64()


def _decided_labels(original: Any, decided: Sequence[Decision | None], kind: Any) -> Any:
    import pyarrow as pa

    changed = {k: d.value for k, d in enumerate(decided) if d is not None and d.value is not None}
    if not changed:
        return original.cast(kind)
    values = original.cast(kind).to_pylist()
    convert = (
        int if pa.types.is_integer(kind) else float if pa.types.is_floating(kind) else lambda value: repr(float(value))
    )
    for k, value in changed.items():
        values[k] = convert(value)
    return pa.array(values, kind)


def _trail_cells(original: Any, decided: Sequence[Decision | None]) -> list[list[str | None]]:
    """Action, former label and note of every row; nothing for rows that were not decided about."""
    rows = [
        (None, None, None) if d is None else (d.action, str(original[k].as_py()), d.note) for k, d in enumerate(decided)
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def _write_excel(source: Path, chosen: Decisions, partial: Path, trail: bool) -> None:
    table = _checked(source, chosen)
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingDependencyError("Excel files need openpyxl: pip install 'mislabel[tables]'.") from None
    book = load_workbook(source)
    sheet = book[chosen.sheet] if chosen.sheet is not None else book.worksheets[0]
    at = list(table.frame.columns).index(chosen.label) + 1
    if trail:
        for offset, name in enumerate(TRAIL_COLUMNS, 1):
            sheet.cell(row=1, column=len(table.header) + offset, value=name)
    for decision in chosen.decisions:
        cell = sheet.cell(row=decision.position + 2, column=at)
        if trail:
            entries = (decision.action, str(table.cells.iloc[decision.position, at - 1]), safe_cell(decision.note))
            for offset, entry in enumerate(entries, 1):
                sheet.cell(row=cell.row, column=len(table.header) + offset, value=entry)
        if decision.value is not None:
            cell.value = decision.value
    for position in sorted((d.position for d in chosen.decisions if d.action == "drop"), reverse=True):
        sheet.delete_rows(position + 2)
    with partial.open("wb") as out:
        book.save(out)


def _write_xyz(source: Path, chosen: Decisions, partial: Path, trail: bool) -> None:
    from mislabel.data.molecules import write_xyz

    with partial.open("wb") as out:
        write_xyz(source, chosen.label, *_values_and_drops(chosen), out)


def _write_sdf(source: Path, chosen: Decisions, partial: Path, trail: bool) -> None:
    from mislabel.data.molecules import write_sdf

    with partial.open("wb") as out:
        write_sdf(source, chosen.label, *_values_and_drops(chosen), out)


def _values_and_drops(chosen: Decisions) -> tuple[dict[int, float], set[int]]:
    values = {decision.position: decision.value for decision in chosen.decisions if decision.value is not None}
    return values, {decision.position for decision in chosen.decisions if decision.action == "drop"}


TABLE_WRITERS = {"text": _write_text, "Parquet": _write_parquet, "Excel": _write_excel}
MOLECULE_WRITERS = {".xyz": _write_xyz, ".extxyz": _write_xyz, ".sdf": _write_sdf, ".mol": _write_sdf}
