"""The command line: parse, call, print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mislabel.errors import InvalidParameterError, MislabelError

#: What a wrong usage or an unusable file exits with.
FAILED = 2
INTERRUPTED = 130

AUDIT_HELP = """\
Finds the values of one column that the other rows make implausible, and writes into a folder: report.html (open it
in a browser, review and correct), audit.csv (one row per label, the most suspicious first) and summary.json.

Tables: CSV, TSV (delimiter, encoding, decimal comma and thousands separators are recognised), Parquet, Excel. Columns may
hold numbers, categories, dates, text and gaps. Molecules: xyz, extended xyz and sdf files, or a table with a column whose name
contains "smiles".
"""
APPLY_HELP = """\
Writes a copy of FILE with the decisions that were exported from the report: corrected labels, dropped rows. All other
cells stay as they were. FILE must be the very file that was audited; it is never changed.
"""
CERTIFY_HELP = """\
Says how many of the suspects are right labels at most, from the verdicts that were exported from the report: "keep" says
that a label is right, all else that it is wrong. The bound rests on a random sample of the suspects, which the report leads
through, and on nothing else: it holds whatever the model is worth, and after every verdict.
"""
REPRODUCE_HELP = """\
Regenerates what the paper shows, checks its claims, and writes numbers and pictures into a folder.

fig1: one label judged by the others. fig2: three curves, 50 seeds. fig3: solvers compared. table1: molecules of QM7 and QM9 with
planted errors; hours, but it can be stopped at any moment and goes on where it was.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``mislabel`` command."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except MislabelError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("there is not enough memory for this file.")
    except OSError as error:
        return _fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
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
    _add_audit(commands)
    _add_apply(commands)
    _add_certify(commands)
    _add_demo(commands)
    _add_reproduce(commands)
    return parser


def _add_audit(commands: Any) -> None:
    audit = commands.add_parser(
        "audit",
        help="find wrong labels in a file and write a page to review them on",
        description=AUDIT_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    audit.add_argument("file", nargs="?", metavar="FILE", help="the table or the molecules")
    audit.add_argument(
        "--label",
        nargs="+",
        action="extend",
        required=True,
        metavar="COL",
        help="the column (or property) to check; of several, each gets a folder of its own",
    )
    audit.add_argument("--id", metavar="COL", help="column with names of the rows (default: their position)")
    audit.add_argument("--drop", nargs="+", action="extend", default=[], metavar="COL", help="columns not to use")
    audit.add_argument("--features", nargs="+", action="extend", metavar="COL", help="the only columns to use")
    audit.add_argument("--label-error", metavar="COL", help="column with known standard deviations of the labels")
    audit.add_argument(
        "--censored",
        metavar="COL",
        help="column that holds < where a label is an upper limit, > where a lower one (labels written <0.5 say so themselves)",
    )
    audit.add_argument("--sheet", help="sheet of a workbook (default: the first)")
    audit.add_argument(
        "--decimal", metavar="MARK", help="decimal mark in numbers that stand as text: . or , (default: recognised)"
    )
    audit.add_argument(
        "--thousands",
        metavar="MARK",
        help="mark between groups of three digits: . , ' a space, or none (default: recognised)",
    )
    audit.add_argument(
        "--kernel", default="auto", help="auto, table, bonds (SMILES), extensive or intensive (3-D molecules)"
    )
    _add_expectation(audit)
    audit.add_argument(
        "--transform",
        default="auto",
        metavar="SCALE",
        help="scale of the labels: none, log, sqrt, asinh, logit, or auto: on which right labels spread most evenly (default)",
    )
    audit.add_argument(
        "--rank", type=_rank, default="auto", metavar="M", help="rank of a low-rank fit, exact, or auto (default)"
    )
    audit.add_argument(
        "--dask", metavar="ADDRESS", help="fit on the workers of a dask scheduler, or on local processes: local"
    )
    audit.add_argument(
        "--memory", metavar="SIZE", help="read a Parquet file piece by piece in so much memory, for example 4GB"
    )
    audit.add_argument("--out", metavar="DIR", help="folder for the results (default: FILE's name with -audit)")
    _add_shared(audit)
    audit.set_defaults(run=run_audit)


def _add_expectation(audit: argparse.ArgumentParser) -> None:
    """What labels are judged by: a mean model and how it is cross-fitted, or predictions of the user's own."""
    audit.add_argument(
        "--mean",
        default="auto",
        metavar="MODEL",
        help="none, linear, boosting, trees, ensemble, or auto: what predicts held-out labels best (default)",
    )
    audit.add_argument("--predictions", metavar="COL", help="column with out-of-fold predictions of your own model")
    audit.add_argument("--prediction-std", metavar="COL", help="column with the standard deviations of these")
    audit.add_argument(
        "--process-on-residuals", action="store_true", help="let a Gaussian process correct these predictions first"
    )
    audit.add_argument(
        "--groups", metavar="COL", help="column whose rows of one value are kept together in cross-fitting"
    )
    audit.add_argument("--sample-weight", metavar="COL", help="column with the weights of rows in fits of a mean model")
    audit.add_argument(
        "--cv", type=_folds, metavar="K", help="folds of cross-fitting, in the order of the rows (default: 5, shuffled)"
    )


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**32:
        raise argparse.ArgumentTypeError(f"a seed lies between 0 and {2**32 - 1}, got {text}")
    return seed


def _folds(text: str) -> int:
    folds = int(text)
    if folds < 2:
        raise argparse.ArgumentTypeError(f"cross-fitting needs at least two folds, got {text}")
    return folds


def _rank(text: str) -> int | str:
    if text in ("auto", "exact"):
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, auto or exact, got {text!r}") from None


def _add_apply(commands: Any) -> None:
    apply = commands.add_parser(
        "apply", help="write a cleaned copy of a file from reviewed decisions", description=APPLY_HELP
    )
    apply.add_argument("file", metavar="FILE", help="the file that was audited")
    apply.add_argument("decisions", metavar="DECISIONS", help="decisions.json, exported from the report")
    apply.add_argument("-o", "--output", required=True, metavar="CLEANED", help="the cleaned file to write")
    apply.add_argument("--trail", action="store_true", help="add columns that tell what was done to which row")
    apply.add_argument("--overwrite", action="store_true", help="replace CLEANED if it exists (never FILE itself)")
    apply.add_argument("--json", action="store_true", help="print the result as JSON")
    apply.add_argument("--quiet", action="store_true", help="print nothing")
    apply.set_defaults(run=run_apply)


def _add_certify(commands: Any) -> None:
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
        "--next", type=_count, default=10, metavar="N", help="rows to look at next to name (default: %(default)s)"
    )
    certify.add_argument("--json", action="store_true", help="print the result as JSON")
    certify.set_defaults(run=run_certify)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number of rows, got {text!r}")
    return int(text)


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser("demo", help="find planted errors in shipped data")
    demo.add_argument(
        "what", nargs="?", default="table", choices=["table", "molecules"], help="which data (default: table)"
    )
    demo.add_argument(
        "--out", default="mislabel-demo", metavar="DIR", help="folder for the results (default: %(default)s)"
    )
    demo.add_argument("--open", action="store_true", help="open the report in a browser")
    _add_shared(demo)
    demo.set_defaults(run=run_demo)


def _add_reproduce(commands: Any) -> None:
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


def _add_shared(command: argparse.ArgumentParser) -> None:
    command.add_argument("--fdr", type=float, default=0.05, help="false discovery rate (default: %(default)s)")
    command.add_argument("--seed", type=_seed, default=0, help="seed of everything random (default: %(default)s)")
    command.add_argument("--json", action="store_true", help="print summary.json instead of words")
    command.add_argument("--quiet", action="store_true", help="no progress, no words")


def run_audit(options: argparse.Namespace) -> int:
    """``mislabel audit``."""
    from pathlib import Path

    from mislabel.auditing.files import audit_file, default_folder

    file, labels = _file_and_labels(options.file, options.label)
    out = Path(options.out) if options.out else default_folder(file)
    with _warnings_in_words(options.quiet), _client(options.dask) as client:
        found = audit_file(
            file,
            labels if len(labels) > 1 else labels[0],
            out=out,
            id=options.id,
            drop=options.drop,
            features=options.features,
            label_error=options.label_error,
            predictions=options.predictions,
            prediction_std=options.prediction_std,
            process_on_residuals=options.process_on_residuals,
            groups=options.groups,
            censored=options.censored,
            sample_weight=options.sample_weight,
            cv=options.cv,
            sheet=options.sheet,
            decimal=options.decimal,
            thousands=options.thousands,
            fdr=options.fdr,
            kernel=options.kernel,
            mean=options.mean,
            label_transform=options.transform,
            rank=options.rank,
            random_state=options.seed,
            client=client,
            memory=options.memory,
            verbose=0 if options.quiet else 1,
        )
    _tell(found, options)
    return 0


def _file_and_labels(file: str | None, labels: list[str]) -> tuple[str, list[str]]:
    """The file and the names of the labels; a file that stands behind the labels was taken for one of them."""
    if file is None and len(labels) > 1:
        *labels, file = labels
    if file is None:
        raise InvalidParameterError("which file? mislabel audit FILE --label COL.")
    return file, list(dict.fromkeys(labels))


def _client(address: str | None) -> Any:
    from contextlib import nullcontext

    if address is None:
        return nullcontext()
    from mislabel.distributed import client_at

    return client_at(address)


def run_apply(options: argparse.Namespace) -> int:
    """``mislabel apply``."""
    import json

    from mislabel.data.corrections import apply_decisions

    done = apply_decisions(
        options.file, options.decisions, options.output, trail=options.trail, overwrite=options.overwrite
    )
    if options.json:
        counts = {"corrected": done.corrected, "dropped": done.dropped, "kept": done.kept}
        print(json.dumps({"file": str(done.target), **counts}))
    elif not options.quiet:
        told = f"{done.corrected} labels corrected, {done.dropped} rows dropped, {done.kept} labels kept as they were."
        print(_safe(f"{done.target}: {told}"))
    return 0


def run_certify(options: argparse.Namespace) -> int:
    """``mislabel certify``."""
    import json

    from mislabel.auditing.certify import certify_file

    found = certify_file(options.file, options.decisions, options.audit, options.confidence)
    if options.json:
        print(json.dumps(found.as_dict(options.next), ensure_ascii=True, allow_nan=False))
        return 0
    for line in found.told(options.next):
        print(_safe(line))
    return 0


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
    with _warnings_in_words(options.quiet):
        found = audit_file(
            example.path,
            example.label,
            id=example.id,
            out=folder,
            fdr=options.fdr,
            random_state=options.seed,
            verbose=0 if options.quiet else 1,
        )
    _tell(found, options)
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


def _tell(found: Any, options: argparse.Namespace) -> None:
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
    for label, result in found.items():
        print(_safe(f"Label {label!r}:"))
        _tell_one(result, True)


def _tell_one(found: Any, reviewed: bool) -> None:
    from mislabel.report.words import set_aside_line

    summary = found.summary
    for item in summary["columns"]["left_out"]:
        print(_safe(f"Column {item['column']!r} was left out: {item['reason']}."), file=sys.stderr)
    for note in summary["notes"]:
        print(_safe(f"Note: {note}"), file=sys.stderr)
    if found.model.set_aside_reason_:
        print(_safe(f"Note: {set_aside_line(found.findings)}"), file=sys.stderr)
    print(_safe(summary["model"]["words"]), file=sys.stderr)
    for line in summary["summary"]:
        print(_safe(line))
    if reviewed:
        print(_safe(f"Review it in {found.report_path}"), file=sys.stderr)


def _safe(text: str) -> str:
    """One line without control characters, whatever a file put into it; characters the terminal lacks are escaped."""
    from mislabel.report.plain_words import plain_text

    line = plain_text(text, 2000)
    encoding = sys.stdout.encoding or "utf-8"
    return line.encode(encoding, errors="backslashreplace").decode(encoding)


def _fail(message: str) -> int:
    print(f"mislabel: {_safe(message)}", file=sys.stderr)
    return FAILED


class _warnings_in_words:
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
                print(f"Warning: {_safe(message)}", file=sys.stderr)
                told.add(message)


if __name__ == "__main__":
    sys.exit(main())
