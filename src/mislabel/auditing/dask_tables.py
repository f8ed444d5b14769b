"""Dask dataframes: brought here where they fit, else looked at piece by piece where they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel._common.spreading import evenly_spread
from mislabel.auditing.frames import Changes, corrected_frame, corrected_series
from mislabel.data.column_names import check_column
from mislabel.data.plain_columns import PlainColumns
from mislabel.data.tables import FeatureEncoder
from mislabel.distributed import current_client
from mislabel.errors import InvalidFeaturesError, MemoryBudgetError
from mislabel.estimators.validation import available_memory
from mislabel.kernels.contract import LazyCollection

#: How much memory an audit takes here, in sizes of its table: the table, its plain columns and the features made of them.
_COPIES = 4
#: Rows, spread over the table, from which the types of its columns are learned.
_TYPE_ROWS = 20_000


def is_dask(data: Any) -> bool:
    """Whether this is a dask dataframe, or a column of one."""
    # Dask's arrays have no divisions; dask need not be there to ask.
    return isinstance(data, LazyCollection) and hasattr(data, "known_divisions")


def token_of(data: Any) -> str:
    """Dask's own name for the content of collections and what is with them, which changes with it."""
    return str(import_module("dask.base").tokenize(data))


def brought_here(
    data: Any, client: Any, memory: str | float | None, *, whole: bool = False
) -> tuple[pd.DataFrame | DaskTable, Any]:
    """A dask dataframe as one of pandas where this machine can hold it, else where it is; and the client.

    Without a client the current one is taken, and none where there is none. ``whole`` insists on all of it.
    """
    client = current_client() if client is None else client
    sizes = _computed(data.map_partitions(_bytes, meta=pd.Series(dtype=float)), client)
    needed, free = _COPIES * float(np.sum(sizes)), available_memory(memory)
    if free is None or needed <= free:
        return _with_clear_rows(_computed(data, client), data), client
    if client is None or whole:
        raise MemoryBudgetError(
            f"the dask dataframe needs about {needed / 1e9:.2g} GB here, but {free / 1e9:.2g} GB may be used. "
            + ("Pass it with the label among its columns." if whole else "Pass client= to leave its rows on workers.")
        )
    return DaskTable(data, client), client


def _computed(lazy: Any, client: Any) -> Any:
    return lazy.compute() if client is None else client.compute(lazy).result()


def _bytes(part: pd.DataFrame) -> pd.Series:
    return pd.Series([float(part.memory_usage(deep=True).sum())])


def _with_clear_rows(frame: pd.DataFrame, data: Any) -> pd.DataFrame:
    """Partitions of files count their rows each from zero: then rows are called by their position in the whole."""
    if frame.index.name is None and not data.known_divisions and not frame.index.is_unique:
        return frame.reset_index(drop=True)
    return frame


class DaskTable:
    """A dask dataframe whose rows stay on the workers; what is needed of them comes in plain types.

    columns : their names, as text. ids : the index.
    """

    def __init__(self, data: Any, client: Any) -> None:
        self._data, self._client = data, client
        self.columns = [str(name) for name in data.columns]
        if len(set(self.columns)) < len(self.columns):
            raise InvalidFeaturesError("two columns of the table have the same name: rename one of them.")
        self._parts = list(client.persist(data).to_delayed())
        self._lengths = np.array(client.gather(client.compute([_delayed(len)(part) for part in self._parts])))
        self._bounds = np.concatenate([[0], np.cumsum(self._lengths)])
        sample = self._taken(evenly_spread(len(self), _TYPE_ROWS), self.columns)
        self._plain = PlainColumns.of(sample)

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def __getstate__(self) -> dict[str, Any]:
        """Rows stay on their workers: a copy elsewhere knows their columns and their number only."""
        return {**self.__dict__, "_client": None, "_data": None, "_parts": []}

    def __getitem__(self, name: str) -> pd.Series:
        """One whole column, in plain types."""
        check_column(self, name)
        found: pd.Series = self._plain.apply(self.column_as_it_is(name).to_frame())[0][name]
        return found

    def column_as_it_is(self, name: str) -> pd.Series:
        """One whole column, as it is."""
        at = self.columns.index(name)
        found: pd.Series = pd.concat(self._each(_column, at), ignore_index=True).rename(name)
        return found

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The index, where it names rows, else their positions."""
        index = pd.Index(np.concatenate([np.asarray(part) for part in self._each(_index)]))
        return index.to_numpy() if index.is_unique else np.arange(len(self))

    def rows(self, positions: NDArray[np.intp], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Some rows in plain types, in the order of ``positions``."""
        return self._plain.apply(self._taken(positions, self.columns if columns is None else columns))[0]

    def encoded(self, encoder: FeatureEncoder, used: Sequence[str]) -> Any:
        """The features of all rows as a dask array, made by the workers."""
        da: Any = import_module("dask.array")

        at = [self.columns.index(name) for name in used]
        pieces = [
            da.from_delayed(
                _delayed(_encode)(part, at, list(used), self._plain, encoder),
                (int(length), len(encoder.names)),
                np.float64,
            )
            for part, length in zip(self._parts, self._lengths, strict=True)
            if length
        ]
        return da.concatenate(pieces)

    def _taken(self, positions: NDArray[np.intp], columns: Sequence[str]) -> pd.DataFrame:
        wanted = np.unique(positions)
        at = [self.columns.index(name) for name in columns]
        tasks = []
        for part, start, stop in zip(self._parts, self._bounds[:-1], self._bounds[1:], strict=True):
            inside = wanted[(wanted >= start) & (wanted < stop)] - start
            if inside.size:
                tasks.append(_delayed(_rows)(part, inside, at, list(columns)))
        found: pd.DataFrame = pd.concat(self._client.gather(self._client.compute(tasks)), ignore_index=True)
        return found.iloc[np.searchsorted(wanted, positions)]

    def _each(self, work: Any, *arguments: Any) -> list[Any]:
        tasks = [_delayed(work)(part, *arguments) for part in self._parts]
        return list(self._client.gather(self._client.compute(tasks)))


def _delayed(work: Any) -> Any:
    return import_module("dask.delayed").delayed(work, pure=False)


def _length(part: pd.DataFrame) -> pd.Series:
    return pd.Series([float(len(part))])


def _column(part: pd.DataFrame, at: int) -> pd.Series:
    return part.iloc[:, at]


def _index(part: pd.DataFrame) -> pd.Index:
    return part.index


def _rows(part: pd.DataFrame, inside: NDArray[np.intp], at: list[int], names: list[str]) -> pd.DataFrame:
    return part.iloc[inside, at].set_axis(names, axis=1)


def _encode(
    part: pd.DataFrame, at: list[int], names: list[str], plain: PlainColumns, encoder: FeatureEncoder
) -> NDArray[np.float64]:
    return encoder.encode(plain.apply(part.iloc[:, at].set_axis(names, axis=1))[0])


def _shifted(changes: Changes, start: int, length: int) -> Changes:
    """Changes to the rows of one partition, counted from its first."""
    return Changes(
        {k - start: value for k, value in changes.values.items() if start <= k < start + length},
        {k - start for k in changes.dropped if start <= k < start + length},
    )


def corrected_lazily(data: Any, label: str, changes: Changes) -> Any:
    """A dask dataframe or series with some labels changed and some rows dropped, partition by partition."""
    dd: Any = import_module("dask.dataframe")
    parts = list(data.to_delayed())
    lengths = [int(length) for length in data.map_partitions(_length, meta=pd.Series(dtype=float)).compute()]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return dd.from_delayed(
        [
            _delayed(_corrected)(part, label, _shifted(changes, int(start), length))
            for part, start, length in zip(parts, starts[:-1], lengths, strict=True)
        ],
        divisions=data.divisions if data.known_divisions else None,
    )


def _corrected(part: pd.DataFrame | pd.Series, label: str, changes: Changes) -> Any:
    return corrected_series(part, changes) if isinstance(part, pd.Series) else corrected_frame(part, label, changes)
