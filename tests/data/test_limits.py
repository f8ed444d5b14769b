"""Numbers of which only a side is known: ``<0.5``, ``> 100``."""

import numpy as np
import pandas as pd
import pytest

from mislabel.data.labels import checked_labels, numbers_in, sides_of
from mislabel.data.number_recognition import ColumnCells, recognise_notations
from mislabel.data.number_text import Notation, limit_in
from mislabel.data.table_files import read_table
from mislabel.errors import InvalidLabelsError

NUMBERS = [f"{1.5 + 0.3 * k:.2f}" for k in range(20)]


@pytest.mark.parametrize(
    ("cell", "side", "rest"),
    [
        ("<0.5", -1, "0.5"),
        (" <= 0.5", -1, "0.5"),
        ("\u2264 3", -1, "3"),
        ("> 1,000", 1, "1,000"),
        (">=7", 1, "7"),
        ("\u22657", 1, "7"),
        ("7", 0, "7"),
        ("a<b", 0, "a<b"),
        ("", 0, ""),
    ],
)
def test_a_sign_says_on_which_side_the_number_lies(cell, side, rest):
    assert limit_in(cell) == (side, rest)


def test_notations_read_the_number_of_a_limit():
    assert Notation().number("<0.5") == 0.5
    assert Notation(",").number("> 1.234,5") == 1234.5
    assert np.isnan(Notation().number("<"))
    assert np.isnan(Notation().number("< LOD"))


@pytest.mark.parametrize("limits", [1, 15])
def test_labels_may_be_limits(limits):
    cells = [*NUMBERS, *["<1.5"] * limits, ">7", ""]
    rows = np.arange(len(cells))
    found = checked_labels(pd.Series(cells, name="y"), rows)
    assert found.values[:-1].tolist() == [*map(float, NUMBERS), *[1.5] * limits, 7.0]
    assert np.isnan(found.values[-1])
    assert found.side.tolist() == [0] * 20 + [-1] * limits + [1, 0]


def test_exact_labels_have_no_side():
    assert checked_labels(pd.Series(NUMBERS), np.arange(20)).side is None
    assert checked_labels(pd.Series(np.arange(20.0)), np.arange(20)).side is None


def test_errors_of_labels_may_not_be_limits():
    cells = [*NUMBERS, "<1.5"]
    with pytest.raises(InvalidLabelsError, match="not numbers.*'<1.5'"):
        numbers_in(pd.Series(cells, name="s"), np.arange(21), "label error")


def test_brackets_are_no_numbers():
    assert recognise_notations({"age": ["<18", ">65", "<18", "18"] * 5}, delimiter=",")[0] == {"age": None}
    assert recognise_notations({"age": [*NUMBERS, "<18"]}, delimiter=",")[0] == {"age": Notation()}


def test_few_limits_are_noted(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1.5,1\n" * 30 + "<0.1,1\n")
    table = read_table(tmp_path / "t.csv")
    assert table.frame["x"].iloc[30] == 0.1
    assert table.notes == ["column 'x': 1 cell is a limit (the first is '<0.1', position 30)"]


def test_pieces_of_a_column_tell_what_the_whole_does():
    cells = [*NUMBERS, *["<1.5"] * 12]
    first, second = ColumnCells.of(cells[:25]), ColumnCells.of(cells[25:])
    both = first.followed_by(second)
    assert both.is_numeric
    assert both.limits == 12
    assert not second.is_numeric


@pytest.mark.parametrize("kind", ["csv", "comma", "xlsx", "parquet"])
def test_files_of_every_kind_say_that_numbers_are_limits(kind, tmp_path):
    cells = [*NUMBERS, *["<1.5"] * 12]
    frame = pd.DataFrame({"a": range(32), "y": cells})
    path = tmp_path / f"table.{'csv' if kind == 'comma' else kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "comma":
        frame.assign(y=[cell.replace(".", ",") for cell in cells]).to_csv(path, index=False, sep=";")
    elif kind == "xlsx":
        frame.assign(y=[float(cell) if cell[0] != "<" else cell for cell in cells]).to_excel(path, index=False)
    else:
        frame.to_parquet(path)
    table = read_table(path)
    if kind != "parquet":
        assert any("12 cells are limits (the first is '<1" in note for note in table.notes)
    found = checked_labels(table.frame["y"], np.arange(32), cells=table.written("y"))
    assert found.values.tolist() == [*map(float, NUMBERS), *[1.5] * 12]
    assert found.side.tolist() == [0] * 20 + [-1] * 12


def test_sides_of_cells():
    assert sides_of(["<1", "2", " >3", "\u2264 4", "<"]).tolist() == [-1, 0, 1, -1, -1]
