"""``mislabel audit``: find wrong labels in a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mislabel.cli.options import add_shared
from mislabel.cli.spoken import WarningsInWords, tell
from mislabel.errors import InvalidParameterError

AUDIT_HELP = """\
Finds the values of one column that the other rows make implausible, and writes into a folder: report.html (open it
in a browser, review and correct), audit.csv (one row per label, the most suspicious first) and summary.json.

Tables: CSV, TSV (delimiter, encoding, decimal comma and thousands separators are recognised), JSON lines, Parquet, Feather,
Excel, or one of these in a zip archive. Title lines, rows of units, totals and footers are recognised, left out and said. Columns
may hold numbers, also with units, categories, dates, text and gaps. Molecules: xyz, extended xyz and sdf files, or a table with
a column whose name contains "smiles".
"""


def add_audit(commands: Any) -> None:
    """Describe the command and its options."""
    audit = commands.add_parser(
        "audit",
        help="find wrong labels in a file and write a page to review them on",
        description=AUDIT_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    audit.add_argument(
        "file", nargs="?", metavar="FILE", help="the table or the molecules; - reads CSV from standard input"
    )
    audit.add_argument(
        "--label",
        nargs="+",
        action="extend",
        required=True,
        metavar="COL",
        help="the column (or property) to check; of several, each gets a folder of its own; all: every column of measured "
        "quantities against all others, to find the wrong cells of the table",
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
    _add_reading(audit)
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
    _add_memory(audit)
    audit.add_argument("--out", metavar="DIR", help="folder for the results (default: FILE's name with -audit)")
    add_shared(audit)
    audit.set_defaults(run=run_audit)


def _add_memory(audit: argparse.ArgumentParser) -> None:
    """What was decided before."""
    audit.add_argument(
        "--decisions",
        nargs="+",
        action="extend",
        default=[],
        metavar="JSON",
        help="earlier decisions, exported from a report: what was decided is known, and not asked for again",
    )


def _add_reading(audit: argparse.ArgumentParser) -> None:
    """How the file is read, where that is not to be recognised."""
    audit.add_argument("--sheet", help="sheet of a workbook (default: the first)")
    audit.add_argument(
        "--header",
        metavar="ROW",
        help="row of the header as a spreadsheet counts (3), or rows (3-4), or none (default: recognised)",
    )
    audit.add_argument("--skip", type=int, metavar="N", help="rows before the table that are no part of it")
    audit.add_argument(
        "--na", nargs="+", action="extend", metavar="TEXT", help="further texts, or numbers, that stand for no value"
    )
    audit.add_argument(
        "--decimal", metavar="MARK", help="decimal mark in numbers that stand as text: . or , (default: recognised)"
    )
    audit.add_argument(
        "--thousands",
        metavar="MARK",
        help="mark between groups of three digits: . , ' a space, or none (default: recognised)",
    )


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
    audit.add_argument(
        "--group",
        metavar="COL",
        help="column of what may be wrong as a whole (batch, instrument, operator, file): each is judged by models without it",
    )
    audit.add_argument("--sample-weight", metavar="COL", help="column with the weights of rows in fits of a mean model")
    audit.add_argument(
        "--cv", type=_folds, metavar="K", help="folds of cross-fitting, in the order of the rows (default: 5, shuffled)"
    )


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


def run_audit(options: argparse.Namespace) -> int:
    """``mislabel audit``."""
    from mislabel.auditing.files import audit_file

    file, labels = _file_and_labels(options.file, options.label)
    with _from_standard_input(file) as path, WarningsInWords(options.quiet), _client(options.dask) as client:
        found = audit_file(
            path,
            labels if len(labels) > 1 else labels[0],
            out=options.out or None,
            id=options.id,
            drop=options.drop,
            features=options.features,
            label_error=options.label_error,
            predictions=options.predictions,
            prediction_std=options.prediction_std,
            process_on_residuals=options.process_on_residuals,
            groups=options.groups,
            group=options.group,
            censored=options.censored,
            sample_weight=options.sample_weight,
            cv=options.cv,
            decisions=options.decisions,
            sheet=options.sheet,
            decimal=options.decimal,
            thousands=options.thousands,
            header=options.header,
            skip=options.skip,
            na=options.na,
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
    tell(found, options)
    return 0


def _file_and_labels(file: str | None, labels: list[str]) -> tuple[str, list[str]]:
    """The file and the names of the labels; a file that stands behind the labels was taken for one of them."""
    if file is None and len(labels) > 1:
        *labels, file = labels
    if file is None:
        raise InvalidParameterError("which file? mislabel audit FILE --label COL.")
    return file, list(dict.fromkeys(labels))


@contextmanager
def _from_standard_input(file: str) -> Iterator[str]:
    """What is read for ``-``: a file that holds what came in, for as long as it is needed; any other file as it is."""
    if file != "-":
        yield file
        return
    import sys
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-input.csv"
        path.write_bytes(sys.stdin.buffer.read())
        yield str(path)


def _client(address: str | None) -> Any:
    from contextlib import nullcontext

    if address is None:
        return nullcontext()
    from mislabel.distributed import client_at

    return client_at(address)
