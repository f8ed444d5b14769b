"""Similarities of node and edge attributes, and how to put them together.

An elementary piece compares one attribute; :class:`TensorProduct` multiplies pieces, :class:`WeightedSum` adds them; they
may be nested. Every piece evaluates whole tables at once, with the derivatives by the logarithms of its parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mislabel.errors import InvalidGraphError, InvalidParameterError
from mislabel.linalg.contract import FloatArray

Attributes = Mapping[str, np.ndarray]
Bounds = tuple[float, float] | str


@dataclass(frozen=True)
class Parameter:
    """One positive hyperparameter: its name, value, and bounds (or "fixed")."""

    name: str
    value: float
    bounds: Bounds

    @property
    def fixed(self) -> bool:
        """Whether tuning leaves it alone."""
        return isinstance(self.bounds, str)


class Piece(ABC):
    """A similarity of attributes: positive semi-definite and never negative."""

    @abstractmethod
    def attributes(self) -> frozenset[str]:
        """Names of the attributes that are compared."""

    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """All hyperparameters, in a fixed order."""

    @abstractmethod
    def with_values(self, values: Iterator[float]) -> Piece:
        """The same piece with other values of its hyperparameters, taken from the front of ``values``."""

    @abstractmethod
    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        """Similarities of all of ``left`` with all of ``right``."""

    @abstractmethod
    def slopes(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        """Derivatives of :meth:`table` by the logarithm of each parameter."""

    def __mul__(self, other: Piece) -> TensorProduct:
        return TensorProduct(self, other)


class _Elementary(Piece):
    """A piece that compares one attribute."""

    attribute: str
    _names: tuple[str, ...] = ()

    def attributes(self) -> frozenset[str]:
        return frozenset([self.attribute])

    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(f"{self.attribute}_{name}", getattr(self, name), getattr(self, f"{name}_bounds"))
            for name in self._names
        )

    def with_values(self, values: Iterator[float]) -> Piece:
        return replace(self, **{name: next(values) for name in self._names})  # type: ignore[type-var]

    def _difference(self, left: Attributes, right: Attributes) -> FloatArray:
        first, second = _column(left, self.attribute), _column(right, self.attribute)
        if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
            raise InvalidGraphError(
                f"attribute {self.attribute!r} is not numeric; compare categories with KroneckerDelta."
            )
        return np.asarray(first.astype(float)[:, None] - second.astype(float))


def _column(attributes: Attributes, name: str) -> np.ndarray:
    try:
        return attributes[name]
    except KeyError:
        known = ", ".join(sorted(attributes)) or "none"
        raise InvalidGraphError(
            f"the kernel compares {name!r}, which the graphs do not have (they have: {known})."
        ) from None


def _check_positive(piece: Any, *names: str) -> None:
    for name in names:
        value = getattr(piece, name)
        if not (np.isfinite(value) and value > 0):
            raise InvalidParameterError(f"{name} of {type(piece).__name__} must be positive, got {value!r}.")


@dataclass(frozen=True)
class KroneckerDelta(_Elementary):
    """One for equal categories, ``prior`` (between 0 and 1) for different ones."""

    attribute: str
    prior: float = 0.2
    prior_bounds: Bounds = (1e-3, 0.99)
    _names = ("prior",)

    def __post_init__(self) -> None:
        if not 0 < self.prior <= 1:
            raise InvalidParameterError(f"prior of KroneckerDelta must be in (0, 1], got {self.prior!r}.")

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.where(self._equal(left, right), 1.0, self.prior)

    def slopes(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        return [np.where(self._equal(left, right), 0.0, self.prior)]

    def _equal(self, left: Attributes, right: Attributes) -> np.ndarray:
        return np.asarray(_column(left, self.attribute)[:, None] == _column(right, self.attribute))


@dataclass(frozen=True)
class SquaredExponential(_Elementary):
    """``exp(-d^2 / 2 l^2)`` of the difference of a number."""

    attribute: str
    length_scale: float = 1.0
    length_scale_bounds: Bounds = (1e-3, 1e3)
    _names = ("length_scale",)

    def __post_init__(self) -> None:
        _check_positive(self, "length_scale")

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.asarray(np.exp(-0.5 * (self._difference(left, right) / self.length_scale) ** 2))

    def slopes(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        squared = (self._difference(left, right) / self.length_scale) ** 2
        return [squared * np.exp(-0.5 * squared)]


@dataclass(frozen=True)
class RationalQuadratic(_Elementary):
    """``(1 + d^2 / 2 m l^2)^-m``: a mixture of squared exponentials of different length scales."""

    attribute: str
    length_scale: float = 1.0
    mixture: float = 1.0
    length_scale_bounds: Bounds = (1e-3, 1e3)
    mixture_bounds: Bounds = (1e-2, 1e2)
    _names = ("length_scale", "mixture")

    def __post_init__(self) -> None:
        _check_positive(self, "length_scale", "mixture")

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.asarray(self._inner(left, right) ** -self.mixture)

    def slopes(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        inner = self._inner(left, right)
        value = inner**-self.mixture
        by_length = value * 2.0 * self.mixture * (inner - 1.0) / inner
        by_mixture = value * self.mixture * ((inner - 1.0) / inner - np.log(inner))
        return [by_length, by_mixture]

    def _inner(self, left: Attributes, right: Attributes) -> FloatArray:
        squared = (self._difference(left, right) / self.length_scale) ** 2
        return np.asarray(1.0 + squared / (2.0 * self.mixture))


@dataclass(frozen=True)
class Constant(Piece):
    """The same similarity for every pair."""

    value: float = 1.0
    value_bounds: Bounds = "fixed"

    def __post_init__(self) -> None:
        _check_positive(self, "value")

    def attributes(self) -> frozenset[str]:
        return frozenset()

    def parameters(self) -> tuple[Parameter, ...]:
        return (Parameter("constant", self.value, self.value_bounds),)

    def with_values(self, values: Iterator[float]) -> Piece:
        return replace(self, value=next(values))

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.full((_count(left), _count(right)), self.value)

    def slopes(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        return [self.table(left, right)]


def _count(attributes: Attributes) -> int:
    return len(next(iter(attributes.values()))) if attributes else 1


class TensorProduct(Piece):
    """The product of several pieces, usually of different attributes."""

    def __init__(self, *pieces: Piece) -> None:
        self.pieces: tuple[Piece, ...] = tuple(
            part for piece in pieces for part in (piece.pieces if type(piece) is TensorProduct else (piece,))
        )

    def __repr__(self) -> str:
        return f"TensorProduct({', '.join(map(repr, self.pieces))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorProduct) and self.pieces == other.pieces

    def __hash__(self) -> int:
        return hash(self.pieces)

    def attributes(self) -> frozenset[str]:
        return frozenset().union(*(piece.attributes() for piece in self.pieces))

    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(parameter for piece in self.pieces for parameter in piece.parameters())

    def with_values(self, values: Iterator[float]) -> Piece:
        return TensorProduct(*(piece.with_values(values) for piece in self.pieces))

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        product = np.ones((_count(left), _count(right)))
        for piece in self.pieces:
            product = product * piece.table(left, right)
        return product

    def slopes(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        tables = [piece.table(left, right) for piece in self.pieces]
        slopes = []
        for number, piece in enumerate(self.pieces):
            others = np.ones((_count(left), _count(right)))
            for other, table in enumerate(tables):
                if other != number:
                    others = others * table
            slopes += [others * slope for slope in piece.slopes(left, right)]
        return slopes


@dataclass(frozen=True)
class WeightedSum(Piece):
    """``sum_k weight_k piece_k``, given as ``WeightedSum((0.3, piece), (0.7, piece))``."""

    terms: tuple[tuple[float, Piece], ...] = field(default=())
    weight_bounds: Bounds = (1e-3, 1.0)

    def __init__(self, *terms: tuple[float, Piece], weight_bounds: Bounds = (1e-3, 1.0)) -> None:
        if not terms or any(not weight > 0 for weight, _ in terms):
            raise InvalidParameterError("WeightedSum needs at least one (weight, piece), with positive weights.")
        object.__setattr__(self, "terms", tuple(terms))
        object.__setattr__(self, "weight_bounds", weight_bounds)

    def attributes(self) -> frozenset[str]:
        return frozenset().union(*(piece.attributes() for _, piece in self.terms))

    def parameters(self) -> tuple[Parameter, ...]:
        weights = [Parameter(f"weight_{k}", weight, self.weight_bounds) for k, (weight, _) in enumerate(self.terms)]
        return (*weights, *(parameter for _, piece in self.terms for parameter in piece.parameters()))

    def with_values(self, values: Iterator[float]) -> Piece:
        weights = [next(values) for _ in self.terms]
        pieces = [piece.with_values(values) for _, piece in self.terms]
        return WeightedSum(*zip(weights, pieces, strict=True), weight_bounds=self.weight_bounds)

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.asarray(sum(weight * piece.table(left, right) for weight, piece in self.terms))

    def slopes(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        by_weight = [weight * piece.table(left, right) for weight, piece in self.terms]
        return by_weight + [weight * slope for weight, piece in self.terms for slope in piece.slopes(left, right)]


def split_gaussian(piece: Piece) -> tuple[SquaredExponential | None, Piece | None]:
    """Write a piece as a squared exponential times the rest, either of which may be missing.

    Most pairs of values are too far apart for a squared exponential to matter, which the loops make use of.
    """
    if isinstance(piece, SquaredExponential):
        return piece, None
    if isinstance(piece, TensorProduct):
        for number, part in enumerate(piece.pieces):
            if isinstance(part, SquaredExponential):
                rest = piece.pieces[:number] + piece.pieces[number + 1 :]
                return part, (TensorProduct(*rest) if rest else None)
    return None, piece
