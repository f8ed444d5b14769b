"""A disk that fails at any moment: afterwards there is the old state or the new one, and the next run succeeds."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.data.corrections import FORMAT, apply_decisions
from mislabel.data.provenance import provenance_path
from mislabel.data.table_files import fingerprint_of
from mislabel.reproduce.cells import FILE, Cell, add_cell, read_cells
from mislabel.reproduce.results import write_result
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
    beside = provenance_path(target)
    new, told = target.read_bytes(), beside.read_bytes()
    before = snapshot(tmp_path)
    for number in range(1, MOST_CALLS):
        for path in (target, beside):
            path.unlink()
            if existed:
                path.write_bytes(b"old")
        with faults(monkeypatch, number, lasts=lasts) as planned:
            try:
                apply_decisions(source, decisions, target, overwrite=existed)
                failed = False
            except OSError:
                failed = True
        found = snapshot(out)
        left = {key: value for key, value in found.items() if key not in (target.name, beside.name)}
        old = b"old" if existed else None
        assert found.get(target.name) in (old, new)
        assert found.get(beside.name) in (old, told)
        # No cleaned file is without its provenance; on a disk that works again at once, both are new or neither is.
        assert found.get(target.name) == old or found.get(beside.name) == told
        assert lasts or (found.get(target.name) == old) == (found.get(beside.name) == old)
        if not failed:
            assert found[target.name] == new
        # What a fault leaves after all is written is removed by the next that writes the same file.
        assert lasts or not failed or not left
        assert snapshot(tmp_path) == before
        apply_decisions(source, decisions, target, overwrite=True)
        assert snapshot(out) == {target.name: new, beside.name: told}
        if not planned.happened:
            break
    else:
        raise AssertionError("the calls never end")
    assert number > 5


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Two audits of one table."""
    folder = tmp_path_factory.mktemp("audited")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40)})
    frame["y"] = np.round(2 * frame["x"] + 0.1 * rng.normal(size=40), 3)
    frame.loc[3, "y"] += 3
    path = folder / "t.csv"
    frame.to_csv(path, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [audit(path, "y", fdr, mean="none") for fdr in (0.05, 0.5)]


@pytest.mark.parametrize("existed", [False, True])
def test_an_audit_leaves_all_its_old_files_or_all_its_new_ones(audited, tmp_path, monkeypatch, existed):
    old, new = audited
    old.write(tmp_path / "old")
    new.write(tmp_path / "new")
    states = [snapshot(tmp_path / "old") if existed else {}, snapshot(tmp_path / "new")]
    out = tmp_path / "out"
    for number in range(1, MOST_CALLS):
        if existed:
            old.write(out)
        with faults(monkeypatch, number) as planned:
            try:
                new.write(out)
                failed = False
            except OSError:
                failed = True
        found = snapshot(out) if out.exists() else {}
        assert found in states
        assert failed or found == states[1]
        new.write(out)
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


def test_results_of_a_figure(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    for number in range(1, MOST_CALLS):
        write_result(path, {"a": 1})
        old = path.read_bytes()
        with faults(monkeypatch, number) as planned:
            try:
                write_result(path, {"a": 2})
            except OSError:
                assert path.read_bytes() == old or json.loads(path.read_text())["a"] == 2
        assert json.loads(path.read_text())["a"] in (1, 2)
        write_result(path, {"a": 2})
        assert json.loads(path.read_text())["a"] == 2
        assert [item.name for item in tmp_path.iterdir()] == ["result.json"]
        if not planned.happened:
            break
    else:
        raise AssertionError("the calls never end")


def test_cells_of_the_table_runner(tmp_path, monkeypatch):
    first, second, third = (Cell(fold, "qm7-energy", 10, 10, "plain") for fold in range(3))
    for number in range(1, MOST_CALLS):
        for start in ([], [first]):
            (tmp_path / FILE).unlink(missing_ok=True)
            for cell in start:
                add_cell(tmp_path, cell, {"mae": 1.0})
            with faults(monkeypatch, number) as planned:
                try:
                    add_cell(tmp_path, second, {"mae": 2.0})
                except OSError:
                    assert set(read_cells(tmp_path)) in ({*start}, {*start, second})
                else:
                    assert set(read_cells(tmp_path)) == {*start, second}
            add_cell(tmp_path, third, {"mae": 3.0})
            assert {*start, third} <= set(read_cells(tmp_path)) <= {*start, second, third}
            assert [item.name for item in tmp_path.iterdir()] == [FILE]
        if not planned.happened:
            break
    else:
        raise AssertionError("the calls never end")
