"""The second walk of the molecular kernel: coordination numbers, sums, derivatives, fits."""

from itertools import pairwise

import numpy as np
import pytest
from ase import Atoms
from ase.build import bulk, molecule
from sklearn.base import clone

from mislabel import LabelNoiseRegressor
from mislabel.errors import InvalidGraphError, InvalidParameterError
from mislabel.kernels import (
    FarWalk,
    Graph,
    KroneckerDelta,
    MarginalizedGraphKernel,
    MolecularKernel,
    SquaredExponential,
    TensorProduct,
    gram_matrix,
)
from mislabel.kernels.graphs.molecules import graph_from_atoms
from mislabel.kernels.on_data import KernelOnData, MatrixWithSlopes
from tests.kernels.graphs.slopes import assert_slopes

EXACT = {"tol": 1e-12, "dtype": "float64"}
NAMES = ("CH4", "H2O", "NH3", "C6H6", "CH3OH", "C2H6", "CO2", "HCN")
MOLECULES = [molecule(name) for name in NAMES]
FAR = FarWalk(weight=0.3, stopping_probability=0.1, edge_length_scale=0.15, zoom=0.9, coordination_scale=0.7)


def coordination(atoms, **settings):
    return graph_from_atoms(atoms, adjacency="compactbell4,2", coordination=True, **settings).nodes["coordination"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("CH4", [4, 1, 1, 1, 1]), ("H2O", [2, 1, 1]), ("CO2", [2, 1, 1]), ("C6H6", [3] * 6 + [1] * 6), ("HCN", [2, 1, 1])],
)
def test_coordination_counts_bonds(name, expected):
    np.testing.assert_array_equal(coordination(molecule(name)), expected)
    # However narrow the graph is, bonds are counted.
    np.testing.assert_array_equal(coordination(molecule(name), zoom=0.2), expected)


def test_coordination_falls_as_a_bond_is_stretched():
    found = [coordination(Atoms("CO", [(0, 0, 0), (0, 0, r)]))[0] for r in (1.2, 1.7, 1.8, 1.9, 2.5)]
    assert found[0] == 1
    assert found[-1] == 0
    assert all(a >= b for a, b in pairwise(found))
    assert 0 < found[2] < 1


def test_coordination_in_a_crystal_counts_images():
    # One atom per cell, whose neighbours are all its own images, and the same crystal in a cell of eight.
    crystal = bulk("Cu", "fcc", a=3.3)
    alone, many = coordination(crystal), coordination(crystal.repeat(2))
    np.testing.assert_allclose(many, np.full(8, alone[0]))
    assert alone[0] == 12


def test_is_the_sum_of_both_walks():
    kernel = MolecularKernel(0.3, 0.5, 0.1, 1.3, far=FAR, **EXACT)
    near = MolecularKernel(0.3, 0.5, 0.1, 1.3, **EXACT)
    nodes = TensorProduct(KroneckerDelta("element", 0.5), SquaredExponential("coordination", 0.7))
    far = MarginalizedGraphKernel(nodes, SquaredExponential("length", 0.15), 0.1, 1.3, **EXACT)
    graphs = [graph_from_atoms(item, adjacency="compactbell4,2", zoom=0.9, coordination=True) for item in MOLECULES]
    expected = near(MOLECULES) + 0.3 * far(graphs)
    np.testing.assert_allclose(kernel(MOLECULES), expected, rtol=1e-10)
    np.testing.assert_allclose(kernel(MOLECULES[:3], MOLECULES[3:]), expected[:3, 3:], rtol=1e-10)
    np.testing.assert_allclose(kernel.diag(MOLECULES), expected.diagonal(), rtol=1e-10)
    np.testing.assert_allclose(kernel.scaled(2.0)(MOLECULES), 2 * expected, rtol=1e-10)
    single = MolecularKernel(0.3, 0.5, 0.1, 1.3, far=FAR)
    np.testing.assert_allclose(single(MOLECULES), expected, rtol=1e-6)
    roots = np.sqrt(expected.diagonal())
    intensive = MolecularKernel(0.3, 0.5, 0.1, 1.3, far=FAR, property="intensive", exponent=3.0, **EXACT)
    sharp = 1.69 * (expected / np.outer(roots, roots)) ** 3
    np.testing.assert_allclose(intensive(MOLECULES), sharp, rtol=1e-9)
    np.testing.assert_allclose(intensive(MOLECULES[:3], MOLECULES[3:]), sharp[:3, 3:], rtol=1e-9)


@pytest.mark.parametrize("property", ["extensive", "intensive"])
def test_derivatives_equal_finite_differences(property, rng):
    kernel = MolecularKernel(0.3, 0.5, 0.1, 1.3, far=FAR, property=property, **EXACT)
    assert_slopes(kernel, MOLECULES[:4], 5, rng)


def test_protocol():
    kernel = MolecularKernel.with_far_walk(starting_probability=2.0)
    assert clone(kernel) == kernel
    assert kernel != MolecularKernel.with_far_walk(starting_probability=2.0, far=FarWalk(weight=0.5))
    assert kernel.n_dims == 1
    free = MolecularKernel(far=FAR)
    assert [item.name for item in free.parameters()][-1] == "far_weight"
    assert free.clone_with_theta(free.theta + 1.0).far.weight == pytest.approx(0.3 * np.e)
    assert MolecularKernel.with_far_walk("intensive").property == "intensive"
    fixed = MolecularKernel(far=FarWalk(weight_bounds="fixed"))
    assert fixed.n_dims == 4
    assert fixed(MOLECULES[:2], eval_gradient=True)[1].shape == (2, 2, 4)


def test_matrices_on_disk_tell_the_two_apart(tmp_path):
    from mislabel.errors import GramFileError

    kernel = MolecularKernel.with_far_walk(dtype="float64")
    matrix = gram_matrix(kernel, MOLECULES, path=tmp_path / "k.gram")
    np.testing.assert_allclose(matrix, kernel(MOLECULES), rtol=1e-12)
    with pytest.raises(GramFileError):
        gram_matrix(MolecularKernel(dtype="float64"), MOLECULES, path=tmp_path / "k.gram")


def test_what_it_cannot_do_is_said():
    graph = Graph.from_ase(MOLECULES[0])
    with pytest.raises(InvalidGraphError, match="give the molecules themselves"):
        MolecularKernel(far=FarWalk())([graph])
    both = MolecularKernel(far=FarWalk()).graphs_of(MOLECULES[:1])
    with pytest.raises(InvalidGraphError, match="with far walk"):
        MolecularKernel()(both)
    with pytest.raises(InvalidParameterError, match="weight of the far walk"):
        MolecularKernel(far=FarWalk(weight=0.0))(MOLECULES[:1])


def test_a_model_takes_it():
    rng = np.random.default_rng(0)
    molecules = [item.copy() for item in MOLECULES * 6]
    for item in molecules:
        item.rattle(0.03, rng=rng)
    labels = np.array([-80.0 * len(item) for item in molecules])
    labels[5] += 60.0
    kernel = MolecularKernel(0.05, 0.5, 0.1, far=FarWalk(), tuning_size=30, dtype="float64")
    model = LabelNoiseRegressor(kernel=kernel).fit(molecules, labels)
    assert model.kernel_.far is not None
    assert np.argmax(np.abs(model.z_)) == 5
    np.testing.assert_allclose(model.predict(molecules[:3]), labels[:3], atol=15.0)


@pytest.mark.parametrize("property", ["extensive", "intensive"])
def test_a_kernel_of_which_only_the_scale_is_free_is_evaluated_once(property, monkeypatch):
    kernel = MolecularKernel.with_far_walk(property, dtype="float64")
    assert kernel.scale_power == 2.0
    assert MolecularKernel(far=FAR).scale_power is None
    fixed = KernelOnData(kernel, MOLECULES[:5]).for_tuning()
    moved = fixed.at(kernel.theta + 0.4)
    slow = MatrixWithSlopes(kernel.precise().clone_with_theta(kernel.theta + 0.4), MOLECULES[:5])
    monkeypatch.setattr(MolecularKernel, "__call__", None)
    matrix, weights = moved.matrix(), np.arange(25.0).reshape(5, 5)
    contracted = moved.contract(weights)
    monkeypatch.undo()
    np.testing.assert_allclose(matrix, slow.matrix(), rtol=1e-6)
    np.testing.assert_allclose(contracted, slow.contract(weights), rtol=1e-6)
    np.testing.assert_allclose(fixed.matrix(), kernel(MOLECULES[:5]), rtol=1e-6)
