"""Names of columns: unique ones, those that the user asks for, and those that are not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pandas as pd

from mislabel.errors import InvalidFeaturesError, InvalidParameterError, TableFileError

#: Columns renamed, or cells unread, of which each is told; of more, their number.
_MOST_NOTES = 5
#: Tables with more columns are refused: they take hours, and are mostly misread.
MOST_COLUMNS = 20_000


class HasColumns(Protocol):
    """A table, in memory or not."""

    @property
    def columns(self) -> Any:
        """Names of its columns."""
        ...


def check_column(frame: HasColumns, name: str) -> None:
    """Complain about a column that is not there, naming the closest one that is."""
    check_names(frame.columns, name)


def check_names(names: Iterable[Any], name: str) -> None:
    """The same for the names of all columns."""
    known = list(names)
    if name not in known:
        columns = [str(column) for column in known]
        close = difflib.get_close_matches(str(name), columns, n=1)
        advice = f" Did you mean {close[0]!r}?" if close else f" Columns: {', '.join(columns[:20])}."
        raise InvalidParameterError(f"the table has no column {name!r}.{advice}")


def with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose columns are all called by different texts."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidFeaturesError(f"two columns of the table are called {twice!r}: rename one of them.")
    return frame if names == list(frame.columns) else frame.set_axis(names, axis=1)


def unique_names(header: Sequence[str]) -> tuple[list[str], list[str]]:
    """Column names of which none is empty or taken, and what was changed for that, in words."""
    names: list[str] = []
    notes: list[str] = []
    own = {name.strip() for name in header}
    taken: set[str] = set()
    used: dict[str, int] = {}
    for position, name in enumerate(header, 1):
        base = name.strip() or f"column {position}"
        unique, number = base, used.get(base, 1)
        while unique in taken or (number > 1 and unique in own):
            number += 1
            unique = f"{base} ({number})"
        used[base] = number
        if unique != name.strip():
            notes.append(f"column {position} is called {unique!r}: its own name {name!r} is empty or taken.")
        taken.add(unique)
        names.append(unique)
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"{len(notes) - _MOST_NOTES} more columns got names likewise."]
    return names, notes


def check_width(path: Path | BinaryIO, columns: int) -> None:
    """Refuse tables that are too wide to be meant."""
    if columns > MOST_COLUMNS:
        raise TableFileError(
            f"{path} has {columns:,} columns; at most {MOST_COLUMNS:,} can be read. Is it transposed, or separated by "
            "another mark? Else keep the columns that matter."
        )
