"""Compiled loops of the exact coordinate sweeps."""

from __future__ import annotations

import math

import numpy as np

from mislabel.compiled_loops import compiled
from mislabel.linalg.contract import FloatArray


@compiled
def best_noise(error: float, variance: float, weight: float, power: float, price: float) -> float:
    """Noise variance that minimises the objective of one label, all others fixed.

    As a function of the total variance ``w = v + s`` the objective is ``log w + e^2 / w + penalty(s)``; without a
    penalty its minimiser is ``s = max(0, e^2 - v)``.
    """
    squared = error * error
    excess = squared - variance
    if excess <= 0.0:
        return 0.0
    if weight == 0.0:
        noise = excess
    elif power == 1.0:
        # weight w^2 + w - e^2 = 0, written so that a small weight does not cancel.
        noise = 2.0 * squared / (1.0 + math.sqrt(1.0 + 4.0 * weight * squared)) - variance
    else:
        noise = _penalised_root(squared, variance, weight, power, excess)
    if noise <= 0.0:
        return 0.0
    if price > 0.0 or power < 1.0:
        total = variance + noise
        gain = squared / variance - squared / total - math.log(total / variance)
        if weight > 0.0:
            gain -= weight * noise**power
        if gain <= price:
            return 0.0
    return noise


@compiled
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


@compiled
def coordinate_targets(
    noise: FloatArray,
    weights: FloatArray,
    precision: FloatArray,
    fixed_noise: FloatArray,
    weight: float,
    power: float,
    price: float,
) -> FloatArray:
    """:func:`best_noise` of every label."""
    targets = np.empty(noise.shape[0])
    for i in range(noise.shape[0]):
        variance = max(1.0 / precision[i] - noise[i], fixed_noise[i], 2.2e-16 / precision[i])
        targets[i] = best_noise(weights[i] / precision[i], variance, weight, power, price)
    return targets


@compiled
def sweep_block(
    inverse: FloatArray,
    weights: FloatArray,
    noise: FloatArray,
    fixed_noise: FloatArray,
    weight: float,
    power: float,
    price: float,
    threshold: float,
) -> float:
    """Move the labels of one block to their best noise variances, one after the other.

    ``inverse`` is the block of C, ``weights`` and ``noise`` the block's a and s; all three are updated in place by the
    rank-one (Sherman-Morrison) formula. Returns by how much the objective (without penalty) changed.
    """
    size = noise.shape[0]
    change = 0.0
    for k in range(size):
        precision = inverse[k, k]
        variance = max(1.0 / precision - noise[k], fixed_noise[k], 2.2e-16 / precision)
        step = best_noise(weights[k] / precision, variance, weight, power, price) - noise[k]
        if abs(step) * precision <= threshold:
            continue
        growth = 1.0 + step * precision
        factor = step / growth
        change += math.log(growth) - factor * weights[k] * weights[k]
        noise[k] += step
        pull = weights[k]
        column = inverse[:, k].copy()
        for i in range(size):
            weights[i] -= factor * pull * column[i]
            scaled = factor * column[i]
            for j in range(size):
                inverse[i, j] -= scaled * column[j]
    return change
