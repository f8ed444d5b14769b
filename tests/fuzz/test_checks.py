"""The checks themselves: each must see the fault it is there for."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")

from mislabel.data.corrections import read_decisions
from mislabel.data.formats.contract import ReadOptions
from mislabel.data.molecules import Molecule, MoleculeSet
from mislabel.data.provenance import provenance_path
from mislabel.data.table_files import read_table
from tests.fuzz import checks
from tests.fuzz.checks import WrongResultError

TABLE = "a,b,y\n" + "".join(f"x{n},0{n},{n}.5\n" for n in range(8))
MOLECULES = "".join(f"1\nenergy={n}.5 other={n}\nH 0 0 {n}\n" for n in range(8))


def decided_rows(decisions):
    content = read_decisions(decisions)
    dropped = {decision.position for decision in content.decisions if decision.action == "drop"}
    values = {decision.position: decision.value for decision in content.decisions if decision.value is not None}
    return dropped, values


def applied(text, decisions, change):
    """The right result of decisions about a table of the three columns a, b, y, with a change."""
    dropped, values = decided_rows(decisions)
    rows = [line.split(",") for line in text.splitlines()[1:]]
    rows = [[a, b, str(values.get(n, y))] for n, (a, b, y) in enumerate(rows) if n not in dropped]
    undecided = next(n for n, (_, _, y) in enumerate(rows) if y.endswith(".5") and float(y) not in values.values())
    decided = [n for n, (_, _, y) in enumerate(rows) if float(y) in values.values()]
    change(rows, undecided, decided)
    return "\n".join(",".join(row) for row in [["a", "b", "y"], *rows]) + "\n"


def write_with_provenance(target, text):
    """What a stand-in for the real work leaves behind."""
    target.write_text(text)
    provenance_path(target).write_text("{}")


def other_cell(rows, undecided, decided):
    rows[undecided][1] = rows[undecided][1].lstrip("0")


def other_label(rows, undecided, decided):
    rows[undecided][2] = "99"


def forgotten(rows, undecided, decided):
    rows[decided[0]][2] = "99"


def lost(rows, undecided, decided):
    del rows[undecided]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows, undecided, decided: None, None),
        (other_cell, "not decided about changed"),
        (other_label, "not decided about changed"),
        (forgotten, "does not hold its value"),
        (lost, "more or fewer rows"),
    ],
)
def test_wrong_tables_are_seen(tmp_path, monkeypatch, change, message):
    source = tmp_path / "input.csv"
    source.write_text(TABLE)
    monkeypatch.setattr(
        checks,
        "apply_decisions",
        lambda source, decisions, target, trail: write_with_provenance(target, applied(TABLE, decisions, change)),
    )
    if message is None:
        checks.check_applied_table(source)
        return
    with pytest.raises(WrongResultError, match=message):
        checks.check_applied_table(source)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("H 0 0 6", "H 0 0 5", "positions changed"),
        ("H 0 0 6", "C 0 0 6", "elements changed"),
        ("other=6", "other=5", "a property that was not decided about changed"),
        ("1\n", "1\n", "does not hold its value"),
    ],
)
def test_wrong_molecules_are_seen(tmp_path, monkeypatch, old, new, message):
    source = tmp_path / "input.xyz"
    source.write_text(MOLECULES)
    monkeypatch.setattr(checks, "_decide", lambda *_: ([{"position": 1, "action": "edit", "value": 41.5}], False))
    monkeypatch.setattr(
        checks,
        "apply_decisions",
        lambda source, decisions, target, trail: write_with_provenance(
            target, MOLECULES.replace(old, new).replace("energy=1.5", "energy=1.5" if old == new else "energy=41.5")
        ),
    )
    with pytest.raises(WrongResultError, match=message):
        checks.check_applied_molecules(source)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), False),
        (np.array([1.0]), np.array([1.0, 1.0]), False),
        ({"a": np.nan}, {"a": np.nan}, True),
        ({"a": 1}, {"b": 1}, False),
        (None, np.nan, True),
        (0.0, None, False),
        (12345678901234567, 12345678901234567.0, False),
    ],
)
def test_cells_are_compared_deeply(old, new, same):
    assert checks._same(old, new) is same


def test_leftovers_of_refused_corrections_are_seen(tmp_path, monkeypatch):
    def refuse(source, decisions, target, trail):
        target.with_name("left.part").write_text("left")
        read_decisions(target.with_name("left.part"))

    source = tmp_path / "input.csv"
    source.write_text(TABLE)
    monkeypatch.setattr(checks, "apply_decisions", refuse)
    with pytest.raises(WrongResultError, match="left behind"):
        checks.check_applied_table(source)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [15.0, *np.arange(1, 8)]}, "a whole number was read as another"),
        ({"y": [np.inf, *np.arange(1, 8)]}, "infinite"),
    ],
)
def test_numbers_read_wrong_are_seen(tmp_path, monkeypatch, change, message):
    source = tmp_path / "input.csv"
    source.write_text("y\n" + "".join(f"{n}\n" for n in range(8)))
    table = read_table(source)
    monkeypatch.setattr(checks, "read_table", lambda path: replace(table, frame=pd.DataFrame(change)))
    with pytest.raises(WrongResultError, match=message):
        checks.check_table(source)


def test_molecules_read_wrong_are_seen(tmp_path, monkeypatch):
    molecule = Molecule(np.array([1]), np.array([[0.0, 0.0, np.nan]]))
    monkeypatch.setattr(checks, "read_molecules", lambda path: MoleculeSet([molecule]))
    with pytest.raises(WrongResultError, match="not finite"):
        checks.check_molecules(tmp_path / "input.xyz")


def test_decisions_that_cannot_be_applied_are_seen(tmp_path):
    path = tmp_path / "decisions.json"
    content = {
        "format": checks.FORMAT,
        "file": {"sha256": "0", "rows": 3},
        "label": "y",
        "decisions": [{"position": 1, "action": "edit", "value": 2.5}],
    }
    path.write_text(json.dumps(content))
    checks.check_decisions(path)
    found = read_decisions(path)
    for wrong in (replace(found.decisions[0], position=True), replace(found.decisions[0], value=np.inf)):
        with pytest.raises(WrongResultError):
            checked(replace(found, decisions=[wrong]))
    with pytest.raises(WrongResultError, match="sheet"):
        checked(replace(found, options=ReadOptions(["a"])))


def checked(found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "read_decisions", lambda path: found)
        checks.check_decisions(None)
