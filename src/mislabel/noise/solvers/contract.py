"""What a noise solver takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mislabel.linalg.contract import FloatArray
from mislabel.noise.objective import NoiseProblem, NoiseState


@dataclass(frozen=True, eq=False)
class NoiseSolution:
    """Where a solver stopped, and what it took to get there.

    state : noise variances, objective and residual at the end.
    objective_path : the objective after every iteration of the descent that led there, its start first.
    cost_path : n^3 units spent by then, same length.
    """

    state: NoiseState
    converged: bool
    n_iter: int
    objective_path: FloatArray
    residual_path: FloatArray
    cost_path: FloatArray


class NoiseSolver(Protocol):
    """Minimise a NoiseProblem from a starting point until the residual is at most ``tol``."""

    def __call__(
        self, problem: NoiseProblem, start: FloatArray, *, tol: float, max_iter: int, monitor: Monitor | None = None
    ) -> NoiseSolution:
        """Solve from ``start``; ``monitor`` is called with every iterate."""


Monitor = Callable[[int, NoiseState], None]


@dataclass
class Trace:
    """Collects the path of a solver and passes each state on to the caller's monitor."""

    problem: NoiseProblem
    monitor: Monitor | None = None
    objectives: list[float] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def add(self, state: NoiseState) -> None:
        """Record one iterate."""
        self.objectives.append(state.objective)
        self.residuals.append(state.residual)
        self.costs.append(self.problem.signal.meter.units)
        if self.monitor is not None:
            self.monitor(len(self.objectives) - 1, state)

    def solution(self, state: NoiseState, tol: float) -> NoiseSolution:
        """Close the trace at ``state``."""
        return NoiseSolution(
            state=state,
            converged=state.residual <= tol,
            n_iter=len(self.objectives) - 1,
            objective_path=np.array(self.objectives),
            residual_path=np.array(self.residuals),
            cost_path=np.array(self.costs),
        )
