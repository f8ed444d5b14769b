"""What commands print: findings, warnings and errors, as plain lines."""

from __future__ import annotations

import argparse
import sys
from typing import Any

#: What a wrong usage or an unusable file exits with.
FAILED = 2


def tell(found: Any, options: argparse.Namespace) -> None:
    """Print what an audit, or one of several labels, found: three lines of words, or the summary as JSON."""
    import json

    if options.json:
        print(json.dumps(found.summary, ensure_ascii=True, allow_nan=False))
        return
    if options.quiet:
        return
    if "audits" not in found.summary:
        _tell_one(found, options.command == "audit")
        return
    if "cells" in found.summary:
        _tell_cells(found)
        return
    for label, result in found.items():
        print(safe(f"Label {label!r}:"))
        _tell_one(result, True)


def _tell_cells(found: Any) -> None:
    cells = found.summary["cells"]
    for note in cells["notes"]:
        print(safe(f"Note: {note}"), file=sys.stderr)
    for line in cells["summary"]:
        print(safe(line))
    print(
        safe(f"All cells are in {found.folder / 'cells.csv'}, each column has a page in a folder of its own"),
        file=sys.stderr,
    )


def _tell_one(found: Any, reviewed: bool) -> None:
    from mislabel.report.words import set_aside_line

    summary = found.summary
    for item in summary["columns"]["left_out"]:
        print(safe(f"Column {item['column']!r} was left out: {item['reason']}."), file=sys.stderr)
    for note in summary["notes"]:
        print(safe(f"Note: {note}"), file=sys.stderr)
    if summary["no_gate"]:
        print(safe(f"Note: {summary['no_gate']}"), file=sys.stderr)
    if found.model.set_aside_reason_:
        print(safe(f"Note: {set_aside_line(found.findings)}"), file=sys.stderr)
    print(safe(summary["model"]["words"]), file=sys.stderr)
    for line in summary["summary"]:
        print(safe(line))
    if reviewed:
        print(safe(f"Review it in {found.report_path}"), file=sys.stderr)


def safe(text: str) -> str:
    """One line without control characters, whatever a file put into it; characters the terminal lacks are escaped."""
    from mislabel.report.plain_words import plain_text

    line = plain_text(text, 2000)
    encoding = sys.stdout.encoding or "utf-8"
    return line.encode(encoding, errors="backslashreplace").decode(encoding)


def fail(message: str) -> int:
    """Say what went wrong, and the exit code for it."""
    print(f"mislabel: {safe(message)}", file=sys.stderr)
    return FAILED


class WarningsInWords:
    """Warnings of mislabel as one plain line each, all others as silence."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __enter__(self) -> None:
        import warnings

        self._catch = warnings.catch_warnings(record=True)
        self._caught = self._catch.__enter__()
        warnings.simplefilter("always")

    def __exit__(self, *exception: Any) -> None:
        from mislabel.errors import MislabelWarning

        self._catch.__exit__(*exception)
        told: set[str] = set()
        for warning in self._caught or []:
            message = str(warning.message)
            if issubclass(warning.category, MislabelWarning) and message not in told and not self._quiet:
                print(f"Warning: {safe(message)}", file=sys.stderr)
                told.add(message)
