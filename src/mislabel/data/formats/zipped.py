"""A zip archive that holds one table: it is read, and its copy holds the corrected table and everything else as it was."""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from mislabel.data.formats.contract import ReadOptions, TableFile, fingerprint_of
from mislabel.data.formats.corrected_copy import Decisions
from mislabel.errors import MislabelError, TableFileError

if TYPE_CHECKING:
    from mislabel.data.formats.registry import TableFormat

#: From a file's name to the format of its table; refuses names that are of none.
FormatOf = Callable[[Path], "TableFormat"]

#: Bytes that are unpacked at most.
_LARGEST = 4_000_000_000


def read_zipped_table(path: Path, options: ReadOptions, format_of: FormatOf) -> TableFile:
    """Read the only table in an archive."""
    with _opened(path) as archive:
        member = _only_table(path, archive, format_of)
        with _unpacked(path, archive, member, format_of) as (inner, format):
            format.check_options(inner, options)
            with _named(path, inner, member):
                table = format.read(inner, options)
    return replace(
        table,
        path=path,
        fingerprint=fingerprint_of(path),
        reading=replace(table.reading, member=member.filename),
        is_plain=False,
        why_not=format.why_not_written,
        notes=[f"the table is {member.filename} in the archive.", *table.notes],
    )


def write_zipped_table(source: Path, chosen: Decisions, out: BinaryIO, trail: bool, format_of: FormatOf) -> None:
    """Copy an archive with decisions carried out in its table; all other members stay as they are."""
    with _opened(source) as archive:
        member = _only_table(source, archive, format_of)
        with _unpacked(source, archive, member, format_of) as (inner, format):
            corrected = io.BytesIO()
            with _named(source, inner, member):
                format.write_copy(inner, chosen, corrected, trail)
        written = io.BytesIO()
        with _complaints(source), zipfile.ZipFile(written, "w") as copy:
            copy.comment = archive.comment
            for info in archive.infolist():
                content = corrected.getvalue() if info is member else archive.read(info)
                copy.writestr(info, content, compress_type=info.compress_type)
    out.write(written.getvalue())


@contextmanager
def _complaints(path: Path) -> Iterator[None]:
    """What goes wrong in an archive, in words."""
    try:
        yield
    except MislabelError:
        raise
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, ValueError, NotImplementedError, RuntimeError) as error:
        raise TableFileError(f"{path} cannot be read as a zip archive: {error}") from None


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with _complaints(path):
        archive = zipfile.ZipFile(path)
    with archive:
        yield archive


def _only_table(path: Path, archive: zipfile.ZipFile, format_of: FormatOf) -> zipfile.ZipInfo:
    """The one member that is a table; files that systems leave in archives do not count."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise TableFileError(f"{path} holds two files of the same name: it is damaged.")
    tables = []
    for info in infos:
        inner = PurePosixPath(info.filename)
        if info.is_dir() or inner.name.startswith(".") or "__MACOSX" in inner.parts or inner.suffix.lower() == ".zip":
            continue
        try:
            format_of(Path(inner.name))
        except TableFileError:
            continue
        tables.append(info)
    if len(tables) != 1:
        found = ", ".join(info.filename for info in tables[:5]) + (", ..." if len(tables) > 5 else "")
        held = f"{len(tables)} tables ({found})" if tables else f"no table ({', '.join(names[:5]) or 'it is empty'})"
        raise TableFileError(f"{path} holds {held}: unpack it, and name the table to read.")
    if tables[0].flag_bits & 1:
        raise TableFileError(f"{path}: {tables[0].filename} is encrypted: unpack it first.")
    if tables[0].file_size > _LARGEST:
        raise TableFileError(
            f"{path} unpacks to more than {_LARGEST / 1e9:.0f} GB: unpack it, and convert it to Parquet."
        )
    return tables[0]


@contextmanager
def _unpacked(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, format_of: FormatOf
) -> Iterator[tuple[Path, TableFormat]]:
    """The table as a file of its own for as long as it is needed, and its format."""
    with tempfile.TemporaryDirectory() as folder:
        # The name of a member may hold anything, also ways out of the folder.
        *before, last = PurePosixPath(member.filename).suffixes
        inner = Path(folder) / f"table{before[-1] if before and last.lower() == '.gz' else ''}{last}"
        with _complaints(path), archive.open(member) as packed:
            content = packed.read(_LARGEST + 1)
        if not content:
            raise TableFileError(f"{path}: {member.filename} is empty.")
        inner.write_bytes(content)
        yield inner, format_of(inner)


@contextmanager
def _named(path: Path, inner: Path, member: zipfile.ZipInfo) -> Iterator[None]:
    """Errors that name the file in the archive instead of its temporary copy."""
    try:
        yield
    except MislabelError as error:
        raise type(error)(str(error).replace(str(inner), f"{path}, {member.filename}")) from None
