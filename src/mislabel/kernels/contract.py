"""What a kernel, and what rows that are kept elsewhere, must offer; everything above this room is written against it.

A kernel is any kernel of scikit-learn. One that can do more inherits from :class:`TunableKernel` and overrides what it has;
:func:`mislabel.kernels.adapters.tunable` gives the same view of any other. Kernels of graphs, which lay out their points
once and then evaluate pairs, inherit from :class:`GraphKernel`.

Points are what a kernel is called with, n of them (``len``):

- an (n, d) array of features, in memory or mapped from a file,
- an (n, n) array that is the kernel matrix itself, of which a subset has fewer rows *and* columns,
- a list of n objects (graphs, molecules, strings),
- or :class:`RemoteRows`, features in blocks on the workers of a cluster.

:mod:`mislabel.kernels.on_data` takes some of them, whatever they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Hyperparameter, Kernel

from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.row_blocks import FactorRows


class TunableKernel:
    """What is asked of a kernel beyond scikit-learn's ``Kernel``; all of it has a default.

    ``theta`` are the p free hyperparameters' logarithms, as everywhere in scikit-learn.
    """

    @property
    def formula(self) -> Kernel:
        """The scikit-learn kernel that this is about: itself, unless this is only a view of one."""
        return self

    @property
    def amplitude(self) -> float:
        """What similarities from outside (``prior_variance`` of ``predict``) are multiplied by. Default: one."""
        return 1.0

    @property
    def tuning_size(self) -> int | None:
        """On how many points an expensive kernel is tuned; None, the default, if it costs no more than the fit."""
        return None

    @property
    def scale_power(self) -> float | None:
        """The power a where one hyperparameter is free and ``K`` is proportional to ``exp(a theta)``; else None, the default."""
        return None

    @property
    def centers_labels(self) -> bool:
        """Whether labels should be centred, as by default; not those that are proportional to the size of an object."""
        return True

    def contracted_gradient(self, X: Any, weights: FloatArray) -> FloatArray:
        """``sum_ij W_ij dK_ij / dtheta_k`` for every k.

        X : n points. weights : ``W``, (n, n), symmetric. Returns p numbers. The default evaluates the (n, n, p) gradient;
        a kernel that can do without overrides this.
        """
        _, gradient = self.formula(X, eval_gradient=True)
        return np.asarray(np.einsum("ij,ijk->k", weights, gradient))

    def scaled(self, factor: float) -> Kernel:
        """This kernel times a positive number. Default: the product with a constant, which is then tuned too."""
        return ConstantKernel(factor) * self.formula

    def starting_from(self, X: Any, label_variance: float) -> Kernel:
        """The same kernel with values and bounds to start tuning from. Default: as it is.

        X : the points of the fit. label_variance : mean square of their labels, centred and scaled.
        """
        return self.formula

    def other_shapes(self) -> Sequence[Kernel]:
        """Variants to choose from by likelihood, each where tuning starts. Default: none."""
        return []

    def precise(self) -> Kernel:
        """The same kernel in double precision, for derivatives of likelihoods. Default: as it is."""
        return self.formula


class WithAmplitude(TunableKernel):
    """A kernel proportional to its hyperparameter ``amplitude``, a variance."""

    amplitude: float = 1.0
    amplitude_bounds: tuple[float, float] | str
    n_dims: int

    @property
    def hyperparameter_amplitude(self) -> Hyperparameter:
        """scikit-learn's description of the amplitude."""
        return Hyperparameter("amplitude", "numeric", self.amplitude_bounds)

    @property
    def scale_power(self) -> float | None:
        """One where nothing but the amplitude is free."""
        return 1.0 if self.n_dims == 1 and not self.hyperparameter_amplitude.fixed else None

    def scaled(self, factor: float) -> Kernel:
        """This kernel times a number, by its amplitude."""
        return clone(self).set_params(amplitude=self.amplitude * factor)


class PreparedKernel(Protocol):
    """A kernel laid out for given points, which evaluates any of their pairs."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same points."""

    def values(self, pairs: IntArray) -> FloatArray:
        """Kernel values of pairs (row, column), an (m, 2) array; m numbers."""

    def values_and_gradients(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same with their derivatives by the logarithms of all hyperparameters, fixed ones included, (m, P)."""


class GraphKernel(TunableKernel, ABC):
    """A kernel of graphs, which lays them out once and then evaluates any of their pairs."""

    def graphs_of(self, X: Any) -> Any:
        """Objects as this kernel compares them, made from what the user has once and for all. Default: as they are."""
        return X

    @abstractmethod
    def prepared(self, X: Any, Y: Any = None) -> PreparedKernel:
        """This kernel on the graphs X (rows) and Y (columns; default: X again), laid out for evaluation by blocks."""


def fewest(sizes: Iterable[int | None]) -> int | None:
    """The smallest of some numbers of points; None says that there is no limit."""
    return min((size for size in sizes if size is not None), default=None)


class FactorBuilder(ABC):
    """n points on which a low-rank factor ``V`` grows by some columns at a time, wherever they are kept."""

    size: int

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """The kernel of every point with itself, n numbers that the caller may overwrite."""

    @abstractmethod
    def points(self, index: IntArray) -> Any:
        """Some of the points, in this process."""

    @abstractmethod
    def rows(self, index: IntArray) -> FloatArray:
        """Some rows of ``V``, as far as it has grown."""

    @abstractmethod
    def extend(self, chosen: Any, known: FloatArray, root: FloatArray) -> FloatArray:
        """Add k columns; returns the squared norms of the new parts of all rows, n numbers.

        chosen : k points, the pivots. known : their rows of ``V`` so far. root : the lower Cholesky factor, (k, k), of what
        these leave of the pivots' kernel.
        """

    @abstractmethod
    def finish(self) -> FloatArray | FactorRows:
        """``V``, (n, m): an array, or rows kept elsewhere."""


class RemoteRows(ABC):
    """Rows of features in blocks elsewhere, on the workers of a cluster: only what is asked for comes to this process.

    shape : rows and features. local : all rows, where they came from this process; else None.
    """

    shape: tuple[int, int]
    local: FloatArray | None

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def take_rows(self, index: IntArray) -> FloatArray:
        """Rows at these positions, in this order, as an array of this process."""

    @abstractmethod
    def kept(self, index: IntArray) -> RemoteRows:
        """Rows at these positions, ascending, without moving them."""

    @abstractmethod
    def each_block(self, work: Callable[[FloatArray], Any]) -> list[Any]:
        """``work`` of every block of rows, in their order."""

    @abstractmethod
    def factor_builder(self, kernel: Kernel) -> FactorBuilder:
        """What makes a low-rank factor of the kernel on these rows, where they are."""

    @abstractmethod
    def check_memory(self, rank: int) -> None:
        """Raise MemoryBudgetError if a factor of so many columns does not fit where the rows are."""


@runtime_checkable
class LazyCollection(Protocol):
    """Whatever follows dask's own protocol for collections; dask need not be there to ask."""

    def __dask_graph__(self) -> Any:
        """The tasks that make the collection."""

    def compute(self) -> Any:
        """What it stands for, in this process."""
