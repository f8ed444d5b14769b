"""Kernels on lists of objects that are evaluated block by block, with named hyperparameters, under scikit-learn's protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter, Kernel

from mislabel.errors import InvalidParameterError
from mislabel.kernels.contract import GraphKernel, TunableKernel
from mislabel.kernels.gram import contract_in_blocks, gradient_in_blocks, gram_in_memory
from mislabel.linalg.contract import FloatArray, IntArray

#: Each evaluation costs so much that hyperparameters are tuned on this many points.
TUNING_SIZE = 300

Bounds = tuple[float, float] | str


class Memory:
    """What was made of a list of objects, until it is made of other objects: shared by a kernel and its tuned twins."""

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[list[Any], Any]] = {}

    def recall(self, what: Hashable, items: Sequence[Any], make: Callable[[], Any]) -> Any:
        """What ``make`` returned for these very objects under that name, or returns now."""
        known = self._made.get(what)
        same = known is not None and len(known[0]) == len(items)
        if known is None or not (same and all(a is b for a, b in zip(known[0], items, strict=True))):
            known = list(items), make()
            self._made[what] = known
        return known[1]

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        """Copies and files begin with an empty one."""
        return Memory, ()


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


class ParametricKernel(GenericKernelMixin, TunableKernel, Kernel):
    """A kernel whose hyperparameters come as a list of :class:`Parameter`; only the free ones appear in ``theta``."""

    @property
    def tuning_size(self) -> int | None:
        """A few hundred points: each evaluation is expensive."""
        return TUNING_SIZE

    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """All hyperparameters in the order of the derivatives."""

    @abstractmethod
    def with_values(self, values: Sequence[float]) -> ParametricKernel:
        """The same kernel with other values of all its hyperparameters."""

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """scikit-learn's description of the hyperparameters."""
        return [Hyperparameter(item.name, "numeric", item.bounds) for item in self.parameters()]

    @property
    def n_dims(self) -> int:
        """Number of free hyperparameters."""
        return int(np.count_nonzero(self._free))

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the free hyperparameters."""
        return np.asarray(np.log([item.value for item in self.parameters() if not item.fixed]))

    @theta.setter
    def theta(self, theta: FloatArray) -> None:
        self.__dict__.update(self.clone_with_theta(theta).__dict__)

    @property
    def bounds(self) -> FloatArray:
        """Bounds on :attr:`theta`."""
        free = [item.bounds for item in self.parameters() if not item.fixed]
        return np.asarray(np.log(np.array(free, dtype=float).reshape(-1, 2)))

    def clone_with_theta(self, theta: FloatArray) -> ParametricKernel:
        """The same kernel with other free hyperparameters, which remembers what this one made of its points."""
        values = np.array([item.value for item in self.parameters()])
        values[self._free] = np.exp(theta)
        kernel = self.with_values(values.tolist())
        kernel.share_memory(self)
        return kernel

    @property
    def memory(self) -> Memory:
        """What no hyperparameter changes."""
        memory: Memory = self.__dict__.setdefault("_memory", Memory())
        return memory

    def share_memory(self, other: ParametricKernel) -> None:
        """Remember what ``other`` does, from now on."""
        self.__dict__["_memory"] = other.memory

    @property
    def _free(self) -> np.ndarray:
        return np.array([not item.fixed for item in self.parameters()], dtype=bool)

    def is_stationary(self) -> bool:
        """Graphs know no translation."""
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_params() == other.get_params()

    def __hash__(self) -> int:
        return hash((type(self), tuple(map(repr, self.parameters()))))

    def __repr__(self) -> str:
        values = ", ".join(f"{item.name}={item.value:.4g}" for item in self.parameters())
        return f"{type(self).__name__}({values})"


class BlockKernel(ParametricKernel, GraphKernel):
    """A kernel given by its :meth:`prepared` form and parameters alone."""

    n_jobs: int | None = None
    #: Columns of the prepared form's derivatives that are this kernel's parameters, in order.
    _gradient_columns: slice | list[int] = slice(None)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Similarities of all graphs in X with all in Y (or X)."""
        if not eval_gradient:
            return gram_in_memory(self.prepared(X, Y), n_jobs=self.n_jobs)
        if Y is not None:
            raise InvalidParameterError("the gradient can only be evaluated for Y=None.")
        matrix, gradient = gradient_in_blocks(self.prepared(X), self.n_jobs)
        return matrix, gradient[:, :, self._gradient_columns][:, :, self._free]

    def diag(self, X: Any) -> FloatArray:
        """Similarity of every graph with itself."""
        return self.prepared(X).values(with_itself(len(X)))

    def contracted_gradient(self, X: Any, weights: FloatArray) -> FloatArray:
        """``sum_ij W_ij dK_ij / dtheta`` without storing the derivatives."""
        contracted = contract_in_blocks(self.prepared(X), weights, self.n_jobs)
        return np.asarray(contracted[self._gradient_columns][self._free])


def with_itself(size: int) -> IntArray:
    """The pairs of the diagonal."""
    return np.repeat(np.arange(size)[:, None], 2, axis=1)
