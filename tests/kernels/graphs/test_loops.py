"""The compiled loops of the marginalized graph kernel, each against its definition written with dense matrices."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mislabel.kernels import Graph, KroneckerDelta, MarginalizedGraphKernel, MolecularKernel, SquaredExponential
from mislabel.kernels.graphs.marginalized import pair_loops, product_loops
from mislabel.kernels.graphs.marginalized.packing import Columns
from tests import naive

SETTINGS = {"stopping_probability": 0.05, "element_prior": 0.3, "edge_length_scale": 0.08}


def graph(seed, size, degree=6.0):
    """A graph like a molecule's, with self-loops, several edges between the same nodes, and nodes without any."""
    rng = np.random.default_rng(seed)
    count = int(degree * size / 2)
    return Graph(
        size,
        rng.integers(0, size, (count, 2)),
        rng.uniform(0.05, 1.0, count),
        {"element": rng.integers(1, 4, size)},
        {"length": rng.choice([1.0, 1.4, 2.1], count) + rng.normal(scale=0.1, size=count)},
    )


def listed(first, second, dtype="float64"):
    """The pairs of edges of two graphs, their number, and their prepared form."""
    prepared = MolecularKernel(**SETTINGS, dtype=dtype).prepared([first], [second])
    graphs, gaussian = prepared._graphs, prepared._gaussian
    windows = np.empty((2, max(first.n_edges, second.n_edges)), np.int64)
    count = product_loops.find_windows(graphs, 0, 1, gaussian.reach, windows)
    pairs = pair_loops.room_for(count)
    product_loops.list_edge_pairs(graphs, 0, 1, windows, pairs)
    product_loops.weigh_by_length(count, pairs.difference, gaussian.unit, pairs.weight)
    return prepared, windows, count, pairs


def dense_weights(first, second):
    """W of the definition, between all pairs of nodes."""
    degrees = []
    for one in (first, second):
        degree = np.zeros(one.n_nodes)
        for i, _, weight, _ in naive.directed_edges(one):
            degree[i] += weight
        degrees.append(np.where(degree > 0, degree, 1.0) / (1 - SETTINGS["stopping_probability"]))
    found = np.zeros((first.n_nodes, second.n_nodes, first.n_nodes, second.n_nodes))
    lengths = first.edge_labels["length"], second.edge_labels["length"]
    for i, j, weight, e in naive.directed_edges(first):
        for p, q, other, f in naive.directed_edges(second):
            alike = np.exp(-0.5 * ((lengths[0][e] - lengths[1][f]) / SETTINGS["edge_length_scale"]) ** 2)
            norm = np.sqrt(degrees[0][i] * degrees[0][j] * degrees[1][p] * degrees[1][q])
            found[i, p, j, q] += weight * other * alike / norm
    size = first.n_nodes * second.n_nodes
    return found.reshape(size, size)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-6)])
@pytest.mark.parametrize("sizes", [(1, 4), (5, 7), (9, 6)])
def test_products_with_the_product_graph(sizes, dtype, tolerance, rng):
    first, second = (graph(seed, size) for seed, size in enumerate(sizes))
    weights = dense_weights(first, second)
    _, _, count, pairs = listed(first, second, dtype)
    source = rng.normal(size=(weights.shape[0], 2))
    target = np.zeros(source.size)
    product_loops.add_product(count, pairs.weight, pairs.straight, pairs.crossed, source.ravel(), target)
    np.testing.assert_allclose(target.reshape(-1, 2), weights @ source, atol=tolerance)
    forms = source.T @ weights @ source
    found = product_loops.quadratic_forms(count, pairs.weight, pairs.straight, pairs.crossed, source.ravel())
    np.testing.assert_allclose(found, [forms[0, 0], forms[1, 1], forms[0, 1]], atol=tolerance * source.size)
    share = np.empty(count)
    product_loops.edge_shares(count, pairs.weight, pairs.straight, pairs.crossed, source.ravel(), share)
    assert share.sum() == pytest.approx(forms[0, 1], abs=tolerance * source.size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_hold_whatever_is_within_reach(dtype):
    first, second = graph(3, 20), graph(4, 30)
    prepared, windows, count, _ = listed(first, second, dtype)
    lengths = [prepared.packed.length[prepared.packed.within(number)[1]] for number in (0, 1)]
    within = np.abs(lengths[0][:, None] - lengths[1]) <= prepared._gaussian.reach
    assert 0 < count == within.sum() < within.size
    for row, low, high in zip(within, *windows - first.n_edges, strict=False):
        assert np.flatnonzero(row).tolist() == list(range(low, high))


def test_the_gaussian_is_right_to_rounding():
    scale = 0.3
    unit = np.sqrt(0.5 / 2.0**product_loops.SQUARINGS) / scale
    difference, weight = np.linspace(-8, 8, 4001) * scale, np.full(4001, 2.0)
    product_loops.weigh_by_length(4001, difference, unit, weight)
    np.testing.assert_allclose(weight, 2.0 * np.exp(-0.5 * (difference / scale) ** 2), atol=2e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 48), st.integers(1, 60), st.floats(0.5, 9.0), st.floats(0.02, 0.6))
def test_equals_the_dense_definition(seed, one, two, degree, length_scale):
    first, second = graph(seed, one, degree), graph(seed + 1, two, degree)
    kernel = MolecularKernel(0.1, 0.3, length_scale, 1.3, tol=1e-7, dtype="float32")
    exact = MolecularKernel(0.1, 0.3, length_scale, 1.3, tol=1e-12, dtype="float64")
    expected = exact([first], [second])[0, 0]
    assert kernel([first], [second])[0, 0] == pytest.approx(expected, rel=5e-7)
    assert kernel([second], [first])[0, 0] == pytest.approx(expected, rel=5e-7)
    if one * two < 300:
        assert expected == pytest.approx(
            naive.molecular_kernel(first, second, 0.1, 0.3, length_scale, 1.3)[0], rel=1e-9
        )


def test_rows_and_columns_from_graphs_of_all_sizes():
    graphs = [graph(seed, size) for seed, size in enumerate((3, 9, 16, 17, 33, 48, 70))]
    graphs += [graph(20, 5, 0.0), graph(21, 1, 0.0)]
    kernel = MolecularKernel(**SETTINGS, hydrogen_weight=0.4)
    matrix = kernel(graphs)
    exact = kernel.precise().set_params(tol=1e-12)(graphs)
    np.testing.assert_allclose(matrix, exact, rtol=1.5e-7)
    np.testing.assert_allclose(kernel(graphs[:5], graphs[5:]), exact[:5, 5:], rtol=1.5e-7)


def test_a_looser_tolerance_takes_fewer_products():
    graphs = [graph(seed, 12) for seed in range(8)]
    pairs = np.array([(i, j) for i in range(8) for j in range(i)])
    exact = MolecularKernel(**SETTINGS, tol=1e-13, dtype="float64").prepared(graphs).values(pairs)
    taken = []
    for tol in (1e-3, 1e-5, 1e-7, 1e-9):
        prepared = MolecularKernel(**SETTINGS, tol=tol, dtype="float64").prepared(graphs)
        found = prepared._evaluate(pairs, pair_loops.Accuracy(tol, 0.0, 400))
        np.testing.assert_allclose(found.values, exact, rtol=tol)
        taken.append(found.steps.mean())
    assert taken == sorted(taken)
    assert taken[0] < taken[-1] - 1


@pytest.mark.parametrize("length_scale", [1e-4, 1e-2, 30.0])
def test_length_scales_far_from_the_lengths(length_scale):
    # More buckets and points of the grid than there may be, and all in one.
    graphs = [graph(seed, 12) for seed in range(5)]
    single, double = (
        MolecularKernel(0.1, 0.3, length_scale, edge_length_scale_bounds=(1e-5, 1e3), dtype=dtype)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(single(graphs), double(graphs), rtol=5e-7)


def test_derivatives():
    graphs = [graph(seed, size) for seed, size in enumerate((2, 9, 16, 18, 33, 48, 50))]
    weights = np.random.default_rng(0).normal(size=(7, 7))
    single, double = (MolecularKernel(**SETTINGS, dtype=dtype, tol=1e-9) for dtype in ("float32", "float64"))
    expected = double(graphs, eval_gradient=True)[1]
    found = single(graphs, eval_gradient=True)[1]
    scale = np.abs(expected).max(axis=(0, 1))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * scale.min())
    weights += weights.T
    np.testing.assert_allclose(
        single.contracted_gradient(graphs, weights), double.contracted_gradient(graphs, weights), rtol=1e-3
    )


def test_derivatives_of_similarities_that_are_zero():
    # Similarities too small for the format, and their derivatives, count as none.
    graphs = [
        Graph(2, [(0, 1)], nodes={"charge": [at, at]}, edge_labels={"length": [1.0]}) for at in (0.0, 1.0, 1000.0)
    ]
    kernel = MarginalizedGraphKernel(SquaredExponential("charge", 0.1), SquaredExponential("length", 0.1), 0.3)
    matrix, gradient = kernel(graphs, eval_gradient=True)
    assert np.isfinite(gradient).all()
    assert gradient[0, 2] == pytest.approx(0.0, abs=1e-12)
    assert matrix[0, 2] == 0.0


def test_packed_columns_of_a_kernel():
    kernel = MarginalizedGraphKernel(
        KroneckerDelta("element"), SquaredExponential("length") * KroneckerDelta("order"), starting_attribute="begin"
    )
    graphs = [Graph(1, [], nodes={"element": [1], "begin": [2.0]}, edge_labels={"length": [], "order": []})]
    expected = Columns(frozenset({"element"}), frozenset({"order"}), "length", "begin")
    assert kernel.prepared(graphs).walk.columns == expected


SCRIPT = """
import numpy as np
from mislabel.kernels import MolecularKernel
from tests.kernels.graphs.test_loops import SETTINGS, graph
graphs = [graph(seed, 6 + seed) for seed in range(4)]
for dtype in ("float32", "float64"):
    print(*MolecularKernel(**SETTINGS, dtype=dtype)(graphs).ravel())
"""


def test_any_processor_gives_the_same_values(tmp_path):
    # The least that a processor of this kind can do, as clusters ask for whose nodes share a cache.
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, **plain}, capture_output=True, text=True, check=True
    )
    graphs = [graph(seed, 6 + seed) for seed in range(4)]
    for line, dtype in zip(run.stdout.splitlines(), ("float32", "float64"), strict=True):
        here = MolecularKernel(**SETTINGS, dtype=dtype)(graphs).ravel()
        np.testing.assert_allclose(np.array(line.split(), dtype=float), here, rtol=1e-12)
