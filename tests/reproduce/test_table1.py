from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mislabel.cli import main
from mislabel.errors import ResultsError
from mislabel.reproduce import table1
from mislabel.reproduce.cells import FILE, Cell, add_cell, cells_of, noisy_kernel_cells, read_cells
from mislabel.reproduce.molecule_sets import KERNELS, SETS
from mislabel.reproduce.table1 import _best_uniform, run_noisy_kernel, run_table1
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
    found, committed = read_cells(tmp_path / "out"), read_cells(COMMITTED)
    for cell in SMALL:
        new, old = found[cell], committed[cell]
        assert new["molecules"] == old["molecules"] == LIMIT
        assert new["mae"] == pytest.approx(old["mae"], rel=1e-3)
    assert new["r2"] == pytest.approx(old["r2"], abs=1e-3)
    for score in ("noise_variance", "z", "loo_error", "odds"):
        assert new[f"{score}_auroc"] == pytest.approx(old[f"{score}_auroc"], abs=2e-3)
    # What is there is not computed again, and one missing cell is.
    lines = (tmp_path / "out" / FILE).read_text().splitlines(keepends=True)
    (tmp_path / "out" / FILE).write_text("".join([lines[0], *lines[2:]]))
    assert run_table1(shared_data, tmp_path, tmp_path / "out", SMALL, LIMIT) == 1
    assert run_table1(shared_data, tmp_path, tmp_path / "out", SMALL, LIMIT) == 0
    results = read_cells(tmp_path / "out")
    rows = collect(results)
    assert [(row.set, row.rate, row.level, row.folds) for row in rows] == [("qm7-energy", 30, 50, 1)]
    text = write_table(tmp_path / "out", rows, results).read_text()
    assert f"{rows[0].ours['full']:.2f} / 1.24" in text
    assert tally(rows)["rows"] == 1


def test_a_table_without_rows_is_still_written(tmp_path):
    assert read_cells(tmp_path) == {}
    assert "0 rows" in write_table(tmp_path, collect({}), {}).read_text()


def test_wrong_choices_are_refused(tmp_path, capsys):
    assert main(["reproduce", "table1", "--rates", "15", "--out", str(tmp_path)]) == 2
    assert "'15'" in capsys.readouterr().err
    assert main(["reproduce", "table1", "--data", str(tmp_path), "--out", str(tmp_path), "--quiet"]) == 2
    assert "contains none of the files of QM7" in capsys.readouterr().err


def test_every_committed_cell_says_what_made_it():
    results = read_cells(COMMITTED.with_name("table1"))
    assert set(results) == {*cells_of(), *noisy_kernel_cells()}
    for cell, stored in results.items():
        assert cell.seed == stored["seed"]
        assert "commit" in stored["made_by"]
        assert np.isfinite(stored["mae"])


@pytest.mark.parametrize("name", ["table1", "table1-small"])
def test_the_committed_tables_are_those_of_the_committed_cells(name, tmp_path):
    results = read_cells(COMMITTED.with_name(name))
    write_table(tmp_path, collect(results), results)
    for file in ("table1.md", "table1.csv"):
        assert (tmp_path / file).read_bytes() == (COMMITTED.with_name(name) / file).read_bytes()


def test_noisy_labels_choose_the_kernel_too(shared_data, tmp_path, capsys):
    arguments = ["--data", str(shared_data), "--work", str(tmp_path), "--out", str(tmp_path / "out"), "--limit", "80"]
    assert main(["reproduce", "table1", *arguments, "--sets", "qm7-energy", "--folds", "0", "--rates", "30"]) == 0
    assert main(["reproduce", "table1", *arguments, "--sets", "qm7-energy", "--noisy-kernel"]) == 0
    capsys.readouterr()
    cells = noisy_kernel_cells(["qm7-energy"])
    assert len(cells) == 4
    results = read_cells(tmp_path / "out")
    for cell in cells:
        found = results[cell]
        chosen = " ".join(f"{number:g}" for number in found["chosen_kernel"])
        assert found["densities"][chosen] == max(found["densities"].values())
        assert np.isfinite(found["mae"])
    assert run_noisy_kernel(shared_data, tmp_path, tmp_path / "out", cells, 80) == 0
    report = (tmp_path / "out" / "table1.md").read_text()
    assert "| qm7-energy | 30 % | 50 % | 0 |" in report


def test_the_usual_kernel_is_not_fitted_again(shared_data, tmp_path, monkeypatch):
    cell = noisy_kernel_cells(["qm7-energy"])[1]
    usual = replace(cell, mode="full")
    run_table1(shared_data, tmp_path, tmp_path / "out", [usual], 80)
    monkeypatch.setattr("mislabel.reproduce.table1.CANDIDATES", {"qm7": (KERNELS["qm7"],)})
    monkeypatch.setattr("mislabel.reproduce.table1.FoldRun", None)
    run_noisy_kernel(shared_data, tmp_path, tmp_path / "out", [cell], 80)
    results = read_cells(tmp_path / "out")
    ours, theirs = results[cell], results[usual]
    assert ours["mode"] == "noisy-kernel"
    assert ours["mae"] == theirs["mae"]
    assert ours["kernels"] != theirs["kernels"]


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
    add_cell(out, replace(PLAIN, fold=1), {"mae": 1.0})
    lines = (out / FILE).read_bytes().splitlines(keepends=True)
    (out / FILE).write_bytes(b"".join([lines[0], lines[1][:30] + b"\n", *lines[2:]]))
    with pytest.raises(ResultsError, match="damaged, line 2 is no result"):
        run_table1(shared_data, tmp_path, out, [PLAIN], 60)


def test_fits_of_another_run_are_not_taken_over(shared_data, tmp_path, monkeypatch):
    cell = noisy_kernel_cells(["qm7-energy"])[1]
    usual = replace(cell, mode="full")
    run_table1(shared_data, tmp_path, tmp_path / "out", [usual], 80)
    add_cell(tmp_path / "out", usual, {**read_cells(tmp_path / "out")[usual], "data": "0" * 16})
    monkeypatch.setattr("mislabel.reproduce.table1.CANDIDATES", {"qm7": (KERNELS["qm7"],)})
    with pytest.raises(ResultsError, match="qm7-energy 30/50 fold 0 full has data 0000"):
        run_noisy_kernel(shared_data, tmp_path, tmp_path / "out", [cell], 80)


def test_results_come_back_to_the_last_digit(tmp_path):
    result = {
        "mae": 0.1 + 0.2,
        "r2": float("nan"),
        "limit": 60,
        "data": "0e12",
        "kernels": [0.05, 0.5],
        "densities": {"a, b": -1e-300},
    }
    add_cell(tmp_path, PLAIN, result)
    stored = read_cells(tmp_path)[PLAIN]
    assert np.isnan(stored.pop("r2"))
    assert {name: stored[name] for name in result if name != "r2"} == {k: v for k, v in result.items() if k != "r2"}
    with pytest.raises(KeyError, match="no columns for colour"):
        add_cell(tmp_path, PLAIN, {"colour": 1})


def test_a_run_killed_at_any_byte_goes_on(tmp_path):
    cells = [replace(PLAIN, fold=fold) for fold in range(3)]
    for cell in cells[:2]:
        add_cell(tmp_path, cell, {"mae": cell.fold + 0.5})
    whole = (tmp_path / FILE).read_bytes()
    header, first, _ = whole.splitlines(keepends=True)
    edges = [edge + off for edge in (len(header), len(header + first)) for off in (-1, 0, 1)]
    for size in (*range(0, len(whole), 29), *edges, len(whole) - 1):
        (tmp_path / FILE).write_bytes(whole[:size])
        assert set(read_cells(tmp_path)) == set(cells[: int(size >= len(header + first))])
        add_cell(tmp_path, cells[2], {"mae": 2.5})
        found = read_cells(tmp_path)
        assert found.pop(cells[2])["mae"] == 2.5
        assert set(found) == set(cells[: int(size >= len(header + first))])


def test_several_runs_add_to_one_table(tmp_path):
    def add(fold):
        for rate in range(25):
            add_cell(tmp_path, replace(PLAIN, fold=fold, rate=rate), {"mae": float(rate)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    found = read_cells(tmp_path)
    assert len(found) == 100
    assert all(result["mae"] == cell.rate for cell, result in found.items())


def test_folders_of_older_versions_are_refused(tmp_path, capsys):
    old = tmp_path / "qm7-energy" / "10-10" / "fold0-plain.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    before = contents(tmp_path)
    assert main(["reproduce", "table1", "--out", str(tmp_path), "--quiet"]) == 2
    assert "one file per cell" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_a_table_with_other_columns_is_refused(tmp_path):
    (tmp_path / FILE).write_text("fold,set\n0,qm7-energy\n")
    with pytest.raises(ResultsError, match="other columns"):
        read_cells(tmp_path)
