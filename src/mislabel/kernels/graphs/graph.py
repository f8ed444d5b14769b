"""A labelled, weighted, undirected graph: what the graph kernels compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mislabel.errors import InvalidGraphError
from mislabel.kernels.fingerprints import digest_of


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes with attributes, and weighted edges with attributes.

    Parameters
    ----------
    n_nodes : number of nodes.
    edges : (m, 2) node numbers; each undirected edge once, a self-loop joins a node to itself.
    weights : (m) positive adjacency weights; None for one everywhere.
    nodes, edge_labels : attributes by name, one value (number, string or boolean) per node or edge.
    name : what to call the graph in messages.

    ``from_ase``, ``from_rdkit``, ``from_smiles`` and ``from_networkx`` make graphs from other libraries' objects.
    """

    n_nodes: int
    edges: np.ndarray
    weights: np.ndarray | None = None
    nodes: Mapping[str, np.ndarray] = field(default_factory=dict)
    edge_labels: Mapping[str, np.ndarray] = field(default_factory=dict)
    name: str = "graph"

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.int64).reshape(-1, 2)
        weights = np.ones(len(edges)) if self.weights is None else np.asarray(self.weights, dtype=float)
        if self.n_nodes < 1:
            raise InvalidGraphError(f"{self.name} has no nodes: an empty graph has no similarity to anything; drop it.")
        if edges.size and (edges.min() < 0 or edges.max() >= self.n_nodes):
            raise InvalidGraphError(
                f"{self.name} has an edge to node {int(edges.max())}, but only nodes 0 to {self.n_nodes - 1}."
            )
        if weights.shape != (len(edges),):
            raise InvalidGraphError(f"{self.name} has {len(edges)} edges but weights of shape {weights.shape}.")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InvalidGraphError(f"{self.name} has edge weights that are negative, NaN or infinite.")
        nodes = _checked(self.nodes, self.n_nodes, "node", self.name)
        labels = _checked(self.edge_labels, len(edges), "edge", self.name)
        present = weights > 0
        if not present.all():
            edges, weights = edges[present], weights[present]
            labels = {name: values[present] for name, values in labels.items()}
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "edge_labels", labels)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.edges)

    def __repr__(self) -> str:
        return f"Graph({self.name}: {self.n_nodes} nodes, {self.n_edges} edges)"

    def fingerprint(self) -> bytes:
        """A hash of everything that a kernel could see, to the bit."""
        return digest_of([self.n_nodes, self.edges, self.weights, dict(self.nodes), dict(self.edge_labels)])

    @classmethod
    def from_ase(cls, atoms: Any, adjacency: str = "tent1", zoom: float = 1.0, name: str | None = None) -> Graph:
        """Atoms and the distances between them; see :func:`mislabel.kernels.graphs.molecules.graph_from_atoms`."""
        from mislabel.kernels.graphs.molecules import graph_from_atoms

        return graph_from_atoms(atoms, adjacency=adjacency, zoom=zoom, name=name)

    @classmethod
    def from_rdkit(cls, molecule: Any, name: str | None = None) -> Graph:
        """Atoms and bonds; see :func:`mislabel.kernels.graphs.bonds.graph_from_rdkit`."""
        from mislabel.kernels.graphs.bonds import graph_from_rdkit

        return graph_from_rdkit(molecule, name=name)

    @classmethod
    def from_smiles(cls, smiles: str, hydrogens: bool = False) -> Graph:
        """Atoms and bonds of a SMILES string, with explicit hydrogens on request."""
        from mislabel.kernels.graphs.bonds import graph_from_smiles

        return graph_from_smiles(smiles, hydrogens=hydrogens)

    @classmethod
    def from_networkx(cls, network: Any, weight: str = "weight", name: str | None = None) -> Graph:
        """An undirected networkx graph with any numeric or categorical attributes."""
        from mislabel.kernels.graphs.networks import graph_from_networkx

        return graph_from_networkx(network, weight=weight, name=name)


def _checked(attributes: Mapping[str, Any], count: int, what: str, name: str) -> dict[str, np.ndarray]:
    checked = {}
    for key, values in attributes.items():
        array = np.asarray(values)
        if array.dtype.kind in "US":
            array = array.astype(object)
        if array.shape != (count,):
            raise InvalidGraphError(f"{name}: {what} attribute {key!r} has shape {array.shape}, expected ({count},).")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidGraphError(f"{name}: {what} attribute {key!r} contains NaN or infinity.")
        checked[key] = array
    return checked
