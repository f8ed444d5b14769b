"""A table with columns of every kind, gaps and wrong labels."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def mixed():
    """Columns of every kind, with gaps; the labels of rows 7, 30 and 55 are wrong, that of row 12 is missing."""
    rng = np.random.default_rng(5)
    size = 90
    kinds = rng.choice(["steel", "brass", "zinc"], size)
    frame = pd.DataFrame(
        {
            "sample": [f"S{k:03d}" for k in range(size)],
            "length": np.round(rng.uniform(-2, 2, size), 4),
            "count": rng.integers(0, 40, size),
            "checked": rng.random(size) < 0.5,
            "sure": rng.random(size) < 0.5,
            "day": pd.date_range("2024-01-01", periods=size, freq="D").strftime("%Y-%m-%d"),
            "moment": pd.date_range("2024-01-01 10:00", periods=size, freq="7h").strftime("%Y-%m-%d %H:%M:%S"),
            "kind": kinds,
            "gaps": np.round(rng.normal(size=size), 3),
            "site": "north",
        }
    )
    frame["y"] = np.round(np.sin(frame["length"]) + (frame["kind"] == "zinc") + 0.02 * rng.normal(size=size), 4)
    frame.loc[[7, 30, 55], "y"] += [2.0, -1.5, 1.0]
    frame["y"] = frame["y"].round(4)
    frame.loc[12, "y"] = np.nan
    frame.loc[[3, 40], "gaps"] = np.nan
    frame.loc[9, "kind"] = None
    frame["sure"] = frame["sure"].astype(object)
    frame.loc[20, "sure"] = None
    frame.loc[21, "day"] = None
    return frame


@pytest.fixture(scope="session")
def mixed_file(mixed, tmp_path_factory):
    """The same as a CSV file."""
    path = tmp_path_factory.mktemp("mixed") / "mixed.csv"
    mixed.to_csv(path, index=False)
    return path
