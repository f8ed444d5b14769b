"""``mislabel certify``: bound the right labels among the suspects from verdicts."""

from __future__ import annotations

import argparse
from typing import Any

from mislabel.cli.options import whole_number
from mislabel.cli.spoken import safe

CERTIFY_HELP = """\
Says how many of the suspects are right labels at most, from the verdicts that were exported from the report: "keep" says
that a label is right, all else that it is wrong. The bound rests on a random sample of the suspects, which the report leads
through, and on nothing else: it holds whatever the model is worth, and after every verdict.
"""


def add_certify(commands: Any) -> None:
    """Describe the command and its options."""
    certify = commands.add_parser(
        "certify",
        help="how many of the suspects are right labels at most, from reviewed decisions",
        description=CERTIFY_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    certify.add_argument("file", metavar="FILE", help="the file that was audited")
    certify.add_argument("decisions", metavar="DECISIONS", help="decisions.json, exported from the report")
    certify.add_argument(
        "--audit", metavar="DIR", help="folder with the results of the audit (default: FILE's name with -audit)"
    )
    certify.add_argument(
        "--confidence", type=float, default=0.95, help="how sure the bound has to be (default: %(default)s)"
    )
    certify.add_argument(
        "--next", type=whole_number, default=10, metavar="N", help="rows to look at next to name (default: %(default)s)"
    )
    certify.add_argument("--json", action="store_true", help="print the result as JSON")
    certify.set_defaults(run=run_certify)


def run_certify(options: argparse.Namespace) -> int:
    """``mislabel certify``."""
    import json

    from mislabel.auditing.certify import certify_file

    found = certify_file(options.file, options.decisions, options.audit, options.confidence)
    if options.json:
        print(json.dumps(found.as_dict(options.next), ensure_ascii=True, allow_nan=False))
        return 0
    for line in found.told(options.next):
        print(safe(line))
    return 0
