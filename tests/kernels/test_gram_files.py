"""Matrices in files: whatever happens to the file, a right matrix or an error, never a wrong matrix."""

import errno
import io
import os
import shutil
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from mislabel._common import atomic_files
from mislabel.errors import DiskSpaceError, FileInUseError, GramFileError, GramFileWarning, InvalidParameterError
from mislabel.kernels import (
    CallableKernel,
    Graph,
    KroneckerDelta,
    MarginalizedGraphKernel,
    PrecomputedKernel,
    TensorProduct,
    fingerprints,
    gram,
    gram_files,
    gram_matrix,
)
from mislabel.kernels.fingerprints import digest_of

POINTS = np.random.default_rng(0).normal(size=(23, 3))
FEW = POINTS[:9]  # six blocks
#: Damages that are tried; see below for their kinds.
DAMAGES = 300


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(gram, "BLOCK_PAIRS", 16)


def kernel(length_scale=1.0):
    return ConstantKernel(1.5) * RBF(length_scale)


def compute(path, length_scale=1.0, points=POINTS, **options):
    return gram_matrix(kernel(length_scale), points, path=path, n_jobs=1, **options)


def expected(length_scale=1.0, points=POINTS):
    return gram_matrix(kernel(length_scale), points, n_jobs=1)


def record_of(path):
    return path.with_name(path.name + ".progress")


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_file_is_an_ordinary_npy_file(tmp_path):
    for dtype in ("float64", "float32"):
        stored = compute(tmp_path / f"{dtype}.gram", dtype=dtype)
        np.testing.assert_allclose(stored, kernel()(POINTS), rtol=1e-6)
        np.testing.assert_array_equal(np.load(tmp_path / f"{dtype}.gram"), stored)
    nobody = gram_matrix(kernel(), POINTS[:0], POINTS, path=tmp_path / "nobody.gram")
    assert nobody.shape == (0, 23)


# --- whose matrix it is ------------------------------------------------------------------------------------------------


def test_a_setting_that_differs_in_its_last_bits_is_another_matrix(tmp_path):
    compute(tmp_path / "k.gram", 1.0)
    for other in (1.0049, np.nextafter(1.0, 2.0)):
        with pytest.raises(GramFileError, match="other hyperparameters"):
            compute(tmp_path / "k.gram", other)
    scales = np.ones(2000)
    changed = scales.copy()
    changed[1000] = np.nextafter(1.0, 2.0)
    points = np.random.default_rng(1).normal(size=(5, 2000))
    gram_matrix(RBF(scales), points, path=tmp_path / "long.gram")
    with pytest.raises(GramFileError, match="other hyperparameters"):
        gram_matrix(RBF(changed), points, path=tmp_path / "long.gram")


def test_points_of_another_dtype_shape_or_bit_are_others(tmp_path):
    gram_matrix(kernel(), POINTS, path=tmp_path / "k.gram")
    moved = POINTS.copy()
    moved[11, 1] = np.nextafter(moved[11, 1], 9.0)
    for points, others in ((POINTS.astype(np.float32), None), (moved, None), (POINTS, POINTS), (POINTS[:, :2], None)):
        with pytest.raises(GramFileError, match="other graphs or points"):
            gram_matrix(kernel(), points, others, path=tmp_path / "k.gram")


def test_matrices_of_older_versions_of_kernels_are_refused(tmp_path, monkeypatch):
    compute(tmp_path / "k.gram")
    monkeypatch.setattr(fingerprints, "VALUES_VERSION", 10**6)
    with pytest.raises(GramFileError, match="version"):
        compute(tmp_path / "k.gram")


def closure(factor):
    return lambda left, right: factor * np.exp(-abs(left - right))


def test_fingerprints_see_everything():
    def pieces(prior, bounds=(0.1, 0.9)):
        return MarginalizedGraphKernel(TensorProduct(KroneckerDelta("a", prior, bounds), KroneckerDelta("b", 0.5)))

    values = [
        kernel(),
        RBF(1.0),
        RBF(np.array([1.0])),
        RBF(np.array([1.0], dtype=np.float32)),
        Matern(1.0, nu=1.5),
        Matern(1.0, nu=2.5),
        pieces(0.3),
        pieces(np.nextafter(0.3, 1.0)),
        pieces(0.3, (0.1, 0.8)),
        CallableKernel(closure(1.0)),
        CallableKernel(closure(2.0)),
        CallableKernel(lambda left, right: np.exp(-((left - right) ** 2))),
        CallableKernel(partial(max, 1)),
        CallableKernel(partial(max, 2)),
        1, 1.0, True, "1", b"1", None, (1,), [1], [[1]], {1}, {1: 1}, [1, 2], [12], ["a", "b"], ["ab"], 0.0, -0.0,
        np.zeros(2), np.zeros((2, 1)), np.zeros(2, dtype=int), np.array([None, "a"]), np.array(["a", None]), 1j,
    ]  # fmt: skip
    digests = [digest_of(value) for value in values]
    assert len(set(digests)) == len(values)
    assert digest_of(CallableKernel(closure(1.0))) == digests[9]
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of(pieces(0.3).set_params(n_jobs=3)) == digest_of(pieces(0.3))
    itself = [1]
    itself.append(itself)
    assert digest_of(itself) != digest_of([1, [1]])


def test_graphs_that_a_kernel_tells_apart_have_different_fingerprints():
    edges = [(0, 1), (1, 2), (2, 0)]
    graphs = [
        Graph(3, edges, None, {"a": [1, 2, 3]}),
        Graph(3, edges, None, {}, {"a": [1, 2, 3]}),
        Graph(3, edges, None, {"a": [1.0, 2.0, 3.0]}),
        Graph(3, edges, None, {"b": [1, 2, 3]}),
        Graph(3, edges, None, {"a": ["1", "2", "3"]}),
        Graph(3, edges, None, {"a": ["1, 2", "3", ""]}),
        Graph(3, edges, [1.0, 1.0, np.nextafter(1.0, 2.0)], {"a": [1, 2, 3]}),
        Graph(3, edges[:2], None, {"a": [1, 2, 3]}),
        Graph(4, edges, None, {"a": [1, 2, 3, 4]}),
        Graph(3, edges, None, {"ab": [1, 2, 3], "c": [1, 2, 3]}),
        Graph(3, edges, None, {"a": [1, 2, 3], "bc": [1, 2, 3]}),
    ]
    assert len({graph.fingerprint() for graph in graphs}) == len(graphs)
    assert Graph(3, edges, None, {"a": [1, 2, 3]}, name="other").fingerprint() == graphs[0].fingerprint()


class Unstable:
    """Something that says something else about itself each time."""

    count = 0

    def __reduce__(self):
        Unstable.count += 1
        return Unstable, (), {"count": Unstable.count}


def test_what_cannot_be_told_apart_is_refused(tmp_path):
    for setting, words in ((threading.Lock(), "fingerprint"), (Unstable(), "each time")):
        with pytest.raises(GramFileError, match=words):
            gram_matrix(RBF(1.0).set_params(length_scale_bounds=setting), POINTS, path=tmp_path / "k.gram")
    assert not files_in(tmp_path)


# --- damage ------------------------------------------------------------------------------------------------------------


def flip(path, rng):
    content = bytearray(path.read_bytes())
    for place in rng.integers(0, len(content), rng.integers(1, 12)):
        content[place] ^= 1 << rng.integers(8)
    path.write_bytes(content)


def overwrite(path, rng):
    content = bytearray(path.read_bytes())
    start, length = rng.integers(len(content)), rng.integers(1, 400)
    content[start : start + length] = bytes(len(content[start : start + length]))
    path.write_bytes(content)


def cut(path, rng):
    os.truncate(path, rng.integers(path.stat().st_size))


def append(path, rng):
    path.write_bytes(path.read_bytes() + rng.bytes(rng.integers(1, 200)))


def shuffle(path, rng):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[k] for k in rng.integers(0, len(lines), len(lines))))


def foreign(path, rng):
    size = 23 if rng.random() < 0.7 else 24
    np.save(path.with_suffix(".npy"), rng.normal(size=(size, size)))
    path.with_suffix(".npy").replace(path)


def exchange(path, rng):
    other = path.with_name(path.name.replace("one", "two"))
    keep = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(keep)


def remove(path, rng):
    path.unlink()


def move_rows(path, rng):
    content = bytearray(path.read_bytes())
    first, second = 8 * rng.integers(16, len(content) // 8 - 32, 2)
    content[first : first + 32], content[second : second + 32] = (
        content[second : second + 32],
        content[first : first + 32],
    )
    path.write_bytes(content)


KINDS = (flip, flip, overwrite, cut, append, exchange, remove, foreign)


def damage(folder, rng):
    """One to three random damages to the files of the matrix ``one.gram``."""
    for _ in range(rng.integers(1, 4)):
        name = ("one.gram", "one.gram.progress")[rng.integers(2)]
        kinds = (*KINDS, move_rows) if name == "one.gram" else (*KINDS, shuffle)
        path = folder / name
        if path.exists() and path.stat().st_size > 600:
            kinds[rng.integers(len(kinds))](path, rng)


def outcome(folder):
    """What a damaged file gives; a refusal must have left everything as it was."""
    before = files_in(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GramFileWarning)
            matrix = compute(folder / "one.gram", 1.0)
    except GramFileError:
        return "refused" if files_in(folder) == before else "refused and changed"
    return "right" if np.array_equal(matrix, expected(1.0)) else "wrong"


def count_outcomes(tmp_path, seeds):
    compute(tmp_path / "whole" / "one.gram", 1.0)
    compute(tmp_path / "whole" / "two.gram", 2.0)
    counts = {}
    for seed in seeds:
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", folder)
        damage(folder, np.random.default_rng(seed))
        found = outcome(folder)
        counts[found] = counts.get(found, 0) + 1
    return counts


def test_damaged_files_never_give_a_wrong_matrix(tmp_path):
    counts = count_outcomes(tmp_path, range(DAMAGES))
    assert set(counts) == {"right", "refused"}
    assert min(counts.values()) > DAMAGES // 5


def test_damaged_blocks_are_computed_again_and_said_to_be(tmp_path):
    path = tmp_path / "k.gram"
    matrix = compute(path)
    matrix[3, 2] += 1e-13  # in a block on the diagonal
    matrix[20, 1] = 0.0
    matrix[1, 20] = 0.0
    matrix[2, 15] = 7.0  # only in a mirror image
    matrix.flush()
    del matrix
    calls = []
    with pytest.warns(GramFileWarning, match="3 of 21 finished blocks"):
        repaired = compute(path, progress=lambda message, fraction: calls.append(fraction))
    np.testing.assert_array_equal(repaired, expected())
    assert len(calls) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(compute(path), expected())


def test_a_file_cut_in_half_is_not_filled_with_zeros(tmp_path):
    compute(tmp_path / "k.gram")
    os.truncate(tmp_path / "k.gram", (tmp_path / "k.gram").stat().st_size // 2)
    with pytest.raises(GramFileError, match=r"k\.gram.*start afresh"):
        compute(tmp_path / "k.gram")


def test_foreign_files_are_never_overwritten(tmp_path):
    np.save(tmp_path / "mine.npy", np.zeros((23, 23)))
    (tmp_path / "other.gram.progress").write_text("my own progress\n")
    before = files_in(tmp_path)
    with pytest.raises(GramFileError, match="was not made by gram_matrix"):
        compute(tmp_path / "mine.npy")
    with pytest.raises(GramFileError, match="is not a record"):
        compute(tmp_path / "other.gram")
    assert files_in(tmp_path) == before


def test_links_are_not_followed(tmp_path):
    compute(tmp_path / "real.gram")
    before = files_in(tmp_path)
    (tmp_path / "link.gram").symlink_to(tmp_path / "real.gram")
    (tmp_path / "new.gram.progress").symlink_to(tmp_path / "real.gram")
    (tmp_path / "folder.gram").mkdir()
    for name in ("link.gram", "new.gram"):
        with pytest.raises(GramFileError, match="is a link"):
            compute(tmp_path / name)
    with pytest.raises(GramFileError, match="is no file"):
        compute(tmp_path / "folder.gram")
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items())


def test_a_lost_record_means_a_fresh_start(tmp_path):
    path = tmp_path / "k.gram"
    compute(path)
    record_of(path).unlink()
    calls = []
    np.testing.assert_array_equal(compute(path, progress=lambda *_: calls.append(1)), expected())
    assert len(calls) == 21
    path.unlink()
    np.testing.assert_array_equal(compute(path), expected())


# --- two at once, no room ----------------------------------------------------------------------------------------------


def test_a_second_writer_is_told_so_and_readers_are_not_kept_out(tmp_path):
    path = tmp_path / "k.gram"

    refused = []

    def meddle(message, fraction):
        if fraction == 1:
            return  # whether the last block is already on record depends on the disk; a complete file is only read
        with pytest.raises(FileInUseError, match=r"k\.gram"):
            compute(path)
        refused.append(fraction)

    np.testing.assert_array_equal(compute(path, progress=meddle), expected())
    assert len(refused) == 20
    with atomic_files.locked(record_of(path), "a writer"):
        np.testing.assert_array_equal(compute(path), expected())


def test_too_little_room_is_told_before_anything_is_computed(tmp_path, monkeypatch):
    def full(handle, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def never(*_):
        raise AssertionError("something was computed")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(DiskSpaceError, match=r"23 x 23 similarities needs .* GB"):
            gram_matrix(CallableKernel(never), POINTS, path=tmp_path / "k.gram")
    assert "k.gram" not in files_in(tmp_path)
    np.testing.assert_array_equal(compute(tmp_path / "k.gram"), expected())


# --- faults and kills --------------------------------------------------------------------------------------------------


@pytest.fixture
def every_block_waits(monkeypatch):
    """Let every block wait for the disk, however long that takes: the same calls in every run."""
    monkeypatch.setattr(gram_files, "_WAITING_SHARE", np.inf)


class Faults:
    """Counts everything that is done to the disk, and lets one call fail."""

    def __init__(self, monkeypatch, number, fail):
        self.calls, self.number, self.fail = 0, number, fail
        for name in ("write", "fsync", "ftruncate", "posix_fallocate", "link", "replace", "unlink"):
            monkeypatch.setattr(os, name, self.counted(getattr(os, name)))
        monkeypatch.setattr(np.memmap, "flush", self.counted(np.memmap.flush))
        counted = self.counted

        class File(io.BufferedRandom):
            """A file of which writing and flushing may fail."""

            write = counted(io.BufferedRandom.write)
            flush = counted(io.BufferedRandom.flush)

        original = os.fdopen
        monkeypatch.setattr(
            os,
            "fdopen",
            lambda handle, mode, **options: (
                File(io.FileIO(handle, "r+")) if mode == "w+b" else original(handle, mode, **options)
            ),
        )

    def counted(self, function):
        def call(*arguments, **options):
            self.calls += 1
            if self.calls == self.number:
                self.fail()
            return function(*arguments, **options)

        return call


@pytest.mark.usefixtures("every_block_waits")
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_every_failure_of_the_disk_is_told_and_can_be_resumed(tmp_path, monkeypatch, code):
    def fail():
        raise OSError(code, os.strerror(code))

    number, codes = 0, []
    while True:
        number += 1
        path = tmp_path / str(number) / "k.gram"
        with monkeypatch.context() as patched:
            faults = Faults(patched, number, fail)
            try:
                assert np.array_equal(compute(path, points=FEW), expected(points=FEW))
            except OSError as error:
                codes.append(errno.ENOSPC if isinstance(error, DiskSpaceError) else error.errno)
        np.testing.assert_array_equal(compute(path, points=FEW), expected(points=FEW))
        np.testing.assert_array_equal(np.load(path), expected(points=FEW))
        if faults.calls < number:
            break
    assert len(codes) > 20
    assert set(codes) == {code}


@pytest.mark.usefixtures("every_block_waits")
def test_killed_at_every_step_and_resumed(tmp_path, monkeypatch):
    """The same, but the process ends at once: nothing is cleaned up, nothing is told."""
    number = 0
    while True:
        number += 1
        path = tmp_path / str(number) / "k.gram"
        child = os.fork()
        if child == 0:
            with monkeypatch.context() as patched:
                Faults(patched, number, lambda: os._exit(9))
                compute(path, points=FEW)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        np.testing.assert_array_equal(compute(path, points=FEW), expected(points=FEW))
        assert sorted(files_in(path.parent)) == ["k.gram", "k.gram.progress"]
        if os.waitstatus_to_exitcode(status) == 0:
            break
    assert number > 20


# --- threads, other kernels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["progress", "kernel"])
@pytest.mark.parametrize("in_file", [True, False])
def test_no_thread_outlives_a_failure(tmp_path, where, in_file):
    path = tmp_path / "k.gram" if in_file else None
    before = threading.active_count()

    def stop(*_):
        raise KeyboardInterrupt

    failing = where == "kernel"
    with pytest.raises(KeyboardInterrupt) as caught:
        gram_matrix(
            CallableKernel(stop if failing else lambda a, b: float(a @ b)),
            POINTS,
            path=path,
            n_jobs=3,
            progress=None if failing else stop,
        )
    assert threading.active_count() == before  # while the traceback is still held
    assert caught.value is not None


def test_noise_on_the_diagonal_is_kept(tmp_path):
    noisy = RBF(0.7) + WhiteKernel(0.3)
    for path in (None, tmp_path / "k.gram"):
        np.testing.assert_allclose(gram_matrix(noisy, POINTS, path=path), noisy(POINTS), rtol=1e-12)


def test_a_precomputed_matrix_is_not_computed_by_blocks():
    with pytest.raises(InvalidParameterError, match="own matrix"):
        gram_matrix(PrecomputedKernel(), np.eye(23))
