"""Time and memory of a default fit (hyperparameters tuned) as n grows.

    python benchmarks/scaling.py [--sizes 1000 2000 4000 8000] > benchmarks/scaling.txt

Friedman function with 10 features, 10 % of the labels wrong. Each size runs in a process of its own, so that the peak of its
memory can be read; one n x n array of doubles is 8 n^2 bytes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

CHILD = """
import json, resource, sys, time
import numpy as np
from default_estimator import friedman, make
from mislabel import LabelNoiseRegressor
points, labels, truth, wrong, new, new_truth = make(friedman, 200, 0.1, 1.0, 0)
LabelNoiseRegressor().fit(points, labels)  # compile
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
points, labels, truth, wrong, new, new_truth = make(friedman, int(sys.argv[1]), 0.1, 1.0, 0)
start = time.perf_counter()
model = LabelNoiseRegressor().fit(points, labels)
seconds = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rmse = np.sqrt(np.mean((model.predict(new) - new_truth) ** 2)) / truth.std()
print(json.dumps({"seconds": seconds, "kilobytes": after - before, "factorizations": model.n_factorizations_, "rmse": rmse}))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 4000, 8000])
    options = parser.parse_args()
    print(
        "     n   seconds  seconds / n^3 (relative to first)  peak memory / 8 n^2 bytes  n x n factorisations    RMSE"
    )
    first = None
    for size in options.sizes:
        output = subprocess.run(
            [sys.executable, "-c", CHILD, str(size)], check=True, capture_output=True, text=True, cwd=sys.path[0]
        ).stdout
        result = json.loads(output.strip().splitlines()[-1])
        rate = result["seconds"] / size**3
        first = first or rate
        arrays = 1024 * result["kilobytes"] / (8 * size**2)
        print(
            f"{size:6d} {result['seconds']:9.1f} {rate / first:22.2f} {arrays:32.1f} {result['factorizations']:20d} {result['rmse']:12.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
