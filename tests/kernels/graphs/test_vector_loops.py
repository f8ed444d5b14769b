import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from mislabel.kernels.graphs.vector_loops import CAN_PACK, CHUNK, split_weights


@numba.njit
def split(near, tail, lengths, weights, ends, at, behind, count, log_weights, above):
    one, zero = weights.dtype.type(1), lengths.dtype.type(0)
    return split_weights(
        near[0], near[1], np.uint64(at), tail[0], tail[1], np.uint64(behind), lengths, weights, np.uint64(0), zero, one, one,
        ends, np.uint64(1000), np.uint64(count), log_weights, above,
    )  # fmt: skip


@pytest.mark.skipif(not CAN_PACK, reason="this processor cannot pack vectors: no tail is split off")
@pytest.mark.parametrize(("real", "integer"), [(np.float32, np.int32), (np.float64, np.int64)])
def test_every_choice_of_lanes_is_packed(real, integer):
    weights, ends = np.arange(1, CHUNK + 1).astype(real), np.arange(CHUNK).astype(np.uint64)
    for bits in range(1 << CHUNK):
        close = bits >> np.arange(CHUNK) & 1 == 1
        # Some are light because they are far apart, some because of their own weight.
        far = np.arange(CHUNK) % 2 == 0
        lengths = np.where(close | ~far, 1, 4).astype(integer)
        logs = np.where(close | far, 0.0, -9.0).astype(real)
        for count in (1, 3, CHUNK - 1, CHUNK, CHUNK + 5):
            lists = [(np.zeros(4 * CHUNK, real), np.zeros(4 * CHUNK, np.uint64)) for _ in range(2)]
            found = split(*lists, lengths, weights, ends, 2, 5, count, logs, real(9.0))
            inside = np.arange(CHUNK) < count
            for picked, total, (values, places), start in zip(
                (inside & close, inside & ~close), found, lists, (2, 5), strict=True
            ):
                assert total == picked.sum()
                here = slice(start, start + total)
                np.testing.assert_allclose(
                    values[here], 2.0 ** -(lengths[picked].astype(real) ** 2) * weights[picked], rtol=1e-6
                )
                np.testing.assert_array_equal(places[here], ends[picked] + np.uint64(1000))
                assert not values[:start].any()


SCRIPT = """
import numpy as np
from mislabel.kernels import Graph, MolecularKernel
from mislabel.kernels.graphs.slot_loops import CAN_REORDER
graphs = [Graph(3, [(0, 1), (1, 2)], nodes={"element": [1, 6, 1]}, edge_labels={"length": [1.0, at]}) for at in (1.1, 1.2)]
print(CAN_REORDER, *MolecularKernel(0.1)(graphs).ravel())
"""


def test_processors_that_numba_is_told_of(tmp_path):
    # As clusters do whose nodes share a cache.
    told = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    results = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, **more}, capture_output=True, text=True, check=True
        ).stdout.split()
        for more in ({}, told)
    ]
    assert results[1][0] == "False"
    np.testing.assert_allclose(*(np.array(numbers[1:], dtype=float) for numbers in results), rtol=2e-7)
