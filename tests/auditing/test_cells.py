"""All columns audited at once, and the cells that are wrong."""

import json

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.cli import main
from mislabel.errors import InvalidFeaturesError, InvalidParameterError

COLUMNS = ["height", "arm", "leg", "weight"]
WRONG = {(11, "arm"), (50, "weight"), (90, "arm"), (90, "leg")}


@pytest.fixture(scope="module")
def body():
    """Measures of bodies, the cells of WRONG wrong: a factor of ten, a typing error, two that changed places; two are missing."""
    rng = np.random.default_rng(3)
    size = 120
    height = rng.normal(172, 9, size)
    frame = pd.DataFrame(
        {
            "person": [f"P{k:03d}" for k in range(size)],
            "number": np.arange(size),
            "height": height,
            "arm": 0.43 * height + rng.normal(0, 0.8, size),
            "leg": 0.48 * height + rng.normal(0, 0.8, size),
            "weight": 0.9 * (height - 100) + rng.normal(0, 2, size),
            "sex": rng.choice(["f", "m"], size),
            "left_handed": rng.integers(0, 2, size),
            "children": rng.integers(0, 5, size),
            "site": 7.0,
        }
    ).round(1)
    frame.loc[11, "arm"] *= 10
    frame.loc[50, "weight"] += 40
    frame.loc[90, ["arm", "leg"]] = frame.loc[90, ["leg", "arm"]].tolist()
    frame.loc[20, "weight"] = np.nan
    frame.loc[21, "leg"] = np.nan
    return frame


@pytest.fixture(scope="module")
def result(body):
    return audit(body, label="all", id="person")


def test_every_column_of_measures_is_audited_and_others_are_named(result):
    assert list(result) == COLUMNS
    told = {item["column"]: item["reason"] for item in result.summary["cells"]["not_audited"]}
    assert set(told) == {"number", "left_handed", "children", "site"}
    assert "counts the rows" in told["number"]
    assert "two different values" in told["left_handed"]
    assert "categories" in told["children"]


def test_the_wrong_cells_are_named_and_no_others(result):
    cells = result.cells
    suspects = cells[cells["suspect"]]
    assert set(zip(suspects["row"], suspects["column"], strict=True)) == {(f"P{row:03d}", name) for row, name in WRONG}
    assert len(cells) == 4 * 120
    assert (np.diff(cells["score"].dropna()) <= 0).all()


def test_swapped_cells_get_each_others_value(result, body):
    cells = result.cells.set_index(["row", "column"])
    for name, other in [("arm", "leg"), ("leg", "arm")]:
        entry = cells.loc[("P090", name)]
        assert entry["swapped_with"] == other
        assert entry["suggested_value"] == body.loc[90, other]
    assert cells.loc[("P011", "arm"), "suggested_value"] == pytest.approx(body.loc[11, "arm"] / 10, rel=0.05)


def test_missing_cells_are_filled_in_and_never_suspect(result):
    cells = result.cells
    missing = cells[cells["value"].isna()]
    assert set(zip(missing["row"], missing["column"], strict=True)) == {("P020", "weight"), ("P021", "leg")}
    assert not missing["suspect"].any()
    assert missing["suggested_value"].notna().all()
    assert missing["q_value"].isna().all()


def test_an_audit_of_one_column_is_that_column_of_all(result, body):
    alone = audit(body, label="weight", id="person", mean="none").to_pandas().set_index("row")
    together = result["weight"].to_pandas().set_index("row").loc[alone.index]
    np.testing.assert_allclose(together["expected"], alone["expected"], rtol=1e-3)


def test_models_predict_rows_without_their_own_column(result, body):
    model = result["weight"].model
    found = model.predict(body.drop(columns=["weight", "person"]).iloc[:5])
    np.testing.assert_allclose(found, model.predict(model._points[:5]))


def test_results_are_written_whole(result, tmp_path):
    out = result.write(tmp_path / "out")
    assert {path.name for path in out.iterdir()} == {*COLUMNS, "cells.csv", "summary.json"}
    written = pd.read_csv(out / "cells.csv")
    assert written["suspect"].sum() == len(WRONG)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["cells"]["suspects"] == len(WRONG)
    assert {(entry["position"], entry["column"]) for entry in summary["cells"]["worst"]} == WRONG


def test_the_command_line_gives_the_same(result, body, tmp_path, capsys):
    path = tmp_path / "body.csv"
    body.to_csv(path, index=False)
    code = main(["audit", str(path), "--label", "all", "--id", "person", "--out", str(tmp_path / "out")])
    assert code == 0
    told = capsys.readouterr()
    assert "4 of 478 cells in 4 columns look wrong at a false discovery rate of 5 %" in told.out
    assert "'children' was not audited" in told.err
    written = pd.read_csv(tmp_path / "out" / "cells.csv").fillna({"swapped_with": ""})
    pd.testing.assert_frame_equal(written, result.cells, check_dtype=False, rtol=1e-6)


def test_a_column_called_all_is_not_hidden(body):
    with pytest.raises(InvalidParameterError, match="another name"):
        audit(body.rename(columns={"arm": "all"}), label="all")


@pytest.mark.parametrize(
    "options", [{"mean": "boosting"}, {"y_err": 0.1}, {"threshold": "z", "cutoff": 3.0}, {"groups": "sex"}]
)
def test_what_goes_with_one_label_is_refused(body, options):
    with pytest.raises(InvalidParameterError, match="label 'all' audits every column"):
        audit(body, label="all", **options)


def test_one_column_contradicts_nobody(body):
    with pytest.raises(InvalidFeaturesError, match="takes two"):
        audit(body[["height", "sex", "children"]], label=["all"])


def test_several_named_labels_have_no_table_of_cells(body):
    found = audit(body, label=["height", "arm"], id="person", mean="none", label_transform="none", row_noise="none")
    assert found.cells is None
    assert "cells" not in found.summary
