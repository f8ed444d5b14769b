"""Audits with automatic choice of the model on real tables, beside what users would run instead.

    python benchmarks/file_audit.py ../shared/data > benchmarks/file_audit.txt

Three tables with known wrong labels (their true_error column is only read to score), and four with 10 and 30 % of the labels corrupted at level 1
(seed 0). The same settings everywhere. Peers: residuals of five-fold cross-fitted gradient boosting and extra trees (scikit-learn's defaults),
cleanlab's regression module with its default model (where installed), each the mean of five seeds (0 to 4) with the range of its average precision, and our
Gaussian process alone. AUROC and average precision (AP) of the ranking; FDR is the realised one at a nominal 10 %. As on the command line, fits are exact up to 5,000 rows and of low rank beyond.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict

from mislabel import audit as audit_of
from mislabel.data import corrupt_labels
from mislabel.data.tables import read_labelled_table

KNOWN = {
    "telomere": "cleanlab_telomere_cq_telo",
    "airquality": "cleanlab_airquality_co_v2",
    "metaphor": "cleanlab_metaphor_novelity_easy_diff",
}
SEEDS = range(5)
CORRUPTED = ("concrete", "energy", "kin8nm", "power")


def tasks(folder):
    for name, file in KNOWN.items():
        frame = pd.read_csv(folder / f"{file}.csv.gz", index_col=0)
        wrong = frame["true_error"].to_numpy() != 0
        yield name, frame.drop(columns=["true_label", "true_error"]).rename(columns={"given_label": "label"}), wrong
    stored = dict(np.load(folder / "uci_regression.npz"))
    for name in CORRUPTED:
        for rate in (0.1, 0.3):
            labels, _, wrong = corrupt_labels(stored[f"{name}_y"].ravel(), rate, 1.0, random_state=0)
            frame = pd.DataFrame(stored[f"{name}_X"]).rename(columns="x{}".format).assign(label=labels)
            yield f"{name} {rate:.0%}", frame, wrong


def score(wrong, suspicion):
    return roc_auc_score(wrong, suspicion), average_precision_score(wrong, suspicion)


def peers(frame):
    table = read_labelled_table(frame, "label")

    def residuals(model, seed):
        folds = KFold(5, shuffle=True, random_state=seed)
        return np.abs(table.label - cross_val_predict(model(random_state=seed), table.features, table.label, cv=folds))

    yield "boosting", [residuals(HistGradientBoostingRegressor, seed) for seed in SEEDS]
    yield "extra trees", [residuals(ExtraTreesRegressor, seed) for seed in SEEDS]
    try:
        from cleanlab.regression.learn import CleanLearning
    except ImportError:
        return
    found = [CleanLearning(seed=seed).find_label_issues(table.features, table.label) for seed in SEEDS]
    yield "cleanlab", [-table["label_quality"].to_numpy() for table in found]


def ours(frame, wrong, mean):
    start = time.perf_counter()
    audit = audit_of(frame.reset_index(drop=True), "label", 0.10, mean=mean).findings
    seconds = time.perf_counter() - start
    suspicion = np.empty(len(frame))
    suspicion[audit.positions] = audit.table["score"].to_numpy()
    called = audit.positions[audit.table["suspect"].to_numpy()]
    realised = 1.0 - wrong[called].mean() if called.size else 0.0
    recall = wrong[called].sum() / wrong.sum()
    return audit, suspicion, f"{called.size:5d} suspects, FDR {realised:.2f}, recall {recall:.2f}, {seconds:.0f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="names of tasks to run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, frame, wrong in tasks(options.folder):
        if options.only and not any(name.startswith(wanted) for wanted in options.only):
            continue
        print(f"\n{name}: {len(frame)} rows, {wrong.sum()} wrong", flush=True)
        audit, suspicion, words = ours(frame, wrong, "auto")
        rows = [(f"mislabel, mean={audit.model.mean_choice_.name}", *score(wrong, suspicion), words)]
        if audit.model.mean_choice_.name != "none":
            _, suspicion, words = ours(frame, wrong, "none")
            rows.append(("Gaussian process alone", *score(wrong, suspicion), words))
        for peer, suspicions in peers(frame):
            scores = np.array([score(wrong, suspicion) for suspicion in suspicions])
            rows.append((peer, *scores.mean(axis=0), f"AP from {scores[:, 1].min():.4f} to {scores[:, 1].max():.4f}"))
        for peer, auroc, precision, words in rows:
            print(f"  {peer:24s} AUROC {auroc:.4f}  AP {precision:.4f}  {words}", flush=True)


if __name__ == "__main__":
    main()
