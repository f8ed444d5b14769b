"""From a file to its audit: audit.csv, report.html and summary.json, all of them or none."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel import __version__
from mislabel.data.corrections import safe_cell
from mislabel.data.molecules import READERS as MOLECULE_READERS
from mislabel.data.molecules import MoleculeSet, bond_graphs, read_molecules
from mislabel.data.number_text import is_missing
from mislabel.data.table_files import TableFile, fingerprint_of, read_table, similar_file
from mislabel.data.tables import check_column
from mislabel.errors import InvalidLabelsError, InvalidParameterError, TableFileError, describe_rows, unknown_name
from mislabel.estimators.one_call import Audit, audit_molecules, audit_table_of
from mislabel.kernels import MolecularKernel, bond_kernel
from mislabel.report.content import Source
from mislabel.report.html import write_report
from mislabel.report.words import model_line, summary_lines, trust_lines

#: Files of three-dimensional molecules; SMILES stand in tables.
MOLECULE_SUFFIXES = tuple(f".{name}" for name in MOLECULE_READERS if name not in ("csv", "tsv", "gz"))
KERNELS = ("auto", "table", "extensive", "intensive", "bonds")
#: Properties that go with the number of atoms at least this closely are taken to be extensive.
EXTENSIVE_FROM = 0.5
_SMILES_NAME = re.compile(r"(?i)smiles")
_WORST_IN_SUMMARY = 100


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
    client: Any = None,
    **options: Any,
) -> FileAudit:
    """Audit one column of a table, or one property of a file of molecules, and write the results into ``out``.

    With a dask ``client`` tables are fitted on its workers.
    """
    path, out = Path(path), Path(out)
    if kernel not in KERNELS:
        raise unknown_name("kernel", kernel, KERNELS)
    if not 0.0 < fdr < 1.0:
        raise InvalidParameterError(f"fdr must lie between 0 and 1, got {fdr!r}; 0.05 is a common choice.")
    _check_folder(path, out)
    options.setdefault("missing", "predict")
    if path.suffix.lower() in MOLECULE_SUFFIXES:
        _only_tables(client)
        audit, source, notes = _audit_molecule_file(path, label, fdr, kernel, options)
    else:
        table = read_table(path, sheet)
        columns = {"id": id, "drop": list(drop), "features": features, "label_error": label_error}
        audit, notes = _audit_table_file(table, label, columns, fdr, kernel, {**options, "client": client})
        source = Source(path.name, table.fingerprint, table, sheet)
    _write(audit, source, out, notes)
    return FileAudit(audit, source, out, notes)


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
    for name in ("audit.csv", "report.html", "summary.json"):
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
    options = {**options, "kernel": MolecularKernel(property=property), "mean": None}
    audit = audit_molecules(molecules, label, fdr, **options)
    return audit, Source(path.name, fingerprint_of(path)), notes


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
    for name in [label, columns["id"], *columns["drop"], *(columns["features"] or ()), columns["label_error"]]:
        if name is not None:
            check_column(frame, name)
    _check_label_cells(table, label, columns["id"])
    errors = columns.pop("label_error")
    smiles = _smiles_column(frame, label, columns, kernel)
    if smiles is None:
        if errors is not None:
            options = {**options, "y_err": errors}
        return audit_table_of(frame, label, fdr, **columns, **options), []
    _only_tables(options.pop("client"))
    graphs = bond_graphs(frame[smiles], str(table.path))
    molecules = MoleculeSet(graphs, {label: frame[label].to_numpy(dtype=float)}, source=str(table.path))
    known = None if errors is None else frame[errors].to_numpy(dtype=float)
    options = {**options, "kernel": bond_kernel(), "mean": None, "y_err": known}
    audit = audit_molecules(molecules, label, fdr, frame=frame, id=columns["id"], **options)
    return audit, [f"molecules were compared by the SMILES in column {smiles!r}; other columns were not used."]


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


def _check_label_cells(table: TableFile, label: str, id: str | None) -> None:
    """Complain about label cells that are neither numbers nor empty, naming the rows."""
    column = table.frame[label]
    cells = table.cells.iloc[:, list(table.frame.columns).index(label)]
    text = cells.astype(object).where(cells.notna(), "").astype(str).reset_index(drop=True)
    numbers = pd.to_numeric(column, errors="coerce").reset_index(drop=True)
    bad = np.flatnonzero(numbers.isna().to_numpy() & ~text.map(is_missing).to_numpy())
    if bad.size:
        rows = table.frame[id].to_numpy()[bad] if id is not None else bad
        where = describe_rows(rows)
        counted = "" if id is not None else ", counted from 0 after the header"
        raise InvalidLabelsError(
            f"the label column {label!r} holds {bad.size} cell{'s' if bad.size > 1 else ''} that cannot be read as a "
            f"number ({where}{counted}; the first is {text.iloc[bad[0]][:40]!r}): correct or empty them, or choose "
            "another label."
        )


def _write(audit: Audit, source: Source, out: Path, notes: list[str]) -> None:
    existed = out.exists()
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".writing-", dir=out))
    try:
        csv_table = audit.table.assign(row=audit.table["row"].map(safe_cell))
        csv_table.to_csv(work / "audit.csv", index=False, errors="replace")
        write_report(audit, source, work / "report.html")
        text = json.dumps(summary(audit, source, notes), indent=1, ensure_ascii=False, allow_nan=False)
        (work / "summary.json").write_text(text + "\n", encoding="utf-8", errors="replace")
        for name in ("audit.csv", "report.html", "summary.json"):
            os.replace(work / name, out / name)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if not existed and not any(out.iterdir()):
            out.rmdir()


def summary(audit: Audit, source: Source, notes: Sequence[str] = ()) -> dict[str, Any]:
    """What was found, for machines."""
    model = audit.model
    calibration = model.calibration_
    choice = model.mean_choice_
    suspects = audit.table[audit.table["suspect"]].head(_WORST_IN_SUMMARY)
    positions = audit.positions[: len(suspects)]
    return {
        "mislabel": __version__,
        "file": source.name,
        "sha256": source.fingerprint,
        "read_as": source.table.dialect.describe() if source.table is not None and source.table.dialect else None,
        "label": audit.label,
        "id": audit.id,
        "rows": len(audit.table),
        "missing_labels": int(audit.table["label"].isna().sum()),
        "suspects": audit.n_suspects,
        "fdr": audit.fdr,
        "summary": summary_lines(audit),
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
        "trust": trust_lines(audit),
        "calibration": {
            "adjusted": calibration.adjusted,
            "scale": calibration.scale,
            "floor_std": float(np.sqrt(calibration.floor)),
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
            for position, entry in zip(positions, suspects.itertuples(), strict=True)
        ],
        "notes": [*notes, *source.notes],
    }


def _rows_at(audit: Audit, positions: np.ndarray) -> list[Any]:
    return audit.table["row"].to_numpy()[audit.ranks[positions]].tolist()


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
