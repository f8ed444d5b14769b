"""Lines and numbers of molecule files as bytes, so that what is not changed is written back as it was read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mislabel._common.short_numbers import without_rounding_noise
from mislabel.data.number_text import is_missing
from mislabel.errors import MoleculeFileError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_TEXT = (b"\xff\xfe", b"\xfe\xff")
_CHUNK = 1 << 20
#: A longer line is no comment and no atom: the file is something else.
LONGEST_LINE = 10_000_000
#: More blanks in a row are no separation.
_MOST_BLANKS = 4_000_000
#: A longer text is no number.
_LONGEST_NUMBER = 400
#: As written by Mathematica (1.5*^-6, in QM9) and Fortran (1.5D-6, always with a point: 1D66 is a name).
_FOREIGN_NUMBER = re.compile(rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)\*\^|(?:\d+\.\d*|\.\d+)[dD])[+-]?\d+")
_EXPONENT_MARK = re.compile(rb"\*\^|[eEdD](?=[+-]?\d)")


class Entry(NamedTuple):
    """A named value where it stands: ``text[start:end]`` of the piece that was searched, without quotes or blanks."""

    name: str
    text: bytes
    start: int
    end: int


def file_size(path: Path) -> int:
    """Bytes in a file."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise MoleculeFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their ends: LF, CRLF or CR, in any mixture. A byte order mark is part of the first."""
    number, blank = 1, 0
    try:
        with path.open("rb") as file:
            rest = b""
            while chunk := file.read(_CHUNK):
                if number == 1 and not rest:
                    _check_encoding(path, chunk)
                lines = (rest + chunk).splitlines(keepends=True)
                # A carriage return at the end may be the first half of a CRLF.
                rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
                yield from lines
                number += len(lines)
                blank = 0 if chunk.strip() else blank + len(chunk)
                if len(rest) > LONGEST_LINE or blank > _MOST_BLANKS:
                    raise MoleculeFileError(
                        f"{path}, line {number}: {'blank for' if blank else 'longer than'} {blank or LONGEST_LINE:,} bytes; "
                        "this is not a file of molecules."
                    )
            if rest:
                yield from rest.splitlines(keepends=True)
    except OSError as error:
        raise MoleculeFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def _check_encoding(path: Path, beginning: bytes) -> None:
    if beginning.startswith(_WIDE_TEXT):
        raise MoleculeFileError(f"{path} is UTF-16 text: save it as UTF-8.")


def without_mark(line: bytes) -> bytes:
    """A first line without its byte order mark."""
    return line.removeprefix(_BYTE_ORDER_MARK)


def decoded(text: bytes) -> str:
    """Text in UTF-8, else in Latin-1, which fits everything."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def shown(text: bytes, most: int = 60) -> str:
    """A piece of a file for a message: quoted, one line, and not too long."""
    return repr(decoded(text[: 4 * most]).strip()[:most])


def read_number(text: bytes) -> float | None:
    """A number in any of the notations of molecule files; None where it is not one."""
    if len(text) > _LONGEST_NUMBER or b"_" in text:  # Python alone reads 1_000 as a number
        return None
    try:
        return float(text)
    except ValueError:
        if not _FOREIGN_NUMBER.fullmatch(text):
            return None
    return float(_EXPONENT_MARK.sub(b"e", text))


def read_value(text: bytes) -> float | str:
    """A property: a number, or text."""
    number = read_number(text)
    return decoded(text) if number is None else number


def write_number(value: float, like: bytes, mark: bytes = b"e") -> bytes:
    """The shortest text for a value, without noise of rounding, in the notation of the one that it replaces.

    mark : how the file writes powers of ten, if the former number does not show it.
    """
    text = repr(without_rounding_noise(float(value))).encode()
    if b"." not in like:
        text = text.removesuffix(b".0")
    if b"e" not in text:
        return text
    found = _EXPONENT_MARK.search(like)
    mark = found[0] if found else mark
    mantissa, power = text.split(b"e")
    if mark in b"dD" and b"." not in mantissa:
        mantissa += b".0"
    return mantissa + mark + (str(int(power)).encode() if mark == b"*^" else power)


def properties_of(entries: Sequence[Entry], where: str) -> dict[str, float | str]:
    """Properties by name. One that stands twice with different values is an error: nobody knows which is meant."""
    texts: dict[str, bytes] = {}
    for entry in entries:
        former = texts.setdefault(entry.name, entry.text)
        if former != entry.text:
            raise MoleculeFileError(
                f"{where}: {entry.name!r} stands there twice, as {shown(former)} and as {shown(entry.text)}: remove one."
            )
    return {name: read_value(text) for name, text in texts.items()}


def replace_value(piece: bytes, entries: Sequence[Entry], name: str, value: float, where: str, mark: bytes) -> bytes:
    """A piece of a file with the number of a property replaced wherever it stands, and nothing else."""
    if not np.isfinite(value):
        raise MoleculeFileError(f"{where}: the new value {value!r} of {name!r} is not a finite number.")
    found = [entry for entry in entries if entry.name == name]
    if not found:
        close = [entry.name for entry in entries if entry.name.casefold() == name.casefold()]
        raise MoleculeFileError(
            f"{where} has no property {name!r}{f' (it has {close[0]!r})' if close else ''}: it cannot be corrected."
        )
    for entry in reversed(found):
        if read_number(entry.text) is None and not (entry.text and is_missing(decoded(entry.text))):
            raise MoleculeFileError(
                f"{where}: {name!r} is {shown(entry.text)}, not one number: it cannot be corrected here."
            )
        piece = piece[: entry.start] + write_number(value, entry.text, mark) + piece[entry.end :]
    return piece


def check_positions(path: Path, values: Mapping[int, Any], dropped: Collection[int], count: int) -> None:
    """Every decision must be about a molecule that the file has, and some molecule must remain."""
    beyond = sorted(number for number in {*values, *dropped} if not 0 <= number < count)
    if beyond:
        raise MoleculeFileError(
            f"{path} has {count} molecules, but there is a decision about molecule {beyond[0]} (counting from 0): the "
            "decisions belong to another file."
        )
    if len(set(dropped)) == count:
        raise MoleculeFileError(f"all {count} molecules of {path} are to be dropped: nothing would be left to write.")
