"""Audits of files, and what an audit writes: audit.csv, report.html, summary.json and a gate, all of them or none."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from mislabel._common.atomic_files import atomic_folder, atomic_write
from mislabel.auditing.gate_files import FILES, KeptGate, write_files
from mislabel.auditing.summary import Summary, summary
from mislabel.data.corrections import safe_cell
from mislabel.data.table_files import bare_name, similar_file
from mislabel.errors import InvalidParameterError, TableFileError
from mislabel.report.content import Source
from mislabel.report.findings import Findings
from mislabel.report.html import write_report

if TYPE_CHECKING:
    from mislabel.auditing.result import AuditResult, AuditResults

#: What an audit writes.
RESULTS = ("audit.csv", "report.html", "summary.json", *FILES)
#: And an audit of all columns.
CELLS = "cells.csv"
_ROWS_WRITTEN = 100_000
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f]+')


@overload
def audit_file(
    path: str | Path, label: list[str], *, out: str | Path | None = None, **options: Any
) -> AuditResults: ...
@overload
def audit_file(path: str | Path, label: str, *, out: str | Path | None = None, **options: Any) -> AuditResult: ...
def audit_file(
    path: str | Path, label: str | list[str], *, out: str | Path | None = None, **options: Any
) -> AuditResult | AuditResults:
    """Audit one column of a table, or one property of a file of molecules, and write the results into the folder ``out``:
    by default, as on the command line, one with the file's name and ``-audit`` in the current folder.

    All other options, and their defaults, are those of :func:`mislabel.audit`. The result knows its ``folder`` and
    ``report_path``. Of several labels each gets a folder of its own inside ``out``.

    >>> found = audit_file("prices.csv", "price")  # doctest: +SKIP
    >>> found.report_path  # doctest: +SKIP
    PosixPath('prices-audit/report.html')
    """
    from mislabel.auditing.one_call import audit

    if not isinstance(path, str | os.PathLike):
        raise InvalidParameterError(
            f"audit_file takes the path of a file, got {type(path).__name__}: "
            "for data in Python, audit(data, label).write(folder)."
        )
    path = Path(path)
    out = default_folder(path) if out is None else Path(out)
    check_folder(path, out)
    if not isinstance(label, str):
        for folder in folders_of(list(label), out).values():
            check_folder(path, folder)
    result: AuditResult | AuditResults = audit(path, label, **options)
    result.write(out)
    return result


def default_folder(path: str | Path) -> Path:
    """Where the results of a file go: a folder with the file's name, beside no other file's results."""
    path = Path(path)
    folder = usual_folder(path)
    audited = _file_audited_in(folder)
    if audited not in (None, path.name):
        raise InvalidParameterError(
            f"the folder {folder} holds the results of {audited!r}: choose another for those of {path.name!r} with --out."
        )
    return folder


def usual_folder(path: Path) -> Path:
    """The folder with the file's name, whatever is in it."""
    return Path(f"{bare_name(path)}-audit")


def _file_audited_in(folder: Path) -> str | None:
    try:
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        return str(found["file"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def folders_of(labels: list[str], out: Path) -> dict[str, Path]:
    """A folder for the results of each label, called after it as far as a file system allows."""
    folders: dict[str, Path] = {}
    for label in labels:
        name = _NOT_IN_NAMES.sub("_", label).strip(". ")[:100] or "label"
        if name.lower() in (file.lower() for file in (*RESULTS, CELLS)):
            name += "_"
        unique, number = name, 1
        while any(unique.lower() == folder.name.lower() for folder in folders.values()):
            number += 1
            unique = f"{name} ({number})"
        folders[label] = out / unique
    return folders


def check_folder(path: Path, out: Path) -> None:
    """Refuse a folder that cannot take the results, or whose results would replace the input."""
    if not path.exists():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    if out.exists() and not out.is_dir():
        raise InvalidParameterError(f"{out} is a file; name a folder for the results.")
    for name in (*RESULTS, CELLS):
        if (out / name).exists() and os.path.samefile(path, out / name):
            raise InvalidParameterError(f"the results would overwrite {path}: choose another folder with --out.")
    parent = out
    while not parent.exists():
        parent = parent.parent
    if not os.access(parent, os.W_OK):
        raise InvalidParameterError(f"the folder {parent} cannot be written to: choose another with --out.")


def check_page(path: Path) -> Path:
    """Refuse a place where no page can be written."""
    if path.is_dir():
        raise InvalidParameterError(f"{path} is a folder: give the page a name, for example report.html in it.")
    if not path.parent.is_dir():
        raise InvalidParameterError(f"the folder {path.parent} for the page does not exist.")
    return path


def write_results(audit: Findings, source: Source, out: Path, notes: list[str], gate: KeptGate) -> None:
    """Write all files of an audit, or none."""
    with atomic_folder(out, RESULTS) as work:
        _write_csv(audit.table, work / "audit.csv")
        write_report(audit, source, work / "report.html")
        write_files(gate, work)
        text = _as_json(summary(audit, source, notes, gate.why_not))
        (work / "summary.json").write_text(text, encoding="utf-8", errors="replace")


def write_summary(found: Summary, out: Path) -> None:
    """Write the summary of several audits."""
    with atomic_write(out / "summary.json") as file:
        file.write(_as_json(found).encode("utf-8", errors="replace"))


def write_cells(table: pd.DataFrame, out: Path) -> None:
    """Write the table of cells."""
    with atomic_write(out / CELLS) as file:
        safe = table.assign(row=table["row"].map(safe_cell), column=table["column"].map(safe_cell))
        file.write(safe.to_csv(index=False).encode("utf-8", errors="replace"))


def _as_json(found: Mapping[str, Any]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    """The audit table, some rows at a time: it may be most of what memory holds."""
    for start in range(0, max(len(table), 1), _ROWS_WRITTEN):
        part = table.iloc[start : start + _ROWS_WRITTEN]
        part = part.assign(row=part["row"].map(safe_cell))
        part.to_csv(path, index=False, errors="replace", mode="a" if start else "w", header=not start)
