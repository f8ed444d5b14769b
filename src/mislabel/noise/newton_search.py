"""Newton's method for the few numbers that all labels share, where the objective comes with its curvature."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mislabel.linalg.contract import FloatArray

#: Longest step in one logarithm.
LONGEST = 2.0
#: A step that raises the objective is shortened by this factor, at most this often.
SHORTER = 0.25
SHORTENED = 3


class CurvedObjective(Protocol):
    """An objective over a few numbers, that keeps a warm start for the many it solves for."""

    noise: FloatArray

    def resolved_with_curvature(self, phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian."""
        ...


def newton_search(
    objective: CurvedObjective, start: FloatArray, bounds: FloatArray, iterations: int, tolerance: float
) -> tuple[FloatArray, float]:
    """The lowest point found and its value; ``objective.noise`` belongs to it.

    Ends when the next step promises to lower the objective by less than ``tolerance`` times its magnitude.
    """
    phi = np.clip(start, bounds[:, 0], bounds[:, 1])
    value, gradient, hessian = objective.resolved_with_curvature(phi)
    for _ in range(iterations):
        step = _step(phi, gradient, hessian, bounds)
        promised = -float(gradient @ step) - 0.5 * float(step @ hessian @ step)
        if promised <= tolerance * (1.0 + abs(value)):
            break
        noise = objective.noise
        for _ in range(SHORTENED):
            trial = objective.resolved_with_curvature(phi + step)
            if trial[0] < value:
                break
            objective.noise = noise
            step = SHORTER * step
        else:
            break
        phi = phi + step
        value, gradient, hessian = trial
    return phi, value


def _step(phi: FloatArray, gradient: FloatArray, hessian: FloatArray, bounds: FloatArray) -> FloatArray:
    """Newton's step on the parameters that no bound holds; where the objective curves down, away from the ridge."""
    held = ((phi <= bounds[:, 0]) & (gradient > 0.0)) | ((phi >= bounds[:, 1]) & (gradient < 0.0))
    step = np.zeros_like(phi)
    if held.all():
        return step
    free = np.flatnonzero(~held)
    curvature, axes = np.linalg.eigh(hessian[np.ix_(free, free)])
    curvature = np.maximum(np.abs(curvature), 1e-6 * np.abs(curvature).max() + 1e-12)
    step[free] = -axes @ ((axes.T @ gradient[free]) / curvature)
    step *= min(1.0, LONGEST / np.abs(step).max()) if step.any() else 1.0
    return np.clip(phi + step, bounds[:, 0], bounds[:, 1]) - phi
