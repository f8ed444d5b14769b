"""What an audit returns: its table, and everything that can be done with it."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from mislabel import AuditResult, LabelNoiseRegressor, audit, audit_file
from mislabel.data.corrections import apply_decisions, read_decisions
from mislabel.decisions import AUDIT_COLUMNS
from mislabel.errors import DecisionsError, InvalidParameterError

OPTIONS = {"id": "sample", "mean": "none"}


@pytest.fixture(scope="module")
def result(mixed):
    return audit(mixed, "y", **OPTIONS)


@pytest.fixture(scope="module")
def of_file(mixed_file):
    return audit(mixed_file, "y", **OPTIONS)


def test_it_behaves_like_its_table(result):
    assert isinstance(result, AuditResult)
    assert len(result) == 90
    assert list(result) == AUDIT_COLUMNS
    assert "suspect" in result
    assert result["suspect"].sum() == len(result.suspects) == 3
    assert result.head(2).equals(result.table.head(2))
    assert result.loc[0, "row"] == result.iloc[0]["row"] == result.table["row"].iloc[0]
    assert result.columns.tolist() == AUDIT_COLUMNS
    assert "head" in dir(result)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = result.nothing_of_the_kind


def test_its_table_is_the_users_own(mixed):
    result = audit(mixed, "y", **OPTIONS)
    first, words = result.table["row"].iloc[0], str(result.summary)
    for table in (result.table, result.head(), result[["row", "suspect"]], result.suspects, result.to_pandas()):
        table["row"] = "nothing"
        table["suspect"] = False
    assert result.table["row"].iloc[0] == first
    assert len(result.suspects) == 3
    assert str(audit(mixed, "y", **OPTIONS).summary) == words == str(result.summary)


@pytest.mark.parametrize("of", ["pandas", "polars", "pyarrow"])
def test_its_table_in_every_kind(mixed, of):
    nw = pytest.importorskip("narwhals")
    data = nw.from_dict(mixed[["length", "count", "y"]].to_dict("list"), backend=of).to_native()
    result = audit(data, "y", mean="none")
    assert isinstance(result.head(2), type(data))
    assert isinstance(result[["row", "z"]], type(data))
    assert nw.from_native(result.head(2)).shape == (2, 13)
    assert nw.from_native(result[["row", "z"]]).columns == ["row", "z"]
    assert result.to_pandas().columns.tolist() == AUDIT_COLUMNS
    with pytest.raises(TypeError, match=r"use result.to_pandas\(\)"):
        pd.DataFrame(result)


def test_it_knows_the_model_and_the_patterns(result):
    assert isinstance(result.model, LabelNoiseRegressor)
    assert result.patterns == result.findings.patterns
    assert result.suspects["suspect"].all()


def test_it_can_be_copied_and_pickled(result, of_file):
    for one in (result, of_file):
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            pd.testing.assert_frame_equal(other.table, one.table)
            assert other.summary == one.summary
            assert other.decisions == one.decisions
    empty = AuditResult.__new__(AuditResult)
    with pytest.raises(AttributeError):
        _ = empty.anything


def test_a_budgeted_result_can_be_pickled(mixed, tmp_path):
    mixed.to_parquet(tmp_path / "t.parquet", index=False)
    one = audit(tmp_path / "t.parquet", "y", memory="3GB", **OPTIONS)
    other = pickle.loads(pickle.dumps(one))
    assert other.report(tmp_path / "other.html").read_bytes() == one.report(tmp_path / "one.html").read_bytes()


def test_the_summary_is_words_and_a_dict(of_file, tmp_path):
    summary = of_file.summary
    assert str(summary).splitlines()[0] == "3 of 89 labels look wrong at a false discovery rate of 5 %."
    assert summary["model"]["words"] in str(summary)
    assert summary["suspects"] == 3
    of_file.write(tmp_path / "out")
    assert summary.as_dict() == summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert pickle.loads(pickle.dumps(summary)) == summary
    assert repr(of_file).startswith(str(summary).splitlines()[0])


def test_a_notebook_shows_words_then_rows(mixed):
    shown = audit(mixed.assign(sample="<b>" + mixed["sample"]), "y", **OPTIONS)._repr_html_()
    assert shown.startswith("<p>3 of 89 labels look wrong at a false discovery rate of 5 %.</p>")
    assert "<table" in shown
    assert "<b>S" not in shown


def test_it_writes_what_the_command_line_writes(of_file, mixed_file, tmp_path):
    assert of_file.report(tmp_path / "page.html") == tmp_path / "page.html"
    assert of_file.write(tmp_path / "out") == of_file.folder == tmp_path / "out"
    assert of_file.report_path == tmp_path / "out" / "report.html"
    assert (tmp_path / "page.html").read_bytes() == of_file.report_path.read_bytes()
    same = audit_file(mixed_file, "y", out=tmp_path / "same", **OPTIONS)
    assert same.folder == tmp_path / "same"
    for name in ("audit.csv", "report.html", "summary.json"):
        assert (tmp_path / "same" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_results_of_a_file_go_where_the_command_puts_them(mixed_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = audit_file(mixed_file, "y", **OPTIONS)
    assert found.report_path.resolve() == tmp_path / "mixed-audit" / "report.html"
    assert found.report_path.exists()


def test_results_never_overwrite_the_data(mixed, tmp_path):
    path = tmp_path / "audit.csv"
    mixed.to_csv(path, index=False)
    before = path.read_bytes()
    with pytest.raises(InvalidParameterError, match="would overwrite"):
        audit(path, "y", **OPTIONS).write(tmp_path)
    assert path.read_bytes() == before


def test_decisions_are_those_of_the_page(of_file, mixed_file, tmp_path):
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps(of_file.decisions))
    found = read_decisions(path)
    assert [decision.position for decision in found.decisions] == [7, 30, 55]
    assert {decision.action for decision in found.decisions} == {"accept"}
    suggested = of_file.table.set_index("row")["suggested_label"]
    assert [decision.value for decision in found.decisions] == [suggested[f"S{k:03d}"] for k in (7, 30, 55)]
    assert apply_decisions(mixed_file, path, tmp_path / "cleaned.csv").corrected == 3


def test_a_file_is_copied_not_changed(of_file, mixed_file, mixed, tmp_path):
    before = mixed_file.read_bytes()
    with pytest.raises(InvalidParameterError, match="is never changed: name the cleaned file"):
        of_file.apply()
    done = of_file.apply(output=tmp_path / "cleaned.csv")
    assert (done.corrected, done.dropped) == (3, 0)
    cleaned = pd.read_csv(tmp_path / "cleaned.csv").set_index("sample")
    assert cleaned.loc["S007", "y"] == of_file.decisions["decisions"][0]["value"]
    pd.testing.assert_frame_equal(
        cleaned.drop(columns="y"), pd.read_csv(mixed_file).set_index("sample").drop(columns="y")
    )
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps(of_file.decisions))
    of_file.apply(path, output=tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "cleaned.csv").read_bytes()
    assert mixed_file.read_bytes() == before


def test_decisions_can_be_edited(mixed):
    result = audit(mixed, "y", **OPTIONS)
    first, second, third = result.decisions["decisions"]
    first["action"], second["action"] = "keep", "drop"
    third.update(action="edit", value=0.5)
    cleaned = result.apply()
    assert len(cleaned) == 89
    assert 30 not in cleaned.index
    assert cleaned.loc[7, "y"] == mixed.loc[7, "y"]
    assert cleaned.loc[55, "y"] == 0.5


def test_decisions_about_other_data_are_refused(result, mixed):
    other = audit(mixed.assign(length=mixed["length"] + 1), "y", **OPTIONS)
    with pytest.raises(DecisionsError, match="other data"):
        result.apply(other.decisions)
    with pytest.raises(DecisionsError, match="about the label 'z' of 90 rows"):
        result.apply({**result.decisions, "label": "z"})
    with pytest.raises(DecisionsError, match="unknown action"):
        result.apply({**result.decisions, "decisions": [{"position": 1, "action": "burn"}]})
    with pytest.raises(InvalidParameterError, match="go with files"):
        result.apply(output="cleaned.csv")


def test_decisions_that_are_none_are_refused(result, of_file, tmp_path):
    for one, options in ((result, {}), (of_file, {"output": tmp_path / "cleaned.csv"})):
        for what in ([], one.decisions["decisions"], one.table):
            with pytest.raises(DecisionsError, match=r"decisions are a dict like result\.decisions"):
                one.apply(what, **options)
        entries = [{**one.decisions["decisions"][0], "value": {1, 2}}]
        with pytest.raises(DecisionsError, match="^what was passed as decisions is not a decisions file"):
            one.apply({}, **options)
        with pytest.raises(DecisionsError, match="plain numbers and texts: set is neither"):
            one.apply({**one.decisions, "decisions": entries}, **options)
    entries = [
        {**result.decisions["decisions"][0], "action": "edit", "value": np.float32(0.5), "position": np.int64(3)}
    ]
    assert result.apply({**result.decisions, "decisions": entries})["y"][3] == 0.5


def test_a_page_needs_a_place(result, tmp_path):
    with pytest.raises(InvalidParameterError, match="nodir for the page does not exist"):
        result.report(tmp_path / "nodir" / "report.html")
    with pytest.raises(InvalidParameterError, match="is a folder: give the page a name"):
        result.report(tmp_path)


def _moved(frame):
    frame["length"] = frame["length"].to_numpy()[::-1].copy()


def _relabelled(frame):
    frame.loc[0, "y"] += 1.0


def _without_a_column(frame):
    del frame["gaps"]


@pytest.mark.parametrize("change", [_moved, _relabelled, _without_a_column])
def test_data_that_was_changed_in_place_is_refused(mixed, change):
    frame = mixed.copy()
    result = audit(frame, "y", **OPTIONS)
    change(frame)
    with pytest.raises(DecisionsError, match="changed in place after the audit.*audit it again"):
        result.apply()


def test_features_and_labels_changed_in_place_are_refused(friedman):
    features, labels, _, _ = friedman(80, 0.05, 3.0, 0)
    result = audit(features, labels, mean="none")
    assert len(result.apply()[1]) == 80
    labels[:] = labels[::-1].copy()
    with pytest.raises(DecisionsError, match="changed in place"):
        result.apply()
    labels[:] = labels[::-1].copy()
    features[3] += 1.0
    with pytest.raises(DecisionsError, match="changed in place"):
        result.apply()


def test_a_kernel_matrix_loses_columns_with_its_rows(friedman):
    features, labels, _, _ = friedman(80, 0.05, 3.0, 0)
    matrix = RBF(0.5)(features) * labels.var()
    result = audit(matrix, labels, kernel="precomputed", tune="none")
    result.decisions["decisions"][0]["action"] = "drop"
    kept = np.delete(np.arange(80), result.decisions["decisions"][0]["position"])
    np.testing.assert_array_equal(result.apply()[0], matrix[np.ix_(kept, kept)])
    labels[0] += 1.0
    with pytest.raises(DecisionsError, match="changed in place"):
        result.apply()


def test_plots(result):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    for kind, column in (("labels", None), ("z", None), ("calibration", None), ("column", "kind")):
        _, ax = plt.subplots()
        assert result.plot(kind, ax=ax, column=column).ax_ is ax
        assert ax.get_xlabel()
    assert len(result.plot("labels").ax_.collections[1].get_offsets()) == 3
    with pytest.raises(InvalidParameterError, match="unknown kind of plot 'label'.*Did you mean 'labels'"):
        result.plot("label")
    with pytest.raises(InvalidParameterError, match="unknown column 'kinds'"):
        result.plot("column", column="kinds")
    plt.close("all")
