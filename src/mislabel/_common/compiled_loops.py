"""How loops are compiled: once, then from numba's on-disk cache, and in memory where no cache can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile with numba, cached on disk where a cache directory is writable."""
    return _compile(function)


def compiled_for_speed(function: Function) -> Function:
    """:func:`compiled`, with sums reordered freely and division by zero left to give infinity, as NumPy has it."""
    return _compile(function, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


def _compile(function: Function, **options: Any) -> Function:
    import numba  # here, so that whoever imports a module of this package without loops does not wait for it

    try:
        loops = numba.njit(cache=True, nogil=True, **options)(function)
        _watch_neighbours(loops, function)
        return loops  # type: ignore[no-any-return]
    except RuntimeError:  # numba found no directory that it may write its cache to
        return numba.njit(nogil=True, **options)(function)  # type: ignore[no-any-return]


def _watch_neighbours(loops: Any, function: Callable[..., Any]) -> None:
    """Compile anew when any module of the folder changes, since loops use what others define: numba watches their own alone."""
    with suppress(AttributeError):  # numba has no public name for it
        file = loops._cache._cache_file
        file._source_stamp = file._source_stamp, _stamps(Path(function.__code__.co_filename).parent)


@cache
def _stamps(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of all modules in a folder."""
    found = ((path.name, path.stat()) for path in sorted(folder.glob("*.py")))
    return tuple((name, status.st_mtime_ns, status.st_size) for name, status in found)


@contextmanager
def clean_interrupts() -> Iterator[None]:
    """Let Ctrl-C come out as KeyboardInterrupt even when it arrives inside a compiled loop.

    There, Python reports it as a SystemError whose cause is the interrupt.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
