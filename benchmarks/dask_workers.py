"""One Dask worker against two, each a process with one core: time of a low-rank fit, and equality with one machine.

    python benchmarks/dask_workers.py > benchmarks/dask_workers.txt

The data of million.py. Tuning happens in the calling process whatever the cluster, so that the time told is that of what the
workers do: from the first column of the kernel to the last noise variance.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from million import data

from mislabel import LabelNoiseRegressor
from mislabel.estimators import low_rank_fit


def timed_fit(features, labels, rank, client):
    began = []
    build = low_rank_fit._low_rank_model

    def noted(*arguments):
        began.append(time.perf_counter())
        return build(*arguments)

    low_rank_fit._low_rank_model = noted
    try:
        model = LabelNoiseRegressor(rank=rank).fit(features, labels, client=client)
    finally:
        low_rank_fit._low_rank_model = build
    return model, time.perf_counter() - began[0]


def main():
    warnings.filterwarnings("ignore", message="Sending large graph")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=600_000)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--rows", type=int, default=20_000, help="rows per block")
    options = parser.parse_args()
    features, labels, _ = data(options.size)
    models, seconds = {}, {}
    models[0], seconds[0] = timed_fit(features, labels, options.rank, None)
    print(f"n {options.size}, rank {options.rank}: this process {seconds[0]:.1f} s", flush=True)
    for workers in (1, 2, 1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
            Client(cluster) as client,
        ):
            lazy = da.from_array(features, chunks=(options.rows, -1))
            models[workers], spent = timed_fit(lazy, labels, options.rank, client)
            seconds[workers] = min(spent, seconds.get(workers, np.inf))
        print(f"{workers} worker{'s' * (workers > 1)}: {spent:.1f} s", flush=True)
    print(f"two workers are {seconds[1] / seconds[2]:.2f} times as fast as one")
    for name in ("z_", "loo_mean_", "noise_variance_"):
        here = getattr(models[0], name)
        apart = max(np.max(np.abs(getattr(models[k], name) - here)) for k in (1, 2))
        print(
            f"largest difference of {name} from one machine: {apart:.1e}, {apart / np.abs(here).max():.1e} of the largest"
        )


if __name__ == "__main__":
    main()
