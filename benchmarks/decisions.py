"""Decisions on real tables: does the false-discovery rate keep its word?

    python benchmarks/decisions.py ../shared/data/tables [--tables even|odd|all] [--seeds 1] > benchmarks/decisions.txt

Tables of up to 800 rows; some of their labels are made wrong, rounded to the labels' own grid; what was there is taken to be right, so
that realised rates are upper bounds. Settings were chosen on the tables at even positions of the sorted list; the odd ones report.
"realised" is the mean over tables of the share of right labels among the suspects, "pooled" that of all suspects together, "bad" the
share of tables where it is above .2 with five or more suspects, "oracle" the recall of the same ranking if it were cut where the share
truly is the nominal one.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from mislabel import LabelNoiseRegressor, audit

MOST_ROWS = 800
#: What is planted: share of the labels, and how they become wrong; nominal rate.
KINDS = {
    "10 %, level 1": (0.10, 1.0, 0.10),
    "5 %, level 1": (0.05, 1.0, 0.05),
    "20 %, level 1": (0.20, 1.0, 0.05),
    "10 %, level 0.5": (0.10, 0.5, 0.05),
    "10 %, level 3": (0.10, 3.0, 0.05),
    "10 %, times ten": (0.10, "ten", 0.05),
    "10 %, swapped": (0.10, "swap", 0.05),
    "nothing": (0.0, 1.0, 0.05),
}


def decimals(labels):
    """Digits after the decimal point that nearly all labels do with."""
    return next((k for k in range(15) if np.mean(np.round(labels, k) == labels) >= 0.95), 15)


def planted(frame, seed, rate, level):
    """The table with wrong labels, and which they are."""
    rng = np.random.default_rng(seed)
    frame = frame.dropna(subset=["label"])
    frame = frame.sample(min(MOST_ROWS, len(frame)), random_state=seed).reset_index(drop=True)
    label = frame["label"].to_numpy(dtype=float)
    wrong = rng.random(label.size) < rate
    if level == "ten":
        other = 10.0 * label
    elif level == "swap":
        other, chosen = label.copy(), np.flatnonzero(wrong)
        other[chosen] = label[rng.permutation(chosen)]
    else:
        other = label + rng.normal(0.0, level * label.std(), label.size)
    new = np.where(wrong, np.round(other, decimals(label)), label)
    return frame.assign(label=new), wrong & (new != label)


def oracle(wrong, score, nominal):
    order = np.argsort(-score, kind="stable")
    share = np.cumsum(~wrong[order]) / np.arange(1, wrong.size + 1)
    cut = np.flatnonzero(share <= nominal)
    return np.count_nonzero(wrong[order[: cut[-1] + 1]]) / max(wrong.sum(), 1) if cut.size else 0.0


def judged(frame, wrong, nominal):
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = audit(frame, "label", fdr=nominal, verbose=0)
    table = found.table.set_index("row").sort_index()
    suspect, score = table["suspect"].to_numpy(), table["score"].to_numpy()
    some = wrong.any()
    return {
        "suspects": int(suspect.sum()),
        "false": int(np.count_nonzero(suspect & ~wrong)),
        "share": float(suspect.mean()),
        "recall": float(suspect[wrong].mean()) if some else np.nan,
        "oracle": oracle(wrong, score, nominal) if some else np.nan,
        "ap": average_precision_score(wrong, score) if some else np.nan,
        "auroc": roc_auc_score(wrong, score) if some else np.nan,
        "seconds": time.process_time() - start,
    }


def run_tables(options):
    paths = sorted(options.folder.glob("*.csv.gz"))
    paths = {"even": paths[::2], "odd": paths[1::2], "all": paths}[options.tables]
    print(f"{len(paths)} tables ({options.tables}), seeds 0 to {options.seeds - 1}")
    print(f"{'planted':<16} nominal realised pooled   bad  recall oracle     AP  AUROC  seconds (median)", flush=True)
    for kind, (rate, level, nominal) in KINDS.items():
        rows = []
        for path in paths:
            for seed in range(options.seeds):
                found = judged(*planted(pd.read_csv(path), seed, rate, level), nominal)
                rows.append({"table": path.name[:-7], **found})
        table = pd.DataFrame(rows)
        if kind == "nothing":
            flagged = table[table["share"] > 0.03]
            named = ", ".join(f"{row.table} {100 * row.share:.0f} %" for row in flagged.itertuples()) or "none"
            print(
                f"nothing planted, nominal {nominal}: {len(flagged)} of {len(table)} tables have more than 3 % of their labels "
                f"called wrong ({named}); {table['suspects'].sum()} labels in all",
                flush=True,
            )
            continue
        rate_of = table["false"] / table["suspects"].clip(lower=1)
        bad = (rate_of > 0.2) & (table["suspects"] >= 5)
        pooled = table["false"].sum() / max(table["suspects"].sum(), 1)
        print(
            f"{kind:<16} {nominal:7.2f} {rate_of.mean():8.3f} {pooled:6.3f} {bad.mean():5.2f} {table['recall'].mean():7.3f} "
            f"{table['oracle'].mean():6.3f} {table['ap'].mean():6.3f} {table['auroc'].mean():6.3f} {table['seconds'].median():8.1f}"
            + ("  bad: " + ", ".join(sorted(set(table.loc[bad, "table"]))) if bad.any() else ""),
            flush=True,
        )


#: Errors of labels that are all right, by name.
NOISES = {
    "Gaussian": lambda rng, x: rng.normal(size=len(x)),
    "Laplace": lambda rng, x: rng.laplace(size=len(x)) / np.sqrt(2.0),
    "Student t, 4": lambda rng, x: rng.standard_t(4, size=len(x)) / np.sqrt(2.0),
    "input-dependent": lambda rng, x: rng.normal(size=len(x)) * (0.3 + 1.4 * x[:, 0]),
}


def run_clean(count):
    print(f"\nnothing wrong, made up, nominal 0.05: data sets with any suspect, {count} each of 150 to 400 rows")
    for name, noise in {**NOISES, "steps": NOISES["Gaussian"]}.items():
        hits = 0
        for seed in range(count):
            rng = np.random.default_rng([seed, 7])
            x = rng.uniform(size=(int(rng.integers(150, 401)), 4))
            signal = 3.0 * np.sin(5.0 * x[:, 0]) + 4.0 * x[:, 1] * x[:, 2]
            if name == "steps":
                signal = 3.0 * (x[:, 0] > 0.5) + 2.0 * (x[:, 1] > 0.3)
            labels = signal + 0.5 * noise(rng, x)
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")
                hits += bool(LabelNoiseRegressor().fit(x, labels).audit(0.05)["suspect"].any())
        print(f"{name:<16} {hits / count:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", choices=["even", "odd", "all"], default="odd")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--clean", type=int, default=40, help="data sets of each kind without wrong labels")
    options = parser.parse_args()
    run_tables(options)
    run_clean(options.clean)


if __name__ == "__main__":
    main()
