"""Kernel gradients as contractions ``sum_ij W_ij dK_ij / d theta``, for any scikit-learn kernel.

Sums and products are taken apart, so that only their leaves are differentiated: a kernel that offers
``contracted_gradient`` does it itself, the usual leaves have short cuts, and any other kernel falls back to the
(n, n, p) gradient of its own ``eval_gradient``, one leaf at a time.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product, Sum, WhiteKernel

from mislabel.linalg.contract import FloatArray


def contracted_gradient(kernel: Kernel, X, weights: FloatArray) -> FloatArray:
    """Contract the gradient of ``kernel(X)`` by log-hyperparameters with a symmetric weight matrix."""
    if hasattr(kernel, "contracted_gradient"):
        return kernel.contracted_gradient(X, weights)
    if kernel.n_dims == 0:
        return np.zeros(0)
    if isinstance(kernel, Sum):
        return np.concatenate([contracted_gradient(part, X, weights) for part in (kernel.k1, kernel.k2)])
    if isinstance(kernel, Product):
        first = contracted_gradient(kernel.k1, X, weights * kernel.k2(X)) if kernel.k1.n_dims else np.zeros(0)
        second = contracted_gradient(kernel.k2, X, weights * kernel.k1(X)) if kernel.k2.n_dims else np.zeros(0)
        return np.concatenate([first, second])
    if isinstance(kernel, ConstantKernel):
        return np.array([kernel.constant_value * weights.sum()])
    if isinstance(kernel, WhiteKernel):
        return np.array([kernel.noise_level * np.trace(weights)])
    _, gradient = kernel(X, eval_gradient=True)
    return np.einsum("ij,ijk->k", weights, gradient)
