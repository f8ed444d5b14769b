"""Objects of other libraries that cannot become graphs are refused in words."""

import pytest

from mislabel.errors import InvalidGraphError
from mislabel.kernels import Graph


def test_a_molecule_that_was_not_sanitized():
    chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed")
    with pytest.raises(InvalidGraphError, match="call Chem.SanitizeMol"):
        Graph.from_rdkit(chem.MolFromSmiles("CCO", sanitize=False))


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        (None, "None is not a SMILES string"),
        (1.5, "1.5 is not a SMILES string"),
        ("  ", "is not a SMILES string"),
        ("C\ud800", "letters that no SMILES has"),
        ("C\u0663", "letters that no SMILES has"),
        ("C" * 6000, r"'C{100}\.\.\.' has 6,000 letters; at most 5,000"),
        ("C\x00C", "letters that no SMILES has"),
    ],
)
def test_strings_that_are_no_smiles(smiles, message):
    pytest.importorskip("rdkit.Chem", reason="RDKit is not installed")
    with pytest.raises(InvalidGraphError, match=message):
        Graph.from_smiles(smiles)


def test_long_names_are_shortened():
    pytest.importorskip("rdkit.Chem", reason="RDKit is not installed")
    graph = Graph.from_smiles("C" * 1000)
    assert graph.n_nodes == 1000
    assert graph.name == "C" * 200 + "..."


def test_networks_with_weights_that_are_no_numbers():
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    network = networkx.Graph()
    network.add_edge("a", "b", weight="heavy")
    with pytest.raises(InvalidGraphError, match="'weight' must be a number on every edge"):
        Graph.from_networkx(network)
    with pytest.raises(InvalidGraphError, match="list is not a networkx graph"):
        Graph.from_networkx([])
