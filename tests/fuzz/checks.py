"""What must hold of a result that was accepted: reading keeps the numbers, applying decisions keeps everything else."""

import gzip
import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from mislabel.data.corrections import FORMAT, apply_decisions, read_decisions
from mislabel.data.formats.corrected_copy import TRAIL_COLUMNS
from mislabel.data.formats.json_lines import JsonTable
from mislabel.data.large_tables import LargeTable
from mislabel.data.molecules import MoleculeSet, read_molecules
from mislabel.data.provenance import provenance_path
from mislabel.data.table_files import TableFile, read_table
from mislabel.errors import MislabelError, TableFileError
from tests.fuzz.mutate_containers import unpack
from tests.fuzz.seeds import GRAM_POINTS

_DIGITS = re.compile(r"-?[0-9]{1,15}")


class WrongResultError(AssertionError):
    """A result that was handed out without a word and is not right."""


def _require(truth: bool, message: str) -> None:
    if not truth:
        raise WrongResultError(message)


def check_table(path: Path) -> None:
    """A table keeps its shape, has unique names and only finite numbers, and whole numbers are what they say."""
    table = read_table(path)
    names = list(table.frame.columns)
    _require(
        len(set(names)) == len(names) == len(table.header), "column names are not unique, or not as many as columns"
    )
    if table.cells is not None:
        _require(table.cells.shape == table.frame.shape, "cells and frame have different shapes")
        for at, name in enumerate(names):
            _check_numbers(table.cells.iloc[:200, at].tolist(), table.frame[name].iloc[:200])


def _check_numbers(cells: Sequence[Any], values: pd.Series) -> None:
    if not pd.api.types.is_float_dtype(values.dtype):
        return
    for cell, value in zip(cells, values.tolist(), strict=True):
        _require(not math.isinf(value), "an infinite number was read")
        if _DIGITS.fullmatch(cell):
            _require(value == float(cell), "a whole number was read as another")


def check_large_table(path: Path) -> None:
    """All rows of all columns come in pieces, and no more."""
    table = LargeTable(path)
    rows = 0
    for start, batch in table.batches(table.columns):
        _require(start == rows, "a batch does not begin where the one before it ended")
        _require(list(batch.columns) == list(table.columns), "a batch has other columns")
        rows += len(batch)
    _require(rows == len(table), "the batches have more or fewer rows than the table")
    _require(len(table[table.columns[0]]) == rows, "a column has more or fewer rows than the table")


def check_molecules(path: Path) -> None:
    """Molecules are finite, every property has one value for each, and labels are numbers or refused."""
    found = read_molecules(path)
    _require(len(found) > 0, "no molecules, and no error")
    for molecule in found:
        if hasattr(molecule, "positions"):
            _require(molecule.positions.shape == (len(molecule), 3), "positions and elements differ in number")
            _require(bool(np.isfinite(molecule.positions).all()), "a coordinate is not finite")
            _require(bool((molecule.numbers >= 1).all()), "an atom has no element")
    _require(len(found.describe()) == len(found), "the description has more or fewer rows than there are molecules")
    for name, values in found.properties.items():
        _require(len(values) == len(found), "a property has more or fewer values than there are molecules")
        try:
            labels = found.labels(name)
        except MislabelError:
            continue
        _require(labels.shape == (len(found),), "labels are not one number each")


def check_decisions(path: Path) -> None:
    """What is accepted can be applied: positions in the file, each once, finite values, text where text is due."""
    found = read_decisions(path)
    positions = [decision.position for decision in found.decisions]
    _require(all(type(position) is int for position in positions), "a position is not a whole number")
    _require(all(0 <= position < found.rows for position in positions), "a position outside of the file")
    _require(len(set(positions)) == len(positions), "two decisions about one row")
    sheet = found.options.sheet
    _require(sheet is None or isinstance(sheet, str), "the name of the sheet is not text")
    for decision in found.decisions:
        _require((decision.value is not None) == (decision.action in ("accept", "edit")), "a value without need")
        _require(decision.value is None or math.isfinite(decision.value), "a new label is not finite")


def check_gram(path: Path) -> None:
    """A damaged file of similarities is refused, or ends as the right matrix."""
    from sklearn.gaussian_process.kernels import RBF

    from mislabel.kernels import gram_matrix

    folder = path.parent / "out"
    folder.mkdir()
    for name, content in unpack(path.read_bytes()).items():
        (folder / name).write_bytes(content)
    names = {file.name for file in folder.iterdir()}
    try:
        matrix = gram_matrix(RBF(1.0), GRAM_POINTS, path=folder / "k.gram", n_jobs=1)
        expected = RBF(1.0)(GRAM_POINTS)
        _require(matrix.shape == expected.shape, "a matrix of another shape")
        _require(bool(np.allclose(matrix, expected, rtol=1e-10, atol=1e-12)), "a wrong matrix was returned")
    except MislabelError:
        _require({file.name for file in folder.iterdir()} <= names, "files were left behind")
        raise


# Decisions applied to a damaged file ---------------------------------------------------------------------------------------


def _decide(path: Path, label: str, rows: int) -> tuple[list[dict[str, Any]], bool]:
    """A few decisions, the same for the same file, and whether the trail is wanted."""
    random = Random(hashlib.sha256(path.read_bytes()).hexdigest())
    chosen = random.sample(range(rows), min(rows, random.choice((1, 2, 4, 6))))
    decisions = []
    for position in sorted(chosen):
        action = random.choice(("accept", "edit", "edit", "keep", "drop"))
        value = random.choice((41.5, -3, 0.25, 1250.5, 7)) if action in ("accept", "edit") else None
        decisions.append({"position": position, "action": action, "value": value, "note": "=x" if position % 2 else ""})
    return decisions, random.random() < 0.3


def _apply(path: Path, label: str, rows: int) -> tuple[Path, list[int], dict[int, float]]:
    """Apply some decisions; returns the cleaned file, the rows that stay, and the new values by row."""
    decisions, trail = _decide(path, label, rows)
    content = {
        "format": FORMAT,
        "file": {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "rows": rows},
        "label": label,
        "decisions": decisions,
    }
    out = path.parent / "out"
    out.mkdir()
    (out / "decisions.json").write_text(json.dumps(content))
    target = out / path.name
    try:
        apply_decisions(path, out / "decisions.json", target, trail=trail)
    except MislabelError:
        _require([file.name for file in out.iterdir()] == ["decisions.json"], "a refused file was left behind")
        raise
    beside = provenance_path(target)
    written = {file.name for file in out.iterdir()}
    _require(written == {"decisions.json", target.name, beside.name}, "other files were left behind")
    beside.unlink()
    dropped = {item["position"] for item in decisions if item["action"] == "drop"}
    values = {item["position"]: float(item["value"]) for item in decisions if item["value"] is not None}
    return target, [row for row in range(rows) if row not in dropped], values


def check_applied_table(path: Path) -> None:
    """Undecided rows are the same cell by cell, decided ones hold the new value."""
    before = read_table(path)
    label = _label_of(before)
    if label is None:
        return
    target, kept, values = _apply(path, label, len(before))
    if not kept:
        return
    if not before.is_plain and before.dialect is not None:
        # With other numbers and rows, totals and headers may no longer be told from rows.
        _check_applied_text(path, target, before, kept, values)
        return
    after = _again(lambda: read_table(target))
    if not after.is_plain and before.dialect is not None:
        _check_applied_text(path, target, before, kept, values)
        return
    width = len(before.header)
    if before.format == "json lines":
        _check_applied_lines(path, target, before, kept, values, label)
        return
    if before.dialect != after.dialect or width == 1:
        # Without the row that told the encoding or the delimiter the same characters are another table; so are blank lines.
        return
    _require(after.header[:width] == before.header, "the header is not what it was")
    at = list(before.frame.columns).index(label)
    old, new = _stored_cells(before), _stored_cells(after)
    while kept and len(kept) > len(after) and before.dialect is not None and not any(old[kept[-1]]):
        kept.pop()  # empty rows at the end of a text table are no rows
    _require(len(after) == len(kept), "there are more or fewer rows than were kept")
    for position, row in enumerate(kept):
        for column in range(width):
            if column == at and row in values:
                continue
            found = _as_stored(before, old[row, column]), _as_stored(after, new[position, column])
            _require(_same(*found), "a cell that was not decided about changed")
        if row in values:
            found = after.frame.iloc[position, at]
            if before.dialect is not None:
                found = before.notation(label).number(after.written(after.frame.columns[at])[position])
            _require(_holds(found, values[row]), "a decided label does not hold its value")


def _check_applied_text(path: Path, target: Path, before: TableFile, kept: list[int], values: dict[int, float]) -> None:
    """Every line of a text but those that were decided about is as it was, or goes on with a trail."""
    assert before.dialect is not None
    old, new = (_content(file, before).decode(before.dialect.encoding) for file in (path, target))
    assert before.lines is not None
    starts = [line - 1 for line in before.lines]
    if any(later - earlier < 1 for earlier, later in pairwise(starts)) or '"' in old:
        return  # rows of several lines
    lines, found = (io.StringIO(text, newline="").readlines() for text in (old, new))
    dropped, decided = set(range(len(starts))) - set(kept), {starts[row] for row in values}
    left = [(k, line) for k, line in enumerate(lines) if k not in {starts[row] for row in dropped}]
    _require(len(found) == len(left), "there are more or fewer lines than were kept")
    for (k, was), line in zip(left, found, strict=True):
        _require(k in decided or line.startswith(was.rstrip("\r\n")), "a line that was not decided about changed")


def _content(path: Path, table: TableFile) -> bytes:
    """The bytes of a text, also where it is packed."""
    raw = path.read_bytes()
    if table.reading.member is not None:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            raw = archive.read(table.reading.member)
    return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw


def _check_applied_lines(
    path: Path, target: Path, before: TableFile, kept: list[int], values: dict[int, float], label: str
) -> None:
    """Objects of undecided rows keep all names and values; of decided ones the label alone differs, and a trail is added."""
    old, new = (JsonTable.of(_content(file, before), Path("t")).objects for file in (path, target))
    _require(len(new) == len(kept), "there are more or fewer objects than were kept")
    name = before.header[list(before.frame.columns).index(label)]
    notation = before.notation(label)
    for row, found in zip(kept, new, strict=True):
        there = {key: value for key, value in found.items() if key not in TRAIL_COLUMNS}
        was = old[row]
        if row in values:
            value = there.pop(name)
            _require(_holds(notation.number(value) if isinstance(value, str) else value, values[row]), "a wrong label")
            was = {key: value for key, value in was.items() if key != name}
        _require(repr(there) == repr(was), "a value that was not decided about changed")


def _stored_cells(table: TableFile) -> np.ndarray:
    """The cells as they are in the file."""
    cells = np.empty(table.frame.shape, dtype=object)
    if table.format == "parquet":
        from pyarrow import parquet

        try:
            stored = parquet.read_table(table.path, columns=table.header)
            columns = [stored.column(name).to_pylist() for name in table.header]
        except Exception as error:  # values that Python has no type for
            raise TableFileError(str(error)) from None
    else:
        columns = [table.written(name) for name in table.frame.columns]
    for at, column in enumerate(columns):
        for row, cell in enumerate(column):
            cells[row, at] = cell
    return cells


def _again(read: Any) -> Any:
    try:
        return read()
    except MislabelError as error:
        raise WrongResultError("the cleaned file cannot be read again") from error


def _label_of(table: TableFile) -> str | None:
    kinds = zip(table.frame.columns, table.frame.dtypes, strict=True)
    numeric = [name for name, kind in kinds if pd.api.types.is_numeric_dtype(kind)]
    return "y" if "y" in numeric else str(numeric[-1]) if numeric else None


def _as_stored(table: TableFile, cell: Any) -> Any:
    """A cell's bytes: without the only characters that told the encoding, the same bytes are other letters."""
    if table.dialect is None or not isinstance(cell, str):
        return cell
    return cell.encode(table.dialect.encoding.removesuffix("-sig"), errors="surrogatepass")


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, dict):
        return isinstance(new, dict) and old.keys() == new.keys() and all(_same(old[key], new[key]) for key in old)
    if isinstance(old, np.ndarray | list | tuple):
        return type(old) is type(new) and len(old) == len(new) and all(map(_same, old, new))
    if _is_gap(old) or _is_gap(new):
        return _is_gap(old) and _is_gap(new)
    return bool(old == new)


def _is_gap(cell: Any) -> bool:
    return cell is None or cell is pd.NaT or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell))


def _holds(found: Any, value: float) -> bool:
    try:
        # Short floats hold the nearest number they have.
        short = (float(kind(value)) for kind in (np.float16, np.float32))
        return math.isclose(float(found), value, rel_tol=1e-12) or float(found) in short
    except (TypeError, ValueError):
        return False


def check_applied_molecules(path: Path) -> None:
    """Molecules that were not decided about keep atoms, positions and properties; decided ones have the new value."""
    before = read_molecules(path)
    label = _property_of(before)
    if label is None:
        return
    target, kept, values = _apply(path, label, len(before))
    if not kept:
        return
    after = _again(lambda: read_molecules(target))
    _require(len(after) == len(kept), "there are more or fewer molecules than were kept")
    for position, row in enumerate(kept):
        old, new = before[row], after[position]
        _require(np.array_equal(old.numbers, new.numbers), "elements changed")
        _require(np.array_equal(old.positions, new.positions), "positions changed")
        for name, column in before.properties.items():
            if name == label and row in values:
                _require(
                    _holds(after.properties[name][position], values[row]), "a decided label does not hold its value"
                )
            else:
                found = after.properties[name][position] if name in after.properties else None
                _require(_same(column[row], found), "a property that was not decided about changed")


def _property_of(found: MoleculeSet) -> str | None:
    for name in ("energy", *found.properties):
        try:
            found.labels(name)
        except MislabelError:
            continue
        return name
    return None
