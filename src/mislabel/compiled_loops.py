"""How loops are compiled: once, then from numba's on-disk cache, and in memory where no cache can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile with numba, cached on disk where a cache directory is writable."""
    try:
        return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # numba found no directory that it may write its cache to
        return numba.njit(nogil=True)(function)  # type: ignore[no-any-return]
