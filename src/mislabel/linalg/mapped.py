"""Arrays in files: larger than memory, and in memory only as far as they are being looked at."""

from __future__ import annotations

import math
import mmap
import tempfile
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike

from mislabel._common.atomic_files import reserve_space


def new_mapped(shape: tuple[int, ...], dtype: DTypeLike) -> np.memmap[Any, Any]:
    """An array of zeros in a temporary file; too little room for it on the disk is a DiskSpaceError.

    The mapping keeps the file alive; its name is gone at once, so that nothing is left behind by a crash.
    """
    with tempfile.NamedTemporaryFile(prefix="mislabel-", suffix=".array") as file:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        sizes = " x ".join(f"{length:,}" for length in shape)
        reserve_space(
            cast(BinaryIO, file), size, f"a temporary array of {sizes} numbers in {tempfile.gettempdir()} (see TMPDIR)"
        )
        return np.memmap(file, dtype=dtype, mode="r+", shape=shape)


#: Rows taken from a mapped array before its pages are let go: each may bring a quarter of a megabyte with it.
_ROWS_AT_ONCE = 16


def mapping_of(array: Any) -> mmap.mmap | None:
    """The file mapping that an array, or the array it is a view of, lies in."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def let_go(array: Any) -> None:
    """Give back the memory that pages of a mapped array take; what was written stays in its file. Others stay as they are."""
    mapping = mapping_of(array)
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def take_mapped(array: Any, index: Any) -> Any:
    """``array[index]`` in memory, without leaving more behind than a few rows' neighbourhood."""
    if mapping_of(array) is None:
        return np.asarray(array)[index]
    plain = np.asarray(array)
    if len(index) and index[-1] - index[0] == len(index) - 1 and bool(np.all(np.diff(index) == 1)):
        taken = plain[index[0] : index[-1] + 1].copy()
        let_go(array)
        return taken
    taken = np.empty((len(index), *plain.shape[1:]), dtype=plain.dtype)
    for start in range(0, len(index), _ROWS_AT_ONCE):
        taken[start : start + _ROWS_AT_ONCE] = plain[index[start : start + _ROWS_AT_ONCE]]
        let_go(array)
    return taken
