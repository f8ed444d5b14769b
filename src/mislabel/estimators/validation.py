"""Checks on what the user passes in: each failure names the rows, the likely cause and the next step."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _num_samples, column_or_1d

from mislabel._common.number_kinds import is_number as is_number
from mislabel._common.number_kinds import is_whole as is_whole
from mislabel.data.labels import classes
from mislabel.data.molecules import MoleculeSet, read_molecules
from mislabel.errors import (
    InvalidFeaturesError,
    InvalidLabelsError,
    InvalidParameterError,
    KernelMatrixError,
    MemoryBudgetError,
    describe_rows,
)
from mislabel.kernels.contract import GraphKernel
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.dense import largest_asymmetry
from mislabel.linalg.mapped import let_go

#: n x n arrays of doubles that an exact fit may hold at once.
ARRAYS_HELD = 5
#: Numbers above this, and spreads below its inverse, have no square that can be calculated with.
LARGEST_VALUE = 1e100
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period, pd.Interval)
_SYMMETRY_TOLERANCE = 1e-6
_ROWS_CHECKED = 65_536
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def row_ids(X: Any, y: Any) -> np.ndarray:
    """The user's own row ids: the index of a dataframe or series, else positions."""
    for source in (X, y):
        if isinstance(source, pd.DataFrame | pd.Series):
            return source.index.to_numpy()
    try:
        return np.arange(_num_samples(X))
    except TypeError as error:
        raise InvalidFeaturesError(f"{error}. X must have one row of features for every label.") from None


def check_labels(y: Any, rows: np.ndarray, missing: str) -> FloatArray:
    """Labels as floats; NaN only where ``missing="predict"``, never infinite."""
    if missing not in ("raise", "predict"):
        raise InvalidParameterError(f"missing must be 'raise' or 'predict', got {missing!r}.")
    if y is None:
        raise InvalidLabelsError(
            "requires y to be passed, but the target y is None: LabelNoiseRegressor checks labels, so it needs them."
        )
    try:
        # A copy: labels are the fit's own. One column of a table is taken with scikit-learn's warning.
        labels = np.array(column_or_1d(numbers_of(y), warn=True), dtype=float)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InvalidLabelsError(f"{error} Labels must be numbers, one per row.") from None
    if pd.api.types.infer_dtype(np.ravel(np.asarray(y)), skipna=True) == "boolean":
        raise classes(str(getattr(y, "name", None) or "y"), "holds true and false")
    if len(rows) != labels.size:
        rows = np.arange(labels.size)  # that X and y do not belong together is said by whoever compares them
    infinite = np.flatnonzero(np.isinf(labels))
    if infinite.size:
        raise InvalidLabelsError(
            f"Input y contains infinity or a value too large for dtype('float64'). {infinite.size} labels are infinite "
            f"({describe_rows(rows[infinite])}): drop or correct them."
        )
    absent = np.flatnonzero(np.isnan(labels))
    if absent.size and missing == "raise":
        raise InvalidLabelsError(
            f"Input y contains NaN. {absent.size} labels are NaN ({describe_rows(rows[absent])}): drop them or pass "
            "missing='predict'."
        )
    present = labels.size - absent.size
    if present < 2:
        raise InvalidLabelsError(
            f"n_samples={present}: at least two labels are needed, since each is judged by the others."
        )
    return labels


def numbers_of(values: Any) -> FloatArray:
    """Anything array-like as floats: what is masked, or missing in the way of pandas, is NaN; dates are no numbers."""
    if issparse(values):
        raise ValueError("Sparse data was passed: convert it to a dense array with .toarray().")
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        return np.where(hidden, np.nan, numbers_of(np.where(hidden, values.data.dtype.type(0), values.data)))
    if isinstance(values, pd.DataFrame | pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        values = values.to_numpy(dtype=object, na_value=np.nan)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = np.where(pd.isna(array), np.nan, array)
        dates = [value for value in array.ravel() if isinstance(value, _DATES)]
        if dates:
            raise ValueError(f"{dates[0]!r} is a date or a duration.")
    if array.dtype.kind in "mM":
        raise ValueError(f"values of type {array.dtype} are dates or durations.")
    if np.iscomplexobj(array) or any(isinstance(value, complex) for value in array.ravel()[:_ROWS_CHECKED]):
        raise ValueError("Complex data not supported.")
    return array.astype(float)


def check_label_range(labels: FloatArray, present: IntArray, rows: np.ndarray) -> None:
    """Refuse labels so large, or so small, that their variances would not be numbers."""
    size = np.abs(labels[present])
    largest = float(size.max())
    if largest > LARGEST_VALUE or 0.0 < largest < 1.0 / LARGEST_VALUE:
        row = rows[present[int(np.argmax(size))]]
        kind, unit = ("large", "larger") if largest > 1.0 else ("small", "smaller")
        raise InvalidLabelsError(
            f"the labels are too {kind} to be squared: the largest is {largest:.3g} (row {row}). Express them in a {unit} unit."
        )


def seeded_generator(random_state: Any) -> np.random.RandomState:
    """The generator of all that is random, from a seed or as it is."""
    try:
        return cast("np.random.RandomState", check_random_state(random_state))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState, got {random_state!r}: {error}"
        ) from None


def molecules_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Read a molecule file where X is a path; a property's name as y is looked up in the file or set."""
    if isinstance(X, str | os.PathLike):
        X = read_molecules(Path(X))
    if isinstance(y, str):
        if not isinstance(X, MoleculeSet):
            raise InvalidLabelsError(f"y is the name {y!r}, but X is neither a molecule file nor a MoleculeSet.")
        y = X.labels(y)
    return X, y


def check_objects(X: Any, kernel: Any) -> Any:
    """Objects as a list, molecules turned into graphs once and for all."""
    if isinstance(X, np.ndarray):
        return X
    try:
        return list(kernel.graphs_of(X) if isinstance(kernel, GraphKernel) else X)
    except TypeError as error:
        if np.iterable(X):
            raise
        raise InvalidFeaturesError(f"{error}. X must be a list of what the kernel compares.") from None


def check_features(X: Any, rows: np.ndarray | None = None, least: int = 1) -> FloatArray:
    """A finite two-dimensional float array of at least so many columns."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.getmaskarray(X).any():
        hidden = np.flatnonzero(np.ma.getmaskarray(X).reshape(len(X), -1).any(axis=1))
        raise InvalidFeaturesError(
            f"{hidden.size} rows of X have masked values ({describe_rows(_named(rows, len(X))[hidden])}): fill them in "
            "(sklearn.impute) or drop those rows."
        )
    kinds = X.dtypes if isinstance(X, pd.DataFrame) else [getattr(X, "dtype", None)]
    dates = [str(kind) for kind in kinds if getattr(kind, "kind", "") in ("m", "M")]
    try:
        if dates:
            raise ValueError(f"could not convert {dates[0]} to numbers")
        features = check_array(X, dtype=np.float64, ensure_all_finite=False, ensure_min_features=least)
    except (TypeError, ValueError) as error:
        # scikit-learn wants a TypeError for what is no number at all.
        if any(words in str(error) for words in ("could not convert", "dtype", "not 'date")):
            raise InvalidFeaturesError(
                f"{error}. The features must be numbers: encode categories, dates and text first, or use "
                "mislabel.audit(frame, label=...), which does that."
            ) from None
        raise
    bad = _not_finite(features)
    if bad.size:
        names = _named(rows, len(features))
        what = "NaN" if np.isnan(features[bad[:, 0], bad[:, 1]]).any() else "infinity"
        where = describe_rows(dict.fromkeys(names[bad[:, 0]].tolist()))
        columns = sorted(set(bad[:, 1].tolist()))
        raise InvalidFeaturesError(
            f"Input X contains {what} or a value too large for dtype('float64'). {len(bad)} feature values are not finite "
            f"({where}; columns {', '.join(map(str, columns[:5]))}{', ...' if len(columns) > 5 else ''}): fill them in "
            "(sklearn.impute) or drop those rows."
        )
    _check_feature_range(features)
    return np.asarray(features)


def _named(rows: np.ndarray | None, size: int) -> np.ndarray:
    return np.arange(size) if rows is None else rows


def _check_feature_range(features: FloatArray) -> None:
    """Refuse features so large, or so close to each other, that squared distances would not be numbers."""
    low, high = np.full(features.shape[1], np.inf), np.full(features.shape[1], -np.inf)
    for start in range(0, len(features), _ROWS_CHECKED):
        some = features[start : start + _ROWS_CHECKED]
        low, high = np.minimum(low, some.min(axis=0)), np.maximum(high, some.max(axis=0))
        let_go(features)
    largest = np.maximum(np.abs(low), np.abs(high))
    bad = np.flatnonzero((largest > LARGEST_VALUE) | ((high > low) & (largest < 1.0 / LARGEST_VALUE)))
    if bad.size:
        raise InvalidFeaturesError(
            f"features are too large or too small for their distances to be calculated (column {bad[0]} goes from "
            f"{low[bad[0]]:.3g} to {high[bad[0]]:.3g}): express them in another unit, or drop values that stand for missing ones."
        )


def _not_finite(features: FloatArray) -> np.ndarray:
    """Row and column of every value that is NaN or infinite, looked for some rows at a time."""
    found = []
    for start in range(0, len(features), _ROWS_CHECKED):
        bad = np.argwhere(~np.isfinite(features[start : start + _ROWS_CHECKED]))
        found.append(bad + [start, 0])
        let_go(features)
    return np.concatenate(found)


def check_kernel_matrix(X: Any) -> FloatArray:
    """A finite, square, symmetric matrix; tiny asymmetry is averaged away."""
    try:
        matrix = check_array(X, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise KernelMatrixError(f"{error} A precomputed kernel must be a matrix of numbers.") from None
    if matrix.shape[0] != matrix.shape[1]:
        raise KernelMatrixError(
            f"a precomputed kernel must be a square matrix of all pairs of training points, got shape {matrix.shape}."
        )
    # The sum is finite if all entries are, unless they are huge.
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(matrix.sum())
    if not np.isfinite(total) and not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise KernelMatrixError(f"the kernel matrix is not finite: entry ({i}, {j}) is {matrix[i, j]}.")
    largest = float(np.max(np.abs(matrix.diagonal())))
    if largest > LARGEST_VALUE or 0.0 < largest < 1.0 / LARGEST_VALUE or not np.isfinite(total):
        raise KernelMatrixError(
            f"the kernel matrix is too large or too small to calculate with: the largest entry of its diagonal is {largest:.3g}. "
            "Multiply it by a number that brings it near one."
        )
    i, j = largest_asymmetry(matrix)
    difference = abs(matrix[i, j] - matrix[j, i])
    scale = float(np.max(np.abs(matrix.diagonal())))
    if difference > _SYMMETRY_TOLERANCE * scale:
        raise KernelMatrixError(
            f"the kernel matrix is not symmetric: entries ({i}, {j}) and ({j}, {i}) are {matrix[i, j]:.6g} and "
            f"{matrix[j, i]:.6g}. If only one triangle was filled, mirror it; if this is rounding, use (K + K.T) / 2."
        )
    if difference > 0:
        matrix = 0.5 * (matrix + matrix.T)
    return np.asarray(matrix)


def check_label_errors(y_err: Any, size: int, rows: np.ndarray) -> FloatArray:
    """Known standard deviations as variances; zero where none are given."""
    if y_err is None:
        return np.zeros(size)
    try:
        errors = numbers_of(y_err)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidLabelsError(f"{error} y_err must be numbers, one standard deviation per label.") from None
    if errors.ndim == 0:
        errors = np.full(size, float(errors))
    if errors.shape != (size,):
        raise InvalidLabelsError(
            f"y_err has shape {errors.shape}, expected one standard deviation per label ({size},)."
        )
    bad = np.flatnonzero(~((errors >= 0) & (errors <= LARGEST_VALUE)))
    if bad.size:
        raise InvalidLabelsError(
            f"{bad.size} entries of y_err are negative, NaN, infinite or above {LARGEST_VALUE:g} "
            f"({describe_rows(rows[bad])}): give standard deviations, 0 where unknown."
        )
    return errors**2


def free_memory() -> float | None:
    """Bytes that can be had without swapping; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def memory_budget(memory: Any) -> float | None:
    """Bytes that the process may hold: a number, or text like "4GB" or "500 MB"; None for no limit."""
    if memory is None:
        return None
    if isinstance(memory, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)I?B?\s*", memory.upper())
        if parts is None:
            raise InvalidParameterError(f"memory must be a number of bytes or a text like '4GB', got {memory!r}.")
        return float(parts[1]) * _UNITS[parts[2]]
    if isinstance(memory, bool) or not memory > 0:
        raise InvalidParameterError(f"memory must be a positive number of bytes or a text like '4GB', got {memory!r}.")
    return float(memory)


def held_memory() -> float:
    """Bytes that this process holds now; 0 where the system does not say."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0.0


def available_memory(memory: Any) -> float | None:
    """Bytes that may still be taken: what is free, and no more than the budget ``memory`` leaves."""
    free, budget = free_memory(), memory_budget(memory)
    if budget is None:
        return free
    left = max(budget - held_memory(), 0.0)
    return left if free is None else min(left, free)


def exact_memory(size: int) -> float:
    """Bytes that an exact fit holds at its peak."""
    return 8.0 * ARRAYS_HELD * size**2


def check_memory(size: int, available: float | None) -> None:
    """Refuse work that cannot fit into memory before allocating any of it."""
    needed = exact_memory(size)
    if available is not None and needed > available:
        fits = int(np.sqrt(available / (8 * ARRAYS_HELD)))
        raise MemoryBudgetError(
            f"an exact fit of {size} labels needs about {needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB may be used. "
            f"Pass rank='auto' for a low-rank fit, or fit at most {fits} labels at a time."
        )


#: What may be written for a label that is an upper limit, a lower limit, or exact.
SIDES: dict[Any, int] = {
    **dict.fromkeys((-1, "<", "<=", "\u2264", "left"), -1),
    **dict.fromkeys((1, ">", ">=", "\u2265", "right"), 1),
    **dict.fromkeys((0, "=", "", None), 0),
}


def check_sides(censored: Any, size: int) -> NDArray[np.int8]:
    """What is known of labels: -1 or "<" for at most so large, 1 or ">" for at least, 0, "=" or nothing for exact ones."""
    if censored is None:
        return np.zeros(size, dtype=np.int8)
    given = pd.Series(censored).astype(object)
    if given.size != size:
        raise InvalidParameterError(f"censored has {given.size} entries for {size} labels: one each is needed.")
    cells = [None if pd.isna(value) else value.strip() if isinstance(value, str) else value for value in given]
    bad = [k for k, cell in enumerate(cells) if cell not in SIDES]
    if bad:
        raise InvalidParameterError(
            f"censored must be -1 or '<' (the label is an upper limit), 1 or '>' (a lower limit), 0 or '=' (exact); got "
            f"{given.iloc[bad[0]]!r} at position {bad[0]}."
        )
    return np.array([SIDES[cell] for cell in cells], dtype=np.int8)


def check_right(known_right: Any, labels: np.ndarray) -> NDArray[np.bool_] | None:
    """Which labels are known to be right; None where none is."""
    if known_right is None:
        return None
    found = np.asarray(known_right)
    if found.dtype != bool or found.shape != labels.shape:
        raise InvalidParameterError(
            f"known_right says of each of {labels.size} labels whether it is known to be right: True or False, one each."
        )
    return found & ~np.isnan(labels) if found.any() else None
