"""The command line: parse, call, print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``mislabel`` command."""
    parser = argparse.ArgumentParser(
        prog="mislabel", description="Find and correct wrong real-valued labels in regression data."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="find planted errors in a shipped table")
    demo.add_argument("--fdr", type=float, default=0.05, help="false discovery rate (default: 0.05)")
    demo.add_argument("--quiet", action="store_true", help="no progress")
    demo.add_argument("--out", default="mislabel-demo", help="folder for audit.csv (default: %(default)s)")
    options = parser.parse_args(arguments)
    from mislabel.errors import MislabelError

    try:
        return run_demo(options.fdr, options.out, options.quiet)
    except MislabelError as error:
        print(f"mislabel: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mislabel: interrupted", file=sys.stderr)
        return 130


def run_demo(fdr: float, folder: str, quiet: bool) -> int:
    """Audit the shipped table, print the top of the audit and how many planted errors were found."""
    from pathlib import Path

    import pandas as pd

    from mislabel import audit
    from mislabel.data import load_example_table

    example = load_example_table()
    size = len(example.frame)
    print(f"Auditing the column {example.label!r} of {size} simulated heat-pump tests ...", flush=True)
    table = audit(example.frame, example.label, fdr, id=example.id, verbose=0 if quiet else 1)
    planted = set(example.frame.loc[example.planted, example.id])
    table["planted"] = table["row"].isin(planted)
    shown = ["row", "label", "expected", "expected_low", "expected_high", "suggested_label", "z", "q_value", "planted"]
    with pd.option_context("display.width", 160, "display.max_columns", 20, "display.float_format", "{:.3g}".format):
        print(table.loc[table["suspect"], shown].head(20).to_string(index=False))
    suspects = table[table["suspect"]]
    found = int(suspects["planted"].sum())
    worst = suspects.iloc[0] if len(suspects) else None
    print(f"\n{len(suspects)} of {size} labels look wrong at a false discovery rate of {100 * fdr:g} %.")
    if worst is not None:
        half = (worst.expected_high - worst.expected_low) / 2
        print(f"The worst is row {worst.row}: {worst.label:.3g}, expected {worst.expected:.3g} ± {half:.2g}.")
    print(
        f"Of {len(planted)} planted errors {found} were found and {len(planted) - found} missed; "
        f"{len(suspects) - found} of the suspects were clean."
    )
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    target = path / "audit.csv"
    partial = path / "audit.csv.part"
    table.to_csv(partial, index=False)
    partial.replace(target)
    print(f"The whole audit is in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
