"""How long a gate takes: to be kept, to be loaded, and to judge 10,000 new rows; and what it weighs.

Loading reads and checks both files; the model is built from them at the first check, which "load+file" has as well.
Times are those of the processor, so that a busy machine does not count.

Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/gate.py > benchmarks/gate.txt
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from mislabel import Gate, audit
from mislabel.auditing.gate_files import FILES, gate_of, write_gate

NEW = 10_000


def table(size, seed):
    """Six numbers, a category and a gap here and there; labels of which three in a hundred are wrong."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-2, 2, (size, 6)).round(4), columns=[f"x{k}" for k in range(6)])
    frame["kind"] = rng.choice(["steel", "brass", "zinc"], size)
    frame["y"] = np.sin(frame["x0"]) + 0.5 * frame["x1"] * frame["x2"] + (frame["kind"] == "zinc")
    frame["y"] = (frame["y"] + 0.1 * rng.normal(size=size)).round(4)
    wrong = rng.random(size) < 0.03
    frame.loc[wrong, "y"] += rng.choice([-2.0, 2.0], int(wrong.sum()))
    frame.loc[rng.random(size) < 0.02, "x5"] = np.nan
    return frame


def timed(work, times=3):
    """The least of several times in seconds of one core, and what came out."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return min(taken), found


def measured(size, **options):
    """One line of the table."""
    result = audit(table(size, 1), "y", verbose=0, **options)
    with tempfile.TemporaryDirectory() as place:
        folder, file = Path(place) / "gate", Path(place) / "new.csv"
        table(NEW, 2).to_csv(file, index=False)

        def keep():
            kept = gate_of(result.findings, result.source, result._request)
            write_gate(kept, folder)
            return kept

        saving, kept = timed(keep)
        weight = sum((folder / name).stat().st_size for name in FILES) / 1e6
        loading, gate = timed(lambda: Gate.load(folder))
        first, _ = timed(lambda: Gate.load(folder).check(file), 1)
        frame = pd.read_csv(file)
        judging, checked = timed(lambda: gate.check(frame))
        mean = "none" if result.model.mean_choice_ is None else result.model.mean_choice_.name
        kind = kept.words["model"]["predictor"]["kind"]
    name = options.get("mean", f"auto: {mean}")
    print(
        f"{size:>7,}  {kind:<9} {name:<14} {saving:7.3f} {weight:8.2f} {loading:8.3f} {judging:10.2f} {first:12.2f} "
        f"{len(checked.suspects):9,}",
        flush=True,
    )


if __name__ == "__main__":
    print(f"Seconds of one core (best of three), and megabytes; {NEW:,} new rows.")
    print("   rows  fit       mean              keep       MB     load  judge frame  load+file  suspects")
    for mean in ("none", "boosting", "trees", "ensemble"):
        measured(800, mean=mean)
    measured(800)
    measured(2000, mean="none")
    measured(5000, mean="none")
