"""Tables with a column of SMILES strings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mislabel.data.formats.molecule_set import MoleculeSet
from mislabel.data.number_text import is_missing
from mislabel.data.table_files import TableFile, read_any_table
from mislabel.errors import MoleculeFileError, TableFileError
from mislabel.kernels.graphs.graph import Graph


def read_smiles_table(path: Path, column: str | None = None) -> MoleculeSet:
    """A table with a column of SMILES (named so, unless ``column`` says otherwise); the other columns are properties."""
    path = Path(path)
    table = _table(path)
    frame = table.frame
    names = [str(name) for name in frame.columns]
    if column is None:
        named = [name for name in names if "smiles" in name.lower()]
        if not named:
            raise MoleculeFileError(f"{path} has no SMILES column; its columns are {_listed(names)}.")
        column = named[0]
    if column not in names:
        raise MoleculeFileError(f"{path} has no column {column!r}; its columns are {_listed(names)}.")
    graphs = bond_graphs(frame[column], str(path))
    properties = {name: _property(table, at) for at, name in enumerate(names) if name != column}
    return MoleculeSet(graphs, properties, source=str(path))


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
    cells = table.written(str(table.frame.columns[at]))
    unread = [k for k in np.flatnonzero(np.isnan(values)) if not is_missing(cells[k])]
    if unread:
        values = values.astype(object)
        for k in unread:
            values[k] = cells[k]
    return values


def bond_graphs(smiles: Iterable[Any], source: str) -> list[Graph]:
    """Graphs of a column of SMILES; errors name the line of the ``source`` file."""
    graphs = []
    for row, text in enumerate(smiles):
        where = f"{source}, line {row + 2}"
        words = text.split(maxsplit=1) if isinstance(text, str) else []
        if len(words) > 1 and not words[1].startswith("|"):
            # RDKit takes what follows a blank for a name, and half a molecule for the whole.
            raise MoleculeFileError(
                f"{where}: the SMILES string {text[:100]!r} has a blank inside; if a name follows it, give names a column of "
                "their own."
            )
        try:
            graphs.append(Graph.from_smiles(text))
        except (ValueError, TypeError) as error:
            raise MoleculeFileError(f"{where}: {error}") from None
    return graphs
