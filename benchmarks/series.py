"""Tables in the order of time whose labels drift: which panel of models tells the labels that drifted far from the others?

    python benchmarks/series.py ../shared/data > benchmarks/series.txt

Rows of real tables are put in an order in which their features drift (a random direction of the features, plus noise), and an autoregressive error is
added to the labels; the 7 % of labels with the largest errors count as wrong. Each stretch, a twentieth of the rows, is judged by models fitted to the
others. AUROC of the absolute error of: the panel's equal mean; the panel weighed by its predictions of near stretches (the same twentieths) and of far
ones (fifths); each member alone. Means of three seeds. None of these rows is among the tables with known wrong labels.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from mislabel.estimators.cross_fit import out_of_fold, seeded
from mislabel.estimators.means import MEANS
from mislabel.estimators.series import FAR_STRETCHES, STRETCHES, panel_weights

TABLES = ("boston", "concrete", "wine_red", "power", "kin8nm", "energy")
#: (noise of the order, share of the rows over which errors are correlated, first seed)
SETTINGS = ((1.0, 0.01, 0), (1.0, 0.05, 0), (0.2, 0.03, 10), (0.2, 0.1, 10))
SEEDS = 3
ROWS = 3000
LEVEL = 0.3
WRONG = 0.07


def drifting(features, labels, disorder, correlated, rng):
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
    drifted = labels[order] + LEVEL * error + 0.05 * rng.standard_normal(len(labels))
    return features[order], drifted, np.abs(error) > np.quantile(np.abs(error), 1.0 - WRONG)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = dict(np.load(options.folder / "uci_regression.npz"))
    panel = seeded(MEANS["panel"](), 0)
    names = ["equal", "near weights", "far weights", *(name for name, _ in panel.estimators)]
    everything = []
    for table in TABLES:
        for disorder, correlated, first in SETTINGS:
            found = []
            for seed in range(first, first + SEEDS):
                rng = np.random.default_rng(seed)
                X, y, wrong = drifting(
                    stored[f"{table}_X"].astype(float), stored[f"{table}_y"].ravel(), disorder, correlated, rng
                )
                far, near = (
                    np.column_stack([out_of_fold(model, X, y, KFold(count), None) for _, model in panel.estimators])
                    for count in (FAR_STRETCHES, STRETCHES)
                )
                ways = [near.mean(axis=1), near @ panel_weights(near, y), near @ panel_weights(far, y), *near.T]
                found.append([roc_auc_score(wrong, np.abs(y - way)) for way in ways])
            everything.append(np.mean(found, axis=0))
            told = ", ".join(f"{name} {value:.3f}" for name, value in zip(names, everything[-1], strict=True))
            print(f"{table}, disorder {disorder}, errors correlated over {correlated:.0%}: {told}", flush=True)
    told = ", ".join(f"{name} {value:.4f}" for name, value in zip(names, np.mean(everything, axis=0), strict=True))
    print(f"mean: {told}")


if __name__ == "__main__":
    main()
