"""Small fits on nasty data: a typed error that says what is wrong, or finite numbers; and no warning of NumPy's.

NASTY_FITS=2000 makes as many fits as that; the default is a part of them.
"""

import datetime
import os
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from mislabel import LabelNoiseRegressor
from mislabel.errors import (
    InvalidFeaturesError,
    InvalidLabelsError,
    InvalidParameterError,
    MislabelError,
    MislabelWarning,
)

FITS = int(os.environ.get("NASTY_FITS", "200"))
PARTS = 10
EXTREMES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e300,
    -1e300,
    1e-300,
    5e-324,
    1.7e308,
    1e150,
    1e-150,
    1e20,
    -9999.0,
    9.96921e36,
    0.1 + 0.2,
    0.3,
]
MODELS = [
    {},
    {},
    {"missing": "predict"},
    {"base_noise": 0.0},
    {"base_noise": 0.0, "tune": "none"},
    {"noise": "uniform"},
    {"noise": "none"},
    {"inference": "maximum"},
    {"mean": LinearRegression()},
    {"mean": "auto"},
    {"rank": 3},
    {"rank": 2, "inference": "maximum"},
    {"center": "none"},
    {"kernel": "precomputed"},
    {"kernel": lambda left, right: float(np.exp(-abs(np.sum(left) - np.sum(right))))},
    {"n_restarts": 1, "penalty": 0.5, "base_noise": 0.01},
]
#: What scikit-learn itself says of X, and has its checks demand.
OWN_WORDS = (
    "Sparse data",
    "sparse",
    "Expected 2D",
    "Found array with",
    "inconsistent",
    "Complex data",
    "Reshape",
    "argument must be a string or a real number",
)


def features_of(rng, size):
    width = int(rng.integers(1, 4))
    points = rng.normal(size=(size, width))
    kind = rng.integers(12)
    if kind == 0:
        points = rng.choice(EXTREMES, size=(size, width))
    elif kind == 1:
        points[:] = rng.choice(EXTREMES)
    elif kind == 2:
        points = points[rng.integers(0, max(size // 2, 1), size)]
    elif kind == 3:
        points = points @ np.ones((width, 1)) @ np.ones((1, width))
    elif kind == 4:
        points *= 10.0 ** float(rng.integers(-320, 300))
    elif kind == 5:
        points += 10.0 ** float(rng.integers(0, 20))
    elif kind == 6:
        points = rng.integers(0, 2, size=(size, width)).astype(bool)
    return points


def labels_of(rng, size):
    kind = rng.integers(12)
    labels = rng.normal(size=size)
    if kind == 0:
        labels = rng.choice(EXTREMES, size=size)
    elif kind == 1:
        labels = np.full(size, rng.choice(EXTREMES))
    elif kind == 2:
        labels = rng.integers(0, 3, size).astype(float)
    elif kind == 3:
        labels *= 10.0 ** float(rng.integers(-320, 300))
    elif kind == 4:
        labels[rng.integers(size)] = rng.choice(EXTREMES)
    elif kind == 5:
        labels[rng.integers(size)] = np.nan
    elif kind == 6:
        labels = labels + 10.0 ** float(rng.integers(0, 20))
    return labels


def dressed(rng, values):
    """The same numbers in one of the many ways in which users hold them."""
    wholes = np.clip(np.nan_to_num(values), -1000, 1000).round().astype(int)
    ways = [
        lambda: values,
        lambda: values,
        lambda: values,
        lambda: values.tolist(),
        lambda: values.astype(np.float32) if np.abs(np.nan_to_num(values.astype(float))).max() < 1e38 else values,
        lambda: frame(values),
        lambda: frame(values, [("x", i) for i in range(values.shape[1])]) if values.ndim == 2 else frame(values),
        lambda: frame(wholes).astype("Int64"),
        lambda: frame(values.astype(float)).astype("Float64"),
        lambda: frame(wholes > 0).astype("boolean"),
        lambda: frame(wholes).astype(str),
        lambda: frame(wholes).astype("category"),
        lambda: frame(wholes).astype("datetime64[ns]"),
        lambda: frame(wholes).astype("timedelta64[ns]"),
        lambda: wholes.astype("datetime64[D]"),
        lambda: np.vectorize(Decimal, otypes=[object])(wholes),
        lambda: np.vectorize(lambda number: Fraction(int(number), 3), otypes=[object])(wholes),
        lambda: values + 1j,
        lambda: np.ma.masked_array(values.astype(float), mask=rng.random(values.shape) < 0.2),
        lambda: sparse.csr_matrix(np.atleast_2d(wholes.astype(float))),
        lambda: np.array(1.0),
        lambda: values[..., None],
        lambda: values[:-1],
        lambda: np.where(rng.random(values.shape) < 0.3, "high", wholes.astype(str)),
        lambda: np.where(rng.random(values.shape) < 0.3, None, wholes.astype(object)),
        lambda: np.full(values.shape, datetime.date(2020, 1, 1), dtype=object),
        lambda: None,
    ]
    return ways[int(rng.integers(len(ways)))]()


def frame(values, columns=None):
    if values.ndim == 1:
        return pd.Series(values)
    return pd.DataFrame(values, columns=None if columns is None else pd.MultiIndex.from_tuples(columns))


def errors_of(rng, size):
    odd = [None] * 8 + [
        0.0,
        0.1,
        np.zeros(size),
        np.full(size, 1e300),
        1e90,
        "big",
        -1.0,
        np.ones(size + 1),
        [np.nan] * size,
    ]
    odd += [
        rng.random(size),
        np.where(rng.random(size) < 0.5, 0.0, 1e12),
        1e-200,
        np.ma.masked_array(np.ones(size), True),
    ]
    return odd[int(rng.integers(len(odd)))]


def case(number):
    rng = np.random.default_rng(number)
    size = int(rng.integers(1, 13))
    options = MODELS[int(rng.integers(len(MODELS)))]
    points, labels = features_of(rng, size), labels_of(rng, size)
    if options.get("kernel") == "precomputed":
        points = points.astype(float)
        with np.errstate(all="ignore"):
            points = points @ points.T
    if callable(options.get("kernel")):  # what it makes of odd points is its own affair
        points, labels = rng.normal(size=(size, 2)), dressed(rng, labels)
    elif rng.random() < 0.5:
        points, labels = dressed(rng, points), dressed(rng, labels)
    return options, points, labels, errors_of(rng, size)


def finite(model, labels):
    present = np.flatnonzero(np.isfinite(model.labels_))
    arrays = [getattr(model, name) for name in ("noise_variance_", "loo_mean_", "loo_variance_", "corrected_labels_")]
    arrays += [getattr(model, name)[present] for name in ("z_", "loo_error_", "label_noise_")]
    table = model.audit()
    arrays += [
        table[name].to_numpy() for name in ("expected", "expected_low", "expected_high", "suggested_label", "score")
    ]
    arrays += [table[name].to_numpy() for name in ("noise_std", "p_value", "q_value")]
    arrays += [table.loc[table["label"].notna(), "z"].to_numpy(), model.objective_path_, np.array([model.objective_])]
    return all(np.isfinite(array).all() for array in arrays)


def verdict(number):
    """What is wrong with the outcome of one fit; None if nothing is."""
    options, points, labels, errors = case(number)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for harmless in (MislabelWarning, UserWarning, FutureWarning, DeprecationWarning):
            warnings.simplefilter("ignore", harmless)
        try:
            model = LabelNoiseRegressor(**options).fit(points, labels, y_err=errors)
            return None if finite(model, labels) else "results that are not finite"
        except MislabelError as error:
            return None if len(str(error)) > 20 else f"an error without words: {error!r}"
        except (TypeError, ValueError) as error:
            return None if any(words in str(error) for words in OWN_WORDS) else f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("part", range(PARTS))
def test_nasty_data_give_finite_numbers_or_typed_errors(part):
    found = {number: problem for number in range(part, FITS, PARTS) if (problem := verdict(number)) is not None}
    assert not found


def test_masked_labels_are_missing_ones(rng):
    features = rng.uniform(size=(30, 2))
    labels = features.sum(axis=1)
    masked = np.ma.masked_array(labels, mask=np.arange(30) == 4)
    with pytest.raises(InvalidLabelsError, match=r"1 labels are NaN \(row 4\)"):
        LabelNoiseRegressor().fit(features, masked)
    model = LabelNoiseRegressor(missing="predict").fit(features, masked)
    assert np.isnan(model.z_[4])
    assert abs(model.corrected_labels_[4] - labels[4]) < 0.05


def test_masked_features_are_refused_in_words(rng):
    values = rng.uniform(size=(30, 2))
    features = np.ma.masked_array(values, mask=np.zeros((30, 2), dtype=bool))
    assert LabelNoiseRegressor(tune="none").fit(features, values.sum(axis=1)).converged_
    features.mask[7, 1] = True
    with pytest.raises(InvalidFeaturesError, match=r"1 rows of X have masked values \(row 7\)"):
        LabelNoiseRegressor().fit(features, values.sum(axis=1))


@pytest.mark.parametrize("missing", ["raise", "predict"])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["high"] * 5, "must be numbers"),
        (np.arange(5) + 1j, "Complex data not supported"),
        (np.arange(5).astype("datetime64[D]"), "dates or durations"),
        (pd.Series(pd.to_timedelta(np.arange(5), "D")), "date or a duration"),
        (sparse.csr_matrix(np.ones((1, 5))), "Sparse data"),
        (np.ones((5, 2)), "1d array"),
        (3.0, "1d array"),
        (1e200 * np.arange(5.0), "too large to be squared"),
        (1e-200 * np.arange(5.0), "too small to be squared"),
    ],
)
def test_labels_that_are_none(labels, message, missing):
    with pytest.raises(InvalidLabelsError, match=message):
        LabelNoiseRegressor(missing=missing).fit(np.arange(5.0)[:, None], labels)


def test_numbers_of_pandas_are_numbers(rng):
    features = rng.uniform(size=(20, 2))
    labels = rng.integers(0, 9, 20)
    model = LabelNoiseRegressor(tune="none", base_noise=0.1)
    expected = model.fit(features, labels.astype(float)).z_
    for made in (labels, pd.Series(labels, dtype="Int64"), pd.Series(labels, dtype="Float32")):
        np.testing.assert_array_equal(model.fit(features, made).z_, expected)
    gap = pd.Series(labels, dtype="Int64").mask(np.arange(20) == 3)
    assert np.isnan(model.set_params(missing="predict").fit(features, gap).z_[3])


@pytest.mark.parametrize("dtype", ["bool", "boolean"])
def test_truth_values_are_classes(rng, dtype):
    with pytest.raises(InvalidLabelsError, match="classes"):
        LabelNoiseRegressor().fit(rng.uniform(size=(20, 2)), pd.Series(rng.random(20) < 0.5, dtype=dtype))


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_features_that_cannot_be_squared(rng, scale):
    with pytest.raises(InvalidFeaturesError, match="express them in another unit"):
        LabelNoiseRegressor().fit(scale * rng.uniform(size=(9, 2)), np.arange(9.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random_state": -1}, "random_state must be"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"n_restarts": -1}, "n_restarts must be"),
        ({"n_restarts": 0.5}, "n_restarts must be"),
        ({"tol": "small"}, "tol must be positive"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"base_noise": [1.0]}, "variance >= 0"),
        ({"center": [0.0]}, "'median', 'none' or a number"),
        ({"penalty": "a"}, "finite number >= 0"),
    ],
)
def test_parameters_that_cannot_be(rng, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        LabelNoiseRegressor(**options).fit(rng.uniform(size=(9, 2)), np.arange(9.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "top-k", "cutoff": 10}, "10 suspects, but there are only 9 labels"),
        ({"threshold": "top-k", "cutoff": np.nan}, "whole number"),
        ({"threshold": "top-k", "cutoff": np.inf}, "whole number"),
        ({"threshold": "z", "cutoff": "3"}, "must be a number"),
        ({"fdr": "low"}, "must be a number"),
        ({"confidence": None}, "must be a number"),
    ],
)
def test_cut_offs_that_cannot_be(rng, options, message):
    model = LabelNoiseRegressor(tune="none").fit(rng.uniform(size=(9, 2)), np.arange(9.0))
    with pytest.raises(InvalidParameterError, match=message):
        model.audit(**options)
