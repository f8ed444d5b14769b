"""``mislabel apply``: write a cleaned copy of a file."""

from __future__ import annotations

import argparse
from typing import Any

from mislabel.cli.spoken import safe

APPLY_HELP = """\
Writes a copy of FILE with the decisions that were exported from the report: corrected labels, dropped rows. All other
cells stay as they were. FILE must be the very file that was audited; it is never changed. Beside CLEANED its provenance is
written, CLEANED.provenance.json: who changed which label, when, on what evidence, from which file and audit.
"""


def add_apply(commands: Any) -> None:
    """Describe the command and its options."""
    apply = commands.add_parser(
        "apply", help="write a cleaned copy of a file from reviewed decisions", description=APPLY_HELP
    )
    apply.add_argument("file", metavar="FILE", help="the file that was audited")
    apply.add_argument("decisions", metavar="DECISIONS", help="decisions.json, exported from the report")
    apply.add_argument("-o", "--output", required=True, metavar="CLEANED", help="the cleaned file to write")
    apply.add_argument("--trail", action="store_true", help="add columns that tell what was done to which row")
    apply.add_argument("--reviewer", metavar="NAME", help="who decided, for the provenance (default: as DECISIONS say)")
    apply.add_argument("--overwrite", action="store_true", help="replace CLEANED if it exists (never FILE itself)")
    apply.add_argument("--json", action="store_true", help="print the result as JSON")
    apply.add_argument("--quiet", action="store_true", help="print nothing")
    apply.set_defaults(run=run_apply)


def run_apply(options: argparse.Namespace) -> int:
    """``mislabel apply``."""
    import json

    from mislabel.auditing.applying import apply_file
    from mislabel.report.plain_words import count

    done = apply_file(
        options.file,
        options.decisions,
        options.output,
        trail=options.trail,
        overwrite=options.overwrite,
        reviewer=options.reviewer,
    )
    if options.json:
        counts = {"corrected": done.corrected, "dropped": done.dropped, "kept": done.kept}
        print(json.dumps({"file": str(done.target), "provenance": str(done.provenance), **counts}))
    elif not options.quiet:
        told = [f"{count(done.corrected, 'label')} corrected", f"{count(done.dropped, 'row')} dropped"]
        print(safe(f"{done.target}: {', '.join(told)}, {count(done.kept, 'label')} kept."))
        print(safe(f"Who changed what, and on what evidence: {done.provenance.name}"))
    return 0
