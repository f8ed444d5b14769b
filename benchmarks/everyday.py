"""Audits of everyday tables on one core: processor time, and how well planted errors are ranked.

    python benchmarks/everyday.py ../shared/data/tables [--tables even|odd|all] [--seeds 1] > benchmarks/everyday.txt

Every table has up to 800 rows; 10 % of its labels get an error of one standard deviation of the labels, rounded to the labels' own
grid. Settings are chosen on the tables at even positions of the sorted list.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from mislabel.estimators.one_call import _decimals, audit_table_of

MOST_ROWS = 800
RATE = 0.1


def planted(frame, seed):
    """The table with wrong labels, and which they are."""
    rng = np.random.default_rng(seed)
    frame = frame.dropna(subset=["label"])
    frame = frame.sample(min(MOST_ROWS, len(frame)), random_state=seed).reset_index(drop=True)
    label = frame["label"].to_numpy(dtype=float)
    wrong = rng.random(label.size) < RATE
    noisy = np.where(wrong, label + rng.normal(0.0, label.std(), label.size), label)
    return frame.assign(label=np.round(noisy, _decimals(label))), wrong


def audited(frame, wrong):
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = audit_table_of(frame, "label", 0.1, mean="auto", rank="auto", missing="predict")
    seconds = time.process_time() - start
    score = np.empty(len(frame))
    score[found.positions] = found.table["score"]
    suspect = np.zeros(len(frame), dtype=bool)
    suspect[found.positions] = found.table["suspect"]
    false = np.count_nonzero(suspect & ~wrong) / max(np.count_nonzero(suspect), 1)
    choice = found.model.mean_choice_
    return {
        "seconds": seconds,
        "auroc": roc_auc_score(wrong, score),
        "ap": average_precision_score(wrong, score),
        "false": false,
        "recall": np.mean(suspect[wrong]),
        "mean": choice.name if choice is not None else "-",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", choices=["even", "odd", "all"], default="all")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.csv.gz"))
    paths = {"even": paths[::2], "odd": paths[1::2], "all": paths}[options.tables]
    rows = []
    print(f"{'table':<22} rows columns  seconds  AUROC     AP  false recall  mean model", flush=True)
    for path in paths:
        for seed in range(options.seeds):
            frame, wrong = planted(pd.read_csv(path), seed)
            found = audited(frame, wrong)
            rows.append(found)
            print(
                f"{path.name[:-7]:<22} {len(frame):4d} {frame.shape[1] - 1:7d} {found['seconds']:8.1f} {found['auroc']:6.3f} "
                f"{found['ap']:6.3f} {found['false']:6.2f} {found['recall']:6.2f}  {found['mean']}",
                flush=True,
            )
    table = pd.DataFrame(rows)
    print(f"\nprocessor time: median {table['seconds'].median():.1f} s, largest {table['seconds'].max():.1f} s")
    print(f"mean AUROC {table['auroc'].mean():.4f}, average precision {table['ap'].mean():.4f}")
    print(f"nominal rate 0.10: realised {table['false'].mean():.3f} on average, recall {table['recall'].mean():.3f}")


if __name__ == "__main__":
    main()
