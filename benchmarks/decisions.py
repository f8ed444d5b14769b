"""Decisions on real tables: does the false-discovery rate keep its word?

    python benchmarks/decisions.py ../shared/data/tables > benchmarks/decisions.txt
        [--tables even|odd|all] [--seeds 2] [--jobs 2] [--rows decisions-rows.jsonl]

Tables of up to 800 rows; some of their labels are made wrong, rounded to the labels' own grid; what was there is taken to be right, so
that realised rates are upper bounds. Settings were chosen on the tables at even positions of the sorted list; the odd ones report.
"realised" is the mean over tables of the share of right labels among the suspects, "pooled" that of all suspects together, "bad" the
share of tables where it is above .2 with five or more suspects, "oracle" the recall of the same ranking if it were cut where the share
truly is the nominal one. Every finished audit is a line of the file of rows: a run that was stopped goes on where it was.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from mislabel import audit

MOST_ROWS = 800
#: What is planted: share of the labels, and how they become wrong; nominal rates.
KINDS = {
    "10 %, level 1": (0.10, 1.0, (0.10, 0.05)),
    "5 %, level 1": (0.05, 1.0, (0.05,)),
    "20 %, level 1": (0.20, 1.0, (0.05,)),
    "10 %, level 0.5": (0.10, 0.5, (0.05,)),
    "10 %, level 3": (0.10, 3.0, (0.05,)),
    "10 %, times ten": (0.10, "ten", (0.05,)),
    "10 %, swapped": (0.10, "swap", (0.05,)),
    "nothing": (0.0, 1.0, (0.05,)),
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


def judged(path, kind, seed):
    """One audit, a row per nominal rate."""
    rate, level, rates = KINDS[kind]
    frame, wrong = planted(pd.read_csv(path), seed, rate, level)
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = audit(frame, "label", fdr=rates[0], verbose=0)
    seconds, some = time.process_time() - start, wrong.any()
    rows = []
    for nominal in rates:
        table = found.model.audit(nominal, by_position=True).sort_values("row")
        suspect, score = table["suspect"].to_numpy(), table["score"].to_numpy()
        rows.append(
            {
                "table": path.name[:-7],
                "kind": kind,
                "seed": seed,
                "nominal": nominal,
                "scale": found.model.label_transform_.name,
                "mean": found.model.mean_choice_.name,
                "suspects": int(suspect.sum()),
                "false": int(np.count_nonzero(suspect & ~wrong)),
                "share": float(suspect.mean()),
                "recall": float(suspect[wrong].mean()) if some else None,
                "oracle": oracle(wrong, score, nominal) if some else None,
                "ap": float(average_precision_score(wrong, score)) if some else None,
                "auroc": float(roc_auc_score(wrong, score)) if some else None,
                "seconds": seconds,
            }
        )
    return rows


def all_rows(paths, kinds, seeds, jobs, cache):
    """Rows of all audits, those of the cache not repeated."""
    known = []
    if cache is not None and cache.exists():
        known = [json.loads(line) for line in cache.read_text().splitlines()]
    done = {(row["table"], row["kind"], row["seed"]) for row in known}
    todo = [(path, kind, seed) for kind in kinds for path in paths for seed in seeds]
    todo = [job for job in todo if (job[0].name[:-7], job[1], job[2]) not in done]
    for rows in Parallel(jobs, return_as="generator_unordered")(delayed(judged)(*job) for job in todo):
        known += rows
        if cache is not None:
            with cache.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
    names = {path.name[:-7] for path in paths}
    wanted = [row for row in known if row["table"] in names and row["kind"] in kinds and row["seed"] in seeds]
    return pd.DataFrame(wanted)


def told(table):
    """One line of figures."""
    rate = table["false"] / table["suspects"].clip(lower=1)
    bad = (rate > 0.2) & (table["suspects"] >= 5)
    pooled = table["false"].sum() / max(table["suspects"].sum(), 1)
    figures = table[["recall", "oracle", "ap", "auroc"]].astype(float).mean()
    return (
        f"{rate.mean():8.3f} {pooled:6.3f} {bad.mean():5.2f} {figures['recall']:7.3f} {figures['oracle']:6.3f} "
        f"{figures['ap']:6.3f} {figures['auroc']:6.3f} {table['seconds'].median():8.1f}"
        + ("  bad: " + ", ".join(sorted(set(table.loc[bad, "table"]))) if bad.any() else "")
    )


def run_tables(options):
    paths = sorted(options.folder.glob("*.csv.gz"))
    parts = {"even": paths[::2], "odd": paths[1::2], "all": paths}
    kinds = options.kinds or list(KINDS)
    found = all_rows(parts[options.tables], kinds, range(options.seeds), options.jobs, options.rows)
    for part in ("odd", "even", "all") if options.tables == "all" else (options.tables,):
        names = [path.name[:-7] for path in parts[part]]
        print(f"{len(names)} tables ({part}{WHAT[part]}), seeds 0 to {options.seeds - 1}")
        tell(found[found["table"].isin(names)], kinds)
        print()


#: What tables were used for.
WHAT = {"odd": "", "even": ": settings were chosen on these", "all": ""}


def tell(found, kinds):
    print(f"{'planted':<16} nominal realised pooled   bad  recall oracle     AP  AUROC  seconds (median)")
    for kind in kinds:
        if kind == "nothing":
            continue
        for nominal in KINDS[kind][2]:
            part = found[(found["kind"] == kind) & (found["nominal"] == nominal)]
            print(f"{kind:<16} {nominal:7.2f} {told(part)}", flush=True)
    nothing = found[found["kind"] == "nothing"]
    if len(nothing):
        flagged = nothing[nothing["share"] > 0.03]
        named = ", ".join(f"{row.table} {100 * row.share:.0f} %" for row in flagged.itertuples()) or "none"
        print(
            f"nothing planted, nominal 0.05: {len(flagged)} of {len(nothing)} audits have more than 3 % of their labels "
            f"called wrong ({named}); {nothing['suspects'].sum()} labels in all",
            flush=True,
        )


#: Errors of labels that are all right, by name.
NOISES = {
    "Gaussian": lambda rng, x: rng.normal(size=len(x)),
    "Laplace": lambda rng, x: rng.laplace(size=len(x)) / np.sqrt(2.0),
    "Student t, 4": lambda rng, x: rng.standard_t(4, size=len(x)) / np.sqrt(2.0),
    "input-dependent": lambda rng, x: rng.normal(size=len(x)) * (0.3 + 1.4 * x[:, 0]),
}


def clean_set(name, seed):
    """Features and labels that are all right."""
    rng = np.random.default_rng([seed, 7])
    x = rng.uniform(size=(int(rng.integers(150, 401)), 4))
    signal = 3.0 * np.sin(5.0 * x[:, 0]) + 4.0 * x[:, 1] * x[:, 2]
    if name == "steps":
        signal = 3.0 * (x[:, 0] > 0.5) + 2.0 * (x[:, 1] > 0.3)
    return x, signal + 0.5 * NOISES.get(name, NOISES["Gaussian"])(rng, x)


def any_suspect(name, seed):
    x, labels = clean_set(name, seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return bool(audit(x, labels, fdr=0.05, verbose=0).findings.n_suspects)


def run_clean(count, jobs):
    print(f"nothing wrong, made up, nominal 0.05: data sets with any suspect, {count} each of 150 to 400 rows")
    for name in [*NOISES, "steps"]:
        hits = Parallel(jobs)(delayed(any_suspect)(name, seed) for seed in range(count))
        print(f"{name:<16} {np.mean(hits):.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", choices=["even", "odd", "all"], default="odd")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), help="what is planted; all of it unless named")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="file that keeps every finished audit")
    parser.add_argument("--clean", type=int, default=40, help="data sets of each kind without wrong labels")
    options = parser.parse_args()
    run_tables(options)
    if options.clean:
        run_clean(options.clean, options.jobs)


if __name__ == "__main__":
    main()
