"""Errors that successive labels share: a first-order autoregression beside white noise, found by maximum likelihood.

``r_t = d_t + e_t`` with ``d_t = persistence d_(t-1) + ...`` of stationary variance ``variance``, and independent ``e_t`` of
variance ``noise``. The precision matrix of the drift has three diagonals, so likelihood and smoothed drift cost O(n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.optimize import minimize

from mislabel._common.robust import robust_std
from mislabel.linalg.contract import FloatArray
from mislabel.noise.pricing import fit_two_groups

#: So many successive residuals tell the three numbers.
ENOUGH = 20_000
#: Residuals count as at most so many typical ones while the drift is looked for: single wrong labels are no drift.
LARGEST = 4.0
#: Logarithms of the odds of the persistence, from which the search starts.
_STARTS = (1.0, 3.0, 5.0)
#: Bounds of the search: logarithms of the odds of the persistence, of the variance and of the noise (typical residual: one).
_BOUNDS = ((-3.0, 10.0), (-12.0, 6.0), (-8.0, 4.0))


@dataclass(frozen=True)
class Drift:
    """Correlation of successive shared errors, their variance, and that of what each residual has for itself."""

    persistence: float
    variance: float
    noise: float

    def smoothed(self, residual: FloatArray) -> tuple[FloatArray, float]:
        """Posterior mean of the shared errors given all residuals, and minus twice the log likelihood (less n log 2 pi)."""
        size, square = residual.size, self.persistence**2
        push = self.variance * (1.0 - square)
        bands = np.empty((2, size))
        bands[0] = -self.persistence / push
        bands[1] = (1.0 + square) / push + 1.0 / self.noise
        bands[1, [0, -1]] -= square / push
        factor = cholesky_banded(bands, overwrite_ab=True, check_finite=False)
        shared = np.asarray(cho_solve_banded((factor, False), residual / self.noise, check_finite=False))
        logdet = 2.0 * np.log(factor[1]).sum() + size * np.log(self.noise * push) - np.log1p(-square)
        return shared, float(logdet + residual @ (residual - shared) / self.noise)


def likeliest_drift(residual: FloatArray) -> Drift:
    """Persistence and both variances of highest likelihood."""

    def drift_of(logs: FloatArray) -> Drift:
        return Drift(float(1.0 / (1.0 + np.exp(-logs[0]))), float(np.exp(logs[1])), float(np.exp(logs[2])))

    half = 0.5 * float(np.mean(residual**2))
    found = min(
        (
            minimize(
                lambda logs: drift_of(logs).smoothed(residual)[1],
                np.clip([start, np.log(half), np.log(half)], *np.transpose(_BOUNDS)),
                method="Nelder-Mead",
                bounds=_BOUNDS,
                options={"maxiter": 300},
            )
            for start in _STARTS
        ),
        key=lambda result: float(result.fun),
    )
    return drift_of(found.x)


def errors_of_series(residual: FloatArray) -> FloatArray:
    """How much of each residual is an error of its label, the others' residuals considered.

    What successive labels share is; of the rest, what stands out among all rests, in proportion to the odds. A model's own
    errors, which it makes anew in every row, are neither.
    """
    centre = float(np.median(residual))
    unit = robust_std(residual - centre)
    if not unit > 0.0:
        return residual
    clipped = np.clip((residual - centre) / unit, -LARGEST, LARGEST)
    middle = max(0, (clipped.size - ENOUGH) // 2)
    shared, _ = likeliest_drift(clipped[middle : middle + ENOUGH]).smoothed(clipped)
    error = centre + unit * shared
    own = residual - error
    usual = np.full(own.size, robust_std(own) ** 2)
    if not usual[0] > 0.0:
        return residual
    groups = fit_two_groups(own, usual)
    return np.asarray(error + groups.probability * groups.spread / (groups.spread + usual) * own)
