"""Audits by predictions of any model, and with mean models that pick columns, groups, weights and folds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from mislabel import audit
from mislabel.data.molecules import MoleculeSet
from mislabel.errors import InvalidFeaturesError, InvalidLabelsError, InvalidParameterError


@pytest.fixture
def frame(rng):
    size = 200
    city = rng.choice(["Aachen", "Bonn", "Celle"], size)
    area = rng.uniform(20.0, 120.0, size)
    price = np.select([city == "Aachen", city == "Bonn"], [100.0, 300.0], 500.0) + 4.0 * area + rng.normal(size=size)
    wrong = np.arange(size) % 20 == 3
    return pd.DataFrame({"city": city, "area": area, "price": np.where(wrong, price + 90.0, price), "wrong": wrong})


def test_predictions_as_a_column_or_an_array(frame):
    numbers = pd.get_dummies(frame[["city", "area"]]).to_numpy(dtype=float)
    given = cross_val_predict(LinearRegression(), numbers, frame["price"], cv=5)
    table = frame.drop(columns="wrong").assign(predicted=given)
    by_column = audit(table, "price", predictions="predicted", label_transform="none")
    by_array = audit(table.drop(columns="predicted"), "price", predictions=given, label_transform="none")
    pd.testing.assert_frame_equal(by_column.table, by_array.table)
    assert by_column.findings.used == ["city", "area"]
    polars = audit(pl.from_pandas(table), "price", predictions="predicted", label_transform="none")
    np.testing.assert_array_equal(polars.table["z"].to_numpy(), by_column.table["z"].to_numpy())
    found = by_column.suspects["row"].to_numpy()
    assert set(found) == set(np.flatnonzero(frame["wrong"]))
    shift = by_column.model.loo_mean_ - given
    assert np.ptp(shift) < 1.0
    assert "predictions that were given" in by_column.summary["model"]["words"]


def test_one_column_in_any_shape(frame, rng):
    table = frame.drop(columns="wrong")
    rough = (table["price"] - 90.0 * frame["wrong"]).to_numpy() + 3.0 * rng.normal(size=200)
    std = np.full(200, 1.0)
    lots, error = np.repeat(np.arange(20), 10), np.full(200, 0.5)
    expected = audit(table, "price", predictions=rough, prediction_std=std, label_error=error, groups=lots).table
    for shaped in (
        lambda values: values[:, None],
        lambda values: pd.DataFrame({"any": values}, index=np.arange(200) + 7),
        lambda values: pd.Series(values, index=np.arange(200) + 7),
        lambda values: pl.DataFrame({"any": values}),
        lambda values: pl.Series(values),
        lambda values: values.tolist(),
    ):
        options = {"predictions": rough, "prediction_std": std, "label_error": error, "groups": lots}
        shapes = {name: shaped(values) for name, values in options.items()}
        pd.testing.assert_frame_equal(audit(table, "price", **shapes).table, expected)
    weights = np.linspace(0.5, 1.0, 200)
    linear = {"mean": LinearRegression()}
    flat = audit(table, "price", sample_weight=weights, **linear)
    column = audit(table, "price", sample_weight=weights[:, None], **linear)
    pd.testing.assert_frame_equal(column.table, flat.table)
    with pytest.raises(InvalidParameterError, match=r"predictions must be one number per row.*\(200, 2\)"):
        audit(table, "price", predictions=np.ones((200, 2)))
    with pytest.raises(InvalidParameterError, match="prediction_std must be one number per row.*a table of 2 columns"):
        audit(table, "price", predictions=rough, prediction_std=table[["area", "city"]])
    with pytest.raises(InvalidParameterError, match="label error has 3 entries for 200 rows"):
        audit(table, "price", label_error=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
def test_a_standard_deviation_that_cannot_be_is_refused_by_its_row(frame, bad):
    table = frame.drop(columns="wrong").set_axis([f"L{k}" for k in range(200)], axis=0)
    std = np.where(np.arange(200) == 7, bad, 1.0)
    with pytest.raises(InvalidParameterError, match=r"1 entries of prediction_std are negative or missing \(row L7\)"):
        audit(table, "price", predictions=np.ones(200), prediction_std=std)
    with pytest.raises(InvalidParameterError, match=r"sample_weight are negative or missing \(row L7\)"):
        audit(table, "price", mean="trees", sample_weight=std)


def _judged(frame, rng):
    """Labels, and predictions of them that are close to what they should be."""
    right = frame["price"] - 90.0 * frame["wrong"]
    return (
        frame["price"].to_numpy().copy(),
        right.to_numpy() + rng.normal(size=200),
        set(np.flatnonzero(frame["wrong"])),
    )


def test_predictions_need_no_features(frame, rng, tmp_path):
    labels, given, wrong = _judged(frame, rng)
    table = pd.DataFrame({"name": [f"L{k}" for k in range(200)], "same": 1, "price": labels, "oof": given})
    table.to_csv(tmp_path / "t.csv", index=False)
    options = {"predictions": "oof", "label_transform": "none"}
    found = audit(table[["price", "oof"]], "price", **options)
    assert set(found.suspects["row"]) == wrong
    assert found.findings.used == []
    with_useless = audit(table, "price", **options)
    assert {item.column for item in with_useless.findings.left_out} == {"name", "same"}
    of_file = audit(tmp_path / "t.csv", "price", **options)
    of_array = audit(np.zeros((200, 0)), labels, predictions=given, label_transform="none")
    for other in (with_useless, of_file, of_array):
        pd.testing.assert_frame_equal(other.table, found.table)
    table[["price", "oof"]].to_parquet(tmp_path / "t.parquet", index=False)
    in_budget = audit(tmp_path / "t.parquet", "price", memory="3GB", **options)
    pd.testing.assert_frame_equal(in_budget.table, found.table)
    assert in_budget.report(tmp_path / "budget.html").exists()
    features = audit(table.assign(area=frame["area"]), "price", row_noise="none", **options)
    plain = audit(table, "price", row_noise="none", **options)
    np.testing.assert_allclose(features.model.loo_mean_, plain.model.loo_mean_, rtol=1e-12)
    page = of_file.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "predictions that were given" in page
    assert of_file.summary["suspects"] == len(wrong)
    defaults = audit(table, "price", predictions="oof")
    assert wrong <= set(defaults.suspects["row"])
    assert len(defaults.model.predict(np.zeros((3, 0)), predictions=[1.0, 2.0, 3.0])) == 3
    with pytest.raises(InvalidFeaturesError, match="no feature columns are left"):
        audit(table, "price", process_on_residuals=True, **options)


def test_predictions_with_labels_at_an_atom(frame, rng):
    labels, given, _ = _judged(frame, rng)
    labels[:40] = 1000.0
    found = audit(np.zeros((200, 0)), labels, predictions=np.where(np.arange(200) < 40, 1000.0, given))
    assert np.isfinite(found.table["z"]).all()


def test_predictions_for_molecules(rng, tmp_path):
    ase = pytest.importorskip("ase")
    size = 60
    molecules = [ase.Atoms("H" * (2 + k % 3), rng.normal(size=(2 + k % 3, 3))) for k in range(size)]
    right = np.array([-10.0 * len(molecule) for molecule in molecules]) + rng.normal(size=size)
    given, labels = right + 0.1 * rng.normal(size=size), right.copy()
    labels[[5, 33]] += 8.0
    listed = audit(molecules, labels, predictions=given)
    in_set = audit(MoleculeSet(molecules, {"energy": labels, "oof": given}), "energy", predictions="oof")
    assert set(listed.suspects["row"]) == set(in_set.suspects["row"]) == {5, 33}
    assert "oof" not in in_set.findings.used
    assert listed.report(tmp_path / "report.html").exists()
    assert listed.summary["suspects"] == 2
    with pytest.raises(InvalidParameterError, match="no column 'off'.*Did you mean 'oof'"):
        audit(MoleculeSet(molecules, {"energy": labels, "oof": given}), "energy", predictions="off")
    with pytest.raises(InvalidParameterError, match="groups and sample_weight are for mean models"):
        audit(molecules, labels, groups=np.arange(size))


def test_a_process_corrects_predictions_by_a_kernel_matrix(friedman):
    features, labels, _, _ = friedman(80, 0.05, 3.0, 0)
    matrix, rough = RBF(0.5)(features) * labels.var(), np.full(80, labels.mean())
    options = {"kernel": "precomputed", "predictions": rough}
    plain = audit(matrix, labels, **options)
    corrected = audit(matrix, labels, process_on_residuals=True, tune="none", **options)
    assert np.median(np.abs(corrected.model.loo_error_)) < 0.5 * np.median(np.abs(plain.model.loo_error_))


def test_predictions_for_smiles():
    smiles = ["C" * (1 + k % 12) + "O" * (k // 12) for k in range(48)]
    values = np.array([1.0 * text.count("C") - 2 * text.count("O") + 0.01 * k for k, text in enumerate(smiles)])
    table = pd.DataFrame({"SMILES": smiles, "logS": values, "oof": values + 0.05 * np.sin(np.arange(48))})
    table.loc[7, "logS"] += 30
    result = audit(table, "logS", predictions="oof")
    assert result.suspects["row"].tolist() == [7]


def test_a_page_of_any_models_audit(frame, tmp_path):
    table = frame.drop(columns="wrong")
    found = audit(table, "price", predictions=np.full(200, frame["price"].mean()))
    page = found.report(tmp_path / "report.html")
    assert "predictions that were given" in page.read_text(encoding="utf-8")


def test_a_process_corrects_predictions(frame):
    table = frame.drop(columns="wrong")
    rough = np.select([table["city"] == "Aachen", table["city"] == "Bonn"], [100.0, 300.0], 500.0)
    plain = audit(table, "price", predictions=rough)
    corrected = audit(table, "price", predictions=rough, process_on_residuals=True)
    assert np.median(np.abs(corrected.model.loo_error_)) < 0.05 * np.median(np.abs(plain.model.loo_error_))


def test_uncertain_predictions_say_less(frame):
    table = frame.drop(columns="wrong")
    given = table["price"].to_numpy() + np.where(np.arange(200) < 100, 30.0, 1.0) * np.resize([1, -1, 1], 200)
    std = np.where(np.arange(200) < 100, 30.0, 1.0)
    found = audit(table, "price", predictions=given, prediction_std=std, y_err=np.full(200, 0.5))
    variance = found.model.loo_variance_
    assert variance[:100].mean() > 50.0 * variance[100:].mean()


def test_pipelines_get_the_columns_that_they_name(frame):
    table = frame.drop(columns="wrong")
    table.loc[5, "price"] = np.nan
    columns = ColumnTransformer([("city", OneHotEncoder(), ["city"]), ("area", "passthrough", ["area"])])
    found = audit(table, "price", mean=make_pipeline(columns, LinearRegression()))
    assert set(np.flatnonzero(frame["wrong"])) <= set(found.suspects["row"])
    assert np.isfinite(found.model.loo_mean_[5])
    np.testing.assert_allclose(found.model.loo_mean_[~frame["wrong"]], frame["price"][~frame["wrong"]], atol=20.0)


class Dummies(TransformerMixin, BaseEstimator):
    """A transformer of the user's own."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return pd.DataFrame({name: X["city"] == name for name in ("Aachen", "Bonn", "Celle")}).assign(area=X["area"])


@pytest.mark.parametrize(
    "first",
    [FunctionTransformer(lambda rows: pd.get_dummies(rows[["city", "area"]]).astype(float)), Dummies()],
    ids=["function", "own transformer"],
)
def test_other_pipelines_get_names_too(frame, first):
    table = frame.drop(columns="wrong")
    found = audit(table, "price", mean=make_pipeline(first, LinearRegression()))
    assert set(np.flatnonzero(frame["wrong"])) <= set(found.suspects["row"])


@pytest.mark.parametrize("mean", ["linear", "none", make_pipeline(Dummies(), LinearRegression())])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_model_predicts_new_rows_of_the_table(frame, mean, kind):
    table = frame.drop(columns="wrong")
    found = audit(kind(table.to_dict("list")), "price", mean=mean)
    new = kind({"area": [100.0, 30.0], "more": [1, 2], "city": ["Bonn", "Celle"]})
    np.testing.assert_allclose(found.model.predict(new), [700.0, 620.0], atol=10.0)
    assert (found.model.predict(new, return_std=True)[1] > 0.0).all()
    with pytest.raises(InvalidParameterError, match="no column 'city'"):
        found.model.predict(kind({"area": [100.0]}))


def test_groups_weights_and_folds_reach_the_mean_model(frame):
    table = frame.drop(columns="wrong").assign(lot=np.repeat(np.arange(20), 10), weight=1.0)
    table["price"] += 50.0 * np.sin(table["lot"] * 7.0)
    model = KNeighborsRegressor(1)
    options = {"mean": model, "features": ["area", "lot"], "kernel": "table"}
    seen = audit(table, "price", **options)
    folds = audit(table, "price", cv=KFold(4), **options)
    assert not np.array_equal(seen.model.loo_mean_, folds.model.loo_mean_)
    grouped = audit(table.drop(columns="weight"), "price", mean=model, groups="lot")
    assert "lot" not in grouped.findings.used
    with_splitter = audit(table, "price", mean=model, groups="lot", cv=GroupKFold(5), drop=["weight"])
    assert with_splitter.model.mean_model_ is not None
    boosted = HistGradientBoostingRegressor(random_state=0)
    weighed = audit(table, "price", mean=boosted, sample_weight="weight")
    plain = audit(table.drop(columns="weight"), "price", mean=boosted)
    np.testing.assert_allclose(weighed.model.loo_mean_, plain.model.loo_mean_, rtol=1e-6)
    half = np.where(np.arange(200) < 100, 0.0, 1.0)
    other = audit(table.drop(columns="weight"), "price", mean=boosted, sample_weight=half)
    assert not np.allclose(other.model.loo_mean_, plain.model.loo_mean_, rtol=1e-3)


def test_what_cannot_be_is_refused(frame):
    table = frame.drop(columns="wrong")
    with pytest.raises(InvalidParameterError, match="prediction_std goes with predictions"):
        audit(table, "price", prediction_std=np.ones(200))
    with pytest.raises(InvalidParameterError, match="process_on_residuals goes with"):
        audit(table, "price", process_on_residuals=True)
    with pytest.raises(InvalidParameterError, match="3 entries for 200 rows"):
        audit(table, "price", predictions=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidParameterError, match="1 predictions are missing"):
        audit(table, "price", predictions=np.where(np.arange(200) == 7, np.nan, 1.0))
    with pytest.raises(InvalidParameterError, match="no column 'oof'"):
        audit(table, "price", predictions="oof")
    with pytest.raises(InvalidLabelsError, match="not numbers"):
        audit(table, "price", predictions="city")
    with pytest.raises(InvalidParameterError, match="sample_weight are negative"):
        audit(table, "price", mean="trees", sample_weight=-np.ones(200))
    with pytest.raises(InvalidParameterError, match="take the place of a mean"):
        audit(table, "price", mean="trees", predictions=np.ones(200))
    with pytest.raises(InvalidParameterError, match="the label and its own predictions"):
        audit(table, "price", predictions="price")
    with pytest.raises(InvalidParameterError, match="predictions: that is known of one label"):
        audit(table, ["price", "area"], predictions=np.ones(200))


def test_a_series_in_another_order_is_refused(frame):
    table = frame.drop(columns="wrong").set_index(pd.Index(np.arange(200) + 7))
    shuffled = table["price"].sample(frac=1.0, random_state=0)
    with pytest.raises(
        InvalidParameterError, match="predictions: the index has the rows of the table in another order"
    ):
        audit(table, "price", predictions=shuffled)
    with pytest.raises(InvalidParameterError, match="labels: the index has the rows of the table in another order"):
        audit(table[["city", "area"]], shuffled)
    given = shuffled.to_numpy()
    by_position = audit(table, "price", predictions=given).table
    counted = audit(table, "price", predictions=pd.Series(given)).table
    pd.testing.assert_frame_equal(counted, by_position)
