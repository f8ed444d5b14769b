"""``mislabel review``: the review page on this machine, with decisions saved as one goes."""

from __future__ import annotations

import argparse
from typing import Any

from mislabel.cli.spoken import safe

REVIEW_HELP = """\
Serves the page of an audit to a browser on this machine, and saves every decision at once into decisions.json beside the
page. A later review goes on where this one ended. What was saved before is kept as decisions-1.json, decisions-2.json and so
on. Nobody else can reach the page: it is served to this machine alone, at an address that cannot be guessed. Ctrl-C ends the
review.
"""


def add_review(commands: Any) -> None:
    """Describe the command and its options."""
    review = commands.add_parser(
        "review",
        help="review the suspects of an audit in a browser; decisions are saved as you go",
        description=REVIEW_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    review.add_argument("folder", metavar="FOLDER", help="folder with the results of the audit")
    review.add_argument("--open", action="store_true", help="open the page in a browser")
    review.add_argument("--port", type=_port, default=0, metavar="N", help="port to listen at (default: a free one)")
    review.set_defaults(run=run_review)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port lies between 1 and 65535, got {text!r}")
    return int(text)


def run_review(options: argparse.Namespace) -> int:
    """``mislabel review``."""
    from contextlib import suppress

    from mislabel.report.plain_words import count
    from mislabel.report.server import ReviewServer

    with ReviewServer(options.folder, options.port) as server:
        print(safe(f"Review of {server.label!r} in {server.file}: {server.url}"))
        print(safe(f"Decisions are saved in {server.kept.path} as you go; Ctrl-C ends the review."), flush=True)
        if options.open:
            import webbrowser

            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    print(safe(f"{count(server.kept.count(), 'decision')} in {server.kept.path}."))
    return 0
