"""How long the command line takes: help, an audit with no compiled loops cached, the same again, and a larger one.

    python benchmarks/command_line.py > benchmarks/command_line.txt

Tables of ten features with Friedman's function as the label, noise of 0.3 and 5 % of the labels wrong (standard deviation 8; seed 1). Each
command is a process of its own; the median of three is told, of the largest table one run. FDR is the realised one at a nominal 5 %.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd


def write_table(path, rows):
    rng = np.random.default_rng(1)
    x = rng.random((rows, 10))
    label = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    label += 0.3 * rng.standard_normal(rows)
    wrong = rng.random(rows) < 0.05
    label[wrong] += 8 * rng.standard_normal(np.count_nonzero(wrong))
    pd.DataFrame(x, columns=[f"x{k}" for k in range(10)]).assign(label=label).to_csv(path, index=False)
    return wrong


def seconds(arguments, cache):
    start = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-m", "mislabel", *arguments], check=True, env=environment, capture_output=True)
    return time.perf_counter() - start


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        print(f"help: {statistics.median(seconds(['--help'], work / 'cache') for _ in range(3)):.2f} s", flush=True)
        small, out = work / "small.csv", work / "out"
        write_table(small, 1000)
        audit = ["audit", str(small), "--label", "label", "--out", str(out)]
        cold = statistics.median(seconds(audit, work / f"cache{k}") for k in range(3))
        print(f"1,000 rows x 10 columns, nothing compiled yet: {cold:.1f} s", flush=True)
        warm = statistics.median(seconds(audit, work / "cache0") for _ in range(3))
        print(f"1,000 rows x 10 columns, again: {warm:.1f} s", flush=True)
        large = work / "large.csv"
        wrong = write_table(large, 20_000)
        spent = seconds(["audit", str(large), "--label", "label", "--out", str(out)], work / "cache0")
        table = pd.read_csv(out / "audit.csv").sort_values("row")
        suspect = table["suspect"].to_numpy()
        print(f"20,000 rows x 10 columns: {spent:.0f} s, realised FDR {np.mean(~wrong[suspect]):.3f}")


if __name__ == "__main__":
    main()
