import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from mislabel.errors import InvalidGraphError, InvalidParameterError
from mislabel.kernels import (
    Constant,
    Graph,
    KroneckerDelta,
    MarginalizedGraphKernel,
    MolecularKernel,
    Normalized,
    Power,
    RationalQuadratic,
    SquaredExponential,
    TensorProduct,
    WeightedSum,
    gram_matrix,
)
from mislabel.kernels.graphs.marginalized import block_cg_loops, pairs
from mislabel.kernels.graphs.marginalized.packing import Columns, PackedGraphs
from tests import naive

ase_build = pytest.importorskip("ase.build", reason="ASE is not installed")

EXACT = {"dtype": "float64", "tol": 1e-12}
KNOWN = {
    ("CH4", "CH4"): 43.42053978,
    ("H2O", "H2O"): 15.0936018,
    ("NH3", "NH3"): 25.68252196,
    ("C6H6", "C6H6"): 107.69392702,
    ("CH4", "H2O"): 9.43357821,
    ("CH4", "C6H6"): 39.76554075,
    ("H2O", "NH3"): 7.89834977,
    ("H2", "H2"): 201.00502513,
}


def tent(name):
    return Graph.from_ase(ase_build.molecule(name), adjacency="tent1", zoom=1.0)


def random_graph(seed, most=7, loops=True):
    """A labelled graph with everything odd: isolated nodes, parts that are not connected, self-loops."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, most + 1))
    pairs = [(i, j) for i in range(size) for j in range(i, size) if (i != j or loops) and rng.random() < 0.5]
    count = len(pairs)
    return Graph(
        size,
        np.array(pairs).reshape(-1, 2),
        rng.uniform(0.1, 1.0, count),
        {"element": rng.integers(1, 4, size), "charge": rng.normal(size=size)},
        {"length": rng.uniform(0.9, 1.5, count), "order": rng.integers(1, 3, count)},
    )


def ring(size, length=1.4):
    nodes = np.arange(size)
    edges = np.column_stack([nodes, (nodes + 1) % size])
    return Graph(size, edges, np.ones(size), {"element": 6 + nodes % 2}, {"length": np.full(size, length)})


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-6)])
@pytest.mark.parametrize("sizes", [(6, 6), (8, 20), (4, 36)])
def test_both_systems_are_the_same_for_regular_graphs(sizes, dtype, tolerance):
    one, two = ring(sizes[0]), ring(sizes[1], 1.45)
    kernel = MolecularKernel(0.02, 0.4, 0.1, 1.0, tol=1e-12 if dtype == "float64" else 1e-7, dtype=dtype)
    expected, _ = naive.molecular_kernel(one, two, 0.02, 0.4, 0.1, 1.0)
    assert kernel([one], [two])[0, 0] == pytest.approx(expected, rel=tolerance)


def test_mixtures_of_directions():
    square, right = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([[0.5, 0.2], [0.3, 0.9]])
    found = block_cg_loops.quotient((3.0, 2.0, 1.0), tuple(right.ravel()))
    np.testing.assert_allclose(np.reshape(found, (2, 2)), np.linalg.solve(square, right))
    # Nearly the same direction twice, and none at all.
    assert block_cg_loops.quotient((4.0, 1.0, 2.0 - 1e-9), (2.0, 0.7, 0.7, 0.25)) == (0.5, 0.0, 0.0, 0.25)
    assert block_cg_loops.quotient((0.0, 1.0, 0.0), (2.0, 0.7, 0.7, 0.25)) == (0.0, 0.0, 0.0, 0.25)
    # Nobody moves along directions of negative curvature.
    assert block_cg_loops.quotient((-3.0, -2.0, 1.0), (0.5, 0.2, 0.2, 0.9)) == (0.0, 0.0, 0.0, 0.0)


def test_a_gain_is_what_a_step_takes_out_of_the_remainder(rng):
    matrix = rng.normal(size=(6, 6))
    matrix = matrix @ matrix.T + np.eye(6)
    directions, residuals, lengths = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), rng.normal(size=(2, 2))
    left = residuals - matrix @ directions @ lengths
    before, after = (r[:, 1] @ np.linalg.solve(matrix, r[:, 0]) for r in (residuals, left))
    square, products = directions.T @ matrix @ directions, directions.T @ residuals
    gain = block_cg_loops.gain(
        (square[0, 0], square[1, 1], square[0, 1]), tuple(products.ravel()), tuple(lengths.ravel())
    )
    assert gain == pytest.approx(before - after, rel=1e-10)


@pytest.mark.parametrize("owners", [0, 1, 300])
def test_edges_are_packed_by_graph_and_length(owners, rng):
    graphs = []
    for _ in range(owners):
        count = int(rng.integers(0, 4))
        graphs.append(Graph(2, [(0, 1)] * count, rng.uniform(0.1, 1.0, count), {}, {"length": rng.random(count)}))
    packed = PackedGraphs.pack(graphs, Columns(frozenset(), frozenset(), "length"))
    for number, graph in enumerate(graphs):
        _, edges = packed.within(number)
        order = np.argsort(graph.edge_labels["length"])
        np.testing.assert_array_equal(packed.length[edges], graph.edge_labels["length"][order])
        np.testing.assert_array_equal(packed.weight[edges], graph.weights[order])


def test_graphs_are_packed_once_for_all_hyperparameters(monkeypatch):
    packed = []
    pack = PackedGraphs.pack
    monkeypatch.setattr(
        PackedGraphs, "pack", lambda graphs, columns: packed.append(len(graphs)) or pack(graphs, columns)
    )
    graphs = [tent("CH4"), tent("H2O"), tent("NH3")]
    kernel = MolecularKernel(hydrogen_weight=0.5)
    kernel(graphs)
    for step in (0.1, 0.2):
        kernel = kernel.clone_with_theta(kernel.theta - step)
        np.testing.assert_allclose(kernel(graphs), clone(kernel)(graphs[:2] + graphs[2:]), rtol=1e-12)
    assert packed == [3, 3, 3]  # once by the first kernel, twice by those that know nothing of it
    kernel(graphs[:2])
    assert packed[3:] == [2]


@pytest.mark.parametrize("pair", KNOWN, ids="-".join)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-6)])
def test_published_values(pair, dtype, tolerance):
    kernel = MolecularKernel(0.01, 0.2, 0.05, 1.0, tol=1e-11 if dtype == "float64" else 1e-7, dtype=dtype)
    value = kernel([tent(pair[0])], [tent(pair[1])])[0, 0]
    assert value == pytest.approx(KNOWN[pair], rel=tolerance)


def test_published_derivatives():
    kernel = MolecularKernel(0.01, 0.2, 0.05, 1.0, **EXACT)
    _, gradient = kernel([tent("H2O"), tent("NH3")], eval_gradient=True)
    by_parameter = gradient[0, 1] / np.exp(kernel.theta)
    np.testing.assert_allclose(by_parameter, [15.79669953, -1.75619977, 8.95151120, 29.64658686], rtol=1e-7)


def test_all_alike_gives_the_product_of_sizes():
    kernel = MarginalizedGraphKernel(None, None, 0.07, **EXACT)
    first, second = random_graph(3, loops=False), tent("C6H6")
    connected = Graph(3, [(0, 1), (1, 2)], [0.2, 1.7])
    assert kernel([connected], [second])[0, 0] == pytest.approx(3 * 12 / (0.07 * 1.93), rel=1e-9)
    assert first.n_nodes > 0


def test_diatomics_in_closed_form():
    stopping, prior, length = 0.1, 0.3, 0.2
    pair = Graph(2, [(0, 1)], [0.7], {"element": [1, 2]}, {"length": [1.0]})
    other = Graph(2, [(0, 1)], [0.4], {"element": [1, 2]}, {"length": [1.15]})
    kernel = MolecularKernel(stopping, prior, length, **EXACT)
    s, e = (1 - stopping) ** 2, np.exp(-(0.15**2) / (2 * length**2))
    expected = 2 / (1 - e * s) + 2 * prior / (1 - prior * e * s)
    assert kernel([pair], [other])[0, 0] == pytest.approx(expected, rel=1e-10)


def test_isolated_nodes_count_with_their_own_similarity():
    lone = Graph(1, [], None, {"element": [6]}, {"length": []})
    two = Graph(2, [], None, {"element": [6, 8]}, {"length": []})
    assert MolecularKernel(**EXACT)([lone], [two])[0, 0] == pytest.approx(1.2, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.02, 0.5), st.floats(0.05, 0.9), st.floats(0.02, 0.5))
@example(3570, 0.03125, 0.75, 0.0234375)
def test_equals_the_dense_definition(seed, stopping, prior, length):
    first, second = random_graph(seed), random_graph(seed + 1)
    expected, nodal = naive.molecular_kernel(first, second, stopping, prior, length, 1.3)
    for dtype, tol, tolerance in (("float64", 1e-13, 1e-10), ("float32", 1e-7, 1e-6)):
        kernel = MolecularKernel(stopping, prior, length, 1.3, tol=tol, dtype=dtype)
        assert kernel([first], [second])[0, 0] == pytest.approx(expected, rel=tolerance)
    walk = MarginalizedGraphKernel(
        KroneckerDelta("element", prior), SquaredExponential("length", length), stopping, **EXACT
    )
    np.testing.assert_allclose(walk([first], [second], nodal=True), nodal, rtol=1e-9)


def test_starts_are_weighed():
    names = ("CH4", "C6H6", "CH3CH2OH")
    graphs = [tent(name) for name in names]
    weights = [np.where(graph.nodes["element"] == 1, 0.3, 1.0) for graph in graphs]
    expected = np.array(
        [
            [
                first @ naive.molecular_kernel(a, b, 0.05, 0.3, 0.1)[1] @ second
                for b, second in zip(graphs, weights, strict=True)
            ]
            for a, first in zip(graphs, weights, strict=True)
        ]
    )
    for precision, tolerance in ((EXACT, 1e-10), ({}, 1e-6)):
        kernel = MolecularKernel(0.05, 0.3, 0.1, hydrogen_weight=0.3, **precision)
        np.testing.assert_allclose(kernel(graphs), expected, rtol=tolerance)
        np.testing.assert_allclose(kernel(graphs[:1], graphs[1:]), expected[:1, 1:], rtol=tolerance)
    matrix, gradient = kernel.precise()(graphs, eval_gradient=True)
    for k in range(gradient.shape[2]):
        step = 1e-5 * np.eye(kernel.theta.size)[k]
        up, down = (kernel.precise().clone_with_theta(kernel.theta + sign * step)(graphs) for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, :, k], (up - down) / 2e-5, rtol=1e-4, atol=1e-4 * matrix.max())
    assert gram_matrix(kernel, graphs) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan])
def test_starting_weights_must_be_positive(weight):
    graphs = [tent("CH4")]
    with pytest.raises(InvalidParameterError, match="hydrogen_weight must be positive"):
        MolecularKernel(hydrogen_weight=weight)(graphs)
    graph = Graph(2, [(0, 1)], nodes={"start": np.array([1.0, 0.0])})
    with pytest.raises(InvalidGraphError, match="'start'.*positive"):
        MarginalizedGraphKernel(starting_attribute="start")([graph])
    with pytest.raises(InvalidGraphError, match="no node attribute 'begin'"):
        MarginalizedGraphKernel(starting_attribute="begin")([graph])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_graphs_without_anything_in_common(dtype):
    # Similarities of their nodes are too small for the format.
    graphs = [Graph(2, [(0, 1)], nodes={"charge": [at, at]}, edge_labels={"length": [1.0]}) for at in (0.0, 1000.0)]
    kernel = MarginalizedGraphKernel(SquaredExponential("charge", 0.1), SquaredExponential("length", 0.1), dtype=dtype)
    matrix = kernel(graphs)
    np.testing.assert_array_equal(matrix == 0.0, [[False, True], [True, False]])
    assert np.isfinite(matrix).all()


def test_large_graphs_get_room_for_their_pairs_of_edges(rng):
    # More pairs of edges than there is room for to begin with.
    size = 70
    edges = [(i, j) for i in range(size) for j in range(i + 1, size) if rng.random() < 0.2]
    lengths = rng.uniform(1.0, 1.3, len(edges))
    large = Graph(
        size, edges, rng.uniform(0.5, 1.0, len(edges)), {"element": rng.integers(1, 3, size)}, {"length": lengths}
    )
    small = tent("CH4")
    expected, _ = naive.molecular_kernel(large, small, 0.1, 0.3, 0.2, 1.0)
    kernel = MolecularKernel(0.1, 0.3, 0.2, **EXACT)
    assert kernel([small, large], [large])[:, 0] == pytest.approx([expected, kernel.diag([large])[0]], rel=1e-9)
    assert kernel([large], [small, large])[0, 0] == pytest.approx(expected, rel=1e-9)


COMPOSED = {
    "delta": (KroneckerDelta("element", 0.3), KroneckerDelta("order", 0.4)),
    "constant": (Constant(0.8, (0.1, 0.9)), Constant(0.7, (0.1, 0.9))),
    "product": (
        TensorProduct(KroneckerDelta("element", 0.3), SquaredExponential("charge", 0.8)),
        TensorProduct(KroneckerDelta("order", 0.4), SquaredExponential("length", 0.1)),
    ),
    "rational": (
        RationalQuadratic("charge", 0.9, 1.5),
        RationalQuadratic("length", 0.2, 0.7) * KroneckerDelta("order", 0.5),
    ),
    "sum": (
        WeightedSum((0.3, KroneckerDelta("element", 0.2)), (0.6, SquaredExponential("charge", 0.5))),
        WeightedSum((0.4, SquaredExponential("length", 0.2)), (0.5, KroneckerDelta("order", 0.5))),
    ),
    "two gaussians": (
        SquaredExponential("charge", 0.7),
        SquaredExponential("length", 0.2) * SquaredExponential("order", 1.2),
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_kernels_equal_the_dense_definition(name):
    nodes, edges = COMPOSED[name]
    graphs = [random_graph(seed) for seed in range(20, 26)]
    kernel = MarginalizedGraphKernel(nodes, edges, 0.15, 0.7, **EXACT)
    matrix = kernel(graphs)
    for i, first in enumerate(graphs):
        for j, second in enumerate(graphs):
            node_table = nodes.table(first.nodes, second.nodes)
            edge_table = edges.table(first.edge_labels, second.edge_labels)
            node_table = np.broadcast_to(node_table, (first.n_nodes, second.n_nodes))
            edge_table = np.broadcast_to(edge_table, (first.n_edges, second.n_edges))
            expected, _ = naive.marginalized_kernel(
                first, second, lambda a, b, t=node_table: t[a, b], lambda a, b, t=edge_table: t[a, b], 0.15, 0.7
            )
            assert matrix[i, j] == pytest.approx(expected, rel=1e-9)


def kernels_with_derivatives():
    for name, (nodes, edges) in COMPOSED.items():
        yield pytest.param(MarginalizedGraphKernel(nodes, edges, 0.15, 0.7, **EXACT), id=name)
    walk = MarginalizedGraphKernel(*COMPOSED["product"], 0.15, 0.7, **EXACT)
    yield pytest.param(Normalized(walk), id="normalized")
    yield pytest.param(Power(Normalized(walk), 3.0, (0.5, 8.0)), id="power")
    yield pytest.param(MolecularKernel(0.1, 0.4, 0.2, 1.3, **EXACT), id="extensive")
    yield pytest.param(MolecularKernel(0.1, 0.4, 0.2, 1.3, property="intensive", **EXACT), id="intensive")
    yield pytest.param(
        MolecularKernel(0.1, 0.4, 0.2, 1.3, element_prior_bounds="fixed", property="intensive", **EXACT),
        id="partly fixed",
    )


@pytest.mark.parametrize("kernel", list(kernels_with_derivatives()))
def test_derivatives_equal_finite_differences(kernel, rng):
    graphs = [random_graph(seed) for seed in (31, 32, 33, 34)]
    weights = rng.normal(size=(4, 4))
    weights += weights.T
    matrix, gradient = kernel(graphs, eval_gradient=True)
    np.testing.assert_allclose(matrix, kernel(graphs), rtol=1e-9)
    assert gradient.shape == (4, 4, kernel.n_dims)
    for k in range(kernel.n_dims):
        step = 1e-5 * np.eye(kernel.n_dims)[k]
        up, down = kernel.clone_with_theta(kernel.theta + step), kernel.clone_with_theta(kernel.theta - step)
        expected = (up(graphs) - down(graphs)) / 2e-5
        np.testing.assert_allclose(gradient[:, :, k], expected, rtol=1e-5, atol=1e-6 * np.abs(matrix).max())
    contracted = kernel.contracted_gradient(graphs, weights)
    np.testing.assert_allclose(contracted, np.einsum("ij,ijk->k", weights, gradient), rtol=1e-9, atol=1e-9)


def test_single_precision_derivatives():
    graphs = [tent(name) for name in ("CH4", "H2O", "NH3", "C6H6", "CH3OH")]
    _, exact = MolecularKernel(**EXACT)(graphs, eval_gradient=True)
    _, single = MolecularKernel()(graphs, eval_gradient=True)
    np.testing.assert_allclose(single, exact, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("property", ["extensive", "intensive"])
def test_symmetric_and_positive_semidefinite(property):
    graphs = [tent(name) for name in ("CH4", "H2O", "NH3", "C6H6", "H2", "CH3OH", "C2H6", "CO2", "HCN")]
    matrix = MolecularKernel(property=property)(graphs)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > -1e-6 * matrix.diagonal().mean()
    np.testing.assert_allclose(matrix, MolecularKernel(property=property)(graphs, graphs), rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_of_nodes_and_edges_does_not_matter(seed):
    graph, other = random_graph(seed), random_graph(seed + 7)
    rng = np.random.default_rng(seed)
    nodes, edges = rng.permutation(graph.n_nodes), rng.permutation(graph.n_edges)
    place = np.argsort(nodes)
    shuffled = Graph(
        graph.n_nodes,
        place[graph.edges][edges][:, ::-1],
        graph.weights[edges],
        {name: values[nodes] for name, values in graph.nodes.items()},
        {name: values[edges] for name, values in graph.edge_labels.items()},
    )
    kernel = MolecularKernel(0.1, **EXACT)
    assert kernel([shuffled], [other])[0, 0] == pytest.approx(kernel([graph], [other])[0, 0], rel=1e-10)


def test_protocol():
    kernel = MolecularKernel(0.02, 0.3, 0.1, 2.0)
    graphs = [tent("CH4"), tent("H2O")]
    assert clone(kernel) == kernel
    assert kernel.n_dims == 4
    assert kernel.bounds.shape == (4, 2)
    np.testing.assert_allclose(np.exp(kernel.theta), [2.0, 0.02, 0.3, 0.1])
    np.testing.assert_allclose(kernel.diag(graphs), kernel(graphs).diagonal())
    np.testing.assert_allclose(
        kernel(graphs), 4 * kernel.clone_with_theta(np.log([1.0, 0.02, 0.3, 0.1]))(graphs), rtol=1e-6
    )
    np.testing.assert_allclose(kernel.scaled(3.0)(graphs), 3 * kernel(graphs), rtol=1e-6)
    assert "element_prior=0.3" in repr(kernel)
    assert not kernel.requires_vector_input


def test_many_labels_use_tables_of_their_own(monkeypatch):
    graphs = [random_graph(seed) for seed in range(8)]
    kernel = MarginalizedGraphKernel(SquaredExponential("charge", 0.5), RationalQuadratic("length", 0.2), 0.2, **EXACT)
    whole = kernel(graphs)
    monkeypatch.setattr(pairs, "MOST_LABELS", 1)
    monkeypatch.setattr(pairs, "_TABLE_ENTRIES", 400)
    np.testing.assert_allclose(kernel(graphs), whole, rtol=1e-12)


def test_a_large_graph_with_a_small_one():
    rng = np.random.default_rng(0)
    big = Graph(
        300, [(i, i + 1) for i in range(299)], None, {"element": rng.integers(1, 3, 300)}, {"length": np.ones(299)}
    )
    small = tent("CH4")
    kernel = MolecularKernel(0.1, **EXACT)
    assert kernel([big], [small])[0, 0] == pytest.approx(naive.molecular_kernel(big, small, 0.1)[0], rel=1e-9)
    assert kernel([big])[0, 0] > 0


@pytest.mark.parametrize(
    "settings",
    [{"stopping_probability": 0.0}, {"stopping_probability": 1.0}, {"dtype": "int8"}, {"starting_probability": -1}],
)
def test_impossible_settings(settings):
    with pytest.raises(InvalidParameterError):
        MarginalizedGraphKernel(**settings)([tent("CH4")])


def test_unknown_attributes_and_objects():
    with pytest.raises(InvalidGraphError, match="no node attribute 'colour'"):
        MarginalizedGraphKernel(KroneckerDelta("colour"), None)([tent("CH4")])
    with pytest.raises(InvalidParameterError, match="not a Graph"):
        MarginalizedGraphKernel()(["CCO"])
    with pytest.raises(InvalidGraphError, match="bond_kernel"):
        MolecularKernel()(["CCO"])
    with pytest.raises(InvalidParameterError, match="did you mean|Did you mean"):
        MolecularKernel(property="extensiv")([tent("CH4")])
    assert MolecularKernel()([]).shape == (0, 0)


def test_scikit_learns_own_process_takes_the_kernel():
    from sklearn.gaussian_process import GaussianProcessRegressor

    names = ("CH4", "H2O", "NH3", "C6H6", "H2", "CH3OH", "C2H6", "CO2")
    graphs = [tent(name) for name in names]
    labels = np.array([-100.0 * graph.n_nodes for graph in graphs])
    kernel = MolecularKernel(dtype="float64", starting_probability=10.0)
    model = GaussianProcessRegressor(kernel, alpha=1e-3).fit(graphs, labels)
    np.testing.assert_allclose(model.predict(graphs), labels, atol=1.0)
    assert model.kernel_.theta.shape == (4,)
