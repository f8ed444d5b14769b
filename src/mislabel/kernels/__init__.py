"""Similarity: the default kernel for tables, graph kernels, any scikit-learn kernel, precomputed matrices, callables."""

from typing import TYPE_CHECKING

from mislabel._common.lazy_names import lazy_names
from mislabel.kernels.adapters import CallableKernel, PrecomputedKernel, as_kernel, contracted_gradient
from mislabel.kernels.contract import TunableKernel
from mislabel.kernels.table import TableKernel

if TYPE_CHECKING:
    from mislabel.kernels.graphs import (
        Constant,
        ElectronicTerm,
        FarWalk,
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
        bond_kernel,
        gram_matrix,
    )

__all__ = [
    "CallableKernel",
    "Constant",
    "ElectronicTerm",
    "FarWalk",
    "Graph",
    "KroneckerDelta",
    "MarginalizedGraphKernel",
    "MolecularKernel",
    "Normalized",
    "Power",
    "PrecomputedKernel",
    "RationalQuadratic",
    "SquaredExponential",
    "TableKernel",
    "TensorProduct",
    "TunableKernel",
    "WeightedSum",
    "as_kernel",
    "bond_kernel",
    "contracted_gradient",
    "gram_matrix",
]

# What compares graphs brings a compiler with it, which tables do without.
__getattr__, __dir__ = lazy_names(__name__, {"graphs": [name for name in __all__ if name not in globals()]})
