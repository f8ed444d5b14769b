"""New rows judged by what an audit kept: the same verdicts as the audit's, refusals in words, and how suspects are told."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsRegressor

from mislabel import Gate, audit
from mislabel.auditing.gate_files import ARRAYS, WORDS, _fingerprint
from mislabel.errors import GateError, InvalidFeaturesError, InvalidParameterError, MislabelError

#: Small tables whose rows are there to be told apart only.
pytestmark = pytest.mark.filterwarnings("ignore::mislabel.errors.BaseNoiseWarning")

#: What both tables say of a row.
SAME = ["label", "expected", "expected_low", "expected_high", "noise_std", "z", "p_value", "q_value", "score"]


@pytest.fixture(scope="module")
def audited(mixed_file, tmp_path_factory):
    """An audit of a file with columns of every kind, written."""
    pytest.importorskip("skrub")
    result = audit(mixed_file, "y", id="sample", mean="none", verbose=0)
    result.write(tmp_path_factory.mktemp("gate") / "out")
    return result


@pytest.fixture(scope="module")
def gate(audited):
    return Gate.load(audited.folder)


def matched(one, other):
    """Two tables in the same order of rows."""
    return [table.set_index("row").sort_index() for table in (one, other)]


def test_the_audited_file_gets_the_verdicts_of_the_audit(audited, gate, mixed_file):
    checked = gate.check(mixed_file)
    wanted, found = matched(audited.to_pandas(), checked.table)
    np.testing.assert_allclose(found[SAME], wanted[SAME], rtol=1e-9, atol=1e-9)
    assert found["suspect"].tolist() == wanted["suspect"].tolist()
    assert not checked.ok
    assert len(checked.suspects) == wanted["suspect"].sum()


def test_a_new_row_is_judged_by_the_others(audited, gate, mixed, tmp_path):
    new = mixed.iloc[[1, 2, 3, 9, 20]].copy()
    new["sample"] = [f"N{k}" for k in range(5)]
    new["length"] += 0.001  # no accepted row any more
    new.loc[2, "y"] += 3.0
    new.to_csv(tmp_path / "new.csv", index=False)
    checked = gate.check(tmp_path / "new.csv")
    assert checked.suspects["row"].tolist() == ["N1"]
    assert checked.suspects["line"].tolist() == [3]
    # The model of the audit itself says the same of these rows.
    expected = audited.model.predict(new)
    found = checked.table.set_index("row").loc[new["sample"], "expected"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    frame = gate.check(new).table.drop(columns=[], errors="ignore")
    np.testing.assert_allclose(frame[SAME], checked.table[SAME], rtol=1e-9)
    assert "line" not in frame


def test_the_batch_changes_nothing_but_the_rate(gate, mixed):
    new = mixed.iloc[30:60].assign(length=lambda rows: rows["length"] + 0.01)
    whole = gate.check(new).table.set_index("row")
    for row in (30, 41, 55):
        alone, columns = gate.check(new.loc[[row]]).table, [name for name in SAME if name != "q_value"]
        wanted = whole.loc[new.loc[row, "sample"], columns].to_numpy(float)
        np.testing.assert_allclose(alone[columns].to_numpy(float)[0], wanted, rtol=1e-9)


def test_odd_cells_are_handled_as_the_encoder_does_and_told(audited, gate, mixed):
    new = mixed.iloc[[1, 2, 4]].astype(object).assign(kind=["gold", None, "zinc"], day=[None, "2024-02-02", "soon"])
    new.loc[1, "gaps"] = "broken"
    checked = gate.check(new)
    notes = " ".join(checked.notes)
    assert "column 'gaps'" in notes
    clean = new.assign(gaps=pd.to_numeric(new["gaps"], errors="coerce"))
    np.testing.assert_allclose(
        checked.table.set_index("row").loc[clean["sample"], "expected"], audited.model.predict(clean), rtol=1e-6
    )


def test_missing_columns_and_missing_labels(gate, mixed):
    with pytest.raises(InvalidParameterError, match="no column 'length'"):
        gate.check(mixed.drop(columns="length"))
    with pytest.raises(InvalidParameterError, match="no column 'y'"):
        gate.check(mixed.drop(columns="y"))
    found = gate.check(mixed.iloc[[5, 12]].drop(columns="sample")).table
    assert np.isnan(found["label"].iloc[-1])
    assert not found["suspect"].iloc[-1]
    assert found["row"].tolist() == [5, 12]


def test_gaps_that_no_accepted_row_has_are_refused(rng):
    features = rng.normal(size=(80, 2))
    frame = pd.DataFrame({"a": features[:, 0], "b": features[:, 1], "y": np.sin(features[:, 0]) + features[:, 1]})
    frame["y"] += 0.05 * rng.normal(size=80)
    gate = kept(audit(frame, "y", mean="none", verbose=0))
    new = frame.iloc[:3].copy()
    new.loc[1, "b"] = np.nan
    with pytest.raises(InvalidFeaturesError, match=r"column 'b' has no number in row 1, and no accepted row has a gap"):
        gate.check(new)


def kept(result, folder=None):
    """The gate of an audit, by way of files."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        result.save_gate(folder)
        gate = Gate.load(folder)
        gate._restored  # noqa: B018  # arrays are read at once
        return gate


def test_arrays_labels_with_errors_and_codes_that_look_like_numbers(rng, tmp_path):
    features = rng.normal(size=(120, 3))
    labels = features[:, 0] - np.abs(features[:, 1]) + 0.1 * rng.normal(size=120)
    labels[:4] += 4.0
    gate = kept(audit(features, labels, verbose=0))
    assert gate.check(features[:4], labels[:4]).table["suspect"].all()
    assert gate.check(features[10:20], labels[10:20]).ok
    codes = rng.choice(["1", "2", "A3"], 120)
    frame = pd.DataFrame({"x": features[:, 0], "code": codes, "err": 0.1, "y": features[:, 0] + 2.0 * (codes == "2")})
    frame["y"] += 0.1 * rng.normal(size=120)
    result = audit(frame, "y", label_error="err", mean="none", verbose=0)
    gate = kept(result)
    new = frame[frame["code"] == "2"].head(5).assign(x=lambda rows: rows["x"] + 0.01)
    new.to_csv(tmp_path / "new.csv", index=False)
    found = gate.check(tmp_path / "new.csv").table.sort_values("row")
    np.testing.assert_allclose(found["expected"], result.model.predict(new), rtol=1e-6)
    with pytest.raises(InvalidParameterError, match="no column 'err'"):
        gate.check(new.drop(columns="err"))


def test_predictions_of_another_model(rng):
    x = rng.normal(size=150)
    told = np.sin(x)
    frame = pd.DataFrame({"told": told, "y": told + 0.1 * rng.normal(size=150)})
    frame.loc[3, "y"] += 3.0
    gate = kept(audit(frame, "y", predictions="told", verbose=0))
    new = pd.DataFrame({"told": [0.5, 0.5], "y": [0.52, 4.0]})
    assert gate.check(new).suspects["row"].tolist() == [1]


def test_no_gate_is_kept_of_what_is_code(mixed, rng, tmp_path):
    pytest.importorskip("skrub")
    frame = pd.DataFrame({"x": rng.normal(size=80), "z": rng.normal(size=80)})
    frame["y"] = frame["x"] + 0.1 * rng.normal(size=80)
    neighbours = audit(frame, "y", mean=KNeighborsRegressor(), verbose=0)
    neighbours.write(tmp_path / "out")
    with pytest.raises(
        GateError, match=r"No gate for new rows was kept: the mean model, a KNeighborsRegressor, is more than"
    ):
        Gate.load(tmp_path / "out")
    told = json.loads((tmp_path / "out" / "summary.json").read_text())["no_gate"]
    assert told == neighbours.summary["no_gate"]
    assert "KNeighborsRegressor" in told
    with pytest.raises(GateError, match="KNeighborsRegressor"):
        neighbours.save_gate(tmp_path / "gate")
    texts = frame.assign(note=[f"tested by hand {k}, in the {k % 7} hall" for k in range(80)])
    with pytest.raises(GateError, match="column 'note' holds texts of many kinds"):
        audit(texts, "y", mean="none", features=["x", "note"], verbose=0).save_gate(tmp_path / "gate")
    with pytest.raises(GateError, match="errors were passed as an array"):
        audit(frame, "y", y_err=np.full(80, 0.1), mean="none", verbose=0).save_gate(tmp_path / "gate")


@pytest.fixture
def copied(audited, tmp_path):
    """The files of a gate, to be damaged."""
    return audited.save_gate(tmp_path / "gate")


def test_what_is_written_is_plain(copied):
    with np.load(copied / ARRAYS, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fiu" for name in arrays.files)
    words = json.loads((copied / WORDS).read_text())
    assert words["format"] == "mislabel-gate/1"
    assert words["arrays"][ARRAYS] == hashlib.sha256((copied / ARRAYS).read_bytes()).hexdigest()


@pytest.mark.parametrize("file", [WORDS, ARRAYS])
def test_damage_is_refused_in_words(copied, file):
    content = bytearray((copied / file).read_bytes())
    at = content.index(b'"center"') + 12 if file == WORDS else len(content) // 2
    content[at] ^= 1
    (copied / file).write_bytes(content)
    with pytest.raises(GateError, match="is damaged or was changed"):
        Gate.load(copied)
    (copied / file).write_bytes(bytes(content[: len(content) // 2]))
    with pytest.raises(GateError, match="is damaged or was changed"):
        Gate.load(copied)
    (copied / file).unlink()
    with pytest.raises(GateError, match="holds no gate|cannot be read"):
        Gate.load(copied)


def test_foreign_folders_are_refused(copied, mixed, tmp_path):
    with pytest.raises(GateError, match="no such folder"):
        Gate.load(tmp_path / "nowhere")
    with pytest.raises(GateError, match="holds no gate"):
        Gate.load(tmp_path)
    words = json.loads((copied / WORDS).read_text())
    for content, message in (
        ("[1, 2]", "not a gate of mislabel"),
        ('{"format": "other"}', "not a gate of mislabel"),
        (json.dumps({**words, "format": "mislabel-gate/9"}), "mislabel-gate/9"),
    ):
        (copied / WORDS).write_text(content)
        with pytest.raises(GateError, match=message):
            Gate.load(copied)
    # A gate whose fingerprint is right and whose content is not.
    words = {name: value for name, value in words.items() if name != "fingerprint"}
    words["model"] = {"center": "?"}
    (copied / WORDS).write_text(json.dumps({**words, "fingerprint": _fingerprint(words)}))
    with pytest.raises(MislabelError, match="cannot be read by this version"):
        Gate.load(copied).check(mixed.iloc[:2])


def test_words_and_annotations(gate, mixed_file):
    checked = gate.check(mixed_file)
    lines = str(checked.summary).splitlines()
    assert lines[0].endswith(
        "of 90 new labels of 'y' look wrong at a false discovery rate of 5 %, judged by 90 accepted rows."
    )
    worst = checked.suspects.iloc[0]
    assert f"line {worst['line']}, row {worst['row']}: y is" in lines[1]
    told = checked.annotations()
    assert len(told) == len(checked.suspects)
    assert told == sorted(told, key=lambda line: int(line.partition("line=")[2].partition(",")[0]))
    assert told[0].startswith(f"::warning file={mixed_file},line=9,title=mislabel::row S007: y is ")
    assert json.loads(json.dumps(checked.summary, allow_nan=False))["suspects"] == len(told)


def test_annotations_escape_what_would_end_them(gate, mixed, tmp_path):
    path = tmp_path / "a,b 100%.csv"
    mixed.iloc[[7]].assign(sample="one,\ntwo::% ").to_csv(path, index=False)
    (line,) = gate.check(path).annotations()
    assert "a%2Cb 100%25.csv,line=2" in line
    assert "\n" not in line
    assert "%25" in line.partition("title=mislabel::")[2]


def test_labels_that_a_review_kept_are_no_suspects(audited, mixed_file, tmp_path):
    decisions = audited.decisions
    decisions["decisions"][0] |= {"action": "keep", "value": decisions["decisions"][0]["label"], "reviewed": True}
    kept_row = decisions["decisions"][0]["row"]
    reviewed = audited.with_verdicts(decisions)
    reviewed.save_gate(tmp_path / "gate")
    found = Gate.load(tmp_path / "gate").check(mixed_file).table
    assert kept_row in audited.suspects["row"].tolist()
    assert kept_row not in found.loc[found["suspect"], "row"].tolist()
    wanted, found = matched(reviewed.to_pandas(), found)
    assert found["suspect"].tolist() == wanted["suspect"].tolist()
    np.testing.assert_allclose(found[["z", "q_value", "score"]], wanted[["z", "q_value", "score"]], rtol=1e-9)
