"""Shipped example data with planted errors."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
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


class ExampleFile(NamedTuple):
    """A shipped file, written where the user can see it; ``planted`` are the positions of the rows made wrong."""

    path: Path
    label: str
    id: str | None
    what: str
    planted: set[int]


def write_example(name: str, folder: Path) -> ExampleFile:
    """Copy a shipped example ("table" or "molecules") into a folder."""
    source = files("mislabel.data") / "example_data"
    folder.mkdir(parents=True, exist_ok=True)
    if name == "table":
        example = load_example_table()
        path = folder / "heat_pumps.csv"
        path.write_bytes((source / "heat_pumps.csv").read_bytes())
        what = f"{len(example.frame)} simulated heat-pump tests, {int(example.planted.sum())} of them made wrong"
        return ExampleFile(path, example.label, example.id, what, set(np.flatnonzero(example.planted).tolist()))
    path = folder / "molecules.xyz"
    path.write_bytes((source / "molecules.xyz").read_bytes())
    about = json.loads((source / "molecules_planted.json").read_text(encoding="utf-8"))
    planted = {int(position) for position in about["planted"]}
    what = f"{about['molecules']} small molecules, {len(planted)} of their labels made wrong"
    return ExampleFile(path, about["label"], None, what, planted)
