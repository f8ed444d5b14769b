"""Scales of labels: an increasing function of the label, on which right labels spread evenly around what is expected.

Incomes, sizes and counts spread in proportion to their size: their logarithm or their root does not. Every transform maps all
numbers to all numbers, so that a wrong label (a negative length) has a place too: where a function ends, it goes on as its own
mirror image, so that no label is further off on this scale than it need be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: A function of positive numbers suits labels of which at least this share is positive: the others may be wrong.
POSITIVE = 0.9
#: It ends at half of this quantile of the positive labels.
LOWEST = 0.02
#: Logarithms beyond this are no labels.
_LARGEST_LOG = 700.0
#: Bounds of labels that are shares or percentages, the part of the range in which they must lie, and how near to the bounds the
#: logit goes.
TOPS = (1.0, 100.0)
WITHIN = (0.02, 0.98)
LEAST_REACH = 0.5
EDGE = 0.01


class Transform(ABC):
    """An increasing function of labels, with its inverse and its slope."""

    #: What users call it.
    name: str
    #: How it is told: "on a logarithmic scale".
    words: str

    @abstractmethod
    def forward(self, labels: FloatArray) -> FloatArray:
        """Labels on this scale."""

    @abstractmethod
    def inverse(self, values: FloatArray) -> FloatArray:
        """Values on this scale as labels."""

    @abstractmethod
    def log_slope(self, labels: FloatArray) -> FloatArray:
        """Logarithm of the derivative at labels."""

    def slope(self, labels: FloatArray) -> FloatArray:
        """The derivative at labels."""
        return np.asarray(np.exp(self.log_slope(labels)))

    def spread(self, values: FloatArray, std: FloatArray) -> FloatArray:
        """Standard deviations around values on this scale, in label units."""
        return np.asarray(0.5 * (self.inverse(values + std) - self.inverse(values - std)))

    @property
    def is_identity(self) -> bool:
        """Whether labels stay as they are."""
        return False


@dataclass(frozen=True)
class Identity(Transform):
    """Labels as they are."""

    name = "none"
    words = "as they are"

    def forward(self, labels: FloatArray) -> FloatArray:
        """Labels on this scale."""
        return labels

    def inverse(self, values: FloatArray) -> FloatArray:
        """Values on this scale as labels."""
        return values

    def log_slope(self, labels: FloatArray) -> FloatArray:
        """Logarithm of the derivative at labels."""
        return np.zeros(np.shape(labels))

    def spread(self, values: FloatArray, std: FloatArray) -> FloatArray:
        """Standard deviations around values on this scale, in label units."""
        return std

    @property
    def is_identity(self) -> bool:
        """Whether labels stay as they are."""
        return True


class _Mirrored(Transform):
    """An increasing function of labels from ``start`` on, and below it as ``2 f(start) - f(2 start - label)``."""

    start: float

    @abstractmethod
    def _of(self, labels: FloatArray) -> FloatArray:
        """The function of labels above ``start``."""

    @abstractmethod
    def _back(self, values: FloatArray) -> FloatArray:
        """Its inverse."""

    @abstractmethod
    def _log_slope_of(self, labels: FloatArray) -> FloatArray:
        """Logarithm of its derivative."""

    def forward(self, labels: FloatArray) -> FloatArray:
        """Labels on this scale."""
        edge, size = self._edge, self._of(self._above(labels))
        return np.asarray(np.where(labels < self.start, 2.0 * edge - size, size))

    def inverse(self, values: FloatArray) -> FloatArray:
        """Values on this scale as labels."""
        edge = self._edge
        size = self._back(edge + np.abs(values - edge))
        return np.asarray(np.where(values < edge, 2.0 * self.start - size, size))

    def log_slope(self, labels: FloatArray) -> FloatArray:
        """Logarithm of the derivative at labels."""
        return self._log_slope_of(self._above(labels))

    def _above(self, labels: FloatArray) -> FloatArray:
        return np.asarray(self.start + np.abs(np.asarray(labels) - self.start))

    @property
    def _edge(self) -> float:
        return float(self._of(np.asarray(self.start)))


@dataclass(frozen=True)
class Logarithm(_Mirrored):
    """The logarithm."""

    start: float
    name = "log"
    words = "on a logarithmic scale"

    def _of(self, labels: FloatArray) -> FloatArray:
        return np.asarray(np.log(labels))

    def _back(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.minimum(values, _LARGEST_LOG)))

    def _log_slope_of(self, labels: FloatArray) -> FloatArray:
        return np.asarray(-np.log(labels))

    @classmethod
    def suiting(cls, labels: FloatArray) -> Logarithm | None:
        """For mostly positive labels."""
        start = _start(labels)
        return None if start is None else cls(start)


@dataclass(frozen=True)
class Root(_Mirrored):
    """The square root."""

    start: float
    name = "sqrt"
    words = "on a square-root scale"

    def _of(self, labels: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(labels))

    def _back(self, values: FloatArray) -> FloatArray:
        return np.asarray(values**2)

    def _log_slope_of(self, labels: FloatArray) -> FloatArray:
        return np.asarray(-np.log(2.0) - 0.5 * np.log(labels))

    @classmethod
    def suiting(cls, labels: FloatArray) -> Root | None:
        """For mostly positive labels."""
        start = _start(labels)
        return None if start is None else cls(start)


@dataclass(frozen=True)
class Asinh(Transform):
    """The inverse hyperbolic sine: straight around ``center``, logarithmic ``width`` away from it."""

    center: float
    width: float
    name = "asinh"
    words = "on a scale that is logarithmic for large labels (asinh)"

    def forward(self, labels: FloatArray) -> FloatArray:
        """Labels on this scale."""
        return np.asarray(np.arcsinh((labels - self.center) / self.width))

    def inverse(self, values: FloatArray) -> FloatArray:
        """Values on this scale as labels."""
        return np.asarray(self.center + self.width * np.sinh(np.clip(values, -_LARGEST_LOG / 2, _LARGEST_LOG / 2)))

    def log_slope(self, labels: FloatArray) -> FloatArray:
        """Logarithm of the derivative at labels."""
        return np.asarray(-np.log(self.width) - 0.5 * np.log1p(((labels - self.center) / self.width) ** 2))

    @classmethod
    def suiting(cls, labels: FloatArray) -> Asinh | None:
        """For labels of both signs, which a logarithm does not suit: noise grows away from zero."""
        if _start(labels) is not None or _start(-labels) is not None:
            return None
        width = 0.5 * float(np.median(np.abs(labels)))
        return cls(0.0, width) if width > 0.0 else None


@dataclass(frozen=True)
class Logit(Transform):
    """The logit of labels between 0 and ``top``, a logarithm beyond a hundredth from the bounds."""

    top: float
    name = "logit"
    words = "on the logit scale of shares"

    def forward(self, labels: FloatArray) -> FloatArray:
        """Labels on this scale."""
        inside = self._inside(labels)
        beyond = labels - inside
        return np.asarray(
            np.log(inside / (self.top - inside)) + np.sign(beyond) * np.log1p(self._slope * np.abs(beyond))
        )

    def inverse(self, values: FloatArray) -> FloatArray:
        """Values on this scale as labels."""
        reach = np.log((1.0 - EDGE) / EDGE)
        inside = np.clip(values, -reach, reach)
        beyond = values - inside
        further = np.sign(beyond) * np.expm1(np.minimum(np.abs(beyond), _LARGEST_LOG)) / self._slope
        return np.asarray(self.top / (1.0 + np.exp(-inside)) + further)

    def log_slope(self, labels: FloatArray) -> FloatArray:
        """Logarithm of the derivative at labels."""
        inside = self._inside(labels)
        own = np.log(self.top) - np.log(inside) - np.log(self.top - inside)
        return np.asarray(own - np.log1p(self._slope * np.abs(labels - inside)))

    def _inside(self, labels: FloatArray) -> FloatArray:
        return np.asarray(np.clip(labels, EDGE * self.top, (1.0 - EDGE) * self.top))

    @property
    def _slope(self) -> float:
        """Of the logit at its edges."""
        return 1.0 / (EDGE * (1.0 - EDGE) * self.top)

    @classmethod
    def suiting(cls, labels: FloatArray) -> Logit | None:
        """For shares and percentages."""
        low, high = np.quantile(labels, WITHIN)
        for top in TOPS:
            if low >= 0.0 and LEAST_REACH * top < high <= top:
                return cls(top)
        return None


def _start(labels: FloatArray) -> float | None:
    """Where functions of positive labels end; None where too few labels are positive."""
    positive = labels[labels > 0.0]
    if positive.size < POSITIVE * labels.size or not positive.size:
        return None
    start = 0.5 * float(np.quantile(positive, LOWEST))
    return start if start > np.finfo(float).tiny else None


def named_transforms() -> dict[str, type[Transform]]:
    """The classes of all transforms by their names."""
    waiting, found = [Transform], {}
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if "name" in vars(kind):
            found[str(kind.name)] = kind
    return found


#: By name: the transform of some labels, None where it does not suit them.
TRANSFORMS: dict[str, Callable[[FloatArray], Transform | None]] = {
    "none": lambda labels: Identity(),
    "log": Logarithm.suiting,
    "sqrt": Root.suiting,
    "asinh": Asinh.suiting,
    "logit": Logit.suiting,
}
