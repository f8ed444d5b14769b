"""Graphs and the marginalized graph kernel: molecules, networks, similarities of their attributes, Gram matrices."""

from typing import TYPE_CHECKING

from mislabel._common.lazy_names import lazy_names

if TYPE_CHECKING:
    from mislabel.kernels.graphs.electronic_term import ElectronicTerm
    from mislabel.kernels.graphs.far_walk import FarWalk
    from mislabel.kernels.graphs.gram import gram_matrix
    from mislabel.kernels.graphs.graph import Graph
    from mislabel.kernels.graphs.marginalized import MarginalizedGraphKernel
    from mislabel.kernels.graphs.molecular import MolecularKernel, bond_kernel
    from mislabel.kernels.graphs.pieces import (
        Constant,
        KroneckerDelta,
        RationalQuadratic,
        SquaredExponential,
        TensorProduct,
        WeightedSum,
    )
    from mislabel.kernels.graphs.wrappers import Normalized, Power

__all__ = [
    "Constant",
    "ElectronicTerm",
    "FarWalk",
    "Graph",
    "KroneckerDelta",
    "MarginalizedGraphKernel",
    "MolecularKernel",
    "Normalized",
    "Power",
    "RationalQuadratic",
    "SquaredExponential",
    "TensorProduct",
    "WeightedSum",
    "bond_kernel",
    "gram_matrix",
]

# Graphs and molecules can be read without the compiler that comparing them brings with it.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "electronic_term": ["ElectronicTerm"],
        "far_walk": ["FarWalk"],
        "gram": ["gram_matrix"],
        "graph": ["Graph"],
        "marginalized": ["MarginalizedGraphKernel"],
        "molecular": ["MolecularKernel", "bond_kernel"],
        "pieces": [
            "Constant",
            "KroneckerDelta",
            "RationalQuadratic",
            "SquaredExponential",
            "TensorProduct",
            "WeightedSum",
        ],
        "wrappers": ["Normalized", "Power"],
    },
)
