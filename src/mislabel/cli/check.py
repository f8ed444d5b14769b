"""``mislabel check``: judge new rows against accepted ones."""

from __future__ import annotations

import argparse
from typing import Any

from mislabel.cli.spoken import WarningsInWords, safe

#: What suspects exit with.
SUSPECTS = 1
CHECK_HELP = """\
Judges the rows of NEW by the model that mislabel audit kept in FOLDER, without fitting anything: each row as if it were
appended to the accepted ones. Exits with 0 where no label looks wrong, with 1 where one does, and with 2 where rows could not be
judged.
"""


def add_check(commands: Any) -> None:
    """Describe the command and its options."""
    check = commands.add_parser(
        "check",
        help="judge new rows against accepted ones",
        description=CHECK_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument(
        "files", nargs="+", metavar="NEW", help="tables with new rows and the columns of the accepted ones"
    )
    check.add_argument("--against", required=True, metavar="FOLDER", help="folder with the results of an audit")
    check.add_argument("--id", metavar="COL", help="column with names of the rows (default: that of the audit)")
    check.add_argument("--sheet", help="sheet of a workbook (default: that of the audit)")
    check.add_argument("--fdr", type=float, help="false discovery rate (default: that of the audit)")
    told = check.add_mutually_exclusive_group()
    told.add_argument("--json", action="store_true", help="print what was found as JSON, one line for each file")
    told.add_argument("--github", action="store_true", help="print suspects as annotations of a GitHub workflow")
    told.add_argument("--quiet", action="store_true", help="print nothing")
    check.set_defaults(run=run_check)


def run_check(options: argparse.Namespace) -> int:
    """``mislabel check``."""
    import sys

    from mislabel.auditing.gate import Gate

    gate, found = Gate.load(options.against), 0
    for file in options.files:
        with WarningsInWords(options.quiet):
            result = gate.check(file, fdr=options.fdr, id=options.id, sheet=options.sheet)
        if not options.quiet:
            for note in result.notes:
                print(safe(f"Note: {note}"), file=sys.stderr)
        _tell(result, options, len(options.files) > 1)
        found += not result.ok
    return SUSPECTS if found else 0


def _tell(result: Any, options: argparse.Namespace, several: bool) -> None:
    import json

    if options.json:
        print(json.dumps(result.summary, ensure_ascii=True, allow_nan=False))
    elif options.github:
        for line in result.annotations():
            print(safe(line))
    elif not options.quiet:
        first = f"{result.name}: " if several else ""
        for line in result.summary["summary"]:
            print(safe(first + line))
