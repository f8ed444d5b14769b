"""The stages of a fit, one after the other: prepared data, scale of the labels, mean, process; evidence and decisions follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mislabel._common.progress import Progress, Shares
from mislabel.decisions import calibrate
from mislabel.estimators.atoms_apart import LEAST_BESIDE, ChanceOfAtom, bounds_or_apart, chance_of_atom
from mislabel.estimators.label_scale import AUTO, ScaleChoice, candidates_for, choose_scale, named_scale
from mislabel.estimators.mean import FittedMean, MeanSettings, blocked_mean, fit_mean
from mislabel.estimators.noise_level import NoiseByRow, learn_noise_level
from mislabel.estimators.prepared import PreparedData
from mislabel.estimators.process import (
    FittedProcess,
    ProcessSettings,
    ProcessTask,
    constant_process,
    fit_process,
    refit_process,
)
from mislabel.kernels.adapters import as_kernel
from mislabel.kernels.on_data import take
from mislabel.likelihoods.error_densities import Errors
from mislabel.likelihoods.transforms import Transform
from mislabel.linalg.contract import FloatArray, IntArray

#: Noise is the same in all rows.
NONE = "none"
#: A level that is believed less than this changes nothing worth another fit.
LEAST_STRENGTH = 0.1


@dataclass(frozen=True, eq=False)
class FittedStages:
    """What the stages ended with.

    data : in the order of the fit, on its scale. scale_choice : how that was chosen, where it was left open.
    similarity : the kernel that says which rows are alike.
    noise_by_row, chance : of new rows, where noise depends on the row, and where labels stand apart.
    """

    data: PreparedData
    scale_choice: ScaleChoice | None
    mean: FittedMean
    process: FittedProcess
    similarity: Any
    noise_by_row: NoiseByRow | None = None
    chance: ChanceOfAtom | None = None


@dataclass(frozen=True, eq=False)
class Stages:
    """One fit: its data, what the user chose, and where randomness comes from.

    compares_features : whether rows are compared by numbers, rather than molecules or other objects by a kernel of theirs.
    """

    data: PreparedData
    compares_features: bool
    transform: str
    row_noise: str
    mean_settings: MeanSettings
    process_settings: ProcessSettings
    random_state: np.random.RandomState
    progress: Progress

    @cached_property
    def _shares(self) -> Shares:
        """Of each process that is to be fitted: for bounds, for every scale, for the choice of a mean, and for good."""
        chooses = isinstance(self.mean_settings.mean, str) and self.mean_settings.mean == AUTO
        scales = self.transform == AUTO and self.compares_features
        return Shares(
            self.progress,
            1
            + 2 * self.data.atoms.has_bounds
            + (len(candidates_for(self.data.own_labels)) if scales else 0)
            + (2 if chooses and self.mean_settings.may_choose else 0),
        )

    def run(self, kernel: Any) -> FittedStages:
        """Choose the scale of the labels, fit the mean, then the process; ``kernel`` is the user's own, None for the default."""
        data, chance = self._with_atoms(kernel)
        data, choice = self._on_scale(data, kernel)
        alone = None if choice is None else choice.process

        def on_rows(index: IntArray, mean: FloatArray) -> FittedProcess:
            nonlocal alone
            if alone is not None and not mean.any() and alone.fitted.labels.size == index.size == data.present.size:
                return alone
            found = self._process(data, index, mean, kernel, alone)
            alone = found if alone is None or not mean.any() else alone
            return found

        mean, process = fit_mean(data, self.mean_settings, on_rows, self.random_state, self._shares.tell)
        if process is None:
            process = on_rows(np.arange(data.present.size), mean.out_of_fold)
        if mean.choice is not None:
            blocked = self._blocked(data, choice, mean, process)
            if blocked is not None:
                return replace(blocked, chance=chance)
        process, noise_by_row = self._with_row_noise(data, mean.out_of_fold, process)
        return FittedStages(data, choice, mean, process, process.kernel, noise_by_row, chance)

    def _with_row_noise(
        self, data: PreparedData, mean: FloatArray, process: FittedProcess
    ) -> tuple[FittedProcess, NoiseByRow | None]:
        """The process with a base noise that depends on the row, where that describes the labels better."""
        if self.row_noise == NONE or not self.compares_features or process.fitted.mixture is None:
            return process, None
        self._shares.tell("noise by row")
        labels, expected, variance = data.fit_labels, process.loo_mean + mean, process.loo_variance
        errors = Errors.of(labels, expected, variance, data.transform, data.own_intervals, data.log_beside)
        jobs, known = self.mean_settings.n_jobs, np.where(errors.is_limit, np.nan, errors.error)
        learned = learn_noise_level(data.fit_features, expected, variance, known, self.random_state, jobs)
        if learned is None:
            return process, None
        level, by_row = learned
        found = calibrate(replace(errors, level=level), others_right=data.n_apart)
        if not found.adjusted or found.strength < LEAST_STRENGTH:
            return process, None
        task = replace(self._task(data, mean), relative=np.exp(2.0 * found.strength * level))
        return refit_process(process, task, self.process_settings), replace(by_row, strength=found.strength)

    def _with_atoms(self, kernel: Any) -> tuple[PreparedData, ChanceOfAtom | None]:
        """The data with labels at an atom apart, or, where that describes the labels better, as at a bound; and how often new
        labels are at an atom that stands apart.
        """
        data = self.data
        if not data.atoms.values:
            return data, None
        held = data.atoms.holds(data.own_labels)
        if np.count_nonzero(~held) < LEAST_BESIDE:
            return data, None
        features = data.fit_features if self.compares_features else None
        chance, rule = chance_of_atom(held, features, self.random_state, self.mean_settings.n_jobs)
        everywhere = np.full(data.labels.size, float(np.mean(held)))
        everywhere[data.present] = chance
        data.copies.follow(everywhere)
        apart = data.with_apart(everywhere)
        if not data.atoms.has_bounds:
            return apart, rule
        self._shares.tell("labels at bounds")

        def fit(chosen: PreparedData, index: IntArray) -> FittedProcess:
            return self._process(chosen, index, np.zeros(index.size), kernel)

        found = bounds_or_apart(data, apart, chance, fit, self.random_state)
        if found.chance is None:
            return found, None
        return found, replace(rule, share=float(np.mean(found.chance) / np.mean(everywhere)))

    def _on_scale(self, data: PreparedData, kernel: Any) -> tuple[PreparedData, ScaleChoice | None]:
        """The data on the scale that was asked for, or on the one that suits the labels of a table."""
        labels = data.own_labels
        if self.transform != AUTO:
            return replace(data, transform=named_scale(self.transform, labels)), None
        if not self.compares_features:
            return data, None
        predictions = data.fit_mean_inputs.predictions

        def fit(index: IntArray, transform: Transform) -> FittedProcess:
            mean = np.zeros(index.size) if predictions is None else transform.forward(predictions[index])
            return self._process(replace(data, transform=transform), index, mean, kernel)

        transform, choice = choose_scale(data, fit, self.random_state, self._shares.tell)
        return replace(data, transform=transform), choice

    def _process(
        self, data: PreparedData, index: IntArray, mean: FloatArray, kernel: Any, similar: FittedProcess | None = None
    ) -> FittedProcess:
        """A process on some or all labels that take part, less a mean; ``similar`` is one on labels like these."""
        if index.size == data.present.size:
            task = self._task(data, mean)
        else:
            points, within = take(data.fit_points, index, data.kernel), data.fit_within
            target, known = data.fit_labels[index] - mean, data.fit_variance[index]
            within = None if within is None else within[index].less(mean)
            # That of all points does not mind columns in which these are equal; one for many points is not for few.
            own = data.kernel if data.plan is None else as_kernel(kernel, points)
            right = None if data.fit_right is None else data.fit_right[index]
            task = ProcessTask(own, points, target, known, None, within, right=right)
        return fit_process(task, self.process_settings, self.random_state, self._shares.next(), similar)

    def _task(self, data: PreparedData, mean: FloatArray) -> ProcessTask:
        """All labels that take part, less a mean."""
        within = data.fit_within
        within = None if within is None else within.less(mean)
        target, known = data.fit_labels - mean, data.fit_variance
        return ProcessTask(data.kernel, data.fit_points, target, known, data.plan, within, right=data.fit_right)

    def _blocked(
        self, data: PreparedData, choice: ScaleChoice | None, mean: FittedMean, process: FittedProcess
    ) -> FittedStages | None:
        """The fit with blocked cross-fitting, where neighbouring rows vouch for each other's errors."""
        assert mean.choice is not None
        found = blocked_mean(data, mean.choice, process, self.random_state, self.mean_settings)
        if found is None:
            return None
        data = data.in_row_order()
        kernel, plan = constant_process()
        task = replace(self._task(data, found.out_of_fold), kernel=kernel, plan=plan)
        flat = fit_process(task, self.process_settings, self.random_state, self._shares.next())
        return FittedStages(data, choice, found, flat, process.kernel)
