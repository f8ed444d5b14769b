"""Columns whose cells are lists of names, and columns that say which share one of the names has.

Two lists are alike where they share names, which a model can only learn if each name is a feature of its own. Where another
column names one item of every list, and a third holds a number between 0 and 1, that number is the item's share of a mixture: the
other items have the rest. Then every name's share is the feature, whichever of them the table happens to name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.column_types import ColumnType

_BRACKETED = re.compile(r"^\s*(?:\[.*\]|\(.*\)|\{.*\})\s*$", re.DOTALL)
_ITEM = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,;|\s][^,;|]*)""")
_MARKS = (";", "|")
#: Share of the filled cells that must be lists, and of the rows whose lists must hold the item that another column names.
_MOSTLY = 0.9
#: Share of the cells that must have a mark between items, where there are no brackets.
_MARKED = 0.5
#: The most frequent names become features, up to so many; each must stand in two different lists.
_MOST_NAMES = 100
_FEWEST_LISTS = 2


def items_of(cell: object) -> tuple[str, ...]:
    """The names in a cell, each once and in order."""
    if not isinstance(cell, str):
        return ()
    text = cell.strip()
    if _BRACKETED.match(text):
        text = text[1:-1]
    found = (next(part for part in match.groups() if part is not None).strip() for match in _ITEM.finditer(text))
    return tuple(sorted({name for name in found if name}))


def holds_lists(column: pd.Series) -> bool:
    """Whether nearly all cells of a column are lists of names, some of which stand in several different lists."""
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype | pd.CategoricalDtype):
        filled = column.dropna()
        cells = [cell for cell in filled.unique() if isinstance(cell, str)]
        texts = filled.astype(object)
        texts = texts[[isinstance(cell, str) and cell != "" for cell in texts]]
        if not len(texts) or len(cells) < 2 * _FEWEST_LISTS:
            return False
        bracketed = np.mean([bool(_BRACKETED.match(cell)) for cell in texts])
        marked = max(np.mean([mark in cell for cell in texts]) for mark in _MARKS)
        return bool((bracketed >= _MOSTLY or marked >= _MARKED) and _names(cells))
    return False


def _names(cells: list[str]) -> list[str]:
    """Names that stand in several different lists, the most frequent ones, in order of the alphabet."""
    lists = {items_of(cell) for cell in cells}
    if max((len(items) for items in lists), default=0) < 2:
        return []
    counts = pd.Series([name for items in lists for name in items], dtype=object).value_counts()
    return sorted(counts[counts >= _FEWEST_LISTS].index[:_MOST_NAMES])


@dataclass(frozen=True)
class NameLists:
    """A column of lists: its names, and where the shares of one of them stand, the columns ``named`` and ``share``."""

    column: str
    names: list[str]
    named: str | None = None
    share: str | None = None

    @property
    def columns(self) -> list[str]:
        """What the features are called."""
        what = "in" if self.share is None else self.share
        return [f"{name} ({what} {self.column})" for name in self.names]

    def numbers(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """One column per name: its share of the mixture, or whether it is in the list."""
        cells = frame[self.column].tolist()
        items = {cell: items_of(cell) for cell in set(cells) if isinstance(cell, str)}
        lists = [items.get(cell, ()) for cell in cells]
        place = {name: k for k, name in enumerate(self.names)}
        found = np.zeros((len(cells), len(self.names)))
        shares = _shares(frame, lists, self.named, self.share) if self.share is not None else None
        for row, names in enumerate(lists):
            for name in names:
                if name in place:
                    found[row, place[name]] = 1.0 if shares is None else shares[row].get(name, 0.0)
        return found


def _shares(
    frame: pd.DataFrame, lists: list[tuple[str, ...]], named: str | None, share: str | None
) -> list[dict[str, float]]:
    """The share of every name in every row; equal ones where a row does not say."""
    found = []
    for names, name, value in zip(lists, frame[named].tolist(), frame[share].tolist(), strict=True):
        others = [other for other in names if other != name]
        if len(others) < len(names) and others and 0.0 <= value <= 1.0:
            shares = dict.fromkeys(others, (1.0 - value) / len(others))
            shares[name] = float(value)
        else:
            shares = dict.fromkeys(names, 1.0 / max(len(names), 1))
        found.append(shares)
    return found


@dataclass(frozen=True)
class ListColumns:
    """The columns of lists of a table, and how they are turned into numbers."""

    lists: tuple[NameLists, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame) -> ListColumns:
        """Those of a table in plain types."""
        found = []
        for column in frame.columns:
            if holds_lists(frame[column]):
                names = _names([cell for cell in frame[column].dropna().unique() if isinstance(cell, str)])
                found.append(NameLists(str(column), names, *_share_columns(frame, str(column))))
        return cls(tuple(found))

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table with numbers in place of lists, and of the columns that say a share."""
        if not self.lists:
            return frame
        parts = [frame[[name for name in frame.columns if name not in self._gone]]]
        for entry in self.lists:
            parts.append(pd.DataFrame(entry.numbers(frame), columns=entry.columns, index=frame.index))
        return pd.concat(parts, axis=1)

    def types(self, types: dict[str, ColumnType]) -> dict[str, ColumnType]:
        """The types of the columns of :meth:`apply`."""
        found = {name: kind for name, kind in types.items() if name not in self._gone}
        return found | {name: "numbers" for entry in self.lists for name in entry.columns}

    @property
    def _gone(self) -> set[str | None]:
        return {name for entry in self.lists for name in (entry.column, entry.named, entry.share)}


#: Those of most tables.
NO_LISTS = ListColumns()


def _share_columns(frame: pd.DataFrame, column: str) -> tuple[str | None, str | None]:
    """The column that names one item of each list, and the one with its share; None and None unless there is one of each."""
    lists = [items_of(cell) for cell in frame[column]]
    several = np.array([len(items) > 1 for items in lists])
    if not several.any():
        return None, None
    named, shares = [], []
    for name in frame.columns:
        if name == column:
            continue
        cells = frame[name]
        if pd.api.types.is_numeric_dtype(cells):
            values = cells.to_numpy(dtype=float)[several]
            inside = (values >= 0.0) & (values <= 1.0)
            if np.mean(inside) >= _MOSTLY and np.unique(values[inside]).size > 2:
                shares.append(str(name))
        elif not pd.api.types.is_datetime64_any_dtype(cells):
            holds = [cell in items for cell, items in zip(cells, lists, strict=True)]
            if np.mean(np.array(holds)[several]) >= _MOSTLY:
                named.append(str(name))
    return (named[0], shares[0]) if len(named) == len(shares) == 1 else (None, None)
