"""Speed and accuracy of the marginalized graph kernel on QM7, on one and two cores.

    python benchmarks/graph_kernel.py [--full] [--grakel] [--edges] > benchmarks/graph_kernel.txt

Random pairs of QM7 molecules, GraphDot's default hyperparameters (tent1, zoom 1, stopping probability 0.01, element prior 0.2,
length scale 0.05), single precision, tolerance 1e-7. Times are the median of repeats, each of which is put in relation to
one-core dgemm measured right after it, since machines differ and are shared. ``--full`` computes all 7,165 x 7,165 similarities
into a resumable file. ``--edges`` takes all pairs edge by edge, as processors without AVX-512 do.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from mislabel.data import load_qm7
from mislabel.kernels import Graph, MolecularKernel, gram_matrix
from mislabel.kernels.graphs import engine

DATA = Path(__file__).parents[2] / "shared" / "data"
#: Repeats, and pairs in each.
REPEATS, PAIRS = 30, 4000
#: Molecules whose matrix is computed on one and on two cores, and how often on both.
MATRIX, TURNS = 2400, 7


def dgemm_gflops(size=1500):
    matrix = np.random.default_rng(0).random((size, size))
    with threadpool_limits(1):
        matrix @ matrix
        start = time.perf_counter()
        matrix @ matrix
        return 2e-9 * size**3 / (time.perf_counter() - start)


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


def mean_steps(prepared, pairs):
    """Steps of conjugate gradients per pair, of those that need not be solved in double precision."""
    similar = prepared._table_of_all("node", prepared.walk.node_kernel, prepared.packed.node_kinds, False)
    steps = prepared._slots.evaluate(pairs, *similar, (1e-7, engine.SLOT_SLOPES, engine.SINGLE_STEPS), False)[2]
    return steps[steps >= 0].mean()


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--grakel", action="store_true")
    parser.add_argument("--edges", action="store_true")
    options = parser.parse_args()
    if options.edges:
        engine.CAN_REORDER = False
    print("edge by edge" if not engine.CAN_REORDER else "sixteen pairs of edges at a time")
    data = load_qm7(DATA / "qm7.npz")
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    graphs = [Graph.from_ase(molecule, adjacency="tent1", zoom=1.0) for molecule in data]
    print(f"{len(graphs)} graphs made in {time.perf_counter() - start:.1f} s")
    some = [graphs[k] for k in rng.choice(len(graphs), 600, replace=False)]
    kernel = MolecularKernel(0.01, 0.2, 0.05, 1.0, tol=1e-7, dtype="float32")
    prepared = kernel.prepared(some)
    pairs = rng.integers(0, len(some), size=(40_000, 2))
    values = prepared.values(pairs)
    rows = []
    for repeat in range(REPEATS):
        first = repeat * PAIRS % len(pairs)
        start = time.perf_counter()
        prepared.values(pairs[first : first + PAIRS])
        rows.append(((time.perf_counter() - start) / PAIRS * 1e6, dgemm_gflops()))
    micro, gflops = np.median(rows, axis=0)
    scaled = [m * g / 60 for m, g in rows]
    print(f"one core: {micro:.1f} microseconds per pair (best {min(rows)[0]:.1f}); one-core dgemm {gflops:.0f} GFlop/s")
    print(f"  at 60 GFlop/s that is {np.median(scaled):.1f} microseconds (best {min(scaled):.1f})")
    exact = MolecularKernel(0.01, 0.2, 0.05, 1.0, tol=1e-12, dtype="float64").prepared(some).values(pairs[:10_000])
    error = np.abs(values[:10_000] / exact - 1)
    print(
        f"  relative error: median {np.median(error):.1e}, 99.9 % {np.quantile(error, 0.999):.1e}, largest {error.max():.1e}"
    )
    if prepared._slots is not None:
        print(f"  steps of the solver: {mean_steps(prepared, pairs):.2f}, without first guesses", end=" ")
        without = kernel.prepared(some)
        without._slots.slots.features[:] = without._slots.slots.row_features[:] = 0
        print(f"{mean_steps(without, pairs):.2f}")
    for scale in (0.1, 0.2, 0.5):
        single, double = (
            MolecularKernel(0.01, 0.2, scale, 1.0, tol=tol, dtype=dtype).prepared(some)
            for tol, dtype in ((1e-7, "float32"), (1e-12, "float64"))
        )
        start = time.perf_counter()
        found = single.values(pairs[:5000])
        longer = (time.perf_counter() - start) / 5000 * 1e6
        error = np.abs(found[:1000] / double.values(pairs[:1000]) - 1)
        print(f"  length scale {scale}: {longer:.1f} microseconds, largest error {error.max():.1e}")
    slow = []
    for i, j in pairs[:60]:
        start = time.perf_counter()
        with threadpool_limits(1):
            value = dense_numpy(some[i], some[j])
        slow.append(time.perf_counter() - start)
        assert abs(value / exact[len(slow) - 1] - 1) < 1e-8
    print(
        f"dense NumPy solve: {np.median(slow) * 1e6:.0f} microseconds per pair: {np.median(slow) * 1e6 / micro:.0f} times slower"
    )
    prepared.values_and_slopes(pairs[:100])
    start = time.perf_counter()
    prepared.values_and_slopes(pairs)
    print(
        f"with derivatives by all hyperparameters: {(time.perf_counter() - start) / len(pairs) * 1e6:.1f} microseconds per pair"
    )
    scaling, dearer, given = [], [], []
    for turn in range(TURNS):
        seconds, work = {}, {}
        for jobs in (1, 2) if turn % 2 else (2, 1):
            start, before = time.perf_counter(), time.process_time()
            gram_matrix(kernel, graphs[:: len(graphs) // MATRIX][:MATRIX], n_jobs=jobs)
            seconds[jobs], work[jobs] = time.perf_counter() - start, time.process_time() - before
        scaling.append(seconds[1] / seconds[2])
        dearer.append(work[2] / work[1])
        given.append(two_at_once())
    low, middle, high = np.quantile(scaling, [0.25, 0.5, 0.75])
    print(f"two threads: {middle:.2f} times one (half of {TURNS} trials between {low:.2f} and {high:.2f})", end="; ")
    print(f"processor time {np.median(dearer):.2f} times that of one")
    print(f"  two matrix products at once, each in a thread of its own: {np.median(given):.2f} times one")
    if options.grakel:
        micro_grakel = grakel_seconds(some[:40]) * 1e6
        print(f"GraKeL RandomWalkLabeled (no edge lengths, no derivatives): {micro_grakel:.0f} microseconds per pair")
    if options.full:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            matrix = gram_matrix(kernel, graphs, path=Path(folder) / "qm7.gram", dtype="float32")
            seconds = time.perf_counter() - start
            size = matrix.nbytes / 2**30
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        print(f"all {len(graphs)} x {len(graphs)}, resumable file, 2 threads: {seconds:.0f} s;", end=" ")
        print(f"memory grew by {grown:.2f} GiB, of which the matrix is {size:.2f}")


if __name__ == "__main__":
    main()
