import errno
import os

import numpy as np
import pytest

from mislabel.errors import DiskSpaceError
from mislabel.linalg.mapped import let_go, mapping_of, new_mapped, take_mapped


def test_what_is_written_survives_letting_go():
    array = new_mapped((50, 3), np.float32)
    assert not array.any()
    array[7:20] = 2.5
    let_go(array)
    assert array.sum() == 13 * 3 * 2.5
    let_go(array[3:9])
    assert array[8, 1] == 2.5


def test_views_know_the_file_they_lie_in():
    array = new_mapped((4, 4), np.float64)
    assert mapping_of(np.asarray(array)[1:, ::2]) is mapping_of(array)
    assert mapping_of(array) is not None
    assert mapping_of(np.zeros(3)) is None
    let_go(np.zeros(3))
    let_go([1, 2])


def test_many_rows_are_taken_in_order():
    array = new_mapped((1000, 3), np.float64)
    array[:] = np.arange(3000.0).reshape(1000, 3)
    index = np.random.RandomState(0).randint(0, 1000, 777)
    np.testing.assert_array_equal(take_mapped(array[:, :2], index), np.arange(3000.0).reshape(1000, 3)[index, :2])
    assert mapping_of(take_mapped(array, index)) is None
    np.testing.assert_array_equal(take_mapped(array, np.arange(200, 600)), array[200:600])
    assert mapping_of(take_mapped(array, np.arange(200, 600))) is None
    assert take_mapped(array, np.zeros(0, dtype=int)).shape == (0, 3)
    np.testing.assert_array_equal(take_mapped(np.eye(3), np.array([2, 0])), np.eye(3)[[2, 0]])


def test_too_little_room_is_told_before_anything_is_written(monkeypatch):
    def full(handle, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskSpaceError, match=r"1,000 x 50 numbers .* needs 0\.0004 GB"):
        new_mapped((1000, 50), np.float64)
