"""``mislabel reproduce``: the figures and the table of the paper."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

REPRODUCE_HELP = """\
Regenerates what the paper shows, checks its claims, and writes numbers and pictures into a folder.

fig1: one label judged by the others. fig2: three curves, 50 seeds. fig3: solvers compared. table1: molecules of QM7 and QM9 with
planted errors; hours, but it can be stopped at any moment and goes on where it was.
"""


def add_reproduce(commands: Any) -> None:
    """Describe the command and its options."""
    reproduce = commands.add_parser(
        "reproduce",
        help="regenerate the figures and the table of the paper",
        description=REPRODUCE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reproduce.add_argument("what", choices=["fig1", "fig2", "fig3", "table1"], help="which figure, or the table")
    reproduce.add_argument(
        "--out", default="reproduction", metavar="DIR", help="folder for the results (default: %(default)s)"
    )
    reproduce.add_argument("--seeds", type=int, metavar="N", help="fig2 only: samples of each example (default: 50)")
    reproduce.add_argument("--quiet", action="store_true", help="no progress, no words")
    table = reproduce.add_argument_group("table1 only")
    table.add_argument("--data", metavar="DIR", help="folder with qm7.npz (or qm7.mat) and qm9_random8000.npz")
    table.add_argument("--work", default="grams", metavar="DIR", help="folder for the similarity matrices")
    table.add_argument("--sets", nargs="+", metavar="SET", help="qm7-energy, qm9-energy, qm9-polarizability, qm9-gap")
    table.add_argument("--rates", nargs="+", type=int, metavar="PERCENT", help="noise rates (default: 10 30 50 70 90)")
    table.add_argument("--levels", nargs="+", type=int, metavar="PERCENT", help="noise levels (default: 10 50 100 200)")
    table.add_argument("--folds", nargs="+", type=int, metavar="K", help="folds (default: 0 1 2 3 4)")
    table.add_argument("--limit", type=int, metavar="N", help="use only this many molecules")
    table.add_argument(
        "--noisy-kernel",
        action="store_true",
        help="four rows of each set with the graph kernel, too, chosen on noisy labels (default folds: 0)",
    )
    reproduce.set_defaults(run=run_reproduce)


def run_reproduce(options: argparse.Namespace) -> int:
    """``mislabel reproduce``."""
    from pathlib import Path

    out = Path(options.out)
    if options.what == "table1":
        return _run_table1(options, out)
    from importlib import import_module

    number = options.what[-1]
    run = getattr(import_module(f"mislabel.reproduce.figure{number}"), f"run_figure{number}")
    figures = run(out, seeds=options.seeds) if options.what == "fig2" and options.seeds else run(out)
    failed = [item["claim"] for item in figures["claims"] if not item["holds"]]
    if not options.quiet:
        for item in figures["claims"]:
            print(f"{'holds' if item['holds'] else 'FAILS'}: {item['claim']}")
        print(f"Written: {out / options.what}.svg and .json")
    return 1 if failed else 0


def _run_table1(options: argparse.Namespace, out: Any) -> int:
    from pathlib import Path

    from mislabel.reproduce.cells import cells_of, check_choices, noisy_kernel_cells, read_cells
    from mislabel.reproduce.table1 import run_noisy_kernel, run_table1
    from mislabel.reproduce.table1_report import collect, tally, write_table

    chosen = {name: getattr(options, name) for name in ("sets", "rates", "levels", "folds")}
    chosen = {name: values for name, values in chosen.items() if values is not None}
    check_choices(**chosen)
    data = Path(options.data) if options.data else None
    run: Callable[..., Any]
    cells: Callable[..., Any]
    run, cells = run_table1, cells_of
    if options.noisy_kernel:
        run, cells = run_noisy_kernel, noisy_kernel_cells
        chosen = {name: values for name, values in chosen.items() if name in ("sets", "folds")}
    run(data, Path(options.work), out, cells(**chosen), options.limit, verbose=0 if options.quiet else 1)
    results = read_cells(out)
    rows = collect(results)
    table = write_table(out, rows, results)
    if not options.quiet:
        print(", ".join(f"{name}: {count}" for name, count in tally(rows).items()))
        print(f"Written: {table}")
    return 0
