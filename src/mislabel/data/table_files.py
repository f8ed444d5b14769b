"""Tables in files, read by whatever format belongs to their name, and what is wrong with those that are not there."""

from __future__ import annotations

import difflib
from pathlib import Path

from mislabel.data.formats.contract import ReadOptions, TableFile, fingerprint_of
from mislabel.data.formats.registry import TABLES, suffix_of, table_format_of
from mislabel.data.formats.text import read_text_table
from mislabel.data.number_text import NumberOptions
from mislabel.errors import TableFileError

__all__ = [
    "NumberOptions",
    "ReadOptions",
    "TableFile",
    "bare_name",
    "fingerprint_of",
    "read_any_table",
    "read_table",
    "similar_file",
]


def bare_name(path: Path) -> str:
    """A file's name without the ending that tells its format: ``data.v1`` of ``data.v1.csv.gz``."""
    name = path.name
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return name.rpartition(".")[0] or name


def read_table(
    path: str | Path,
    sheet: str | None = None,
    *,
    numbers: NumberOptions | None = None,
    options: ReadOptions | None = None,
) -> TableFile:
    """Read a table by its extension: csv, tsv, txt, jsonl, ndjson (also .gz), parquet, feather, arrow, xlsx, xls, ods, zip.

    options : everything that is stated about how to read it, instead of ``sheet`` and ``numbers``.
    """
    path = Path(path)
    options = ReadOptions(sheet, numbers or NumberOptions()) if options is None else options
    format = table_format_of(path)
    if not path.exists():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    if path.is_dir():
        raise TableFileError(f"{path} is a folder, not a table.")
    if path.stat().st_size == 0:
        raise TableFileError(f"{path} is empty.")
    format.check_options(path, options)
    table = format.read(path, options)
    if not len(table.frame.columns):
        raise TableFileError(f"{path} has no columns.")
    if not len(table.frame):
        raise TableFileError(f"{path} has a header but no rows.")
    return table


def read_any_table(path: Path) -> TableFile:
    """As :func:`read_table`; files of unknown names are read as text tables."""
    return read_table(path) if suffix_of(path) in TABLES else read_text_table(path, ReadOptions())


def similar_file(path: Path) -> str:
    """Advice for a file that is not there."""
    if not path.parent.is_dir():
        return f" The folder {path.parent} does not exist."
    close = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
