"""Rows are known again by what they hold, in whatever file and order."""

import numpy as np
import pandas as pd
import pytest

from mislabel.data.molecules import Molecule
from mislabel.data.row_fingerprints import of_columns, of_molecules, of_rows

FRAME = pd.DataFrame({"a": [1.0, -0.0, np.nan, 4.5], "b": ["x", "y ", None, "x"], "c": [1, 2, 3, 4]})
LABELS = np.array([1.0, 2.0, 3.0, 4.0])


def texts(frame, columns=("a", "b", "c")):
    found = of_columns(frame, columns, np.zeros(len(frame)))
    return [found.text(position) for position in range(len(frame))]


def test_the_same_content_has_the_same_fingerprint_whatever_its_type():
    told = texts(FRAME)
    assert len(set(told)) == 4
    assert all(len(text) == 16 for text in told)
    assert texts(FRAME.astype({"c": float, "b": "category"})) == told
    assert texts(FRAME.assign(a=[1, 0, None, "4.50"], c=["1", "2", "3", "4.0"])) == told
    assert texts(FRAME.iloc[::-1]) == told[::-1]
    assert texts(FRAME.assign(b=["x", "y", "", " x"])) == told
    # Fingerprints are kept in files: they must not change from one version to the next.
    assert told[0] == "74d62e4713f1cd83"


@pytest.mark.parametrize("changed", [{"a": [1.0, 0, 1, 4.5]}, {"b": ["x", "y", "z", "x"]}, {"c": [1, 2, 33, 4]}])
def test_other_content_has_another_one(changed):
    told, other = texts(FRAME), texts(FRAME.assign(**changed))
    assert [one == two for one, two in zip(told, other, strict=True)] == [True, True, False, True]


def test_columns_do_not_change_places():
    frame = pd.DataFrame({"a": [1, 2], "b": [2, 1]})
    assert len(set(texts(frame, ("a", "b")))) == 2


def test_copies_have_the_same_content_and_the_same_label():
    frame = pd.DataFrame({"a": [1, 1, 1, 2, 1]})
    found = of_columns(frame, ["a"], np.array([5.0, 5.0, 6.0, 5.0, np.nan]))
    assert found.copies.tolist() == [2, 2, 1, 1, 1]
    assert sorted(found.positions[found.text(0)].tolist()) == [0, 1, 2, 4]
    assert found.positions[found.text(3)].tolist() == [3]


def test_many_rows_are_looked_at_in_pieces(monkeypatch):
    whole = texts(FRAME)
    monkeypatch.setattr("mislabel.data.row_fingerprints._ROWS_AT_ONCE", 3)
    assert texts(FRAME) == whole


def test_molecules_by_their_atoms():
    one, other = Molecule(np.array([1, 8]), np.zeros((2, 3))), Molecule(np.array([8, 1]), np.zeros((2, 3)))
    moved = Molecule(np.array([1, 8]), np.full((2, 3), 1e-9))
    found = of_molecules([one, other, moved], np.zeros(3))
    assert found.columns == ()
    assert found.text(0) == found.text(2) != found.text(1)


def test_where_nothing_can_be_told():
    assert of_molecules([object()], np.zeros(1)) is None
    assert of_rows(FRAME, [], None, LABELS) is None
    assert of_rows(FRAME, ["a", "no such"], None, LABELS) is None
    assert of_rows(FRAME, ["a"], np.eye(4), LABELS) is None
