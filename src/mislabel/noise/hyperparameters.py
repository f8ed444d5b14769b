"""Hyperparameters, base noise and noise variances together: bilevel, alternating, joint.

All three strategies minimise the same objective. When the base noise is learned, a label may have a noise variance of
its own only if that pays its price (without a price the base noise would always end at zero), and the price itself is
re-estimated from the errors found so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from mislabel._common.progress import Progress
from mislabel.errors import unknown_name
from mislabel.kernels.on_data import KernelOnData, tuning_size
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.cost import CostMeter
from mislabel.noise.marginal import MarginalObjective
from mislabel.noise.newton_search import newton_search
from mislabel.noise.penalty import Penalty
from mislabel.noise.pricing import DEFAULT_PRICE, FEW_LABELS, HIDDEN_EVIDENCE, fit_scale_mixture, fit_two_groups

#: From this many labels on, a part of them serves to find the rough shape of the model before all are looked at: a
#: fifth, within these limits.
SCOUT_FROM = 900
SCOUT_RANGE = (400, 600)
#: From this many labels on, so many are looked at in between, and all of them in fewer steps.
MIDDLE_FROM, MIDDLE = 2500, 1500
LAST_STEPS = 12
#: Steps of a search that begins where one on labels like these ended.
WARM_STEPS = 16
#: Bounds on the base noise, relative to the labels' variance.
BASE_RANGE = (1e-8, 10.0)
START_BASE = 0.1
#: Where many labels are wrong, the base noise may swallow them all and stay high, though a low one explains the labels
#: better: these fractions of the base noise found are probed, each starting from the noise variances of the last.
LOWER_STARTS = (1e-2, 1e-4)
#: How far the first search may take a hyperparameter from its start, as a logarithm: the whole range at once leads into
#: regions where features or labels are ignored.
FIRST_REACH = float(np.log(30.0))
PRICE_ROUNDS = 2
ALTERNATING_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome of tuning: kernel, base noise variance, noise variances (a warm start), price and objective."""

    kernel: KernelOnData
    base: float
    noise: FloatArray
    price: float
    objective: float
    n_evaluations: int


@dataclass(frozen=True, eq=False)
class TuningTask:
    """What is to be tuned.

    base : None to learn it. per_label : False for a single shared variance (or none at all).
    """

    kernel: KernelOnData
    labels: FloatArray
    known_noise: FloatArray
    base: float | None
    per_label: bool
    penalty: Penalty
    signal_variance: float
    meter: CostMeter

    def objective(self, kernel: KernelOnData, price: float) -> MarginalObjective:
        """The objective of this task under a kernel and a price."""
        penalty = Penalty(self.penalty.weight, self.penalty.power, price if self.base is None else 0.0)
        return MarginalObjective(
            kernel, self.labels, self.known_noise, self.base, self.signal_variance, penalty, self.meter
        )

    def subset(self, index: IntArray) -> TuningTask:
        """The same task on some of the labels."""
        return replace(
            self,
            kernel=self.kernel.subset(index),
            labels=self.labels[index],
            known_noise=self.known_noise[index],
            meter=CostMeter(index.size),
        )


@dataclass(eq=False)
class _Search:
    """One kernel, one strategy: the current point and how to improve it."""

    task: TuningTask
    objective: MarginalObjective
    phi: FloatArray
    value: float = np.inf
    reach: float = np.inf

    @classmethod
    def begin(cls, task: TuningTask, kernel: KernelOnData, base: float, price: float = DEFAULT_PRICE) -> _Search:
        objective = task.objective(kernel, price)
        return cls(task, objective, objective.start(base))

    @property
    def base_bounds(self) -> tuple[float, float]:
        scale = self.task.signal_variance
        return BASE_RANGE[0] * scale, BASE_RANGE[1] * scale

    @property
    def bounds(self) -> FloatArray:
        """Bounds on ``phi``: the kernel's own, and no further than ``reach`` from its hyperparameters at the start."""
        bounds = self.objective.bounds(self.base_bounds)
        theta = self.objective.kernel.theta
        own = bounds[: theta.size]
        own[:, 0] = np.maximum(own[:, 0], theta - self.reach)
        own[:, 1] = np.minimum(own[:, 1], theta + self.reach)
        return bounds

    @property
    def base(self) -> float:
        return self.objective.split(self.phi)[1]

    @property
    def criterion(self) -> float:
        """What kernels are compared by: each more hyperparameter must lower the objective by the logarithm of n (Schwarz)."""
        return self.value + self.phi.size * float(np.log(self.task.labels.size))

    @property
    def noisy_fraction(self) -> float:
        return np.count_nonzero(self.objective.noise) / self.objective.noise.size

    @property
    def kernel(self) -> KernelOnData:
        return self.objective.kernel.at(self.objective.split(self.phi)[0])

    def minimise(self, resolve: bool, iterations: int, tolerance: float = 1e-5) -> None:
        function = self.objective.resolved if resolve else self.objective.held
        if self.phi.size == 0:
            return
        if resolve and self.objective.has_curvature:
            self.phi, self.value = newton_search(self.objective, self.phi, self.bounds, iterations, tolerance)
            return
        best_value, best_phi, best_noise = np.inf, self.phi, self.objective.noise

        def tracked(phi: FloatArray) -> tuple[float, FloatArray]:
            nonlocal best_value, best_phi, best_noise
            value, gradient = function(phi)
            if value < best_value:
                best_value, best_phi, best_noise = value, phi.copy(), self.objective.noise
            return value, gradient

        bounds = self.bounds
        start = np.clip(self.phi, bounds[:, 0], bounds[:, 1])
        options = {"maxiter": iterations, "ftol": tolerance}
        minimize(tracked, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        self.phi, self.objective.noise, self.value = best_phi, best_noise, best_value

    def minimise_jointly(self, iterations: int) -> None:
        """One L-BFGS-B over ``phi`` and the noise variances that are not at zero."""
        active = np.flatnonzero(self.objective.noise > 0.0)
        scale = float(self.objective.noise[active].mean()) if active.size else 1.0
        size = self.phi.size

        def function(parameters: FloatArray) -> tuple[float, FloatArray]:
            noise = np.zeros_like(self.objective.noise)
            noise[active] = parameters[size:] * scale
            self.objective.noise = noise
            value, slope, noise_slope = self.objective.held_with_noise_slope(parameters[:size])
            return value, np.concatenate([slope, noise_slope[active] * scale])

        bounds = np.vstack([self.bounds, np.tile([0.0, np.inf], (active.size, 1))])
        start = np.concatenate([self.phi, self.objective.noise[active] / scale])
        start = np.clip(start, bounds[:, 0], bounds[:, 1])
        found = minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations, "ftol": 1e-6}
        )
        self.phi, self.value = found.x[:size], float(found.fun)
        self.objective.noise = np.zeros_like(self.objective.noise)
        self.objective.noise[active] = found.x[size:] * scale

    def settle_noise(self) -> None:
        """Re-solve the noise variances at the current point."""
        self.value = self.objective.sweep_at(self.phi)

    def reprice(self) -> None:
        """Set the price of a noise variance from the errors found so far."""
        if self.task.base is None:
            error, variance = self.objective.leave_one_out(self.phi)
            price = fit_two_groups(error, variance).price(variance)
            self.objective.penalty = Penalty(self.task.penalty.weight, self.task.penalty.power, price)

    def hides_two_kinds(self) -> bool:
        """Whether labels without noise of their own are visibly of two kinds: the base noise swallowed the wrong ones."""
        trusted = self.objective.noise == 0.0
        if np.count_nonzero(trusted) < 2:
            return False
        error, variance = self.objective.leave_one_out(self.phi)
        mixture = fit_scale_mixture(error[trusted] / np.sqrt(variance[trusted]))
        return mixture.evidence > HIDDEN_EVIDENCE

    def tuned(self, evaluations: int) -> Tuned:
        """Where the search ended."""
        objective = self.objective
        return Tuned(self.kernel, self.base, objective.noise, objective.penalty.price, self.value, evaluations)

    def moved_to(self, task: TuningTask) -> _Search:
        """The same point on other labels (a subset, or all of them); noise variances start anew."""
        kernel = self.kernel.on_all(task.kernel)
        return _Search.begin(task, kernel, self.base, self.objective.penalty.price)


def _bilevel(search: _Search, iterations: int) -> None:
    search.minimise(resolve=True, iterations=iterations)
    search.settle_noise()


def _alternating(search: _Search, iterations: int) -> None:
    for _ in range(ALTERNATING_ROUNDS):
        before = search.value
        search.minimise(resolve=False, iterations=iterations)
        search.settle_noise()
        if abs(before - search.value) < 1e-4 * (1.0 + abs(search.value)):
            break


def _joint(search: _Search, iterations: int) -> None:
    for _ in range(ALTERNATING_ROUNDS):
        before = search.value
        search.minimise_jointly(3 * iterations)
        search.settle_noise()
        if abs(before - search.value) < 1e-4 * (1.0 + abs(search.value)):
            break


#: How hyperparameters and noise variances are optimised together, by name.
STRATEGIES: dict[str, Callable[[_Search, int], None]] = {
    "bilevel": _bilevel,
    "alternating": _alternating,
    "joint": _joint,
}


def tune(
    task: TuningTask,
    strategy: str,
    *,
    random_state: np.random.RandomState,
    n_restarts: int = 0,
    max_iter: int = 30,
    progress: Progress | None = None,
    shape_only: bool = False,
    start: tuple[KernelOnData, float] | None = None,
) -> Tuned:
    """Find hyperparameters, base noise and a warm start for the noise variances.

    shape_only : end before all labels are looked at where only the amplitude of the kernel would be found from them.
    start : kernel and base noise that labels like these were found to have: the search begins there, and keeps the shape.
    """
    if strategy not in STRATEGIES:
        raise unknown_name("tune", strategy, [*STRATEGIES, "none"])
    report = progress if progress is not None else (lambda message, fraction: None)
    size = task.labels.size
    if start is not None:
        report("hyperparameters, from those of similar labels", 0.3)
        warm = _settled(_Search.begin(task, start[0].on_all(task.kernel), start[1]))
        _finish(warm, strategy, 2 * WARM_STEPS, 1)
        return warm.tuned(warm.objective.n_evaluations)
    scout_task = task
    scouts = tuning_size(task.kernel.kernel)
    if scouts is None:
        scouts = size if size <= SCOUT_FROM else int(np.clip(size // 5, *SCOUT_RANGE))
    if size > scouts:
        scout_task = task.subset(np.sort(random_state.choice(size, scouts, replace=False)))
    if tuning_size(task.kernel.kernel) is not None:
        scout_task = replace(scout_task, kernel=scout_task.kernel.for_tuning())
    starts = [scout_task.kernel, *(_random_kernel(scout_task.kernel, random_state) for _ in range(n_restarts))]
    best: _Search | None = None
    evaluations = 0
    for number, kernel in enumerate(starts):
        report(f"hyperparameters, start {number + 1} of {len(starts)}", 0.3 * number / len(starts))
        if task.per_label:
            search = _scout(scout_task, kernel, strategy, max_iter)
        else:
            search = _scout_uniform(scout_task, kernel, max_iter)
        evaluations += search.objective.n_evaluations
        if best is None or search.criterion < best.criterion:
            best = search
    assert best is not None
    if scout_task is not task:
        report(f"hyperparameters, all {size} labels", 0.4)
        _finish(best, strategy, max_iter, PRICE_ROUNDS)
        evaluations += best.objective.n_evaluations
        if shape_only and (whole := best.kernel.on_all(task.kernel)).is_scaled_matrix:
            noise = np.zeros(size)
            return Tuned(whole, best.base, noise, best.objective.penalty.price, best.value, evaluations)
        if size >= MIDDLE_FROM and scouts < MIDDLE and tuning_size(task.kernel.kernel) is None:
            some = np.sort(random_state.choice(size, MIDDLE, replace=False))
            best = _moved(best, task.subset(some))
            _finish(best, strategy, max_iter, 1)
            evaluations += best.objective.n_evaluations
            max_iter = min(max_iter, LAST_STEPS)
        best = _moved(best, task)
    report("hyperparameters, final rounds", 0.5)
    counted = 0 if scout_task is not task else best.objective.n_evaluations
    _finish(best, strategy, max_iter, PRICE_ROUNDS if scout_task is task else 1)
    return best.tuned(evaluations + best.objective.n_evaluations - counted)


def _moved(search: _Search, task: TuningTask) -> _Search:
    """The same point on more labels, their noise variances found."""
    return _settled(search.moved_to(task))


def _settled(found: _Search) -> _Search:
    """The search with the noise variances at its point; with far lower base noise where that is better."""
    if found.task.per_label:
        found.settle_noise()
        if found.task.base is None and found.hides_two_kinds():
            found = _from_lower_base(found)
    return found


def _scout(task: TuningTask, kernel: KernelOnData, strategy: str, max_iter: int) -> _Search:
    """A first optimum for every shape the kernel comes in; the one of lowest objective is kept.

    The search starts from the kernel's own broad hyperparameters. Fitting them to all labels under uniform noise first
    looks safer but is not: wrong labels then teach the kernel to ignore features that matter, and it never recovers.
    """
    searches = []
    for candidate in kernel.all_shapes():
        search = _Search.begin(task, candidate, START_BASE * task.signal_variance)
        if task.base is not None:
            search.objective.noise = np.full(task.labels.size, START_BASE * task.signal_variance)
        search.settle_noise()
        search.reach = FIRST_REACH
        STRATEGIES[strategy](search, max_iter // 2)
        search.reach = np.inf
        searches.append(search)
    best = _best_of(searches)
    if task.base is None and task.labels.size < FEW_LABELS and best.noisy_fraction > 0.5:
        # A handful of labels can always be explained by blaming most of them: trust them unless they insist.
        trusting = _scout_uniform(task, kernel, max_iter)
        trusting.settle_noise()
        if trusting.noisy_fraction <= 0.5:
            return trusting
    return best


def _from_lower_base(found: _Search) -> _Search:
    """A search with far lower base noise, where that explains the labels better."""
    found.objective.release()
    # At the price that the probes pay.
    freed = int(np.count_nonzero(found.objective.noise))
    value = found.value + (DEFAULT_PRICE - found.objective.penalty.price) * freed
    lowest, noise = found, found.objective.noise
    for factor in LOWER_STARTS:
        probe = _Search.begin(found.task, found.kernel, factor * found.base)
        probe.objective.noise = noise
        probe.settle_noise()
        noise = probe.objective.noise
        if probe.value < value:
            lowest.objective.release()
            lowest, value = probe, probe.value
        else:
            probe.objective.release()
    return lowest


def _scout_uniform(task: TuningTask, kernel: KernelOnData, max_iter: int) -> _Search:
    """The same without noise variances of their own."""
    searches = []
    for candidate in kernel.all_shapes():
        search = _Search.begin(task, candidate, START_BASE * task.signal_variance)
        search.minimise(resolve=False, iterations=max_iter)
        searches.append(search)
    return _best_of(searches)


def _best_of(searches: list[_Search]) -> _Search:
    best = min(searches, key=lambda search: search.criterion)
    best.objective.n_evaluations = sum(search.objective.n_evaluations for search in searches)
    return best


def _finish(search: _Search, strategy: str, max_iter: int, price_rounds: int) -> None:
    """Rounds of a new price and a search under it, until base noise and price fit each other."""
    task = search.task
    if not task.per_label:
        cheap = tuning_size(task.kernel.kernel) is None
        search.minimise(resolve=False, iterations=max_iter, tolerance=1e-7 if cheap else 1e-6)
        return
    for _ in range(price_rounds if task.base is None else 1):
        search.reprice()
        search.settle_noise()
        STRATEGIES[strategy](search, max_iter // 2 if task.base is None else max_iter)


def _random_kernel(kernel: KernelOnData, random_state: np.random.RandomState) -> KernelOnData:
    """Hyperparameters drawn around the start: a factor of up to ten either way, within their bounds."""
    theta = kernel.theta + random_state.uniform(-np.log(10.0), np.log(10.0), kernel.theta.size)
    bounds = kernel.bounds
    return kernel.at(np.clip(theta, bounds[:, 0], bounds[:, 1]))
