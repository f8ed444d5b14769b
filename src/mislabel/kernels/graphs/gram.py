"""Matrices of kernel values by blocks: in threads, with progress, into memory or a file that survives a crash."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mislabel.errors import GramFileError, InvalidParameterError
from mislabel.kernels.on_data import take
from mislabel.linalg.contract import FloatArray, IntArray
from mislabel.progress import Progress, ProgressReporter

#: Evaluates blocks anywhere and in any order: from the pairs of each block by number, and the numbers wanted, to numbers
#: and values.
BlockRunner = Callable[[Callable[[int], IntArray], Sequence[int]], Iterator[tuple[int, FloatArray]]]

#: Pairs per block: a few tenths of a second of work, and little to lose.
BLOCK_PAIRS = 1 << 14


class PreparedKernel(Protocol):
    """A kernel laid out for given graphs, which evaluates any of their pairs."""

    shape: tuple[int, int]
    symmetric: bool

    def values(self, pairs: IntArray) -> FloatArray:
        """Kernel values of pairs (row, column)."""

    def values_and_slopes(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same with derivatives by the logarithms of all hyperparameters."""


class _Blocks:
    """A matrix cut into square blocks; of a symmetric one only those on and below the diagonal are worked on."""

    def __init__(self, shape: tuple[int, int], symmetric: bool, pairs_per_block: int) -> None:
        edge = max(1, int(np.sqrt(pairs_per_block)))
        self.rows = [(start, min(start + edge, shape[0])) for start in range(0, shape[0], edge)]
        self.columns = [(start, min(start + edge, shape[1])) for start in range(0, shape[1], edge)]
        self.index = [
            (i, j) for i in range(len(self.rows)) for j in range(len(self.columns)) if not symmetric or j <= i
        ]
        self.symmetric = symmetric

    def pairs(self, number: int) -> IntArray:
        """The pairs of one block, row by row; on the diagonal only those not above it."""
        i, j = self.index[number]
        rows, columns = np.arange(*self.rows[i]), np.arange(*self.columns[j])
        pairs = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        return pairs[pairs[:, 0] >= pairs[:, 1]] if self.symmetric and i == j else pairs

    def largest_first(self, numbers: Iterable[int]) -> list[int]:
        """Blocks in an order in which nobody waits long for the last: those on the diagonal have half as much to do."""
        return sorted(numbers, key=lambda number: self.symmetric and self.index[number][0] == self.index[number][1])

    def store(self, number: int, values: FloatArray, out: np.ndarray) -> None:
        """Write one block where it belongs, and its mirror image where the matrix is symmetric."""
        i, j = self.index[number]
        (top, bottom), (left, right) = self.rows[i], self.columns[j]
        if self.symmetric and i == j:
            pairs = self.pairs(number)
            block = np.empty((bottom - top, right - left), dtype=out.dtype)
            block[pairs[:, 0] - top, pairs[:, 1] - left] = values
            block[pairs[:, 1] - top, pairs[:, 0] - left] = values
        else:
            block = values.reshape(bottom - top, right - left)
        out[top:bottom, left:right] = block
        if self.symmetric and i != j:
            out[left:right, top:bottom] = block.T


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
                while len(running) < 2 * threads and (item := next(queue, None)) is not None:
                    running[pool.submit(work, item)] = item
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
    blocks = _Blocks(prepared.shape, prepared.symmetric, _block_size(out.size, n_jobs))
    runner = run if run is not None else _threads(prepared, n_jobs)
    _fill(blocks, range(len(blocks.index)), out, runner, progress, lambda number: None)
    return out


def _fill(
    blocks: _Blocks,
    todo: Sequence[int],
    out: np.ndarray,
    run: BlockRunner,
    progress: Progress | None,
    finished: Callable[[int], None],
) -> None:
    total = max(len(blocks.index), 1)
    count = total - len(todo)
    for number, values in run(blocks.pairs, blocks.largest_first(todo)):
        blocks.store(number, values, out)
        finished(number)
        count += 1
        if progress is not None:
            progress("similarities", count / total)


def _threads(prepared: PreparedKernel, n_jobs: int | None) -> BlockRunner:
    """Blocks in threads of this process."""
    return lambda pairs, todo: _in_threads(lambda number: prepared.values(pairs(number)), todo, n_jobs)


def gradient_in_blocks(prepared: PreparedKernel, n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
    """Matrix and (n, n, p) derivatives by the logarithms of all hyperparameters."""
    size = prepared.shape[0]
    matrix, gradient = np.empty((size, size)), None
    for _, (pairs, values, slopes) in _slopes_by_block(prepared, n_jobs):
        if gradient is None:
            gradient = np.empty((size, size, slopes.shape[1]))
        i, j = pairs.T
        matrix[i, j] = matrix[j, i] = values
        gradient[i, j] = gradient[j, i] = slopes
    assert gradient is not None
    return matrix, gradient


def contract_in_blocks(prepared: PreparedKernel, weights: FloatArray, n_jobs: int | None) -> FloatArray:
    """``sum_ij W_ij dK_ij`` by the logarithms of all hyperparameters; W symmetric."""
    parts: dict[int, FloatArray] = {}
    for number, (pairs, _, slopes) in _slopes_by_block(prepared, n_jobs):
        i, j = pairs.T
        parts[number] = np.where(i == j, weights[i, j], weights[i, j] + weights[j, i]) @ slopes
    # In a fixed order, so that the result does not depend on which thread was faster.
    return np.sum([parts[number] for number in sorted(parts)], axis=0)


def _slopes_by_block(
    prepared: PreparedKernel, n_jobs: int | None
) -> Iterator[tuple[int, tuple[IntArray, FloatArray, FloatArray]]]:
    """For the blocks of a symmetric matrix, as they come: number, pairs, values and derivatives."""
    blocks = _Blocks(prepared.shape, True, _block_size(prepared.shape[0] ** 2, n_jobs))

    def work(number: int) -> tuple[IntArray, FloatArray, FloatArray]:
        pairs = blocks.pairs(number)
        return pairs, *prepared.values_and_slopes(pairs)

    return _in_threads(work, blocks.largest_first(range(len(blocks.index))), n_jobs)


class _AnyKernel:
    """Any kernel object, evaluated block by block."""

    def __init__(self, kernel: Any, X: Sequence[Any], Y: Sequence[Any] | None) -> None:
        self._kernel, self._left, self._right = kernel, X, X if Y is None else Y
        self.symmetric = Y is None
        self.shape = (len(X), len(self._right))

    def values(self, pairs: IntArray) -> FloatArray:
        rows, columns = np.unique(pairs[:, 0]), np.unique(pairs[:, 1])
        block = np.asarray(self._kernel(take(self._left, rows, self._kernel), take(self._right, columns, self._kernel)))
        return block[pairs[:, 0] - rows[0], pairs[:, 1] - columns[0]]

    def values_and_slopes(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        raise InvalidParameterError("derivatives by blocks need a graph kernel.")


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
    returns the finished matrix at once if nothing is. A fingerprint of graphs and kernel keeps different matrices apart.
    ``run`` evaluates the blocks elsewhere than in threads of this process, see :mod:`mislabel.distributed`.
    """
    if hasattr(kernel, "graphs_of"):
        X, Y = kernel.graphs_of(X), None if Y is None else kernel.graphs_of(Y)
    prepared = kernel.prepared(X, Y) if hasattr(kernel, "prepared") else _AnyKernel(kernel, X, Y)
    with ProgressReporter(verbose) as reporter:
        report = progress if progress is not None else reporter
        if path is None:
            return gram_in_memory(prepared, n_jobs=n_jobs, dtype=dtype, progress=report, run=run)
        runner = run if run is not None else _threads(prepared, n_jobs)
        return _gram_in_file(prepared, Path(path), fingerprint(kernel, X, Y, dtype), runner, dtype, report)


def _gram_in_file(
    prepared: PreparedKernel, path: Path, identity: str, run: BlockRunner, dtype: str, progress: Progress
) -> np.ndarray:
    blocks = _Blocks(prepared.shape, prepared.symmetric, BLOCK_PAIRS)
    record = path.with_name(path.name + ".progress")
    header = json.dumps({"fingerprint": identity, "blocks": len(blocks.index)}).encode() + b"\n"
    done = _finished_blocks(path, record, header, len(blocks.index))
    if done is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        matrix = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=prepared.shape)
        matrix.flush()
        record.write_bytes(header)
        done = set()
    else:
        matrix = np.lib.format.open_memmap(path, mode="r+")
    todo = [number for number in range(len(blocks.index)) if number not in done]
    with record.open("ab", buffering=0) as log:
        # A block is written down as finished only after its numbers are in the file.
        _fill(blocks, todo, matrix, run, progress, lambda number: log.write(b"%08d\n" % number) and None)
    matrix.flush()
    return matrix


def _finished_blocks(path: Path, record: Path, header: bytes, count: int) -> set[int] | None:
    """Numbers of the blocks already there; None for a fresh start."""
    if not path.exists() and not record.exists():
        return None
    if not record.exists():
        raise GramFileError(
            f"{path} exists but its record {record.name} does not: it was not made by gram_matrix, or the record was "
            "removed. Choose another path, or delete the file to start afresh."
        )
    if not path.exists():
        return None
    content = record.read_bytes()
    if not content.startswith(header):
        raise GramFileError(
            f"{path} holds similarities of other graphs, or of a kernel with other hyperparameters or dtype. Choose "
            f"another path, or delete it and {record.name} to start afresh."
        )
    lines = content[len(header) :].split(b"\n")[:-1]  # a torn last line is a block that is computed again
    return {int(line) for line in lines if len(line) == 8 and line.isdigit() and int(line) < count}


def fingerprint(kernel: Any, X: Sequence[Any], Y: Sequence[Any] | None, dtype: str) -> str:
    """A hash of the kernel with all its settings, and of everything it is applied to."""
    # What is not set changes nothing: matrices on disk survive new options.
    settings = {
        name: value for name, value in kernel.get_params(deep=False).items() if name != "n_jobs" and value is not None
    }
    digest = hashlib.sha256(repr((type(kernel).__qualname__, sorted(settings.items()), dtype)).encode())
    for items in (X, Y):
        digest.update(b"|")
        for item in () if items is None else items:
            digest.update(
                item.fingerprint()
                if hasattr(item, "fingerprint")
                else hashlib.sha256(np.ascontiguousarray(item).tobytes()).digest()
            )
    return digest.hexdigest()
