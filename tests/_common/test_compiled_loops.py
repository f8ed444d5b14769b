import os
import subprocess
import sys

from numba.core.caching import CacheImpl

from mislabel._common.compiled_loops import compiled, compiled_for_speed

SCRIPT = """
from mislabel.linalg.residual_loops import accurate_residual
import numpy as np
accurate_residual(np.asfortranarray(np.eye(3)), np.ones(3), np.ones(3), np.ones(3))
print(sum(accurate_residual.stats.cache_hits.values()), sum(accurate_residual.stats.cache_misses.values()))
"""


def run(folder):
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.split()


def test_the_second_start_compiles_nothing(tmp_path):
    assert run(tmp_path) == ["0", "1"]
    assert run(tmp_path) == ["1", "0"]


def test_a_cache_directory_that_cannot_be_made_is_survived(tmp_path):
    obstacle = tmp_path / "file"
    obstacle.write_text("not a directory")
    hits, misses = run(obstacle / "cache")
    assert int(hits) + int(misses) <= 1


def test_what_neighbours_define_is_compiled_anew_when_it_changes(tmp_path):
    # A loop keeps the constants, functions and intrinsics of other modules that it was compiled with.
    (tmp_path / "loop.py").write_text(
        "from mislabel._common.compiled_loops import compiled\nfrom neighbour import FACTOR\n\n\n"
        "@compiled\ndef scaled(x):\n    return FACTOR * x\n\n\n"
        "print(scaled(1), sum(scaled.stats.cache_hits.values()))\n"
    )
    outputs = []
    for factor in (2, 2, 37):
        if not outputs or factor != 2:
            (tmp_path / "neighbour.py").write_text(f"FACTOR = {factor}\n")
        command = [sys.executable, "-B", str(tmp_path / "loop.py")]
        outputs.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert outputs == [["2", "0"], ["2", "1"], ["37", "0"]]


def test_nowhere_to_cache(monkeypatch):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])

    @compiled
    def double(x):
        return 2 * x

    @compiled_for_speed
    def half(x):
        return x / 2

    assert double(21) == 42
    assert half(1.0) == 0.5
