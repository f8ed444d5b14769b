"""The one check of labels: numbers, limits (``<0.5``) or missing, and more than two different ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from mislabel.data.column_types import plain_column
from mislabel.data.formats.cells import typed_column
from mislabel.data.number_recognition import ColumnCells, recognise_notations, units_in_words
from mislabel.data.number_text import SIGNS_OF_LIMITS, NumberOptions, is_missing, limit_in
from mislabel.data.plain_columns import cells_of, is_truth
from mislabel.errors import InvalidLabelsError, describe_rows

FloatArray = NDArray[np.float64]
#: Labels with so many different values are classes.
CLASSES = 2


def numbers_in(
    column: pd.Series,
    rows: NDArray[Any],
    what: str,
    *,
    cells: Sequence[str] | None = None,
    counted: str = "",
    numbers: NumberOptions | None = None,
    limits: bool = False,
) -> FloatArray:
    """A column of labels, or of their errors, as numbers: NaN where missing; complains about values that are none.

    cells : the column as it is written in its file, of which some may have been read as missing since they are no numbers.
    counted : how ``rows`` are counted, for messages. numbers : the marks in numbers that stand as text.
    limits : whether ``<0.5`` is taken for its number.
    """
    _check_type(column, what)
    if cells is None and not types.is_numeric_dtype(column.dtype):
        cells = cells_of(column)
        notations, _ = recognise_notations({"label": cells}, delimiter="\t", options=numbers)
        typed = typed_column(cells, notations["label"], dates=False)[0]
    else:
        typed = column
    values = np.array(plain_column(typed, "numbers").to_numpy(dtype=float))
    gone = np.flatnonzero(np.isnan(values)) if cells is not None else np.array([], dtype=np.intp)
    bad = [k for k in gone.tolist() if cells is not None and not is_missing(cells[k])]
    if not limits and cells is not None and not bad:
        bad = np.flatnonzero(sides_of(cells)).tolist()
    if bad and cells is not None and (look := ColumnCells.of([cells[k] for k in bad])).has_mixed_units:
        raise InvalidLabelsError(
            f"the {what} column {str(column.name)!r} holds numbers in several units ({units_in_words(look.units)}): bring them "
            f"to one unit, or choose another {what}."
        )
    if bad and cells is not None:
        raise InvalidLabelsError(
            f"the {what} column {str(column.name)!r} holds {len(bad)} values that are not numbers "
            f"({describe_rows(rows[bad])}{counted}, the first is {cells[bad[0]][:40]!r}): correct or empty them, or choose "
            f"another {what}."
        )
    return values


def _check_type(column: pd.Series, what: str) -> None:
    dtype = column.dtype
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        raise InvalidLabelsError(f"the {what} column {str(column.name)!r} holds dates or times; numbers are needed.")
    if types.is_complex_dtype(dtype):
        raise InvalidLabelsError(f"the {what} column {str(column.name)!r} holds complex numbers; real ones are needed.")


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as numbers, NaN where missing, and which of them are only limits.

    side : -1 for those that are at most so large (``<0.5``), 1 for at least (``>100``), 0 for all others; None where there are no
        others.
    """

    values: FloatArray
    side: NDArray[np.int8] | None = None


def checked_labels(
    column: pd.Series,
    rows: NDArray[Any],
    *,
    cells: Sequence[str] | None = None,
    counted: str = "",
    numbers: NumberOptions | None = None,
    few: bool = False,
) -> Labels:
    """The labels; refuses what is no number, and classes. See :func:`numbers_in`.

    few : whether these are a few of many labels, of which two different values say nothing.
    """
    if is_truth(column, cells):
        raise classes(str(column.name), "holds true and false")
    words = sorted(_words(column, cells), key=str.casefold)
    if len({word.casefold() for word in words}) == CLASSES:
        raise classes(str(column.name), f"holds words ({words[0][:40]!r} and {words[-1][:40]!r})")
    labels = numbers_in(column, rows, "label", cells=cells, counted=counted, numbers=numbers, limits=True)
    if not few:
        check_not_classes(labels, str(column.name))
    if cells is None and types.is_numeric_dtype(column.dtype):
        return Labels(labels)
    side = sides_of(cells_of(column) if cells is None else cells)
    return Labels(labels, side if side.any() else None)


def sides_of(cells: Sequence[str]) -> NDArray[np.int8]:
    """-1 for cells like ``<0.5``, 1 for ``> 100``, 0 for all others."""
    found = np.zeros(len(cells), dtype=np.int8)
    for k in [k for k, cell in enumerate(cells) if cell.lstrip()[:1] in SIGNS_OF_LIMITS]:
        found[k] = limit_in(cells[k])[0]
    return found


def check_not_classes(labels: FloatArray, name: str) -> None:
    """Refuse labels of which there are two different values only."""
    known = labels[np.isfinite(labels)]
    different = np.unique(known)
    if different.size == CLASSES and known.size > CLASSES:
        raise classes(name, f"has two different values only ({different[0]:g} and {different[1]:g})")


def classes(name: str, found: str) -> InvalidLabelsError:
    """The error for labels that are classes, and how that was ``found``."""
    return InvalidLabelsError(
        f"the label {name!r} {found}: these are classes, and mislabel checks measured quantities. For wrong classes use "
        "a tool for classification, for example cleanlab's find_label_issues; or choose another label."
    )


def _words(column: pd.Series, cells: Sequence[str] | None) -> set[str]:
    """The different words of a column in which no cell holds a digit; none of any other column."""
    if types.is_numeric_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype):
        return set()
    filled = {cell.strip() for cell in (cells_of(column) if cells is None else cells) if not is_missing(cell)}
    return set() if any(character.isdigit() for cell in filled for character in cell) else filled
