"""The numerical fit beyond exact reach: hyperparameters from a subset, noise variances of all labels at low rank."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from mislabel._common.progress import Progress, part_of
from mislabel._common.spreading import evenly_spread
from mislabel.errors import InvalidParameterError, MislabelWarning
from mislabel.estimators.fitting import (
    FitOptions,
    Fitted,
    StartingPoint,
    is_refinable,
    refine_on_all,
    starting_point,
    warn_of_ending,
)
from mislabel.estimators.prediction import LowRankModel, LowRankPredictor
from mislabel.estimators.rank_plan import LEAST_TUNING_ROWS, RankPlan
from mislabel.kernels.adapters import as_kernel
from mislabel.kernels.inducing import (
    pivoted_factor,
    rest_by_block,
    similar_blocks,
)
from mislabel.kernels.on_data import KernelOnData, scaled_kernel, take, take_points
from mislabel.kernels.table import telling_columns
from mislabel.likelihoods.mixture import MixtureLikelihood, MixtureParameters
from mislabel.linalg.contract import FloatArray, IntArray, SignalCovariance
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.low_rank import LowRankSignal
from mislabel.linalg.low_rank_blocks import BlockLowRankSignal
from mislabel.linalg.mapped import mapping_of
from mislabel.noise.base_noise import Status, robust_variance
from mislabel.noise.expectation_propagation import LEAST_BASE, MixtureFit, fit_mixture
from mislabel.noise.hyperparameters import START_BASE
from mislabel.noise.leave_one_out import trusted_variance
from mislabel.noise.mixture_start import ENOUGH, mixture_of_some, with_noise
from mislabel.noise.objective import NoiseProblem, NoiseState, amplitude_ratio
from mislabel.noise.penalty import Penalty
from mislabel.noise.pricing import DEFAULT_PRICE, MAJORITY, fit_two_groups
from mislabel.noise.solvers.simultaneous import solve_simultaneous, targets

#: Labels from which hyperparameters are tuned exactly: so many per column of the factor.
TUNING_ROWS_PER_COLUMN = 10
#: Columns enough: what is left of the kernel is this fraction of the base noise.
LEFT_OVER = 1e-3
#: Rows from which the kernel of a low-rank fit starts.
START_ROWS = 10_000
#: Rounds in which all labels share one noise; rounds in which amplitude, base noise and price are adapted to all labels;
#: and how little they may change to stop.
UNIFORM_ROUNDS = 4
REFINING_ROUNDS = 8
SETTLED = 0.01
#: Labels from which three numbers are estimated well enough; more are not looked at for them.
REFINING_ROWS = 10_000
SOLVER_CYCLES = 60
#: The residual that low-rank fits aim at: below it, the approximation itself is the larger error.
LOW_RANK_TOL = 1e-4


def kernel_of_many(points: Any) -> Kernel:
    """The default kernel for many points, started from some of them."""
    some = take_points(points, evenly_spread(len(points), START_ROWS))
    # Some rows do not say which features are constant in all; rows in files or on workers are not looked through for that.
    here = isinstance(points, np.ndarray) and mapping_of(points) is None
    return as_kernel(None, some, telling_columns(points) if here else np.arange(points.shape[1]))


def fit_low_rank(
    kernel: KernelOnData,
    likelihood: MixtureLikelihood,
    options: FitOptions,
    plan: RankPlan,
    random_state: np.random.RandomState,
    progress: Progress,
) -> tuple[Fitted, LowRankPredictor]:
    """Fit to centred, scaled labels; the state of the result is in the order of the model."""
    if options.noise != "per-label":
        raise InvalidParameterError("low-rank fits need noise='per-label'; use rank=None for uniform noise or none.")
    labels, known_noise, size = likelihood.labels, likelihood.fixed_noise, likelihood.size
    wanted = min(plan.tuning_rows, max(TUNING_ROWS_PER_COLUMN * plan.rank, LEAST_TUNING_ROWS), size)
    some = np.sort(random_state.choice(size, wanted, replace=False))
    with warnings.catch_warnings():
        # What the subset has to warn of is looked at again on all labels.
        warnings.simplefilter("ignore", MislabelWarning)
        start = starting_point(
            KernelOnData(kernel.kernel, take(kernel.points, some, kernel.kernel)),
            likelihood.some(some),
            options,
            random_state,
            lambda message, fraction: progress(f"{message} ({some.size} labels)", 0.3 * fraction),
        )
    if options.tunes and options.averages and some.size < size and is_refinable(start.kernel):
        found, mixture = refine_on_all(kernel, start, labels, known_noise, random_state, part_of(progress, 0.3, 0.4))
        start = replace(start, kernel=found, mixture=mixture, base=mixture.base)
    progress("columns of the kernel", 0.42)
    meter = CostMeter(size)
    base = start.base
    if options.learns_base and start.status == "absorbed":
        base = START_BASE * robust_variance(labels)
    enough = LEFT_OVER * base if plan.at_most else 0.0
    model = _low_rank_model(start.kernel.kernel, kernel.points, plan, enough, random_state, meter)
    fit = _LowRankFit(model, start, likelihood.some(model.order), base, options, random_state, progress)
    model, fitted = fit.average() if options.averages else fit.maximise()
    fitted = replace(fitted, kernel=KernelOnData(scaled_kernel(model.kernel, model.amplitude), kernel.points))
    warn_of_ending(fitted, replace(options, tol=fit.tol))
    return fitted, model.predictor(fitted.labels, fitted.weights, fitted.covariance, fitted.believed_noise)


def refit_low_rank(
    fitted: Fitted, predictor: LowRankPredictor, likelihood: MixtureLikelihood, options: FitOptions
) -> tuple[Fitted, LowRankPredictor]:
    """The same kernel and columns where the labels, in the order of the model, say something else of their noise."""
    assert fitted.mixture is not None
    model, mixture = predictor.model, replace(fitted.mixture, amplitude=1.0)
    fit = fit_mixture(
        model.signal,
        likelihood,
        mixture,
        with_noise(likelihood, mixture, fitted.noise),
        **replace(options, tol=max(options.tol, LOW_RANK_TOL)).averaging(likelihood.labels),
        settling=1,
    )
    model = model.scaled(fit.mixture.amplitude)
    rest = {"jitter": fitted.jitter, "n_factorizations": fitted.n_factorizations, "cost": fitted.cost}
    found = Fitted.from_average(fitted.kernel, fit, base=fit.mixture.base, status=fitted.status, **rest)
    found = replace(found, kernel=KernelOnData(scaled_kernel(model.kernel, model.amplitude), fitted.kernel.points))
    return found, model.predictor(found.labels, found.weights, found.covariance, found.believed_noise)


@dataclass(frozen=True, eq=False)
class _LowRankFit:
    """The fit to all labels, in the order of ``model``; ``start`` is what some of them say."""

    model: LowRankModel
    start: StartingPoint
    likelihood: MixtureLikelihood
    base: float
    options: FitOptions
    random_state: np.random.RandomState
    progress: Progress

    @property
    def labels(self) -> FloatArray:
        """One number for each label."""
        return self.likelihood.labels

    @property
    def known(self) -> FloatArray:
        """Noise variances that labels have anyway."""
        return self.likelihood.fixed_noise

    @property
    def tol(self) -> float:
        """The residual that is aimed at."""
        return max(self.options.tol, LOW_RANK_TOL)

    def _part(self) -> IntArray | None:
        """Labels that tell the few numbers that all share; None where all are needed, or few enough."""
        size = self.labels.size
        if self.model.blocks is not None or size <= REFINING_ROWS:
            return None
        return np.sort(self.random_state.choice(size, REFINING_ROWS, replace=False))

    def _effort(self) -> dict[str, Any]:
        """What the whole fit took, and the jitter that its exact part needed."""
        start, meter = self.start, self.model.signal.meter
        total = start.n_factorizations + meter.n_factorizations
        return {"jitter": start.jitter, "n_factorizations": total, "cost": start.cost}

    def average(self) -> tuple[LowRankModel, Fitted]:
        """Average over right and wrong labels, all of them, from what a subset says of both groups."""
        model, labels = self.model, self.labels
        mixture = self._first_mixture()
        # Labels that are all equal have no base noise of their own.
        mixture = replace(mixture, base=max(mixture.base, LEAST_BASE * (robust_variance(labels) or 1.0)))
        part = self._part()
        if part is not None:
            smaller = model.on_rows(part).signal
            mixture = self._averaged(smaller, self.likelihood.some(part), mixture, np.inf, 0.5).mixture
        fit = self._averaged(model.signal, self.likelihood, mixture, self.tol, 0.6)
        status: Status = "majority wrong" if fit.mixture.fraction > MAJORITY else "found"
        rest = {"base": fit.mixture.base, "status": status, **self._effort()}
        return model.scaled(fit.mixture.amplitude), Fitted.from_average(self.start.kernel, fit, **rest)

    def _first_mixture(self) -> MixtureParameters:
        """The numbers that all labels share, where averaging begins: exactly from some labels, unless that was done before."""
        if self.start.status is not None:
            return self.start.mixture
        size = self.labels.size
        index = np.arange(size) if size <= ENOUGH else np.sort(self.random_state.choice(size, ENOUGH, replace=False))
        variance = robust_variance(self.labels) or 1.0
        tunes = self.options.tunes
        return mixture_of_some(self.model.signal, self.likelihood, variance, index, learn_amplitude=tunes)

    def _averaged(
        self,
        signal: SignalCovariance,
        likelihood: MixtureLikelihood,
        start: MixtureParameters,
        tol: float,
        done: float,
    ) -> MixtureFit:
        return fit_mixture(
            signal,
            likelihood,
            start,
            with_noise(likelihood, start),
            **replace(self.options, tol=tol).averaging(self.labels),
            monitor=lambda step, _: self.progress("right and wrong labels", min(0.97, done + 0.01 * step)),
        )

    def maximise(self) -> tuple[LowRankModel, Fitted]:
        """The likeliest noise variances of all labels."""
        model, labels, known, base = self.model, self.labels, self.known, self.base
        options, progress, size = self.options, self.progress, self.labels.size
        price = DEFAULT_PRICE if options.learns_base else 0.0
        noise = np.zeros(size) if price else np.full(size, float(np.median(labels**2)))
        progress("noise of every label", 0.5)
        if options.learns_base and options.tunes:
            part = self._part()
            if part is not None:
                smaller, base, price, _ = _refine(
                    model.on_rows(part), labels[part], known[part], base, price, noise[part], options, progress
                )
                model = model.scaled(smaller.amplitude)
            else:
                model, base, price, noise = _refine(model, labels, known, base, price, noise, options, progress)
        problem = _problem(model, labels, known, base, options, price)

        def monitor(step: int, state: NoiseState) -> None:
            progress(f"noise of every label, residual {state.residual:.1e}", min(0.97, 0.7 + 0.01 * step))

        cycles = options.max_iter or SOLVER_CYCLES
        solution = solve_simultaneous(problem, noise, tol=self.tol, max_iter=cycles, monitor=monitor)
        status: Status | None = None
        if options.learns_base:
            # The calibration of the audit sees to labels hidden in the base noise; here only a majority of noisy ones is told.
            noisy = np.count_nonzero(solution.state.noise)
            status = "majority wrong" if noisy > MAJORITY * size else "found"
        rest = {"base": base, "status": status, **self._effort()}
        return model, Fitted.from_solution(self.start.kernel, problem, solution, **rest)


def _low_rank_model(
    kernel: Any, points: Any, plan: RankPlan, enough: float, random_state: np.random.RandomState, meter: CostMeter
) -> LowRankModel:
    factor = pivoted_factor(kernel, points, plan.rank, random_state, enough, plan.storage)
    if not plan.block_size:
        order = np.arange(len(points), dtype=np.intp)
        return LowRankModel(kernel, factor, order, LowRankSignal(factor.factor, factor.rest, meter))
    blocks = similar_blocks(np.asarray(factor.factor), plan.block_size, random_state)
    order = np.concatenate(blocks.members)
    columns = np.ascontiguousarray(np.asarray(factor.factor)[order])
    points = take_points(points, order)
    signal = BlockLowRankSignal(columns, rest_by_block(kernel, points, columns, blocks), meter)
    return LowRankModel(kernel, replace(factor, factor=columns), order, signal, 1.0, points, blocks)


def _problem(
    model: LowRankModel, labels: FloatArray, known: FloatArray, base: float, options: FitOptions, price: float
) -> NoiseProblem:
    penalty = Penalty(options.penalty.weight, options.penalty.power, price)
    return NoiseProblem(model.signal, labels, known + base, penalty)


def _leave_one_out(state: NoiseState, fixed_noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    return state.weights / state.precision, trusted_variance(state.precision, state.noise, fixed_noise)


def _refine(
    model: LowRankModel,
    labels: FloatArray,
    known: FloatArray,
    base: float,
    price: float,
    noise: FloatArray,
    options: FitOptions,
    progress: Progress,
) -> tuple[LowRankModel, float, float, FloatArray]:
    """Adapt amplitude, base noise and price to all labels, by the paper's multiplicative update for shared variances.

    The base noise comes from above, as on the path of an exact fit: first it explains all labels, then only those that
    do not pay for a variance of their own. From below it would stop at the first value that enough freed labels allow.
    """
    for number in range(UNIFORM_ROUNDS + REFINING_ROUNDS):
        progress("amplitude and base noise on all labels", 0.5 + 0.2 * number / (UNIFORM_ROUNDS + REFINING_ROUNDS))
        problem = _problem(model, labels, known, base, options, price)
        state = problem.evaluate(noise)
        if number >= UNIFORM_ROUNDS:
            noise = targets(problem, state)
            state = problem.evaluate(noise)
        total = problem.fixed_noise + noise
        squares, precision = state.weights**2, state.precision
        trusted = noise == 0.0
        base_ratio = float(squares[trusted].sum() / precision[trusted].sum()) if trusted.any() else 1.0
        growth = amplitude_ratio(labels, total, state.weights, precision)
        base_ratio, growth = (float(np.clip(ratio, 0.25, 4.0)) for ratio in (base_ratio, growth))
        base *= base_ratio
        model = model.scaled(growth)
        error, variance = _leave_one_out(state, problem.fixed_noise)
        if number >= UNIFORM_ROUNDS:
            price = fit_two_groups(error, variance).price(variance)
        if number > UNIFORM_ROUNDS and abs(base_ratio - 1.0) < SETTLED and abs(growth - 1.0) < 5 * SETTLED:
            break
    return model, base, price, noise
