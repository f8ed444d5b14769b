"""By what a row is known again when its file has grown or was sorted: fingerprints of what it holds beside its label.

Two rows have the same fingerprint if the same columns hold the same: numbers by their value, all else as text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.plain_columns import cells_of

#: Bytes of a fingerprint.
SIZE = 8
#: Rows that are looked at together.
_ROWS_AT_ONCE = 50_000
#: Atoms that are nearer than this (in Angstrom) stand at the same place.
_SAME_PLACE = 1e-6
_MISSING = np.uint64(0x6D697373696E6721)


@dataclass(frozen=True, eq=False)
class RowFingerprints:
    """Fingerprints of all rows, and their labels.

    columns : what they are of; empty for molecules, whose atoms they are of.
    keys : SIZE bytes for each row.
    """

    columns: tuple[str, ...]
    keys: NDArray[np.void]
    labels: NDArray[np.float64]

    def text(self, position: int) -> str:
        """That of one row, as decisions carry it."""
        return bytes(self.keys[position]).hex()

    @cached_property
    def positions(self) -> dict[str, NDArray[np.intp]]:
        """Where the rows with each fingerprint stand."""
        order = np.argsort(self._numbers, kind="stable")
        if not order.size:
            return {}
        starts = np.flatnonzero(np.append(True, np.diff(self._numbers[order]) != 0))
        return {self.text(int(part[0])): part for part in np.split(order, starts[1:])}

    @cached_property
    def copies(self) -> NDArray[np.intp]:
        """For each row, how many rows have its fingerprint and its label."""
        both = pd.DataFrame({"key": self._numbers, "label": self.labels + 0.0})
        sizes: Any = both.groupby(["key", "label"], dropna=False)["key"].transform("size")
        return np.asarray(sizes, dtype=np.intp)

    @property
    def _numbers(self) -> NDArray[np.uint64]:
        return self.keys.view("<u8").ravel()


def of_rows(frame: Any, columns: Sequence[str], objects: Any, labels: NDArray[np.float64]) -> RowFingerprints | None:
    """Of the rows of a table by ``columns``, of molecules by their atoms; None where neither can be told."""
    if objects is not None:
        return None if isinstance(objects, np.ndarray) else of_molecules(objects, labels)
    if not isinstance(frame, pd.DataFrame) or not columns or not set(columns) <= set(frame.columns):
        return None
    return of_columns(frame, columns, labels)


def of_columns(frame: pd.DataFrame, columns: Sequence[str], labels: NDArray[np.float64]) -> RowFingerprints:
    """Of the rows of a table, by some of its columns."""
    parts = [
        _digests(_numbers_of(frame.iloc[start : start + _ROWS_AT_ONCE], columns))
        for start in range(0, len(frame), _ROWS_AT_ONCE)
    ]
    return RowFingerprints(tuple(columns), _joined(parts), labels)


def of_molecules(molecules: Iterable[Any], labels: NDArray[np.float64]) -> RowFingerprints | None:
    """Of molecules, by their atoms and where these stand; None where objects have neither."""
    found = []
    for molecule in molecules:
        numbers, positions = (getattr(molecule, name, None) for name in ("numbers", "positions"))
        if numbers is None or positions is None:
            return None
        places = np.round(np.asarray(positions, dtype=float) / _SAME_PLACE) + 0.0
        found.append(_digest(np.asarray(numbers, dtype="<i8").tobytes() + places.astype("<f8").tobytes()))
    return RowFingerprints((), _joined([found]), labels)


def _numbers_of(frame: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.uint64]:
    """One number for every cell."""
    found = np.empty((len(frame), len(columns)), dtype="<u8")
    for k, name in enumerate(columns):
        found[:, k] = _cell_numbers(frame[name])
    return found


def _cell_numbers(column: pd.Series) -> NDArray[np.uint64]:
    """One number for every cell of a column, the same for the same content."""
    types = pd.api.types
    if types.is_numeric_dtype(column.dtype) and not (
        types.is_bool_dtype(column.dtype) or types.is_complex_dtype(column.dtype)
    ):
        return _bits(column.to_numpy(dtype=float, na_value=np.nan))
    codes, cells = pd.factorize(np.array(cells_of(column), dtype=object))
    return np.array([_of_text(str(cell)) for cell in cells], dtype="<u8")[codes]


def _of_text(cell: str) -> int:
    """That of a cell that is text: of its number where it is one."""
    text = cell.strip()
    if not text:
        return int(_MISSING)
    try:
        return int(_bits(np.array([float(text)]))[0])
    except ValueError:
        return int.from_bytes(_digest(text.encode("utf-8", "surrogatepass")), "little")


def _bits(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    bits = (np.asarray(values, dtype="<f8") + 0.0).view("<u8")  # -0 becomes 0
    return np.where(np.isnan(values), _MISSING, bits)


def _digests(numbers: NDArray[np.uint64]) -> list[bytes]:
    return [_digest(row.tobytes()) for row in np.ascontiguousarray(numbers)]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=SIZE).digest()


def _joined(parts: Iterable[list[bytes]]) -> NDArray[np.void]:
    return np.frombuffer(b"".join(digest for part in parts for digest in part), dtype=f"V{SIZE}")
