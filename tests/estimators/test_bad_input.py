"""Each bad input gets a typed error that says where, why and what next; or a right answer."""

import numpy as np
import pandas as pd
import pytest

from mislabel import LabelNoiseRegressor, audit
from mislabel.errors import (
    InvalidFeaturesError,
    InvalidLabelsError,
    InvalidParameterError,
    KernelMatrixError,
    MemoryBudgetError,
    MislabelError,
)
from mislabel.estimators import validation


@pytest.fixture
def data(friedman):
    features, labels, _, _ = friedman(60, 0.1, 2.0, 0)
    return features, labels


def test_nan_labels_name_the_rows(data):
    features, labels = data
    labels[[3, 17]] = np.nan
    with pytest.raises(
        InvalidLabelsError, match=r"2 labels are NaN \(rows 3, 17\): drop them or pass missing='predict'"
    ):
        LabelNoiseRegressor().fit(features, labels)
    frame = pd.DataFrame(features, index=[f"r{i}" for i in range(60)])
    with pytest.raises(InvalidLabelsError, match="rows r3, r17"):
        LabelNoiseRegressor().fit(frame, labels)


def test_infinite_labels(data):
    features, labels = data
    labels[5] = np.inf
    for missing in ("raise", "predict"):
        with pytest.raises(InvalidLabelsError, match=r"1 labels are infinite \(row 5\)"):
            LabelNoiseRegressor(missing=missing).fit(features, labels)


def test_nan_features(data):
    features, labels = data
    features[7, 2] = np.nan
    with pytest.raises(InvalidFeaturesError, match=r"row 7; columns 2\): fill them in"):
        LabelNoiseRegressor().fit(features, labels)


def test_strings_in_features(data):
    _, labels = data
    with pytest.raises(InvalidFeaturesError, match=r"mislabel\.audit"):
        LabelNoiseRegressor().fit(np.array([["steel"]] * 60), labels)


def test_strings_as_labels(data):
    features, _ = data
    with pytest.raises(InvalidLabelsError, match="must be numbers"):
        LabelNoiseRegressor().fit(features, ["high"] * 60)


@pytest.mark.parametrize(
    "kind",
    [
        np.array,
        list,
        lambda values: np.array(values)[:, None],
        lambda values: pd.Series(values, dtype="boolean"),
        lambda values: np.array([*values[:-1], np.nan], dtype=object),
    ],
)
def test_true_and_false_are_no_labels(data, kind):
    labels = kind((data[1] > np.median(data[1])).tolist())
    with pytest.raises(InvalidLabelsError, match="the label 'y' holds true and false: these are classes"):
        LabelNoiseRegressor(missing="predict").fit(data[0], labels)


def test_constant_labels_are_all_fine(data):
    features, _ = data
    model = LabelNoiseRegressor().fit(features, np.full(60, 7.25))
    np.testing.assert_allclose(model.predict(features), 7.25)
    assert not model.audit()["suspect"].any()


def test_almost_constant_labels(data):
    features, _ = data
    labels = np.full(60, 3.0)
    labels[11] = 900.0
    model = LabelNoiseRegressor().fit(features, labels)
    assert model.audit().iloc[0]["row"] == 11
    assert np.abs(model.predict(features[11:12])[0] - 3.0) < 50


def test_one_row():
    with pytest.raises(InvalidLabelsError, match="n_samples=1: at least two labels"):
        LabelNoiseRegressor().fit([[1.0]], [2.0])


def test_two_rows():
    model = LabelNoiseRegressor().fit([[1.0], [2.0]], [2.0, 3.0])
    assert np.isfinite(model.z_).all()


@pytest.mark.parametrize("base_noise", ["auto", 0.0])
def test_identical_rows_with_different_labels(rng, base_noise):
    features = rng.uniform(size=(40, 2))
    labels = np.sin(3 * features[:, 0]) + features[:, 1]
    features = np.vstack([features, features[7]])
    labels = np.append(labels, labels[7] + 5.0)
    model = LabelNoiseRegressor(base_noise=base_noise).fit(features, labels)
    assert model.audit().iloc[0]["row"] == 40
    assert abs(model.corrected_labels_[40] - labels[7]) < 1.0


def test_rows_duplicated_by_the_hundred(rng):
    features = np.repeat(rng.uniform(size=(5, 2)), 100, axis=0)
    labels = np.repeat(rng.normal(size=5), 100) + rng.normal(0, 0.05, 500)
    labels[123] += 3.0
    model = LabelNoiseRegressor().fit(features, labels)
    table = model.audit(0.05)
    assert table.iloc[0]["row"] == 123
    assert table["suspect"].sum() < 10


@pytest.mark.parametrize("factor", [1e12, 1e-12])
def test_huge_and_tiny_labels(data, factor):
    features, labels = data
    model = LabelNoiseRegressor().fit(features, factor * labels)
    assert np.isfinite(model.z_).all()
    assert np.abs(model.predict(features) / factor - labels).min() < 1.0


class TestPrecomputed:
    def fit(self, matrix, labels=None, **options):
        labels = np.arange(len(matrix), dtype=float) if labels is None else labels
        return LabelNoiseRegressor("precomputed", tune="none", **options).fit(matrix, labels)

    def test_asymmetric(self):
        matrix = np.eye(4)
        matrix[0, 2] = 0.5
        with pytest.raises(KernelMatrixError, match=r"entries \(0, 2\) and \(2, 0\)"):
            self.fit(matrix)

    def test_rounding_asymmetry_is_accepted(self, rng):
        matrix = np.eye(6) + 1e-9 * rng.standard_normal((6, 6))
        assert self.fit(matrix, base_noise=0.1).converged_

    def test_indefinite(self):
        with pytest.raises(KernelMatrixError, match="not positive semi-definite"):
            self.fit(np.array([[1.0, 2.0], [2.0, 1.0]]), base_noise=0.0)

    def test_not_square(self):
        with pytest.raises(KernelMatrixError, match="square"):
            self.fit(np.ones((3, 2)))

    def test_not_finite(self):
        matrix = np.eye(3)
        matrix[1, 2] = np.nan
        with pytest.raises(KernelMatrixError, match=r"entry \(1, 2\) is nan"):
            self.fit(matrix)

    def test_wrong_number_of_columns_in_predict(self):
        model = self.fit(np.eye(4), base_noise=0.1)
        with pytest.raises(InvalidParameterError, match="3 features"):
            model.predict(np.ones((2, 3)))

    def test_standard_deviation_needs_prior_variances(self):
        model = self.fit(np.eye(4), base_noise=0.1)
        with pytest.raises(KernelMatrixError, match="prior_variance"):
            model.predict(np.ones((2, 4)), return_std=True)


def test_shapes_that_do_not_match(data):
    features, labels = data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LabelNoiseRegressor().fit(features, labels[:-1])
    with pytest.raises(InvalidLabelsError, match=r"y_err has shape \(3,\)"):
        LabelNoiseRegressor().fit(features, labels, y_err=np.ones(3))


def test_negative_measurement_errors(data):
    features, labels = data
    errors = np.ones(60)
    errors[9] = -1.0
    with pytest.raises(InvalidLabelsError, match="row 9"):
        LabelNoiseRegressor().fit(features, labels, y_err=errors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "perlabel"}, "Did you mean 'per-label'"),
        ({"solver": "lbgfs"}, "Did you mean 'lbfgs'"),
        ({"solver": "lbfgs", "noise": "uniform"}, "solver for noise='uniform'"),
        ({"tune": "bilevl"}, "Did you mean 'bilevel'"),
        ({"base_noise": -1.0}, "variance >= 0"),
        ({"base_noise": "low"}, "variance >= 0"),
        ({"center": "mean"}, "'median', 'none' or a number"),
        ({"penalty": -1.0}, "finite number >= 0"),
        ({"penalty_power": 0.0}, "finite number > 0"),
        ({"missing": "drop"}, "'raise' or 'predict'"),
        ({"rank": -1}, "rank must be None"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"mean": 3}, "fit and predict"),
        ({"kernel": 3}, "kernel must be"),
    ],
)
def test_options_that_cannot_be(data, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        LabelNoiseRegressor(**options).fit(*data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fdr": 0.0}, "between 0 and 1"),
        ({"score": "zz"}, "Did you mean 'z'"),
        ({"threshold": "topk", "cutoff": 3}, "Did you mean 'top-k'"),
        ({"threshold": "top-k"}, "needs a cutoff"),
        ({"threshold": "top-k", "cutoff": 2.5}, "whole number"),
        ({"threshold": "z", "cutoff": -1}, "positive"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_audit_options_that_cannot_be(data, options, message):
    model = LabelNoiseRegressor(tune="none").fit(*data)
    with pytest.raises(InvalidParameterError, match=message):
        model.audit(**options)


def test_memory_is_estimated_first(data, monkeypatch):
    monkeypatch.setattr(validation, "ARRAYS_HELD", 10**15)
    with pytest.raises(MemoryBudgetError, match="an exact fit of 60 labels needs about .* GB"):
        LabelNoiseRegressor().fit(*data)


class TestTables:
    def test_no_such_column(self):
        frame = pd.DataFrame({"price": [1.0], "size": [2.0]})
        with pytest.raises(InvalidParameterError, match="no column 'prise'. Did you mean 'price'"):
            audit(frame, "prise")

    def test_label_that_is_not_a_number(self):
        frame = pd.DataFrame({"price": ["1", "2", "n/a?"], "size": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
        with pytest.raises(InvalidLabelsError, match=r"1 values that are not numbers \(row c, the first is 'n/a\?'\)"):
            audit(frame, "price")

    def test_no_features_left(self):
        with pytest.raises(InvalidFeaturesError, match="no feature columns"):
            audit(pd.DataFrame({"price": [1.0, 2.0]}), "price")

    def test_not_a_table(self):
        with pytest.raises(InvalidParameterError, match="DataFrame"):
            audit([[1.0]], "price")


def test_every_error_is_a_mislabel_error():
    from mislabel import errors

    for name, kind in vars(errors).items():
        if isinstance(kind, type) and name.endswith("Error"):
            assert issubclass(kind, MislabelError)
