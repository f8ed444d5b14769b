"""Shipped example data with planted errors."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class ExampleTable(NamedTuple):
    """A table, the name of its label column and id column, and which rows were made wrong."""

    frame: pd.DataFrame
    label: str
    id: str
    planted: NDArray[np.bool_]


def load_example_table() -> ExampleTable:
    """600 simulated heat-pump tests with 36 planted errors: decimal slips, unit errors, swapped rows, dead sensors."""
    folder = files("mislabel.data") / "example_data"
    with (folder / "heat_pumps.csv").open() as source:
        frame = pd.read_csv(source)
    with (folder / "heat_pumps_planted.csv").open() as source:
        planted = pd.read_csv(source)
    return ExampleTable(frame, "power_kw", "test_id", frame["test_id"].isin(planted["test_id"]).to_numpy())
