"""Detection by low-rank fits, beside the exact fit of the same model.

    python benchmarks/low_rank_accuracy.py ../shared/data --synthetic --ways auto exact > benchmarks/low_rank_accuracy.txt

kin8nm and power with 10 % of the labels corrupted at level 1 (seed 0), and with --synthetic 20,000 rows of Friedman's function (ten features, noise
0.5, 10 % wrong at level 1). Ranks: "auto" as users get it, and 500 with and without exact blocks of neighbours; "auto, exact's lengths" has the length
scales of the exact fit. AUROC is by z and, the default, by odds; FDR is the realised one at a nominal 10 %. The exact fit of 20,000 labels plans with
16 GB and takes ten minutes of one core.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.errors import MislabelWarning
from mislabel.estimators import low_rank_fit
from mislabel.evaluation import detection_report

WAYS = (
    ("auto", "auto", True),
    ("500 with blocks", 500, True),
    ("500, diagonal rest", 500, False),
    ("exact", None, True),
    ("auto, exact's lengths", "auto", True),
)


def tables(folder, synthetic):
    stored = dict(np.load(folder / "uci_regression.npz"))
    for name in ("kin8nm", "power"):
        features = stored[f"{name}_X"].astype(float)
        yield name, (features - features.mean(axis=0)) / features.std(axis=0), stored[f"{name}_y"].astype(float).ravel()
    if synthetic:
        rng = np.random.default_rng(0)
        x = rng.random((20_000, 10))
        signal = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
        yield "synthetic", x, signal + 0.5 * rng.standard_normal(len(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", metavar="TABLE")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--ways", nargs="+", metavar="WAY", default=[words for words, *_ in WAYS])
    options = parser.parse_args()
    warnings.simplefilter("ignore", MislabelWarning)
    blocks = low_rank_fit.BLOCK_SIZES
    print("table      labels  rank                   AUROC   by odds FDR    recall  captured  seconds")
    for name, features, clean in tables(options.folder, options.synthetic):
        if options.only and name not in options.only:
            continue
        labels, _, wrong = corrupt_labels(clean, 0.1, 1.0, random_state=0)
        fixed = None
        for words, rank, with_blocks in WAYS:
            if words not in options.ways:
                continue
            low_rank_fit.BLOCK_SIZES = blocks if with_blocks else ()
            start = time.perf_counter()
            kernel = fixed if words == WAYS[-1][0] else None
            model = LabelNoiseRegressor(kernel=kernel, rank=rank).fit(features, labels)
            fixed = clone(model.kernel_).set_params(length_scale_bounds="fixed")
            table = model.audit(fdr=0.1, by_position=True)
            seconds = time.perf_counter() - start
            suspect = np.zeros(labels.size, dtype=bool)
            suspect[table["row"]] = table["suspect"]
            odds = np.empty(labels.size)
            odds[table["row"]] = table["score"]
            report = detection_report(wrong, np.abs(model.z_), suspect=suspect)
            by_odds = detection_report(wrong, odds).auroc
            shown = f"auto: {model.rank_}" if words == "auto" else words
            print(
                f"{name:10s} {labels.size:6d}  {shown:22s} {report.auroc:.4f}  {by_odds:.4f}  {report.false_discovery_rate:.3f}  "
                f"{report.recall:.3f}   {model.captured_:.4f}    {seconds:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
