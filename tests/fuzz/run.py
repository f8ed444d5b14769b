"""Attack readers and writers with damaged files: ``python -m tests.fuzz.run --cases 20000 --target csv --seed 0``."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.seeds import Seed
from tests.fuzz.targets import SELF_TEST, TARGETS, find_target
from tests.fuzz.worker import FINE, Limits, Outcome, minimise, run_numbers

FOUND = Path(__file__).parent / "found"
#: Tries to make a failing file smaller.
EFFORT = 1500
#: Larger files are not kept: the number of the case makes them again.
MOST_KEPT = 100_000
_COLUMNS = ("target", "cases", "typed", "accepted", "untyped", "wrong", "hangs", "crashes", "seconds")


@dataclass
class Tally:
    """What became of the cases of one target.

    failures : by outcome, how many there were and the number of the case with the smallest file.
    """

    target: str
    kinds: Counter[str] = field(default_factory=Counter)
    failures: dict[Outcome, tuple[int, int]] = field(default_factory=dict)
    seconds: float = 0.0

    def row(self) -> tuple[str, ...]:
        """One line of the table."""
        kinds = [self.kinds[kind] for kind in ("typed", "accepted", "untyped", "wrong", "hang", "crash")]
        return (self.target, str(self.kinds.total()), *map(str, kinds), f"{self.seconds:.0f}")


def attack(
    target: str, *, cases: int, seed: int = 0, workers: int = 1, limits: Limits | None = None, most_hangs: int = 20
) -> Tally:
    """Run the cases of a target; stops early after many that hang, each of which takes its time."""
    tally, start = Tally(target), time.monotonic()
    sizes: dict[Outcome, int] = {}
    for number, outcome in run_numbers(target, seed, cases, limits or Limits(), workers):
        tally.kinds[outcome.kind] += 1
        if outcome.kind not in FINE:
            size = len(find_target(target).case(target, seed, number).data)
            count, smallest = tally.failures.get(outcome, (0, number))
            if size < sizes.get(outcome, size + 1):
                sizes[outcome], smallest = size, number
            tally.failures[outcome] = (count + 1, smallest)
        if tally.kinds["hang"] >= most_hangs:
            break
    tally.seconds = time.monotonic() - start
    return tally


def save(tally: Tally, seed: int, folder: Path = FOUND) -> dict[Outcome, Path]:
    """Keep the smallest file of every failure, made smaller where that is quick."""
    saved = {}
    for outcome, (_, number) in tally.failures.items():
        case = find_target(tally.target).case(tally.target, seed, number)
        if outcome.kind in ("untyped", "wrong"):
            case = minimise(tally.target, case, outcome.cause, Limits(), EFFORT)
        if len(case.data) <= MOST_KEPT:
            saved[outcome] = save_file(folder / tally.target, case)
    return saved


def save_file(folder: Path, case: Seed) -> Path:
    """Write a file under the name of its contents."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(case.data).hexdigest()[:12]}{case.suffix}"
    path.write_bytes(case.data)
    return path


def table(rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns, with a heading."""
    rows = [_COLUMNS, *rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    lines = [
        "  ".join(cell.rjust(w) if at else cell.ljust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack one target or all; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="damaged files per target (default: %(default)s)")
    parser.add_argument(
        "--target", action="append", choices=[*TARGETS, *SELF_TEST], help="may be repeated; default: all"
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed, other files (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time (default: %(default)s)")
    parser.add_argument("--hangs", type=int, default=20, help="end a target after so many (default: %(default)s)")
    parser.add_argument("--no-save", action="store_true", help="do not keep the files that failed")
    chosen = parser.parse_args(arguments)
    tallies = []
    for target in chosen.target or TARGETS:
        settings = {"seed": chosen.seed, "workers": chosen.workers, "most_hangs": chosen.hangs}
        tally = attack(target, cases=chosen.cases, **settings)
        tallies.append(tally)
        saved = {} if chosen.no_save else save(tally, chosen.seed)
        _say(table([tally.row()]) if len(tallies) == 1 else table([tally.row()]).splitlines()[1])
        for outcome, (count, number) in sorted(tally.failures.items(), key=lambda item: -item[1][0]):
            kept = f", kept as {saved[outcome].name}" if outcome in saved else ""
            _say(f"    {count} x {outcome.kind}: {outcome.cause} (case {number}{kept})")
    _say("\n" + table([tally.row() for tally in tallies]))
    return int(any(tally.failures for tally in tallies))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
