"""Audits of everyday tables: processor time, and how well planted errors are ranked; cleanlab's beside it in the same run.

    python benchmarks/everyday.py ../shared/data/tables [--tables even|odd|all] [--seeds 1] > benchmarks/everyday.txt
    python benchmarks/everyday.py --large >> benchmarks/everyday.txt

Every table has up to 800 rows; 10 % of its labels get an error of one standard deviation of the labels, rounded to the labels' own
grid; one core. Settings were chosen on the tables at even positions of the sorted list. cleanlab (pip install cleanlab) is
CleanLearning with its default model and with gradient boosting, on the same numeric features. Large tables are made up (Friedman's
function of five columns, five more without effect; the mixed one has text, dates, yes/no and gaps among its ten) and use two cores.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from mislabel import audit
from mislabel.data.tables import read_labelled_table

MOST_ROWS = 800
RATE = 0.1


def decimals(labels):
    """Digits after the decimal point that nearly all labels do with."""
    return next((k for k in range(15) if np.mean(np.round(labels, k) == labels) >= 0.95), 15)


def planted(frame, seed):
    """The table with wrong labels, and which they are."""
    rng = np.random.default_rng(seed)
    frame = frame.dropna(subset=["label"])
    frame = frame.sample(min(MOST_ROWS, len(frame)), random_state=seed).reset_index(drop=True)
    label = frame["label"].to_numpy(dtype=float)
    wrong = rng.random(label.size) < RATE
    noisy = np.where(wrong, label + rng.normal(0.0, label.std(), label.size), label)
    return frame.assign(label=np.round(noisy, decimals(label))), wrong


def audited(frame, wrong):
    start, wall = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = audit(frame, "label", fdr=0.1, verbose=0)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    table = found.table.set_index("row").sort_index()
    score, suspect = table["score"].to_numpy(), table["suspect"].to_numpy()
    choice = found.model.mean_choice_
    return {
        "seconds": seconds,
        "wall": wall,
        "auroc": roc_auc_score(wrong, score),
        "ap": average_precision_score(wrong, score),
        "false": np.count_nonzero(suspect & ~wrong) / max(np.count_nonzero(suspect), 1),
        "recall": np.mean(suspect[wrong]),
        "mean": choice.name if choice is not None else "-",
    }


def by_cleanlab(frame, wrong, model):
    from cleanlab.regression.learn import CleanLearning

    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read_labelled_table(frame, "label")
        found = CleanLearning(model, seed=0).find_label_issues(table.features, table.label)
    score = -found["label_quality"].to_numpy()
    return time.process_time() - start, average_precision_score(wrong, score), roc_auc_score(wrong, score)


def peers():
    try:
        import cleanlab  # noqa: F401
    except ImportError:
        print("cleanlab is not installed: no peers")
        return {}
    return {"cleanlab": lambda: None, "cleanlab, boosting": lambda: HistGradientBoostingRegressor(random_state=0)}


def run_tables(options):
    paths = sorted(options.folder.glob("*.csv.gz"))
    paths = {"even": paths[::2], "odd": paths[1::2], "all": paths}[options.tables]
    rows, others = [], {name: [] for name in peers()}
    makers = peers()
    print(
        f"{'table':<22} rows columns  seconds  AUROC     AP  false recall  mean model      "
        + "  ".join(f"{name} (s, AP)" for name in makers),
        flush=True,
    )
    for path in paths:
        for seed in range(options.seeds):
            frame, wrong = planted(pd.read_csv(path), seed)
            with threadpool_limits(1):
                found = audited(frame, wrong)
                beside = {name: by_cleanlab(frame, wrong, make()) for name, make in makers.items()}
            rows.append(found)
            for name, figures in beside.items():
                others[name].append(figures)
            print(
                f"{path.name[:-7]:<22} {len(frame):4d} {frame.shape[1] - 1:7d} {found['seconds']:8.1f} {found['auroc']:6.3f} "
                f"{found['ap']:6.3f} {found['false']:6.2f} {found['recall']:6.2f}  {found['mean']:<14}"
                + "".join(f" {seconds:7.1f} {precision:6.3f}" for seconds, precision, _ in beside.values()),
                flush=True,
            )
    table = pd.DataFrame(rows)
    print(f"\nprocessor time: median {table['seconds'].median():.1f} s, largest {table['seconds'].max():.1f} s")
    print(f"mean AUROC {table['auroc'].mean():.4f}, average precision {table['ap'].mean():.4f}")
    print(f"nominal rate 0.10: realised {table['false'].mean():.3f} on average, recall {table['recall'].mean():.3f}")
    for name, figures in others.items():
        seconds, precision, area = np.array(figures).T
        ahead = np.count_nonzero(table["ap"].to_numpy() > precision)
        print(
            f"{name}: median {np.median(seconds):.1f} s, largest {seconds.max():.1f} s; mean AUROC {area.mean():.4f}, "
            f"average precision {precision.mean():.4f}; mislabel's is higher in {ahead} of {len(precision)}"
        )


def made_up(size, mixed):
    """A large table and which of its labels are wrong."""
    rng = np.random.default_rng(size)
    X = rng.uniform(size=(size, 10))
    label = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    label += rng.normal(size=size)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(10)])
    if mixed:
        kind, city = (X[:, 5] * 6).astype(int), (X[:, 6] * 40).astype(int)
        label += 2.0 * kind + np.sin(city)
        frame["x5"], frame["x6"] = np.array(list("abcdef"))[kind], np.array([f"city {k}" for k in range(40)])[city]
        frame["x7"] = pd.Timestamp("2020-01-01") + pd.to_timedelta((1000 * X[:, 7]).astype(int), "D")
        frame.loc[rng.random(size) < 0.05, "x8"] = np.nan
        frame["x9"] = X[:, 9] > 0.5
    wrong = rng.random(size) < RATE
    frame["label"] = np.where(wrong, label + rng.normal(0.0, label.std(), size), label)
    return frame, wrong


def run_large():
    print("\nlarge tables, two cores")
    for size, mixed in ((10_000, False), (50_000, True)):
        found = audited(*made_up(size, mixed))
        what = "mixed columns" if mixed else "numbers"
        print(
            f"{size} x 10, {what}: {found['wall']:.0f} s, {found['seconds']:.0f} s of processor; AUROC {found['auroc']:.3f}, "
            f"average precision {found['ap']:.3f}, mean model {found['mean']}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--tables", choices=["even", "odd", "all"], default="all")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--large", action="store_true", help="large tables instead")
    options = parser.parse_args()
    if options.large:
        run_large()
    else:
        run_tables(options)


if __name__ == "__main__":
    main()
