"""A cleaned file and where its labels come from: both are written, or neither is."""

import hashlib
import json

import pandas as pd
import pytest

from mislabel._common.version import __version__
from mislabel.auditing.applying import evidence_in
from mislabel.cli import main
from mislabel.data.corrections import FORMAT, apply_decisions, read_decisions
from mislabel.data.provenance import provenance_path
from mislabel.data.table_files import fingerprint_of
from mislabel.errors import DecisionsError, InvalidParameterError, TableFileError

EVIDENCE = {"expected": 2.0, "low": 1.5, "high": 2.5, "z": 9.5, "q_value": 0.001}
LABELS = [1.5, 9.5, 3.5, 4.5, 5.5]


def make(folder, name="t.csv"):
    path = folder / name
    frame = pd.DataFrame({"id": list("abcde"), "y": LABELS})
    if name.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        path.write_text("".join(f"1\ny={value}\nHe 0 0 {k}\n" for k, value in enumerate(LABELS)))
    return path


def decide(source, **changes):
    entries = [
        {
            "position": 1,
            "row": "b",
            "label": 9.5,
            "action": "accept",
            "value": 2.0,
            "reviewed": True,
            "evidence": EVIDENCE,
        },
        {
            "position": 2,
            "row": "c",
            "label": 3.5,
            "action": "edit",
            "value": 3.25,
            "note": "read again",
            "reviewer": "Ben",
        },
        {"position": 3, "row": "d", "label": 4.5, "action": "drop", "exported": "2025-12-31T00:00:00Z"},
        {"position": 4, "row": "e", "label": 5.5, "action": "keep", "reviewed": True},
    ]
    content = {
        "format": FORMAT,
        "file": {"name": source.name, "sha256": fingerprint_of(source), "rows": 5},
        "label": "y",
        "id": "id",
        "audit": {"mislabel": "0.1.0", "threshold": "fdr", "cutoff": 0.05},
        "reviewer": "Anna",
        "exported": "2026-01-02T03:04:05Z",
        "decisions": entries,
        **changes,
    }
    path = source.parent / "decisions.json"
    path.write_text(json.dumps(content))
    return path


def told(target):
    return json.loads(provenance_path(target).read_text())


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet", "t.xyz"])
def test_every_change_says_who_made_it_when_and_on_what_evidence(tmp_path, name):
    source = make(tmp_path, name)
    decisions, target = decide(source), tmp_path / f"cleaned{source.suffix}"
    done = apply_decisions(source, decisions, target)
    assert done.provenance == tmp_path / f"cleaned{source.suffix}.provenance.json"
    found = told(target)
    assert found["mislabel"] == __version__
    for which, path in (("source", source), ("decisions", decisions), ("cleaned", target)):
        assert found[which] == {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert (found["label"], found["id"], found["rows"]) == ("y", "id", 5)
    assert found["audit"] == {"mislabel": "0.1.0", "threshold": "fdr", "cutoff": 0.05}
    common = {"reviewer": "Anna", "reviewed": False, "decided": "2026-01-02T03:04:05Z", "note": "", "evidence": None}
    assert found["changes"] == [
        {
            **common,
            "position": 1,
            "row": "b",
            "action": "accept",
            "old": 9.5,
            "new": 2.0,
            "reviewed": True,
            "evidence": EVIDENCE,
        },
        {
            **common,
            "position": 2,
            "row": "c",
            "action": "edit",
            "old": 3.5,
            "new": 3.25,
            "reviewer": "Ben",
            "note": "read again",
        },
        {
            **common,
            "position": 3,
            "row": "d",
            "action": "drop",
            "old": 4.5,
            "new": None,
            "decided": "2025-12-31T00:00:00Z",
        },
    ]
    assert found["kept"] == [
        {**common, "position": 4, "row": "e", "action": "keep", "old": 5.5, "new": None, "reviewed": True}
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.xyz"])
def test_old_labels_that_decisions_do_not_say_are_read_from_the_file(tmp_path, name):
    source = make(tmp_path, name)
    decisions = decide(source, decisions=[{"position": 1, "action": "edit", "value": 7.0}], reviewer=None)
    target = tmp_path / f"cleaned{source.suffix}"
    apply_decisions(source, decisions, target)
    (change,) = told(target)["changes"]
    assert (change["old"], change["new"], change["reviewer"]) == (9.5, 7.0, "unknown")


def test_a_label_that_was_corrected_before_is_no_change(tmp_path):
    source = make(tmp_path)
    entry = {"position": 1, "label": 9.5, "former": 8.0, "action": "accept", "value": 9.5, "reviewed": True}
    apply_decisions(source, decide(source, decisions=[entry]), tmp_path / "cleaned.csv")
    found = told(tmp_path / "cleaned.csv")
    assert not found["changes"]
    assert (found["kept"][0]["first"], found["kept"][0]["old"]) == (8.0, 9.5)


def test_a_reviewer_named_at_the_command_line(tmp_path, capsys):
    source = make(tmp_path)
    target = tmp_path / "cleaned.csv"
    arguments = ["apply", str(source), str(decide(source)), "-o", str(target), "--reviewer", "Carla"]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["provenance"] == str(provenance_path(target))
    # Whose decision it is stays as it was where the row itself says so.
    assert [change["reviewer"] for change in told(target)["changes"]] == ["Carla", "Ben", "Carla"]


def test_provenance_is_not_overwritten_either(tmp_path):
    source = make(tmp_path)
    decisions, target = decide(source), tmp_path / "cleaned.csv"
    provenance_path(target).write_text("precious")
    with pytest.raises(TableFileError, match=r"cleaned\.csv\.provenance\.json exists"):
        apply_decisions(source, decisions, target)
    assert not target.exists()
    assert provenance_path(target).read_text() == "precious"
    apply_decisions(source, decisions, target, overwrite=True)
    assert told(target)["changes"]


def test_nothing_is_written_where_the_copy_fails(tmp_path):
    source = make(tmp_path)
    decisions = decide(source, label="z")
    with pytest.raises(InvalidParameterError, match="no column 'z'"):
        apply_decisions(source, decisions, tmp_path / "cleaned.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "decisions.json"}


def test_older_decisions_take_their_evidence_from_the_audit_beside_the_file(tmp_path):
    source = make(tmp_path)
    decisions = decide(source, decisions=[{"position": 1, "row": "b", "label": 9.5, "action": "edit", "value": 7.0}])
    folder = tmp_path / "t-audit"
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps({"sha256": fingerprint_of(source), "label": "y"}))
    lines = "row,expected,expected_low,expected_high,z,q_value\nb,2.0,1.5,2.5,9.5,0.001\nc,1,1,1,1,1\n"
    (folder / "audit.csv").write_text(lines)
    chosen = read_decisions(decisions)
    assert evidence_in(folder, chosen) == {"b": EVIDENCE}
    (folder / "audit.csv").write_text(lines + "b,3,3,3,3,1\n")
    assert evidence_in(folder, chosen) == {}
    (folder / "audit.csv").write_text(lines)
    (folder / "summary.json").write_text(json.dumps({"sha256": "0" * 64, "label": "y"}))
    assert evidence_in(folder, chosen) == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content": "x"}, "content is not a list of columns"),
        ({"audit": [1]}, "audit is not a list of settings"),
        ({"reviewer": 3}, "reviewer is not text"),
        ({"decisions": [{"position": 1, "action": "keep", "copies": 0}]}, "is there 0 times"),
        ({"decisions": [{"position": 1, "action": "keep", "former": "x"}]}, "former of a row is not a number"),
        ({"decisions": [{"position": 1, "action": "keep", "evidence": {"z": "x"}}]}, "z of a row is not a number"),
    ],
)
def test_damaged_decisions_are_refused(tmp_path, changes, message):
    source = make(tmp_path)
    with pytest.raises(DecisionsError, match=message):
        read_decisions(decide(source, **changes))
