import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from mislabel.errors import GramFileError, InvalidParameterError
from mislabel.kernels import MolecularKernel, gram, gram_matrix
from mislabel.kernels.matrix_blocks import Blocks
from tests.kernels.graphs.test_marginalized import random_graph

GRAPHS = [random_graph(seed) for seed in range(23)]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(gram, "BLOCK_PAIRS", 16)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_blocks_threads_and_files_agree_bit_by_bit(tmp_path, n_jobs):
    kernel = MolecularKernel(0.1)
    expected = kernel(GRAPHS)
    np.testing.assert_array_equal(gram_matrix(kernel, GRAPHS, n_jobs=n_jobs), expected)
    stored = gram_matrix(kernel, GRAPHS, path=tmp_path / "k.gram", n_jobs=n_jobs)
    np.testing.assert_array_equal(stored, expected)
    rectangle = gram_matrix(kernel, GRAPHS[:5], GRAPHS, path=tmp_path / "r.gram", n_jobs=n_jobs)
    np.testing.assert_allclose(rectangle, expected[:5], rtol=1e-7)


class Counting:
    """Progress that remembers, and stops the work after a while."""

    def __init__(self, most=10**9):
        self.calls, self.most = 0, most

    def __call__(self, message, fraction):
        self.calls += 1
        if self.calls >= self.most:
            raise KeyboardInterrupt


def test_no_thread_waits_long_for_the_last_block():
    blocks = Blocks((50, 50), True, 100)
    sizes = [len(blocks.pairs(number)) for number in blocks.largest_first(range(len(blocks.index)))]
    assert sizes == [100] * 10 + [55] * 5
    oblong = Blocks((20, 50), False, 100)
    assert oblong.largest_first(range(10)) == list(range(10))


@pytest.mark.usefixtures("small_blocks")
def test_only_missing_blocks_are_computed(tmp_path):
    kernel, path = MolecularKernel(0.1), tmp_path / "k.gram"
    with pytest.raises(KeyboardInterrupt):
        gram_matrix(kernel, GRAPHS, path=path, n_jobs=1, progress=Counting(7))
    rest = Counting()
    matrix = gram_matrix(kernel, GRAPHS, path=path, n_jobs=2, progress=rest)
    np.testing.assert_array_equal(matrix, kernel(GRAPHS))
    assert rest.calls == 21 - 7
    again = Counting()
    gram_matrix(kernel, GRAPHS, path=path, progress=again)
    assert again.calls == 0


@pytest.mark.usefixtures("small_blocks")
def test_a_torn_record_costs_one_block(tmp_path):
    kernel, path = MolecularKernel(0.1), tmp_path / "k.gram"
    gram_matrix(kernel, GRAPHS, path=path)
    record = tmp_path / "k.gram.progress"
    record.write_bytes(record.read_bytes()[:-4])
    rest = Counting()
    np.testing.assert_array_equal(gram_matrix(kernel, GRAPHS, path=path, progress=rest), kernel(GRAPHS))
    assert rest.calls == 1


def test_matrices_are_not_mixed(tmp_path):
    path = tmp_path / "k.gram"
    gram_matrix(MolecularKernel(0.1), GRAPHS, path=path)
    for kernel, graphs, options in (
        (MolecularKernel(0.2), GRAPHS, {}),
        (MolecularKernel(0.1), GRAPHS[::-1], {}),
        (MolecularKernel(0.1), GRAPHS, {"dtype": "float32"}),
    ):
        with pytest.raises(GramFileError, match="other graphs"):
            gram_matrix(kernel, graphs, path=path, **options)


SCRIPT = """
import sys, time
from mislabel.kernels import MolecularKernel, gram, gram_matrix
from mislabel.kernels.matrix_blocks import Blocks
from tests.kernels.graphs.test_marginalized import random_graph
gram.BLOCK_PAIRS = 16
gram_matrix(MolecularKernel(0.1), [random_graph(seed) for seed in range(23)], path=sys.argv[1], n_jobs=1,
            progress=lambda message, fraction: time.sleep(0.3))
"""


def test_killed_at_any_moment(tmp_path):
    """kill -9 in the middle, then only the rest is computed and the result is right."""
    path, record = tmp_path / "k.gram", tmp_path / "k.gram.progress"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], cwd=os.getcwd())
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not record.exists() or len(record.read_bytes().splitlines()) < 6):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(record.read_bytes().splitlines()) - 1
    assert 5 <= finished < 21
    rest = Counting()
    original, gram.BLOCK_PAIRS = gram.BLOCK_PAIRS, 16
    try:
        matrix = gram_matrix(MolecularKernel(0.1), GRAPHS, path=path, progress=rest)
    finally:
        gram.BLOCK_PAIRS = original
    # Another process may have compiled the same loops with other roundings.
    np.testing.assert_allclose(matrix, MolecularKernel(0.1)(GRAPHS), rtol=1e-10)
    assert rest.calls == 21 - finished


@pytest.mark.usefixtures("small_blocks")
def test_any_kernel_by_blocks(tmp_path, rng):
    points = rng.normal(size=(19, 3))
    matrix = gram_matrix(RBF(0.7), points, path=tmp_path / "rbf.gram")
    np.testing.assert_allclose(matrix, RBF(0.7)(points), rtol=1e-12)


def test_zero_jobs_make_no_sense():
    with pytest.raises(InvalidParameterError, match="n_jobs"):
        gram_matrix(MolecularKernel(), GRAPHS[:3], n_jobs=0)
