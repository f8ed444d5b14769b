"""A complete audit by low rank, up to a million rows: time, memory, share of matrix-product speed, detection.

    python benchmarks/million.py --no-blocks 50000 100000 250000 500000 1000000 > benchmarks/million.txt
    python benchmarks/million.py 50000 100000 >> benchmarks/million.txt       # with exact blocks, the default up to 200,000

Ten features, a smooth function of five of them, noise of 0.05 and 5 % of the labels wrong by one standard deviation of the
clean ones (seed 0). Rank 500; everything else is the default: hyperparameters are tuned on a subset of exact labels, then
the noise of every label is fitted and the table made. Each size runs in a process of its own, whose peak memory is
told. The speed is that of averaging over right and wrong labels alone ("noise fit"), which counts n m^2 operations for a Gram matrix and as many for a triangular
solve, against one product of square matrices in the same process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from mislabel import LabelNoiseRegressor
from mislabel.estimators import low_rank_fit
from mislabel.evaluation import detection_report
from mislabel.linalg import row_blocks
from mislabel.linalg.row_blocks import weighted_gram, whitened_norms

RANK = 500


def data(size):
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(size, 10))
    x1, x2, x3, x4, x5 = features.T[:5]
    clean = np.sin(np.pi * x1 * x2) + 2 * (x3 - 0.5) ** 2 + x4 + 0.5 * x5
    labels = clean + rng.normal(0, 0.05, size)
    wrong = rng.permutation(size)[: size // 20]
    mask = np.zeros(size, dtype=bool)
    mask[wrong] = True
    labels[wrong] += rng.normal(0, clean.std(), wrong.size)
    return features, labels, mask


def product_speed(size=3000):
    """GFlop/s of one product of square matrices, the best of three."""
    from scipy.linalg import blas

    matrix = np.asfortranarray(np.random.default_rng(1).standard_normal((size, size)))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        blas.dgemm(1.0, matrix, matrix)
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times) / 1e9


def measure(size):
    features, labels, mask = data(size)
    spent = {"seconds": 0.0, "operations": 0.0, "solve": 0.0}

    def counted(work):
        def run(rows, *arguments):
            start = time.perf_counter()
            found = work(rows, *arguments)
            spent["seconds"] += time.perf_counter() - start
            spent["operations"] += len(rows) * rows.shape[1] ** 2
            return found

        return run

    row_blocks.weighted_gram, row_blocks.whitened_norms = counted(weighted_gram), counted(whitened_norms)
    solve = low_rank_fit.fit_mixture

    def timed(*arguments, **options):
        spent.update(seconds=0.0, operations=0.0)
        start = time.perf_counter()
        found = solve(*arguments, **options)
        spent["solve"] = time.perf_counter() - start
        return found

    low_rank_fit.fit_mixture = timed
    start = time.perf_counter()
    model = LabelNoiseRegressor(rank=RANK).fit(features, labels)
    fitted = time.perf_counter() - start
    table = model.audit(fdr=0.05, by_position=True)
    whole = time.perf_counter() - start
    suspect = np.zeros(size, dtype=bool)
    suspect[table["row"].to_numpy()] = table["suspect"].to_numpy()
    report = detection_report(mask, np.abs(model.z_), suspect=suspect)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {
        "n": size,
        "seconds": round(whole, 1),
        "fit": round(fitted, 1),
        "noise fit": round(spent["solve"], 1),
        "microseconds per row": round(1e6 * whole / size, 1),
        "noise fit, per row": round(1e6 * spent["solve"] / size, 1),
        "peak GB": round(peak, 2),
        "GFlop/s in the noise fit": round(spent["operations"] / spent["solve"] / 1e9, 1),
        "of a matrix product": round(spent["operations"] / spent["solve"] / 1e9 / product_speed(), 2),
        "residual": float(f"{model.residual_:.1e}"),
        "steps": model.n_iter_,
        "captured": round(model.captured_, 4),
        "AUROC": round(report.auroc, 4),
        "false discovery rate": round(report.false_discovery_rate, 4),
        "recall": round(report.recall, 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="+", type=int)
    parser.add_argument("--no-blocks", action="store_true", help="low rank and diagonal alone for all sizes")
    parser.add_argument("--one", action="store_true", help="measure in this process and print as JSON")
    options = parser.parse_args()
    if options.no_blocks:
        low_rank_fit.BLOCK_SIZES = ()
    for size in options.sizes:
        if options.one:
            print(json.dumps(measure(size)))
            continue
        flags = ["--one", *(["--no-blocks"] if options.no_blocks else [])]
        done = subprocess.run([sys.executable, __file__, *flags, str(size)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        row = json.loads(done.stdout)
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
