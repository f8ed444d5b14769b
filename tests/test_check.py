"""The gate where new rows arrive: the command line, hooks, workflows, and other packages' checks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mislabel import Gate, audit
from mislabel.cli import main

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def accepted():
    """Rows of which none is wrong."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"name": [f"R{k}" for k in range(100)], "x": rng.uniform(-2, 2, 100), "z": rng.normal(size=100)}
    )
    frame["y"] = np.sin(frame["x"]) + 0.5 * frame["z"] + 0.02 * rng.normal(size=100)
    return frame


@pytest.fixture(scope="module")
def folder(accepted, tmp_path_factory):
    """The gate of their audit."""
    out = tmp_path_factory.mktemp("gate") / "accepted-audit"
    return audit(accepted, "y", id="name", drop=["name"], mean="none", verbose=0).save_gate(out)


@pytest.fixture(scope="module")
def files(accepted, tmp_path_factory):
    """New rows, right ones and others of which the second is wrong."""
    place = tmp_path_factory.mktemp("new rows")
    new = accepted.head(20).assign(x=lambda rows: rows["x"] + 0.01)
    new.to_csv(place / "right.csv", index=False)
    new.loc[1, "y"] += 2.0
    new.to_csv(place / "wrong.csv", index=False)
    return place


def check(*arguments):
    return main(["check", *(str(argument) for argument in arguments)])


def test_exit_codes(folder, files, tmp_path, capsys):
    assert check(files / "right.csv", "--against", folder) == 0
    assert "None of 20 new labels of 'y' looks wrong" in capsys.readouterr().out
    assert check(files / "wrong.csv", "--against", folder) == 1
    assert "line 3, row R1: y is" in capsys.readouterr().out
    assert check(files / "right.csv", files / "wrong.csv", "--against", folder) == 1
    assert "right.csv: None of" in capsys.readouterr().out
    assert check(files / "wrong.csv", "--against", folder, "--quiet") == 1
    assert capsys.readouterr() == ("", "")
    assert check(files / "right.csv", "--against", tmp_path) == 2
    assert "holds no gate" in capsys.readouterr().err
    assert check(files / "missing.csv", "--against", folder) == 2
    assert "no such file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        check(files / "right.csv")
    assert stop.value.code == 2


def test_the_rate_and_the_ids_may_be_other_ones(folder, files, capsys):
    assert check(files / "wrong.csv", "--against", folder, "--id", "x", "--fdr", "0.5") == 1
    told = capsys.readouterr().out
    assert "false discovery rate of 50 %" in told
    assert "row R1" not in told


def test_json(folder, files, capsys):
    assert check(files / "right.csv", files / "wrong.csv", "--against", folder, "--json") == 1
    right, wrong = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (right["ok"], right["suspects"], right["rows"]) == (True, 0, 20)
    assert wrong["suspects"] == 1
    first = wrong["table"][0]
    assert (first["row"], first["line"], first["suspect"]) == ("R1", 3, True)
    assert first["expected_low"] < first["expected"] < first["expected_high"] < first["label"]


def test_annotations(folder, files, capsys):
    assert check(files / "wrong.csv", "--against", folder, "--github") == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"::warning file={files / 'wrong.csv'},line=3,title=mislabel::row R1: y is ")


@pytest.fixture
def environment(tmp_path):
    """Where ``mislabel`` is the command of this package."""
    command = tmp_path / "bin" / "mislabel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mislabel "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}


def described(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / name).read_text())


@pytest.mark.skipif(os.name == "nt", reason="the hook's command line is run by a shell of Unix")
def test_the_hook(folder, files, environment):
    (hook,) = described(".pre-commit-hooks.yaml")
    assert hook["id"] == "mislabel-check"
    assert hook["language"] == "python"
    assert all(re.search(hook["files"], name) for name in ("a.csv", "a.csv.gz", "a.tsv"))
    assert not any(re.search(hook["files"], name) for name in ("a.py", "requirements.txt"))
    # As pre-commit does: entry, arguments of the user, names of files.
    arguments = [*hook["entry"].split(), "--against", str(folder)]
    done = subprocess.run([*arguments, *map(str, files.iterdir())], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "1 of 20 new labels" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="the action's command line is run by bash")
def test_the_action(folder, files, environment):
    action = described("action.yml")
    assert action["runs"]["using"] == "composite"
    *_, install, step = action["runs"]["steps"]
    assert install["run"] == 'python -m pip install "$GITHUB_ACTION_PATH[tables]"'
    assert {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]} == set(step["env"].values())
    values = {"FILES": "*.csv", "AGAINST": str(folder)}
    assert values.keys() == step["env"].keys()
    everything = {**environment, **values, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-e", "-c", step["run"]], env=everything, cwd=files, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::warning file=wrong.csv,line=3,title=mislabel::row R1")


def looks_right(gate):
    """As in docs/gate.md."""

    def check_of(frame):
        return pd.Series(~gate.check(frame).in_order["suspect"].to_numpy(), index=frame.index)

    return check_of


def test_verdicts_in_the_order_of_a_frame(folder, files):
    frame = pd.read_csv(files / "wrong.csv").set_axis(range(100, 120), axis=0)
    found = looks_right(Gate.load(folder))(frame)
    assert found[~found].index.tolist() == [101]


def test_a_check_of_pandera(folder, files):
    pa = pytest.importorskip("pandera.pandas")
    schema = pa.DataFrameSchema(
        {"y": pa.Column(float, nullable=True)},
        checks=pa.Check(looks_right(Gate.load(folder)), error="label does not look right", ignore_na=False),
    )
    schema.validate(pd.read_csv(files / "right.csv"))
    with pytest.raises(pa.errors.SchemaError, match="does not look right"):
        schema.validate(pd.read_csv(files / "wrong.csv"))
