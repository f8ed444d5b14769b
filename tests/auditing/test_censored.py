"""Labels that are only limits, from every entrance."""

import base64

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.errors import InvalidParameterError
from mislabel.report.content import report_content

OPTIONS = {"verbose": 0, "mean": "none", "label_transform": "none", "row_noise": "none"}


@pytest.fixture(scope="module")
def table():
    """80 labels of a smooth function, none reported beyond 1 and 4; one limit of each kind is firmly on the wrong side."""
    rng = np.random.default_rng(5)
    a = rng.uniform(0.0, 5.0, 80)
    y = np.round(a + rng.normal(0.0, 0.05, 80), 3)
    cells = [f"<{1}" if value < 1 else f">{4}" if value > 4 else f"{value:.3f}" for value in y]
    low, high = int(np.argmin(np.abs(a - 3.5))), int(np.argmin(np.abs(a - 1.5)))
    cells[low], cells[high] = "<1", ">4"
    return pd.DataFrame({"a": np.round(a, 4), "y": cells}), {low, high}


def test_limits_are_suspect_only_where_others_put_the_value_on_the_other_side(table):
    frame, wrong = table
    result = audit(frame, "y", **OPTIONS)
    assert set(result.suspects["row"]) == wrong
    assert set(result.suspects["censored"]) == {"<", ">"}
    found = result.table.set_index("row")["censored"].sort_index()
    assert found.tolist() == [cell[0] if cell[0] in "<>" else "" for cell in frame["y"]]
    assert "upper limits and" in str(result.summary)
    kinds = result.summary["label_kind"]
    assert kinds["upper_limits"] + kinds["lower_limits"] == (found != "").sum()
    assert any(f"{sign} {value}, expected" in result.summary["summary"][1] for sign, value in (("<", 1), (">", 4)))


def test_every_entrance_gives_the_same(table, tmp_path):
    frame, _ = table
    plain = audit(frame, "y", **OPTIONS).table
    frame.to_csv(tmp_path / "assay.csv", index=False)
    numbers = frame.assign(
        y=frame["y"].str.lstrip("<>").astype(float), sign=[cell[0] if cell[0] in "<>" else "=" for cell in frame["y"]]
    )
    for other in (
        audit(tmp_path / "assay.csv", "y", **OPTIONS),
        audit(numbers, "y", censored="sign", **OPTIONS),
        audit(numbers[["a", "y"]], "y", censored=numbers["sign"].to_numpy(), **OPTIONS),
        audit(numbers[["a"]], numbers["y"], censored=numbers["sign"].map({"<": -1, ">": 1, "=": 0}), **OPTIONS),
    ):
        pd.testing.assert_frame_equal(pd.DataFrame(other.table), pd.DataFrame(plain), check_dtype=False)


def test_other_limits_stay_as_they_were_written(table, tmp_path):
    frame, wrong = table
    frame.to_csv(tmp_path / "assay.csv", index=False)
    result = audit(tmp_path / "assay.csv", "y", **OPTIONS)
    result.apply(output=tmp_path / "cleaned.csv")
    cleaned = pd.read_csv(tmp_path / "cleaned.csv", dtype=str)
    for k, (before, after) in enumerate(zip(frame["y"], cleaned["y"], strict=True)):
        assert (before != after) == (k in wrong)
        assert k not in wrong or abs(float(after) - frame["a"][k]) < 0.3


def test_a_sign_that_is_none_is_refused(table):
    frame, _ = table
    numbers = frame.assign(y=np.arange(80.0), sign="~")
    with pytest.raises(InvalidParameterError, match="censored must be"):
        audit(numbers, "y", censored="sign", **OPTIONS)


def test_the_page_knows_the_signs_and_the_limits(table):
    frame, _ = table
    result = audit(frame, "y", **OPTIONS)
    content = report_content(result.findings, result.source)
    side = np.frombuffer(base64.b64decode(content["rows"]["side"]), dtype="i1")
    signs = result.table["censored"].tolist()
    assert [{-1: "<", 0: "", 1: ">"}[number] for number in side.tolist()] == signs
    sizes, shares = content["detectable"]["sizes"], content["detectable"]["shares"]
    assert sizes == sorted(sizes)
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < shares[-1] <= 1.0
    # Limits that are not crossed have no error: they are no part of the pictures of errors.
    shown = sum(content["histogram"]["trusted"]) + sum(content["histogram"]["suspect"])
    assert shown == signs.count("")
