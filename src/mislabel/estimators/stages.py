"""The stages of a fit, one after the other: prepared data, mean, process; evidence and decisions follow from these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mislabel._common.progress import Progress
from mislabel.estimators.mean import FittedMean, MeanSettings, blocked_mean, fit_mean
from mislabel.estimators.prepared import PreparedData
from mislabel.estimators.process import FittedProcess, ProcessSettings, ProcessTask, constant_process, fit_process
from mislabel.kernels.adapters import as_kernel
from mislabel.kernels.on_data import take
from mislabel.linalg.contract import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FittedStages:
    """What the stages ended with.

    data : in the order of the fit. similarity : the kernel that says which rows are alike.
    """

    data: PreparedData
    mean: FittedMean
    process: FittedProcess
    similarity: Any


@dataclass(frozen=True, eq=False)
class Stages:
    """One fit: its data, what the user chose, and where randomness comes from."""

    data: PreparedData
    mean_settings: MeanSettings
    process_settings: ProcessSettings
    random_state: np.random.RandomState
    progress: Progress

    def run(self, kernel: Any) -> FittedStages:
        """Fit the mean, then the process; ``kernel`` is the user's own, None for the default."""

        def on_rows(index: IntArray, mean: FloatArray) -> FittedProcess:
            return self._process(index, mean, kernel)

        mean, process = fit_mean(self.data, self.mean_settings, on_rows, self.random_state, self.progress)
        if process is None:
            process = self._process(np.arange(self.data.present.size), mean.out_of_fold, kernel)
        if mean.choice is not None:
            blocked = self._blocked(mean, process)
            if blocked is not None:
                return blocked
        return FittedStages(self.data, mean, process, process.kernel)

    def _process(self, index: IntArray, mean: FloatArray, kernel: Any) -> FittedProcess:
        """A process on some of the labels that take part, or all of them, less a mean."""
        data = self.data
        if index.size == data.present.size:
            task = ProcessTask(data.kernel, data.fit_points, data.fit_labels - mean, data.fit_variance, data.plan)
        else:
            points = take(data.fit_points, index, data.kernel)
            target, known = data.fit_labels[index] - mean, data.fit_variance[index]
            task = ProcessTask(as_kernel(kernel, points), points, target, known, None)
        return fit_process(task, self.process_settings, self.random_state, self.progress)

    def _blocked(self, mean: FittedMean, process: FittedProcess) -> FittedStages | None:
        """The fit with blocked cross-fitting, where neighbouring rows vouch for each other's errors."""
        assert mean.choice is not None
        found = blocked_mean(self.data, mean.choice, process, self.random_state, self.mean_settings.n_jobs)
        if found is None:
            return None
        data = self.data.in_row_order()
        kernel, plan = constant_process()
        target = data.fit_labels - found.out_of_fold
        task = ProcessTask(kernel, data.fit_points, target, data.fit_variance, plan)
        flat = fit_process(task, self.process_settings, self.random_state, self.progress)
        return FittedStages(data, found, flat, process.kernel)
