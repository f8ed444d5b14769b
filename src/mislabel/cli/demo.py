"""``mislabel demo``: find planted errors in shipped data."""

from __future__ import annotations

import argparse
from typing import Any

from mislabel.cli.options import add_shared
from mislabel.cli.spoken import WarningsInWords, tell


def add_demo(commands: Any) -> None:
    """Describe the command and its options."""
    demo = commands.add_parser("demo", help="find planted errors in shipped data")
    demo.add_argument(
        "what", nargs="?", default="table", choices=["table", "molecules"], help="which data (default: table)"
    )
    demo.add_argument(
        "--out", default="mislabel-demo", metavar="DIR", help="folder for the results (default: %(default)s)"
    )
    demo.add_argument("--open", action="store_true", help="open the report in a browser")
    add_shared(demo)
    demo.set_defaults(run=run_demo)


def run_demo(options: argparse.Namespace) -> int:
    """``mislabel demo``."""
    from pathlib import Path

    from mislabel.auditing.files import audit_file
    from mislabel.data.examples import write_example

    folder = Path(options.out)
    example = write_example(options.what, folder)
    spoken = not (options.quiet or options.json)
    if spoken:
        print(f"Auditing {example.label!r} in {example.path}: {example.what}.", flush=True)
    with WarningsInWords(options.quiet):
        found = audit_file(
            example.path,
            example.label,
            id=example.id,
            out=folder,
            fdr=options.fdr,
            random_state=options.seed,
            verbose=0 if options.quiet else 1,
        )
    tell(found, options)
    if spoken:
        suspects = {k for k, suspect in enumerate(found.findings.suspect) if suspect}
        hits = len(suspects & example.planted)
        clean = len(suspects) - hits
        print(
            f"Of {len(example.planted)} planted errors {hits} were found and {len(example.planted) - hits} missed; "
            f"{clean} of the suspects {'was' if clean == 1 else 'were'} clean."
        )
        print(f"Report: {found.report_path}")
    if options.open and found.report_path is not None:
        import webbrowser

        webbrowser.open(found.report_path.resolve().as_uri())
    return 0
