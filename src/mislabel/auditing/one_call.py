"""The audit in one call: the same from Python, the command line and Dask."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from mislabel.auditing.assemble import assemble
from mislabel.auditing.cells import audit_all, wants_all
from mislabel.auditing.contents import UNNAMED
from mislabel.auditing.earlier_decisions import read_earlier, remember
from mislabel.auditing.fits import fitted_to
from mislabel.auditing.groups import check_groups, offered_groups, with_groups
from mislabel.auditing.inputs import prepare
from mislabel.auditing.request import Beside, Request
from mislabel.auditing.result import AuditResult, AuditResults
from mislabel.data.formats.contract import ReadOptions
from mislabel.errors import InvalidParameterError

#: What may hold the names of several columns.
_LISTS = (list, tuple, pd.Index)


def audit(
    data: Any,
    label: Any = None,
    fdr: float = 0.05,
    *,
    y: Any = None,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    y_err: Any = None,
    label_error: Any = None,
    predictions: Any = None,
    prediction_std: Any = None,
    process_on_residuals: bool = False,
    groups: Any = None,
    group: Any = None,
    sample_weight: Any = None,
    censored: Any = None,
    decisions: Any = None,
    kernel: Any = "auto",
    sheet: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    header: int | str | Sequence[int] | None = None,
    skip: int | None = None,
    na: str | Sequence[str] | None = None,
    client: Any = None,
    memory: str | float | None = None,
    score: str = "odds",
    threshold: str = "fdr",
    cutoff: float | None = None,
    confidence: float = 0.95,
    mean: Any = "auto",
    label_transform: str = "auto",
    row_noise: str = "auto",
    cv: Any = None,
    rank: int | str | None = "auto",
    missing: str = "predict",
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int | None = None,
    **options: Any,
) -> Any:
    """Find the wrong labels in regression data.

    Parameters
    ----------
    data : the path of a file (CSV, TSV, Parquet, Excel, xyz, extxyz, sdf); a frame of any kind (pandas, polars, pyarrow,
        dask, ...); features as an array or a frame; a MoleculeSet, or a list of molecules or graphs.
    label : the column, or property, to check; a list of names for one audit each; "all" for every column of measured
        quantities against all others, which says which cells of the table are wrong; or, beside features or a list of
        molecules, the labels themselves (also as ``y=``).
    fdr : expected fraction of clean labels among those called suspect.
    id : column with row ids; else the dataframe's index, or positions.
    drop, features : columns to leave out, or the only ones to use.
    y_err, label_error : known standard deviations of the labels: an array, or the name of a column. Two names for one thing.
    predictions, prediction_std : out-of-fold predictions of your own model, which are then what labels are judged by, and
        their standard deviations where known: arrays, or names of columns.
    process_on_residuals : whether a Gaussian process corrects these predictions first.
    groups, sample_weight : honoured when a mean model is cross-fitted: rows of one group are predicted by models that have
        seen none of it, and rows weigh as much. Arrays, or names of columns, which then are no features.
    group : what may be wrong as a whole: the batch, instrument, operator, file or paper that a row comes from, an array or the
        name of a column, which then is no feature (but for lists of names, which groups share). Each group is judged by models
        that have seen none of it: see ``result.groups``. Mean models are cross-fitted by it, unless ``groups`` says otherwise.
    censored : for each label "<" if it is an upper limit, ">" if it is a lower one, "=" or nothing if it is exact: an array, or
        the name of a column. Labels written like "<0.5" or "> 100" say so themselves.
    decisions : earlier ones, as exported from the page or as :attr:`AuditResult.decisions`: a path, a dict, or a list of them.
        What was decided is known to the fit and not asked for again; rows are found again by their ids or by what they hold.
    kernel : "auto", "table", "bonds" (SMILES), "extensive", "intensive" (three-dimensional molecules), "precomputed", or
        any kernel.
    sheet, decimal, thousands : how to read a file: the sheet of a workbook, and the marks in numbers where they are in doubt.
    header, skip, na : more of that: the row of the header as a spreadsheet counts (3, "3-4" or "none"), how many rows stand
        before the table, and further texts, or numbers, that stand for no value.
    client : of dask; its workers fit tables of more than 200,000 rows, and hold those that do not fit here.
    memory : budget like "4GB", in which a Parquet file is read piece by piece.
    score, threshold, cutoff, confidence : see :meth:`LabelNoiseRegressor.audit`.
    mean, label_transform, row_noise, cv, rank, missing, random_state, n_jobs : see :class:`LabelNoiseRegressor`; the mean
        model, the scale of the labels, how noise depends on the row and the rank are chosen, and missing labels are filled in,
        unless you say otherwise; a rank may also be "exact". As ``mean``, a pipeline that may pick columns by name (with a
        ColumnTransformer, a FunctionTransformer, skrub's transformers or your own) gets the table's columns, in plain types.
    verbose : 1 shows progress, 0 does not; None does on a terminal or in a notebook, when the work is long.
    options : further parameters of :class:`LabelNoiseRegressor`.

    Returns
    -------
    AuditResult, which behaves like its table; AuditResults, one by label, where several labels are named; of "all" these have
    a table of ``cells``, too.

    Examples
    --------
    >>> from mislabel import audit
    >>> from mislabel.data.examples import load_example_table
    >>> result = audit(load_example_table().frame, "power_kw", id="test_id", mean="none")
    >>> bool(result.suspects["suspect"].all())
    True
    >>> cleaned = result.apply()  # every suspect gets its suggestion
    """
    labels, names = _labels_and_names(data, label, y)
    if y_err is not None and label_error is not None:
        raise InvalidParameterError("y_err and label_error are two names for the same thing: give one of them.")
    parameters = {
        "mean": mean,
        "label_transform": label_transform,
        "row_noise": row_noise,
        "cv": cv,
        "rank": None if isinstance(rank, str) and rank == "exact" else rank,
        "missing": missing,
        "random_state": random_state,
    }
    request = Request(
        names if isinstance(names, str) else names[0],
        fdr,
        None if id is None else str(id),
        tuple(str(name) for name in _several(drop)),
        None if features is None else tuple(dict.fromkeys(str(name) for name in _several(features))),
        label_error if y_err is None else y_err,
        kernel,
        ReadOptions.stated(sheet=sheet, decimal=decimal, thousands=thousands, header=header, skip=skip, na=na),
        client,
        memory,
        {"score": score, "threshold": threshold, "cutoff": cutoff, "confidence": confidence},
        {**parameters, "n_jobs": n_jobs, "verbose": verbose, **options},
        Beside(predictions, prediction_std, groups, group, sample_weight, process_on_residuals, censored),
        decisions=read_earlier(decisions, names if isinstance(names, list) else None),
    )
    if wants_all(data, names):
        return audit_all(data, request)
    if isinstance(names, list):
        if len(names) > 1:
            request.check_several()
        return AuditResults({name: _audit(data, None, request.with_label(name)) for name in names})
    return _audit(data, labels, request)


def _audit(data: Any, labels: Any, request: Request) -> AuditResult:
    prepared = remember(prepare(data, labels, request))
    check_groups(prepared)
    fitted = fitted_to(prepared)
    found = assemble(prepared, fitted)
    notes = [*prepared.notes, *fitted.notes, *offered_groups(prepared, fitted, found)]
    if prepared.source.is_file and prepared.source.why_not is not None:
        notes.append(prepared.source.why_not)
    if prepared.remembered is not None:
        notes += prepared.remembered.notes()
    # What was decided is about these rows, and no others.
    request = replace(prepared.request, decisions=())
    return AuditResult(with_groups(found, prepared, fitted), prepared.source, prepared.given, notes, request)


def _labels_and_names(data: Any, label: Any, y: Any) -> tuple[Any, str | list[str]]:
    """Labels, where they are passed themselves, else the name of their column, or a list of names."""
    if y is not None:
        if label is not None:
            raise InvalidParameterError("label and y are two names for the same labels: give one of them.")
        return y, UNNAMED
    if label is None or (isinstance(label, _LISTS) and not len(label)):
        raise InvalidParameterError(
            "which labels? Name their column, audit(frame, 'price'), or pass them, audit(X, y)."
        )
    if isinstance(label, str) or not hasattr(label, "__len__") or _is_column(data, label):
        return None, str(label)
    if isinstance(label, _LISTS) and (all(isinstance(name, str) for name in label) or _are_columns(data, label)):
        return None, list(dict.fromkeys(str(name) for name in label))
    return label, UNNAMED


def _is_column(data: Any, label: Any) -> bool:
    """Whether a tuple is the name of one column, as in a table with several rows of names."""
    return isinstance(label, tuple) and isinstance(data, pd.DataFrame) and label in data.columns


def _are_columns(data: Any, label: Any) -> bool:
    """Whether things that are no text are names of columns, rather than one label per row."""
    if not isinstance(data, pd.DataFrame) or len(label) == len(data):
        return False
    return all(isinstance(name, Hashable) and name in data.columns for name in label)


def _several(names: Any) -> Any:
    """Names of columns; a single one is taken for a list of it."""
    return [names] if isinstance(names, str) or not hasattr(names, "__iter__") else names
