"""Files that are there whole or not at all: new versions under names nobody can guess, and room reserved before it is used."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mislabel.errors import DiskSpaceError, FileInUseError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no advisory locks; nothing is cleaned up there
    fcntl = None  # type: ignore[assignment]

_PREFIX, _SUFFIX = ".mislabel-", ".part"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
#: Name of the file that says that all files of a set of new versions are complete.
_COMPLETE = "complete"
_FORMER = "former"


@contextmanager
def atomic_write(target: str | Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a new binary file that gets the name ``target`` when the block ends, and vanishes if it fails.

    Until then the target is what it was. Links are not followed: one at the target's name is replaced, not written
    through. Without ``overwrite`` a target that exists, or appears meanwhile, is a FileExistsError. What a killed process
    left behind is removed by the next one that writes the same target.
    """
    target = Path(target)
    remove_leftovers(target)
    partial, file = _create_beside(target)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # pragma: no cover - Windows renames no open file
                file.close()
            _rename(partial, target, overwrite)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise
    sync_folder(target.parent)


@contextmanager
def atomic_write_all(targets: Sequence[Path], *, overwrite: bool = True) -> Iterator[list[BinaryIO]]:
    """As :func:`atomic_write`, for files that belong together: all get their names when the block ends, or none does.

    They get them in this order; where a later one cannot, those before it go back to what they were. A process that is killed in
    between leaves the first ones.
    """
    made: list[tuple[Path, BinaryIO]] = []
    former: list[tuple[Path, Path | None, os.stat_result]] = []
    try:
        for target in targets:
            remove_leftovers(target)
            made.append(_create_beside(target))
        yield [file for _, file in made]
        for _, file in made:
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # pragma: no cover - Windows renames no open file
                file.close()
        for target, (partial, _) in zip(targets, made, strict=True):
            kept = _kept_beside(target) if overwrite and target is not targets[-1] and os.path.lexists(target) else None
            former.append((target, kept, os.lstat(partial)))
            _rename(partial, target, overwrite)
    except BaseException:
        for target, kept, ours in former:
            with suppress(OSError):
                if not os.path.samestat(os.lstat(target), ours):
                    continue
                if kept is not None:
                    os.replace(kept, target)
                elif target is not targets[-1] or not overwrite:
                    os.unlink(target)
        for path in [*(partial for partial, _ in made), *(kept for _, kept, _ in former)]:
            _remove(path)
        raise
    finally:
        for _, file in made:
            with suppress(OSError):
                file.close()
    for _, kept, _ in former:
        _remove(kept)
    for folder in {target.parent for target in targets}:
        sync_folder(folder)


def _kept_beside(target: Path) -> Path:
    """What stands at a name now, under another one."""
    kept = target.parent / f"{_stem(target)}{secrets.token_hex(8)}{_SUFFIX}"
    try:
        os.link(target, kept, follow_symlinks=False)
    except (OSError, NotImplementedError):  # a file system without hard links
        shutil.copy2(target, kept, follow_symlinks=False)
    return kept


def _remove(path: Path | None) -> None:
    if path is not None:
        with suppress(OSError):
            os.unlink(path)


def append_line(path: Path, line: str, *, header: str) -> None:
    """Add a line to a file and wait until it is on the disk; a file without any gets the header first.

    Both end with a newline. What a killed process left after the last newline is removed; readers leave it out. Several
    processes may add to one file.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
    with os.fdopen(handle, "r+b") as file, alone_in(path.parent):
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.ftruncate(handle, end)
        file.seek(end)
        file.write((line if end else header + line).encode())
        file.flush()
        os.fsync(handle)
    if not end:
        sync_folder(path.parent)


def remove_leftovers(target: Path) -> None:
    """Remove unfinished versions of a target whose writers are gone; those still being written are locked and stay."""
    if fcntl is None:  # pragma: no cover
        return
    for leftover in target.parent.glob(f"{_stem(target)}*{_SUFFIX}"):
        try:
            handle = os.open(leftover, os.O_RDWR | _NO_FOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(leftover)
        except OSError:
            pass
        finally:
            os.close(handle)


def _stem(target: Path) -> str:
    # The name itself could be too long with anything added to it.
    return f"{_PREFIX}{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}-"


def _create_beside(target: Path) -> tuple[Path, BinaryIO]:
    while True:
        partial = target.parent / f"{_stem(target)}{secrets.token_hex(8)}{_SUFFIX}"
        handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o666)
        file = os.fdopen(handle, "w+b")
        if fcntl is None:  # pragma: no cover
            return partial, file
        with suppress(OSError):  # some network drives have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if partial.exists():  # nobody took it for a leftover before it was locked
            return partial, file
        file.close()


def _rename(partial: Path, target: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(partial, target)
        return
    try:
        os.link(partial, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.replace(partial, target)
        return
    os.unlink(partial)


def sync_folder(folder: Path) -> None:
    """Let a rename survive a power failure, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def atomic_folder(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield an empty folder for new versions of ``names`` in ``folder``, which all take their places when the block ends.

    If one of them cannot, those before it go back, at the latest when the next process writes there; that one also finishes what
    a killed process had begun.
    """
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    with alone_in(folder):
        _finish_interrupted(folder, names)
        work.mkdir(mode=0o700)
        lock = _lock_of(work)
    try:
        yield work
        for name in names:
            _sync_file(work / name)
        (work / _COMPLETE).touch()
        sync_folder(work)
        with alone_in(folder):
            _put_in_place(work, folder, names)
    finally:
        if not any((work / _FORMER / name).exists() for name in names) or _is_in_place(folder, names):
            shutil.rmtree(work, ignore_errors=True)
        if lock is not None:
            os.close(lock)
        if not existed and not any(folder.iterdir()):
            folder.rmdir()
    sync_folder(folder)


def _lock_of(work: Path) -> int | None:
    """Mark a folder as being written to; None where another process does, or where there are no locks."""
    if fcntl is None:  # pragma: no cover
        return None
    handle = os.open(work, os.O_RDONLY | _NO_FOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _put_in_place(work: Path, folder: Path, names: Sequence[str]) -> None:
    former = work / _FORMER
    former.mkdir(exist_ok=True)
    moved: list[str] = []
    try:
        for name in names:
            if (folder / name).exists():
                os.replace(folder / name, former / name)
            moved.append(name)
            os.replace(work / name, folder / name)
    except BaseException:
        (work / _COMPLETE).unlink(missing_ok=True)
        for name in reversed(names):
            # Those that cannot go back now are put back by the next process that writes here.
            with suppress(OSError):
                if (former / name).exists():
                    os.replace(former / name, folder / name)
                elif name in moved:
                    (folder / name).unlink(missing_ok=True)
        raise


def _is_in_place(folder: Path, names: Sequence[str]) -> bool:
    return all((folder / name).exists() for name in names)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process changes which files stand in a folder."""
    if fcntl is None:  # pragma: no cover
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network drives have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _finish_interrupted(folder: Path, names: Sequence[str]) -> None:
    """Complete sets of a process that was killed take their places; of others, what they had moved away comes back."""
    for work in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
        if not work.is_dir() or work.is_symlink() or (lock := _lock_of(work)) is None:
            continue
        complete = (work / _COMPLETE).exists()
        for name in names:
            kept = work / name if complete else work / _FORMER / name
            if kept.exists():
                os.replace(kept, folder / name)
        shutil.rmtree(work, ignore_errors=True)
        os.close(lock)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def reserve_space(file: BinaryIO, size: int, what: str) -> None:
    """Give a file its full size on the disk, so that no later write into a mapping of it can fail.

    A mapped file that grows on a full disk ends the process without a word (SIGBUS); this says how much is needed instead.
    """
    try:
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), 0, size)
        else:  # pragma: no cover - no such call on macOS and Windows
            if shutil.disk_usage(Path(file.name).parent).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            file.truncate(size)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
        raise DiskSpaceError(
            f"{what} needs {size / 1e9:.3g} GB on the disk, and there is not so much room: free some, or choose another folder."
        ) from None


@contextmanager
def locked(path: Path, what: str) -> Iterator[BinaryIO]:
    """Hold a file open for reading and writing as the only process that does; a second one is refused in words.

    The file is created where it is not there.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
    with os.fdopen(handle, "r+b", buffering=0) as file:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FileInUseError(
                    f"another process is writing {what}: wait for it to end, or choose another path."
                ) from None
        yield file
