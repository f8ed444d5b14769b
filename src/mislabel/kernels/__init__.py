"""Similarity: the default kernel for tables, graph kernels, any scikit-learn kernel, precomputed matrices, callables."""

from mislabel.kernels.adapters import CallableKernel, PrecomputedKernel, as_kernel
from mislabel.kernels.contraction import contracted_gradient
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
from mislabel.kernels.table import TableKernel

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
    "WeightedSum",
    "as_kernel",
    "bond_kernel",
    "contracted_gradient",
    "gram_matrix",
]
