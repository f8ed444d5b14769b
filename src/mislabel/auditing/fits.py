"""Which kind of audit it is: of a table, of molecules, of a table in a memory budget, of rows on workers; each with its fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mislabel import kernels
from mislabel._common.progress import ProgressReporter
from mislabel.auditing.assemble import Fitted
from mislabel.auditing.beside import beside_rows
from mislabel.auditing.dask_tables import DaskTable
from mislabel.auditing.inputs import Prepared
from mislabel.auditing.molecules import kernel_of_objects, smiles_column
from mislabel.auditing.request import Request
from mislabel.auditing.table_features import TableFeatures, named_columns, picks_columns, types_of
from mislabel.data.columns import choose_features
from mislabel.data.labels import FloatArray
from mislabel.data.large_tables import LargeTable, encode_pieces, learn_features
from mislabel.data.molecules import MoleculeSet, bond_graphs
from mislabel.data.plain_columns import PlainColumns
from mislabel.data.tables import FeatureEncoder, nothing_left
from mislabel.errors import InvalidParameterError
from mislabel.estimators import rank_plan
from mislabel.estimators.process import CONSTANT
from mislabel.estimators.regressor import LabelNoiseRegressor
from mislabel.estimators.validation import memory_budget
from mislabel.kernels.adapters import compares_objects


def fitted_to(prepared: Prepared) -> Fitted:
    """Fit the model that suits what was prepared."""
    frame, request = prepared.frame, prepared.request
    if request.beside.judges_alone and prepared.objects is None and not request.candidates(frame):
        return Fitted(fitted_model(request, _no_features(prepared), prepared), frame, [])
    if isinstance(frame, LargeTable):
        return _fit_in_budget(prepared, frame)
    if isinstance(frame, DaskTable):
        return _fit_on_workers(prepared, frame)
    if prepared.objects is not None:
        return _fit_objects(prepared)
    assert isinstance(frame, pd.DataFrame)
    smiles = None if request.beside.judges_alone else smiles_column(frame, request)
    if smiles is not None:
        return _fit_smiles(prepared, frame, smiles)
    return _fit_table(prepared, frame)


def fitted_model(
    request: Request, points: Any, prepared: Prepared, *, client: Any = None, columns: Any = None, **changed: Any
) -> LabelNoiseRegressor:
    """The one place where a model is made and fitted; ``changed`` are parameters that the kind of audit decides.

    columns : of the table, for a mean model that picks them by name.
    """
    kernel = None if isinstance(request.kernel, str) and request.kernel in ("auto", "table") else request.kernel
    beside = beside_rows(prepared)
    parameters = {**request.model, "kernel": kernel, **changed}
    if request.beside.judges_alone:
        parameters["kernel"] = CONSTANT
    labels = pd.Series(prepared.labels, index=pd.Index(prepared.rows), name=request.label)
    return LabelNoiseRegressor(**parameters).fit(
        points,
        labels,
        y_err=beside.errors,
        censored=beside.side,
        predictions=beside.predictions,
        groups=beside.groups,
        mean_weights=beside.sample_weight,
        mean_features=columns,
        known_right=None if prepared.remembered is None else prepared.remembered.right,
        client=client,
    )


def _fit_table(prepared: Prepared, frame: pd.DataFrame) -> Fitted:
    request = prepared.request
    names = request.candidates(frame)
    candidates = frame[names]
    client, note = _client_for(request, prepared.labels)
    learned = PlainColumns.of(candidates, request.numbers, typed=prepared.typed)
    plain, unread = learned.apply(candidates)
    used, left_out = choose_features(plain, prepared.labels, names, asked_for=prepared.asked_for)
    notes = [*learned.notes, *unread, *note]
    if not used and request.beside.judges_alone:
        return Fitted(fitted_model(request, _no_features(prepared), prepared), plain[used], used, left_out, notes)
    if not used:
        raise nothing_left(left_out)
    encoded, encoder = FeatureEncoder.of(plain[used].set_axis(pd.Index(prepared.rows), axis=0))
    columns = named_columns(plain[used]) if picks_columns(request.mean) else None
    model = fitted_model(request, encoded, prepared, client=client, columns=columns)
    model.table_ = TableFeatures(learned, used, encoder, None if columns is None else types_of(columns))
    return Fitted(model, plain[used], used, left_out, notes)


def _no_features(prepared: Prepared) -> FloatArray:
    """Rows that nothing is known of but their labels and what was given beside them."""
    return np.zeros((prepared.labels.size, 0))


def _client_for(request: Request, labels: np.ndarray) -> tuple[Any, list[str]]:
    """The client, where a fit on its workers gives what a fit here would give; else None, and the reason."""
    most = max((limit for limit, _ in rank_plan.BLOCK_SIZES), default=0)
    if request.client is None:
        return None, []
    if labels.size <= most:
        return None, [
            f"fitted in this process: up to {most:,} rows that is as fast, and keeps exact blocks of similar rows."
        ]
    return request.client, []


def _fit_in_budget(prepared: Prepared, table: LargeTable) -> Fitted:
    """A table that does not fit into memory: features and the factor of the kernel are kept in temporary files."""
    request = prepared.request
    if isinstance(request.kernel, str) and request.kernel not in ("auto", "table"):
        raise InvalidParameterError(
            f"a memory budget goes with tables of features, not with the kernel {request.kernel}."
        )
    budget = memory_budget(request.memory) or 0.0
    if request.wants_mean:
        raise InvalidParameterError(
            f"the mean model {request.mean!r} needs the whole table in memory: leave the memory budget out, or use mean 'none'."
        )
    with ProgressReporter(request.model["verbose"]) as progress:
        progress("looking at rows spread over the file", 0.05)
        encoder, used, left_out = learn_features(
            table, prepared.labels, request.candidates(table), asked_for=prepared.asked_for
        )
        encoded = encode_pieces(table, encoder, used, progress)
    rank = request.model["rank"]
    changed = {"mean": None, "rank": "auto" if rank is None else rank, "storage": "file", "memory": request.memory}
    note = (
        f"read piece by piece in a memory budget of {budget / 1e9:.3g} GB: columns were judged and encoded by rows spread "
        "over the file, and the Gaussian process works without a mean model."
    )
    return Fitted(fitted_model(request, encoded, prepared, **changed), table, used, left_out, [note])


def _fit_on_workers(prepared: Prepared, table: DaskTable) -> Fitted:
    """A dask dataframe that does not fit into the memory of this machine."""
    request = prepared.request
    if compares_objects(request.kernel) or (
        isinstance(request.kernel, str) and request.kernel not in ("auto", "table")
    ):
        raise InvalidParameterError("a table on workers is compared by its features: leave the kernel out.")
    if request.wants_mean:
        raise InvalidParameterError(
            f"the mean model {request.mean!r} needs the whole table in memory: use mean 'none'."
        )
    encoder, used, left_out = learn_features(
        table, prepared.labels, request.candidates(table), asked_for=prepared.asked_for
    )
    points = table.encoded(encoder, used)
    model = fitted_model(request, points, prepared, client=request.client, mean=None)
    note = (
        "the table stayed on the workers: columns were judged and encoded by rows spread over it, and the Gaussian process "
        "works without a mean model."
    )
    return Fitted(model, table, used, left_out, [note])


def _fit_objects(prepared: Prepared, notes: tuple[str, ...] = ()) -> Fitted:
    """Molecules, graphs, other objects, or a kernel matrix."""
    request, frame = prepared.request, prepared.frame
    if request.client is not None:
        raise InvalidParameterError(
            "dask works on tables; for molecules compute the similarities with mislabel.distributed first."
        )
    request.refuse(prepared.source.name, ["mean"])
    if request.beside.groups is not None or request.beside.sample_weight is not None:
        raise InvalidParameterError(
            "groups and sample_weight are for mean models, which go with tables of features, not with molecules or other objects."
        )
    used = request.candidates(frame)
    if request.beside.judges_alone:
        return Fitted(fitted_model(request, _no_features(prepared), prepared, mean=None), frame, used)
    given = beside_rows(prepared).predictions
    explained = prepared.labels if given is None else prepared.labels - given
    kernel, chosen = kernel_of_objects(prepared.objects, explained, request.kernel, prepared.source.name)
    model = fitted_model(request, prepared.objects, prepared, kernel=kernel, mean=None)
    return Fitted(model, frame, used, notes=[*notes, *chosen])


def _fit_smiles(prepared: Prepared, frame: pd.DataFrame, smiles: str) -> Fitted:
    """The rows of a table, compared by the SMILES of one column."""
    request = prepared.request
    graphs = bond_graphs(frame[smiles], str(prepared.source.name))
    molecules = MoleculeSet(graphs, {request.label: prepared.labels}, source=prepared.source.name)
    kernel = request.kernel if compares_objects(request.kernel) else kernels.bond_kernel()
    note = f"molecules were compared by the SMILES in column {smiles!r}; other columns were not used."
    prepared = replace(prepared, request=replace(request, kernel=kernel), objects=molecules)
    return _fit_objects(prepared, (note,))
