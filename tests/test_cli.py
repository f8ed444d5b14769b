import subprocess
import sys

import pandas as pd
import pytest

from mislabel.cli import main
from mislabel.decisions import AUDIT_COLUMNS


def test_demo_finds_the_planted_errors(tmp_path, capsys):
    pytest.importorskip("skrub")
    assert main(["demo", "--quiet", "--out", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    assert "planted errors" in printed
    assert str(tmp_path / "demo" / "audit.csv") in printed
    table = pd.read_csv(tmp_path / "demo" / "audit.csv")
    assert list(table.columns) == [*AUDIT_COLUMNS, "planted"]
    assert table.loc[table["suspect"], "planted"].sum() >= 33
    assert (~table.loc[table["suspect"], "planted"]).sum() <= 5
    assert not list(tmp_path.rglob("*.part"))


def test_wrong_usage_exits_with_two_and_one_message(capsys):
    assert main(["demo", "--quiet", "--fdr", "7"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("mislabel: fdr must lie between 0 and 1")
    assert "Traceback" not in message
    with pytest.raises(SystemExit) as stop:
        main(["dmo"])
    assert stop.value.code == 2


def test_help_does_not_load_the_numerical_stack():
    code = (
        "import sys; from mislabel.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_public_names():
    import mislabel

    assert callable(mislabel.audit)
    assert set(mislabel.__all__) <= set(dir(mislabel))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mislabel.nothing
