"""Tables in files: which reader and which writer belong to a name, and what is wrong with files that cannot be read."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mislabel.data.formats.contract import ReadOptions, TableFile, TableWriter, fingerprint_of
from mislabel.data.formats.excel import read_other_workbook, read_workbook, workbook_columns
from mislabel.data.formats.excel_copy import write_workbook
from mislabel.data.formats.parquet import parquet_columns, read_parquet_table, write_parquet_table
from mislabel.data.formats.text import read_text_table, text_columns, write_text_table
from mislabel.data.number_text import NumberOptions
from mislabel.errors import TableFileError

__all__ = [
    "FORMATS",
    "NumberOptions",
    "ReadOptions",
    "TableFile",
    "TableFormat",
    "bare_name",
    "fingerprint_of",
    "format_of",
    "read_any_table",
    "read_table",
    "similar_file",
]


@dataclass(frozen=True)
class TableFormat:
    """How files of one kind are read and, if they can be, written.

    kind : what it is called in messages. names : its columns, without reading more than that takes.
    why_not : the reason where cleaned files cannot be written.
    """

    kind: str
    read: Callable[[Path, ReadOptions], TableFile]
    names: Callable[[Path, ReadOptions], list[str]]
    write: TableWriter | None
    why_not: str | None = None


_TEXT = TableFormat("text", read_text_table, text_columns, write_text_table)
#: Formats by the end of a file's name. Text tables may also be packed (.gz).
FORMATS: dict[str, TableFormat] = {
    "csv": _TEXT,
    "tsv": _TEXT,
    "txt": _TEXT,
    "parquet": TableFormat("Parquet", read_parquet_table, parquet_columns, write_parquet_table),
    "xlsx": TableFormat("Excel", read_workbook, workbook_columns, write_workbook),
}
for _name in ("xls", "ods"):
    FORMATS[_name] = TableFormat(
        f".{_name}",
        read_other_workbook,
        lambda path, options: list(read_other_workbook(path, options).frame.columns),
        None,
        f"Decisions cannot be written back into .{_name} files: save the workbook as .xlsx and audit that, before the review.",
    )


def format_of(path: Path) -> TableFormat:
    """The format that belongs to a file's name."""
    name = _extension(path)
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise TableFileError(f"{path}: tables are read from files ending in {known} (csv, tsv and txt also as .gz).")
    return FORMATS[name]


def _extension(path: Path) -> str:
    suffixes = [suffix.lower().lstrip(".") for suffix in path.suffixes]
    if suffixes[-1:] == ["gz"] and len(suffixes) > 1:
        return suffixes[-2] if FORMATS.get(suffixes[-2]) is _TEXT else "gz"
    return suffixes[-1] if suffixes else ""


def bare_name(path: Path) -> str:
    """A file's name without the ending that tells its format: ``data.v1`` of ``data.v1.csv.gz``."""
    name = path.name
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return name.rpartition(".")[0] or name


def read_table(path: str | Path, sheet: str | None = None, *, numbers: NumberOptions | None = None) -> TableFile:
    """Read a table by its extension: csv, tsv, txt (also .gz), parquet, xlsx, xls, ods."""
    path = Path(path)
    format = format_of(path)
    if not path.exists():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    if path.is_dir():
        raise TableFileError(f"{path} is a folder, not a table.")
    if path.stat().st_size == 0:
        raise TableFileError(f"{path} is empty.")
    table = format.read(path, ReadOptions(sheet, numbers or NumberOptions()))
    if not len(table.frame.columns):
        raise TableFileError(f"{path} has no columns.")
    if not len(table.frame):
        raise TableFileError(f"{path} has a header but no rows.")
    return table


def read_any_table(path: Path) -> TableFile:
    """As :func:`read_table`; files of unknown names are read as text tables."""
    return read_table(path) if _extension(path) in FORMATS else read_text_table(path, ReadOptions())


def similar_file(path: Path) -> str:
    """Advice for a file that is not there."""
    if not path.parent.is_dir():
        return f" The folder {path.parent} does not exist."
    close = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
