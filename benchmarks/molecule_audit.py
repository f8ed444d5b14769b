"""Wrong labels among a thousand molecules: the kernel tuned on their labels, the one with a far walk, and the most accurate one.

    python benchmarks/molecule_audit.py ../shared/data > benchmarks/molecule_audit.txt

1,000 random molecules of QM7 and QM9 (seed 7); a tenth of their energies wrong by a tenth of their spread, or three tenths by half of it (seed 0): the median
absolute leave-one-out error of right labels, detection by the odds that a label is wrong, and what is found at a nominal false discovery rate of 5 %.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels, load_qm7, load_qm9
from mislabel.errors import MislabelWarning
from mislabel.evaluation import detection_report
from mislabel.kernels import MolecularKernel

SIZE = 1000
SETS = (("qm7", "energy"), ("qm9", "energy"))
ROWS = ((0.1, 0.1), (0.3, 0.5))
KERNELS = {"tuned": MolecularKernel, "far-walk": MolecularKernel.with_far_walk, "accurate": MolecularKernel.accurate}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernels", nargs="+", choices=list(KERNELS), default=list(KERNELS))
    options = parser.parse_args()
    folder = options.folder
    warnings.simplefilter("ignore", MislabelWarning)
    for name, label in SETS:
        data = load_qm7(folder / "qm7.npz") if name == "qm7" else load_qm9(folder / "qm9_random8000.npz")
        chosen = np.random.default_rng(7).choice(len(data), SIZE, replace=False)
        molecules, clean = [data[k] for k in chosen], data.labels(label)[chosen]
        for rate, level in ROWS:
            noisy = corrupt_labels(clean, rate, level, random_state=0)
            for words in options.kernels:
                kernel = KERNELS[words]()
                start = time.perf_counter()
                model = LabelNoiseRegressor(kernel=kernel, random_state=0).fit(molecules, noisy.labels)
                table = model.audit(fdr=0.05, by_position=True)
                seconds = time.perf_counter() - start
                suspect, odds = np.zeros(SIZE, dtype=bool), np.empty(SIZE)
                suspect[table["row"]], odds[table["row"]] = table["suspect"], table["score"]
                report = detection_report(noisy.mask, odds, suspect=suspect)
                error = np.median(np.abs(model.loo_mean_ - clean)[~noisy.mask])
                print(
                    f"{name} {label:6s} {100 * rate:.0f} % by {100 * level:.0f} %  {words:8s}  error {error:.3f}  AUROC {report.auroc:.4f}  "
                    f"FDR {report.false_discovery_rate:.3f}  recall {report.recall:.3f}  {seconds:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
