"""The third stage of a fit: a Gaussian process with a noise variance per label, on what the mean leaves of the labels.

Which backend computes it follows from the rank plan and from where the rows are: exact, of low rank in this process, or of low
rank on the workers of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from mislabel._common.compiled_loops import clean_interrupts
from mislabel._common.progress import Progress
from mislabel.errors import InvalidParameterError, unknown_name
from mislabel.estimators.fitting import FitOptions, Fitted, check_finite, fit_noise_model, refit_exact
from mislabel.estimators.label_units import center_of, robust_scale
from mislabel.estimators.low_rank_fit import fit_low_rank, refit_low_rank
from mislabel.estimators.prediction import ExactPredictor, LowRankPredictor, Predictor
from mislabel.estimators.rank_plan import RankPlan
from mislabel.estimators.validation import is_number
from mislabel.kernels.adapters import tunable
from mislabel.kernels.on_data import KernelOnData
from mislabel.likelihoods.contract import Observation
from mislabel.likelihoods.error_densities import Intervals
from mislabel.likelihoods.mixture import TAILS, MixtureLikelihood
from mislabel.likelihoods.observations import CensoredLabels, ExactLabels
from mislabel.linalg.contract import FloatArray
from mislabel.linalg.threads import blas_threads
from mislabel.noise.penalty import Penalty

#: Known variances above this, in units of the labels' own, say that a label says nothing: larger ones cost digits, no more.
LARGEST_KNOWN = 1e12
#: A process that is the same everywhere, for labels that are judged by the mean alone.
CONSTANT = "constant"


@dataclass(frozen=True)
class ProcessSettings:
    """What the user chose about the process, variances in squared label units.

    in_label_units : whether the kernel is used as it is, in squared label units.
    """

    noise: str
    base_noise: float | str
    penalty: float
    penalty_power: float
    solver: str
    tune: str
    n_restarts: int
    tol: float
    max_iter: int | None
    inference: str
    tails: str
    center: float | str
    in_label_units: bool

    def options(self, scale: float) -> FitOptions:
        """The same for labels divided by ``scale``."""
        if self.tails not in TAILS:
            raise unknown_name("tails", self.tails, list(TAILS))
        if self.base_noise == "auto":
            base = None
        elif isinstance(self.base_noise, str) or not is_number(self.base_noise) or not 0.0 <= self.base_noise < np.inf:
            raise InvalidParameterError(f"base_noise must be 'auto' or a variance >= 0, got {self.base_noise!r}.")
        else:
            base = float(self.base_noise) / scale**2
        return FitOptions(
            noise=self.noise,
            base=base,
            penalty=Penalty(self.penalty, self.penalty_power).rescaled(scale**2),
            solver=self.solver,
            tune=self.tune,
            n_restarts=self.n_restarts,
            tol=self.tol,
            max_iter=self.max_iter,
            inference=self.inference,
        )


@dataclass(frozen=True, eq=False)
class ProcessTask:
    """Labels to explain, less what the mean expects, at their points.

    known_variance : of the labels, squared. plan : None for an exact fit.
    within : intervals of censored labels, less the mean; None where all are known exactly.
    relative : what the base noise is multiplied by, label by label.
    right : which labels are known to be right; None where none is.
    """

    kernel: Kernel
    points: Any
    target: FloatArray
    known_variance: FloatArray
    plan: RankPlan | None
    within: Intervals | None = None
    relative: FloatArray | float = 1.0
    right: NDArray[np.bool_] | None = None

    def likelihood(self, center: float, scale: float, tails: str) -> MixtureLikelihood:
        """What the labels say, centred and scaled."""
        known = np.minimum(self.known_variance / scale**2, LARGEST_KNOWN)
        if self.within is None:
            observed: Observation = ExactLabels((self.target - center) / scale)
        else:
            observed = CensoredLabels(self.within.less(center).scaled(scale))
        return MixtureLikelihood(observed, known, self.relative, tails, self.right)


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """A process that was fitted to ``(target - center) / scale``."""

    fitted: Fitted
    predictor: Predictor
    center: float
    scale: float

    @property
    def kernel(self) -> Kernel:
        """The kernel with its final hyperparameters, of centred and scaled labels."""
        return self.fitted.kernel.kernel

    def in_given_order(self, values: FloatArray) -> FloatArray:
        """One number per label of the task, in its order: low-rank fits keep similar points together."""
        if self.predictor.order is None:
            return values
        found = np.empty_like(values)
        found[self.predictor.order] = values
        return found

    @property
    def loo_mean(self) -> FloatArray:
        """What the others predict for each label of the task, in label units and in the order of the task."""
        return self.in_given_order(self.center + self.scale * self.fitted.evidence.mean)

    @property
    def loo_variance(self) -> FloatArray:
        """Its variance, without the label's own noise variance."""
        return self.in_given_order(self.scale**2 * self.fitted.evidence.variance)


def constant_process() -> tuple[Kernel, RankPlan]:
    """Kernel and plan for labels that are judged by the mean alone."""
    return ConstantKernel(1.0, (1e-6, 1e6)), RankPlan(1, 0)


def fit_process(
    task: ProcessTask,
    settings: ProcessSettings,
    random_state: np.random.RandomState,
    progress: Progress,
    similar: FittedProcess | None = None,
) -> FittedProcess:
    """Centre, scale and fit, by the backend of the plan.

    similar : a process that was fitted to labels like these: exact fits begin from its hyperparameters.
    """
    center = center_of(task.target, settings.center, task.kernel)
    centred = task.target - center
    scale = 1.0 if settings.in_label_units else robust_scale(centred)
    scaled, kernel = centred / scale, task.kernel
    options = settings.options(scale)
    if options.tunes:
        kernel = tunable(kernel).starting_from(task.points, float(np.mean(scaled**2)) or 1.0)
    numbers = KernelOnData(kernel, task.points), task.likelihood(center, scale, settings.tails), options
    with clean_interrupts(), blas_threads(scaled.size):
        if task.plan is None:
            fitted, predictor = _exact(numbers, random_state, progress, None if similar is None else similar.fitted)
        else:
            fitted, predictor = fit_low_rank(*numbers, task.plan, random_state, progress)
    check_finite(fitted)
    return FittedProcess(fitted, predictor, center, scale)


def refit_process(process: FittedProcess, task: ProcessTask, settings: ProcessSettings) -> FittedProcess:
    """The same process where the labels of the task say something else of their noise."""
    likelihood = task.likelihood(process.center, process.scale, settings.tails)
    options, predictor, fitted = settings.options(process.scale), process.predictor, process.fitted
    with clean_interrupts(), blas_threads(likelihood.size):
        if isinstance(predictor, LowRankPredictor):
            likelihood = likelihood if predictor.order is None else likelihood.some(predictor.order)
            found, predictor = refit_low_rank(fitted, predictor, likelihood, options)
        else:
            found = refit_exact(fitted, likelihood, options)
            predictor = _exact_predictor(found)
    check_finite(found)
    return replace(process, fitted=found, predictor=predictor)


def _exact(
    numbers: tuple[KernelOnData, MixtureLikelihood, FitOptions],
    random_state: np.random.RandomState,
    progress: Progress,
    similar: Fitted | None,
) -> tuple[Fitted, Predictor]:
    fitted = fit_noise_model(*numbers, random_state, progress, similar)
    return fitted, _exact_predictor(fitted)


def _exact_predictor(fitted: Fitted) -> ExactPredictor:
    kernel = fitted.kernel
    return ExactPredictor(kernel.kernel, kernel.points, fitted.weights, fitted.covariance, fitted.believed_noise)
