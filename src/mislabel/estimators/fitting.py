"""The numerical fit, on centred and scaled labels: tune, then average over right and wrong labels, or solve for the noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel

from mislabel._common.progress import Progress, part_of
from mislabel.errors import (
    BaseNoiseWarning,
    InvalidParameterError,
    NotConvergedError,
    NotConvergedWarning,
    unknown_name,
)
from mislabel.estimators.validation import ARRAYS_HELD, is_number, is_whole
from mislabel.kernels.on_data import KernelOnData, n_features, tuning_size
from mislabel.likelihoods.mixture import LEAST_SPREAD, MixtureLikelihood, MixtureParameters
from mislabel.likelihoods.observations import CensoredLabels
from mislabel.linalg.contract import Covariance, FloatArray
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.dense import DenseSignal
from mislabel.linalg.jitter import stabilizing_jitter
from mislabel.noise.base_noise import Status, find_base_noise, judge, robust_variance
from mislabel.noise.expectation_propagation import LEAST_BASE, MAX_ITER, MixtureFit, fit_mixture
from mislabel.noise.hyperparameters import STRATEGIES, Tuned, TuningTask, tune
from mislabel.noise.leave_one_out import LeaveOneOutEvidence, leave_one_out_evidence
from mislabel.noise.mixture_start import ENOUGH, fit_by_halves, mixture_of, mixture_of_some, with_noise
from mislabel.noise.neighbourhoods import MOST_LABELS, doubles_per_label, refine_locally
from mislabel.noise.objective import NoiseProblem
from mislabel.noise.penalty import Penalty
from mislabel.noise.pricing import MAJORITY
from mislabel.noise.solvers import DEFAULT_MAX_ITER, DEFAULT_MAX_ITER_OTHERS, SOLVERS, UNIFORM_SOLVERS, uniform_start
from mislabel.noise.solvers.auto import descend
from mislabel.noise.solvers.contract import NoiseSolution, Trace

#: Share of wrong labels at a start where right ones spread widely.
WIDE_FRACTION = 0.05
NOISE_MODELS = ("per-label", "uniform", "none")
#: What becomes of labels that may be right or wrong: both are averaged over, or the likeliest is taken.
INFERENCES = ("average", "maximum")
#: Cycles of the priced solve; a label on the edge of its price may go back and forth for ever.
PRICED_CYCLES = 10
#: Where the base noise seems to have swallowed wrong labels, one lower by this factor is tried.
FAR_LOWER = 1e-4
#: Kernels of more labels than this are tuned on a part of them, so many, and then by the neighbourhoods of all.
TUNED_AT_ONCE = 5000
TUNING_ROWS = 4000


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
    inference: str = "average"

    def __post_init__(self) -> None:
        if self.noise not in NOISE_MODELS:
            raise unknown_name("noise model", self.noise, NOISE_MODELS)
        if self.inference not in INFERENCES:
            raise unknown_name("inference", self.inference, INFERENCES)
        if self.tune not in (*STRATEGIES, "none"):
            raise unknown_name("tune", self.tune, [*STRATEGIES, "none"])
        solvers = UNIFORM_SOLVERS if self.noise == "uniform" else SOLVERS
        if self.solver not in solvers:
            raise unknown_name(f"solver for noise={self.noise!r}", self.solver, list(solvers))
        if not is_number(self.tol) or not self.tol > 0:
            raise InvalidParameterError(f"tol must be positive, got {self.tol!r}.")
        if self.max_iter is not None and (not is_whole(self.max_iter) or self.max_iter < 1):
            raise InvalidParameterError(f"max_iter must be at least 1, got {self.max_iter!r}.")
        if not is_whole(self.n_restarts) or self.n_restarts < 0:
            raise InvalidParameterError(f"n_restarts must be a whole number >= 0, got {self.n_restarts!r}.")

    @property
    def cycles(self) -> int:
        """Iterations the solver may take."""
        return self.max_iter or DEFAULT_MAX_ITER.get(self.solver, DEFAULT_MAX_ITER_OTHERS)

    @property
    def tunes(self) -> bool:
        """Whether hyperparameters are found from the labels."""
        return self.tune != "none"

    def averaging(self, labels: FloatArray) -> dict[str, Any]:
        """What :func:`fit_mixture` is told, whatever labels like these it averages over."""
        least_base = LEAST_BASE * (robust_variance(labels) or 1.0)
        return {
            "least_base": least_base,
            "learn_amplitude": self.tunes,
            "tol": self.tol,
            "max_iter": self.max_iter or MAX_ITER,
        }

    @property
    def learns_base(self) -> bool:
        """Whether the base noise is found from the labels."""
        return self.base is None and self.noise == "per-label"

    @property
    def averages(self) -> bool:
        """Whether right and wrong are averaged over: not where one noise variance per label was asked for by its solver."""
        plain = self.solver == "auto" and self.penalty.weight == 0.0
        return self.learns_base and self.inference == "average" and plain


@dataclass(frozen=True, eq=False)
class Ending:
    """How an iteration ended."""

    objective: float
    objective_path: FloatArray
    residual: float
    converged: bool
    n_iter: int

    @classmethod
    def of(cls, solution: NoiseSolution) -> Ending:
        """That of a noise solver."""
        state = solution.state
        return cls(state.objective, solution.objective_path, state.residual, solution.converged, solution.n_iter)

    @classmethod
    def of_average(cls, fit: MixtureFit) -> Ending:
        """That of the averaging.

        It looks for a fixed point and may pass below it: the path holds the iterations that lie above all later ones.
        """
        path = fit.objective_path
        later = np.maximum.accumulate(path[::-1])[::-1]
        return cls(fit.objective, path[path >= later], fit.residual, fit.converged, path.size - 1)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where the fit ended. ``base`` includes the numerical ``jitter``; ``status`` says how the base noise was found.

    noise : noise variance of each label beyond the base noise.
    labels, weights, covariance : the labels that the model believes, and what they make it predict; believed_noise : the
        variances by which it believes them, the diagonal of the covariance.
    mixture : what right and wrong labels have in common, where both were averaged over.
    """

    kernel: KernelOnData
    evidence: LeaveOneOutEvidence
    noise: FloatArray
    labels: FloatArray
    weights: FloatArray
    covariance: Covariance
    believed_noise: FloatArray
    base: float
    jitter: float
    status: Status | None
    ending: Ending
    n_factorizations: int
    cost: float
    mixture: MixtureParameters | None = None

    @classmethod
    def from_solution(cls, kernel: KernelOnData, problem: NoiseProblem, solution: NoiseSolution, **rest: Any) -> Fitted:
        """The likeliest noise variances."""
        state = solution.state
        evidence = leave_one_out_evidence(
            problem.labels, state.noise, problem.fixed_noise, state.weights, state.precision
        )
        ending = Ending.of(solution)
        believed = problem.labels, state.weights, state.covariance, problem.fixed_noise + state.noise
        return cls(kernel, evidence, state.noise, *believed, ending=ending, **rest)

    @classmethod
    def from_average(cls, kernel: KernelOnData, fit: MixtureFit, **rest: Any) -> Fitted:
        """The average over right and wrong labels; ``kernel`` already has its final amplitude."""
        cavity = fit.cavity
        evidence = LeaveOneOutEvidence(
            mean=cavity.mean,
            variance=cavity.variance,
            error=cavity.error,
            z=cavity.error / np.sqrt(cavity.variance),
            label_noise=fit.label_noise,
        )
        believed = fit.sites.labels, fit.weights, fit.covariance, fit.sites.noise
        ending = Ending.of_average(fit)
        return cls(kernel, evidence, fit.noise_variance, *believed, ending=ending, mixture=fit.mixture, **rest)


@dataclass(frozen=True, eq=False)
class StartingPoint:
    """What a part of the labels says, ``size`` of them: where a fit to all of them begins.

    kernel : on the points of that part. mixture : what right and wrong labels have in common.
    """

    kernel: KernelOnData
    mixture: MixtureParameters
    size: int
    base: float
    jitter: float
    status: Status | None
    n_factorizations: int
    cost: float

    @classmethod
    def of(cls, fitted: Fitted) -> StartingPoint:
        """From a whole fit to these labels."""
        mixture = replace(fitted.mixture or mixture_of(fitted.noise, fitted.base, fitted.labels), amplitude=1.0)
        rest = fitted.labels.size, fitted.base, fitted.jitter, fitted.status, fitted.n_factorizations, fitted.cost
        return cls(fitted.kernel, mixture, *rest)


def starting_point(
    kernel: KernelOnData,
    likelihood: MixtureLikelihood,
    options: FitOptions,
    random_state: np.random.RandomState,
    progress: Progress,
) -> StartingPoint:
    """From some labels: their kernel tuned, which is enough where all labels refine it; else a whole fit to them."""
    fit = _ExactFit(kernel, likelihood, options, random_state, progress)
    if options.averages and options.tunes and is_refinable(kernel) and not fit.flat:
        return fit.tuned_start()
    return StartingPoint.of(fit_noise_model(kernel, likelihood, options, random_state, progress))


def fit_noise_model(
    kernel: KernelOnData,
    likelihood: MixtureLikelihood,
    options: FitOptions,
    random_state: np.random.RandomState,
    progress: Progress,
    similar: Fitted | None = None,
) -> Fitted:
    """Fit kernel, base noise and noise variances to centred, scaled labels.

    similar : a fit to labels like these, from whose hyperparameters the search begins.
    """
    fit = _ExactFit(kernel, likelihood, options, random_state, progress, similar)
    fitted = fit.average() if options.averages and not fit.flat else fit.maximise()
    warn_of_ending(fitted, options)
    return fitted


def refit_exact(fitted: Fitted, likelihood: MixtureLikelihood, options: FitOptions) -> Fitted:
    """The same kernel where the labels say something else of their noise."""
    assert fitted.mixture is not None
    meter, mixture = CostMeter(likelihood.size), replace(fitted.mixture, amplitude=1.0)
    fit = fit_mixture(
        DenseSignal(fitted.kernel.matrix(), meter),
        likelihood,
        mixture,
        with_noise(likelihood, mixture, fitted.noise),
        **options.averaging(likelihood.labels),
    )
    return Fitted.from_average(
        fitted.kernel.scaled(fit.mixture.amplitude),
        fit,
        base=fit.mixture.base,
        jitter=0.0,
        status=fitted.status,
        n_factorizations=fitted.n_factorizations + meter.n_factorizations,
        cost=fitted.cost + meter.units,
    )


@dataclass(eq=False)
class _ExactFit:
    """One exact fit, step by step."""

    kernel: KernelOnData
    likelihood: MixtureLikelihood
    options: FitOptions
    random_state: np.random.RandomState
    progress: Progress
    similar: Fitted | None = None

    def __post_init__(self) -> None:
        self.labels, self.known_noise = self.likelihood.labels, self.likelihood.fixed_noise
        self.meter = CostMeter(self.labels.size)
        self.flat = not self.labels.any()
        self.variance = robust_variance(self.labels) or 1.0

    def _task(self, kernel: KernelOnData, base: float | None) -> TuningTask:
        options = self.options
        shared = self.known_noise + (options.base or 0.0) if options.noise == "uniform" else self.known_noise
        return TuningTask(
            kernel=kernel,
            labels=self.labels,
            known_noise=shared,
            base=base,
            per_label=options.noise == "per-label",
            penalty=options.penalty,
            signal_variance=self.variance,
            meter=self.meter,
        )

    def average(self) -> Fitted:
        """Average over right and wrong labels."""
        kernel, start, noise = self.kernel, None, None
        if self.options.tunes and self.labels.size > TUNED_AT_ONCE and is_refinable(kernel):
            kernel, start = self._tuned_by_neighbours()
        elif self.options.tunes and not kernel.is_scaled_matrix:
            found = self._tuned(None, shape_only=True)
            kernel = found.kernel
            if not kernel.is_scaled_matrix:
                start, noise = mixture_of(found.noise, found.base, self.labels), found.noise
        self.progress("right and wrong labels", 0.7)
        signal = DenseSignal(kernel.matrix(), self.meter)
        if start is None:
            index = np.arange(self.labels.size)
            if index.size > ENOUGH:
                index = np.sort(self.random_state.choice(index.size, ENOUGH, replace=False))
            tunes = self.options.tunes
            start = mixture_of_some(signal, self.likelihood, self.variance, index, learn_amplitude=tunes)
        fit = self._averaged(signal, start, noise, halves=noise is None)
        observed = self.likelihood.observed
        if isinstance(observed, CensoredLabels):
            fit = self._better(fit, self._averaged(signal, self._wide(observed), None, halves=False))
        status = self._judged(fit)
        if status == "absorbed":
            lower = replace(
                fit.mixture, fraction=MAJORITY, base=max(FAR_LOWER * fit.mixture.base, LEAST_BASE * self.variance)
            )
            other = self._averaged(signal, lower, np.full(self.labels.size, lower.spread))
            if other.objective < fit.objective:
                fit, status = other, self._judged(other)
        return Fitted.from_average(
            kernel.scaled(fit.mixture.amplitude),
            fit,
            base=fit.mixture.base,
            jitter=0.0,
            status=status,
            n_factorizations=self.meter.n_factorizations,
            cost=self.meter.units,
        )

    def _wide(self, observed: CensoredLabels) -> MixtureParameters:
        """A start at which labels beside a bound that many of them are at are no less right than those at it."""
        exact = observed.values[observed.within.exact]
        spread = float(np.var(exact)) if exact.size > 1 else self.variance
        return MixtureParameters(WIDE_FRACTION, spread, LEAST_SPREAD * spread)

    @staticmethod
    def _better(one: MixtureFit, other: MixtureFit) -> MixtureFit:
        return other if other.objective < one.objective else one

    def _tuned_by_neighbours(self) -> tuple[KernelOnData, MixtureParameters]:
        index = np.sort(self.random_state.choice(self.labels.size, TUNING_ROWS, replace=False))
        part = self.kernel.subset(index), self.likelihood.some(index)
        some = _ExactFit(*part, self.options, self.random_state, part_of(self.progress, 0.0, 0.4)).tuned_start()
        progress = part_of(self.progress, 0.4, 0.6)
        return refine_on_all(self.kernel, some, self.labels, self.known_noise, self.random_state, progress)

    def tuned_start(self) -> StartingPoint:
        """The tuned kernel, without the average over right and wrong labels."""
        found = self._tuned(None, shape_only=True)
        mixture = mixture_of(found.noise, found.base, self.labels)
        effort = self.meter.n_factorizations, self.meter.units
        return StartingPoint(found.kernel, mixture, self.labels.size, found.base, 0.0, None, *effort)

    def _averaged(
        self, signal: DenseSignal, start: MixtureParameters, noise: FloatArray | None, *, halves: bool = True
    ) -> MixtureFit:
        """From two halves, except where each label's noise is known well enough already."""
        arguments = signal, self.likelihood, start, with_noise(self.likelihood, start, noise)
        options: dict[str, Any] = {
            **self.options.averaging(self.labels),
            "monitor": lambda step, residual: self.progress("right and wrong labels", min(0.98, 0.7 + 0.01 * step)),
        }
        return fit_by_halves(*arguments, self.random_state, **options) if halves else fit_mixture(*arguments, **options)

    def _judged(self, fit: MixtureFit) -> Status:
        if fit.mixture.fraction > MAJORITY:
            return "majority wrong"
        noise, cavity = fit.noise_variance, fit.cavity
        known, base = self.known_noise, fit.mixture.base
        return judge(noise, cavity.error, cavity.variance, known, base, robust_variance(self.labels))

    def _tuned(self, base: float | None, *, shape_only: bool = False, kernel: KernelOnData | None = None) -> Tuned:
        start = None
        if self.similar is not None and is_refinable(self.kernel):
            start = self.similar.kernel, self.similar.base
        return tune(
            self._task(kernel or self.kernel, base),
            self.options.tune,
            random_state=self.random_state,
            n_restarts=self.options.n_restarts if kernel is None else 0,
            progress=self.progress,
            shape_only=shape_only,
            start=start,
        )

    def maximise(self) -> Fitted:
        """One noise variance for each label, of the highest likelihood; or one for all, or none."""
        options, labels, size = self.options, self.labels, self.labels.size
        kernel, base = self.kernel, options.base or 0.0
        price, start, status, tuned = 0.0, None, None, None
        if options.tunes and not self.flat:
            tuned = self._tuned(None if options.learns_base or options.noise == "uniform" else base)
            kernel, start = tuned.kernel, tuned.noise
            if options.learns_base:
                base, price = tuned.base, tuned.price
            elif options.noise == "uniform":
                start = np.full(size, tuned.base)
        self.progress("noise of every label", 0.9 if tuned is None or not options.learns_base else 0.7)
        signal = DenseSignal(kernel.matrix(), self.meter)
        if options.learns_base and not options.tunes and not self.flat:
            found = find_base_noise(signal, labels, self.known_noise, options.penalty)
            base, price, start, status = found.variance, found.price, found.noise, found.status
        jitter = stabilizing_jitter(signal, self.known_noise + base)
        fixed = self.known_noise + base + jitter
        problem = NoiseProblem(signal, labels, fixed, Penalty(options.penalty.weight, options.penalty.power, price))
        if self.flat or options.noise == "none":
            state = problem.evaluate(np.zeros(size))
            trace = Trace(problem)
            trace.add(state)
            solution = trace.solution(state, np.inf)
        elif options.noise == "uniform":
            start = uniform_start(problem) if start is None else start
            solution = UNIFORM_SOLVERS[options.solver](problem, start, tol=options.tol, max_iter=options.cycles)
        else:
            solution = _solve_per_label(problem, start, options)
        fitted = self._solved(kernel, problem, solution, base, jitter, status)
        if options.learns_base and not self.flat:
            if status is None:
                evidence = fitted.evidence
                known, spread = self.known_noise, robust_variance(labels)
                status = judge(fitted.noise, evidence.error, evidence.variance, known, base, spread)
            if status == "absorbed":
                del problem, signal, solution, fitted
                return self._without_base(kernel)
        return replace(fitted, status=status)

    def _without_base(self, kernel: KernelOnData) -> Fitted:
        """The paper's model, where a learned base noise cannot be believed; nor can the hyperparameters found with it."""
        if self.options.tunes:
            self.progress("hyperparameters without base noise", 0.8)
            kernel = self._tuned(0.0, kernel=kernel).kernel
        signal = DenseSignal(kernel.matrix(), self.meter)
        jitter = stabilizing_jitter(signal, self.known_noise)
        problem = NoiseProblem(signal, self.labels, self.known_noise + jitter, self.options.penalty)
        solution = _solve_per_label(problem, None, self.options)
        return self._solved(kernel, problem, solution, 0.0, jitter, "absorbed")

    def _solved(
        self,
        kernel: KernelOnData,
        problem: NoiseProblem,
        solution: NoiseSolution,
        base: float,
        jitter: float,
        status: Status | None,
    ) -> Fitted:
        return Fitted.from_solution(
            kernel,
            problem,
            solution,
            base=base + jitter,
            jitter=jitter,
            status=status,
            n_factorizations=self.meter.n_factorizations,
            cost=self.meter.units,
        )


def is_refinable(kernel: KernelOnData) -> bool:
    """Whether a kernel has more than an amplitude, and costs little enough, to be refined by neighbourhoods."""
    if isinstance(kernel.kernel, ConstantKernel):
        return False
    return kernel.theta.size > 0 and not kernel.is_scaled_matrix and tuning_size(kernel.kernel) is None


def refine_on_all(
    kernel: KernelOnData,
    some: StartingPoint,
    labels: FloatArray,
    known_noise: FloatArray,
    random_state: np.random.RandomState,
    progress: Progress,
) -> tuple[KernelOnData, MixtureParameters]:
    """What ``some`` of the labels say of a kernel on all points, refined by the neighbourhoods of all, or of very many.

    No more memory is taken than the fit of ``some`` took.
    """
    tuned = KernelOnData(some.kernel.kernel, kernel.points)
    room = ARRAYS_HELD * some.size**2 // doubles_per_label(n_features(kernel.points))
    most = min(MOST_LABELS, max(room, some.size))
    index = np.arange(labels.size)
    if labels.size > most:
        index = np.sort(random_state.choice(labels.size, most, replace=False))
    least_base = LEAST_BASE * (robust_variance(labels) or 1.0)
    found, mixture = refine_locally(
        tuned.subset(index),
        labels[index],
        known_noise[index],
        some.mixture,
        random_state,
        least_base=least_base,
        progress=progress,
    )
    return KernelOnData(found.kernel, kernel.points), mixture


def check_finite(fitted: Fitted) -> None:
    """Refuse a fit with anything in it that is not finite."""
    evidence = fitted.evidence
    numbers = (fitted.base, fitted.ending.objective)
    arrays = (evidence.mean, evidence.variance, evidence.z, evidence.label_noise, fitted.noise, fitted.weights)
    if not (np.isfinite(numbers).all() and all(np.isfinite(array).all() for array in arrays)):
        bad = int(np.count_nonzero(~np.isfinite(evidence.z)))
        raise NotConvergedError(
            f"the fit did not end in finite numbers ({bad} of {evidence.z.size} labels have no z): labels of very different "
            "size, or known errors far from what they spread, may be the cause. Try the logarithm of the labels, "
            "noise='uniform', or look for labels in a wrong unit."
        )


def warn_of_ending(fitted: Fitted, options: FitOptions) -> None:
    """Warn where the solver stopped early or the base noise could not be told."""
    if fitted.status is not None:
        _warn_of_base_noise(fitted.status, float(np.mean(fitted.noise > 0.0)), fitted.mixture is not None)
    ending = fitted.ending
    if not ending.converged:
        advice = "raise max_iter" if options.averages else "raise max_iter or tol, or use solver='auto'"
        what = "averaging over right and wrong labels" if options.averages else f"the solver {options.solver!r}"
        asked = "" if options.averages else f" (asked for: {options.tol:g})"
        warnings.warn(
            f"{what} stopped at a residual of {ending.residual:.2g} after {ending.n_iter} iterations{asked}; {advice}.",
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


def _warn_of_base_noise(status: Status, noisy: float, averaged: bool) -> None:
    if status == "majority wrong":
        warnings.warn(
            f"{100 * noisy:.0f} % of the labels were given noise of their own: with fewer clean than wrong labels, base "
            "noise and false-discovery rates are rough guesses; trust the ranking more than the cut.",
            BaseNoiseWarning,
            stacklevel=6,
        )
    elif status == "absorbed":
        what = (
            "the labels that are trusted have errors of two widths: more than about 70 % of all labels are wrong and pass for "
            "noise that all share, or right labels are not equally noisy (a far lower base noise explains them no better)"
            if averaged
            else "the base noise shared by all labels had swallowed labels of two kinds, which happens when more than about "
            "70 % are wrong; it was set to zero (the paper's model) instead"
        )
        warnings.warn(
            f"{what}. Trust the ranking more than the cut, or pass base_noise=<variance of a clean label> if it is known.",
            BaseNoiseWarning,
            stacklevel=6,
        )
