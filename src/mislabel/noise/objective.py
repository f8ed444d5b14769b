"""The paper's objective, its derivatives and its optimality conditions.

Symbols: ``s`` noise variances (the paper's sigma_i), ``C = (K + base noise + diag(s))^-1``, ``a = C y`` (weights),
``b = diag(C)`` (precision).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mislabel.linalg.contract import Covariance, FloatArray, SignalCovariance
from mislabel.noise.penalty import Penalty


def negative_log_likelihood(covariance: Covariance, labels: FloatArray) -> float:
    """``L = log |K + S| + y' C y`` (the paper's equation 3): -2 log likelihood - n log 2 pi."""
    return covariance.logdet() + covariance.quadratic(labels)


def gradient(weights: FloatArray, precision: FloatArray) -> FloatArray:
    """``dL/ds = b - a^2`` (the paper's equation 5)."""
    return precision - weights**2


def kkt_residual(noise: FloatArray, slope: FloatArray, precision: FloatArray) -> float:
    """How far ``s`` is from optimal: ``max_i b_i |s_i - max(0, s_i - g_i / b_i^2)|``, without units.

    Zero exactly at points where every gradient component is zero, or positive with ``s_i`` at its bound.
    """
    step = noise - np.maximum(0.0, noise - slope / precision**2)
    return float(np.max(precision * np.abs(step), initial=0.0))


@dataclass(frozen=True, eq=False)
class NoiseState:
    """Everything known at one vector of noise variances."""

    noise: FloatArray
    weights: FloatArray
    precision: FloatArray
    slope: FloatArray
    objective: float
    residual: float
    covariance: Covariance


@dataclass(frozen=True, eq=False)
class NoiseProblem:
    """Minimise ``L(s) + penalty(s)`` over ``s >= 0``.

    signal : covariance of the signal.
    labels : the labels, centred.
    fixed_noise : variances every label has anyway (base noise, known measurement errors, jitter).
    refine : whether weights get one step of iterative refinement: with nearly singular kernels the last digits of the
        optimality conditions depend on it.
    """

    signal: SignalCovariance
    labels: FloatArray
    fixed_noise: FloatArray
    penalty: Penalty = field(default_factory=Penalty)
    refine: bool = False

    @property
    def size(self) -> int:
        """Number of labels."""
        return int(self.labels.shape[0])

    def covariance(self, noise: FloatArray) -> Covariance:
        """``K + fixed noise + diag(noise)``, factorised."""
        return self.signal.with_noise(self.fixed_noise + noise, self.labels)

    def objective(self, noise: FloatArray) -> float:
        """The objective alone: one Cholesky factorisation."""
        return negative_log_likelihood(self.covariance(noise), self.labels) + self.penalty.value(noise)

    def evaluate(self, noise: FloatArray) -> NoiseState:
        """Objective, gradient and residual: a Cholesky factorisation and the diagonal of the inverse."""
        return self.state(noise, self.covariance(noise))

    def state(self, noise: FloatArray, covariance: Covariance) -> NoiseState:
        """The state that belongs to an already factorised covariance."""
        weights = covariance.solve(self.labels)
        if self.refine:
            left_over = self.signal.residual(self.fixed_noise + noise, weights, self.labels)
            weights = weights + covariance.solve(left_over)
        precision = covariance.inverse_diagonal()
        slope = gradient(weights, precision) + self.penalty.slope(noise)
        quadratic = float(self.labels @ weights) if self.refine else covariance.quadratic(self.labels, weights)
        objective = covariance.logdet() + quadratic + self.penalty.value(noise)
        residual = priced_residual(noise, weights, precision, slope, self.penalty)
        return NoiseState(noise, weights, precision, slope, objective, residual, covariance)


def amplitude_ratio(labels: FloatArray, noise: FloatArray, weights: FloatArray, precision: FloatArray) -> float:
    """The multiplicative update of a factor on ``K``, ``a'Ka / tr(CK)``; ``noise`` is all that is added to ``K``."""
    explained = float(labels @ weights - noise @ weights**2)
    expected = float(labels.size - noise @ precision)
    return explained / expected if min(explained, expected) > 0.0 else 1.0


def likelihood_gain(z_squared: FloatArray) -> FloatArray:
    """Fall of the objective when one label gets its best own variance: ``z^2 - 1 - log z^2`` for ``z^2 > 1``."""
    z_squared = np.maximum(z_squared, 1.0)
    return np.asarray(z_squared - 1.0 - np.log(z_squared))


def priced_residual(
    noise: FloatArray, weights: FloatArray, precision: FloatArray, slope: FloatArray, penalty: Penalty
) -> float:
    """:func:`kkt_residual`, where a label at zero is optimal as long as its gain does not exceed the price."""
    if not penalty.price:
        return kkt_residual(noise, slope, precision)
    at_rest = (noise == 0.0) & (likelihood_gain(weights**2 / precision) <= penalty.price)
    return kkt_residual(noise, np.where(at_rest, 0.0, slope), precision)
