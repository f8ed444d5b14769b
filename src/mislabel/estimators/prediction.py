"""What predicts new points once a fit is done: exactly, or by low rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mislabel.kernels.inducing import Blocks, PivotedFactor
from mislabel.kernels.on_data import take_points
from mislabel.linalg.contract import Covariance, FloatArray, IntArray
from mislabel.linalg.low_rank import LowRankSignal
from mislabel.linalg.low_rank_blocks import BlockLowRankSignal


class Predictor(Protocol):
    """The signal at new points, centred and scaled, and how much the labels tell about it.

    order : position in the labels of every row of ``covariance``; None where it is the same.
    rank, captured : how many columns of the kernel are used (None: all), and how much of it they explain.
    """

    @property
    def order(self) -> IntArray | None:
        """None where rows come in the order of the labels."""

    @property
    def rank(self) -> int | None:
        """None where all of the kernel is used."""

    @property
    def captured(self) -> float:
        """Share of the kernel's variance that is used."""

    def without_rows(self) -> Predictor:
        """The same without what only the labelled points need."""

    def signal(self, new_points: Any) -> FloatArray:
        """The expected signal."""

    def explained(self, new_points: Any) -> FloatArray:
        """How much the labels reduce the covariance of new points."""

    def explained_variance(self, new_points: Any) -> FloatArray:
        """The diagonal of that."""


@dataclass(frozen=True, eq=False)
class ExactPredictor:
    """By the kernel with all labelled points.

    noise : what the covariance has beside the kernel.
    """

    kernel: Any
    points: Any
    weights: FloatArray
    covariance: Covariance
    noise: FloatArray
    order: None = None
    rank: None = None
    captured: float = 1.0

    def signal(self, new_points: Any) -> FloatArray:
        """The expected signal."""
        return np.asarray(self.kernel(new_points, self.points) @ self.weights)

    def explained(self, new_points: Any) -> FloatArray:
        """How much the labels reduce the covariance of new points."""
        cross, solved = self._solved(new_points)
        return np.asarray(cross @ solved)

    def explained_variance(self, new_points: Any) -> FloatArray:
        """The diagonal of that, without the rest."""
        cross, solved = self._solved(new_points)
        return np.asarray(np.einsum("ij,ji->i", cross, solved))

    def without_rows(self) -> ExactPredictor:
        """The same: every labelled point is needed."""
        return self

    def _solved(self, new_points: Any) -> tuple[FloatArray, FloatArray]:
        cross = self.kernel(new_points, self.points)
        return cross, self.covariance.solve(np.asfortranarray(cross.T))


@dataclass(frozen=True, eq=False)
class LowRankModel:
    """The low-rank signal with what is needed to continue it to new points.

    order : position in the labels of every row of the signal.
    points, blocks : the labelled points in that order and their blocks; None where the rest is diagonal.
    """

    kernel: Any
    factor: PivotedFactor
    order: IntArray
    signal: LowRankSignal | BlockLowRankSignal
    amplitude: float = 1.0
    points: Any = None
    blocks: Blocks | None = None

    @property
    def captured(self) -> float:
        """Share of the kernel's variance that the columns explain, before the rest is added back."""
        return self.factor.captured

    def scaled(self, ratio: float) -> LowRankModel:
        """The same with another amplitude."""
        return replace(self, signal=self.signal.scaled(ratio), amplitude=self.amplitude * ratio)

    def on_rows(self, index: IntArray) -> LowRankModel:
        """The same covariance for some of the labels, where the rest is diagonal."""
        assert isinstance(self.signal, LowRankSignal)
        signal = LowRankSignal(self.signal.rows.take(index), self.signal.rest[index], amplitude=self.signal.amplitude)
        return replace(self, order=self.order[index], signal=signal)

    def predictor(
        self, labels: FloatArray, weights: FloatArray, covariance: Any, noise: FloatArray
    ) -> LowRankPredictor:
        """What predicts new points once the noise variances are known; labels in the order of the signal."""
        if self.blocks is None:
            coefficients = covariance.coefficients(labels)
        else:
            coefficients = self.amplitude * (np.asarray(self.factor.factor, dtype=float).T @ weights)
        return LowRankPredictor(self, coefficients, weights, covariance, noise)


@dataclass(frozen=True, eq=False)
class LowRankPredictor:
    """Signal and variance at new points; with blocks, a new point is treated as one of the block that it falls into.

    noise : what the covariance has beside the kernel.
    """

    model: LowRankModel
    coefficients: FloatArray
    weights: FloatArray
    covariance: Any
    noise: FloatArray

    @property
    def order(self) -> IntArray | None:
        """Position in the labels of every row of the covariance."""
        return self.model.order

    @property
    def rank(self) -> int | None:
        """How many columns of the kernel are used."""
        return self.model.signal.rank

    @property
    def captured(self) -> float:
        """How much of the kernel they explain."""
        return self.model.captured

    def without_rows(self) -> LowRankPredictor:
        """The same without the factor of the labelled points, where the rest is diagonal."""
        signal = LowRankSignal(np.zeros((0, self.model.signal.rank)), np.zeros(0), amplitude=self.model.amplitude)
        model = replace(self.model, factor=replace(self.model.factor, factor=np.zeros((0, 0))), signal=signal)
        return replace(self, model=model, covariance=self.covariance.without_rows(), noise=np.zeros(0))

    def signal(self, new_points: Any) -> FloatArray:
        """The expected signal, centred and scaled."""
        rows = self.model.factor.of(self.model.kernel, new_points)
        found = rows @ self.coefficients
        for mine, part, change in self._corrections(new_points, rows):
            found[mine] += change @ self.weights[part]
        return np.asarray(found)

    def explained_variance(self, new_points: Any) -> FloatArray:
        """How much the labels reduce the variance of new points."""
        if self.model.blocks is not None:
            return np.asarray(self.explained(new_points).diagonal())
        return np.asarray(self.covariance.explained_variance(self.model.factor.of(self.model.kernel, new_points)))

    def explained(self, new_points: Any) -> FloatArray:
        """How much the labels reduce the covariance of new points."""
        rows = self.model.factor.of(self.model.kernel, new_points)
        if self.model.blocks is None:
            return np.asarray(self.covariance.explained(rows))
        cross = self.model.amplitude * (rows @ np.asarray(self.model.factor.factor, dtype=float).T)
        for mine, part, change in self._corrections(new_points, rows):
            cross[np.ix_(mine, part)] += change
        return np.asarray(cross @ self.covariance.solve(np.asfortranarray(cross.T)))

    def _corrections(self, new_points: Any, rows: FloatArray) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """New points of one block, labelled points of that block, and what low rank misses of their covariance."""
        model = self.model
        if model.blocks is None:
            return
        chosen = model.blocks.of(rows)
        starts = np.concatenate([[0], np.cumsum([block.size for block in model.blocks.members])])
        for number in np.unique(chosen):
            mine = np.flatnonzero(chosen == number)
            part = np.arange(starts[number], starts[number + 1])
            exact = model.kernel(take_points(new_points, mine), take_points(model.points, part))
            smooth = rows[mine] @ np.asarray(model.factor.factor)[part].astype(float).T
            yield mine, part, model.amplitude * (np.asarray(exact) - smooth)
