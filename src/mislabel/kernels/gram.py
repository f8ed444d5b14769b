"""Matrices of kernel values by blocks: in threads, with progress, into memory or a file that survives a crash."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mislabel._common.progress import Progress, ProgressReporter
from mislabel.errors import InvalidParameterError
from mislabel.kernels.adapters import PrecomputedKernel
from mislabel.kernels.contract import GraphKernel, PreparedKernel
from mislabel.kernels.fingerprints import fingerprint
from mislabel.kernels.gram_files import gram_in_file
from mislabel.kernels.matrix_blocks import Blocks
from mislabel.kernels.on_data import take
from mislabel.linalg.contract import FloatArray, IntArray

#: Evaluates blocks anywhere and in any order: from the pairs of each block by number, and the numbers wanted, to numbers
#: and values.
BlockRunner = Callable[[Callable[[int], IntArray], Sequence[int]], Iterator[tuple[int, FloatArray]]]

#: Pairs per block: a few tenths of a second of work, and little to lose.
BLOCK_PAIRS = 1 << 14


def n_threads(n_jobs: int | None) -> int:
    """Number of threads: all cores for None or negative numbers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if n_jobs is None or n_jobs < 0:
        return cores
    if n_jobs == 0:
        raise InvalidParameterError("n_jobs must not be zero: -1 or None means all cores.")
    return n_jobs


def _in_threads(work: Callable[[int], Any], items: Sequence[int], n_jobs: int | None) -> Iterator[tuple[int, Any]]:
    """Results in order of completion; never more blocks in flight than are needed to keep all threads busy."""
    threads = min(n_threads(n_jobs), max(len(items), 1))
    if threads == 1:
        for item in items:
            yield item, work(item)
        return
    queue = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        running: dict[Future[Any], int] = {}
        try:
            while True:
                while len(running) < 2 * threads and (following := next(queue, None)) is not None:
                    running[pool.submit(work, following)] = following
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()


def _block_size(total: int, n_jobs: int | None) -> int:
    """Blocks small enough that all threads have something to do, to the end: none waits long for the last."""
    return int(np.clip(total // (16 * n_threads(n_jobs)), 64, BLOCK_PAIRS // 2))


def gram_in_memory(
    prepared: PreparedKernel,
    *,
    n_jobs: int | None = None,
    dtype: str = "float64",
    progress: Progress | None = None,
    run: BlockRunner | None = None,
) -> FloatArray:
    """The whole matrix as an array."""
    out = np.empty(prepared.shape, dtype=dtype)
    blocks = Blocks(prepared.shape, prepared.symmetric, _block_size(out.size, n_jobs))
    runner = run if run is not None else _threads(prepared, n_jobs)
    _fill(blocks, range(len(blocks.index)), out, runner, progress, lambda number: None)
    return out


def _fill(
    blocks: Blocks,
    todo: Sequence[int],
    out: np.ndarray,
    run: BlockRunner,
    progress: Progress | None,
    finished: Callable[[int], None],
) -> None:
    total = max(len(blocks.index), 1)
    count = total - len(todo)
    with _stopped_at_the_end(run(blocks.pairs, blocks.largest_first(todo))) as results:
        for number, values in results:
            blocks.store(number, values, out)
            finished(number)
            count += 1
            if progress is not None:
                progress("similarities", count / total)


@contextmanager
def _stopped_at_the_end(results: Iterator[Any]) -> Generator[Iterator[Any]]:
    """Let threads end with the loop over their results, also where that fails: not when the last trace of it is gone."""
    try:
        yield results
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()


def _threads(prepared: PreparedKernel, n_jobs: int | None) -> BlockRunner:
    """Blocks in threads of this process."""
    return lambda pairs, todo: _in_threads(lambda number: prepared.values(pairs(number)), todo, n_jobs)


def gradient_in_blocks(prepared: PreparedKernel, n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
    """Matrix and (n, n, p) derivatives by the logarithms of all hyperparameters."""
    size = prepared.shape[0]
    matrix = np.empty((size, size))
    gradient: FloatArray | None = None
    with _stopped_at_the_end(_gradients_by_block(prepared, n_jobs)) as results:
        for _, (pairs, values, gradients) in results:
            if gradient is None:
                gradient = np.empty((size, size, gradients.shape[1]))
            i, j = pairs.T
            matrix[i, j] = matrix[j, i] = values
            gradient[i, j] = gradient[j, i] = gradients
    assert gradient is not None
    return matrix, gradient


def contract_in_blocks(prepared: PreparedKernel, weights: FloatArray, n_jobs: int | None) -> FloatArray:
    """``sum_ij W_ij dK_ij`` by the logarithms of all hyperparameters; W symmetric."""
    parts: dict[int, FloatArray] = {}
    with _stopped_at_the_end(_gradients_by_block(prepared, n_jobs)) as results:
        for number, (pairs, _, gradients) in results:
            i, j = pairs.T
            parts[number] = np.where(i == j, weights[i, j], weights[i, j] + weights[j, i]) @ gradients
    # In a fixed order, so that the result does not depend on which thread was faster.
    return np.asarray(np.sum([parts[number] for number in sorted(parts)], axis=0))


def _gradients_by_block(
    prepared: PreparedKernel, n_jobs: int | None
) -> Iterator[tuple[int, tuple[IntArray, FloatArray, FloatArray]]]:
    """For the blocks of a symmetric matrix, as they come: number, pairs, values and derivatives."""
    blocks = Blocks(prepared.shape, True, _block_size(prepared.shape[0] ** 2, n_jobs))

    def work(number: int) -> tuple[IntArray, FloatArray, FloatArray]:
        pairs = blocks.pairs(number)
        return pairs, *prepared.values_and_gradients(pairs)

    return _in_threads(work, blocks.largest_first(range(len(blocks.index))), n_jobs)


class _AnyKernel:
    """Any kernel object, evaluated block by block."""

    def __init__(self, kernel: Any, X: Sequence[Any], Y: Sequence[Any] | None) -> None:
        if isinstance(kernel, PrecomputedKernel):
            raise InvalidParameterError(
                "a precomputed kernel is its own matrix: there is nothing to compute by blocks."
            )
        self._kernel, self._left, self._right = kernel, X, X if Y is None else Y
        self.symmetric = Y is None
        self.shape = (len(X), len(self._right))

    def values(self, pairs: IntArray) -> FloatArray:
        rows, columns = np.unique(pairs[:, 0]), np.unique(pairs[:, 1])
        left = take(self._left, rows, self._kernel)
        if self.symmetric and np.array_equal(rows, columns):
            # Points with themselves: noise that a kernel adds on the diagonal is there only if it is told so.
            block = np.asarray(self._kernel(left))
        else:
            block = np.asarray(self._kernel(left, take(self._right, columns, self._kernel)))
        return np.asarray(block[pairs[:, 0] - rows[0], pairs[:, 1] - columns[0]])

    def values_and_gradients(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        raise InvalidParameterError("derivatives by blocks need a graph kernel.")


def laid_out(kernel: Any, X: Sequence[Any], Y: Sequence[Any] | None = None) -> PreparedKernel:
    """Any kernel on given points, ready to evaluate their pairs."""
    return kernel.prepared(X, Y) if isinstance(kernel, GraphKernel) else _AnyKernel(kernel, X, Y)


def gram_matrix(
    kernel: Any,
    X: Sequence[Any],
    Y: Sequence[Any] | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    dtype: str = "float64",
    progress: Progress | None = None,
    verbose: int | bool = 0,
    run: BlockRunner | None = None,
) -> np.ndarray:
    """All similarities of X with Y (or with itself), in memory or in a file.

    With ``path`` the matrix is a memory-mapped ``.npy`` file. It is written block by block, so that work that was stopped
    (however rudely) is taken up again where it was: calling the function once more computes only what is missing, and
    returns the finished matrix at once if nothing is. The file knows by a fingerprint whose matrix it is, and is refused with a
    GramFileError for any other kernel, points or dtype; a checksum of every block is compared on opening, and blocks that
    were damaged are computed again with a GramFileWarning. What you write into the returned array counts as damage.
    ``run`` evaluates the blocks elsewhere than in threads of this process, see :mod:`mislabel.distributed`.
    """
    if isinstance(kernel, GraphKernel):
        X, Y = kernel.graphs_of(X), None if Y is None else kernel.graphs_of(Y)
    prepared = laid_out(kernel, X, Y)
    with ProgressReporter(verbose) as reporter:
        report = progress if progress is not None else reporter
        if path is None:
            return gram_in_memory(prepared, n_jobs=n_jobs, dtype=dtype, progress=report, run=run)
        runner = run if run is not None else _threads(prepared, n_jobs)
        blocks = Blocks(prepared.shape, prepared.symmetric, BLOCK_PAIRS)
        identity = fingerprint(kernel, _plain(X), _plain(Y), np.dtype(dtype).str, BLOCK_PAIRS)
        return gram_in_file(
            Path(path),
            blocks,
            dtype,
            identity,
            lambda todo, out, finished: _fill(blocks, todo, out, runner, report, finished),
        )


def _plain(points: Any) -> Any:
    """Points whose fingerprint does not depend on what kind of sequence they are in."""
    return list(points) if isinstance(points, tuple) else points
