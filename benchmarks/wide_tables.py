"""Tables of many columns in mixed units: one length scale for all columns as they are, one for each, and what is chosen by default.

    python benchmarks/wide_tables.py ../shared/data > benchmarks/wide_tables.txt

RDKit's descriptors (about 190 columns) of the molecules of ESOL (solubility) and FreeSolv (hydration energy), and made-up labels that depend on 12 of 50 columns; a tenth
of the labels corrupted at level 0.5, rows drawn and corrupted with seeds 0 to 2. Mean absolute error of the clean labels of the other rows, AUROC and average precision.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem, RDLogger
from rdkit.Chem import Descriptors
from sklearn.metrics import average_precision_score, roc_auc_score

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.kernels import TableKernel
from mislabel.kernels.table import AMPLITUDE_RANGE, LENGTH_RANGE, START_LENGTH

SIZES = (120, 250, 500)
SEEDS = range(3)


def descriptors(smiles):
    molecules = [Chem.MolFromSmiles(text) for text in smiles]
    found = np.array(
        [[function(molecule) for _, function in Descriptors._descList] for molecule in molecules], dtype=float
    )
    usable = np.isfinite(found).all(axis=0) & (found.std(axis=0) > 0) & (np.abs(found).max(axis=0) < 1e6)
    return found[:, usable]


def tables(folder):
    esol = pd.read_csv(folder / "esol.csv.gz")
    yield "ESOL", descriptors(esol["smiles"]), esol["measured log solubility in mols per litre"].to_numpy(float)
    freesolv = pd.read_csv(folder / "freesolv_with_uncertainty.csv.gz")
    yield "FreeSolv", descriptors(freesolv["smiles"]), freesolv["expt_kcal_mol"].to_numpy(float)
    rng = np.random.default_rng(5)
    features = rng.normal(size=(700, 50))
    labels = features[:, 0] + np.sin(2 * features[:, 1]) + 0.5 * features[:, 2] * features[:, 3]
    labels += 0.3 * features[:, 4:12].sum(axis=1) + 0.2 * rng.normal(size=700)
    yield "made up", features * 10.0 ** rng.uniform(-2, 2, size=50), labels


def kernels(features):
    spread = np.where(features.std(axis=0) > 0, features.std(axis=0), 1.0)
    broad, typical = np.sqrt(spread.size), float(np.sqrt(np.mean(spread**2)))
    bounds = LENGTH_RANGE[0] * typical, LENGTH_RANGE[1] * typical * broad
    yield "as they are", TableKernel(1.0, START_LENGTH * broad * typical, "matern52", AMPLITUDE_RANGE, bounds)
    bounds = np.column_stack([LENGTH_RANGE[0] * spread, LENGTH_RANGE[1] * spread * broad])
    yield "one each", TableKernel(1.0, START_LENGTH * broad * spread, "matern52", AMPLITUDE_RANGE, bounds)
    yield "default", None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    warnings.simplefilter("ignore")
    RDLogger.DisableLog("rdApp.*")
    for name, features, labels in tables(folder):
        for size in SIZES:
            scores = {}
            for seed in SEEDS:
                order = np.random.default_rng(seed).permutation(labels.size)
                rows, others = order[:size], order[size:]
                given, _, wrong = corrupt_labels(labels[rows], 0.1, 0.5, random_state=seed)
                for words, kernel in kernels(features[rows]):
                    model = LabelNoiseRegressor(kernel=kernel, random_state=0).fit(features[rows], given)
                    odds, table = np.empty(size), model.audit(by_position=True)
                    odds[table["row"]] = table["score"]
                    error = np.abs(model.predict(features[others]) - labels[others]).mean()
                    taken = np.ndim(model.kernel_.length_scale)
                    found = (error, roc_auc_score(wrong, odds), average_precision_score(wrong, odds), taken)
                    scores.setdefault(words, []).append(found)
            for words, found in scores.items():
                error, auroc, precision, taken = np.mean(found, axis=0)
                print(
                    f"{name}, {features.shape[1]} columns, {size} rows, {words:11s}: error {error:.3f}  AUROC {auroc:.3f}  AP {precision:.3f}"
                    + (f"  (one each in {taken:.0%} of the fits)" if words == "default" else ""),
                    flush=True,
                )


if __name__ == "__main__":
    main()
