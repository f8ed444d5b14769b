"""The loops for processors that reorder rows of numbers, against the definition and against the loops for any processor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mislabel.kernels import Graph, MolecularKernel, gram_matrix
from mislabel.kernels.graphs import engine, slot_values
from mislabel.kernels.graphs.packing import REACH, PackedGraphs
from mislabel.kernels.graphs.slot_layout import WIDTH, lay_out_slots
from mislabel.kernels.graphs.slot_loops import CAN_REORDER, FEATURES, ROW_BYTES
from mislabel.kernels.graphs.solution_loops import ROW
from tests import naive

pytestmark = pytest.mark.skipif(not CAN_REORDER, reason="this processor cannot reorder rows: it has no AVX-512")

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


def packed_and_slots(graphs, length_scale=0.08):
    packed = PackedGraphs.pack(graphs, frozenset(["element"]), "length", frozenset())
    arrays = packed.arrays(0.05, 1.0, length_scale, "float32")
    features = np.zeros((packed.degree.size, 2, FEATURES), np.float32)
    return packed, lay_out_slots(packed, arrays, length_scale, features)


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


def test_agrees_with_the_loops_for_any_processor(monkeypatch):
    # Up to sixteen nodes, up to thirty-two, more, too many for slots, and without edges.
    graphs = [graph(seed, size) for seed, size in enumerate((3, 9, 16, 17, 24, 31, 32, 33, 47, 48, 49, 70))]
    graphs += [graph(20, 5, 0.0), graph(21, 1, 0.0)]
    kernel = MolecularKernel(**SETTINGS, hydrogen_weight=0.4)
    by_slots = kernel(graphs)
    both = kernel(graphs[:5], graphs[5:])
    monkeypatch.setattr(engine, "CAN_REORDER", False)
    by_edges = kernel(graphs)
    assert (by_slots != by_edges).any()
    np.testing.assert_allclose(by_slots, by_edges, rtol=2e-7)
    np.testing.assert_allclose(both, by_edges[:5, 5:], rtol=2e-7)


def test_pairs_with_too_much_work_are_taken_edge_by_edge(monkeypatch):
    graphs = [graph(seed, size) for seed, size in enumerate((5, 30, 48, 90))]
    kernel = MolecularKernel(**SETTINGS)
    expected = kernel(graphs)
    monkeypatch.setattr(slot_values, "_MOST_WORK", 500)
    prepared = kernel.prepared(graphs)
    pairs = np.array([(0, 0), (0, 1), (1, 2), (3, 2), (3, 3)])
    tables = prepared._table_of_all("node", prepared.walk.node_kernel, prepared.packed.node_kinds, False)
    _, _, steps = prepared._slots.evaluate(pairs, *tables, (1e-7, 1e-4, 8), False)
    assert (steps == slot_values.TOO_LARGE).tolist()[-3:] == [True] * 3
    assert steps[0] != slot_values.TOO_LARGE
    np.testing.assert_allclose(kernel(graphs), expected, rtol=2e-7)


def test_slots_are_used_where_they_can_be(monkeypatch):
    seen = []
    evaluate = slot_values.SlotValues.evaluate
    monkeypatch.setattr(
        slot_values.SlotValues, "evaluate", lambda self, pairs, *a: seen.append(len(pairs)) or evaluate(self, pairs, *a)
    )
    graphs = [graph(seed, 8) for seed in range(6)]
    gram_matrix(MolecularKernel(**SETTINGS), graphs, n_jobs=1)
    assert sum(seen) == 21
    MolecularKernel(**SETTINGS, dtype="float64")(graphs)
    assert sum(seen) == 21


def test_every_direction_of_every_edge_has_one_lane():
    graphs = [graph(seed, size) for seed, size in enumerate((1, 5, 16, 20, 33, 48))]
    packed, slots = packed_and_slots(graphs)
    for number, one in enumerate(graphs):
        start, stop = slots.slot_start[number], slots.slot_start[number + 1]
        groups = range(slots.group_start[number], slots.group_start[number + 1])
        length = np.sort(one.edge_labels["length"])
        ends = packed.left, packed.right
        ends = [values[packed.edge_start[number] : packed.edge_start[number + 1]] for values in ends]
        expected = sorted(
            [*zip(*ends, range(one.n_edges), strict=True), *zip(*ends[::-1], range(one.n_edges), strict=True)]
        )
        found = []
        assert stop - start <= 2 * one.n_edges
        for group in groups:
            within = range(slots.first[group].min(), slots.last[group].max())
            assert start <= within.start
            assert within.stop <= stop
            for slot in within:
                mine = []
                for lane in range(ROW):
                    order = int(slots.order[slot, lane])
                    if order < 0:
                        target = slots.end[group] // ROW_BYTES * ROW + lane
                        source = slots.begin[group] // (2 * ROW_BYTES) * 2 * ROW + (order & 31)
                        edge = slots.chunk[slot] // (4 * ROW) * ROW + (order >> 8 & 31)
                        mine.append((target, source, edge))
                edges = [edge for _, _, edge in mine]
                assert mine
                assert length[max(edges)] - length[min(edges)] <= WIDTH * 0.08 + 1e-12
                found += mine
        assert sorted(found) == expected


def test_whatever_is_within_reach_is_found():
    graphs = [graph(seed, size) for seed, size in enumerate((12, 20, 40))]
    scale = 0.05
    packed, slots = packed_and_slots(graphs, scale)
    owner = np.repeat(np.arange(packed.size), np.diff(packed.edge_start))
    for number in range(packed.size):
        lengths = packed.length[owner == number]
        for length, bucket in zip(packed.length, slots.edge_bucket, strict=True):
            near = np.flatnonzero(np.abs(lengths - length) <= REACH["float32"] * scale)
            chunks = range(slots.first_chunk[number, bucket], slots.last_chunk[number, bucket])
            assert set(near // ROW) <= set(chunks)
            found = set()
            for group in range(slots.group_start[number], slots.group_start[number + 1]):
                for slot in range(slots.first[group, bucket], slots.last[group, bucket]):
                    chunk = slots.chunk[slot] // (4 * ROW)
                    assert chunks.start - 1 <= chunk
                    assert chunk + 1 <= chunks.stop
                    used = slots.order[slot][slots.order[slot] < 0]
                    found |= set((chunk * ROW + (used >> 8 & 31)).tolist())
            assert set(near) <= found


def values_and_steps(graphs, pairs):
    prepared = MolecularKernel(**SETTINGS).prepared(graphs)
    tables = prepared._table_of_all("node", prepared.walk.node_kernel, prepared.packed.node_kinds, False)
    values, _, steps = prepared._slots.evaluate(pairs, *tables, (1e-7, 1e-5, 8), False)
    return values, steps


def test_guesses_save_steps_and_change_nothing_else(monkeypatch):
    ase_build, collections = (
        pytest.importorskip(name, reason="ASE is not installed") for name in ("ase.build", "ase.collections")
    )
    molecules = [ase_build.molecule(name) for name in collections.g2.names]
    graphs = [Graph.from_ase(molecule) for molecule in molecules if len(molecule) > 8]
    pairs = np.array([(i, j) for i in range(len(graphs)) for j in range(i)])
    guessed, steps = values_and_steps(graphs, pairs)
    monkeypatch.setattr(
        slot_values,
        "features_of_surroundings",
        lambda packed, *_: np.zeros((packed.degree.size, 2, FEATURES), np.float32),
    )
    plain, more_steps = values_and_steps(graphs, pairs)
    exact = MolecularKernel(**SETTINGS, dtype="float64", tol=1e-12).prepared(graphs).values(pairs)
    done = (steps >= 0) & (more_steps >= 0)
    assert done.mean() > 0.9
    np.testing.assert_allclose(guessed[done], exact[done], rtol=1.5e-7)
    np.testing.assert_allclose(plain[done], exact[done], rtol=1.5e-7)
    assert steps[done].mean() < more_steps[done].mean() - 0.4


@pytest.mark.parametrize("length_scale", [1e-4, 1e-2, 30.0])
def test_length_scales_far_from_the_lengths(length_scale):
    # More buckets and points of the grid than there may be, and all in one.
    graphs = [graph(seed, 12) for seed in range(5)]
    single, double = (
        MolecularKernel(0.1, 0.3, length_scale, edge_length_scale_bounds=(1e-5, 1e3), dtype=dtype)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(single(graphs), double(graphs), rtol=5e-7)


def test_features_are_the_first_order_of_longer_walks():
    # With as many features as there is to tell, their products are W V f / f.
    one = Graph(2, [(0, 1)], [0.7], {"element": [1, 2]}, {"length": [1.0]})
    two = Graph(2, [(0, 1)], [0.4], {"element": [1, 2]}, {"length": [1.05]})
    kernel = MolecularKernel(0.2, 0.3, 0.1)
    prepared = kernel.prepared([one, two])
    features = prepared._slots.slots.features.astype(float)
    steps = 0.8**2 * np.exp(-0.5 * (0.05 / 0.1) ** 2) * np.array([[1.0, 0.3], [0.3, 1.0]])
    for solution in (0, 1):
        np.testing.assert_allclose(features[:2, solution] @ features[2:, solution].T, steps, rtol=0.03)


def test_features_of_nodes_with_several_edges():
    one, two = graph(3, 5), graph(4, 6)
    prepared = MolecularKernel(0.2, 0.3, 0.1, hydrogen_weight=0.4).prepared([one, two])
    features = prepared._slots.slots.features.astype(float)
    packed = prepared.packed
    root = np.sqrt(packed.degree / 0.8)
    for solution, size in enumerate((root, packed.start / root)):
        steps = np.zeros((5, 6))
        for e in range(one.n_edges):
            for g in range(one.n_edges, one.n_edges + two.n_edges):
                alike = np.exp(-0.5 * ((packed.length[e] - packed.length[g]) / 0.1) ** 2)
                for i, i_next in ((packed.left[e], packed.right[e]), (packed.right[e], packed.left[e])):
                    for j, j_next in ((packed.left[g], packed.right[g]), (packed.right[g], packed.left[g])):
                        same = one.nodes["element"][i_next] == two.nodes["element"][j_next]
                        a, a_next, b, b_next = i, i_next, 5 + j, 5 + j_next
                        weight = (
                            packed.weight[e] / (root[a] * root[a_next]) * packed.weight[g] / (root[b] * root[b_next])
                        )
                        ratio = size[a_next] * size[b_next] / (size[a] * size[b])
                        steps[i, j] += weight * ratio * alike * (1.0 if same else 0.3)
        np.testing.assert_allclose(features[:5, solution] @ features[5:, solution].T, steps, atol=0.03 * steps.max())


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
    from mislabel.kernels import MarginalizedGraphKernel, SquaredExponential

    graphs = [
        Graph(2, [(0, 1)], nodes={"charge": [at, at]}, edge_labels={"length": [1.0]}) for at in (0.0, 1.0, 1000.0)
    ]
    kernel = MarginalizedGraphKernel(SquaredExponential("charge", 0.1), SquaredExponential("length", 0.1), 0.3)
    matrix, gradient = kernel(graphs, eval_gradient=True)
    assert np.isfinite(gradient).all()
    assert gradient[0, 2] == pytest.approx(0.0, abs=1e-12)
    assert matrix[0, 2] == 0.0
