"""The same work on a Dask client that the caller brings.

Rows of features stay on the workers, and so does the factor of the low-rank covariance: each iteration sends vectors
of one number per label and returns one m x m sum. Every block can be recomputed from what the scheduler knows, so that
a worker that dies costs only its blocks. The only scheduler started here is the local one that the command line may ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, cast

import numpy as np
import pandas as pd

from mislabel.errors import InvalidFeaturesError, InvalidParameterError, MemoryBudgetError, MissingDependencyError
from mislabel.kernels import gram_matrix
from mislabel.kernels.contract import FactorBuilder, LazyCollection, RemoteRows
from mislabel.kernels.gram import laid_out
from mislabel.kernels.inducing import new_columns
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.linalg.row_blocks import FactorRows, LocalRows, RowWork, located, squared_norms

#: Rows per block of an array that is not in blocks yet.
ROWS_PER_BLOCK = 20_000
#: Results that are summed in one task.
FAN_IN = 8
#: Blocks of a matrix that are sent out ahead, per thread.
BLOCKS_AHEAD = 4
#: How long a scheduler may take to answer.
CONNECT_SECONDS = 10
#: Arguments larger than this travel once per worker instead of once per task.
LARGE = 1 << 16
#: Share of the workers' memory that a fit may plan with.
USABLE = 0.7


def distributed_data(X: Any, y: Any, client: Any = None) -> tuple[DistributedPoints, Any]:
    """Features on the workers of ``client`` (default: the current one), labels in this process.

    X may be a dask array or dataframe, whose partitions become the blocks, or anything that is an array already.
    """
    client = current_client() if client is None else client
    if client is None:
        raise InvalidParameterError(
            "X is a dask collection, but there is no client: pass client=, for example that of a "
            "distributed.LocalCluster() (pip install 'dask[array,dataframe]' distributed)."
        )
    if isinstance(y, LazyCollection):
        y = cast("Any", y).compute()
    if isinstance(X, pd.DataFrame) and not isinstance(y, pd.Series | pd.DataFrame):
        y = pd.Series(np.asarray(y), index=X.index)
    return DistributedPoints.of(X, client), y


@contextmanager
def client_at(address: str) -> Iterator[Any]:
    """A client of the scheduler at ``address``; ``"local"`` starts one process per core and stops them afterwards."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingDependencyError("--dask needs dask: pip install 'dask[array,dataframe]' distributed.") from None
    if address == "local":
        with LocalCluster(threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InvalidParameterError(
            f"no dask scheduler answers at {address!r}: {str(error).splitlines()[0][:160]}"
        ) from None
    with client:
        yield client


def _even_places(client: Any, blocks: Sequence[Any]) -> list[list[str]]:
    """A worker for each block: the one that has it, but none gets more than its threads' share.

    Every step waits for the worker with most blocks, and a block that moves on its own, later, takes its columns along.
    """
    for block in blocks:
        block.exception()  # waits; what went wrong is told where the block is needed
    threads = client.nthreads()
    every = sum(threads.values())
    most = {worker: -(-len(blocks) * count // every) for worker, count in threads.items()}
    taken = dict.fromkeys(threads, 0)
    holders = client.who_has(blocks)
    places: list[str | None] = []
    for block in blocks:
        free = (worker for worker in holders.get(block.key, ()) if taken.get(worker, 0) < most.get(worker, 0))
        places.append(next(free, None))
        if places[-1] is not None:
            taken[places[-1]] += 1
    for number, place in enumerate(places):
        if place is None:
            emptiest = max(threads, key=lambda worker: most[worker] - taken[worker])
            taken[emptiest] += 1
            places[number] = emptiest
    return [[place] for place in places if place is not None]


def current_client() -> Any:
    """The client that dask knows of; None without one."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


class DistributedPoints(RemoteRows):
    """Rows of features in blocks on workers.

    local : the whole array, where it came from this process.
    """

    def __init__(
        self, client: Any, blocks: list[Any], sizes: list[int], n_features: int, local: FloatArray | None = None
    ) -> None:
        self.client, self.blocks, self.local = client, blocks, local
        self.bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.shape = (int(self.bounds[-1]), n_features)

    @classmethod
    def of(cls, X: Any, client: Any) -> DistributedPoints:
        """Blocks of a dask collection, or of an array that is cut into some."""
        rows = _lazy_array(X) if isinstance(X, LazyCollection) else np.asarray(X, dtype=float)
        if rows.ndim != 2:
            raise InvalidFeaturesError(f"X has {rows.ndim} dimensions, expected two: rows and features.")
        array = rows if isinstance(rows, np.ndarray) else None
        if array is None:
            raw = [client.compute(part) for part in cast("Any", rows).rechunk({1: -1}).to_delayed()[:, 0]]
        else:
            pieces = np.array_split(array, max(1, -(-len(array) // ROWS_PER_BLOCK)))
            raw = [client.submit(_itself, piece, pure=False) for piece in pieces]
        blocks = [
            client.submit(_checked, block, pure=False, workers=place, allow_other_workers=True)
            for block, place in zip(raw, _even_places(client, raw), strict=True)
        ]
        shapes = client.gather([client.submit(np.shape, block, pure=False) for block in blocks])
        full = [(block, shape) for block, shape in zip(blocks, shapes, strict=True) if shape[0]]
        if not full:
            raise InvalidFeaturesError("X has no rows.")
        return cls(client, [block for block, _ in full], [shape[0] for _, shape in full], full[0][1][1], array)

    def parts(self, vector: FloatArray) -> list[FloatArray]:
        """A vector of one entry per row, cut like the blocks."""
        return [vector[start:stop] for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def located(self, index: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Numbers of the blocks that hold some rows, where these are in ``index``, and where in the block."""
        return located(self.bounds, index)

    def take_rows(self, index: IntArray) -> FloatArray:
        """Some rows, brought here."""
        return _taken(self.client, self.blocks, self.located(index), (len(index), self.shape[1]))

    def each_block(self, work: Callable[[FloatArray], Any]) -> list[Any]:
        """``work`` of every block, in the order of the rows."""
        return list(self.client.gather([self.client.submit(work, block, pure=False) for block in self.blocks]))

    def kept(self, index: IntArray) -> DistributedPoints:
        """Some rows, in ascending order, where they are."""
        blocks, sizes = [], []
        for number, _, local in self.located(index):
            blocks.append(self.client.submit(_rows_of, self.blocks[number], local, pure=False))
            sizes.append(len(local))
        return DistributedPoints(self.client, blocks, sizes, self.shape[1])

    def factor_builder(self, kernel: Any) -> DistributedFactor:
        """A low-rank factor that grows on the workers."""
        return DistributedFactor(self, kernel)

    def check_memory(self, rank: int) -> None:
        """Refuse a factor that the workers cannot hold."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker.get("memory_limit") or 0 for worker in workers]
        if not limits or not all(limits):
            return
        available = USABLE * sum(limits)
        per_column = 2 * 8.0 * self.shape[0]
        if per_column * rank > available:
            raise MemoryBudgetError(
                f"a fit of rank {rank} to {self.shape[0]} labels needs about {per_column * rank / 1e9:.1f} GB on the workers, "
                f"which offer {available / 1e9:.1f} GB; rank={int(available / per_column)} would fit."
            )


class DistributedFactor(FactorBuilder):
    """The columns of a pivoted Cholesky factor, block by block on the workers."""

    def __init__(self, points: DistributedPoints, kernel: Any) -> None:
        self.size = len(points)
        self._all, self._client, self._kernel = points, points.client, kernel
        self._rank = 0
        # Columns of every block, in pieces: joining them at every step would cost as much as computing them.
        self._pieces: list[list[Any]] = [[] for _ in points.blocks]

    def diagonal(self) -> FloatArray:
        """The kernel of every point with itself."""
        futures = [self._client.submit(_diagonal, self._kernel, block, pure=False) for block in self._all.blocks]
        return np.concatenate(self._client.gather(futures))

    def points(self, index: IntArray) -> FloatArray:
        """Some of the points."""
        return self._all.take_rows(index)

    def rows(self, index: IntArray) -> FloatArray:
        """Some rows of the factor, as far as it has grown."""
        return _taken(self._client, self._pieces, self._all.located(index), (len(index), self._rank))

    def extend(self, chosen: Any, known: FloatArray, root: FloatArray) -> FloatArray:
        """Add the columns of the pivots ``chosen`` on every worker."""
        shared = [_once(self._client, item) for item in (chosen, known, root)]
        squares = []
        for block, pieces in zip(self._all.blocks, self._pieces, strict=True):
            new = self._client.submit(new_columns, self._kernel, block, list(pieces), *shared, pure=False)
            squares.append(self._client.submit(squared_norms, new, pure=False))
            pieces.append(new)
        self._rank += len(root)
        return np.concatenate(self._client.gather(squares))

    def finish(self) -> DistributedRows:
        """The factor, where it is."""
        factor = [self._client.submit(_joined, list(pieces), pure=False) for pieces in self._pieces]
        return DistributedRows(self._all, factor, self._rank)


class DistributedRows(FactorRows):
    """Rows of a factor on the workers of a client."""

    def __init__(self, points: DistributedPoints, factor: list[Any], rank: int) -> None:
        self._all, self._client, self._factor = points, points.client, factor
        self.size, self.rank = len(points), rank

    def _submit(self, way: RowWork, work: RowWork, by_row: Sequence[FloatArray], common: Sequence[Any]) -> list[Any]:
        shared = [_once(self._client, item) for item in common]
        parts = [self._all.parts(vector) for vector in by_row]
        return [
            self._client.submit(way, factor, work, [part[number] for part in parts], shared, pure=False)
            for number, factor in enumerate(self._factor)
        ]

    def each(self, work: RowWork, by_row: Sequence[FloatArray] = (), common: Sequence[Any] = ()) -> list[Any]:
        """One task per block."""
        found = self._client.gather(self._submit(_each, work, by_row, common))
        return [result for block in found for result in block]

    def total(self, work: RowWork, by_row: Sequence[FloatArray] = (), common: Sequence[Any] = ()) -> Any:
        """Summed on the workers, some at a time."""
        futures = self._submit(_total, work, by_row, common)
        while len(futures) > 1:
            groups = [futures[start : start + FAN_IN] for start in range(0, len(futures), FAN_IN)]
            futures = [self._client.submit(_sum, group, pure=False) for group in groups]
        return np.array(futures[0].result())

    def take(self, index: IntArray) -> FloatArray:
        """Some rows, brought here."""
        return _taken(self._client, self._factor, self._all.located(index), (len(index), self.rank))


def distributed_gram_matrix(
    kernel: Any, X: Sequence[Any], Y: Sequence[Any] | None = None, *, client: Any, **options: Any
) -> np.ndarray:
    """:func:`mislabel.kernels.gram_matrix` with its blocks computed on the workers of ``client``.

    The matrix is written here; with ``path`` it is as resumable as the one of a single machine. Options are those of
    ``gram_matrix``.
    """
    # A list: older versions of dask call what comes first in a tuple.
    graphs = client.submit(_itself, [kernel, list(X), None if Y is None else list(Y)], pure=False)
    prepared = client.submit(_prepared, graphs, pure=False)

    def run(pairs: Callable[[int], IntArray], todo: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        from distributed import as_completed

        waiting = iter(todo)
        running: dict[Any, tuple[int, Any]] = {}

        def submit(number: int) -> Any:
            future = client.submit(_values, prepared, pairs(number), pure=False)
            running[future.key] = number, future
            return future

        most = BLOCKS_AHEAD * max(1, sum(client.nthreads().values()))
        try:
            first = [submit(number) for number in islice(waiting, most)]
            results = as_completed(first, loop=client.loop, with_results=True)
            for future, values in results:
                yield running.pop(future.key)[0], values
                following = next(waiting, None)
                if following is not None:
                    results.add(submit(following))
        finally:  # nobody waits for these any more
            client.cancel([future for _, future in running.values()])

    return gram_matrix(kernel, X, Y, run=run, **options)


def _lazy_array(X: Any) -> Any:
    """A dask collection as a dask array; what else follows dask's protocol, as an array of this process."""
    from dask import array

    if isinstance(X, array.Array):
        return X
    from dask import dataframe  # needs more packages than arrays do

    frames = (dataframe.DataFrame, dataframe.Series)
    return X.to_dask_array(lengths=True) if isinstance(X, frames) else np.asarray(X, dtype=float)


def _once(client: Any, value: Any) -> Any:
    """A value as a task result, where it is large: it then travels once, and can be had again if a worker dies."""
    large = isinstance(value, np.ndarray) and value.nbytes > LARGE
    return client.submit(_itself, value, pure=False) if large else value


def _taken(client: Any, blocks: list[Any], located: Iterable[Any], shape: tuple[int, int]) -> FloatArray:
    places, futures = [], []
    for number, where, local in located:
        places.append(where)
        futures.append(client.submit(_rows_of, blocks[number], local, pure=False))
    parts = client.gather(futures)
    found = np.empty(shape)
    for where, part in zip(places, parts, strict=True):
        found[where] = part
    return found


def _itself(value: Any) -> Any:
    return value


def _checked(block: Any) -> FloatArray:
    try:
        rows = np.ascontiguousarray(block, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidFeaturesError(f"features must be numbers: {error}") from None
    if not np.isfinite(rows).all():
        raise InvalidFeaturesError("features contain NaN or infinite values: fill or drop these rows.")
    return rows


def _diagonal(kernel: Any, block: FloatArray) -> FloatArray:
    return np.asarray(kernel.diag(block), dtype=float)


def _joined(pieces: list[FloatArray]) -> FloatArray:
    return np.hstack(pieces)


def _rows_of(block: FloatArray | list[FloatArray], index: IntArray) -> FloatArray:
    if isinstance(block, list):
        return np.hstack([piece[index] for piece in block]) if block else np.zeros((len(index), 0))
    return block[index]


def _each(rows: FloatArray, work: RowWork, by_row: Sequence[FloatArray], common: Sequence[Any]) -> list[Any]:
    """What one machine does with its rows, done by a worker with those of a block."""
    return LocalRows(rows).each(work, by_row, common)


def _total(rows: FloatArray, work: RowWork, by_row: Sequence[FloatArray], common: Sequence[Any]) -> Any:
    return LocalRows(rows).total(work, by_row, common)


def _sum(parts: list[Any]) -> Any:
    found = np.array(parts[0])
    for part in parts[1:]:
        found += part
    return found


def _prepared(graphs: list[Any]) -> Any:
    kernel, left, right = graphs
    return laid_out(kernel, left, right)


def _values(prepared: Any, pairs: IntArray) -> FloatArray:
    return np.asarray(prepared.values(pairs))
