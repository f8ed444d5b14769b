"""Graphs from networkx."""

from __future__ import annotations

from typing import Any

import numpy as np

from mislabel.errors import InvalidGraphError
from mislabel.kernels.graphs.graph import Graph


def graph_from_networkx(network: Any, *, weight: str = "weight", name: str | None = None) -> Graph:
    """All node and edge attributes that every node or edge has; ``weight`` is the adjacency weight, one if absent."""
    if not (hasattr(network, "is_directed") and hasattr(network, "edges")):
        raise InvalidGraphError(f"{type(network).__name__} is not a networkx graph.")
    title = name or network.name or "graph"
    if network.is_directed():
        raise InvalidGraphError(f"{title} is directed: the walks of the kernel are not; use network.to_undirected().")
    position = {node: number for number, node in enumerate(network.nodes)}
    node_data = [attributes for _, attributes in network.nodes(data=True)]
    edge_data = [attributes for _, _, attributes in network.edges(data=True)]
    edges = np.array([(position[u], position[v]) for u, v in network.edges()], dtype=np.int64).reshape(-1, 2)
    try:
        weights = np.array([attributes.get(weight, 1.0) for attributes in edge_data], dtype=float)
    except (TypeError, ValueError):
        raise InvalidGraphError(f"{title}: the edge attribute {weight!r} must be a number on every edge.") from None
    labels = _columns(edge_data, title, "edge")
    labels.pop(weight, None)
    return Graph(len(position), edges, weights, _columns(node_data, title, "node"), labels, title)


def _columns(data: list[dict[str, Any]], title: str, what: str) -> dict[str, np.ndarray]:
    names = sorted(set().union(*data), key=str)
    columns = {}
    for name in names:
        missing = sum(name not in attributes for attributes in data)
        if missing:
            raise InvalidGraphError(f"{title}: {missing} of {len(data)} {what}s lack the attribute {name!r}.")
        values = [attributes[name] for attributes in data]
        numeric = all(isinstance(value, int | float | np.number | np.bool_) for value in values)
        columns[str(name)] = np.array(values) if numeric else np.array([str(value) for value in values], dtype=object)
    return columns
