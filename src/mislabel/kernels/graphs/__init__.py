"""Graphs and the marginalized graph kernel: molecules, networks, similarities of their attributes, Gram matrices."""

from typing import TYPE_CHECKING

from mislabel._common.lazy_names import lazy_names

if TYPE_CHECKING:
    from mislabel.kernels.gram import gram_matrix
    from mislabel.kernels.graphs.attribute_kernels import (
        Constant,
        KroneckerDelta,
        RationalQuadratic,
        SquaredExponential,
        TensorProduct,
        WeightedSum,
    )
    from mislabel.kernels.graphs.graph import Graph
    from mislabel.kernels.graphs.marginalized.kernel import MarginalizedGraphKernel
    from mislabel.kernels.graphs.molecular.electronic_term import ElectronicTerm
    from mislabel.kernels.graphs.molecular.far_walk import FarWalk
    from mislabel.kernels.graphs.molecular.kernel import MolecularKernel, bond_kernel
    from mislabel.kernels.wrappers import Normalized, Power

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
        ".gram": ["gram_matrix"],
        ".wrappers": ["Normalized", "Power"],
        "attribute_kernels": [
            "Constant",
            "KroneckerDelta",
            "RationalQuadratic",
            "SquaredExponential",
            "TensorProduct",
            "WeightedSum",
        ],
        "graph": ["Graph"],
        "marginalized.kernel": ["MarginalizedGraphKernel"],
        "molecular.electronic_term": ["ElectronicTerm"],
        "molecular.far_walk": ["FarWalk"],
        "molecular.kernel": ["MolecularKernel", "bond_kernel"],
    },
)
