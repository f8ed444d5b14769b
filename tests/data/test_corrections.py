import json

import numpy as np
import pandas as pd
import pytest

from mislabel.data.corrections import FORMAT, apply_decisions, read_decisions, safe_cell
from mislabel.data.formats import parquet_copy
from mislabel.data.formats.cells import as_written
from mislabel.data.molecules import read_molecules
from mislabel.data.table_files import fingerprint_of, read_table
from mislabel.errors import DecisionsError, TableFileError

FOUR = [
    {"position": 0, "action": "accept", "value": 1.25},
    {"position": 1, "action": "keep", "value": None, "note": "=looks right"},
    {"position": 2, "action": "drop", "value": None},
    {"position": 3, "action": "edit", "value": -3},
]


def write_decisions(source, label, decisions, rows, changes=None):
    path = source.parent / "decisions.json"
    content = {
        "format": FORMAT,
        "file": {"name": source.name, "sha256": fingerprint_of(source), "rows": rows},
        "label": label,
        "decisions": decisions,
    }
    content.update(changes or {})
    path.write_text(json.dumps(content))
    return path


def test_a_csv_keeps_every_other_cell(tmp_path):
    source = tmp_path / "t.csv"
    text = '\ufeffid;Größe;y\r\n01;"1.234,50";9,0\r\n02;x "y";8\r\n03;;7\r\n04;0,10;6\r\n05;=1+1;5\r\n'
    source.write_bytes(text.encode())
    decisions = write_decisions(source, "y", FOUR, 5)
    done = apply_decisions(source, decisions, tmp_path / "clean.csv")
    assert (done.corrected, done.dropped, done.kept) == (2, 1, 1)
    written = (tmp_path / "clean.csv").read_bytes().decode()
    assert written == '\ufeffid;Größe;y\r\n01;"1.234,50";1,25\r\n02;x "y";8\r\n04;0,10;-3\r\n05;=1+1;5\r\n'
    assert source.read_bytes().decode() == text
    assert not list(tmp_path.glob("*.part"))


def test_the_trail_tells_what_was_done(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,9\n2,8\n3,7\n4,6\n5,5\n")
    apply_decisions(source, write_decisions(source, "y", FOUR, 5), tmp_path / "clean.csv", trail=True)
    trail = pd.read_csv(tmp_path / "clean.csv", dtype=str, keep_default_na=False)
    assert trail["y"].tolist() == ["1.25", "8", "-3", "5"]
    assert trail["mislabel_action"].tolist() == ["accept", "keep", "edit", ""]
    assert trail["mislabel_original"].tolist() == ["9", "8", "6", ""]
    assert trail["mislabel_note"].tolist() == ["", "'=looks right", "", ""]


@pytest.mark.parametrize("trail", [False, True])
def test_parquet_and_excel(tmp_path, trail):
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"kind": list("abcde"), "y": [9.0, 8, 7, 6, 5]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    for name in ("t.parquet", "t.xlsx"):
        source, target = tmp_path / name, tmp_path / f"clean-{name}"
        apply_decisions(source, write_decisions(source, "y", FOUR, 5), target, trail=trail)
        cleaned = read_table(target).frame
        assert cleaned["kind"].tolist() == list("abde")
        assert cleaned["y"].tolist() == [1.25, 8, -3, 5]
        assert ("mislabel_action" in cleaned.columns) == trail


def test_molecule_files(tmp_path):
    block = '1\nProperties=species:S:1:pos:R:3 energy={energy} name="m {k}" other=1.5\nHe 0.0 0.0 {k}.0\n'
    source = tmp_path / "m.xyz"
    source.write_text("".join(block.format(energy=e, k=k) for k, e in enumerate([9.5, 8.0, 7.0, 6.0, 5.0])))
    apply_decisions(source, write_decisions(source, "energy", FOUR, 5), tmp_path / "clean.xyz")
    cleaned = read_molecules(tmp_path / "clean.xyz")
    np.testing.assert_array_equal(cleaned.labels("energy"), [1.25, 8.0, -3.0, 5.0])
    np.testing.assert_array_equal(cleaned.labels("other"), [1.5] * 4)
    with pytest.raises(TableFileError, match="written as .xyz"):
        apply_decisions(source, write_decisions(source, "energy", FOUR, 5), tmp_path / "clean.csv")


def test_sdf_files(tmp_path):
    Chem = pytest.importorskip("rdkit.Chem")
    from rdkit.Chem import AllChem

    source = tmp_path / "m.sdf"
    with Chem.SDWriter(str(source)) as writer:
        for k, smiles in enumerate(["C", "CC", "CCC", "CO", "CN"]):
            molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
            AllChem.EmbedMolecule(molecule, randomSeed=1)
            molecule.SetProp("energy", str(float(k)))
            writer.write(molecule)
    apply_decisions(source, write_decisions(source, "energy", FOUR, 5), tmp_path / "clean.sdf")
    cleaned = read_molecules(tmp_path / "clean.sdf")
    np.testing.assert_array_equal(cleaned.labels("energy"), [1.25, 1.0, -3.0, 4.0])
    assert [len(molecule) for molecule in cleaned] == [5, 8, 6, 7]


def test_files_and_decisions_must_belong_together(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,9\n2,8\n3,7\n4,6\n")
    decisions = write_decisions(source, "y", FOUR, 4)
    source.write_text("x,y\n1,9\n2,8\n3,7\n4,6.5\n")
    with pytest.raises(DecisionsError, match=r"is not the file these decisions were made about \(t.csv\)"):
        apply_decisions(source, decisions, tmp_path / "clean.csv")
    assert not (tmp_path / "clean.csv").exists()


def test_inputs_are_never_overwritten(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,9\n2,8\n3,7\n4,6\n")
    decisions = write_decisions(source, "y", FOUR, 4)
    before = source.read_bytes()
    (tmp_path / "link.csv").symlink_to(source)
    for target in (source, tmp_path / "link.csv"):
        with pytest.raises(TableFileError, match="is the input"):
            apply_decisions(source, decisions, target, overwrite=True)
    (tmp_path / "other.csv").write_text("precious")
    with pytest.raises(TableFileError, match="exists: choose another name"):
        apply_decisions(source, decisions, tmp_path / "other.csv")
    apply_decisions(source, decisions, tmp_path / "other.csv", overwrite=True)
    assert source.read_bytes() == before
    with pytest.raises(TableFileError, match="must be one too"):
        apply_decisions(source, decisions, tmp_path / "clean.parquet")
    with pytest.raises(TableFileError, match="does not exist"):
        apply_decisions(source, decisions, tmp_path / "nowhere" / "clean.csv")


def test_only_what_somebody_looked_at_is_a_verdict(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,9\n2,8\n3,7\n4,6\n")
    looked_at = [{**entry, "reviewed": entry["position"] != 3} for entry in FOUR]
    assert read_decisions(write_decisions(source, "y", looked_at, 4)).verdicts == {0: False, 1: True, 2: False}
    assert read_decisions(write_decisions(source, "y", FOUR, 4)).verdicts == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "not a decisions file of this version"),
        ({"decisions": [{"position": 9, "action": "keep"}]}, "no row at position 9; the file has 4 rows"),
        ({"decisions": [{"position": -1, "action": "keep"}]}, "no row at position -1"),
        ({"decisions": [{"position": 0, "action": "burn"}]}, "unknown action 'burn'"),
        ({"decisions": [{"position": 0, "action": "edit", "value": "NaN"}]}, "is not a number: 'NaN'"),
        ({"decisions": [{"position": 0, "action": "accept", "value": None}]}, "is not a number: 'None'"),
        ({"decisions": [{"position": 0, "action": "keep"}] * 2}, "decides twice about the row at position 0"),
        ({"decisions": [{"action": "keep"}]}, "is damaged"),
        ({"decisions": [{"position": 0, "action": "keep", "reviewed": "yes"}]}, "is true or false, not 'yes'"),
        ({"label": "z"}, "no column 'z'"),
    ],
)
def test_damaged_decisions_are_refused(tmp_path, changes, message):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,9\n2,8\n3,7\n4,6\n")
    decisions = write_decisions(source, "y", FOUR, 4, changes)
    with pytest.raises(ValueError, match=message):
        apply_decisions(source, decisions, tmp_path / "clean.csv")
    assert not (tmp_path / "clean.csv").exists()
    (tmp_path / "decisions.json").write_text("{")
    with pytest.raises(DecisionsError, match="is not a decisions file"):
        apply_decisions(source, decisions, tmp_path / "clean.csv")


def test_formulas_are_disarmed():
    assert [safe_cell(cell) for cell in ("=1+1", "+1+a", "-1.5", "+1", "-x", "@a", "\tb", "plain", -1.5)] == [
        "'=1+1",
        "'+1+a",
        "-1.5",
        "+1",
        "'-x",
        "'@a",
        "'\tb",
        "plain",
        -1.5,
    ]


@pytest.mark.parametrize(
    ("labels", "value", "expected"),
    [
        ([1, 2, 3, 4, 5, 6], 7.0, [1, 7, 3, 5, 6]),
        (["1", "2", "3", "4", "5", "6"], 7.5, ["1", "7.5", "3", "5", "6"]),
        ([1.5, None, 3.0, 4.0, 5.0, None], 7.5, [1.5, 7.5, 3.0, 5.0, None]),
    ],
)
def test_parquet_is_copied_piece_by_piece_and_keeps_its_types(tmp_path, monkeypatch, labels, value, expected):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet_copy, "ROWS_COPIED", 2)
    frame = pd.DataFrame(
        {"k": pd.Categorical(list("aabbcc")), "y": labels, "t": pd.date_range("2020-01-01", periods=6)}
    )
    source = tmp_path / "t.parquet"
    frame.to_parquet(source, row_group_size=4)
    decided = [
        {"position": 1, "action": "edit", "value": value, "note": "typo"},
        {"position": 3, "action": "drop"},
        {"position": 4, "action": "keep"},
    ]
    apply_decisions(source, write_decisions(source, "y", decided, 6), tmp_path / "clean.parquet", trail=True)
    cleaned = parquet.read_table(tmp_path / "clean.parquet")
    assert cleaned.column("y").to_pylist() == expected
    assert cleaned.column("mislabel_action").to_pylist() == [None, "edit", None, "keep", None]
    assert cleaned.column("mislabel_original").to_pylist()[1] == ("" if labels[1] is None else as_written(labels[1]))
    assert cleaned.schema.field("k").type == parquet.read_schema(source).field("k").type
    assert list(pd.read_parquet(tmp_path / "clean.parquet").columns[:3]) == ["k", "y", "t"]
