"""Tables larger than memory: a Parquet file of which one column, or some rows, are read at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel._common.spreading import evenly_spread
from mislabel.data.column_names import check_column, check_width, unique_names
from mislabel.data.columns import LeftOut, choose_features
from mislabel.data.formats.cells import typed_column, unread_note
from mislabel.data.formats.contract import ReadOptions, fingerprint_of
from mislabel.data.formats.parquet import (
    FIRST_ROWS,
    ColumnReader,
    arrow_errors,
    open_parquet,
    pieces,
    stored_columns,
    text_cells,
    text_looks,
    written_cells,
)
from mislabel.data.number_recognition import notations_of
from mislabel.data.table_files import similar_file
from mislabel.data.tables import FeatureEncoder, nothing_left
from mislabel.errors import TableFileError
from mislabel.linalg.mapped import let_go, new_mapped

#: Bytes of a column read at a time: without it, a whole row group of every column is held beside what is decoded of it.
READ_BYTES = 65_536
#: Cells decoded at a time.
BATCH_CELLS = 1_000_000
#: Rows, spread over the file, from which columns are judged and encodings learned; fewer of very wide tables.
SAMPLE_ROWS = 20_000
SAMPLE_CELLS = 2_000_000


class LargeTable:
    """A Parquet file that stays where it is.

    columns : unique names. notes : what had to be decided while reading, in words.
    """

    def __init__(self, path: str | Path, options: ReadOptions | None = None) -> None:
        self.path, self.options = Path(path), options or ReadOptions()
        if self.path.suffix.lower() != ".parquet":
            raise TableFileError(
                f"{self.path}: only Parquet files can be read piece by piece, in a memory budget. Convert it once, for "
                "example with pandas.read_csv(...).to_parquet(...), or leave the budget out."
            )
        if not self.path.exists():
            raise TableFileError(f"{self.path}: no such file.{similar_file(self.path)}")
        if not self.path.is_file():
            raise TableFileError(f"{self.path} is a folder, not a table.")
        self._file = open_parquet(self.path, pre_buffer=False, buffer_size=READ_BYTES)
        with arrow_errors(self.path):
            self._stored = stored_columns(self._file)
            metadata = self._file.metadata
            self._rows = metadata.num_rows
            grouped = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        if grouped != self._rows:
            raise TableFileError(f"{self.path} announces {self._rows} rows, its groups {grouped}: it is damaged.")
        check_width(self.path, len(self._stored))
        if len(set(self._stored)) < len(self._stored):
            raise TableFileError(f"{self.path}: two of its columns have the same name; rename one of them.")
        self.columns, self.notes = unique_names(self._stored)
        if not self.columns:
            raise TableFileError(f"{self.path} has no columns.")
        if self._rows < 1:
            raise TableFileError(f"{self.path} has a header but no rows.")
        self._as_written: set[str] = set()
        self._readers = self._column_readers()

    def __len__(self) -> int:
        return int(self._rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self.options, self._as_written)

    def __getitem__(self, name: str) -> pd.Series:
        """One whole column."""
        check_column(self, name)
        return pd.concat([batch[name] for _, batch in self.batches([name])], ignore_index=True)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the file's bytes."""
        return fingerprint_of(self.path)

    def written(self, name: str) -> list[str]:
        """The text of every cell of a column, exactly as it stands in the file."""
        stored = self.stored_name(name)
        with arrow_errors(self.path):
            return [text for _, batch in self._batches([stored]) for text in written_cells(batch.column(0))]

    def filled(self, name: str) -> Sequence[str]:
        """The same without the texts that were stated to stand for no value."""
        return self.options.without_missing(self.written(name))

    def keep_as_written(self, name: str) -> None:
        """From now on, give a column as the text that stands in the file."""
        self._as_written.add(name)

    def stored_name(self, name: str) -> str:
        """What a column is called in the file."""
        return self._stored[self.columns.index(name)]

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pd.DataFrame]]:
        """Some columns of all rows, piece by piece, each with the position of its first row."""
        stored = [self.stored_name(name) for name in columns]
        for start, batch in self._batches(stored):
            yield start, self._typed(batch, columns)

    def rows(self, positions: NDArray[np.intp], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Some rows, in the order of ``positions``."""
        columns = self.columns if columns is None else columns
        if not columns:
            return pd.DataFrame(index=np.arange(len(positions)))
        wanted = np.unique(positions)
        stored = [self.stored_name(name) for name in columns]
        found = []
        for start, batch in self._batches(stored, wanted):
            inside = wanted[(wanted >= start) & (wanted < start + batch.num_rows)] - start
            if inside.size:
                found.append(self._typed(batch.take(inside), columns))
        return pd.concat(found, ignore_index=True).iloc[np.searchsorted(wanted, positions)]

    def release(self) -> None:
        """Give back memory that reading took and no longer needs."""
        from pyarrow import default_memory_pool

        default_memory_pool().release_unused()

    def _batches(self, stored: Sequence[str], wanted: NDArray[np.intp] | None = None) -> Iterator[tuple[int, Any]]:
        size = max(BATCH_CELLS // max(len(stored), 1), 1024)
        start = 0
        for group in range(self._file.metadata.num_row_groups):
            end = start + self._file.metadata.row_group(group).num_rows
            if wanted is None or np.any((wanted >= start) & (wanted < end)):
                at = start
                with arrow_errors(self.path):
                    batches = self._file.iter_batches(size, row_groups=[group], columns=list(stored), use_threads=False)
                for batch in pieces(batches, self.path):
                    # A nested column of the same beginning may come along.
                    yield at, batch.select(list(stored))
                    at += batch.num_rows
                if at != end:
                    raise TableFileError(f"{self.path} announces {end - start} rows in a group and holds {at - start}.")
            start = end

    def _column_readers(self) -> dict[str, ColumnReader]:
        looks = dict(zip(self.columns, text_looks(self.path, self.options), strict=True))
        texts = {name: look for name, look in looks.items() if look is not None}
        notations, doubts = notations_of(texts, None, self.options.numbers)
        first = next(self._batches(self._stored))[1].slice(0, FIRST_ROWS)
        found = {}
        for k, (name, stored) in enumerate(zip(self.columns, self._stored, strict=True)):
            kind, notation = self._file.schema_arrow.field(stored).type, notations.get(name)
            dates = False
            if name in texts and notation is None:
                with arrow_errors(self.path):
                    column = typed_column(text_cells(first.column(k)), None)[0]
                dates = bool(pd.api.types.is_datetime64_any_dtype(column))
            found[name] = ColumnReader(kind, notation, dates, self.options)
            if notation is not None:
                unread = texts[name].filled - texts[name].readable[notation.decimal]
                self.notes += [f"column {name!r}: {unread_note(unread, texts[name].filled)}"] if unread else []
        self.notes += doubts
        return found

    def _typed(self, batch: Any, columns: Sequence[str]) -> pd.DataFrame:
        typed = {}
        with arrow_errors(self.path):
            for k, name in enumerate(columns):
                array = batch.column(k)
                if name in self._as_written:
                    typed[name] = pd.Series(written_cells(array), dtype=object)
                else:
                    typed[name] = self._readers[name].read(array)[0]
        return pd.DataFrame(typed)


def _reopened(path: Path, options: ReadOptions, as_written: set[str]) -> LargeTable:
    table = LargeTable(path, options)
    for name in as_written:
        table.keep_as_written(name)
    return table


class PiecewiseTable(Protocol):
    """A table that does not fit into memory, of which one column, or some rows, can be had."""

    columns: list[str]

    def __len__(self) -> int: ...

    def __getitem__(self, name: str) -> pd.Series:
        """One whole column."""
        ...

    def rows(self, positions: NDArray[np.intp], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Some rows, in the order of ``positions``."""
        ...


def learn_features(
    table: PiecewiseTable, numbers: NDArray[np.float64], names: Sequence[str], *, asked_for: bool
) -> tuple[FeatureEncoder, list[str], list[LeftOut]]:
    """An encoder of features, the columns it takes, and those left out: all from rows spread over the table."""
    if not names:
        raise nothing_left([])
    positions = evenly_spread(len(table), min(SAMPLE_ROWS, max(SAMPLE_CELLS // len(names), FIRST_ROWS)))
    sample = table.rows(positions, names)
    used, left_out = _choose(table, sample, positions, numbers, names, asked_for)
    if not used:
        raise nothing_left(left_out)
    return FeatureEncoder.learned_from(sample[used]), used, left_out


def encode_pieces(
    table: LargeTable,
    encoder: FeatureEncoder,
    used: Sequence[str],
    progress: Callable[[str, float], None] = lambda message, fraction: None,
) -> NDArray[np.float64]:
    """The features of all rows, in a temporary file."""
    encoded = new_mapped((len(table), len(encoder.names)), np.float64)
    for start, batch in table.batches(used):
        encoded[start : start + len(batch)] = encoder.encode(batch)
        let_go(encoded)
        progress("turning columns into numbers", 0.1 + 0.9 * (start + len(batch)) / len(table))
    table.release()
    return encoded


def _choose(
    table: PiecewiseTable,
    sample: pd.DataFrame,
    positions: NDArray[np.intp],
    numbers: NDArray[np.float64],
    names: Sequence[str],
    asked_for: bool,
) -> tuple[list[str], list[LeftOut]]:
    used, left_out = choose_features(sample.reset_index(drop=True), numbers[positions], names, asked_for=asked_for)
    if used and not asked_for:
        # Whether a column counts the rows is seen in neighbouring ones only.
        first = np.arange(min(FIRST_ROWS, len(table)))
        _, beginning = choose_features(table.rows(first, used), numbers[first], used, asked_for=False)
        ids = [item for item in beginning if item.kind == "id"]
        left_out += ids
        used = [name for name in used if name not in {item.column for item in ids}]
    return used, left_out
