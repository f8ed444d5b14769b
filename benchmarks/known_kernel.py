"""Detection with the kernel known: ranking and realised false-discovery rates.

    python benchmarks/known_kernel.py > benchmarks/known_kernel.txt

Sixty problems per noise setting, n = 300, RBF and Matern-5/2 kernels in one to three dimensions; clean labels with 2 % noise
or none; 10 to 90 % wrong at levels 10 to 200 %. The kernel is given (precomputed, tune none), the base noise learned.
"""

from __future__ import annotations

import warnings

import numpy as np
from solver_cost import whole_matrix

from mislabel import LabelNoiseRegressor
from mislabel.errors import MislabelWarning
from mislabel.evaluation import detection_report

RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
LEVELS = (0.1, 0.5, 1.0, 2.0)
SIZE = 300
FDR = 0.10


def make(seed: int, rate: float, level: float, clean_noise: float, shape: str):
    rng = np.random.default_rng(seed)
    dimensions = int(rng.integers(1, 4))
    points = rng.uniform(size=(SIZE, dimensions))
    matrix = whole_matrix(points, rng.uniform(0.15, 0.4) * np.sqrt(dimensions), shape)
    signal = np.linalg.cholesky(matrix + 1e-8 * np.eye(SIZE)) @ rng.standard_normal(SIZE)
    labels = signal + clean_noise * signal.std() * rng.standard_normal(SIZE)
    wrong = np.zeros(SIZE, dtype=bool)
    wrong[rng.permutation(SIZE)[: round(rate * SIZE)]] = True
    labels[wrong] += rng.normal(0.0, level * signal.std(), wrong.sum())
    return matrix, labels, wrong


def main() -> None:
    for clean_noise in (0.02, 0.0):
        print(f"clean labels with {100 * clean_noise:g} % noise; 60 problems, nominal FDR {FDR}")
        print("rate   AUROC by z  AUROC by noise variance  average precision  realised FDR  recall  base noise status")
        everything = []
        for rate in RATES:
            rows, statuses = [], []
            for k in range(12):
                seed = 70_000 + 1000 * round(10 * rate) + k
                matrix, labels, wrong = make(seed, rate, LEVELS[k % 4], clean_noise, ("rbf", "matern")[k // 4 % 2])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MislabelWarning)
                    model = LabelNoiseRegressor("precomputed", tune="none").fit(matrix, labels)
                table = model.audit(FDR).sort_values("row")
                report = detection_report(wrong, np.abs(model.z_), suspect=table["suspect"])
                by_noise = detection_report(wrong, model.noise_variance_)
                rows.append(
                    [report.auroc, by_noise.auroc, report.average_precision, report.false_discovery_rate, report.recall]
                )
                statuses.append(model.base_noise_status_)
            everything += rows
            mean = np.mean(rows, axis=0)
            counts = ", ".join(f"{name} {statuses.count(name)}" for name in dict.fromkeys(statuses))
            print(
                f"{rate:4.0%} {mean[0]:10.3f} {mean[1]:18.3f} {mean[2]:22.3f} {mean[3]:15.3f} {mean[4]:8.2f}  {counts}",
                flush=True,
            )
        mean = np.mean(everything, axis=0)
        print(f"all  {mean[0]:10.3f} {mean[1]:18.3f} {mean[2]:22.3f} {mean[3]:15.3f} {mean[4]:8.2f}\n", flush=True)


if __name__ == "__main__":
    main()
