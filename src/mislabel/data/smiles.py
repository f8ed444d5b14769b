"""Columns of SMILES strings, in whatever table they stand: the one place that makes graphs of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mislabel.data.formats.contract import TableFile
from mislabel.data.formats.molecule_set import MoleculeSet
from mislabel.data.number_text import is_missing
from mislabel.data.table_files import read_any_table
from mislabel.errors import InvalidGraphError, MoleculeFileError, TableFileError, describe_rows
from mislabel.kernels.graphs.graph import Graph


def smiles_columns(names: Iterable[Any]) -> list[str]:
    """The columns that are called SMILES."""
    return [str(name) for name in names if "smiles" in str(name).lower()]


def read_smiles_table(path: Path, column: str | None = None) -> MoleculeSet:
    """A table with a column of SMILES (named so, unless ``column`` says otherwise); the other columns are properties."""
    path = Path(path)
    table = _table(path)
    names = [str(name) for name in table.frame.columns]
    if column is None:
        named = smiles_columns(names)
        if not named:
            raise MoleculeFileError(f"{path} has no SMILES column; its columns are {_listed(names)}.")
        column = named[0]
    if column not in names:
        raise MoleculeFileError(f"{path} has no column {column!r}; its columns are {_listed(names)}.")
    properties = {name: _property(table, at) for at, name in enumerate(names) if name != column}
    return MoleculeSet(table_graphs(table, column), properties, source=str(path))


def table_graphs(table: TableFile, column: str) -> list[Graph]:
    """Graphs of a column of SMILES of a table in a file; errors name its rows and lines."""
    return bond_graphs(table.frame[column], str(table.path), table.lines)


def bond_graphs(smiles: Iterable[Any], source: str, lines: Sequence[int] | None = None) -> list[Graph]:
    """Graphs of a column of SMILES; errors name the first row that cannot be read, and how many others.

    source : what the errors call the table. lines : where each row stands in it; else each has a line, after that of the header.
    """
    graphs: list[Graph] = []
    unread: list[int] = []
    first: InvalidGraphError | None = None
    for row, text in enumerate(smiles):
        try:
            graphs.append(_bond_graph(text))
        except InvalidGraphError as error:
            unread.append(row)
            first = first or error
    if first is not None:
        line = lines[unread[0]] if lines is not None else unread[0] + 2
        where = f"{source}, row {unread[0]} (counted from 0), line {line}"
        reason = str(first)
        if len(unread) > 1:
            reason = f"{reason.rstrip('.')}. Nor can {describe_rows(unread[1:])} be read."
        raise MoleculeFileError(f"{where}: {reason}") from None
    return graphs


def _bond_graph(text: Any) -> Graph:
    words = text.split(maxsplit=1) if isinstance(text, str) else []
    if len(words) > 1 and not words[1].startswith("|"):
        # RDKit takes what follows a blank for a name, and half a molecule for the whole.
        raise InvalidGraphError(
            f"the SMILES string {text[:100]!r} has a blank inside; if a name follows it, give names a column of their own."
        )
    try:
        return Graph.from_smiles(text)
    except (ValueError, TypeError) as error:
        raise InvalidGraphError(str(error)) from None


def _table(path: Path) -> TableFile:
    try:
        # A file of another name was called a table by whoever reads it.
        return read_any_table(path)
    except TableFileError as error:
        raise MoleculeFileError(str(error)) from None


def _listed(names: list[str], most: int = 20) -> str:
    return ", ".join(name[:40] for name in names[:most]) + (", ..." if len(names) > most else "")


def _property(table: TableFile, at: int) -> np.ndarray:
    """A column, where cells that are neither numbers nor missing stay text in a column of numbers."""
    values = table.frame.iloc[:, at].to_numpy()
    if values.dtype.kind != "f":
        return values
    cells = table.filled(str(table.frame.columns[at]))
    unread = [k for k in np.flatnonzero(np.isnan(values)).tolist() if not is_missing(cells[k])]
    if unread:
        values = values.astype(object)
        for k in unread:
            values[k] = cells[k]
    return values
