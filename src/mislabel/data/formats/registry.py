"""Every file format, one entry each: its reader and its writer side by side, for tables and molecules alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from mislabel.data.formats.contract import ReadOptions, TableFile
from mislabel.data.formats.corrected_copy import Decisions, TableWriter, check_row_count
from mislabel.data.formats.excel import read_other_workbook, read_workbook
from mislabel.data.formats.excel_copy import write_workbook
from mislabel.data.formats.feather import read_feather_table, write_feather_table
from mislabel.data.formats.json_lines import read_json_lines, write_json_lines
from mislabel.data.formats.molecule_set import MoleculeSet
from mislabel.data.formats.parquet import read_parquet_table
from mislabel.data.formats.parquet_copy import write_parquet_table
from mislabel.data.formats.sdf import read_sdf, write_sdf
from mislabel.data.formats.text import read_text_table
from mislabel.data.formats.text_copy import write_text_table
from mislabel.data.formats.xyz import read_xyz, write_xyz
from mislabel.data.formats.zipped import read_zipped_table, write_zipped_table
from mislabel.errors import InvalidParameterError, TableFileError

MoleculeReader = Callable[[Path], MoleculeSet]
#: Takes source, label, new values and dropped molecules by number, and output; returns how many molecules the source has.
MoleculeWriter = Callable[[Path, str, dict[int, float], set[int], BinaryIO], int]


@dataclass(frozen=True)
class FileFormat:
    """What tables and molecules have in common.

    name : what it is called in messages. suffixes : the ends of its files' names, without the point.
    why_not_written : the reason where corrected copies cannot be written. package : what must be installed to read it.
    packed : whether its files may also be packed (.gz).
    """

    kind: ClassVar[str]
    name: str
    suffixes: tuple[str, ...]
    why_not_written: str | None = None
    package: str | None = None
    packed: bool = False

    def write_copy(self, source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
        """Write a copy of ``source`` with decisions carried out."""
        raise TableFileError(f"{source}: {self.why_not_written}")


@dataclass(frozen=True, kw_only=True)
class TableFormat(FileFormat):
    """A format of tables.

    has_layout : whether its files hold rows of cells, among which the header has to be found.
    """

    kind: ClassVar[str] = "table"
    read: Callable[[Path, ReadOptions], TableFile]
    write: TableWriter | None = None
    has_layout: bool = False

    def check_options(self, path: Path, options: ReadOptions) -> None:
        """Refuse what means nothing for this format."""
        if options.of_layout and not self.has_layout:
            raise InvalidParameterError(
                f"{', '.join(options.of_layout)}: {path.name} names its columns; leave it out. That is for text tables and "
                "workbooks."
            )

    def write_copy(self, source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
        """Write a copy of ``source`` with decisions carried out; every cell that was not decided about stays as it was."""
        if self.write is None:
            return super().write_copy(source, chosen, out, trail)
        return self.write(source, chosen, out, trail)


@dataclass(frozen=True, kw_only=True)
class MoleculeFormat(FileFormat):
    """A format of molecules with coordinates and properties."""

    kind: ClassVar[str] = "molecules"
    read: MoleculeReader
    write: MoleculeWriter | None = None

    def write_copy(self, source: Path, chosen: Decisions, out: BinaryIO, trail: bool) -> None:
        """Write a copy of ``source`` with decisions carried out; every other byte stays as it was."""
        if self.write is None:
            return super().write_copy(source, chosen, out, trail)
        count = self.write(source, chosen.label, chosen.values, chosen.dropped, out)
        return check_row_count(source, count, chosen)


def _save_as_xlsx(suffix: str) -> str:
    return f"Decisions cannot be written back into .{suffix} files: save the workbook as .xlsx and audit that, before the review."


#: All formats. A column of SMILES may stand in any table: see :mod:`mislabel.data.smiles`.
FORMATS: tuple[TableFormat | MoleculeFormat, ...] = (
    TableFormat(
        "text", ("csv", "tsv", "txt"), read=read_text_table, write=write_text_table, packed=True, has_layout=True
    ),
    TableFormat("JSON lines", ("jsonl", "ndjson"), read=read_json_lines, write=write_json_lines, packed=True),
    TableFormat("Parquet", ("parquet",), read=read_parquet_table, write=write_parquet_table, package="pyarrow"),
    TableFormat("Feather", ("feather", "arrow"), read=read_feather_table, write=write_feather_table, package="pyarrow"),
    TableFormat("Excel", ("xlsx",), read=read_workbook, write=write_workbook, package="openpyxl", has_layout=True),
    TableFormat(
        ".xls",
        ("xls",),
        read=read_other_workbook,
        why_not_written=_save_as_xlsx("xls"),
        package="xlrd",
        has_layout=True,
    ),
    TableFormat(
        ".ods",
        ("ods",),
        read=read_other_workbook,
        why_not_written=_save_as_xlsx("ods"),
        package="odfpy",
        has_layout=True,
    ),
    TableFormat(
        "zip",
        ("zip",),
        read=lambda path, options: read_zipped_table(path, options, table_format_of),
        write=lambda source, chosen, out, trail: write_zipped_table(source, chosen, out, trail, table_format_of),
        has_layout=True,
    ),
    MoleculeFormat("xyz", ("xyz", "extxyz"), read=read_xyz, write=write_xyz),
    MoleculeFormat("SD file", ("sdf", "mol"), read=read_sdf, write=write_sdf, package="rdkit"),
)
TABLES = {suffix: format for format in FORMATS if isinstance(format, TableFormat) for suffix in format.suffixes}
MOLECULES = {suffix: format for format in FORMATS if isinstance(format, MoleculeFormat) for suffix in format.suffixes}
#: Ends of the names of files of three-dimensional molecules, with the point; SMILES stand in tables.
MOLECULE_SUFFIXES = tuple(f".{suffix}" for suffix in MOLECULES)


def suffix_of(path: Path) -> str:
    """The end of a file's name that tells its format: ``csv`` of ``data.csv.gz``, ``gz`` where nothing packed is known."""
    suffixes = [suffix.lower().lstrip(".") for suffix in path.suffixes]
    if suffixes[-1:] == ["gz"] and len(suffixes) > 1:
        inner = TABLES.get(suffixes[-2])
        return suffixes[-2] if inner is not None and inner.packed else "gz"
    return suffixes[-1] if suffixes else ""


def format_of(path: Path) -> TableFormat | MoleculeFormat:
    """The format that belongs to a file's name."""
    suffix = suffix_of(path)
    return MOLECULES[suffix] if suffix in MOLECULES else table_format_of(path)


def table_format_of(path: Path) -> TableFormat:
    """The format of tables that belongs to a file's name."""
    suffix = suffix_of(path)
    if suffix not in TABLES:
        packed = [name for name, format in TABLES.items() if format.packed]
        raise TableFileError(
            f"{path}: tables are read from files ending in {', '.join(TABLES)} ({', '.join(packed[:-1])} and {packed[-1]} "
            "also as .gz)."
        )
    return TABLES[suffix]
