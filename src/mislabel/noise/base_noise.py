"""Base noise for a kernel that is known: the sparsity-priced path, and what to do when it fails.

The base noise cannot be learned by maximum likelihood alone: once every label has a variance of its own, lowering the
shared one never hurts, so it ends at zero. With a price on every noisy label it has a well-defined best value. The path
starts at the best uniform noise and lowers it step by step; at every step labels free themselves only if that pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar

from mislabel.linalg.contract import FloatArray
from mislabel.linalg.dense import DenseSignal
from mislabel.linalg.jitter import SAFE_JITTER
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.penalty import Penalty
from mislabel.noise.pricing import (
    APART,
    DEFAULT_PRICE,
    FEW_LABELS,
    HIDDEN_EVIDENCE,
    MAJORITY,
    fit_scale_mixture,
    fit_two_groups,
)
from mislabel.noise.solvers.sweeps import SweepState, sweep
from mislabel.noise.solvers.uniform import exact_uniform_noise

STEP = 10.0**-0.5
#: Steps without improvement after which the path is left.
PATIENCE = 4
#: The base noise can only have swallowed the wrong labels if it is a fair part of the labels' own variance.
LARGE_BASE = 0.05
#: The path got stuck if most labels were of the worse kind from the start and it ended this close to the uniform noise.
STUCK = 0.25

Status = Literal["found", "majority wrong", "absorbed"]


def robust_variance(labels: FloatArray) -> float:
    """Variance of the labels about zero, from their median square: one for a standard normal."""
    return float(np.median(labels**2)) / 0.455


@dataclass(frozen=True, eq=False)
class BaseNoise:
    """The base noise variance, the price and noise variances that go with it, and whether the path worked."""

    variance: float
    noise: FloatArray
    price: float
    status: Status


@dataclass(eq=False)
class _Path:
    """Evaluates the priced objective at one base noise after the other, each warm-started by the last."""

    signal: DenseSignal
    labels: FloatArray
    known_noise: FloatArray
    penalty: Penalty
    price: float
    noise: FloatArray

    def at(self, base: float) -> tuple[float, SweepState]:
        """Objective at ``base`` with the noise variances settled."""
        penalty = Penalty(self.penalty.weight, self.penalty.power, self.price)
        problem = NoiseProblem(self.signal, self.labels, self.known_noise + base, penalty)
        state = SweepState.from_state(problem, problem.evaluate(self.noise))
        sweep(state, threshold=0.01, enough=0.0)
        return state.objective, state


def find_base_noise(signal: DenseSignal, labels: FloatArray, known_noise: FloatArray, penalty: Penalty) -> BaseNoise:
    """Follow the path down, polish its best point, and check that it can be believed."""
    size = labels.size
    floor = SAFE_JITTER * float(np.mean(signal.diagonal()))
    problem = NoiseProblem(signal, labels, known_noise + floor, penalty)
    uniform = max(exact_uniform_noise(problem), 10.0 * floor)
    path = _Path(signal, labels, known_noise, penalty, DEFAULT_PRICE, np.zeros(size))
    best_value, best_base, best_noise = np.inf, uniform, path.noise
    base, waited = uniform, 0
    at_uniform = problem.evaluate(np.full(size, uniform))
    mixture = fit_scale_mixture(at_uniform.weights / np.sqrt(at_uniform.precision))
    mostly_wrong = mixture.evidence > HIDDEN_EVIDENCE and mixture.wide_fraction > MAJORITY
    while base > floor and waited < PATIENCE:
        value, state = path.at(base)
        path.noise = state.noise
        if value < best_value - 1e-9 * abs(value):
            best_value, best_base, best_noise, waited = value, base, state.noise, 0
        else:
            waited += 1
        base *= STEP
    path.noise = best_noise
    for _ in range(2):
        best_base, best_noise = _polish(path, best_base, floor)
        path.noise = best_noise
        _, state = path.at(best_base)
        error, variance = state.leave_one_out()
        path.price = fit_two_groups(error, variance).price(variance)
    best_base, best_noise = _polish(path, best_base, floor)
    path.noise = best_noise
    _, state = path.at(best_base)
    status = judge(state.noise, *state.leave_one_out(), known_noise, best_base, robust_variance(labels))
    if status == "found" and mostly_wrong and best_base > STUCK * uniform:
        status = "absorbed"
    return BaseNoise(best_base, state.noise, path.price, status)


def _polish(path: _Path, base: float, floor: float) -> tuple[float, FloatArray]:
    """One-dimensional search within one step of the path on either side."""
    noise = path.noise

    def value(log_base: float) -> float:
        path.noise = noise
        return path.at(float(np.exp(log_base)))[0]

    bounds = (np.log(max(base * STEP, floor)), np.log(max(base / STEP, 2.0 * floor)))
    found = minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 0.05, "maxiter": 12})
    base = float(np.exp(found.x))
    path.noise = noise
    return base, path.at(base)[1].noise


def judge(
    noise: FloatArray,
    error: FloatArray,
    variance: FloatArray,
    known_noise: FloatArray,
    base: float,
    label_variance: float,
) -> Status:
    """Tell a good end from the two ways in which learning the base noise fails when most labels are wrong.

    ``error`` and ``variance`` are leave-one-out, without the labels' own noise; ``known_noise`` is the part of the variance
    that was not learned.
    """
    if np.count_nonzero(noise) > MAJORITY * noise.size:
        return "majority wrong"
    if noise.size < FEW_LABELS:
        return "found"
    # With an honest base noise the trusted labels' standardised errors are normal. If it has swallowed most of the wrong
    # labels, what is left is a visible mixture of two widths.
    # Errors below what is known of a label's noise (equal grades, say) do not make it one of the narrow kind.
    trusted = noise == 0.0
    visible = np.maximum(error**2, known_noise)[trusted]
    mixture = fit_scale_mixture(np.sqrt(visible / variance[trusted]))
    two_kinds = mixture.evidence > HIDDEN_EVIDENCE and mixture.ratio > APART
    if mixture.mostly_wide or (base > LARGE_BASE * label_variance and two_kinds):
        return "absorbed"
    return "found"
