"""Pairs of graphs that conjugate gradients do not get to converge."""

from itertools import pairwise

import numpy as np
import pytest

from mislabel.errors import KernelMatrixError, NotConvergedError, SingularPairError
from mislabel.kernels import (
    Constant,
    Graph,
    KroneckerDelta,
    MarginalizedGraphKernel,
    MolecularKernel,
    SquaredExponential,
    TensorProduct,
    WeightedSum,
)
from mislabel.kernels.graphs.marginalized import direct_solution, pairs
from mislabel.kernels.on_data import KernelOnData
from mislabel.linalg.cost import CostMeter
from mislabel.noise.marginal import INFEASIBLE, MarginalObjective
from mislabel.noise.penalty import Penalty
from tests import naive
from tests.kernels.graphs.test_marginalized import EXACT, random_graph

GRAPHS = [random_graph(seed) for seed in range(9)]
KERNELS = {
    "lengths": MarginalizedGraphKernel(
        TensorProduct(KroneckerDelta("element", 0.4), SquaredExponential("charge", 0.7)),
        SquaredExponential("length", 0.2),
        0.05,
        1.3,
        **EXACT,
    ),
    "orders": MarginalizedGraphKernel(KroneckerDelta("element", 0.4), KroneckerDelta("order", 0.3), 0.05, 1.3, **EXACT),
    "both": MarginalizedGraphKernel(
        WeightedSum((0.3, KroneckerDelta("element", 0.4)), (0.6, SquaredExponential("charge", 0.5))),
        TensorProduct(KroneckerDelta("order", 0.3), SquaredExponential("length", 0.2), KroneckerDelta("order", 0.8)),
        0.05,
        **EXACT,
    ),
}


@pytest.fixture
def every_pair_is_hard(monkeypatch):
    monkeypatch.setattr(pairs, "MOST_STEPS", 0)


@pytest.mark.usefixtures("every_pair_is_hard")
@pytest.mark.parametrize("most_dense", [4096, 0])
@pytest.mark.parametrize("name", KERNELS)
def test_direct_solutions_agree_with_iterated_ones(name, most_dense, monkeypatch):
    kernel = KERNELS[name]
    monkeypatch.setattr(direct_solution, "MOST_DENSE", most_dense)
    direct = kernel(GRAPHS, eval_gradient=True)
    values, nodal, rectangle = kernel(GRAPHS), kernel(GRAPHS, nodal=True), kernel(GRAPHS[:2], GRAPHS[2:], nodal=True)
    monkeypatch.setattr(pairs, "MOST_STEPS", 400)
    expected = kernel(GRAPHS, eval_gradient=True)
    np.testing.assert_allclose(values, expected[0], rtol=1e-9)
    for found, other in zip(direct, expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-8, atol=1e-8 * np.abs(other).max())
    np.testing.assert_allclose(nodal, kernel(GRAPHS, nodal=True), rtol=1e-8)
    np.testing.assert_allclose(rectangle, kernel(GRAPHS[:2], GRAPHS[2:], nodal=True), rtol=1e-8)


@pytest.mark.usefixtures("every_pair_is_hard")
def test_direct_solutions_are_the_definition():
    for one, two in pairwise(GRAPHS):
        kernel = MolecularKernel(0.03, 0.4, 0.1, 1.2, dtype="float64")
        expected, _ = naive.molecular_kernel(one, two, 0.03, 0.4, 0.1, 1.2)
        assert kernel([one], [two])[0, 0] == pytest.approx(expected, rel=1e-11)


def test_single_precision_falls_back_to_direct_solutions(monkeypatch):
    expected = MolecularKernel(0.05, 0.4, 0.1, **EXACT)(GRAPHS, eval_gradient=True)
    monkeypatch.setattr(pairs, "MOST_STEPS", 0)
    found = MolecularKernel(0.05, 0.4, 0.1)(GRAPHS, eval_gradient=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(other).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nodes_without_any_similarity_have_derivatives(dtype):
    """A squared exponential of numbers that are far apart is zero to working precision."""

    def kernel(logs):
        nodes = TensorProduct(KroneckerDelta("element", np.exp(logs[0])), SquaredExponential("charge", np.exp(logs[1])))
        return MarginalizedGraphKernel(nodes, SquaredExponential("length", 0.2), 0.05, dtype=dtype)

    point = np.log([0.4, 0.02])
    slopes = kernel(point).prepared(GRAPHS).values_and_gradients(np.array([[3, 7]]))[1]
    exact = naive.finite_difference(
        lambda logs: kernel(logs).set_params(**EXACT)([GRAPHS[3]], [GRAPHS[7]])[0, 0], point, 1e-5
    )
    assert np.isfinite(slopes).all()
    np.testing.assert_allclose(slopes[0, 2:4], exact, atol=1e-5 * np.abs(slopes).max())


def test_two_molecules_at_the_bounds_of_their_kernel():
    """Solubilities made tuning go here: both systems of the pair are nearly the same, and spoil each other."""
    pytest.importorskip("rdkit")
    one, two = (Graph.from_smiles(text) for text in ("CC1=C(C(=O)Nc2ccccc2)S(=O)(=O)CCO1", "COc2cnc1ncncc1n2"))
    priors = {"element": 0.99, "aromatic": 0.99, "charge": 1 / 60}
    nodes = TensorProduct(*(KroneckerDelta(name, prior) for name, prior in priors.items()))

    def kernel(stopping=1 / 300, dtype="float64"):
        return MarginalizedGraphKernel(nodes, KroneckerDelta("order", 0.99), stopping, dtype=dtype)

    def similar_nodes(i, k):
        return np.prod([1.0 if one.nodes[n][i] == two.nodes[n][k] else prior for n, prior in priors.items()])

    def similar_edges(e, f):
        return 1.0 if one.edge_labels["order"][e] == two.edge_labels["order"][f] else 0.99

    def definition(stopping):
        return naive.marginalized_kernel(one, two, similar_nodes, similar_edges, stopping)

    expected, nodal = definition(1 / 300)
    pair = np.array([[0, 1]])
    for dtype in ("float64", "float32"):
        values, slopes = kernel(dtype=dtype).prepared([one, two]).values_and_gradients(pair)
        assert values[0] == pytest.approx(expected, rel=1e-7)
        assert kernel(dtype=dtype)([one], [two])[0, 0] == pytest.approx(expected, rel=1e-7)
        by_log_stopping = naive.finite_difference(lambda log: definition(np.exp(log[0]))[0], [np.log(1 / 300)], 1e-5)
        assert slopes[0, 1] == pytest.approx(by_log_stopping[0], rel=1e-5)
        np.testing.assert_allclose(kernel(dtype=dtype)([one], [two], nodal=True), nodal, rtol=1e-5)


def test_walks_that_do_not_die_out_are_refused_by_name():
    named = [
        Graph(3, [(0, 1), (1, 2)], None, {}, {"length": [1.0, 1.2]}, name=name) for name in ("first one", "second one")
    ]
    kernel = MarginalizedGraphKernel(Constant(2.0), SquaredExponential("length", 0.5), 0.02)
    for call in (lambda: kernel([named[0]], [named[1]]), lambda: kernel(named, eval_gradient=True)):
        with pytest.raises(
            SingularPairError, match=r"(first|second) one.*stopping_probability=0.02.*constant=2.*Raise"
        ):
            call()
    assert issubclass(SingularPairError, NotConvergedError)
    assert issubclass(SingularPairError, KernelMatrixError)


def test_tuning_goes_around_points_without_similarities(rng):
    """Such hyperparameters are a rejected step, not the end."""
    kernel = MarginalizedGraphKernel(
        Constant(0.5, (0.1, 5.0)), SquaredExponential("length", 0.2), 0.02, dtype="float64"
    )
    labels = rng.normal(size=len(GRAPHS))
    objective = MarginalObjective(
        KernelOnData(kernel, GRAPHS), labels, np.zeros(len(GRAPHS)), None, 1.0, Penalty(), CostMeter(len(GRAPHS))
    )
    start = objective.start(0.1)
    assert objective.held(start)[0] < INFEASIBLE
    beyond = start.copy()
    beyond[2] = np.log(4.0)
    value, gradient = objective.held(beyond)
    assert value == INFEASIBLE
    assert not gradient.any()
