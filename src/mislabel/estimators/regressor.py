"""LabelNoiseRegressor: a scikit-learn regressor that knows how far it can trust each of its labels."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mislabel._common.progress import ProgressReporter
from mislabel.errors import InvalidParameterError
from mislabel.estimators.audits_labels import AuditsLabels
from mislabel.estimators.evidence import evidence_of_labels
from mislabel.estimators.mean import MeanSettings
from mislabel.estimators.new_labels import row_keys, rules_for_new
from mislabel.estimators.pickling import VersionedPickle
from mislabel.estimators.prepared import MeanInputs, PreparedData, RowsAndLabels, check_predictions, prepare
from mislabel.estimators.process import CONSTANT, ProcessSettings, constant_process
from mislabel.estimators.rank_plan import AUTO, RankPlan, plan_on_workers, plan_rank
from mislabel.estimators.stages import FittedStages, Stages
from mislabel.estimators.validation import (
    available_memory,
    check_features,
    check_kernel_matrix,
    check_memory,
    check_objects,
    molecules_and_labels,
    row_ids,
    seeded_generator,
)
from mislabel.kernels.adapters import PrecomputedKernel, as_kernel, compares_objects, tunable
from mislabel.kernels.contract import LazyCollection, RemoteRows
from mislabel.kernels.on_data import take_points
from mislabel.linalg.contract import IntArray
from mislabel.linalg.mapped import mapping_of

_PREDICT_BLOCK = 1024


def _is_lazy(X: Any) -> bool:
    """Whether X is a dask collection."""
    return isinstance(X, LazyCollection)


def _is_elsewhere(points: Any) -> bool:
    """Whether the points' rows are kept by the workers of a cluster."""
    return isinstance(points, RemoteRows)


def _places(data: PreparedData) -> IntArray:
    """Where each label stands in the order of the fit; -1 for those that take no part, copies where their originals are."""
    found = np.full(data.labels.size, -1.0)
    found[data.present] = np.arange(data.present.size)
    data.copies.follow(found)
    return found.astype(np.intp)


class LabelNoiseRegressor(VersionedPickle, AuditsLabels, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process regression in which every label has a noise variance of its own.

    Parameters
    ----------
    kernel : None, "precomputed", "constant", scikit-learn kernel or callable
        None is a good default for tables. "constant" judges labels by the mean model, or by given predictions, alone, and
        needs no features: X may have no columns. Where
        ``tune="none"``, kernels are taken to be in squared label units; where hyperparameters are tuned, labels are first
        scaled to unit (robust) variance.
    noise : {"per-label", "uniform", "none"}
        One noise variance per label, a single one for all, or none: the paper's full, basic and plain models.
    base_noise : "auto" or float
        Variance that every label has, in squared label units. "auto" learns it, at a price per noisy label; 0 is the
        paper's model.
    inference : {"average", "maximum"}
        What is made of labels that may be right or wrong, where the base noise is learned. "average" weighs both
        readings of each label (expectation propagation); "maximum" settles for the likeliest noise variances. A fixed
        base noise, a penalty or a solver other than "auto" imply "maximum".
    tails : {"normal", "student"}
        Of the noise of right labels, where both readings are weighed: a normal distribution, or a Student-t with four degrees of
        freedom.
    penalty, penalty_power : float
        The paper's ``lambda`` and ``p`` in ``lambda * ||noise_variance||_p^p``.
    mean : None, a scikit-learn regressor, or a name
        Its cross-fitted predictions are subtracted first and added back by predict. Names: "boosting", "trees", "linear",
        "half-boosting", "half-trees" (half of what these predict), "none", and "auto", which takes the one of the best
        leave-one-out predictive density (or none).
    cv : None, int, scikit-learn splitter or pairs of positions
        Folds for the cross-fitting of ``mean``; None shuffles rows into five folds, three times.
    label_transform : {"none", "auto", "log", "sqrt", "asinh", "logit"}
        Scale on which right labels spread evenly. "auto" chooses it by leave-one-out predictive density. Predictions, intervals
        and the audit are in label units on every scale; kernels, ``center`` and ``base_noise`` refer to the scale.
    row_noise : {"none", "auto"}
        Whether the noise of right labels may depend on the row. "auto" learns it from features, expected values and how sure
        these are, where that describes the labels better.
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
    storage : {"double", "file"}
        How the columns of a low-rank fit are kept; "file" is single precision in a temporary file, without exact blocks.
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
    has_predictions_ : whether predictions of another model took the place of a mean.
    label_transform_, scale_choice_ : the scale of the fit, and how it was chosen for ``label_transform="auto"``, else None.
    atoms_, bounds_ : values that many labels have; those of them that are taken for bounds.
    mean_choice_ : which mean function was chosen, and why, for ``mean="auto"``; else None.
    rank_, captured_ : rank of a low-rank fit (else None), and the share of the kernel's variance that it captures.
    table_ : how columns of an audited table became features, which predict does with new rows; None after a fit to numbers.
    kernel_ : the kernel with its final hyperparameters; it describes ``(label_transform_.forward(y) - center_) / scale_``.
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
        tails: str = "normal",
        mean: Any = None,
        cv: Any = None,
        label_transform: str = "none",
        row_noise: str = "none",
        center: float | str = "median",
        solver: str = "auto",
        tune: str = "bilevel",
        n_restarts: int = 0,
        rank: int | str | None = None,
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
        self.tails = tails
        self.mean = mean
        self.cv = cv
        self.label_transform = label_transform
        self.row_noise = row_noise
        self.center = center
        self.solver = solver
        self.tune = tune
        self.n_restarts = n_restarts
        self.rank = rank
        self.storage = storage
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        y_err: Any = None,
        *,
        censored: Any = None,
        groups: Any = None,
        mean_weights: Any = None,
        mean_features: Any = None,
        predictions: Any = None,
        known_right: Any = None,
        client: Any = None,
    ) -> LabelNoiseRegressor:
        """Fit to features (or graphs, molecules, a molecule file, or a kernel matrix) and labels.

        With a graph kernel, X may be the path of a molecule file and y the name of one of its properties.
        ``y_err`` are known measurement standard deviations, one per label. With a dask ``client``, or where X is a dask
        array or dataframe, rows stay on the workers and the fit is of low rank.

        ``censored`` says of every label whether it is an upper limit (-1 or "<"), a lower one (1 or ">") or exact (0 or "=").

        ``groups`` and ``mean_weights`` (sample weights) are honoured when ``mean`` is cross-fitted, and ``mean_features`` is
        what it is fitted to instead of X, for instance a frame with named columns. ``predictions`` take the place of
        ``mean``: one per label, by somebody's own model that has not seen that label.

        ``known_right`` says of every label whether somebody found it to be right: where right and wrong labels are averaged over
        it has the noise of a right one, however unlikely the others find it.
        """
        if client is not None or _is_lazy(X):
            X, y = import_module("mislabel.distributed").distributed_data(X, y, client)
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)
        inputs = MeanInputs(mean_features, mean_weights, groups, predictions)
        fresh._fit(X, y, (y_err, censored, known_right), inputs)
        # In one step, and the last one: a fit that fails or is interrupted leaves the estimator as it was.
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any, known: tuple[Any, Any, Any], inputs: MeanInputs) -> None:
        """One stage after the other: prepared data, mean and process, evidence; ``known`` is what is known of the labels."""
        if compares_objects(self.kernel):
            X, y = molecules_and_labels(X, y)
        rows = row_ids(X, y)
        data = self._prepared(RowsAndLabels(rows, self._check_points(X, rows), y, *known), inputs)
        with ProgressReporter(self.verbose) as progress:
            state = seeded_generator(self.random_state)
            compares_features = not (compares_objects(self.kernel) or self._is("precomputed"))
            settings = self._mean_settings(data, compares_features), self._process_settings()
            stages = Stages(data, compares_features, self.label_transform, self.row_noise, *settings, state, progress)
            found = stages.run(None if self.kernel == CONSTANT else self.kernel)
        self._store(found)

    def _prepared(self, given: RowsAndLabels, inputs: MeanInputs) -> PreparedData:
        points, constant = given.points, self._is(CONSTANT)
        is_matrix = self._is("precomputed")
        return prepare(
            given,
            replace(inputs, predictions=check_predictions(inputs.predictions, len(given.rows))),
            kernel=constant_process()[0] if constant else self.kernel,
            missing=self.missing,
            plan_for=(lambda *_: constant_process()[1]) if constant else self._plan,
            keeps_order=is_matrix or compares_objects(self.kernel) or not isinstance(points, np.ndarray),
            finds_copies=not is_matrix and mapping_of(points) is None,
            learns_noise=self.noise == "per-label" and self.base_noise == "auto",
        )

    def _mean_settings(self, data: PreparedData, compares_features: bool) -> MeanSettings:
        features = isinstance(data.fit_features, np.ndarray) and compares_features
        return MeanSettings(self.mean, self.cv, self.n_jobs, features)

    def _process_settings(self) -> ProcessSettings:
        in_label_units = self.tune == "none" and self.kernel is not None
        names = [field.name for field in fields(ProcessSettings) if field.name != "in_label_units"]
        return ProcessSettings(**{name: getattr(self, name) for name in names}, in_label_units=in_label_units)

    def _is(self, name: str) -> bool:
        """Whether the kernel was given by this name."""
        return isinstance(self.kernel, str) and self.kernel == name

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        prior_variance: Any = None,
        *,
        mean_features: Any = None,
        predictions: Any = None,
    ) -> Any:
        """Predict the clean label, with its standard deviation or covariance on request.

        For a precomputed kernel X holds the kernel between new and training points; standard deviations then also need
        ``prior_variance``, the kernel of each new point with itself. ``mean_features`` or ``predictions`` of the new rows
        are needed where the fit had them. The model of an audited table takes rows of it, or like it, as a frame.
        """
        check_is_fitted(self)
        if return_std and return_cov:
            raise InvalidParameterError("return_std and return_cov cannot both be requested.")
        if self.table_ is not None and self.table_.takes(X):
            X, columns = self.table_.of_rows(X)
            mean_features = columns if mean_features is None else mean_features
        points = self._check_new_points(X)
        mean = self._mean_at(points, MeanInputs(mean_features, predictions=predictions))
        if return_cov:
            covariance = self.scale_**2 * (self.kernel_(points) - self._predictor.explained(points))
            expected = mean + self.scale_ * self._predictor.signal(points)
            slope = self.label_transform_.slope(self.label_transform_.inverse(expected))
            return self._as_labels(expected), covariance / np.outer(slope, slope)
        expected, std = self._on_scale(points, mean, return_std, prior_variance)
        found = self._as_labels(expected)
        return (found, self.label_transform_.spread(expected, std)) if return_std else found

    def _as_labels(self, values: np.ndarray) -> np.ndarray:
        """Values on the scale of the fit as labels, which end at the bounds."""
        return np.asarray(np.clip(self.label_transform_.inverse(values), self.bounds_.low, self.bounds_.high))

    def _on_scale(
        self, points: Any, mean: Any, return_std: bool, prior_variance: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Prediction and its standard deviation (zero unless requested) on the scale of the fit; ``mean`` is there, too."""
        signal, variance = self._signal_at(points, return_std)
        if not return_std:
            return mean + self.scale_ * signal, variance
        if prior_variance is None:
            prior = self.kernel_.diag(points)
        else:
            prior = np.asarray(prior_variance, dtype=float) * tunable(self.kernel_).amplitude
        return mean + self.scale_ * signal, self.scale_ * np.sqrt(np.maximum(prior - variance, 0.0))

    def _signal_at(self, points: Any, with_variance: bool) -> tuple[np.ndarray, np.ndarray]:
        """The signal at new points, some at a time, and how much the labels reduce its variance on request."""
        size = len(points)
        signal, variance = np.empty(size), np.zeros(size)
        for start in range(0, size, _PREDICT_BLOCK):
            block = points[start : start + _PREDICT_BLOCK]
            signal[start : start + _PREDICT_BLOCK] = self._predictor.signal(block)
            if with_variance:
                variance[start : start + _PREDICT_BLOCK] = self._predictor.explained_variance(block)
        return signal, variance

    def _mean_at(self, points: Any, inputs: MeanInputs) -> Any:
        """Centre plus what the mean expects of new rows, on the scale of the fit."""
        if self.has_predictions_:
            given = check_predictions(inputs.predictions, len(points))
            if given is None:
                raise InvalidParameterError(
                    "the fit was made with predictions: pass those of the new rows to predict, too."
                )
            return self.center_ + self.label_transform_.forward(given)
        if self.mean_model_ is None:
            return self.center_
        return self.center_ + self.mean_model_.predict(points if inputs.features is None else inputs.features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is("precomputed")
        return tags

    def _plan(self, points: Any, labels: np.ndarray, present: int) -> RankPlan | None:
        """Exact (None) or of which rank, for the number of labels that are present; refuses what does not fit into memory."""
        if _is_elsewhere(points):
            on_workers = plan_on_workers(self.rank, present)
            points.check_memory(on_workers.rank)
            return on_workers
        available = available_memory(self.memory)
        plan = plan_rank(self.rank, present, available, self.storage)
        if plan is None:
            check_memory(labels.size, available)
        return plan

    def _check_points(self, X: Any, rows: np.ndarray) -> Any:
        if _is_elsewhere(X):
            left_open = self.mean is None or (isinstance(self.mean, str) and self.mean in ("none", AUTO))
            if compares_objects(self.kernel) or self._is("precomputed") or not (left_open or X.local is not None):
                raise InvalidParameterError(
                    "rows on a cluster need a kernel on features and mean=None: compute X first to use other models."
                )
            self.n_features_in_ = X.shape[1]
            return X
        if self._is("precomputed"):
            matrix = check_kernel_matrix(X)
            self.n_features_in_ = matrix.shape[1]
            return matrix
        if compares_objects(self.kernel):
            return check_objects(X, self.kernel)
        points = check_features(X, rows, self._least_features())
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
        if compares_objects(self.kernel):
            return check_objects(molecules_and_labels(X, None)[0], self.kernel_)
        points = check_features(X, least=self._least_features())
        validate_data(self, X, skip_check_array=True, reset=False)
        return points

    def _least_features(self) -> int:
        """A process that is the same everywhere compares no rows."""
        return 0 if self._is(CONSTANT) else 1

    def _store(self, found: FittedStages) -> None:
        """Keep what was learned; from here on, nothing is fitted."""
        data, process = found.data, found.process
        self.kernel_ = process.kernel
        self.center_, self.scale_ = process.center, process.scale
        self.label_transform_, self.scale_choice_ = data.transform, found.scale_choice
        self.atoms_, self.bounds_ = data.atoms, data.bounds
        self.mean_model_, self.mean_choice_ = found.mean.model, found.mean.choice
        self._points, self._fit_points = data.points, data.fit_points
        self._present, self._place = data.present, _places(data)
        self._predictor = process.predictor
        if _is_elsewhere(data.points):
            # What is needed from here on is in this process: the workers may go.
            self._points, self._fit_points = data.points.local, None
            self._predictor = process.predictor.without_rows()
        self.rank_, self.captured_ = self._predictor.rank, self._predictor.captured
        self.rows_, self.labels_ = data.rows, data.labels
        self.table_: Any = None
        self.set_aside_, self.set_aside_reason_ = data.aside.positions, data.aside.sentence(data.rows, data.labels)
        self.n_copies_ = int(data.copies.positions.size)
        self.has_predictions_ = data.mean_inputs.predictions is not None
        self._similarity = found.similarity
        if self._is(CONSTANT):
            # Without features no row is like another.
            self._points = self._points if self.n_features_in_ else None
            self._similarity = None if self._points is None else as_kernel(None, self._points)
        self._calibration = None
        self._rules, self._row_keys = rules_for_new(found, self.tails), row_keys(data)
        self._store_evidence(found)
        self._store_solver(process.fitted, process.scale)

    def _store_evidence(self, found: FittedStages) -> None:
        data, process = found.data, found.process
        order = process.predictor.order

        def predict_at(absent: np.ndarray) -> Any:
            inputs, prior = data.mean_inputs.rows(absent), None
            if isinstance(self.kernel_, PrecomputedKernel):
                prior = data.points.diagonal()[absent]
                present = data.present if order is None else data.present[order]
                points = data.points[np.ix_(absent, present)]
            else:
                points = take_points(data.points, absent)
            return self._on_scale(points, self._mean_at(points, inputs), True, prior)

        self._evidence = evidence_of_labels(process, found.mean.out_of_fold, data, predict_at)
        evidence = self._evidence.in_label_units
        self.noise_variance_, self.label_noise_ = evidence.noise_variance, evidence.label_noise
        self.loo_mean_, self.loo_variance_ = evidence.expected, evidence.variance
        self.loo_error_, self.z_ = evidence.error, evidence.z
        self.corrected_labels_ = evidence.corrected

    def _store_solver(self, fitted: Any, scale: float) -> None:
        self.base_noise_variance_ = fitted.base * scale**2
        self.jitter_ = fitted.jitter * scale**2
        self.base_noise_status_ = fitted.status
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
