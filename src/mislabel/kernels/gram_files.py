"""Matrices in files that survive a crash, and in which no damage goes unseen.

The matrix is an ordinary ``.npy`` file, followed by a line that says whose matrix it is (its fingerprint). It has its full size
from the start, and appears whole. Beside it lies a record: one line for each block that is finished, with a checksum of the
block's bytes and one of the line itself. A block is written down only after its bytes have reached the disk; what the record
does not vouch for, or vouches for in vain, is computed again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mislabel._common.atomic_files import atomic_write, locked, remove_leftovers, reserve_space
from mislabel.errors import GramFileError, GramFileWarning
from mislabel.kernels.matrix_blocks import Blocks

#: Computes the blocks with the given numbers into a matrix, and calls back after each.
Fill = Callable[[Sequence[int], np.ndarray, Callable[[int], None]], None]

#: First line of a record.
_TITLE = b"mislabel record of similarities, 2\n"
_LINE = re.compile(rb"(\d{8}) ([0-9a-f]{32}) ([0-9a-f]{16})")
_MARK = b"\nmislabel similarities "
#: Waiting for the disk may take this part of the time.
_WAITING_SHARE = 0.05
_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class _Layout:
    """What a file must look like to be the one that is wanted."""

    path: Path
    blocks: Blocks
    dtype: np.dtype[Any]
    identity: str

    @property
    def record(self) -> Path:
        return self.path.with_name(self.path.name + ".progress")

    @property
    def header(self) -> bytes:
        """The ``.npy`` format, version 1.0: the same bytes whatever the version of numpy."""
        words = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': {self.blocks.shape!r}, }}"
        room = -(10 + len(words) + 1) % 64
        words += " " * room + "\n"
        return b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words.encode()

    @property
    def trailer(self) -> bytes:
        return _MARK + self.identity.encode() + b"\n"

    @property
    def size(self) -> int:
        rows, columns = self.blocks.shape
        return len(self.header) + rows * columns * self.dtype.itemsize + len(self.trailer)

    def checksum(self, block: bytes) -> str:
        return self._keyed(block, 16)

    def line(self, number: int, checksum: str) -> bytes:
        """A line of the record; its last word vouches for the others, and for whose line it is."""
        start = f"{number:08d} {checksum}"
        return f"{start} {self._keyed(start.encode(), 8)}\n".encode()

    def _keyed(self, content: bytes, size: int) -> str:
        return hashlib.blake2b(content, digest_size=size, key=self.identity.encode()).hexdigest()

    def recorded(self, content: bytes) -> dict[int, str]:
        """Checksums of finished blocks by number; torn, foreign and damaged lines count for nothing."""
        found = {}
        for line in content.split(b"\n"):
            parts = _LINE.fullmatch(line)
            if parts is None or int(parts[1]) >= len(self.blocks):
                continue
            number, checksum = int(parts[1]), parts[2].decode()
            if self.line(number, checksum) == line + b"\n":
                found[number] = checksum
        return found

    def intact(self, recorded: dict[int, str], matrix: np.ndarray) -> set[int]:
        """Those of the finished blocks whose bytes, and whose mirror image, are what was written."""
        kept = set()
        for number, checksum in recorded.items():
            block, mirrored = self.blocks.stored(number, matrix)
            if self.checksum(block) == checksum and mirrored in (None, block):
                kept.add(number)
        return kept


def gram_in_file(path: Path, blocks: Blocks, dtype: str, identity: str, fill: Fill) -> np.ndarray:
    """The matrix in the file ``path``, of which ``fill`` computes what is not there yet.

    identity : fingerprint of all that the values depend on; a file of another one is refused.
    """
    layout = _Layout(path, blocks, np.dtype(dtype), identity)
    matrix = _opened(layout)
    if matrix is not None and _is_complete(layout, matrix):
        return matrix
    path.parent.mkdir(parents=True, exist_ok=True)
    _regular_file(layout.record)
    with locked(layout.record, str(path)) as record:
        content = _content_of(record, layout)
        remove_leftovers(path)
        matrix = _opened(layout)
        if matrix is None:
            matrix = _created(layout)
            os.ftruncate(record.fileno(), 0)
            content = b""
        _complete(layout, matrix, record, content, fill)
    return matrix


def _is_complete(layout: _Layout, matrix: np.ndarray) -> bool:
    """Whether nothing is missing and nothing damaged: then the file is only read, by as many processes as like to."""
    if not _regular_file(layout.record):
        return False
    with open(os.open(layout.record, os.O_RDONLY | _OPEN), "rb") as file:
        recorded = layout.recorded(file.read())
    return len(recorded) == len(layout.blocks) == len(layout.intact(recorded, matrix))


def _complete(layout: _Layout, matrix: np.ndarray, record: BinaryIO, content: bytes, fill: Fill) -> None:
    recorded = layout.recorded(content)
    intact = layout.intact(recorded, matrix)
    if len(intact) < len(recorded):
        warnings.warn(
            f"{len(recorded) - len(intact)} of {len(recorded)} finished blocks of {layout.path} were damaged since they were "
            "written: they are computed again.",
            GramFileWarning,
            stacklevel=5,
        )
    log = _Log(layout, matrix, record, content)
    todo = [number for number in range(len(layout.blocks)) if number not in intact]
    try:
        fill(todo, matrix, log.finished)
    except BaseException:
        with suppress(OSError):
            log.write_down()
        raise
    log.write_down()
    os.fsync(record.fileno())


class _Log:
    """Writes finished blocks down, after their bytes have reached the disk."""

    def __init__(self, layout: _Layout, matrix: np.ndarray, record: BinaryIO, content: bytes) -> None:
        self._layout, self._matrix, self._handle = layout, matrix, record.fileno()
        self._pending: list[tuple[int, str]] = []
        self._next = 0.0
        os.lseek(self._handle, 0, os.SEEK_END)
        if not content:
            self._write(_TITLE)
        elif not content.endswith(b"\n"):
            self._write(b"\n")  # ends a line that was cut short

    def finished(self, number: int) -> None:
        """Take note of a block that is in the matrix."""
        block, _ = self._layout.blocks.stored(number, self._matrix)
        self._pending.append((number, self._layout.checksum(block)))
        if time.monotonic() >= self._next:
            self.write_down()

    def write_down(self) -> None:
        """Wait for the disk, then write all that is finished into the record."""
        if not self._pending:
            return
        start = time.monotonic()
        self._matrix.flush()  # type: ignore[attr-defined]
        self._write(b"".join(self._layout.line(*block) for block in self._pending))
        self._pending.clear()
        now = time.monotonic()
        self._next = now + (now - start) / _WAITING_SHARE

    def _write(self, content: bytes) -> None:
        while content:
            content = content[os.write(self._handle, content) :]


def _content_of(record: BinaryIO, layout: _Layout) -> bytes:
    """What the record holds; a file that is no record is not touched."""
    record.seek(0)
    content = record.read()
    if content.startswith(_TITLE) or _TITLE.startswith(content) or layout.recorded(content):
        return content
    raise GramFileError(
        f"{layout.record} is not a record of {layout.path.name}, or is damaged where it begins: move it away to compute the "
        "matrix anew, or choose another path."
    )


def _regular_file(path: Path) -> bool:
    """Whether a file is there; links and whatever else is no file are refused."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "no file"
        raise GramFileError(f"{path} is {what}: name the file itself, or choose another path.")
    return True


def _opened(layout: _Layout) -> np.ndarray | None:
    """The matrix as it is in its file, None where there is no file; a file of anything else is refused."""
    if not _regular_file(layout.path):
        return None
    try:
        handle = os.open(layout.path, os.O_RDWR | _OPEN)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    with open(handle, "r+b") as file:
        _check(layout, file)
        return np.memmap(file, layout.dtype, "r+", offset=len(layout.header), shape=layout.blocks.shape)


def _check(layout: _Layout, file: BinaryIO) -> None:
    """Refuse a file that is not of this matrix: by its size, its header, and the line at its end."""
    path, size = layout.path, os.fstat(file.fileno()).st_size
    afresh = f"Choose another path, or delete it and {layout.record.name} to start afresh."
    file.seek(max(size - len(layout.trailer), 0))
    trailer = file.read(len(layout.trailer))
    if not trailer.startswith(_MARK) or len(trailer) != len(layout.trailer):
        raise GramFileError(
            f"{path} was not made by gram_matrix, or by an older version of it, or its end is missing or damaged. {afresh}"
        )
    if trailer != layout.trailer:
        raise GramFileError(
            f"{path} holds similarities of other graphs or points, or of a kernel with other hyperparameters, dtype or version. "
            f"{afresh}"
        )
    file.seek(0)
    if size != layout.size or file.read(len(layout.header)) != layout.header:
        raise GramFileError(f"{path} is damaged: it has {size:,} bytes of {layout.size:,}, or another header. {afresh}")


def _created(layout: _Layout) -> np.ndarray:
    """A file of zeros with its header and the line at its end, and room on the disk for all of it."""
    with atomic_write(layout.path, overwrite=False) as file:
        rows, columns = layout.blocks.shape
        reserve_space(file, layout.size, f"the file {layout.path} of {rows:,} x {columns:,} similarities")
        file.write(layout.header)
        file.seek(layout.size - len(layout.trailer))
        file.write(layout.trailer)
    matrix = _opened(layout)
    if matrix is None:
        raise GramFileError(f"{layout.path} vanished while it was being made: nobody else may write there.")
    return matrix
