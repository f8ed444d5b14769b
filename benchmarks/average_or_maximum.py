"""Right and wrong labels averaged over, against the likeliest noise variances: prediction and ranking on molecules.

    python benchmarks/average_or_maximum.py ../shared/data --work grams > benchmarks/average_or_maximum.txt

2,000 training molecules of QM7 (drawn with seed 7 from those outside the first fold), energies with planted errors (seeds 5000 + 1000 rate + level,
none of the table's), tested on the first fold. Both kinds of inference see the same similarities and find amplitude and base noise themselves.
MAE in kcal/mol, AUROC by z and by the odds that a label is wrong. The similarities are those of ``mislabel reproduce table1`` and kept in ``--work``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.decisions import score_labels
from mislabel.errors import MislabelWarning
from mislabel.reproduce.molecule_sets import load_collection

ROWS = [(10, 10), (30, 100), (50, 10), (50, 50), (70, 10), (70, 50), (70, 200), (90, 10), (90, 50), (90, 200)]
SIZE = 2000


def molecules(description, size):
    """Training and test molecules of QM7, their similarities and all energies, from where the command line says."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--work", type=Path, default=Path("grams"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", MislabelWarning)
    collection = load_collection("qm7", options.folder, options.work)
    train, test = collection.fold(0)
    train = np.sort(np.random.default_rng(7).choice(train, size, replace=False))
    similarity, cross = collection.block(train, train, False), collection.block(test, train, False)
    return train, test, similarity, cross, collection.labels["energy"]


def main():
    train, test, similarity, cross, clean = molecules(__doc__, SIZE)
    print("rate level  inference    MAE   AUROC z    odds   wrong  base noise status  seconds")
    for rate, level in ROWS:
        noisy = corrupt_labels(clean, rate / 100, level / 100, random_state=5000 + 1000 * rate + level)
        labels, wrong = noisy.labels[train], noisy.mask[train]
        for inference in ("maximum", "average"):
            start = time.perf_counter()
            model = LabelNoiseRegressor("precomputed", center="none", tol=1e-2, inference=inference)
            model.fit(similarity, labels)
            seconds = time.perf_counter() - start
            error = np.mean(np.abs(model.predict(cross) - clean[test]))
            by_odds = roc_auc_score(wrong, score_labels(model.calibrated_evidence_, "odds"))
            print(
                f"{rate:3d}% {level:4d}%  {inference:9s} {error:6.3f}   {roc_auc_score(wrong, np.abs(model.z_)):.4f}  {by_odds:.4f}"
                f"   {np.mean(model.noise_variance_ > 0):.3f}  {model.base_noise_status_:17s} {seconds:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
