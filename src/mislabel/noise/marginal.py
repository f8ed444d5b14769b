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
from mislabel.linalg.jitter import LADDER, SAFE_JITTER
from mislabel.linalg.triangles import mirror_lower
from mislabel.noise.penalty import Penalty
from mislabel.noise.scale_curvature import scale_derivatives
from mislabel.noise.solvers.sweeps import SweepState, sweep

#: Standard deviation of the log-normal prior on the signal variance: weak, but enough to stop it from running away.
AMPLITUDE_PRIOR_SD = 3.0
#: Centre (relative to the signal variance) and standard deviation of the log-normal prior on a learned base noise.
BASE_PRIOR_CENTRE = 0.01
BASE_PRIOR_SD = 4.0
#: Value of the objective where the covariance cannot be factorised; any line search steps back from it.
INFEASIBLE = 1e25
SWEEP_THRESHOLD = 0.03
#: Relative move below which a label counts as settled.
SETTLED = 0.01
SWEEPS_PER_EVALUATION = 5


@dataclass(frozen=True, eq=False)
class _Factorised:
    """The covariance at one ``phi``, inverted; kept for as long as nothing else is asked for."""

    phi: FloatArray
    jitter: float
    kernel: KernelOnData
    state: SweepState
    mean_diagonal: float

    def serves(self, phi: FloatArray, noise: FloatArray, jitter: float) -> bool:
        return jitter == self.jitter and np.array_equal(phi, self.phi) and np.array_equal(noise, self.state.noise)


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
    _noise_slope: FloatArray = field(init=False)
    _kept: _Factorised | None = None

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

    def sweep_at(self, phi: FloatArray, *, threshold: float = SETTLED) -> float:
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
        made = self._factorised(phi)
        sweep(made.state, threshold=threshold, enough=0.0)
        return self._settled(made)

    def _settled(self, made: _Factorised) -> float:
        """Take over the noise variances of ``made``, and keep its inverse; returns the objective there."""
        self.noise, self._kept = made.state.noise.copy(), made
        return made.state.objective + self._prior(made)

    def leave_one_out(self, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leave-one-out errors and variances (without the label's own noise)."""
        self._kept = made = self._factorised(phi)
        return made.state.leave_one_out()

    def release(self) -> None:
        """Forget the inverse that is kept between calls."""
        self._kept = None

    def _factorised(self, phi: FloatArray) -> _Factorised:
        """The inverse at ``phi``: the one that was kept, or a new one. The caller may overwrite it."""
        kept, self._kept = self._kept, None
        if kept is not None and kept.serves(phi, self.noise, self._jitter):
            kept.state.penalty = self.penalty
            return kept
        del kept  # before the next matrix is made: two are never held at once
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
        return _Factorised(phi.copy(), self._jitter, kernel, state, mean_diagonal)

    def _prior(self, made: _Factorised) -> float:
        """Minus twice the logarithm of the priors on amplitude and base noise."""
        return float(np.sum(self._prior_deviations(made) ** 2))

    def _prior_deviations(self, made: _Factorised) -> FloatArray:
        """Distance of amplitude and, where it is learned, base noise from their priors' centres, in standard deviations."""
        deviations = [np.log(made.mean_diagonal / self.signal_variance) / AMPLITUDE_PRIOR_SD]
        if self.base is None:
            deviations.append((made.phi[-1] - np.log(BASE_PRIOR_CENTRE * self.signal_variance)) / BASE_PRIOR_SD)
        return np.array(deviations)

    @property
    def has_curvature(self) -> bool:
        """Whether :meth:`resolved_with_curvature` is there: amplitude and base noise are all that is learned."""
        return self.base is None and self.kernel.is_scaled_matrix

    def resolved_with_curvature(self, phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """:meth:`resolved` with the 2 x 2 Hessian over the logarithms of amplitude and base noise.

        It costs next to nothing beside the inverse: the signal's covariance is the whole one less its diagonal part, so
        all products with it are products with the inverse. Labels with noise of their own follow: they are eliminated.
        """
        self.n_evaluations += 1
        try:
            made = self._factorised(phi)
            sweep(made.state, threshold=SETTLED, enough=0.0)
        except KernelMatrixError:
            return INFEASIBLE, np.zeros(2), np.eye(2)
        value = self._settled(made)
        gradient, hessian = scale_derivatives(made.state, self.labels, self.known_noise, float(np.exp(phi[-1])))
        deviations, spread = self._prior_deviations(made), np.array([AMPLITUDE_PRIOR_SD, BASE_PRIOR_SD])
        return value, gradient + 2.0 * deviations / spread, hessian + np.diag(2.0 / spread**2)

    def held_with_noise_slope(self, phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """:meth:`held`, and the gradient by the noise variances: all of it from one factorisation."""
        value, gradient = self.held(phi)
        return value, gradient, self._noise_slope

    def _evaluate(self, phi: FloatArray, *, resolve: bool) -> tuple[float, FloatArray]:
        self.n_evaluations += 1
        try:
            made = self._factorised(phi)
            kernel, state = made.kernel, made.state
            if resolve:
                sweep(state, threshold=SWEEP_THRESHOLD, max_sweeps=SWEEPS_PER_EVALUATION)
                self.noise = state.noise
        except KernelMatrixError:
            self._noise_slope = np.zeros_like(self.noise)
            return INFEASIBLE, np.zeros_like(phi)
        self._noise_slope = state.precision - state.weights**2 + self.penalty.slope(state.noise)
        deviations = self._prior_deviations(made)
        inverse = mirror_lower(state.inverse)
        slope_base = float(np.trace(inverse)) - float(state.weights @ state.weights)
        # dL/dtheta = sum_ij (C - a a')_ij dK_ij / dtheta; the prior only sees the diagonal.
        inverse = blas.dger(-1.0, state.weights, state.weights, a=inverse, overwrite_a=1)
        inverse.ravel(order="K")[:: kernel.size + 1] += (
            2.0 * deviations[0] / (AMPLITUDE_PRIOR_SD * kernel.size * made.mean_diagonal)
        )
        gradient = kernel.contract(inverse) if kernel.kernel.n_dims else np.zeros(0)
        if self.base is None:
            gradient = np.append(gradient, slope_base * np.exp(phi[-1]) + 2.0 * deviations[1] / BASE_PRIOR_SD)
        return state.objective + self._prior(made), gradient
