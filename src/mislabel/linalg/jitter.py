"""The one jitter ladder: the least multiple of the identity that makes a kernel matrix safe to factorise."""

from __future__ import annotations

import warnings

import numpy as np

from mislabel.errors import JitterWarning, KernelMatrixError
from mislabel.linalg.contract import FloatArray
from mislabel.linalg.dense import DenseSignal

#: Smallest shared variance, relative to the mean of diag(K), at which the *computed* objective still falls
#: monotonically; a matrix whose Cholesky pivots are all above it needs no jitter.
SAFE_JITTER = 1e-8
LADDER = (SAFE_JITTER, 1e-7, 1e-6, 1e-5, 1e-4)


def stabilizing_jitter(signal: DenseSignal, noise: FloatArray) -> float:
    """Return the variance to add to every label so that ``K + diag(noise)`` is safely positive definite.

    Zero where the smallest pivot is already at least ``1e-8`` of the mean diagonal; else the first rung of the
    ladder that factorises. Rungs above the first one are reported with a JitterWarning.
    """
    scale = float(np.mean(signal.diagonal()))
    if not scale > 0:
        raise KernelMatrixError(
            f"the kernel matrix has a mean diagonal of {scale:g}: a covariance needs positive variances on its diagonal."
        )
    if noise.min() >= SAFE_JITTER * scale and _factorises(signal, noise, 0.0):
        return 0.0
    if _factorises(signal, noise, 0.5 * SAFE_JITTER * scale):
        return 0.0
    for rung in LADDER:
        jitter = rung * scale
        if _factorises(signal, noise + jitter, 0.0):
            if rung > SAFE_JITTER:
                warnings.warn(
                    f"the kernel matrix is not positive semi-definite to working precision; "
                    f"{rung:g} of its mean diagonal was added to every label's variance.",
                    JitterWarning,
                    stacklevel=2,
                )
            return jitter
    raise KernelMatrixError(
        f"the {signal.size} x {signal.size} kernel matrix is not positive semi-definite: even {LADDER[-1]:g} of its mean "
        f"diagonal ({scale:.3g}) on the diagonal does not make it so. Check that the kernel is a valid covariance and that "
        "the matrix was computed precisely enough; a base_noise above its most negative eigenvalue also makes it usable."
    )


def _factorises(signal: DenseSignal, noise: FloatArray, least_pivot: float) -> bool:
    try:
        return signal.with_noise(noise).smallest_pivot > least_pivot
    except KernelMatrixError:
        return False
