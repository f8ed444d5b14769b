"""How the predictions of a mean model are made without any label vouching for itself: one partition into folds, more folds, more partitions.

    python benchmarks/cross_fitting.py ../shared/data > benchmarks/cross_fitting.txt

Six tables (at most 2,000 rows) with 5 to 20 % of the labels corrupted, two seeds each. AUROC and average precision of the absolute residual; means over all.
The number of partitions was chosen on seeds 50 and 51.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from mislabel.data import corrupt_labels
from mislabel.estimators.cross_fit import cross_fitted_mean, out_of_fold, seeded
from mislabel.estimators.mean_functions import MEANS

TABLES = ("boston", "concrete", "energy", "wine_red", "yacht", "kin8nm")
ERRORS = ((0.05, 1.0), (0.1, 0.5), (0.2, 1.0))
SEEDS = (60, 61)
ROWS = 2000
PARTITIONS = (1, 3, 6)


def predictions(name, X, y):
    for count in PARTITIONS:
        yield (
            f"5 folds, {count} partitions",
            cross_fitted_mean(MEANS[name](), X, y, np.random.RandomState(0), None, False, count)[0],
        )
    folds = KFold(15, shuffle=True, random_state=0)
    yield "15 folds, as long as 3 partitions", out_of_fold(seeded(MEANS[name](), 0), X, y, folds, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = dict(np.load(options.folder / "uci_regression.npz"))
    for name in ("trees", "boosting"):
        found = {}
        for table in TABLES:
            X, clean = stored[f"{table}_X"].astype(float), stored[f"{table}_y"].ravel().astype(float)
            some = np.random.default_rng(5).permutation(clean.size)[:ROWS]
            for (rate, level), seed in ((errors, seed) for errors in ERRORS for seed in SEEDS):
                y, _, wrong = corrupt_labels(clean[some], rate, level, random_state=seed)
                for way, predicted in predictions(name, X[some], y):
                    error = np.abs(y - predicted)
                    found.setdefault(way, []).append(
                        (roc_auc_score(wrong, error), average_precision_score(wrong, error))
                    )
        for way, scores in found.items():
            auroc, precision = np.mean(scores, axis=0)
            better = np.mean(
                [mine[1] > other[1] for mine, other in zip(scores, found["5 folds, 1 partitions"], strict=True)]
            )
            print(
                f"{name}, {way}: AUROC {auroc:.4f}, average precision {precision:.4f}; precision above one partition's in {better:.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
