"""The best noise variance of one label while all others stay as they are, and moves of several labels one after the other."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import blas

from mislabel.errors import KernelMatrixError
from mislabel.linalg.contract import FloatArray
from mislabel.noise.leave_one_out import trusted_variance
from mislabel.noise.objective import likelihood_gain
from mislabel.noise.penalty import Penalty

_ROUNDING = float(np.finfo(float).eps)


def best_noise(error: float, variance: float, penalty: Penalty) -> float:
    """Noise variance that minimises the objective of one label, all others fixed.

    As a function of the total variance ``w = v + s`` the objective is ``log w + e^2 / w + penalty(s)``; without a
    penalty its minimiser is ``s = max(0, e^2 - v)``.
    """
    squared = error * error
    excess = squared - variance
    if excess <= 0.0:
        return 0.0
    weight, power = penalty.weight, penalty.power
    if weight == 0.0:
        noise = excess
    elif power == 1.0:
        # weight w^2 + w - e^2 = 0, written so that a small weight does not cancel.
        noise = 2.0 * squared / (1.0 + math.sqrt(1.0 + 4.0 * weight * squared)) - variance
    else:
        noise = _penalised_root(squared, variance, weight, power, excess)
    if noise <= 0.0:
        return 0.0
    if penalty.price > 0.0 or power < 1.0:
        total = variance + noise
        gain = squared / variance - squared / total - math.log(total / variance)
        if weight > 0.0:
            gain -= weight * noise**power
        if gain <= penalty.price:
            return 0.0
    return noise


def _penalised_root(squared: float, variance: float, weight: float, power: float, excess: float) -> float:
    """Largest root in ``(0, excess)`` of ``w - e^2 + weight p s^(p-1) w^2``, found by descent and bisection."""
    low, high = 0.0, excess
    if power < 1.0:
        # The function falls, then rises: walk down from the right to a point where it is negative.
        low = excess
        for _ in range(200):
            low *= 0.9
            total = variance + low
            if total - squared + weight * power * low ** (power - 1.0) * total * total < 0.0:
                break
            high = low
        else:
            return 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        total = variance + middle
        if total - squared + weight * power * middle ** (power - 1.0) * total * total < 0.0:
            low = middle
        else:
            high = middle
        if high - low <= 1e-15 * excess:
            break
    return 0.5 * (low + high)


def coordinate_targets(
    noise: FloatArray, weights: FloatArray, precision: FloatArray, fixed_noise: FloatArray, penalty: Penalty
) -> FloatArray:
    """:func:`best_noise` of every label."""
    variance = trusted_variance(precision, noise, fixed_noise)
    error = weights / precision
    squared = error**2
    # A penalty only lowers the gain: labels that would not move without one stay at zero.
    promising = np.flatnonzero((squared > variance) & (likelihood_gain(squared / variance) > penalty.price))
    targets = np.zeros(noise.size)
    if penalty.weight == 0.0:
        targets[promising] = squared[promising] - variance[promising]
    else:
        pairs = zip(error[promising].tolist(), variance[promising].tolist(), strict=True)
        targets[promising] = [best_noise(*pair, penalty) for pair in pairs]
    return targets


def sweep_block(
    inverse: FloatArray,
    weights: FloatArray,
    noise: FloatArray,
    fixed_noise: FloatArray,
    penalty: Penalty,
    threshold: float,
) -> float:
    """Move the labels of one block to their best noise variances, one after the other.

    ``inverse`` is the block of C in Fortran order, ``weights`` and ``noise`` the block's a and s; all three are updated in
    place by the rank-one (Sherman-Morrison) formula. Returns by how much the objective (without penalty) changed.
    """
    change = 0.0
    for k, (own, fixed) in enumerate(zip(noise.tolist(), fixed_noise.tolist(), strict=True)):
        precision, pull = float(inverse[k, k]), float(weights[k])
        variance = max(1.0 / precision - own, fixed, _ROUNDING / precision)
        step = best_noise(pull / precision, variance, penalty) - own
        if abs(step) * precision <= threshold:
            continue
        growth = 1.0 + step * precision
        if not growth > 0.0:
            raise KernelMatrixError("the inverse of the covariance lost positive definiteness in a sweep")
        factor = step / growth
        change += math.log(growth) - factor * pull * pull
        noise[k] += step
        column = inverse[:, k].copy()
        weights -= factor * pull * column
        blas.dger(-factor, column, column, a=inverse, overwrite_x=0, overwrite_y=0, overwrite_a=1)
    return change
