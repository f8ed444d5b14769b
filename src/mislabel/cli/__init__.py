"""The command line: parse, call, print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from mislabel.cli.apply import add_apply
from mislabel.cli.audit import add_audit
from mislabel.cli.certify import add_certify
from mislabel.cli.check import add_check
from mislabel.cli.demo import add_demo
from mislabel.cli.reproduce import add_reproduce
from mislabel.cli.review import add_review
from mislabel.cli.spoken import fail
from mislabel.errors import MislabelError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``mislabel`` command."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except MislabelError as error:
        return fail(str(error))
    except MemoryError:
        return fail("there is not enough memory for this file.")
    except OSError as error:
        return fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
    except KeyboardInterrupt:
        kept = "what was finished is kept" if options.command == "reproduce" else "nothing was written"
        print(f"mislabel: interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    from mislabel._common.version import __version__

    parser = argparse.ArgumentParser(
        prog="mislabel",
        description="Find and correct wrong real-valued labels in regression data.",
        epilog="mislabel COMMAND --help tells more about each.",
    )
    parser.add_argument("--version", action="version", version=f"mislabel {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_audit(commands)
    add_review(commands)
    add_apply(commands)
    add_certify(commands)
    add_check(commands)
    add_demo(commands)
    add_reproduce(commands)
    return parser
