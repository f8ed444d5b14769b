"""The numerical fit, on centred and scaled labels: tune, find the base noise, solve for the noise variances."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from mislabel.errors import BaseNoiseWarning, InvalidParameterError, NotConvergedWarning, unknown_name
from mislabel.kernels.on_data import KernelOnData
from mislabel.linalg.contract import FloatArray
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.dense import DenseSignal
from mislabel.linalg.jitter import stabilizing_jitter
from mislabel.noise.base_noise import Status, find_base_noise, judge, robust_variance
from mislabel.noise.hyperparameters import STRATEGIES, TuningTask, tune
from mislabel.noise.leave_one_out import trusted_variance
from mislabel.noise.objective import NoiseProblem, NoiseState
from mislabel.noise.penalty import Penalty
from mislabel.noise.solvers import DEFAULT_MAX_ITER, DEFAULT_MAX_ITER_OTHERS, SOLVERS, UNIFORM_SOLVERS, uniform_start
from mislabel.noise.solvers.auto import descend
from mislabel.noise.solvers.contract import NoiseSolution, Trace
from mislabel.progress import Progress

NOISE_MODELS = ("per-label", "uniform", "none")
#: Cycles of the priced solve; a label on the edge of its price may go back and forth for ever.
PRICED_CYCLES = 10


@dataclass(frozen=True)
class FitOptions:
    """What the user chose, checked; variances in units of the scaled labels."""

    noise: str
    base: float | None
    penalty: Penalty
    solver: str
    tune: str
    n_restarts: int
    tol: float
    max_iter: int | None

    def __post_init__(self) -> None:
        if self.noise not in NOISE_MODELS:
            raise unknown_name("noise model", self.noise, NOISE_MODELS)
        if self.tune not in (*STRATEGIES, "none"):
            raise unknown_name("tune", self.tune, [*STRATEGIES, "none"])
        solvers = UNIFORM_SOLVERS if self.noise == "uniform" else SOLVERS
        if self.solver not in solvers:
            raise unknown_name(f"solver for noise={self.noise!r}", self.solver, list(solvers))
        if not self.tol > 0:
            raise InvalidParameterError(f"tol must be positive, got {self.tol!r}.")
        if self.max_iter is not None and self.max_iter < 1:
            raise InvalidParameterError(f"max_iter must be at least 1, got {self.max_iter!r}.")

    @property
    def cycles(self) -> int:
        """Iterations the solver may take."""
        return self.max_iter or DEFAULT_MAX_ITER.get(self.solver, DEFAULT_MAX_ITER_OTHERS)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where the fit ended. ``base`` includes the numerical ``jitter``; ``status`` says how the base noise was found."""

    kernel: KernelOnData
    solution: NoiseSolution
    fixed_noise: FloatArray
    base: float
    jitter: float
    status: Status | None
    n_factorizations: int
    cost: float


def fit_noise_model(
    kernel: KernelOnData,
    labels: FloatArray,
    known_noise: FloatArray,
    options: FitOptions,
    random_state: np.random.RandomState,
    progress: Progress,
) -> Fitted:
    """Fit kernel, base noise and noise variances to centred, scaled labels."""
    size = labels.size
    meter = CostMeter(size)
    learn_base = options.base is None and options.noise == "per-label"
    base = options.base or 0.0
    price, start, status, tuned = 0.0, None, None, None
    flat = not labels.any()
    if options.tune != "none" and not flat:
        tuned_base = None if learn_base or options.noise == "uniform" else base
        shared = known_noise + base if options.noise == "uniform" else known_noise
        task = TuningTask(
            kernel=kernel,
            labels=labels,
            known_noise=shared,
            base=tuned_base,
            per_label=options.noise == "per-label",
            penalty=options.penalty,
            signal_variance=robust_variance(labels) or 1.0,
            meter=meter,
        )
        tuned = tune(task, options.tune, random_state=random_state, n_restarts=options.n_restarts, progress=progress)
        kernel, start = tuned.kernel, tuned.noise
        if learn_base:
            base, price = tuned.base, tuned.price
        elif options.noise == "uniform":
            start = np.full(size, tuned.base)
    progress("noise of every label", 0.9 if tuned is None or not learn_base else 0.7)
    signal = DenseSignal(kernel.matrix(), meter)
    if learn_base and options.tune == "none" and not flat:
        found = find_base_noise(signal, labels, known_noise, options.penalty)
        base, price, start, status = found.variance, found.price, found.noise, found.status
    jitter = stabilizing_jitter(signal, known_noise + base)
    problem = NoiseProblem(
        signal,
        labels,
        known_noise + base + jitter,
        Penalty(options.penalty.weight, options.penalty.power, price),
    )
    if flat or options.noise == "none":
        state = problem.evaluate(np.zeros(size))
        trace = Trace(problem)
        trace.add(state)
        solution = trace.solution(state, np.inf)
    elif options.noise == "uniform":
        start = uniform_start(problem) if start is None else start
        solver = UNIFORM_SOLVERS[options.solver]
        solution = solver(problem, start, tol=options.tol, max_iter=options.cycles)
    else:
        solution = _solve_per_label(problem, start, options)
        if learn_base:
            state = solution.state
            variance = trusted_variance(state.precision, state.noise, problem.fixed_noise)
            if status is None:
                error = state.weights / state.precision
                status = judge(state.noise, error, variance, base, robust_variance(labels))
            if status == "absorbed":
                base = 0.0
                if tuned is not None:
                    # The hyperparameters belong to a base noise that is not believed.
                    progress("hyperparameters without base noise", 0.8)
                    del state, solution, problem
                    task = replace(task, kernel=kernel, base=0.0)
                    kernel = tune(task, options.tune, random_state=random_state).kernel
                    signal = DenseSignal(kernel.matrix(), meter)
                jitter = stabilizing_jitter(signal, known_noise)
                problem = NoiseProblem(signal, labels, known_noise + jitter, options.penalty)
                solution = _solve_per_label(problem, None, options)
    warn_of_solution(solution, status, options)
    return Fitted(
        kernel, solution, problem.fixed_noise, base + jitter, jitter, status, meter.n_factorizations, meter.units
    )


def warn_of_solution(solution: NoiseSolution, status: Status | None, options: FitOptions) -> None:
    """Warn where the solver stopped early or the base noise could not be told."""
    if status is not None:
        _warn_of_base_noise(status, solution.state)
    if not solution.converged:
        warnings.warn(
            f"the solver {options.solver!r} stopped at a residual of {solution.state.residual:.2g} after "
            f"{solution.n_iter} iterations (asked for: {options.tol:g}); raise max_iter or tol, or use solver='auto'.",
            NotConvergedWarning,
            stacklevel=5,
        )


def _solve_per_label(problem: NoiseProblem, start: FloatArray | None, options: FitOptions) -> NoiseSolution:
    if options.solver == "auto" and start is not None:
        cycles = min(options.cycles, PRICED_CYCLES) if problem.penalty.price else options.cycles
        return descend(problem, start, tol=options.tol, max_iter=cycles, paper_steps=0)
    # Solvers other than `auto` know no price per label: they solve the paper's own problem.
    problem = NoiseProblem(
        problem.signal, problem.labels, problem.fixed_noise, Penalty(problem.penalty.weight, problem.penalty.power)
    )
    solver = SOLVERS[options.solver]
    return solver(problem, uniform_start(problem), tol=options.tol, max_iter=options.cycles)


def _warn_of_base_noise(status: Status, state: NoiseState) -> None:
    noisy = np.count_nonzero(state.noise) / state.noise.size
    if status == "majority wrong":
        warnings.warn(
            f"{100 * noisy:.0f} % of the labels were given noise of their own: with fewer clean than wrong labels, base "
            "noise and false-discovery rates are rough guesses; trust the ranking more than the cut.",
            BaseNoiseWarning,
            stacklevel=6,
        )
    elif status == "absorbed":
        warnings.warn(
            "the base noise shared by all labels had swallowed labels of two kinds, which happens when more than about "
            "70 % are wrong; it was set to zero (the paper's model) instead. Trust the ranking more than the cut, or pass "
            "base_noise=<variance of a clean label> if it is known.",
            BaseNoiseWarning,
            stacklevel=6,
        )
