"""Solvers for the noise variances, by name.

A new one is a function with the signature of NoiseSolver and an entry here.
"""

from __future__ import annotations

from functools import partial

from mislabel.noise.solvers.auto import solve_auto
from mislabel.noise.solvers.contract import NoiseSolution, NoiseSolver
from mislabel.noise.solvers.first_order import STEP_RULES, solve_first_order
from mislabel.noise.solvers.lbfgs import solve_lbfgs
from mislabel.noise.solvers.multiplicative import solve_multiplicative, solve_sqrt
from mislabel.noise.solvers.uniform import solve_uniform_exact, solve_uniform_multiplicative, uniform_start

#: Solvers for one noise variance per label.
SOLVERS: dict[str, NoiseSolver] = {
    "auto": solve_auto,
    "multiplicative": solve_multiplicative,
    "sqrt": solve_sqrt,
    "lbfgs": solve_lbfgs,
    **{name: partial(solve_first_order, method=name) for name in STEP_RULES},
}

#: Solvers for one noise variance shared by all labels.
UNIFORM_SOLVERS: dict[str, NoiseSolver] = {
    "auto": solve_uniform_exact,
    "multiplicative": solve_uniform_multiplicative,
}

#: Iterations a solver may take when the user sets no limit; one of `auto` is a whole cycle.
DEFAULT_MAX_ITER = {"auto": 50}
DEFAULT_MAX_ITER_OTHERS = 1000

__all__ = [
    "DEFAULT_MAX_ITER",
    "DEFAULT_MAX_ITER_OTHERS",
    "SOLVERS",
    "UNIFORM_SOLVERS",
    "NoiseSolution",
    "NoiseSolver",
    "uniform_start",
]
