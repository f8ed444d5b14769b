import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mislabel.cli import main
from mislabel.errors import ResultsError
from mislabel.reproduce import table1
from mislabel.reproduce.molecule_sets import KERNELS, SETS
from mislabel.reproduce.noisy_kernel import noisy_kernel_cells, run_noisy_kernel
from mislabel.reproduce.table1 import Cell, _best_uniform, cells_of, run_table1
from mislabel.reproduce.table1_report import collect, paper_rows, tally, write_table

COMMITTED = Path(__file__).parents[2] / "results" / "table1-small"
#: Small cells that were committed, by mode: recomputed from scratch below.
SMALL = [Cell(0, "qm7-energy", 30, 50, mode) for mode in ("plain", "basic", "full")]
LIMIT = 500


def test_the_papers_table_is_complete():
    rows = paper_rows()
    assert len(rows) == 80
    assert rows["qm7-energy", 10, 10]["auc"] == 0.952
    assert rows["qm9-gap", 90, 200] == {
        "r2": 0.78,
        "auc": 0.773,
        "precision_at_70": 0.975,
        "precision_at_95": 0.913,
        "plain": 1.16,
        "basic": 0.53,
        "full": 0.59,
        "pristine": 0.30,
    }


def test_cells_come_fold_by_fold():
    cells = cells_of()
    assert len(cells) == 5 * 4 * (20 * 3 + 2)
    assert len(set(cells)) == len(cells)
    assert {cell.set for cell in cells[: len(cells) // 5]} == set(SETS)
    assert {cell.fold for cell in cells[: len(cells) // 5]} == {0}


def test_uniform_noise_is_the_best_on_its_line(rng):
    values = rng.uniform(0, 2, 50)
    squares = (values + 0.3) * rng.standard_normal(50) ** 2

    def objective(noise):
        total = values + noise
        return 50 * np.log(np.mean(squares / total)) + np.log(total).sum()

    best = _best_uniform(values, squares)
    assert all(objective(best) <= objective(other) + 1e-5 for other in np.geomspace(1e-9, 10, 400))


def test_three_small_cells_from_scratch(shared_data, tmp_path):
    assert run_table1(shared_data, tmp_path, tmp_path / "out", SMALL, LIMIT) == 3
    for cell in SMALL:
        new, old = (json.loads(cell.path(folder).read_text()) for folder in (tmp_path / "out", COMMITTED))
        assert new["molecules"] == old["molecules"] == LIMIT
        assert new["mae"] == pytest.approx(old["mae"], rel=1e-3)
    assert new["r2"] == pytest.approx(old["r2"], abs=1e-3)
    for score in ("noise_variance", "z", "loo_error"):
        assert new[score]["auroc"] == pytest.approx(old[score]["auroc"], abs=2e-3)
    # What is there is not computed again, and one missing cell is.
    SMALL[0].path(tmp_path / "out").unlink()
    assert run_table1(shared_data, tmp_path, tmp_path / "out", SMALL, LIMIT) == 1
    assert run_table1(shared_data, tmp_path, tmp_path / "out", SMALL, LIMIT) == 0
    rows = collect(tmp_path / "out")
    assert [(row.set, row.rate, row.level, row.folds) for row in rows] == [("qm7-energy", 30, 50, 1)]
    text = write_table(tmp_path / "out", rows).read_text()
    assert f"{rows[0].ours['full']:.2f} / 1.24" in text
    assert tally(rows)["rows"] == 1


def test_a_table_without_rows_is_still_written(tmp_path):
    assert "0 rows" in write_table(tmp_path, collect(tmp_path)).read_text()


def test_wrong_choices_are_refused(tmp_path, capsys):
    assert main(["reproduce", "table1", "--rates", "15", "--out", str(tmp_path)]) == 2
    assert "'15'" in capsys.readouterr().err
    assert main(["reproduce", "table1", "--data", str(tmp_path), "--out", str(tmp_path), "--quiet"]) == 2
    assert "contains none of the files of QM7" in capsys.readouterr().err


def test_every_committed_cell_says_what_made_it():
    files = sorted(COMMITTED.with_name("table1").glob("*/*/*.json"))
    assert files
    for file in files:
        stored = json.loads(file.read_text())
        cell = Cell(*(stored[name] for name in ("fold", "set", "rate", "level", "mode")))
        assert cell.path(COMMITTED.with_name("table1")) == file
        assert cell.seed == stored["seed"]
        assert "commit" in stored["made_by"]
        assert np.isfinite(stored["mae"])


def test_noisy_labels_choose_the_kernel_too(shared_data, tmp_path, capsys):
    arguments = ["--data", str(shared_data), "--work", str(tmp_path), "--out", str(tmp_path / "out"), "--limit", "80"]
    assert main(["reproduce", "table1", *arguments, "--sets", "qm7-energy", "--folds", "0", "--rates", "30"]) == 0
    assert main(["reproduce", "table1", *arguments, "--sets", "qm7-energy", "--noisy-kernel"]) == 0
    capsys.readouterr()
    cells = noisy_kernel_cells(["qm7-energy"])
    assert len(cells) == 4
    for cell in cells:
        found = json.loads(cell.path(tmp_path / "out").read_text())
        chosen = " ".join(f"{number:g}" for number in found["kernel"])
        assert found["densities"][chosen] == max(found["densities"].values())
        assert np.isfinite(found["mae"])
    assert run_noisy_kernel(shared_data, tmp_path, tmp_path / "out", cells, 80) == 0
    report = (tmp_path / "out" / "table1.md").read_text()
    assert "| qm7-energy | 30 % | 50 % | 0 |" in report


def test_the_usual_kernel_is_not_fitted_again(shared_data, tmp_path, monkeypatch):
    cell = noisy_kernel_cells(["qm7-energy"])[1]
    usual = replace(cell, mode="full")
    run_table1(shared_data, tmp_path, tmp_path / "out", [usual], 80)
    monkeypatch.setattr("mislabel.reproduce.noisy_kernel.CANDIDATES", {"qm7": (KERNELS["qm7"],)})
    monkeypatch.setattr("mislabel.reproduce.noisy_kernel.FoldRun", None)
    run_noisy_kernel(shared_data, tmp_path, tmp_path / "out", [cell], 80)
    ours, theirs = (json.loads(item.path(tmp_path / "out").read_text()) for item in (cell, usual))
    assert ours["mode"] == "noisy-kernel"
    assert ours["mae"] == theirs["mae"]


PLAIN = Cell(0, "qm7-energy", 10, 10, "plain")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_committed_results_are_recognised(shared_data, tmp_path):
    small, whole = COMMITTED, COMMITTED.with_name("table1")
    before = contents(small.parent)
    assert run_table1(shared_data, tmp_path, small, cells_of(["qm7-energy"], folds=[0]), LIMIT) == 0
    assert run_table1(shared_data, tmp_path, whole, cells_of()) == 0
    assert run_noisy_kernel(shared_data, tmp_path, whole, noisy_kernel_cells()) == 0
    assert contents(small.parent) == before
    with pytest.raises(ResultsError, match="molecules 500 instead of 7165"):
        run_table1(shared_data, tmp_path, small, cells_of(["qm7-energy"], folds=[0]))


def test_results_of_another_limit_are_not_taken_for_these(shared_data, tmp_path, capsys):
    arguments = ["--data", str(shared_data), "--work", str(tmp_path), "--out", str(tmp_path / "out"), "--quiet"]
    chosen = ["--sets", "qm7-energy", "--folds", "0", "--levels", "10"]
    run_table1(shared_data, tmp_path, tmp_path / "out", [PLAIN], 60)
    before = contents(tmp_path / "out")
    for limit in (["--limit", "70"], ["--limit", "50"], []):
        # Neither for the same cell, nor beside others in one table.
        for rate in ("10", "30"):
            assert main(["reproduce", "table1", *arguments, *chosen, "--rates", rate, *limit]) == 2
            assert "holds results of another run" in capsys.readouterr().err
    assert contents(tmp_path / "out") == before


def test_results_say_what_they_were_made_from(shared_data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run_table1(shared_data, tmp_path, out, [PLAIN], 60)
    before = contents(out)
    with np.load(shared_data / "qm7.npz") as stored:
        data = dict(stored)
    data["energy_kcal_mol"] = data["energy_kcal_mol"] + 1
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "qm7.npz", **data)
    with pytest.raises(ResultsError, match="data .* instead of"):
        run_table1(tmp_path / "data", tmp_path, out, [PLAIN], 60)
    for name, value in (("KERNELS", {"qm7": (0.05, 0.5, 0.1)}), ("NUMBERS_VERSION", 10**6)):
        with monkeypatch.context() as patched:
            patched.setattr(table1, name, value)
            with pytest.raises(ResultsError, match="another run"):
                run_table1(shared_data, tmp_path, out, [PLAIN], 60)
    assert contents(out) == before
    assert run_table1(shared_data, tmp_path, out, [PLAIN], 60) == 0
    PLAIN.path(out).write_bytes(PLAIN.path(out).read_bytes()[:30])
    with pytest.raises(ResultsError, match="damaged"):
        run_table1(shared_data, tmp_path, out, [PLAIN], 60)


def test_fits_of_another_run_are_not_taken_over(shared_data, tmp_path, monkeypatch):
    cell = noisy_kernel_cells(["qm7-energy"])[1]
    usual = replace(cell, mode="full")
    run_table1(shared_data, tmp_path, tmp_path / "out", [usual], 80)
    stored = json.loads(usual.path(tmp_path / "out").read_text())
    stored["made_from"]["data"] = "0" * 16
    usual.path(tmp_path / "out").write_text(json.dumps(stored))
    monkeypatch.setattr("mislabel.reproduce.noisy_kernel.CANDIDATES", {"qm7": (KERNELS["qm7"],)})
    with pytest.raises(ResultsError, match="fold0-full"):
        run_noisy_kernel(shared_data, tmp_path, tmp_path / "out", [cell], 80)
