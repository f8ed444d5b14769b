"""Similarity: the default kernel for tables, any scikit-learn kernel, precomputed matrices and plain callables."""

from mislabel.kernels.adapters import CallableKernel, PrecomputedKernel, as_kernel
from mislabel.kernels.contraction import contracted_gradient
from mislabel.kernels.table import TableKernel

__all__ = ["CallableKernel", "PrecomputedKernel", "TableKernel", "as_kernel", "contracted_gradient"]
