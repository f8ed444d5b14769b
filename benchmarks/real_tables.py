"""Ranking and realised false-discovery rate on real tables, 10 % of the labels corrupted at level 1.

    python benchmarks/real_tables.py FOLDER > benchmarks/real_tables.txt

FOLDER holds uci_regression.npz (arrays <name>_X, <name>_y). At most 600 rows of each table, drawn with seed 0.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.evaluation import detection_report


def main() -> None:
    arrays = dict(np.load(Path(sys.argv[1]) / "uci_regression.npz"))
    print("table        n  AUROC  average precision    R^2  FDR at 0.10  recall  seconds")
    for name in ("boston", "concrete", "energy", "kin8nm", "power", "wine_red", "yacht"):
        features, labels = arrays[f"{name}_X"], arrays[f"{name}_y"].ravel().astype(float)
        chosen = np.random.default_rng(0).permutation(len(labels))[:600]
        corrupted = corrupt_labels(labels[chosen], 0.1, 1.0, random_state=0)
        start = time.perf_counter()
        model = LabelNoiseRegressor().fit(features[chosen], corrupted.labels)
        seconds = time.perf_counter() - start
        suspect = model.audit(0.1).sort_values("row")["suspect"]
        report = detection_report(
            corrupted.mask, np.abs(model.z_), noise=corrupted.noise, inferred_noise=model.label_noise_, suspect=suspect
        )
        print(
            f"{name:9s} {len(chosen):4d} {report.auroc:6.3f} {report.average_precision:18.3f} {report.r2:6.2f} "
            f"{report.false_discovery_rate:12.2f} {report.recall:7.2f} {seconds:8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
