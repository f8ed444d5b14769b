"""Everything that can be audited, and what cannot."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression

from mislabel import LabelNoiseRegressor, audit, audit_file
from mislabel.data.molecules import MoleculeSet
from mislabel.errors import (
    DecisionsError,
    InvalidFeaturesError,
    InvalidLabelsError,
    InvalidParameterError,
    MoleculeFileError,
    TableFileError,
)
from mislabel.kernels import MolecularKernel


@pytest.fixture
def numbers(friedman):
    features, labels, wrong, _ = friedman(80, 0.05, 3.0, 0)
    return features, labels, wrong


def test_arrays_give_what_the_regressor_gives(numbers):
    features, labels, _ = numbers
    found = audit(features, labels, mean="none", rank=None, label_transform="none", row_noise="none").table
    expected = LabelNoiseRegressor().fit(features, labels).audit()
    for name in ("row", "label", "expected", "z", "q_value", "suspect"):
        np.testing.assert_array_equal(found[name], expected[name])


def test_features_and_labels_in_many_shapes(numbers):
    features, labels, _ = numbers
    expected = audit(features, labels, mean="none").table
    frame = pd.DataFrame(features, columns=list("abcde"), index=np.arange(80) + 500)
    for X, y in (
        (features.tolist(), labels.tolist()),
        (features, labels[:, None]),
        (features, pd.Series(labels)),
        (frame.reset_index(drop=True), labels),
        (np.ma.masked_array(features), np.ma.masked_array(labels)),
    ):
        pd.testing.assert_frame_equal(audit(X, y, mean="none").table, expected)
    pd.testing.assert_frame_equal(audit(features, y=labels, mean="none").table, expected)
    named = audit(frame, pd.Series(labels, name="a"), mean="none")
    assert named.findings.label == "a (label)"
    assert named.table["row"].between(500, 579).all()
    indexed = audit(features, pd.Series(labels, index=np.arange(80) + 500), mean="none")
    assert indexed.table["row"].tolist() == named.table["row"].tolist()


def test_a_counter_is_a_feature_where_it_is_passed_as_one():
    rng = np.random.default_rng(0)
    labels = np.sin(np.arange(60) / 10) + 0.05 * rng.normal(size=60)
    labels[20] += 3
    assert audit(np.arange(60.0)[:, None], labels, mean="none").suspects["row"].tolist() == [20]


def test_corrected_pairs_come_back_as_pairs(numbers):
    features, labels, _ = numbers
    result = audit(features, labels, mean="none")
    first = result.decisions["decisions"][0]
    first["action"] = "drop"
    X, y = result.apply()
    assert X.shape == (79, 5)
    assert y.shape == (79,)
    np.testing.assert_array_equal(X, np.delete(features, first["position"], axis=0))
    frame = pd.DataFrame(features, columns=list("abcde"))
    in_frame = audit(frame, pd.Series(labels), mean="none")
    in_frame.decisions["decisions"][0]["action"] = "drop"
    X, y = in_frame.apply()
    pd.testing.assert_frame_equal(X, frame.drop(index=first["position"]))
    assert X.index.equals(y.index)


def test_label_errors_have_two_names(numbers):
    features, labels, _ = numbers
    errors = np.full(80, 0.3)
    expected = audit(features, labels, y_err=errors, mean="none").table
    frame = pd.DataFrame(features, columns=list("abcde")).assign(y=labels, sd=0.3)
    for options in ({"y_err": "sd"}, {"label_error": "sd"}):
        result = audit(frame, "y", mean="none", **options)
        assert "sd" not in result.findings.used
        pd.testing.assert_frame_equal(result.table, expected)
    with pytest.raises(InvalidParameterError, match="two names for the same thing"):
        audit(frame, "y", y_err="sd", label_error="sd")
    with pytest.raises(InvalidLabelsError, match="the label error column 'sd' holds 80 values that are not numbers"):
        audit(frame.assign(sd="much"), "y", y_err="sd")


def test_kernels_and_means_are_taken_as_they_are(numbers):
    features, labels, wrong = numbers
    result = audit(features, labels, kernel=1.0 * RBF(), mean=LinearRegression())
    assert "RBF" in str(result.model.kernel_)
    assert "a LinearRegression" in result.summary["model"]["words"]
    kernel = RBF(0.5)(features) * labels.var()
    by_matrix = audit(kernel, labels, kernel="precomputed", tune="none")
    assert wrong[by_matrix.findings.positions[0]]
    with pytest.raises(InvalidParameterError, match="unknown kernel 'tabel'.*Did you mean 'table'"):
        audit(features, labels, kernel="tabel")


def test_further_options_reach_the_model(numbers):
    features, labels, _ = numbers
    result = audit(features, labels, mean="none", base_noise=0.25, threshold="top-k", cutoff=7, inference="maximum")
    assert len(result.suspects) == 7
    assert result.summary["summary"][0] == "7 of 80 labels look wrong since the 7 most suspicious were asked for."
    assert result.summary["fdr"] is None
    by_z = audit(features, labels, mean="none", threshold="z", cutoff=3)
    assert "look wrong beyond 3 standard deviations." in by_z.summary["summary"][0]
    assert result.model.base_noise == 0.25
    with pytest.raises(TypeError, match="nonsense"):
        audit(features, labels, nonsense=1)


def test_missing_labels_are_filled_in_unless_refused(numbers):
    features, labels, _ = numbers
    labels[4] = np.nan
    found = audit(features, labels, mean="none").table.set_index("row")
    assert np.isfinite(found.loc[4, "suggested_label"])
    with pytest.raises(InvalidLabelsError, match=r"1 labels are NaN \(row 4\)"):
        audit(features, labels, missing="raise")


@pytest.fixture
def waters():
    ase = pytest.importorskip("ase")
    molecules = []
    for k in range(24):
        angles = 2.0 * np.arange(1 + k % 3)
        hydrogens = (0.9 + 0.01 * k) * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
        molecules.append(ase.Atoms("O" + "H" * len(angles), np.vstack([[0, 0, 0], hydrogens])))
    energies = np.array([-10.0 * len(molecule) + 0.05 * k for k, molecule in enumerate(molecules)])
    energies[5] += 25
    return molecules, energies


def test_molecules_in_a_list_or_a_set(waters):
    molecules, energies = waters
    listed = audit(molecules, energies)
    assert "extensive" in listed.notes[0]
    assert listed.table["row"].iloc[0] == 5
    kernel = MolecularKernel.accurate("extensive")
    given = audit(molecules, energies, kernel=kernel)
    in_set = audit(MoleculeSet(molecules, {"energy": energies}), "energy", kernel=kernel)
    for other in (given, in_set):
        pd.testing.assert_frame_equal(other.table, listed.table)
    in_set.decisions["decisions"][0]["action"] = "drop"
    cleaned = in_set.apply()
    assert isinstance(cleaned, MoleculeSet)
    assert len(cleaned) == len(cleaned.labels("energy")) == 23
    some, values = listed.apply()
    assert some is molecules
    assert values[5] == listed.decisions["decisions"][0]["value"]
    molecules.reverse()
    with pytest.raises(DecisionsError, match="changed in place"):
        listed.apply()
    molecules.reverse()
    with pytest.raises(InvalidParameterError, match="id, mean: the set holds molecules"):
        audit(MoleculeSet(molecules, {"energy": energies}), "energy", mean="trees", id="name")
    with_errors = MoleculeSet(molecules, {"energy": energies, "sd": np.full(24, 0.1)})
    pd.testing.assert_frame_equal(
        audit(with_errors, "energy", y_err="sd").table, audit(molecules, energies, y_err=np.full(24, 0.1)).table
    )
    with pytest.raises(MoleculeFileError, match="no property 'enrgy'"):
        audit(MoleculeSet(molecules, {"energy": energies}), "enrgy")


def test_smiles_in_a_frame():
    pytest.importorskip("rdkit")
    smiles = ["C" * (1 + k % 12) + "O" * (k // 12) for k in range(24)]
    values = [1.0 * text.count("C") - 2 * text.count("O") + 0.01 * k for k, text in enumerate(smiles)]
    values[7] += 30
    result = audit(pd.DataFrame({"SMILES": smiles, "logS": values}), "logS")
    assert "compared by the SMILES in column 'SMILES'" in result.notes[0]
    assert result.table["row"].iloc[0] == 7


def test_several_labels(mixed, mixed_file, tmp_path):
    results = audit_file(mixed_file, ["y", "length"], out=tmp_path / "out", id="sample", mean="none")
    assert list(results) == ["y", "length"]
    single = audit(mixed_file, "y", id="sample", mean="none")
    pd.testing.assert_frame_equal(results["y"].table, single.table)
    assert "length" in results["y"].findings.used
    assert "y" in results["length"].findings.used
    assert results.summary["labels"] == ["y", "length"]
    assert results.summary["audits"]["y"] == single.summary
    assert results.summary["suspects"] == sum(len(result.suspects) for result in results.values())
    assert str(results.summary).startswith("y: 3 of 89 labels look wrong")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["length", "summary.json", "y"]
    assert (tmp_path / "out" / "y" / "report.html").exists()


@pytest.mark.parametrize("kind", [tuple, pd.Index])
def test_several_labels_in_any_list(mixed, kind):
    results = audit(mixed, kind(["y", "length"]), id="sample", mean="none")
    assert list(results) == ["y", "length"]


def test_one_label_of_a_table_with_several_rows_of_names(mixed):
    frame = mixed[["length", "count", "y"]].set_axis(
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "n"), ("b", "y")]), axis=1
    )
    result = audit(frame, ("b", "y"), mean="none")
    assert result.findings.label == "('b', 'y')"
    assert result.apply().shape == (90, 3)


def test_an_exact_rank_by_its_name(numbers):
    features, labels, _ = numbers
    named = audit(features, labels, mean="none", rank="exact")
    pd.testing.assert_frame_equal(named.table, audit(features, labels, mean="none", rank=None).table)
    assert named.model.rank_ is None


def test_names_of_columns_that_are_no_text(mixed):
    frame = mixed[["length", "count", "y"]].set_axis([0, 1, 2], axis=1)
    result = audit(frame, 2, mean="none", drop=[1])
    assert result.findings.used == ["0"]
    assert result.apply().columns.tolist() == [0, 1, 2]
    assert list(audit(frame, [0, 2], mean="none")) == ["0", "2"]
    assert audit(frame, np.int64(2), mean="none", drop=1).findings.used == ["0"]
    with pytest.raises(InvalidFeaturesError, match="two columns of the table are called '0'"):
        audit(frame.set_axis([0, "0", 2], axis=1), 2)


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True] * 30,
        ["true", "false", "TRUE"] * 30,
        ["yes", "no", "No"] * 30,
        ["bestanden", None, "durchgefallen"] * 30,
        [0, 1, 1] * 30,
        [3.5, 3.5, 2] * 30,
    ],
)
def test_classes_are_no_labels(mixed, tmp_path, values):
    frame = mixed.assign(y=values)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    for data in (frame, path):
        with pytest.raises(InvalidLabelsError, match="these are classes.*a tool for classification"):
            audit(data, "y")
    with pytest.raises(InvalidLabelsError, match="these are classes"):
        audit(mixed[["length"]], np.array(values))


def test_what_cannot_be_audited_is_said(mixed, mixed_file, numbers):
    features, labels, _ = numbers
    with pytest.raises(InvalidParameterError, match="which labels"):
        audit(mixed)
    for nothing in ([], (), pd.Index([])):
        with pytest.raises(InvalidParameterError, match="which labels"):
            audit(mixed, nothing)
    with pytest.raises(InvalidParameterError, match=r"takes the path of a file, got DataFrame.*\.write\(folder\)"):
        audit_file(mixed, "y", out="nowhere")
    with pytest.raises(InvalidParameterError, match="label and y are two names"):
        audit(features, labels, y=labels)
    with pytest.raises(InvalidParameterError, match="name the column of labels"):
        audit(mixed_file, labels)
    with pytest.raises(InvalidParameterError, match="got list"):
        audit([[1.0]], "price")
    with pytest.raises(InvalidLabelsError, match="80 rows of features and 3 labels"):
        audit(features, labels[:3])
    with pytest.raises(InvalidLabelsError, match="one number per row"):
        audit(features, features)
    with pytest.raises(InvalidFeaturesError, match="1 dimensions"):
        audit(labels, labels)
    with pytest.raises(InvalidLabelsError, match="holds dates"):
        audit(mixed.assign(y=pd.Timestamp("2024-01-01")), "y")
    with pytest.raises(InvalidLabelsError, match=r"2 values that are not numbers \(rows 0, 1, the first is 'about 3'"):
        audit(mixed.assign(y=["about 3", "?!", *map(str, range(88))]), "y")
    with pytest.raises(InvalidParameterError, match="fdr must lie between 0 and 1"):
        audit(mixed, "y", 5)
    with pytest.raises(InvalidParameterError, match="sheet goes with a file"):
        audit(mixed, "y", sheet="one")
    with pytest.raises(TableFileError, match="no such file"):
        audit("nothing.csv", "y")
    with pytest.raises(InvalidParameterError, match="pass the kernel that compares them"):
        audit([object(), object()], [1.0, 2.0], kernel="extensive")
