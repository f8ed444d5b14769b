"""A disk that fails at any moment: afterwards there is the old state or the new one, and the next run succeeds."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from mislabel.data.corrections import FORMAT, apply_decisions
from mislabel.data.table_files import fingerprint_of, read_table
from mislabel.estimators.one_call import audit_table_of
from mislabel.report import file_audit
from mislabel.report.content import Source
from mislabel.reproduce.results import read_result, write_result
from tests.faults import faults

MOST_CALLS = 2000


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def decisions_about(source, rows):
    content = {
        "format": FORMAT,
        "file": {"name": source.name, "sha256": fingerprint_of(source), "rows": rows},
        "label": "y",
        "decisions": [{"position": 0, "action": "edit", "value": 7.5}, {"position": 2, "action": "drop"}],
    }
    path = source.parent / "decisions.json"
    path.write_text(json.dumps(content))
    return path


def make_source(folder, name):
    frame = pd.DataFrame({"x": ["a", "b", "c", "d"], "y": [1.5, 2.5, 3.5, 4.5]})
    path = folder / name
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif name.endswith(".xyz"):
        path.write_text("".join(f"1\ny={value}\nHe 0 0 {k}\n" for k, value in enumerate(frame["y"])))
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.xlsx", "t.xyz"])
def test_apply_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch, name, existed, lasts):
    source = make_source(tmp_path, name)
    decisions = decisions_about(source, 4)
    out = tmp_path / "out"
    out.mkdir()
    target = out / f"clean-{name}"
    apply_decisions(source, decisions, target)
    new = target.read_bytes()
    before = snapshot(tmp_path)
    for number in range(1, MOST_CALLS):
        target.unlink()
        if existed:
            target.write_bytes(b"old")
        with faults(monkeypatch, number, lasts=lasts) as planned:
            try:
                apply_decisions(source, decisions, target, overwrite=existed)
                failed = False
            except OSError:
                failed = True
        found = snapshot(out)
        left = {key: value for key, value in found.items() if key != target.name}
        assert found.get(target.name) in ((b"old" if existed else None), new)
        if not failed:
            assert found[target.name] == new
        assert lasts or not left
        assert snapshot(tmp_path) == before
        apply_decisions(source, decisions, target, overwrite=True)
        assert snapshot(out) == {target.name: new}
        if not planned.happened:
            break
    else:
        raise AssertionError("the calls never end")
    assert number > 5


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Two audits of one table, and where it stands."""
    folder = tmp_path_factory.mktemp("audited")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40)})
    frame["y"] = np.round(2 * frame["x"] + 0.1 * rng.normal(size=40), 3)
    frame.loc[3, "y"] += 3
    path = folder / "t.csv"
    frame.to_csv(path, index=False)
    table = read_table(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audits = [audit_table_of(table.frame, "y", fdr) for fdr in (0.05, 0.5)]
    return audits, Source("t.csv", table.fingerprint, table)


@pytest.mark.parametrize("existed", [False, True])
def test_an_audit_leaves_all_its_old_files_or_all_its_new_ones(audited, tmp_path, monkeypatch, existed):
    (old, new), source = audited
    file_audit._write(old, source, tmp_path / "old", [])
    file_audit._write(new, source, tmp_path / "new", [])
    states = [snapshot(tmp_path / "old") if existed else {}, snapshot(tmp_path / "new")]
    out = tmp_path / "out"
    for number in range(1, MOST_CALLS):
        if existed:
            file_audit._write(old, source, out, [])
        with faults(monkeypatch, number) as planned:
            try:
                file_audit._write(new, source, out, [])
                failed = False
            except OSError:
                failed = True
        found = snapshot(out) if out.exists() else {}
        assert found in states
        assert failed or found == states[1]
        file_audit._write(new, source, out, [])
        assert snapshot(out) == states[1]
        assert [path.name for path in out.iterdir() if path.is_dir()] == []
        for path in out.iterdir():
            path.unlink()
        out.rmdir()
        if not planned.happened:
            break
    else:
        raise AssertionError("the calls never end")
    assert number > 10


def test_results_of_the_table_runner(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    for number in range(1, MOST_CALLS):
        write_result(path, {"a": 1})
        old = path.read_bytes()
        with faults(monkeypatch, number) as planned:
            try:
                write_result(path, {"a": 2})
            except OSError:
                assert path.read_bytes() == old or read_result(path)["a"] == 2
        assert read_result(path)["a"] in (1, 2)
        write_result(path, {"a": 2})
        assert read_result(path)["a"] == 2
        assert [item.name for item in tmp_path.iterdir()] == ["result.json"]
        if not planned.happened:
            break
    else:
        raise AssertionError("the calls never end")
