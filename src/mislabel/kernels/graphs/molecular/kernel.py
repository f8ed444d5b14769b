"""Ready-made kernels: molecules in space, and molecules as bonds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mislabel.errors import InvalidGraphError, InvalidParameterError, UnitsWarning, unknown_name
from mislabel.kernels.block_kernel import TUNING_SIZE, BlockKernel, Bounds, Parameter
from mislabel.kernels.contract import PreparedKernel
from mislabel.kernels.graphs.attribute_kernels import (
    AttributeKernel,
    KroneckerDelta,
    SquaredExponential,
    TensorProduct,
)
from mislabel.kernels.graphs.graph import Graph
from mislabel.kernels.graphs.marginalized.kernel import MarginalizedGraphKernel, WalkKernel
from mislabel.kernels.graphs.molecular.electronic_term import ElectronicTerm, PreparedWithElectrons
from mislabel.kernels.graphs.molecular.extended_huckel import electrons_of
from mislabel.kernels.graphs.molecular.far_walk import FarWalk, PreparedTwoWalks
from mislabel.kernels.graphs.molecular.views import MoleculeViews
from mislabel.kernels.graphs.molecules import graph_from_atoms
from mislabel.kernels.wrappers import Normalized, Power, PreparedNormalized, PreparedPower

#: Kinds of molecular properties.
PROPERTIES = ("extensive", "intensive")
#: How far tuning may move the amplitude (the square of the starting probability) from its start.
_AMPLITUDE_RANGE = 1e4
#: Node attribute with the weights of atoms as starts.
_START = "start"
#: What may be added to the first walk, in words.
_TERMS = {"far": "far walk", "electrons": "electronic term"}
#: Hyperparameters of the first walk.
_OWN = ("starting_probability", "stopping_probability", "element_prior", "edge_length_scale")


class MolecularKernel(WalkKernel):
    """Similarity of molecules in three dimensions, for Gaussian processes on their properties.

    Parameters
    ----------
    stopping_probability : chance that a walk over the atoms ends at each step. Tuning keeps it below 0.05: a few hundred
        molecules ask for shorter walks than thousands can use.
    element_prior : similarity of different elements (same ones have 1).
    edge_length_scale : tolerance of interatomic distances, in Angstrom.
    starting_probability : the kernel is proportional to its square: the amplitude.
    property : "extensive" for properties that grow with the molecule (energies, polarizabilities): similarities are not
        normalised and labels not centred. "intensive" for those that do not (gaps, logarithms): normalised, and raised to
        ``exponent``.
    exponent : only for intensive properties.
    hydrogen_weight : how much a hydrogen counts as the start of a walk, any other atom being one; None for one too. The
        surroundings of its neighbour tell most of what those of a hydrogen do.
    far : a second walk that sees farther, added to this one; None for none. It needs molecules rather than graphs, three to
        four times as long, and lowers errors; see :meth:`with_far_walk`.
    electrons : a term by which molecules are alike whose electrons are, added to the walks; None for none. It needs molecules
        of main-group elements, a millisecond for each, and lowers errors further; see :meth:`accurate`.
    adjacency, zoom : how molecules become graphs, see :meth:`Graph.from_ase`; graphs are taken as they are.
    tuning_size : hyperparameters are tuned on this many molecules, drawn at random; on all, only the amplitude is.
    tol, dtype, n_jobs : as in :class:`MarginalizedGraphKernel`.
    """

    tuning_size: int | None = TUNING_SIZE

    def __init__(
        self,
        stopping_probability: float = 0.01,
        element_prior: float = 0.2,
        edge_length_scale: float = 0.05,
        starting_probability: float = 1.0,
        tol: float = 1e-7,
        dtype: str = "float32",
        *,
        property: str = "extensive",
        exponent: float = 4.0,
        hydrogen_weight: float | None = None,
        far: FarWalk | None = None,
        electrons: ElectronicTerm | None = None,
        adjacency: str = "compactbell4,2",
        zoom: float = 0.65,
        stopping_probability_bounds: Bounds = (1e-3, 0.05),
        element_prior_bounds: Bounds = (1e-2, 0.95),
        edge_length_scale_bounds: Bounds = (0.01, 0.5),
        starting_probability_bounds: Bounds = (1e-4, 1e4),
        tuning_size: int | None = TUNING_SIZE,
        n_jobs: int | None = None,
    ) -> None:
        self.tuning_size = tuning_size
        self.stopping_probability = stopping_probability
        self.element_prior = element_prior
        self.edge_length_scale = edge_length_scale
        self.starting_probability = starting_probability
        self.tol = tol
        self.dtype = dtype
        self.property = property
        self.exponent = exponent
        self.hydrogen_weight = hydrogen_weight
        self.far = far
        self.electrons = electrons
        self.adjacency = adjacency
        self.zoom = zoom
        self.stopping_probability_bounds = stopping_probability_bounds
        self.element_prior_bounds = element_prior_bounds
        self.edge_length_scale_bounds = edge_length_scale_bounds
        self.starting_probability_bounds = starting_probability_bounds
        self.n_jobs = n_jobs

    @classmethod
    def with_far_walk(cls, property: str = "extensive", **settings: Any) -> MolecularKernel:
        """A more accurate form, with a :class:`FarWalk` beside the first.

        Its values were chosen on small organic molecules and are kept as they are, since a few hundred labels choose worse
        ones: only the amplitude is tuned.
        """
        far = FarWalk(weight=0.1 if property == "extensive" else 1.0, weight_bounds="fixed")
        usual: dict[str, Any] = {
            "stopping_probability": 0.05,
            "element_prior": 0.5,
            "edge_length_scale": 0.1,
            "exponent": 8.0,
            "hydrogen_weight": 0.3,
            "far": far,
            "tol": 3e-8,  # errors of single pairs keep a matrix from being positive definite with as little noise as these need
        }
        usual.update({f"{name}_bounds": "fixed" for name in _OWN[1:]})
        return cls(**{**usual, **settings}, property=property)

    @classmethod
    def accurate(cls, property: str = "extensive", **settings: Any) -> MolecularKernel:
        """The most accurate form: with a :class:`FarWalk` and an :class:`ElectronicTerm` beside the first walk.

        All values but the amplitude are kept, as in :meth:`with_far_walk`. Beside the other two terms, the first walk does best
        when it is short and tolerant.
        """
        term = ElectronicTerm(weight=1.0 if property == "extensive" else 2.5, weight_bounds="fixed")
        usual: dict[str, Any] = {"stopping_probability": 0.3, "edge_length_scale": 0.2, "electrons": term}
        return cls.with_far_walk(property, **{**usual, **settings})

    def parameters(self) -> tuple[Parameter, ...]:
        """Starting and stopping probability, element prior, edge length scale; then the weights of the other terms."""
        return (
            *(Parameter(name, getattr(self, name), getattr(self, f"{name}_bounds")) for name in _OWN),
            *(Parameter(f"{name}_weight", term.weight, term.weight_bounds) for name, term in self._terms.items()),
        )

    def with_values(self, values: Sequence[float]) -> MolecularKernel:
        """The same kernel with other hyperparameters."""
        settings = {**self.get_params(deep=False), **dict(zip(_OWN, values, strict=False))}
        for (name, term), weight in zip(self._terms.items(), values[len(_OWN) :], strict=True):
            settings[name] = replace(term, weight=weight)
        return type(self)(**settings)

    @property
    def _terms(self) -> dict[str, FarWalk | ElectronicTerm]:
        """What is added to the first walk, by the name of its setting."""
        terms = {"far": self.far, "electrons": self.electrons}
        return {name: term for name, term in terms.items() if term is not None}

    @property
    def centers_labels(self) -> bool:
        """Whether labels should be centred: not those that are proportional to the size of the molecule."""
        return self.property == "intensive"

    @property
    def _gradient_columns(self) -> slice | list[int]:  # type: ignore[override]
        # The intensive form's derivatives are by p and exponent, then p (none), q, h, l (and the far walk's
        # weight) of the inner kernel, and the weight of the electronic term.
        return slice(None) if self.property == "extensive" else [0, *range(3, 2 + len(self.parameters()))]

    def graphs_of(self, molecules: Sequence[Any]) -> list[Any]:
        """Molecules as graphs (:class:`MoleculeViews` for a kernel of more terms); a doubtful unit is warned of once."""
        graphs: list[Any] = []
        terms = set(self._terms)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnitsWarning)
            for number, molecule in enumerate(molecules):
                if isinstance(molecule, Graph | MoleculeViews):
                    graphs.append(_checked_graph(molecule, number, terms))
                elif hasattr(molecule, "numbers") and hasattr(molecule, "positions"):
                    graphs.append(self._graph_of(molecule))
                else:
                    raise InvalidGraphError(
                        f"item {number} is a {type(molecule).__name__}; MolecularKernel compares Graphs or molecules with "
                        "coordinates (ase.Atoms, mislabel.data.Molecule). For SMILES use Graph.from_smiles and bond_kernel()."
                    )
        doubtful = [warning for warning in caught if issubclass(warning.category, UnitsWarning)]
        for warning in caught:
            if warning not in doubtful:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        if doubtful:
            more = f" ({len(doubtful) - 1} more molecules like it)" if len(doubtful) > 1 else ""
            warnings.warn(f"{doubtful[0].message}{more}", UnitsWarning, stacklevel=3)
        return graphs

    def _graph_of(self, molecule: Any) -> Graph | MoleculeViews:
        near = graph_from_atoms(molecule, adjacency=self.adjacency, zoom=self.zoom)
        if not self._terms:
            return near
        far = None
        if self.far is not None:
            far = graph_from_atoms(
                molecule, adjacency=self.adjacency, zoom=self.far.zoom, check_units=False, coordination=True
            )
        return MoleculeViews(near, far, None if self.electrons is None else electrons_of(molecule))

    def prepared(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> PreparedKernel:
        """This kernel on these molecules, laid out for evaluation by blocks."""
        if self.property not in PROPERTIES:
            raise unknown_name("property", self.property, PROPERTIES)
        left, right = self.graphs_of(X), None if Y is None else self.graphs_of(Y)
        inner = self._walks(left, right)
        extensive = self.property == "extensive"
        if not extensive:
            sides = (inner, inner) if right is None else (self._walks(left, None), self._walks(right, None))
            inner = PreparedPower(PreparedNormalized(inner, *sides), self.exponent, self.starting_probability)
        term = self.electrons
        if term is None:
            return inner
        rows, columns = (
            term.coordinates([item.electrons for item in side], self.property)
            for side in (left, left if right is None else right)
        )
        return PreparedWithElectrons(inner, rows, columns, extensive, term.weight, self.starting_probability)

    def _walks(self, left: list[Any], right: list[Any] | None) -> PreparedKernel:
        """One walk or the sum of two, before normalisation."""
        weight = self.hydrogen_weight
        if weight is not None and not (np.isfinite(weight) and weight > 0):
            raise InvalidParameterError(f"hydrogen_weight must be positive, got {weight!r}.")
        elements = KroneckerDelta("element", self.element_prior)
        near = self._walk(elements, self.edge_length_scale, self.stopping_probability)
        for name, term in self._terms.items():
            if not (np.isfinite(term.weight) and term.weight > 0):
                raise InvalidParameterError(f"the weight of the {_TERMS[name]} must be positive, got {term.weight!r}.")
        far = self.far
        if far is None:
            return near.prepared(self._starts(left, "near"), self._starts(right, "near"))
        nodes = TensorProduct(elements, SquaredExponential("coordination", far.coordination_scale))
        other = self._walk(nodes, far.edge_length_scale, far.stopping_probability)
        return PreparedTwoWalks(
            near.prepared(self._starts(left, "near"), self._starts(right, "near")),
            other.prepared(self._starts(left, "far"), self._starts(right, "far")),
            far.weight,
        )

    def _starts(self, items: list[Any] | None, which: str) -> Any:
        """The graphs of one walk, their atoms weighed as starts."""
        if items is None:
            return None
        graphs = [getattr(item, which) if isinstance(item, MoleculeViews) else item for item in items]
        weight = self.hydrogen_weight
        if weight is None:
            return graphs
        return self.memory.recall((which, weight), graphs, lambda: [_started(graph, weight) for graph in graphs])

    def _walk(self, nodes: AttributeKernel, length_scale: float, stopping: float) -> MarginalizedGraphKernel:
        starting = self.starting_probability if self.property == "extensive" else 1.0
        edges = SquaredExponential("length", length_scale)
        start = None if self.hydrogen_weight is None else _START
        walk = MarginalizedGraphKernel(
            nodes, edges, stopping, starting, tol=self.tol, dtype=self.dtype, starting_attribute=start
        )
        walk.share_memory(self)
        return walk

    def starting_from(self, X: Sequence[Any], label_variance: float) -> MolecularKernel:
        """The same kernel, its amplitude matched to the labels and bounded around that."""
        some = X[:: max(1, len(X) // 200)]
        start = self.starting_probability * np.sqrt(label_variance / float(np.mean(self.diag(some))))
        reach = np.sqrt(_AMPLITUDE_RANGE)
        kernel: MolecularKernel = clone(self).set_params(starting_probability=float(start))
        if not isinstance(self.starting_probability_bounds, str):
            kernel.set_params(starting_probability_bounds=(float(start / reach), float(start * reach)))
        return kernel


def _started(graph: Graph, hydrogen_weight: float) -> Graph:
    """The same graph, its atoms weighed as starts."""
    start = np.where(graph.nodes["element"] == 1, hydrogen_weight, 1.0)
    return replace(graph, nodes={**graph.nodes, _START: start})


def _checked_graph(item: Graph | MoleculeViews, number: int, terms: set[str]) -> Graph | MoleculeViews:
    """What was made for a kernel of the same terms, as it is."""
    has = {name for name in _TERMS if getattr(item, name, None) is not None}
    if has == terms and isinstance(item, MoleculeViews) == bool(terms):
        return item
    made = " and ".join(_TERMS[name] for name in sorted(has, reverse=True)) or "nothing but one walk"
    raise InvalidGraphError(
        f"item {number} was made for a kernel with {made}, which this is not: give the molecules themselves (ase.Atoms, "
        "mislabel.data.Molecule)."
    )


def bond_kernel(exponent: float = 1.0, n_jobs: int | None = None) -> BlockKernel:
    """A kernel for graphs made from SMILES or RDKit molecules: elements, charges, aromaticity and bond orders, normalised."""
    nodes = TensorProduct(
        KroneckerDelta("element", 0.3), KroneckerDelta("aromatic", 0.7), KroneckerDelta("charge", 0.5)
    )
    walk = MarginalizedGraphKernel(
        nodes, KroneckerDelta("order", 0.4), 0.1, starting_probability_bounds="fixed", dtype="float64", n_jobs=n_jobs
    )
    normalized = Normalized(walk, n_jobs=n_jobs)
    return normalized if exponent == 1.0 else Power(normalized, exponent, n_jobs=n_jobs)
