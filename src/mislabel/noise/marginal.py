"""The objective as a function of hyperparameters and base noise, with gradient.

Parameters are ``phi = (log theta, log base noise)``; the last entry is there only when the base noise is learned. The
noise variances are either held (block coordinate descent) or re-solved at every evaluation (bilevel): at their optimum
the gradient is the same expression, by the envelope theorem.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import blas

from mislabel.errors import KernelMatrixError
from mislabel.kernels.on_data import KernelOnData
from mislabel.linalg.contract import FloatArray
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.dense import DenseCovariance
from mislabel.linalg.dense_loops import mirror_lower
from mislabel.linalg.jitter import LADDER, SAFE_JITTER
from mislabel.noise.penalty import Penalty
from mislabel.noise.solvers.sweeps import SweepState, sweep

#: Standard deviation of the log-normal prior on the signal variance: weak, but enough to stop it from running away.
AMPLITUDE_PRIOR_SD = 3.0
#: Centre (relative to the signal variance) and standard deviation of the log-normal prior on a learned base noise.
BASE_PRIOR_CENTRE = 0.01
BASE_PRIOR_SD = 4.0
#: Value of the objective where the covariance cannot be factorised; any line search steps back from it.
INFEASIBLE = 1e25
SWEEP_THRESHOLD = 0.03
SWEEPS_PER_EVALUATION = 5


@dataclass(eq=False)
class MarginalObjective:
    """Objective and gradient over ``phi``; ``noise`` is the current (warm) solution for the noise variances.

    base : the base noise variance where it is not learned, None where it is.
    signal_variance : centre of the prior on the mean of diag(K).
    """

    kernel: KernelOnData
    labels: FloatArray
    known_noise: FloatArray
    base: float | None
    signal_variance: float
    penalty: Penalty
    meter: CostMeter
    noise: FloatArray = field(init=False)
    n_evaluations: int = 0
    _jitter: float = SAFE_JITTER
    _prior_slope: float = 0.0
    _noise_slope: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.noise = np.zeros(self.kernel.size)

    def start(self, base: float) -> FloatArray:
        """``phi`` at the kernel's own hyperparameters."""
        theta = self.kernel.theta
        return theta if self.base is not None else np.append(theta, np.log(base))

    def bounds(self, base_bounds: tuple[float, float]) -> FloatArray:
        """Bounds on ``phi``."""
        rows = self.kernel.bounds
        return rows if self.base is not None else np.vstack([rows, np.log(base_bounds)])

    def split(self, phi: FloatArray) -> tuple[FloatArray, float]:
        """Hyperparameters and base noise variance."""
        if self.base is not None:
            return phi, self.base
        return phi[:-1], float(np.exp(phi[-1]))

    def held(self, phi: FloatArray) -> tuple[float, FloatArray]:
        """Objective and gradient with the noise variances as they are."""
        return self._evaluate(phi, resolve=False)

    def resolved(self, phi: FloatArray) -> tuple[float, FloatArray]:
        """Objective and gradient with the noise variances re-solved from where they are."""
        return self._evaluate(phi, resolve=True)

    def sweep_at(self, phi: FloatArray, *, threshold: float = 0.01) -> float:
        """Re-solve the noise variances thoroughly; returns the objective.

        Climbs the jitter ladder until that is numerically possible; later evaluations stay on that rung.
        """
        for rung in LADDER[:-1]:
            self._jitter = max(self._jitter, rung)
            with suppress(KernelMatrixError):
                return self._swept(phi, threshold)
        self._jitter = LADDER[-1]
        return self._swept(phi, threshold)

    def _swept(self, phi: FloatArray, threshold: float) -> float:
        _, state, prior = self._factorise(phi)
        sweep(state, threshold=threshold, enough=0.0)
        self.noise = state.noise
        return prior + state.objective

    def leave_one_out(self, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leave-one-out errors and variances (without the label's own noise)."""
        _, state, _ = self._factorise(phi)
        return state.leave_one_out()

    def _factorise(self, phi: FloatArray) -> tuple[KernelOnData, SweepState, float]:
        theta, base = self.split(phi)
        kernel = self.kernel.at(theta)
        matrix = kernel.matrix()
        diagonal = matrix.ravel(order="K")[:: kernel.size + 1]
        mean_diagonal = float(diagonal.mean())
        fixed = self.known_noise + (base + self._jitter * mean_diagonal)
        diagonal += fixed + self.noise
        covariance = DenseCovariance(matrix, self.meter)
        weights = covariance.solve(self.labels)
        likelihood = covariance.logdet() + float(self.labels @ weights)
        state = SweepState(
            covariance.take_inverse(), weights, self.noise.copy(), fixed, self.penalty, self.meter, likelihood
        )
        prior = (np.log(mean_diagonal / self.signal_variance) / AMPLITUDE_PRIOR_SD) ** 2
        self._prior_slope = 2.0 * np.log(mean_diagonal / self.signal_variance) / AMPLITUDE_PRIOR_SD**2
        self._prior_slope /= kernel.size * mean_diagonal
        if self.base is None:
            prior += (np.log(base / (BASE_PRIOR_CENTRE * self.signal_variance)) / BASE_PRIOR_SD) ** 2
        return kernel, state, float(prior)

    def held_with_noise_slope(self, phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """:meth:`held`, and the gradient by the noise variances: all of it from one factorisation."""
        value, gradient = self.held(phi)
        return value, gradient, self._noise_slope

    def _evaluate(self, phi: FloatArray, *, resolve: bool) -> tuple[float, FloatArray]:
        self.n_evaluations += 1
        try:
            kernel, state, prior = self._factorise(phi)
            if resolve:
                sweep(state, threshold=SWEEP_THRESHOLD, max_sweeps=SWEEPS_PER_EVALUATION)
                self.noise = state.noise
        except KernelMatrixError:
            self._noise_slope = np.zeros_like(self.noise)
            return INFEASIBLE, np.zeros_like(phi)
        self._noise_slope = state.precision - state.weights**2 + self.penalty.slope(state.noise)
        inverse = mirror_lower(state.inverse)
        slope_base = float(np.trace(inverse)) - float(state.weights @ state.weights)
        # dL/dtheta = sum_ij (C - a a')_ij dK_ij / dtheta; the prior only sees the diagonal.
        inverse = blas.dger(-1.0, state.weights, state.weights, a=inverse, overwrite_a=1)
        inverse.ravel(order="K")[:: kernel.size + 1] += self._prior_slope
        gradient = kernel.contract(inverse) if kernel.kernel.n_dims else np.zeros(0)
        if self.base is None:
            prior_slope = 2.0 * (phi[-1] - np.log(BASE_PRIOR_CENTRE * self.signal_variance)) / BASE_PRIOR_SD**2
            gradient = np.append(gradient, slope_base * np.exp(phi[-1]) + prior_slope)
        return state.objective + prior, gradient
