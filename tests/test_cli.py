import io
import json
import signal
import subprocess
import sys
import urllib.request
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from mislabel import audit as audit_in_python
from mislabel.auditing.files import RESULTS
from mislabel.cli import main
from mislabel.decisions import AUDIT_COLUMNS

from .report.pages import made_up, written


@pytest.fixture
def table(tmp_path, rng):
    """A small table with an id, a category, a gap and three wrong labels."""
    size = 80
    frame = pd.DataFrame(
        {
            "sample": [f"S{k:03d}" for k in range(size)],
            "x": np.round(rng.uniform(-2, 2, size), 4),
            "kind": rng.choice(["a", "b"], size),
            "site": "north",
        }
    )
    frame["y"] = np.round(np.sin(frame["x"]) + (frame["kind"] == "b") + 0.02 * rng.normal(size=size), 4)
    frame.loc[[7, 30, 55], "y"] += [2.0, -1.5, 1.0]
    frame.loc[12, "x"] = np.nan
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def audit(table, folder, *more):
    return run("audit", table, "--label", "y", "--id", "sample", "--out", folder, "--mean", "none", *more)


def test_audit_writes_all_files_and_three_lines(table, tmp_path, capsys):
    pytest.importorskip("skrub")
    assert audit(table, tmp_path / "out") == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert len(lines) == 3
    assert "of 80 labels look wrong at a false discovery rate of 5 %." in lines[0]
    assert lines[1].startswith("The worst is row S007: ")
    assert "Column 'site' was left out: every row has the value 'north'." in printed.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(RESULTS)
    written = pd.read_csv(tmp_path / "out" / "audit.csv")
    assert list(written.columns) == AUDIT_COLUMNS
    assert {"S007", "S030", "S055"} <= set(written.loc[written["suspect"], "row"])
    assert len(written) == 80
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["rows"] == 80
    assert summary["suspects"] == written["suspect"].sum()
    assert summary["columns"]["left_out"][0]["column"] == "site"


def test_json_and_quiet(table, tmp_path, capsys):
    pytest.importorskip("skrub")
    assert audit(table, tmp_path / "out", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert audit(table, tmp_path / "out", "--quiet") == 0
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


def test_the_same_seed_gives_the_same_files(table, tmp_path, capsys):
    pytest.importorskip("skrub")
    for name in ("one", "two"):
        assert audit(table, tmp_path / name, "--quiet", "--seed", "3") == 0
    for name in ("audit.csv", "report.html", "summary.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_memory_budget_changes_how_a_table_is_read_not_what_is_found(table, tmp_path, monkeypatch, capsys):
    frame = pd.read_csv(table)
    frame.loc[3, "y"] = np.nan
    path = tmp_path / "table.parquet"
    frame.to_parquet(path, index=False, row_group_size=30)
    assert audit(path, tmp_path / "whole", "--json") == 0
    assert audit(path, tmp_path / "pieces", "--json", "--memory", "3GB") == 0
    whole, pieces = (pd.read_csv(tmp_path / name / "audit.csv") for name in ("whole", "pieces"))
    assert set(whole["row"][whole["suspect"]]) == set(pieces["row"][pieces["suspect"]]) >= {"S007", "S030", "S055"}
    np.testing.assert_allclose(
        whole["expected"], pieces.set_index("row").loc[whole["row"], "expected"], rtol=1e-3, atol=1e-3
    )
    found = json.loads((tmp_path / "pieces" / "summary.json").read_text())
    assert found["missing_labels"] == 1
    assert found["columns"]["used"] == ["x", "kind"]
    assert "memory budget of 3 GB" in found["notes"][0]
    assert json.loads((tmp_path / "whole" / "summary.json").read_text())["sha256"] == found["sha256"]


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet", "pieces"])
def test_ids_come_out_exactly_as_they_are_written(tmp_path, capsys, rng, kind):
    ids = ["00007", "1007", "12345678901234567", "12345678901234568", "NA", "1.50", "null", *map(str, range(50, 83))]
    frame = pd.DataFrame({"id": ids, "x": rng.normal(size=40).round(3)})
    frame["y"] = (2 * frame["x"] + 0.1 * rng.normal(size=40)).round(3)
    frame.loc[:6, "y"] += 5.0
    path = tmp_path / f"t.{'parquet' if kind == 'pieces' else kind}"
    {"csv": frame.to_csv, "xlsx": frame.to_excel}.get(kind, frame.to_parquet)(path, index=False)
    more = ["--memory", "3GB"] if kind == "pieces" else []
    where = ("audit", path, "--out", tmp_path / "out", "--label", "y", "--id", "id", "--mean", "none", "--json")
    assert run(*where, *more) == 0
    summary = json.loads(capsys.readouterr().out)
    assert {"00007", "NA", "12345678901234567", "12345678901234568"} <= {entry["row"] for entry in summary["worst"]}
    rows = pd.read_csv(tmp_path / "out" / "audit.csv", dtype=str, keep_default_na=False)["row"]
    assert sorted(rows) == sorted(ids)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert all(f'"{name}"' in page for name in ids)


def test_whole_numbers_with_gaps_are_ids_without_a_decimal_point(tmp_path, capsys, rng):
    frame = pd.DataFrame({"id": [*range(1000, 1039), None], "x": rng.normal(size=40)})
    frame["y"] = frame["x"] + 0.1 * rng.normal(size=40)
    frame.astype({"id": "Int64"}).to_excel(tmp_path / "t.xlsx", index=False)
    where = ("audit", tmp_path / "t.xlsx", "--out", tmp_path / "out", "--label", "y", "--id", "id", "--mean", "none")
    assert run(*where, "--quiet") == 0
    rows = pd.read_csv(tmp_path / "out" / "audit.csv", dtype=str, keep_default_na=False)["row"]
    assert sorted(rows) == sorted(["", *map(str, range(1000, 1039))])


def test_each_file_has_a_folder_of_its_own(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("data.v1.csv", "data.v2.csv", "data.txt"):
        (tmp_path / name).write_bytes(table.read_bytes())
        assert run("audit", name, "--label", "y", "--mean", "none", "--quiet") == 0
    assert {path.name for path in tmp_path.glob("*-audit")} == {"data.v1-audit", "data.v2-audit", "data-audit"}
    (tmp_path / "data.csv").write_bytes(table.read_bytes())
    assert run("audit", "data.csv", "--label", "y", "--mean", "none", "--quiet") == 2
    assert "the folder data-audit holds the results of 'data.txt'" in capsys.readouterr().err


def test_numbers_that_can_be_two_are_told_and_settled(tmp_path, capsys, rng):
    values = rng.integers(9000, 9999, size=60).astype(str)
    values[40] = "9,150"
    lines = [f"{x:.2f};{value}" for x, value in zip(rng.normal(size=60), values, strict=True)]
    (tmp_path / "t.csv").write_text("x;y\n" + "\n".join(lines) + "\n")
    where = ("audit", tmp_path / "t.csv", "--out", tmp_path / "out", "--label", "y", "--mean", "none")
    assert run(*where) == 0
    assert "'9,150' (position 40) can be 9150 or 9.15; read as 9150" in capsys.readouterr().err
    assert run(*where, "--decimal", ",", "--thousands", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out)["worst"][0]["label"] == 9.15


def test_a_fill_value_is_set_aside_and_named(table, tmp_path, capsys):
    frame = pd.read_csv(table)
    frame.loc[20, "y"] = 9.96921e36
    frame.to_csv(table, index=False)
    assert audit(table, tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert "The worst is row S020" in printed.out
    assert "Note: Row S020 (9.96921e+36) is far outside the range of all other labels" in printed.err
    written = pd.read_csv(tmp_path / "out" / "audit.csv")
    assert {"S007", "S030", "S055"} <= set(written.loc[written["suspect"], "row"])


def test_missing_labels_get_suggestions(table, tmp_path, capsys):
    pytest.importorskip("skrub")
    frame = pd.read_csv(table)
    frame.loc[3, "y"] = np.nan
    frame.to_csv(table, index=False)
    assert audit(table, tmp_path / "out") == 0
    assert "1 missing label got a suggestion too." in capsys.readouterr().out
    written = pd.read_csv(tmp_path / "out" / "audit.csv").set_index("row")
    assert np.isfinite(written.loc["S003", "suggested_label"])


def test_predictions_of_ones_own_model(tmp_path, capsys, rng):
    x = rng.normal(size=80)
    y = 3.0 * x + 0.1 * rng.normal(size=80)
    frame = pd.DataFrame({"sample": [f"s{k}" for k in range(80)], "x": x, "mine": 3.0 * x, "y": y})
    frame.loc[[4, 60], "y"] += 5.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    where = (tmp_path / "t.csv", tmp_path / "out", "--predictions", "mine", "--json")
    assert audit(*where) == 0
    found = json.loads(capsys.readouterr().out)
    assert {item["position"] for item in found["worst"]} == {4, 60}
    assert found["columns"]["used"] == ["x"]
    assert "predictions that were given" in found["model"]["words"]


def test_weights_folds_and_a_process_over_predictions(tmp_path, capsys, rng):
    x = rng.normal(size=80)
    frame = pd.DataFrame(
        {
            "sample": [f"s{k}" for k in range(80)],
            "x": x,
            "rough": 0.0,
            "weight": rng.uniform(0.5, 1.0, 80),
            "y": 3.0 * x + 0.1 * rng.normal(size=80),
        }
    )
    frame.loc[[4, 60], "y"] += 5.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    where = (tmp_path / "t.csv", tmp_path / "out", "--json")
    assert audit(*where, "--predictions", "rough", "--process-on-residuals") == 0
    found = json.loads(capsys.readouterr().out)
    assert {item["position"] for item in found["worst"]} == {4, 60}
    options = {"mean": "linear", "sample_weight": "weight", "cv": 4, "verbose": 0}
    assert audit(*where, "--mean", "linear", "--sample-weight", "weight", "--cv", "4", "--drop", "rough") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["columns"]["used"] == ["x"]
    assert (
        found["worst"]
        == audit_in_python(tmp_path / "t.csv", "y", id="sample", drop=["rough"], **options).summary["worst"]
    )


def test_features_drop_and_label_errors(table, tmp_path, capsys):
    frame = pd.read_csv(table).fillna({"x": 0.0}).assign(err=0.02)
    frame.to_csv(table, index=False)
    assert audit(table, tmp_path / "out", "--drop", "kind", "site", "--label-error", "err", "--json") == 0
    assert json.loads(capsys.readouterr().out)["columns"]["used"] == ["x"]
    assert audit(table, tmp_path / "out", "--features", "x", "err", "x", "--json") == 0
    # A constant stays out even where it was asked for.
    assert json.loads(capsys.readouterr().out)["columns"]["used"] == ["x"]


def test_molecules_and_smiles(tmp_path, capsys, rng):
    pytest.importorskip("rdkit")
    lines = []
    for k in range(24):
        bond = 1.0 + 0.05 * k
        energy = -10.0 * (2 + k % 3) + bond + (25.0 if k == 5 else 0.0)
        atoms = "".join(f"H 0.0 {j + 1}.0 {bond:.3f}\n" for j in range(1 + k % 3))
        lines.append(f"{2 + k % 3}\nenergy={energy}\nO 0.0 0.0 0.0\n{atoms}")
    (tmp_path / "m.xyz").write_text("".join(lines))
    assert run("audit", tmp_path / "m.xyz", "--label", "energy", "--out", tmp_path / "xyz", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert "extensive" in summary["notes"][0]
    assert summary["worst"][0]["position"] == 5
    smiles = ["C" * (1 + k % 12) + "O" * (k // 12) for k in range(24)]
    values = [1.0 * text.count("C") - 2 * text.count("O") for text in smiles]
    values[7] += 30
    pd.DataFrame({"SMILES": smiles, "logS": values}).to_csv(tmp_path / "s.csv", index=False)
    assert run("audit", tmp_path / "s.csv", "--label", "logS", "--out", tmp_path / "smiles", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert "compared by the SMILES in column 'SMILES'" in summary["notes"][0]
    assert summary["worst"][0]["position"] == 7


def test_the_kernel_suits_all_molecules():
    from ase import Atoms
    from ase.build import bulk, molecule

    from mislabel.auditing.molecules import ELECTRONS_UP_TO, kernel_for

    organic = [molecule("CH3OH"), molecule("C6H6")]
    best = kernel_for(organic, "extensive")
    assert best.electrons is not None
    assert best.far is not None
    many = Atoms("H" * (ELECTRONS_UP_TO + 1), np.arange(3.0 * ELECTRONS_UP_TO + 3).reshape(-1, 3))
    for other in (bulk("C"), many):
        kernel = kernel_for([*organic, other], "intensive")
        assert kernel.electrons is None
        assert kernel.far is not None
        assert kernel.property == "intensive"
    assert kernel_for([*organic, molecule("SiH4")], "extensive").far is None


@pytest.mark.parametrize(
    ("what", "found"), [("table", "Of 36 planted errors 34"), ("molecules", "Of 17 planted errors 17")]
)
def test_demo_finds_the_planted_errors(what, found, tmp_path, capsys):
    pytest.importorskip("skrub")
    assert run("demo", what, "--out", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith(found)
    assert lines[-1] == f"Report: {tmp_path / 'report.html'}"


def test_several_labels_get_a_folder_each(table, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ("--id", "sample", "--mean", "none", "--out", out, "--label", "y", "x", "--drop", "site")
    assert run("audit", table, *arguments) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "Label 'y':"
    assert len(printed.out.splitlines()) == 8
    assert f"Review it in {out / 'x' / 'report.html'}" in printed.err
    assert sorted(path.name for path in out.iterdir()) == ["summary.json", "x", "y"]
    whole = json.loads((out / "summary.json").read_text())
    assert whole["file"] == "table.csv"
    assert list(whole["audits"]) == whole["labels"] == ["y", "x"]
    for name in ("y", "x"):
        assert whole["audits"][name] == json.loads((out / name / "summary.json").read_text())
        assert (out / name / "report.html").exists()
    assert run("audit", table, *arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out) == whole


def test_the_file_may_stand_behind_the_label(table, tmp_path, capsys):
    assert run("audit", "--out", tmp_path / "out", "--mean", "none", "--quiet", "--label", "y", table) == 0
    assert (tmp_path / "out" / "report.html").exists()


def test_a_table_from_standard_input_is_read_as_any_other(table, tmp_path, monkeypatch, capsys):
    assert audit(table, tmp_path / "out") == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table.read_bytes())))
    assert run("audit", "-", "--label", "y", "--id", "sample", "--mean", "none") == 0
    folder = tmp_path / "standard-input-audit"
    assert (folder / "audit.csv").read_bytes() == (tmp_path / "out" / "audit.csv").read_bytes()
    found = json.loads((folder / "summary.json").read_text())
    assert found["sha256"] == json.loads((tmp_path / "out" / "summary.json").read_text())["sha256"]


def test_how_a_file_is_read_can_be_stated(table, tmp_path, capsys):
    path = tmp_path / "told.csv"
    path.write_text("made,by,hand,on,a,monday\n\n" + table.read_text() + "last,-9999,a,north,0.5\n")
    assert audit(path, tmp_path / "out", "--header", 3, "--na", "-9999", "kaputt", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 81
    assert found["reading"]["header"] == "3"
    assert found["reading"]["left_out"] == [{"what": "above the header", "rows": [1], "text": "made"}]
    assert any("the header is in row 3" in note for note in found["notes"])
    assert audit(path, tmp_path / "other", "--skip", 2, "--header", 2) == 2
    assert "the header cannot be in row 2 if the first 2 rows are skipped" in capsys.readouterr().err


def test_apply_through_the_command_line(table, tmp_path, capsys):
    from mislabel.data.table_files import fingerprint_of

    decisions = tmp_path / "decisions.json"
    content = {
        "format": "mislabel-decisions/1",
        "file": {"name": "table.csv", "sha256": fingerprint_of(table), "rows": 80},
        "label": "y",
        "decisions": [{"position": 7, "action": "edit", "value": 0.5}, {"position": 8, "action": "drop"}],
    }
    decisions.write_text(json.dumps(content))
    assert run("apply", table, decisions, "-o", tmp_path / "clean.csv") == 0
    assert "1 label corrected, 1 row dropped, 0 labels kept" in capsys.readouterr().out
    cleaned = pd.read_csv(tmp_path / "clean.csv").set_index("sample")
    assert cleaned.loc["S007", "y"] == 0.5
    assert "S008" not in cleaned.index
    assert run("apply", table, decisions, "-o", table) == 2
    assert "is the input" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "tabel.csv", "--label", "y"], "no such file. Did you mean 'table.csv'?"),
        (["audit", "table.csv", "--label", "yy"], "the table has no column 'yy'. Did you mean 'y'?"),
        (
            ["audit", "table.csv", "--label", "words"],
            "holds 80 values that are not numbers (rows 2, 3, 4, 5, 6, ... of the file, the first is",
        ),
        (["audit", "table.csv", "--label", "y", "--id", "smaple"], "Did you mean 'sample'?"),
        (["audit", "table.csv", "--label", "y", "--mean", "tress"], "unknown mean 'tress'"),
        (["audit", "table.csv", "--label", "y", "--kernel", "bond"], "Did you mean 'bonds'?"),
        (["audit", "table.csv", "--label", "y", "--kernel", "bonds"], "needs a column of SMILES"),
        (["audit", "table.csv", "--label", "y", "--fdr", "5"], "fdr must lie between 0 and 1"),
        (["audit", "table.csv", "--label", "y", "--out", "table.csv"], "is a file; name a folder"),
        (["audit", "table.csv", "--label", "y", "--memory", "4GB"], "only Parquet files can be read piece by piece"),
        (["audit", "table.parquet", "--label", "y", "--memory", "lots"], "memory must be a number of bytes or a text"),
        (["audit", "table.parquet", "--label", "y", "--memory", "1MB"], "may be used"),
        (["audit", "table.parquet", "--label", "y", "--memory", "4GB", "--mean", "trees"], "needs the whole table"),
        (
            ["audit", "table.parquet", "--label", "y", "--memory", "4GB", "--kernel", "bonds"],
            "goes with tables of features",
        ),
        (["audit", "table.parquet", "--label", "words", "--memory", "4GB"], "holds 80 values that are not numbers"),
        (["apply", "table.csv", "nothing.json", "-o", "x.csv"], "no such file"),
        (
            ["audit", "table.csv", "--label", "y", "--label-error", "kind"],
            "the label error column 'kind' holds 80 values",
        ),
        (["audit", "table.csv", "--label", "y", "--id", "y"], "cannot be the label and the id"),
        (["audit", "table.csv", "--label", "y", "--label-error", "y"], "cannot be the label and its own error"),
        (
            ["audit", "table.parquet", "--label", "y", "--memory", "4GB", "--features", "y"],
            "no feature columns are left",
        ),
        (
            ["audit", "m.xyz", "--label", "energy", "--id", "x", "--mean", "trees"],
            "id, mean: m.xyz holds molecules",
        ),
        (["audit", "table.csv", "--label", "y", "--decimal", "x"], "the decimal mark must be '.' or ','"),
        (["audit", "table.csv", "--label", "y", "--decimal", ",", "--thousands", ","], "not the decimal mark"),
        (["demo", "--fdr", "7"], "fdr must lie between 0 and 1"),
        (["audit", "--label", "y"], "which file?"),
        (["audit", "table.csv", "--label", "two"], "has two different values only (3 and 5): these are classes"),
        (["audit", "table.csv", "--label", "truth"], "holds true and false: these are classes"),
        (["audit", "table.csv", "--label", "y", "nothing"], "the table has no column 'nothing'"),
    ],
)
def test_wrong_usage_exits_with_two_and_one_message(table, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    classes = {"two": [3, 5] * 40, "truth": [True, False] * 40, "words": [*"abcd"] * 20}
    pd.read_csv(table).assign(**classes).to_csv(table, index=False)
    pd.read_csv(table).to_parquet("table.parquet", index=False)
    (tmp_path / "m.xyz").write_text("1\nenergy=1\nHe 0 0 0\n")
    assert main(arguments) == 2
    printed = capsys.readouterr().err.splitlines()
    complaint = [line for line in printed if line.startswith("mislabel: ")]
    assert len(complaint) == 1
    assert message in complaint[0]
    assert "Traceback" not in "".join(printed)
    assert not (tmp_path / "table-audit").exists()


def test_unknown_options_exit_with_two(capsys):
    for arguments in (
        ["dmo"],
        ["audit"],
        ["audit", "x.csv"],
        ["demo", "tables"],
        ["demo", "--seed", "-1"],
        ["audit", "x.csv", "--label", "y", "--cv", "1"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2


def test_a_failure_leaves_nothing_behind(table, tmp_path, monkeypatch, capsys):
    pytest.importorskip("skrub")
    from mislabel.auditing import files as file_audit

    def fail(*_):
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr(file_audit, "write_report", fail)
    assert audit(table, tmp_path / "out", "--quiet") == 2
    assert "No space left on device" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_results_never_overwrite_the_input(table, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    own = table.rename(tmp_path / "out" / "audit.csv")
    before = own.read_bytes()
    assert audit(own, tmp_path / "out") == 2
    assert "would overwrite" in capsys.readouterr().err
    assert own.read_bytes() == before


def test_hostile_names_stay_harmless_on_the_terminal(tmp_path, capsys, rng):
    frame = pd.DataFrame({"a\x1b[31m\nb": np.arange(40.0) % 7, "y": rng.normal(size=40), "same\x07": 1})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("audit", tmp_path / "t.csv", "--label", "nothing", "--out", tmp_path / "out") == 2
    assert run("audit", tmp_path / "t.csv", "--label", "y", "--out", tmp_path / "out", "--mean", "none") == 0
    printed = "".join(capsys.readouterr())
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "\\x07" in printed


def test_audit_csv_disarms_formulas(tmp_path, capsys, rng):
    frame = pd.DataFrame({"id": [f"=1+{k}" for k in range(40)], "x": rng.normal(size=40)})
    frame["y"] = frame["x"] + 0.1 * rng.normal(size=40)
    frame.to_csv(tmp_path / "t.csv", index=False)
    where = ("audit", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert run(*where, "--label", "y", "--id", "id", "--mean", "none", "--quiet") == 0
    rows = pd.read_csv(tmp_path / "out" / "audit.csv")["row"]
    assert rows.str.startswith("'=1+").all()


@pytest.mark.parametrize(
    ("mean", "words"),
    [("linear", "over linear regression, cross-fitted"), ("half-trees", "over half of what extra trees predict")],
)
def test_a_mean_asked_for_by_name_is_told_in_words(table, tmp_path, mean, words, capsys):
    main(["audit", str(table), "--label", "y", "--id", "sample", "--mean", mean, "--out", str(tmp_path / "out")])
    told = capsys.readouterr()
    assert f"Model: a Gaussian process {words}" in told.out + told.err


@pytest.mark.parametrize("command", [[], ["audit"], ["review"], ["apply"], ["certify"], ["check"], ["demo"]])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    assert "usage: mislabel" in capsys.readouterr().out


def test_a_review_is_served_until_interrupted(tmp_path):
    written(tmp_path / "report.html", made_up())
    command = [sys.executable, "-m", "mislabel", "review", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        told = running.stdout.readline()
        assert told.startswith("Review of 'y' in made up.csv: http://127.0.0.1:")
        assert str(tmp_path / "decisions.json") in running.stdout.readline()
        with urllib.request.urlopen(told.split()[-1], timeout=30) as answer:
            assert b"<!DOCTYPE html>" in answer.read()
        running.send_signal(signal.SIGINT)
        rest, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (0, "")
    assert rest == f"0 decisions in {tmp_path / 'decisions.json'}.\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("port", ["65536", "-1", "x"])
def test_a_review_needs_a_port_that_exists_and_a_folder_with_a_page(tmp_path, port, capsys):
    assert run("review", tmp_path) == 2
    assert "holds no report.html" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        run("review", tmp_path, "--port", port)
    assert stop.value.code == 2
    assert "between 1 and 65535" in capsys.readouterr().err


@pytest.mark.parametrize("work", ["pass", "mislabel.cli.main(['--help'])"])
def test_import_and_help_do_not_load_the_numerical_stack(work):
    code = (
        "import sys, mislabel, mislabel.cli\n"
        f"try: {work}\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'narwhals'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_auditing_a_table_needs_no_compiler(tmp_path, rng):
    x = rng.random((80, 2))
    table = tmp_path / "table.csv"
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x.sum(axis=1)}).to_csv(table, index=False)
    code = (
        "import sys; from mislabel.cli import main\n"
        f"main(['audit', {str(table)!r}, '--label', 'y', '--out', {str(tmp_path / 'out')!r}, '--quiet'])\n"
        "sys.exit('loaded numba' if 'numba' in sys.modules else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("package", ["mislabel", "mislabel.kernels", "mislabel.kernels.graphs"])
def test_public_names(package):
    module = import_module(package)
    assert set(module.__all__) <= set(dir(module))
    assert all(callable(getattr(module, name)) for name in module.__all__ if name != "__version__")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing
