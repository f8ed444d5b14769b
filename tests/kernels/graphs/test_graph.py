import networkx
import numpy as np
import pytest

from mislabel.data import Molecule
from mislabel.errors import InvalidGraphError, InvalidParameterError, UnitsWarning
from mislabel.kernels import Graph, MolecularKernel, bond_kernel

ase = pytest.importorskip("ase", reason="ASE is not installed")
from ase.build import bulk, molecule


def weights_of(adjacency, zoom, length, radius=1.10):
    graph = Graph.from_ase(ase.Atoms("H2", [[0, 0, 0], [0, 0, length]]), adjacency=adjacency, zoom=zoom)
    return graph.weights[0], length / (zoom * radius)


def test_adjacency_shapes():
    weight, ratio = weights_of("tent1", 1.0, 0.8)
    assert weight == pytest.approx(1 - ratio / 3)
    weight, ratio = weights_of("tent3", 0.9, 0.8)
    assert weight == pytest.approx((1 - ratio / 3) ** 3)
    weight, ratio = weights_of("compactbell4,2", 0.65, 0.8)
    t = 1 - ratio / 3
    assert weight == pytest.approx((4 * t**2 - 2 * t**4) / 2)
    weight, ratio = weights_of("gaussian", 1.0, 0.8)
    assert weight == pytest.approx(np.exp(-(ratio**2) / 2))


@pytest.mark.parametrize("name", ["tent", "tent0", "compactbell2,4", "box"])
def test_unknown_shapes(name):
    with pytest.raises(InvalidParameterError, match="adjacency"):
        Graph.from_ase(molecule("H2"), adjacency=name)


def test_atoms_out_of_reach_are_not_joined():
    graph = Graph.from_ase(ase.Atoms("C2", [[0, 0, 0], [0, 0, 9.0]]))
    assert graph.n_edges == 0
    assert MolecularKernel()([graph])[0, 0] > 0


@pytest.mark.parametrize("shift", [0.0, 0.3, -7.7])
def test_periodic_images_equal_a_supercell(shift):
    """A crystal looks the same from every atom, however many cells are written out."""
    one = bulk("NaCl", "rocksalt", a=5.64)
    one.positions += shift
    eight = one * (2, 2, 2)
    first, second = Graph.from_ase(one), Graph.from_ase(eight)
    per_atom = [
        np.bincount(graph.edges.ravel(), np.repeat(graph.weights, 2), graph.n_nodes) for graph in (first, second)
    ]
    loops = first.edges[:, 0] == first.edges[:, 1]
    per_atom[0] -= np.bincount(first.edges[loops, 0], first.weights[loops], first.n_nodes)
    loops = second.edges[:, 0] == second.edges[:, 1]
    per_atom[1] -= np.bincount(second.edges[loops, 0], second.weights[loops], second.n_nodes)
    np.testing.assert_allclose(per_atom[1], np.tile(per_atom[0], 8), rtol=1e-9)
    kernel = MolecularKernel(0.05, dtype="float64", tol=1e-11)
    matrix = kernel([first, second])
    assert matrix[1, 1] == pytest.approx(64 * matrix[0, 0], rel=1e-7)
    assert matrix[0, 1] == pytest.approx(8 * matrix[0, 0], rel=1e-7)


@pytest.mark.filterwarnings("error")
def test_common_molecules_raise_no_doubts():
    for name in ("CH4", "H2O", "C6H6", "H2", "CH3OH", "SiH4", "HCl"):
        Graph.from_ase(molecule(name))


@pytest.mark.parametrize(("factor", "unit"), [(1 / 0.529177, "Bohr"), (0.1, "nanometres")])
def test_other_units_are_noticed(factor, unit):
    atoms = molecule("CH3OH")
    atoms.positions *= factor
    with pytest.warns(UnitsWarning, match=unit):
        Graph.from_ase(atoms)
    with pytest.warns(UnitsWarning, match="1 more") as caught:
        MolecularKernel()([atoms, atoms])
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("numbers", "positions", "message"),
    [
        ([6, 0], [[0, 0, 0], [0, 0, 1.1]], "atom 1 .* unknown atomic number 0"),
        ([6, 200], [[0, 0, 0], [0, 0, 1.1]], "unknown atomic number 200"),
        ([6, 6], [[0, 0, 0], [0, 0, np.nan]], "atom 1 .* NaN"),
        ([6, 6], [[0, 0, 0], [0, 0, 0]], "atoms 0 and 1 are at the same place"),
        ([], np.zeros((0, 3)), "no atoms"),
        ([6], np.zeros((2, 3)), "1 elements but 2 positions"),
    ],
)
def test_impossible_molecules(numbers, positions, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graph.from_ase(Molecule(np.array(numbers, dtype=int), np.array(positions), "acetone"))


def test_periodic_without_a_cell():
    with pytest.raises(InvalidGraphError, match="no volume"):
        Graph.from_ase(Molecule(np.array([6]), np.zeros((1, 3)), cell=np.zeros((3, 3)), pbc=True))


def test_networkx_attributes():
    network = networkx.Graph(name="ring")
    network.add_node("a", kind="hub", size=2.5)
    network.add_node("b", kind="leaf", size=1.0)
    network.add_edge("a", "b", weight=0.5, road="gravel")
    network.add_edge("a", "a", weight=2.0, road="tar")
    graph = Graph.from_networkx(network)
    assert graph.nodes["kind"].tolist() == ["hub", "leaf"]
    assert graph.nodes["size"].tolist() == [2.5, 1.0]
    assert sorted(graph.weights.tolist()) == [0.5, 2.0]
    assert set(graph.edge_labels) == {"road"}
    with pytest.raises(InvalidGraphError, match="directed"):
        Graph.from_networkx(networkx.DiGraph([(0, 1)]))
    network.add_node("c")
    with pytest.raises(InvalidGraphError, match="lack the attribute"):
        Graph.from_networkx(network)


def test_smiles():
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    graph = Graph.from_smiles("c1ccccc1[O-]")
    assert graph.n_nodes == 7
    assert graph.nodes["aromatic"].sum() == 6
    assert graph.nodes["charge"].sum() == -1
    assert sorted(set(graph.edge_labels["order"])) == [1.0, 1.5]
    assert Graph.from_smiles("C", hydrogens=True).n_nodes == 5
    with pytest.raises(InvalidGraphError, match="cannot be read"):
        Graph.from_smiles("C1CC")
    matrix = bond_kernel()([Graph.from_smiles(s) for s in ("CCO", "CCN", "c1ccccc1", "[Na+].[Cl-]", "C")])
    np.testing.assert_allclose(matrix.diagonal(), 1.0)
    assert matrix[0, 1] > matrix[0, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_nodes": 0, "edges": []}, "no nodes"),
        ({"n_nodes": 2, "edges": [(0, 2)]}, "node 2"),
        ({"n_nodes": 2, "edges": [(0, 1)], "weights": [-1.0]}, "negative"),
        ({"n_nodes": 2, "edges": [(0, 1)], "weights": [1.0, 2.0]}, "1 edges"),
        ({"n_nodes": 2, "edges": [], "nodes": {"mass": [1.0]}}, "mass"),
        ({"n_nodes": 1, "edges": [], "nodes": {"mass": [np.inf]}}, "NaN or infinity"),
    ],
)
def test_inconsistent_graphs(settings, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graph(**settings)
