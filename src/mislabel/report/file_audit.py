"""From a file to its audit: audit.csv, report.html and summary.json, all of them or none."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel import __version__, kernels
from mislabel.atomic_files import atomic_folder
from mislabel.data.corrections import safe_cell, why_not_written
from mislabel.data.formats.contract import ReadOptions, check_id
from mislabel.data.large_tables import LargeTable
from mislabel.data.molecules import READERS as MOLECULE_READERS
from mislabel.data.molecules import MoleculeSet, bond_graphs, read_molecules
from mislabel.data.number_text import is_missing
from mislabel.data.table_files import NumberOptions, TableFile, bare_name, fingerprint_of, read_table, similar_file
from mislabel.data.tables import HasColumns, check_column, numeric_column
from mislabel.errors import InvalidLabelsError, InvalidParameterError, TableFileError, describe_rows, unknown_name
from mislabel.estimators.one_call import Audit, audit_large_table, audit_molecules, audit_table_of
from mislabel.estimators.validation import memory_budget
from mislabel.kernels.graphs.molecules import is_periodic
from mislabel.report.content import Source
from mislabel.report.html import write_report
from mislabel.report.words import model_line, summary_lines, trust_lines

#: Files of three-dimensional molecules; SMILES stand in tables.
MOLECULE_SUFFIXES = tuple(f".{name}" for name in MOLECULE_READERS if name not in ("csv", "tsv", "gz"))
KERNELS = ("auto", "table", "extensive", "intensive", "bonds")
#: Properties that go with the number of atoms at least this closely are taken to be extensive.
EXTENSIVE_FROM = 0.5
#: Atomic numbers in molecules for which the more accurate kernels have their values: H, C, N, O, F, S, Cl.
ORGANIC = frozenset({1, 6, 7, 8, 9, 16, 17})
#: Molecules with more atoms are compared without regard to their electrons: levels take a time that grows with the cube.
ELECTRONS_UP_TO = 500
#: What an audit writes.
RESULTS = ("audit.csv", "report.html", "summary.json")
_SMILES_NAME = re.compile(r"(?i)smiles")
_WORST_IN_SUMMARY = 100
_ROWS_WRITTEN = 100_000


@dataclass(frozen=True)
class FileAudit:
    """An audit of a file and what was written."""

    audit: Audit
    source: Source
    folder: Path
    notes: list[str]

    @property
    def report(self) -> Path:
        """The review page."""
        return self.folder / "report.html"


def audit_file(
    path: str | Path,
    label: str,
    *,
    out: str | Path,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    label_error: str | None = None,
    fdr: float = 0.05,
    kernel: str = "auto",
    sheet: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    client: Any = None,
    memory: str | float | None = None,
    **options: Any,
) -> FileAudit:
    """Audit one column of a table, or one property of a file of molecules, and write the results into ``out``.

    ``decimal`` and ``thousands`` are the marks in numbers, where the file leaves them in doubt. With a dask ``client`` tables
    are fitted on its workers. With a ``memory`` budget a Parquet file is read piece by piece.
    """
    path, out = Path(path), Path(out)
    numbers = NumberOptions(decimal, thousands)
    check_id(label, id)
    if label_error == label:
        raise InvalidParameterError(f"column {label!r} cannot be the label and its own error.")
    features = None if features is None else list(dict.fromkeys(features))
    if kernel not in KERNELS:
        raise unknown_name("kernel", kernel, KERNELS)
    if not 0.0 < fdr < 1.0:
        raise InvalidParameterError(f"fdr must lie between 0 and 1, got {fdr!r}; 0.05 is a common choice.")
    _check_folder(path, out)
    options.setdefault("missing", "predict")
    columns = {"id": id, "drop": list(drop), "features": features, "label_error": label_error}
    if memory is not None:
        if sheet is not None:
            raise InvalidParameterError("a memory budget goes with Parquet files, which have no sheets.")
        large = LargeTable(path, ReadOptions(numbers=numbers))
        if client is not None:
            raise InvalidParameterError("a memory budget and dask exclude each other: workers hold their own rows.")
        audit, notes = _audit_large_file(large, label, columns, fdr, kernel, {**options, "memory": memory})
        source = Source(path.name, large.fingerprint, large)
    elif path.suffix.lower() in MOLECULE_SUFFIXES:
        _only_tables(client)
        given = {**columns, "sheet": sheet, "decimal": decimal, "thousands": thousands, "mean": options.get("mean")}
        _refuse_options(path, given)
        audit, source, notes = _audit_molecule_file(path, label, fdr, kernel, options)
    else:
        table = read_table(path, sheet, numbers=numbers)
        audit, notes = _audit_table_file(table, label, columns, fdr, kernel, {**options, "client": client})
        source = Source(path.name, table.fingerprint, table)
    if (reason := why_not_written(path)) is not None:
        notes.append(reason)
    _write(audit, source, out, notes)
    return FileAudit(audit, source, out, notes)


def default_folder(path: str | Path) -> Path:
    """Where the results of a file go: a folder with the file's name, beside no other file's results."""
    path = Path(path)
    folder = Path(f"{bare_name(path)}-audit")
    audited = _file_audited_in(folder)
    if audited not in (None, path.name):
        raise InvalidParameterError(
            f"the folder {folder} holds the results of {audited!r}: choose another for those of {path.name!r} with --out."
        )
    return folder


def _file_audited_in(folder: Path) -> str | None:
    try:
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        return str(found["file"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _refuse_options(path: Path, given: dict[str, Any]) -> None:
    """Complain about options that mean nothing for molecules, rather than ignore them."""
    useless = [name for name, value in given.items() if value not in (None, [], "auto", "none")]
    if useless:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in useless)
        raise InvalidParameterError(
            f"{named}: {path.name} holds molecules, for which that cannot be used yet; leave it out."
        )


def _only_tables(client: Any) -> None:
    if client is not None:
        raise InvalidParameterError(
            "--dask works on tables; for molecules compute the similarities with mislabel.distributed first."
        )


def _check_folder(path: Path, out: Path) -> None:
    if not path.exists():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    if out.exists() and not out.is_dir():
        raise InvalidParameterError(f"{out} is a file; name a folder for the results.")
    for name in RESULTS:
        if (out / name).exists() and os.path.samefile(path, out / name):
            raise InvalidParameterError(f"the results would overwrite {path}: choose another folder with --out.")
    parent = out
    while not parent.exists():
        parent = parent.parent
    if not os.access(parent, os.W_OK):
        raise InvalidParameterError(f"the folder {parent} cannot be written to: choose another with --out.")


def _audit_molecule_file(
    path: Path, label: str, fdr: float, kernel: str, options: dict[str, Any]
) -> tuple[Audit, Source, list[str]]:
    if kernel in ("table", "bonds"):
        raise InvalidParameterError(
            f"{path.name} holds three-dimensional molecules: use --kernel auto, extensive or intensive."
        )
    molecules = read_molecules(path)
    labels = molecules.labels(label)
    property = kernel
    notes = []
    if kernel == "auto":
        property, note = _extensive_or_not(molecules, labels)
        notes.append(note)
    options = {**options, "kernel": _kernel_for(molecules, property), "mean": None}
    audit = audit_molecules(molecules, label, fdr, **options)
    return audit, Source(path.name, fingerprint_of(path)), notes


def _kernel_for(molecules: MoleculeSet, property: str) -> kernels.MolecularKernel:
    """The most accurate kernel that is known to suit all the molecules."""
    if not all(ORGANIC.issuperset(np.asarray(molecule.numbers).tolist()) for molecule in molecules):
        return kernels.MolecularKernel(property=property)
    if any(is_periodic(molecule) or len(molecule) > ELECTRONS_UP_TO for molecule in molecules):
        return kernels.MolecularKernel.with_far_walk(property)
    return kernels.MolecularKernel.accurate(property)


def _extensive_or_not(molecules: MoleculeSet, labels: np.ndarray) -> tuple[str, str]:
    sizes = pd.Series([len(molecule) for molecule in molecules])
    known = pd.Series(labels)
    close = abs(float(sizes.corr(known, method="spearman"))) if sizes.nunique() > 1 else 0.0
    if close >= EXTENSIVE_FROM:
        return (
            "extensive",
            f"the label goes with the number of atoms (rank correlation {close:.2f}): taken to be extensive.",
        )
    return (
        "intensive",
        f"the label does not go with the number of atoms (rank correlation {close:.2f}): taken to be intensive.",
    )


def _audit_table_file(
    table: TableFile, label: str, columns: dict[str, Any], fdr: float, kernel: str, options: dict[str, Any]
) -> tuple[Audit, list[str]]:
    frame = table.frame
    _check_columns(frame, label, columns)
    if columns["id"] is not None:
        # Ids are names, exactly as they are written, whatever else they could be read as.
        frame = frame.assign(**{columns["id"]: pd.Series(table.written(columns["id"]), dtype=object)})
    _check_label_cells(label, frame[label], table.written(label), frame[columns["id"]] if columns["id"] else None)
    errors = columns.pop("label_error")
    smiles = _smiles_column(frame, label, columns, kernel)
    if smiles is None:
        if errors is not None:
            options = {**options, "y_err": errors}
        return audit_table_of(frame, label, fdr, **columns, **options), []
    _only_tables(options.pop("client"))
    graphs = bond_graphs(frame[smiles], str(table.path))
    molecules = MoleculeSet(graphs, {label: frame[label].to_numpy(dtype=float)}, source=str(table.path))
    known = None if errors is None else numeric_column(frame[errors], np.arange(len(frame)), "label error")
    _refuse_options(table.path, {"mean": options.get("mean")})
    options = {**options, "kernel": kernels.bond_kernel(), "mean": None, "y_err": known}
    audit = audit_molecules(molecules, label, fdr, frame=frame, id=columns["id"], **options)
    return audit, [f"molecules were compared by the SMILES in column {smiles!r}; other columns were not used."]


def _audit_large_file(
    table: LargeTable, label: str, columns: dict[str, Any], fdr: float, kernel: str, options: dict[str, Any]
) -> tuple[Audit, list[str]]:
    if kernel not in ("auto", "table"):
        raise InvalidParameterError(f"a memory budget goes with tables of features, not with --kernel {kernel}.")
    budget = memory_budget(options["memory"]) or 0.0
    _check_columns(table, label, columns)
    if columns["id"] is not None:
        table.keep_as_written(columns["id"])
    ids = table[columns["id"]] if columns["id"] is not None else None
    _check_label_cells(label, table[label], table.written(label), ids)
    errors = columns.pop("label_error")
    audit = audit_large_table(table, label, fdr, y_err=errors, **columns, **options)
    return audit, [
        f"read piece by piece in a memory budget of {budget / 1e9:.3g} GB: columns were judged and encoded by rows spread "
        "over the file, and the Gaussian process works without a mean model."
    ]


def _check_columns(frame: HasColumns, label: str, columns: dict[str, Any]) -> None:
    for name in [label, columns["id"], *columns["drop"], *(columns["features"] or ()), columns["label_error"]]:
        if name is not None:
            check_column(frame, name)


def _smiles_column(frame: pd.DataFrame, label: str, columns: dict[str, Any], kernel: str) -> str | None:
    if kernel in ("extensive", "intensive"):
        raise InvalidParameterError(
            f"--kernel {kernel} needs a file of three-dimensional molecules (xyz, extxyz, sdf)."
        )
    if kernel == "table":
        return None
    candidates = columns["features"] if columns["features"] is not None else frame.columns
    named = [
        name
        for name in candidates
        if _SMILES_NAME.search(str(name))
        and name not in (label, columns["id"], *columns["drop"])
        and not pd.api.types.is_numeric_dtype(frame[name])
    ]
    if not named and kernel == "bonds":
        raise InvalidParameterError("--kernel bonds needs a column of SMILES with 'smiles' in its name.")
    return named[0] if named else None


def _check_label_cells(label: str, column: pd.Series, cells: Sequence[str], ids: pd.Series | None) -> None:
    """Complain about label cells that are neither numbers nor empty, naming the rows."""
    if pd.api.types.is_datetime64_any_dtype(column):
        raise InvalidLabelsError(f"the label column {label!r} holds dates; labels must be numbers.")
    gone = np.flatnonzero(pd.to_numeric(column, errors="coerce").isna().to_numpy())
    bad = [k for k in gone.tolist() if not is_missing(cells[k])]
    if bad:
        rows = ids.to_numpy()[bad] if ids is not None else bad
        counted = "" if ids is not None else ", counted from 0 after the header"
        raise InvalidLabelsError(
            f"the label column {label!r} holds {len(bad)} cell{'s' if len(bad) > 1 else ''} that cannot be read as a "
            f"number ({describe_rows(rows)}{counted}; the first is {cells[bad[0]][:40]!r}): correct or empty them, or choose "
            "another label."
        )


def _write(audit: Audit, source: Source, out: Path, notes: list[str]) -> None:
    with atomic_folder(out, RESULTS) as work:
        _write_csv(audit.table, work / "audit.csv")
        write_report(audit, source, work / "report.html")
        text = json.dumps(summary(audit, source, notes), indent=1, ensure_ascii=False, allow_nan=False)
        (work / "summary.json").write_text(text + "\n", encoding="utf-8", errors="replace")


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    """The audit table, some rows at a time: it may be most of what memory holds."""
    for start in range(0, max(len(table), 1), _ROWS_WRITTEN):
        part = table.iloc[start : start + _ROWS_WRITTEN]
        part = part.assign(row=part["row"].map(safe_cell))
        part.to_csv(path, index=False, errors="replace", mode="a" if start else "w", header=not start)


def summary(audit: Audit, source: Source, notes: Sequence[str] = ()) -> dict[str, Any]:
    """What was found, for machines."""
    model = audit.model
    calibration = model.calibration_
    choice = model.mean_choice_
    worst = np.flatnonzero(audit.table["suspect"].to_numpy())[:_WORST_IN_SUMMARY]
    return {
        "mislabel": __version__,
        "file": source.name,
        "sha256": source.fingerprint,
        "read_as": source.describe(),
        "label": audit.label,
        "id": audit.id,
        "rows": len(audit.table),
        "missing_labels": int(audit.table["label"].isna().sum()),
        "copied_rows": audit.model.n_copies_,
        "suspects": audit.n_suspects,
        "fdr": audit.fdr,
        "summary": summary_lines(audit, source.decimal(audit.label)),
        "model": {
            "words": model_line(audit),
            "mean": choice.name if choice is not None else None,
            "log_density": {name: _finite(value) for name, value in choice.densities.items()} if choice else None,
            "kernel": str(model.kernel_),
            "base_noise_std": float(np.sqrt(model.base_noise_variance_)),
            "base_noise_status": model.base_noise_status_,
            "residual": _finite(model.residual_),
            "converged": model.converged_,
        },
        "trust": trust_lines(audit, source.decimal(audit.label)),
        "calibration": {
            "adjusted": calibration.adjusted,
            "noticeable": calibration.noticeable,
            "scale": calibration.scale,
            "floor_std": float(np.sqrt(calibration.floor)),
            "relative_std": float(np.sqrt(calibration.relative)),
            "degrees_of_freedom": _finite(calibration.degrees),
            "share_of_wrong_labels": calibration.wrong_fraction,
        },
        "columns": {
            "used": audit.used,
            "left_out": [{"column": item.column, "kind": item.kind, "reason": item.reason} for item in audit.left_out],
        },
        "patterns": [
            {
                "name": pattern.name,
                "words": pattern.words,
                "sentence": pattern.sentence,
                "rows": [str(row) for row in _rows_at(audit, pattern.positions)],
                "expected_by_accident": _finite(pattern.by_accident),
                "p_value": _finite(pattern.p_value),
            }
            for pattern in audit.patterns
        ],
        "worst": [
            {
                "row": str(entry.row),
                "position": int(position),
                "label": _finite(entry.label),
                "expected": _finite(entry.expected),
                "suggested": _finite(entry.suggested_label),
                "z": _finite(entry.z),
                "q_value": _finite(entry.q_value),
            }
            for position, entry in zip(audit.positions[worst], audit.table.iloc[worst].itertuples(), strict=True)
        ],
        "notes": [*notes, *source.notes],
    }


def _rows_at(audit: Audit, positions: np.ndarray) -> list[Any]:
    return audit.table["row"].to_numpy()[audit.ranks[positions]].tolist()


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
