"""How loops are compiled: once, then from numba's on-disk cache, and in memory where no cache can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        return numba.njit(cache=True, nogil=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # numba found no directory that it may write its cache to
        return numba.njit(nogil=True, **options)(function)  # type: ignore[no-any-return]


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
