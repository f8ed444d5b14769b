"""LabelNoiseRegressor: a scikit-learn regressor that knows how far it can trust each of its labels."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from mislabel.compiled_loops import clean_interrupts
from mislabel.decisions import Calibration, Evidence, audit_table, calibrate
from mislabel.errors import InvalidParameterError
from mislabel.estimators.copies import Copies
from mislabel.estimators.cross_fit import cross_fitted_mean
from mislabel.estimators.fitting import FitOptions, check_finite, fit_noise_model
from mislabel.estimators.label_units import LabelEvidence, center_of, robust_scale, rounding_variance
from mislabel.estimators.low_rank_fit import RankPlan, fit_low_rank, kernel_of_many, plan_on_workers, plan_rank
from mislabel.estimators.means import AUTO, MeanChoice, choose_mean, mean_named
from mislabel.estimators.prediction import ExactPredictor, Predictor
from mislabel.estimators.row_order import by_content
from mislabel.estimators.series import SERIES_FROM, judged_by_stretches, series_correlation
from mislabel.estimators.set_aside import SetAside
from mislabel.estimators.validation import (
    available_memory,
    check_features,
    check_kernel_matrix,
    check_label_errors,
    check_label_range,
    check_labels,
    check_memory,
    check_objects,
    is_number,
    molecules_and_labels,
    row_ids,
    seeded_generator,
)
from mislabel.kernels.adapters import PrecomputedKernel, as_kernel
from mislabel.kernels.on_data import KernelOnData, take, take_points
from mislabel.linalg.mapped import mapping_of
from mislabel.linalg.threads import blas_threads
from mislabel.noise.penalty import Penalty
from mislabel.progress import ProgressReporter

_PREDICT_BLOCK = 1024
#: Known variances above this, in units of the labels' own, say that a label says nothing: larger ones cost digits, no more.
LARGEST_KNOWN = 1e12


def _is_lazy(X: Any) -> bool:
    """Whether X is a dask collection."""
    return hasattr(X, "__dask_graph__")


def _is_elsewhere(points: Any) -> bool:
    """Whether the points' rows are kept by the workers of a cluster."""
    return hasattr(points, "take_rows")


class LabelNoiseRegressor(RegressorMixin, BaseEstimator):
    """Gaussian process regression in which every label has a noise variance of its own.

    Parameters
    ----------
    kernel : None, "precomputed", scikit-learn kernel or callable
        None is a good default for tables. Where ``tune="none"``, kernels are taken to be in squared label units; where
        hyperparameters are tuned, labels are first scaled to unit (robust) variance.
    noise : {"per-label", "uniform", "none"}
        One noise variance per label, a single one for all, or none: the paper's full, basic and plain models.
    base_noise : "auto" or float
        Variance that every label has, in squared label units. "auto" learns it, at a price per noisy label; 0 is the
        paper's model.
    inference : {"average", "maximum"}
        What is made of labels that may be right or wrong, where the base noise is learned. "average" weighs both
        readings of each label (expectation propagation); "maximum" settles for the likeliest noise variances. A fixed
        base noise, a penalty or a solver other than "auto" imply "maximum".
    penalty, penalty_power : float
        The paper's ``lambda`` and ``p`` in ``lambda * ||noise_variance||_p^p``.
    mean : None, a scikit-learn regressor, or a name
        Its cross-fitted predictions are subtracted first and added back by predict. Names: "boosting", "trees", "linear",
        "half-boosting", "half-trees" (half of what these predict), "none", and "auto", which takes the one of the best
        leave-one-out predictive density (or none).
    center : {"median", "none"} or float
        What is subtracted from the labels (after ``mean``).
    solver : str
        "auto", "multiplicative" (the paper's), "sqrt", "lbfgs", "gradient", "momentum", "rmsprop", "adam".
    tune : {"bilevel", "alternating", "joint", "none"}
        How hyperparameters are found together with the noise.
    n_restarts : int
        Further starts for the hyperparameters, drawn from ``random_state``.
    rank : None, int or "auto"
        None fits exactly, at a cost of n^3. A number is the rank of a low-rank fit (hyperparameters from a subset, similarities
        among near neighbours exact where memory allows). "auto" is exact up to 5,000 labels and low-rank beyond, with
        as many columns as cost little and leave little of the kernel.
    inducing : {"pivoted", "kmeans"}
        Where the columns of a low-rank fit come from: points drawn one after the other by what the earlier ones leave
        unexplained (any kernel), or the centres of clusters (features only).
    storage : {"double", "single", "file"}
        How they are kept; "file" is single precision in a temporary file. Without "double" there are no exact blocks.
    memory : None, float or str
        Bytes, or a text like "4GB", that the process may hold; None is all that is free. What does not fit is refused
        before it begins.
    tol : float
        Residual of the optimality conditions at which the noise solver stops. (Averaging stops when the evidence stays put.)
    max_iter : int or None
        Iterations of the noise solver; None is plenty.
    missing : {"raise", "predict"}
        What to do with NaN labels: complain, or fill them in.
    random_state : int or RandomState
        Seed of everything random.
    n_jobs : int or None
        Processes for the cross-fitting of ``mean``. Linear algebra uses BLAS threads.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    All per-label arrays are in label units and in the order of ``y``.

    noise_variance_ : noise variance of each label beyond the base noise.
    base_noise_variance_ : variance every label has; the numerical ``jitter_`` is part of it.
    base_noise_status_ : "found", "majority wrong" or "absorbed" where it was learned, else None.
    set_aside_, set_aside_reason_ : positions of labels beyond any plausible scale (fill values, typing errors), which take no
        part in any fit, are predicted from the others and always suspect; and one sentence that says so. Empty as a rule.
    n_copies_ : rows that are equal to an earlier one, label included: they take part in the fit once.
    loo_mean_, loo_variance_ : what the other labels predict, and its variance (base noise included, the label's own
        noise variance not).
    loo_error_, z_ : label minus ``loo_mean_``; the same over the square root of ``loo_variance_``.
    label_noise_ : posterior mean of each label's error.
    corrected_labels_ : posterior mean of each clean label.
    objective_, objective_path_ : ``log|K + S| + y'(K + S)^-1 y`` plus penalties, at the end and after every iteration.
        The path is that of the descent that was kept and never rises. Averaging is no descent, it matches moments: of its
        iterations the path holds those that lie above all later ones.
    objective_ of an average is minus twice the logarithm of its evidence, less ``n log 2 pi``, which equals the above where
        no label is in doubt; residual_ is then its change per label in the last iteration.
    residual_, converged_, n_iter_, n_factorizations_, solver_cost_ : how the solver ended; cost in n^3 operations.
    mean_choice_ : which mean function was chosen, and why, for ``mean="auto"``; else None.
    rank_, captured_ : rank of a low-rank fit (else None), and the share of the kernel's variance that it captures.
    kernel_ : the kernel with its final hyperparameters; it describes ``(y - center_) / scale_``.
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        noise: str = "per-label",
        base_noise: float | str = "auto",
        penalty: float = 0.0,
        penalty_power: float = 1.0,
        inference: str = "average",
        mean: Any = None,
        center: float | str = "median",
        solver: str = "auto",
        tune: str = "bilevel",
        n_restarts: int = 0,
        rank: int | str | None = None,
        inducing: str = "pivoted",
        storage: str = "double",
        memory: float | str | None = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        missing: str = "raise",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.base_noise = base_noise
        self.penalty = penalty
        self.penalty_power = penalty_power
        self.inference = inference
        self.mean = mean
        self.center = center
        self.solver = solver
        self.tune = tune
        self.n_restarts = n_restarts
        self.rank = rank
        self.inducing = inducing
        self.storage = storage
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, y_err: Any = None, *, client: Any = None) -> LabelNoiseRegressor:
        """Fit to features (or graphs, molecules, a molecule file, or a kernel matrix) and labels.

        With a graph kernel, X may be the path of a molecule file and y the name of one of its properties.
        ``y_err`` are known measurement standard deviations, one per label. With a dask ``client``, or where X is a dask
        array or dataframe, rows stay on the workers and the fit is of low rank.
        """
        if client is not None or _is_lazy(X):
            X, y = import_module("mislabel.distributed").distributed_data(X, y, client)
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)
        fresh._fit(X, y, y_err, None, None)
        # In one step, and the last one: a fit that fails or is interrupted leaves the estimator as it was.
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any, y_err: Any, series: MeanChoice | None, similarity: Any) -> None:
        """Fit; a second time as a ``series``, ``similarity`` being the kernel of the first, where rows turn out to be one."""
        if self._takes_objects():
            X, y = molecules_and_labels(X, y)
        rows = row_ids(X, y)
        points = self._check_points(X, rows)
        labels = check_labels(y, rows, self.missing)
        check_consistent_length(points, labels)
        aside = SetAside.among(labels)
        present = np.flatnonzero(~(np.isnan(labels) | aside.mask(labels.size)))
        check_label_range(labels, present, rows)
        plan = self._plan(points, labels, present.size)
        known_variance = check_label_errors(y_err, labels.size, rows)
        random_state = seeded_generator(self.random_state)
        copies = self._copies(points, labels, known_variance, present)
        present = copies.without(present)
        if y_err is None and self.noise == "per-label" and self.base_noise == "auto":
            known_variance += rounding_variance(labels[present])
        kernel = as_kernel(self.kernel, points) if plan is None or self.kernel is not None else kernel_of_many(points)
        if series is None and plan is None and self._may_reorder(points):
            present = present[by_content(points, labels, present)]
        fit_points = points
        if present.size < labels.size or np.any(np.diff(present) < 0):
            fit_points = points.kept(present) if _is_elsewhere(points) else take(points, present, kernel)
        with ProgressReporter(self.verbose) as progress:
            target = labels[present]
            if series is None:
                mean, choice = self._mean_for(fit_points, target, known_variance[present], random_state, progress)
            else:
                mean, choice = mean_named(series.name), series
            if series is not None:
                kernel, plan = ConstantKernel(1.0, (1e-6, 1e6)), RankPlan(1, 0)
            mean_model = None
            if mean is not None:
                progress("cross-fitting the mean model", 0.0)
                way = cross_fitted_mean if series is None else judged_by_stretches
                out_of_fold, mean_model = way(mean, fit_points, target, random_state, self.n_jobs)
                target = target - out_of_fold
            center = center_of(target, self.center, kernel)
            scale = self._scale_of(target - center)
            scaled = (target - center) / scale
            if hasattr(kernel, "starting_from") and self.tune != "none":
                kernel = kernel.starting_from(fit_points, float(np.mean(scaled**2)) or 1.0)
            with clean_interrupts(), blas_threads(present.size):
                task = (
                    KernelOnData(kernel, fit_points),
                    scaled,
                    np.minimum(known_variance[present] / scale**2, LARGEST_KNOWN),
                    self._options(scale),
                )
                predictor: Predictor
                if plan is None:
                    fitted = fit_noise_model(*task, random_state, progress)
                    predictor = ExactPredictor(fitted.kernel.kernel, fit_points, fitted.weights, fitted.covariance)
                else:
                    fitted, predictor = fit_low_rank(*task, plan, random_state, progress)
        check_finite(fitted)
        self.kernel_ = fitted.kernel.kernel
        self.center_, self.scale_ = center, scale
        self.mean_model_ = mean_model
        self.mean_choice_ = choice
        self._points, self._fit_points = points, fit_points
        self._predictor = predictor
        if _is_elsewhere(points):
            # What is needed from here on is in this process: the workers may go.
            self._points, self._fit_points = points.local, None
            self._predictor = predictor.without_rows()
        self.rank_, self.captured_ = predictor.rank, predictor.captured
        self.rows_, self.labels_ = rows, labels
        self.set_aside_, self.set_aside_reason_ = aside.positions, aside.sentence(rows, labels)
        self._store_evidence(fitted, points, present, labels, copies)
        self._store_solver(fitted, scale)
        self._similarity = fitted.kernel.kernel if similarity is None else similarity
        if choice is not None and choice.series is None:
            shared = series_correlation(self.z_[np.sort(present)])
            if shared >= SERIES_FROM:
                # Neighbouring rows vouch for each other's errors: judge each stretch by models that have not seen it.
                self._fit(X, y, y_err, replace(choice, name="panel", series=shared), self.kernel_)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, prior_variance: Any = None) -> Any:
        """Predict the clean label, with its standard deviation or covariance on request.

        For a precomputed kernel X holds the kernel between new and training points; standard deviations then also need
        ``prior_variance``, the kernel of each new point with itself.
        """
        check_is_fitted(self)
        if return_std and return_cov:
            raise InvalidParameterError("return_std and return_cov cannot both be asked for.")
        points = self._check_new_points(X)
        if return_cov:
            covariance = self.kernel_(points) - self._predictor.explained(points)
            return self._label_units(self._predictor.signal(points), points), self.scale_**2 * covariance
        size = len(points)
        signal, variance = np.empty(size), np.empty(size)
        for start in range(0, size, _PREDICT_BLOCK):
            block = points[start : start + _PREDICT_BLOCK]
            signal[start : start + _PREDICT_BLOCK] = self._predictor.signal(block)
            if return_std:
                variance[start : start + _PREDICT_BLOCK] = self._predictor.explained_variance(block)
        mean = self._label_units(signal, points)
        if not return_std:
            return mean
        if prior_variance is None:
            prior = self.kernel_.diag(points)
        else:
            prior = np.asarray(prior_variance, dtype=float) * getattr(self.kernel_, "amplitude", 1.0)
        return mean, self.scale_ * np.sqrt(np.maximum(prior - variance, 0.0))

    def audit(
        self,
        fdr: float = 0.05,
        *,
        score: str = "odds",
        threshold: str = "fdr",
        cutoff: float | None = None,
        confidence: float = 0.95,
        calibrated: bool = True,
        by_position: bool = False,
    ) -> pd.DataFrame:
        """One row per label, the most suspicious first.

        Parameters
        ----------
        fdr : expected fraction of clean labels among those called suspect (for ``threshold="fdr"``).
        score : orders the table. "odds" (logarithm of the odds that a label is wrong), "z", "noise_variance" (the paper's),
            "loo_error" or "gain".
        threshold, cutoff : "fdr", or "top-k" with the number of labels, or "z" with the number of standard deviations.
        confidence : probability content of the interval around the expected label.
        calibrated : whether z, p-values and intervals follow ``calibration_``: where clean labels spread more widely
            than the model promises, as those of most real tables do, they say so. False takes ``z_`` as it is.
        by_position : whether ``row`` is the position of the label in y instead of the user's own id.
        """
        check_is_fitted(self)
        if threshold == "fdr":
            cutoff = fdr
        elif cutoff is None:
            raise InvalidParameterError(f"threshold={threshold!r} needs a cutoff, for example cutoff=3.")
        evidence = self.calibrated_evidence_ if calibrated else self.calibration_.with_wrong_group(self._evidence)
        if by_position:
            evidence = replace(evidence, rows=np.arange(evidence.label.size))
        return audit_table(evidence, score=score, threshold=threshold, cutoff=cutoff, confidence=confidence)

    @property
    def calibration_(self) -> Calibration:
        """How far leave-one-out errors spread, compared with ``loo_variance_``; found when first asked for."""
        check_is_fitted(self)
        if self._calibration is None:
            # Labels that were set aside say nothing of how far others spread.
            error = np.where(self._evidence.absurd, np.nan, self.loo_error_)
            self._calibration = calibrate(error, self.loo_variance_, self.loo_mean_)
        return self._calibration

    @property
    def calibrated_evidence_(self) -> Evidence:
        """What the default audit is decided from, one entry per label in the order of y."""
        return self.calibration_.apply(self._evidence)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _plan(self, points: Any, labels: np.ndarray, present: int) -> RankPlan | None:
        """Exact (None) or of which rank, for the number of labels that are present; refuses what does not fit into memory."""
        if _is_elsewhere(points):
            if np.isnan(labels).any():
                raise InvalidParameterError("rows on a cluster need all their labels: drop those without one first.")
            plan = plan_on_workers(self.rank, present, self.inducing)
            points.check_memory(plan.rank)
            return plan
        available = available_memory(self.memory)
        plan = plan_rank(self.rank, present, available, self.inducing, self.storage)
        if plan is None:
            check_memory(labels.size, available)
        return plan

    def _may_reorder(self, points: Any) -> bool:
        """Whether the rows of an exact fit may come in another order: not those of kernel matrices, or other objects."""
        return not (isinstance(self.kernel, str) or self._takes_objects()) and isinstance(points, np.ndarray)

    def _check_points(self, X: Any, rows: np.ndarray) -> Any:
        if _is_elsewhere(X):
            if self._takes_objects() or isinstance(self.kernel, str) or self.mean not in (None, "none", AUTO):
                raise InvalidParameterError(
                    "rows on a cluster need a kernel on features and mean=None: compute X first to use other models."
                )
            self.n_features_in_ = X.shape[1]
            return X
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            matrix = check_kernel_matrix(X)
            self.n_features_in_ = matrix.shape[1]
            return matrix
        if self._takes_objects():
            return check_objects(X, self.kernel)
        points = check_features(X, rows)
        validate_data(self, X, skip_check_array=True)
        return points

    def _check_new_points(self, X: Any) -> Any:
        if isinstance(self.kernel_, PrecomputedKernel):
            points = check_features(X)
            if points.shape[1] != len(self._fit_points):
                raise InvalidParameterError(
                    f"X has {points.shape[1]} features, but LabelNoiseRegressor is expecting {len(self._fit_points)} "
                    "features as input: the kernel between each new point and every training point."
                )
            return points
        if self._takes_objects():
            return check_objects(molecules_and_labels(X, None)[0], self.kernel_)
        points = check_features(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return points

    def _mean_for(
        self, points: Any, target: np.ndarray, known_variance: np.ndarray, random_state: Any, progress: Any
    ) -> tuple[Any, MeanChoice | None]:
        """The mean function to use, and how it was chosen where that was left open."""
        if not isinstance(self.mean, str):
            return self.mean, None
        if self.mean != AUTO:
            return mean_named(self.mean), None
        if _is_elsewhere(points) or self._takes_objects() or isinstance(self.kernel, str) or not np.ptp(target):
            return None, None
        seed = int(random_state.randint(np.iinfo(np.int32).max))
        choice = choose_mean(self, points, target, np.sqrt(known_variance), seed, progress)
        return mean_named(choice.name), choice

    def _takes_objects(self) -> bool:
        """Whether the kernel works on objects that are not rows of numbers."""
        if self.kernel is None or isinstance(self.kernel, str):
            return False
        if hasattr(self.kernel, "requires_vector_input"):
            return not self.kernel.requires_vector_input
        return callable(self.kernel)

    def _options(self, scale: float) -> FitOptions:
        if self.base_noise == "auto":
            base = None
        elif not is_number(self.base_noise) or not (np.isfinite(self.base_noise) and self.base_noise >= 0):
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

    def _scale_of(self, centred: np.ndarray) -> float:
        """Robust scale of the labels; one where the kernel is used as it is, in label units."""
        return 1.0 if self.tune == "none" and self.kernel is not None else robust_scale(centred)

    def _label_units(self, signal: np.ndarray, points: Any) -> np.ndarray:
        mean = self.center_ + self.scale_ * signal
        return mean if self.mean_model_ is None else mean + self.mean_model_.predict(points)

    def _copies(self, points: Any, labels: np.ndarray, known_variance: np.ndarray, present: np.ndarray) -> Copies:
        """Rows that do not take part, since another like them does; kernel matrices and files are taken as they are."""
        if isinstance(self.kernel, str) or mapping_of(points) is not None:
            return Copies.none()
        return Copies.among(points, (labels, known_variance), present)

    def _store_evidence(
        self, fitted: Any, points: Any, present: np.ndarray, labels: np.ndarray, copies: Copies
    ) -> None:
        if self._predictor.order is not None:
            # A low-rank fit keeps similar points together; evidence is told in the order of y.
            present = present[self._predictor.order]

        def predict_at(absent: np.ndarray) -> Any:
            if isinstance(self.kernel_, PrecomputedKernel):
                prior = points.diagonal()[absent]
                return self.predict(points[np.ix_(absent, present)], return_std=True, prior_variance=prior)
            return self.predict(take_points(points, absent), return_std=True)

        found = LabelEvidence.of(fitted, labels, present, self.scale_, predict_at, copies, self.set_aside_)
        self.base_noise_variance_ = fitted.base * self.scale_**2
        self.jitter_ = fitted.jitter * self.scale_**2
        self.base_noise_status_ = fitted.status
        self.n_copies_ = int(copies.positions.size)
        self.noise_variance_ = found.noise_variance
        self.loo_mean_, self.loo_variance_ = found.loo_mean, found.loo_variance
        self.loo_error_, self.z_ = found.loo_error, found.z
        self.label_noise_, self.corrected_labels_ = found.label_noise, found.corrected
        self._calibration: Calibration | None = None
        aside = np.isin(np.arange(labels.size), self.set_aside_)
        self._evidence = found.for_decisions(self.rows_, labels, aside)

    def _store_solver(self, fitted: Any, scale: float) -> None:
        ending = fitted.ending
        # log|K + S| of labels measured in another unit differs by a constant.
        shift = 2.0 * fitted.noise.size * np.log(scale)
        self.objective_ = float(ending.objective + shift)
        self.objective_path_ = ending.objective_path + shift
        self.residual_ = float(ending.residual)
        self.converged_ = bool(ending.converged)
        self.n_iter_ = ending.n_iter
        self.n_factorizations_ = fitted.n_factorizations
        self.solver_cost_ = float(fitted.cost)
