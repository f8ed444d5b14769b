import json
from importlib.util import find_spec

import numpy as np
import pytest

from mislabel.cli import main
from mislabel.reproduce import figure2, figure3
from mislabel.reproduce.figure1 import ERROR, judged

pytest.importorskip("matplotlib")


def test_figure1_shows_what_it_says(tmp_path, capsys):
    assert main(["reproduce", "fig1", "--out", str(tmp_path)]) == 0
    assert "FAILS" not in capsys.readouterr().out
    stored = json.loads((tmp_path / "fig1.json").read_text())
    assert len(stored["claims"]) == 5
    assert all(claim["holds"] for claim in stored["claims"])
    assert (tmp_path / "fig1.svg").read_text().lstrip().startswith("<?xml")
    wrong = judged(ERROR)
    assert wrong.needed_variance == pytest.approx(wrong.error**2 - wrong.expected_std**2)


def test_figure2_examples_are_as_defined():
    for example in figure2.EXAMPLES:
        sample = example.draw(3)
        assert sample.points.size == example.size
        assert sample.mask.sum() == example.wrong
        off = np.abs(sample.labels - example.curve(sample.points))
        assert off[~sample.mask].max() <= 5 * example.clean_std
        np.testing.assert_array_equal(sample.labels, example.draw(3).labels)


def test_figure2_on_two_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(figure2, "N_RESTARTS", 2)
    found = figure2.run_figure2(tmp_path, seeds=2)
    assert len(found["means"]) == 3
    # The third example is clear enough for any two seeds.
    rows = found["means"]["3: Yuan and Wahba"]
    assert rows["proposed"]["rmse"] < rows["uniform"]["rmse"]
    assert rows["proposed"]["auroc"] > rows["uniform"]["auroc"]


def test_committed_figures_of_gpflow_are_for_the_same_examples():
    found = figure2.heteroscedastic_figures(figure2.SEEDS) if not _has_gpflow() else None
    if found is None:
        pytest.skip("GPflow is installed: its figures are made afresh")
    assert set(found) == {example.name for example in figure2.EXAMPLES}


def _has_gpflow():
    return find_spec("gpflow") is not None


def test_figure3_auto_needs_a_twentieth():
    fast, factorizations = figure3.solve("auto", most=50)
    slow, paper = figure3.solve("multiplicative", most=factorizations * figure3.FACTOR)
    assert fast.state.residual <= figure3.TOL
    # The paper's update, given twenty times as many, is not there yet.
    assert paper >= factorizations * figure3.FACTOR
    assert slow.state.residual > figure3.TOL
    assert fast.state.objective <= slow.state.objective
    path = slow.objective_path
    assert np.all(np.diff(path) <= 1e-9 * np.abs(path[:-1]))
