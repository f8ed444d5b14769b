"""Tables in the order of time whose labels drift: are the labels that are far off told from the others?

    python benchmarks/series.py ../shared/data > benchmarks/series.txt

Rows of real tables are put in an order in which their features drift (a random direction of the features, plus noise), and an autoregressive error is
added to the labels; in half of the series 3 % of the labels also get errors of their own. The 7 % of labels with the largest errors count as wrong. Each
stretch, a twentieth of the rows, is judged by models fitted to the others. AUROC and average precision of the absolute: residual of each model and of their
equal mean, the panel; and what of the panel's residuals is put down to the labels (`errors_of_series`). None of these
rows is among the tables with known wrong labels. The way was chosen on series made with other seeds (0, 1, 10, 11).
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from mislabel.estimators.blocked_cross_fit import BLOCKS
from mislabel.estimators.cross_fit import out_of_fold, seeded
from mislabel.estimators.mean_functions import MEANS
from mislabel.noise.drift import errors_of_series

TABLES = ("boston", "concrete", "wine_red", "power", "kin8nm", "energy")
#: (noise of the order, share of the rows over which errors are correlated)
SETTINGS = ((1.0, 0.01), (1.0, 0.05), (0.2, 0.03), (0.2, 0.1))
#: Share of the labels with errors of their own, as wide as the labels are.
SINGLE = (0.0, 0.03)
ROWS = 3000
LEVEL = 0.3
WRONG = 0.07


def drifting(features, labels, disorder, correlated, single, rng):
    if len(labels) > ROWS:
        some = rng.choice(len(labels), ROWS, replace=False)
        features, labels = features[some], labels[some]
    usual = (features - features.mean(axis=0)) / np.maximum(features.std(axis=0), 1e-9)
    labels = (labels - labels.mean()) / labels.std()
    season = usual @ rng.standard_normal(usual.shape[1])
    order = np.argsort(season / season.std() + disorder * rng.standard_normal(len(labels)))
    keep = np.exp(-1.0 / (correlated * len(labels)))
    pushes = rng.standard_normal(len(labels)) * np.sqrt(1.0 - keep**2)
    error = np.zeros(len(labels))
    for k, push in enumerate(pushes):
        error[k] = keep * error[k - 1] + push if k else rng.standard_normal()
    error *= LEVEL
    error += (rng.random(len(labels)) < single) * rng.standard_normal(len(labels))
    drifted = labels[order] + error + 0.05 * rng.standard_normal(len(labels))
    return features[order], drifted, np.abs(error) > np.quantile(np.abs(error), 1.0 - WRONG)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first-seed", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = dict(np.load(options.folder / "uci_regression.npz"))
    panel = seeded(MEANS["panel"](), 0)
    names = [*(name for name, _ in panel.estimators), "panel", "labels' errors"]
    everything = {single: [] for single in SINGLE}
    for number, ((disorder, correlated), single, table) in enumerate(itertools.product(SETTINGS, SINGLE, TABLES)):
        features, labels = stored[f"{table}_X"].astype(float), stored[f"{table}_y"].ravel()
        rng = np.random.default_rng(options.first_seed + number)
        X, y, wrong = drifting(features, labels, disorder, correlated, single, rng)
        residuals = [y - out_of_fold(model, X, y, KFold(BLOCKS), None) for _, model in panel.estimators]
        residuals.append(np.mean(residuals, axis=0))
        ways = [*residuals, errors_of_series(residuals[-1])]
        scores = [(roc_auc_score(wrong, np.abs(way)), average_precision_score(wrong, np.abs(way))) for way in ways]
        everything[single].append(scores)
        print(
            f"{table}, disorder {disorder}, errors correlated over {correlated:.0%}, {single:.0%} single: {told(names, scores)}",
            flush=True,
        )
    for single, scores in everything.items():
        print(f"mean, {single:.0%} single: {told(names, np.mean(scores, axis=0))}")


def told(names, scores):
    return ", ".join(
        f"{name} {auroc:.3f} / {precision:.3f}" for name, (auroc, precision) in zip(names, scores, strict=True)
    )


if __name__ == "__main__":
    main()
