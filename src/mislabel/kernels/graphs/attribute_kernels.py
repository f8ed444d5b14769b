"""Similarities of node and edge attributes, and how to put them together.

An elementary kernel compares one attribute; :class:`TensorProduct` multiplies kernels, :class:`WeightedSum` adds them; they
may be nested. Every kernel evaluates whole tables at once, with the derivatives by the logarithms of its parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mislabel.errors import InvalidGraphError, InvalidParameterError
from mislabel.kernels.block_kernel import Bounds, Parameter
from mislabel.linalg.contract import FloatArray

Attributes = Mapping[str, np.ndarray]


class AttributeKernel(ABC):
    """A similarity of attributes: positive semi-definite and never negative."""

    @abstractmethod
    def attributes(self) -> frozenset[str]:
        """Names of the attributes that are compared."""

    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """All hyperparameters, in a fixed order."""

    @abstractmethod
    def with_values(self, values: Iterator[float]) -> AttributeKernel:
        """The same kernel with other values of its hyperparameters, taken from the front of ``values``."""

    @abstractmethod
    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        """Similarities of all of ``left`` with all of ``right``."""

    @abstractmethod
    def gradients(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        """Derivatives of :meth:`table` by the logarithm of each parameter."""

    def __mul__(self, other: AttributeKernel) -> TensorProduct:
        return TensorProduct(self, other)


class _OneAttribute(AttributeKernel):
    """A kernel that compares one attribute."""

    attribute: str
    _names: tuple[str, ...] = ()

    def attributes(self) -> frozenset[str]:
        return frozenset([self.attribute])

    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(f"{self.attribute}_{name}", getattr(self, name), getattr(self, f"{name}_bounds"))
            for name in self._names
        )

    def with_values(self, values: Iterator[float]) -> AttributeKernel:
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


def _check_positive(kernel: Any, *names: str) -> None:
    for name in names:
        value = getattr(kernel, name)
        if not (np.isfinite(value) and value > 0):
            raise InvalidParameterError(f"{name} of {type(kernel).__name__} must be positive, got {value!r}.")


@dataclass(frozen=True)
class KroneckerDelta(_OneAttribute):
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

    def gradients(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        return [np.where(self._equal(left, right), 0.0, self.prior)]

    def _equal(self, left: Attributes, right: Attributes) -> np.ndarray:
        return np.asarray(_column(left, self.attribute)[:, None] == _column(right, self.attribute))


@dataclass(frozen=True)
class SquaredExponential(_OneAttribute):
    """``exp(-d^2 / 2 l^2)`` of the difference of a number."""

    attribute: str
    length_scale: float = 1.0
    length_scale_bounds: Bounds = (1e-3, 1e3)
    _names = ("length_scale",)

    def __post_init__(self) -> None:
        _check_positive(self, "length_scale")

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.asarray(np.exp(-0.5 * (self._difference(left, right) / self.length_scale) ** 2))

    def gradients(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        squared = (self._difference(left, right) / self.length_scale) ** 2
        return [squared * np.exp(-0.5 * squared)]


@dataclass(frozen=True)
class RationalQuadratic(_OneAttribute):
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

    def gradients(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        inner = self._inner(left, right)
        value = inner**-self.mixture
        by_length = value * 2.0 * self.mixture * (inner - 1.0) / inner
        by_mixture = value * self.mixture * ((inner - 1.0) / inner - np.log(inner))
        return [by_length, by_mixture]

    def _inner(self, left: Attributes, right: Attributes) -> FloatArray:
        squared = (self._difference(left, right) / self.length_scale) ** 2
        return np.asarray(1.0 + squared / (2.0 * self.mixture))


@dataclass(frozen=True)
class Constant(AttributeKernel):
    """The same similarity for every pair."""

    value: float = 1.0
    value_bounds: Bounds = "fixed"

    def __post_init__(self) -> None:
        _check_positive(self, "value")

    def attributes(self) -> frozenset[str]:
        return frozenset()

    def parameters(self) -> tuple[Parameter, ...]:
        return (Parameter("constant", self.value, self.value_bounds),)

    def with_values(self, values: Iterator[float]) -> AttributeKernel:
        return replace(self, value=next(values))

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.full((_count(left), _count(right)), self.value)

    def gradients(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        return [self.table(left, right)]


def _count(attributes: Attributes) -> int:
    return len(next(iter(attributes.values()))) if attributes else 1


class TensorProduct(AttributeKernel):
    """The product of several kernels, usually of different attributes."""

    def __init__(self, *kernels: AttributeKernel) -> None:
        self.factors: tuple[AttributeKernel, ...] = tuple(
            factor for kernel in kernels for factor in (kernel.factors if type(kernel) is TensorProduct else (kernel,))
        )

    def __repr__(self) -> str:
        return f"TensorProduct({', '.join(map(repr, self.factors))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorProduct) and self.factors == other.factors

    def __hash__(self) -> int:
        return hash(self.factors)

    def attributes(self) -> frozenset[str]:
        return frozenset().union(*(kernel.attributes() for kernel in self.factors))

    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(parameter for kernel in self.factors for parameter in kernel.parameters())

    def with_values(self, values: Iterator[float]) -> AttributeKernel:
        return TensorProduct(*(kernel.with_values(values) for kernel in self.factors))

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        product = np.ones((_count(left), _count(right)))
        for kernel in self.factors:
            product = product * kernel.table(left, right)
        return product

    def gradients(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        tables = [kernel.table(left, right) for kernel in self.factors]
        gradients = []
        for number, kernel in enumerate(self.factors):
            others = np.ones((_count(left), _count(right)))
            for other, table in enumerate(tables):
                if other != number:
                    others = others * table
            gradients += [others * change for change in kernel.gradients(left, right)]
        return gradients


@dataclass(frozen=True)
class WeightedSum(AttributeKernel):
    """``sum_k weight_k kernel_k``, given as ``WeightedSum((0.3, kernel), (0.7, kernel))``."""

    terms: tuple[tuple[float, AttributeKernel], ...] = field(default=())
    weight_bounds: Bounds = (1e-3, 1.0)

    def __init__(self, *terms: tuple[float, AttributeKernel], weight_bounds: Bounds = (1e-3, 1.0)) -> None:
        if not terms or any(not weight > 0 for weight, _ in terms):
            raise InvalidParameterError("WeightedSum needs at least one (weight, kernel), with positive weights.")
        object.__setattr__(self, "terms", tuple(terms))
        object.__setattr__(self, "weight_bounds", weight_bounds)

    def attributes(self) -> frozenset[str]:
        return frozenset().union(*(kernel.attributes() for _, kernel in self.terms))

    def parameters(self) -> tuple[Parameter, ...]:
        weights = [Parameter(f"weight_{k}", weight, self.weight_bounds) for k, (weight, _) in enumerate(self.terms)]
        return (*weights, *(parameter for _, kernel in self.terms for parameter in kernel.parameters()))

    def with_values(self, values: Iterator[float]) -> AttributeKernel:
        weights = [next(values) for _ in self.terms]
        kernels = [kernel.with_values(values) for _, kernel in self.terms]
        return WeightedSum(*zip(weights, kernels, strict=True), weight_bounds=self.weight_bounds)

    def table(self, left: Attributes, right: Attributes) -> FloatArray:
        return np.asarray(sum(weight * kernel.table(left, right) for weight, kernel in self.terms))

    def gradients(self, left: Attributes, right: Attributes) -> list[FloatArray]:
        by_weight = [weight * kernel.table(left, right) for weight, kernel in self.terms]
        return by_weight + [
            weight * change for weight, kernel in self.terms for change in kernel.gradients(left, right)
        ]


def split_gaussian(kernel: AttributeKernel) -> tuple[SquaredExponential | None, AttributeKernel | None]:
    """Write a kernel as a squared exponential times the rest, either of which may be missing.

    Most pairs of values are too far apart for a squared exponential to matter, which the loops make use of.
    """
    if isinstance(kernel, SquaredExponential):
        return kernel, None
    if isinstance(kernel, TensorProduct):
        for number, factor in enumerate(kernel.factors):
            if isinstance(factor, SquaredExponential):
                rest = kernel.factors[:number] + kernel.factors[number + 1 :]
                return factor, (TensorProduct(*rest) if rest else None)
    return None, kernel
