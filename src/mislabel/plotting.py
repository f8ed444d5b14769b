"""The pictures of the report as matplotlib displays: each takes a fitted model and draws into ``ax``.

>>> from mislabel.plotting import LabelsDisplay
>>> LabelsDisplay.from_model(model).plot()            # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.decisions import FeatureNoise, coverage, noise_by_feature
from mislabel.errors import MissingDependencyError, unknown_name

TRUSTED, SUSPECT, ACCENT = "#7b8ea3", "#b93a0b", "#0b62a8"
#: What :func:`display_of` can draw.
KINDS = ("labels", "z", "calibration", "column")
#: Labels further out than this many times the spread of the bulk are drawn at the edge.
_REACH = 0.75

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError("plots need matplotlib: pip install matplotlib.") from None
    return plt.subplots()[1]


def _suspects(model: Any, fdr: float) -> BoolArray:
    table = model.audit(fdr, by_position=True)
    suspect = np.zeros(len(table), dtype=bool)
    suspect[table["row"].to_numpy()] = table["suspect"].to_numpy()
    return suspect


@dataclass(eq=False)
class LabelsDisplay:
    """Label against what all other labels expect, suspects marked."""

    expected: FloatArray
    label: FloatArray
    suspect: BoolArray
    ax_: Any = None

    @classmethod
    def from_model(cls, model: Any, fdr: float = 0.05) -> LabelsDisplay:
        """From a fitted LabelNoiseRegressor."""
        evidence = model.calibrated_evidence_
        return cls(evidence.expected, evidence.label, _suspects(model, fdr))

    def plot(self, ax: Any = None) -> LabelsDisplay:
        """Draw; labels far beyond all others are drawn at the edge."""
        ax = _axes(ax)
        known = np.isfinite(self.label)
        low, high = np.quantile(self.label[known], [0.02, 0.98])
        low, high = low - _REACH * (high - low), high + _REACH * (high - low)
        low, high = min(low, self.expected.min()), max(high, self.expected.max())
        shown = np.clip(self.label, low, high)
        ax.axline((low, low), slope=1.0, color=TRUSTED, linestyle="--", linewidth=1)
        for members, color, size, name in (
            (known & ~self.suspect, TRUSTED, 8, "trusted"),
            (known & self.suspect, SUSPECT, 22, "suspect"),
        ):
            ax.scatter(self.expected[members], shown[members], s=size, color=color, label=name, alpha=0.8, linewidths=0)
        ax.set(xlabel="expected", ylabel="label")
        ax.legend()
        self.ax_ = ax
        return self


@dataclass(eq=False)
class ZDisplay:
    """How far labels are off, in standard deviations, and the cut."""

    z: FloatArray
    suspect: BoolArray
    ax_: Any = None

    @classmethod
    def from_model(cls, model: Any, fdr: float = 0.05) -> ZDisplay:
        """From a fitted LabelNoiseRegressor."""
        return cls(model.calibrated_evidence_.z, _suspects(model, fdr))

    def plot(self, ax: Any = None, reach: float = 6.0, bins: int = 41) -> ZDisplay:
        """Draw a histogram; what lies beyond ``reach`` is counted in the outermost bins."""
        ax = _axes(ax)
        known = np.isfinite(self.z)
        clipped = np.clip(self.z, -reach, reach)
        groups = [clipped[known & ~self.suspect], clipped[known & self.suspect]]
        edges = np.linspace(-reach, reach, bins + 1)
        ax.hist(groups, edges, stacked=True, color=[TRUSTED, SUSPECT], label=["trusted", "suspect"])
        if self.suspect.any():
            cut = np.min(np.abs(self.z[self.suspect]))
            for edge in (-cut, cut):
                ax.axvline(edge, color="black", linestyle=":", linewidth=1)
        ax.set(xlabel="z", ylabel="labels")
        ax.set_yscale("function", functions=(np.sqrt, np.square))
        ax.legend()
        self.ax_ = ax
        return self


@dataclass(eq=False)
class CalibrationDisplay:
    """How many labels lie inside intervals that should hold a given share of clean ones."""

    z: FloatArray
    degrees: float
    ax_: Any = None

    @classmethod
    def from_model(cls, model: Any) -> CalibrationDisplay:
        """From a fitted LabelNoiseRegressor."""
        evidence = model.calibrated_evidence_
        return cls(evidence.z, evidence.degrees)

    def plot(self, ax: Any = None) -> CalibrationDisplay:
        """Draw observed against nominal coverage."""
        ax = _axes(ax)
        shares = np.linspace(0.02, 0.99, 50)
        ax.axline((0.0, 0.0), slope=1.0, color=TRUSTED, linestyle="--", linewidth=1)
        ax.plot(shares, coverage(self.z, self.degrees, shares), color=ACCENT)
        ax.set(xlabel="share of clean labels the interval should hold", ylabel="share of all labels it holds")
        ax.set(xlim=(0, 1), ylim=(0, 1))
        self.ax_ = ax
        return self


@dataclass(eq=False)
class FeatureNoiseDisplay:
    """Share of suspects by the values of one column."""

    entry: FeatureNoise
    ax_: Any = None

    @classmethod
    def from_model(cls, model: Any, column: pd.Series, fdr: float = 0.05) -> FeatureNoiseDisplay:
        """From a fitted LabelNoiseRegressor and one column of the table, in the order of the labels."""
        name = str(column.name or "column")
        frame = column.rename(name).reset_index(drop=True).to_frame()
        entries = noise_by_feature(frame, [name], model.calibrated_evidence_.z, _suspects(model, fdr))
        return cls(next(entry for entry in entries if entry.column == name))

    def plot(self, ax: Any = None) -> FeatureNoiseDisplay:
        """Draw one bar per value or range of values."""
        ax = _axes(ax)
        names = [item.name for item in self.entry.bins]
        bars = ax.barh(range(len(names)), [item.suspects / item.count for item in self.entry.bins], color=SUSPECT)
        ax.bar_label(
            bars, [f"{item.suspects} of {item.count}" for item in self.entry.bins], padding=3, fontsize="small"
        )
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set(xlabel="share of suspects", title=self.entry.column)
        self.ax_ = ax
        return self


def display_of(
    kind: str, model: Any, suspect: BoolArray, by_feature: Sequence[FeatureNoise], column: str | None = None
) -> Any:
    """The display of an audit: "labels", "z", "calibration", or "column" for the suspects by the values of ``column``."""
    evidence = model.calibrated_evidence_
    if kind == "labels":
        return LabelsDisplay(evidence.expected, evidence.label, suspect)
    if kind == "z":
        return ZDisplay(evidence.z, suspect)
    if kind == "calibration":
        return CalibrationDisplay(evidence.z, evidence.degrees)
    if kind != "column":
        raise unknown_name("kind of plot", kind, KINDS)
    found = {entry.column: entry for entry in by_feature}
    if column not in found:
        raise unknown_name("column", column, list(found))
    return FeatureNoiseDisplay(found[column])
