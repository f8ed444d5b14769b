"""Speed and accuracy of the marginalized graph kernel on QM7, on one and two cores.

    python benchmarks/graph_kernel.py [--full] [--grakel] > benchmarks/graph_kernel.txt
    NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= python benchmarks/graph_kernel.py >> benchmarks/graph_kernel.txt

Random pairs of QM7 molecules, GraphDot's default hyperparameters (tent1, zoom 1, stopping probability 0.01, element prior 0.2,
length scale 0.05), tolerance 1e-7. Times are processor times, the median of repeats, each of which is put in relation to
one-core dgemm measured right after it, since machines differ and are shared. The second form compiles for the least that any
processor of this kind can do. ``--full`` computes all 7,165 x 7,165 similarities into a resumable file.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from mislabel.data import load_qm7
from mislabel.kernels import Graph, MolecularKernel, gram_matrix
from mislabel.kernels.graphs.marginalized.pair_loops import Accuracy

DATA = Path(__file__).parents[2] / "shared" / "data"
#: Repeats, and pairs in each.
REPEATS, PAIRS = 9, 3000
#: Molecules whose matrix is computed on one and on two cores, and how often on both.
MATRIX, TURNS = 1200, 3


def dgemm_gflops(size=1500):
    matrix = np.random.default_rng(0).random((size, size))
    with threadpool_limits(1):
        matrix @ matrix
        start = time.thread_time()
        matrix @ matrix
        return 2e-9 * size**3 / (time.thread_time() - start)


def at_60_gflops(function, pairs):
    """Microseconds of one core per pair: the median, and that at a speed at which dgemm makes 60 GFlop/s; dgemm's speed."""
    function(pairs[:50])
    rows = []
    for repeat in range(REPEATS):
        first = repeat * PAIRS % (len(pairs) - PAIRS + 1)
        start = time.thread_time()
        function(pairs[first : first + PAIRS])
        micro = (time.thread_time() - start) / PAIRS * 1e6
        gflops = dgemm_gflops()
        rows.append((micro, micro * gflops / 60, gflops))
    return np.median(rows, axis=0)


def two_at_once(size=1500, repeats=12):
    """How much two threads with a matrix product of their own each get done, in the time of one: what the machine gives."""
    matrices = [np.random.default_rng(k).random((size, size)) for k in range(2)]

    def work(matrix):
        for _ in range(repeats):
            matrix @ matrix

    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        work(matrices[0])
        start = time.perf_counter()
        work(matrices[0])
        alone = time.perf_counter() - start
        start = time.perf_counter()
        list(pool.map(work, matrices))
        return 2.0 * alone / (time.perf_counter() - start)


def dense_numpy(first, second, stopping=0.01, prior=0.2, length=0.05):
    """The definition with NumPy arrays and one dense solve."""
    n, m = first.n_nodes, second.n_nodes

    def matrices(graph):
        weights, lengths = np.zeros((graph.n_nodes, graph.n_nodes)), np.zeros((graph.n_nodes, graph.n_nodes))
        i, j = graph.edges.T
        weights[i, j] = weights[j, i] = graph.weights
        lengths[i, j] = lengths[j, i] = graph.edge_labels["length"]
        return weights, lengths, weights.sum(axis=1) / (1 - stopping)

    w, lengths, d = matrices(first)
    v, others, e = matrices(second)
    similar = np.where(first.nodes["element"][:, None] == second.nodes["element"], 1.0, prior).ravel()
    edges = np.exp(-((lengths[:, None, :, None] - others[None, :, None, :]) ** 2) / (2 * length**2))
    system = -(w[:, None, :, None] * v[None, :, None, :] * edges).reshape(n * m, n * m)
    degree = np.outer(d, e).ravel()
    system[np.diag_indices(n * m)] += degree / similar
    return np.linalg.solve(system, degree).sum()


def grakel_seconds(graphs):
    from grakel import Graph as GrakelGraph
    from grakel.kernels import RandomWalkLabeled

    inputs = []
    for graph in graphs:
        edges = [(int(i), int(j)) for i, j in graph.edges]
        labels = {k: int(z) for k, z in enumerate(graph.nodes["element"])}
        inputs.append(GrakelGraph(edges + [(j, i) for i, j in edges], node_labels=labels))
    kernel = RandomWalkLabeled(lamda=0.001, method_type="fast", kernel_type="geometric")
    start = time.perf_counter()
    kernel.fit_transform(inputs)
    return (time.perf_counter() - start) / (len(graphs) * (len(graphs) + 1) / 2)


def compare_settings(graphs, pairs):
    """Values and derivatives in either precision, and values at longer length scales."""
    exact = MolecularKernel(0.01, 0.2, 0.05, 1.0, tol=1e-12, dtype="float64").prepared(graphs).values(pairs[:10_000])
    single = 0.0
    for dtype in ("float32", "float64"):
        prepared = MolecularKernel(0.01, 0.2, 0.05, 1.0, tol=1e-7, dtype=dtype).prepared(graphs)
        micro, scaled, gflops = at_60_gflops(prepared.values, pairs)
        _, derived, _ = at_60_gflops(prepared.values_and_gradients, pairs)
        single = single or scaled
        error = np.abs(prepared.values(pairs[:10_000]) / exact - 1)
        print(
            f"{dtype}: {micro:.1f} microseconds per pair, dgemm {gflops:.0f} GFlop/s: at 60 GFlop/s {scaled:.1f}",
            end="",
        )
        print(f" ({scaled / single:.2f} of single precision)" if dtype == "float64" else "")
        print(f"  with derivatives by all hyperparameters {derived:.1f}, {derived / scaled:.2f} times a value")
        print(
            f"  relative error: median {np.median(error):.1e}, 99.9 % {np.quantile(error, 0.999):.1e}, largest {error.max():.1e}"
        )
        steps = prepared._evaluate(pairs[:10_000], Accuracy(1e-7, 0.0, 400)).steps
        print(f"  products with W, before the last step: {steps.mean():.2f}")
    for scale in (0.1, 0.2, 0.5):
        kernels = (
            MolecularKernel(0.01, 0.2, scale, 1.0, tol=tol, dtype=dtype)
            for tol, dtype in ((1e-7, "float32"), (1e-12, "float64"))
        )
        fast, right = (kernel.prepared(graphs) for kernel in kernels)
        _, scaled, _ = at_60_gflops(fast.values, pairs)
        error = np.abs(fast.values(pairs[:1000]) / right.values(pairs[:1000]) - 1)
        print(f"length scale {scale}, float32: at 60 GFlop/s {scaled:.1f}, largest error {error.max():.1e}")
    slow = []
    for (i, j), value in zip(pairs[:60], exact, strict=False):
        with threadpool_limits(1):
            start = time.thread_time()
            found = dense_numpy(graphs[i], graphs[j])
        slow.append(time.thread_time() - start)
        assert abs(found / value - 1) < 1e-8
    print(
        f"dense NumPy solve: {np.median(slow) * 1e6:.0f} microseconds per pair: {np.median(slow) * 1e6 / micro:.0f} times float64"
    )


def compare_threads(graphs):
    """One thread and two, beside what two matrix products at once show that the machine gives."""
    scaling, dearer, given = [], [], []
    kernel = MolecularKernel(0.01, 0.2, 0.05, 1.0)
    for turn in range(TURNS):
        seconds, work = {}, {}
        for jobs in (1, 2) if turn % 2 else (2, 1):
            start, before = time.perf_counter(), time.process_time()
            gram_matrix(kernel, graphs[:: len(graphs) // MATRIX][:MATRIX], n_jobs=jobs)
            seconds[jobs], work[jobs] = time.perf_counter() - start, time.process_time() - before
        scaling.append(seconds[1] / seconds[2])
        dearer.append(work[2] / work[1])
        given.append(two_at_once())
    print(f"two threads: {np.median(scaling):.2f} times one; processor time {np.median(dearer):.2f} times that of one")
    print(f"  two matrix products at once, each in a thread of its own: {np.median(given):.2f} times one")


def compute_matrix(graphs, every):
    """A matrix of ``graphs`` on two threads, and what one of ``every`` graph would take."""
    kernel = MolecularKernel(0.01, 0.2, 0.05, 1.0)
    speeds = [dgemm_gflops() for _ in range(5)]
    with tempfile.TemporaryDirectory() as folder:
        start, before = time.perf_counter(), time.process_time()
        gram_matrix(kernel, graphs, path=Path(folder) / "qm7.gram", dtype="float32", n_jobs=2)
        seconds, work = time.perf_counter() - start, time.process_time() - before
    speeds += [dgemm_gflops() for _ in range(5)]
    scaled = work * np.median(speeds) / 60
    pairs = len(graphs) * (len(graphs) + 1) / 2
    print(f"{len(graphs)} x {len(graphs)}, resumable file, 2 threads: {seconds:.0f} s; at 60 GFlop/s", end=" ")
    print(f"{scaled / pairs * 1e6:.1f} microseconds of one core per pair", end="; ")
    print(f"all of {every}: {scaled / pairs * every * (every + 1) / 4:.0f} s of two cores")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--grakel", action="store_true")
    options = parser.parse_args()
    print(f"compiled for {os.environ.get('NUMBA_CPU_NAME', 'this processor')}")
    start = time.thread_time()
    graphs = [Graph.from_ase(molecule, adjacency="tent1", zoom=1.0) for molecule in load_qm7(DATA / "qm7.npz")]
    print(f"{len(graphs)} graphs made in {time.thread_time() - start:.1f} s")
    rng = np.random.default_rng(0)
    some = [graphs[k] for k in rng.choice(len(graphs), 600, replace=False)]
    compare_settings(some, rng.integers(0, len(some), size=(40_000, 2)))
    if options.full or options.grakel:
        compare_threads(graphs)
    if options.grakel:
        print(
            f"GraKeL RandomWalkLabeled (no edge lengths, no derivatives): {grakel_seconds(some[:40]) * 1e6:.0f} microseconds per pair"
        )
    compute_matrix(graphs if options.full else graphs[::7][:1000], len(graphs))


if __name__ == "__main__":
    main()
