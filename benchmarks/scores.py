"""Which score ranks wrong labels best, all of them computed from the same fits.

    python benchmarks/scores.py ../shared/data > benchmarks/scores.txt

The made-up tasks of default_estimator.py (seeds 200 to 204) and four real tables with 10 and 30 % of the labels corrupted at level 1 (seeds 20
to 22). The default score was chosen on other seeds (0 to 4 and 100 to 104; boston, wine_red and yacht with 10 to 12). Mean AUROC and average
precision (AP). One BLAS thread.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from default_estimator import TASKS, make
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.decisions import SCORES, score_labels

TABLES = ("boston", "wine_red", "yacht", "concrete")


def tasks(folder):
    for name, function, size, rate, level in TASKS:
        drawn = (make(function, size, rate, level, seed) for seed in range(200, 205))
        yield name, [(points, labels, wrong) for points, labels, _, wrong, _, _ in drawn]
    stored = dict(np.load(folder / "uci_regression.npz"))
    for name in TABLES:
        for rate in (0.1, 0.3):
            clean = stored[f"{name}_y"].ravel().astype(float)
            drawn = (corrupt_labels(clean, rate, 1.0, random_state=seed) for seed in range(20, 23))
            yield f"{name}, {rate:.0%}", [(stored[f"{name}_X"], labels, wrong) for labels, _, wrong in drawn]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'AUROC / AP':32s}" + "".join(f"{name:>18s}" for name in SCORES))
    means = []
    for name, problems in tasks(options.folder):
        rows = []
        for points, labels, wrong in problems:
            evidence = LabelNoiseRegressor().fit(points, labels).calibrated_evidence_
            scores = [score_labels(evidence, score) for score in SCORES]
            rows.append([(roc_auc_score(wrong, s), average_precision_score(wrong, s)) for s in scores])
        means.append(np.mean(rows, axis=0))
        print(f"{name:32s}" + "".join(f"{auroc:10.4f} / {ap:.3f}" for auroc, ap in means[-1]), flush=True)
    print(f"{'mean':32s}" + "".join(f"{auroc:10.4f} / {ap:.3f}" for auroc, ap in np.mean(means, axis=0)))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
