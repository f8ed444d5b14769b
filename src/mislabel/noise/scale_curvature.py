"""First and second derivatives of the objective by the logarithms of amplitude and base noise, from one inverse."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mislabel.linalg.cholesky import cholesky_in_place
from mislabel.linalg.contract import FloatArray
from mislabel.linalg.triangles import mirror_lower
from mislabel.noise.information import mixed_information
from mislabel.noise.solvers.sweeps import SweepState

#: Rows of the inverse that are squared at a time.
_ROWS = 256


def scale_derivatives(
    state: SweepState, labels: FloatArray, known_noise: FloatArray, base: float
) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian by (log amplitude, log base noise), the noise variances following to their own optimum.

    With ``Sigma = P + D``, where P scales with the amplitude and ``D = diag(known + base + s)`` does not, ``C P = I - C D``:
    every term of ``-tr(C P C P) + 2 a'P C P a + ...`` needs only products of C and of its squared entries with vectors.
    """
    own = known_noise + base + state.noise
    inverse, weights = mirror_lower(state.inverse), state.weights
    precision = inverse.diagonal().copy()
    squares = np.empty((labels.size, 2))
    vectors = np.column_stack([own, np.ones_like(own)])
    for first in range(0, labels.size, _ROWS):
        rows = inverse[:, first : first + _ROWS].T
        squares[first : first + _ROWS] = rows**2 @ vectors
    pulled = inverse @ np.column_stack([own * weights, weights])
    free = labels.size - float(precision @ own)  # tr(C P)
    signal = labels - own * weights  # P a
    carried = weights - pulled[:, 0]  # C P a
    gradient = np.array([free - float(signal @ weights), base * (float(precision.sum()) - float(weights @ weights))])
    hessian = np.diag(gradient)
    hessian[0, 0] += -free + float(precision @ own) - float(own @ squares[:, 0]) + 2.0 * float(signal @ carried)
    hessian[1, 1] += base**2 * (2.0 * float(weights @ pulled[:, 1]) - float(squares[:, 1].sum()))
    mixed = base * (2.0 * float(weights @ carried) - float(precision.sum()) + float(squares[:, 0].sum()))
    hessian[0, 1] = hessian[1, 0] = mixed
    return gradient, hessian - _followed(state, precision, squares, pulled, carried, base)


def _followed(
    state: SweepState,
    precision: FloatArray,
    squares: FloatArray,
    pulled: FloatArray,
    carried: FloatArray,
    base: float,
) -> FloatArray:
    """What the Hessian loses because the noisy labels' variances follow: ``H_ps H_ss^-1 H_sp``."""
    noisy = np.flatnonzero(state.noise)
    if not noisy.size:
        return np.zeros((2, 2))
    weights = state.weights
    across = np.column_stack(
        [
            squares[:, 0] - precision + 2.0 * weights * carried,
            base * (2.0 * weights * pulled[:, 1] - squares[:, 1]),
        ]
    )[noisy]
    among = mixed_information(state.inverse, weights, noisy, 1.0)
    among.ravel(order="K")[:: noisy.size + 1] += state.penalty.curvature(state.noise[noisy])
    factor, info = cholesky_in_place(among)
    if info != 0:  # not at a minimum yet: let the noise variances be held
        return np.zeros((2, 2))
    return np.asarray(across.T @ lapack.dpotrs(factor, across, lower=1)[0])
