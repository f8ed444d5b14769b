"""Groups that are wrong as a whole, planted in real tables: how many are found, and how many right groups are called wrong.

    python benchmarks/blocks.py ../shared/data/tables [--part settings|report] [--seeds 1] > benchmarks/blocks.txt
    python benchmarks/blocks.py ../shared/data/real_errors/thermoml_bromide_density.csv.gz >> benchmarks/blocks.txt

Each table has 400 rows in groups of ten that lie near each other along one of its columns of numbers, as batches do; the rows come
in random order. In 10 % of the groups the labels are shifted by one standard deviation of all labels, multiplied by a factor that
changes them by as much on average, moved by one row or put in reverse order, or two columns of numbers are exchanged, in turn. A
block error is called detectable if it changes labels (or, where columns are exchanged, what the reference expects) by at least as
much, by root mean square, as a reference errs that has seen all right labels but those of the group: extra trees and gradient
boosting, averaged. The audited model is a Gaussian process alone, on the labels as they are. Settings were chosen on the five tables of SETTINGS; not on those of REPORT. The second command is
about series of densities that were measured; their wrong ones, by their authors' correction, are used to score alone.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold

from mislabel import audit
from mislabel.data.tables import read_labelled_table
from mislabel.estimators.mean_functions import mean_named

SETTINGS = ("Computers", "auto_mpg", "Housing", "diamonds", "u_concrete")
REPORT = ("Hedonic", "bikeshare", "carseats", "college_outstate", "u_power")
KINDS = ("shift", "factor", "displaced", "reversed", "exchanged")
ROWS, SIZE, RATE, FDR = 400, 10, 0.1, 0.05
FAST = {"mean": "none", "label_transform": "none", "row_noise": "none", "verbose": 0}


def numbers_of(frame, least):
    names = [name for name in frame.columns if name != "label" and pd.api.types.is_numeric_dtype(frame[name])]
    return [name for name in names if frame[name].nunique() > least]


def grouped(frame, seed):
    """Some rows of a table and their groups: neighbours along one column, up to accidents."""
    rng = np.random.default_rng(seed)
    frame = frame.dropna(subset=["label"])
    frame = frame.sample(min(ROWS, len(frame)), random_state=seed).reset_index(drop=True)
    names = numbers_of(frame, 10)
    key = frame[names[seed % len(names)]].rank(pct=True).fillna(0.5) + rng.normal(0.0, 0.3, len(frame))
    groups = np.empty(len(frame), dtype=int)
    groups[np.argsort(key.to_numpy(), kind="stable")] = np.arange(len(frame)) * (len(frame) // SIZE) // len(frame)
    order = rng.permutation(len(frame))
    return frame.iloc[order].reset_index(drop=True), groups[order]


def planted(frame, groups, seed):
    """The table with wrong groups, and of which kind each of these is."""
    rng = np.random.default_rng(seed + 100)
    count = groups.max() + 1
    wrong = rng.choice(count, max(1, round(RATE * count)), replace=False)
    spread, frame = frame["label"].std(), frame.copy()
    labels, names = frame["label"].to_numpy(dtype=float).copy(), numbers_of(frame, 5)
    kinds = {}
    for number, group in enumerate(wrong):
        kinds[group] = kind = KINDS[(number + seed) % len(KINDS)]
        rows = np.flatnonzero(groups == group)
        if kind == "shift":
            labels[rows] += rng.choice([-1, 1]) * spread
        elif kind == "factor":
            part = spread / np.abs(labels[rows]).mean()
            labels[rows] *= 1.0 + part if rng.random() < 0.5 or part > 0.6 else 1.0 - part
        elif kind == "displaced":
            labels[rows] = np.roll(labels[rows], 1)
        elif kind == "reversed":
            labels[rows] = labels[rows][::-1]
        else:
            one, other = rng.choice(names, 2, replace=False)
            values = frame.loc[rows, [other, one]].to_numpy(dtype=float)
            frame[[one, other]] = frame[[one, other]].astype(float)
            frame.loc[rows, [one, other]] = values
    return frame.assign(label=labels), kinds


def detectable(right, wrong, groups, kinds):
    """Which block errors change labels by at least as much as a reference errs that knows the other right labels."""
    both = pd.concat([right, wrong], ignore_index=True)
    features, label = read_labelled_table(both, "label").features, right["label"].to_numpy(dtype=float)
    before, after = features[: len(right)], features[len(right) :]
    expected, changed = np.empty(len(right)), np.empty(len(right))
    for train, test in GroupKFold(10).split(before, groups=groups):
        models = [
            mean_named(name).set_params(random_state=0).fit(before[train], label[train])
            for name in ("trees", "boosting")
        ]
        expected[test], changed[test] = (
            np.mean([model.predict(part[test]) for model in models], axis=0) for part in (before, after)
        )
    typical = np.sqrt(np.mean((label - expected) ** 2))
    off = wrong["label"].to_numpy() - label - (changed - expected)
    return {group: bool(np.sqrt(np.mean(off[groups == group] ** 2)) >= typical) for group in kinds}


def run(folder, names, seeds):
    entries, false, called = [], 0, 0
    for name in names:
        for seed in range(seeds):
            right, groups = grouped(pd.read_csv(folder / f"{name}.csv.gz"), seed)
            wrong, kinds = planted(right, groups, seed)
            can_be = detectable(right, wrong, groups, kinds)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = audit(wrong, "label", fdr=FDR, group=groups, **FAST).groups.set_index("group")
            seconds = time.process_time() - start
            suspects = set(found.index[found["suspect"]])
            own = [(kind, can_be[group], group in suspects) for group, kind in kinds.items()]
            entries += own
            extra = len(suspects - set(kinds))
            false, called = false + extra, called + len(suspects)
            print(
                f"{name:17} {seed:4} {len(found):6} {len(kinds):5} {sum(can for _, can, _ in own):10} {sum(hit for *_, hit in own):5} "
                f"{extra:5} {seconds:7.0f}  missed: {', '.join(kind + ('' if can else ' (slight)') for kind, can, hit in own if not hit) or '-'}",
                flush=True,
            )
    print(
        f"called wrong: {called}, of which right: {false} ({100 * false / max(called, 1):.1f} %, nominal {100 * FDR:.0f} %)"
    )
    for kind in (*KINDS, "all"):
        mine = [(can, hit) for own, can, hit in entries if kind in (own, "all")]
        can = [hit for able, hit in mine if able]
        print(
            f"{kind:10} found {sum(hit for _, hit in mine):3} of {len(mine):3}; of the detectable ones {sum(can):3} of {len(can):3}"
        )


def run_series(path):
    frame = pd.read_csv(path)
    wrong = frame.groupby("Substances")["true_error"].mean() > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = audit(frame.drop(columns="true_error"), "given_label", fdr=FDR, group="Substances", verbose=0)
    groups = found.groups.assign(wrong=found.groups["group"].map(wrong))
    print(f"{len(groups)} series, {wrong.sum()} wrong; among the 12 most suspicious: {groups['wrong'][:12].sum()}")
    print(f"called wrong: {groups['suspect'].sum()}, of which right: {(groups['suspect'] & ~groups['wrong']).sum()}")
    for entry in groups.head(12).to_dict("records"):
        print(f"{'wrong' if entry['wrong'] else 'right'}  q {entry['q_value']:.1e}  {entry['group']}: {entry['words']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--part", choices=["settings", "report"], default="report")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    if options.path.is_file():
        run_series(options.path)
    else:
        print(f"{options.part}: table, seed, groups, wrong, detectable, found, falsely called, seconds")
        run(options.path, SETTINGS if options.part == "settings" else REPORT, options.seeds)
