"""Whether a mean function trusted by half is worth a candidate: rankings with the model of best density, halves included or not.

    python benchmarks/half_means.py ../shared/data > benchmarks/half_means.txt

Seven tables and scikit-learn's diabetes, at most 800 rows, 10 and 30 % of the labels corrupted at level 1, seeds 70 and 71. Leave-one-out predictions of the process alone
and of the one over boosting or trees are averaged, as choose_mean does; AUROC and average precision of the odds that a label is wrong.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import average_precision_score, roc_auc_score

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.decisions import calibrate
from mislabel.decisions.scores import SCORES
from mislabel.estimators.mean_choice import LEAST_ADVANTAGE

TABLES = ("yacht", "boston", "concrete", "energy", "kin8nm", "power", "wine_red", "diabetes")
ROWS = 800


def judged(evidence, labels, expected, variance, wrong):
    error = labels - expected
    calibration = calibrate(error, variance, expected)
    own = replace(evidence, error=error, expected=expected, variance=variance, z=error / np.sqrt(variance))
    odds = SCORES["odds"](calibration.apply(own))
    return calibration.log_density, roc_auc_score(wrong, odds), average_precision_score(wrong, odds)


def best(found, names):
    name = max(names, key=lambda name: found[name][0])
    return name if found[name][0] > found["none"][0] + LEAST_ADVANTAGE else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    stored = dict(np.load(parser.parse_args().folder / "uci_regression.npz"))
    diabetes = load_diabetes()
    stored.update(diabetes_X=diabetes.data, diabetes_y=diabetes.target)
    warnings.simplefilter("ignore")
    without, halves = ("none", "boosting", "trees"), ("half-boosting", "half-trees")
    rows = []
    for name in TABLES:
        for rate in (0.1, 0.3):
            for seed in (70, 71):
                features, labels = stored[f"{name}_X"].astype(float), stored[f"{name}_y"].ravel().astype(float)
                some = np.random.default_rng(seed).permutation(labels.size)[:ROWS]
                given, _, wrong = corrupt_labels(labels[some], rate, 1.0, random_state=seed)
                fits = {
                    mean: LabelNoiseRegressor(mean=mean, random_state=0).fit(features[some], given) for mean in without
                }
                said = {mean: (model.loo_mean_, model.loo_variance_) for mean, model in fits.items()}
                for half in halves:
                    said[half] = tuple(0.5 * (a + b) for a, b in zip(said["none"], said[half[5:]], strict=True))
                found = {mean: judged(fits["none"]._evidence, given, *pair, wrong) for mean, pair in said.items()}
                rows.append((found[best(found, without)][1:], found[best(found, without + halves)][1:]))
                told = "  ".join(f"{mean} {a:.3f} {b:.3f} {c:.3f}" for mean, (a, b, c) in found.items())
                taken = best(found, without + halves)
                print(f"{name} {rate:.0%} {seed}: density, AUROC, AP: {told}; taken: {taken}", flush=True)
    before, after = np.mean(rows, axis=0)
    print(f"mean AUROC and AP without halves {before[0]:.4f} {before[1]:.4f}, with them {after[0]:.4f} {after[1]:.4f}")


if __name__ == "__main__":
    main()
