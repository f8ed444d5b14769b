"""A Parquet file larger than the memory it may be audited in: what is held at the peak, how long it takes, what is found.

    python benchmarks/out_of_core.py > benchmarks/out_of_core.txt

200,000 rows and 500 columns of numbers: ten quantities, each measured by fifty instruments with an error of 10 %. The label is
Friedman's function of the first five quantities with a noise of 0.5; 5 % of the labels are wrong by two standard deviations.
The file is written to a temporary folder, the audit runs as a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
from sklearn.metrics import roc_auc_score

QUANTITIES, INSTRUMENTS, PIECE = 10, 50, 20_000


def write_file(path, rows, seed=0):
    rng = np.random.default_rng(seed)
    wrong, writer = [], None
    for start in range(0, rows, PIECE):
        size = min(PIECE, rows - start)
        x = rng.random((size, QUANTITIES))
        signal = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
        label = signal + 0.5 * rng.standard_normal(size)
        mask = rng.random(size) < 0.05
        label[mask] += 10.0 * rng.standard_normal(np.count_nonzero(mask))
        wrong.append(mask)
        measured = np.repeat(x, INSTRUMENTS, axis=1) + 0.1 * rng.standard_normal((size, QUANTITIES * INSTRUMENTS))
        columns = {f"x{k // INSTRUMENTS}_{k % INSTRUMENTS}": measured[:, k] for k in range(measured.shape[1])}
        table = pa.table({**columns, "y": label})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
    return np.concatenate(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--memory", default="700MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "big.parquet"), Path(folder, "audit")
        with ProcessPoolExecutor(1) as elsewhere:  # what this process has held would count as the child's
            wrong = elsewhere.submit(write_file, path, options.rows).result()
        print(
            f"{options.rows} rows, {path.stat().st_size / 1e6:.0f} MB of Parquet, budget {options.memory}", flush=True
        )
        start = time.perf_counter()
        command = [sys.executable, "-m", "mislabel", "audit", str(path), "--label", "y", "--memory", options.memory]
        subprocess.run([*command, "--out", str(out), "--quiet"], check=True)
        seconds = time.perf_counter() - start
        peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        table = pd.read_csv(out / "audit.csv").sort_values("row")
        suspect = table["suspect"].to_numpy()
        print(
            f"{seconds:.0f} s, {peak / 1e6:.0f} MB at the peak, page {(out / 'report.html').stat().st_size / 1e6:.1f} MB"
        )
        print(
            f"AUROC {roc_auc_score(wrong, table['z'].abs()):.3f}, {np.count_nonzero(suspect)} suspects, "
            f"realised FDR {np.mean(~wrong[suspect]):.3f} at 0.05"
        )


if __name__ == "__main__":
    main()
