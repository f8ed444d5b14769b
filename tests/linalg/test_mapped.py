import numpy as np

from mislabel.linalg.mapped import let_go, mapping_of, new_mapped


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
