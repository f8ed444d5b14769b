"""Derivatives of kernels, checked by finite differences."""

import numpy as np


def assert_slopes(kernel, items, size, rng):
    """By every one of ``size`` hyperparameters, as an array and contracted with weights."""
    matrix, gradient = kernel(items, eval_gradient=True)
    assert gradient.shape == (len(items), len(items), size)
    for k in range(size):
        step = 1e-5 * np.eye(size)[k]
        up, down = kernel.clone_with_theta(kernel.theta + step), kernel.clone_with_theta(kernel.theta - step)
        expected = (up(items) - down(items)) / 2e-5
        np.testing.assert_allclose(gradient[:, :, k], expected, rtol=1e-5, atol=1e-6 * matrix.max())
    weights = rng.normal(size=matrix.shape)
    weights += weights.T
    contracted = kernel.contracted_gradient(items, weights)
    np.testing.assert_allclose(contracted, np.einsum("ij,ijk->k", weights, gradient), rtol=1e-8, atol=1e-8)
