"""Predictions of anybody's model, folds, groups, weights and named columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import AdaBoostRegressor, ExtraTreesRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mislabel import LabelNoiseRegressor
from mislabel.errors import InvalidParameterError
from mislabel.estimators.cross_fit import cross_fitted_mean, user_folds
from mislabel.estimators.mean_functions import MEANS, mean_named


@pytest.fixture
def steps(rng):
    features = rng.uniform(size=(300, 3))
    clean = 4.0 * (features[:, 0] > 0.5) + 2.0 * (features[:, 1] > 0.3)
    labels = clean + 0.2 * rng.normal(size=300)
    wrong = rng.random(300) < 0.1
    return features, np.where(wrong, labels + rng.choice([-3.0, 3.0], 300), labels), wrong


def test_predictions_of_any_model_are_judged_by_themselves(steps):
    features, labels, wrong = steps
    given = cross_val_predict(ExtraTreesRegressor(random_state=0), features, labels, cv=5)
    model = LabelNoiseRegressor("constant").fit(features, labels, predictions=given)
    # Nothing but a constant is added to what was predicted.
    shift = model.loo_mean_ - given
    assert np.ptp(shift) < 0.05
    assert roc_auc_score(wrong, np.abs(model.z_)) > 0.97
    assert wrong[model.audit(by_position=True)["row"].to_numpy()[:20]].all()
    np.testing.assert_allclose(model.predict(features[:5], predictions=given[:5]) - given[:5], shift[:5], atol=0.1)
    with pytest.raises(InvalidParameterError, match="pass those of the new rows"):
        model.predict(features[:5])


def test_a_process_corrects_given_predictions(rng):
    features = rng.uniform(-2, 2, size=(150, 1))
    labels = np.sin(2 * features[:, 0]) + 3.0 * (features[:, 0] > 0) + 0.05 * rng.normal(size=150)
    step = 3.0 * (features[:, 0] > 0)
    model = LabelNoiseRegressor().fit(features, labels, predictions=step)
    alone = LabelNoiseRegressor("constant").fit(features, labels, predictions=step)
    assert np.std(model.loo_error_) < 0.15 < 0.5 < np.std(alone.loo_error_)
    new = np.array([[-1.0], [1.0]])
    np.testing.assert_allclose(
        model.predict(new, predictions=[0.0, 3.0]), np.sin(2 * new[:, 0]) + [0.0, 3.0], atol=0.15
    )


def test_known_errors_of_predictions_count(rng):
    size = 200
    std = rng.choice([0.1, 2.0], size)
    given = rng.normal(size=size)
    labels = given + std * rng.normal(size=size)
    model = LabelNoiseRegressor("constant").fit(np.zeros((size, 1)), labels, std, predictions=given)
    ratio = model.loo_variance_[std == 2.0].mean() / model.loo_variance_[std == 0.1].mean()
    assert ratio > 50.0


def test_missing_labels_are_predicted_from_predictions(steps):
    features, labels, _ = steps
    labels = labels.copy()
    labels[[3, 7]] = np.nan
    given = np.arange(300.0)
    model = LabelNoiseRegressor("constant", missing="predict").fit(features, labels, predictions=given)
    assert model.loo_mean_[7] - model.loo_mean_[3] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [([1.0, 2.0], "shape"), (np.full(300, np.nan), "300 predictions are NaN"), (["a"] * 300, "must be numbers")],
)
def test_bad_predictions_are_refused(steps, given, message):
    features, labels, _ = steps
    with pytest.raises(InvalidParameterError, match=message):
        LabelNoiseRegressor().fit(features, labels, predictions=given)


def test_predictions_and_a_mean_exclude_each_other(steps):
    features, labels, _ = steps
    with pytest.raises(InvalidParameterError, match="take the place of a mean"):
        LabelNoiseRegressor(mean="trees").fit(features, labels, predictions=labels)
    assert LabelNoiseRegressor("constant", mean="auto").fit(features, labels, predictions=labels).mean_choice_ is None


def test_the_users_folds_are_those_of_the_users_rows(rng):
    features = rng.uniform(size=(300, 2))
    labels = features.sum(axis=1) + 0.5 * rng.normal(size=300)
    splitter = PredefinedSplit(np.repeat([0, 1, 2], 100))
    expected = cross_val_predict(KNeighborsRegressor(3), features, labels, cv=splitter)
    model = LabelNoiseRegressor("constant", mean=KNeighborsRegressor(3), cv=splitter).fit(features, labels)
    shift = model.loo_mean_ - expected
    assert np.ptp(shift) < 0.05
    again = LabelNoiseRegressor("constant", mean=KNeighborsRegressor(3), cv=list(splitter.split())).fit(
        features, labels
    )
    np.testing.assert_array_equal(again.loo_mean_, model.loo_mean_)


def test_folds_that_do_not_predict_every_label_are_refused(steps):
    features, labels, _ = steps
    with pytest.raises(InvalidParameterError, match="predicts 50 rows never"):
        LabelNoiseRegressor(mean="linear", cv=TimeSeriesSplit()).fit(features, labels)
    with pytest.raises(InvalidParameterError, match="gives no folds"):
        LabelNoiseRegressor(mean="linear", cv="five").fit(features, labels)


def test_folds_of_rows_without_labels(rng):
    labels = rng.normal(size=10)
    present = np.array([9, 0, 1, 2, 5, 6, 7])
    folds = user_folds(KFold(5), labels, None, present)
    assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(7))
    for (train, test), (rows, held) in zip(folds, KFold(5).split(labels), strict=True):
        assert set(present[test]) == set(held) & set(present)
        assert set(present[train]) == set(rows) & set(present)


def test_a_group_is_judged_by_models_that_have_not_seen_it(rng):
    groups = np.repeat(np.arange(20), 10)
    level = rng.normal(size=20)[groups]
    features = np.column_stack([groups, rng.normal(size=200)])
    labels = level + 0.01 * rng.normal(size=200)
    model = KNeighborsRegressor(3)
    seen, _ = cross_fitted_mean(model, features, labels, np.random.RandomState(0), None, False)
    unseen, _ = cross_fitted_mean(model, features, labels, np.random.RandomState(0), None, False, groups=groups)
    assert np.std(labels - unseen) > 3.0 * np.std(labels - seen)
    own = LabelNoiseRegressor("constant", mean=model, cv=GroupKFold(5)).fit(features, labels, groups=groups)
    assert np.std(own.loo_error_) > 3.0 * np.std(labels - seen)
    with pytest.raises(InvalidParameterError, match="at least two groups"):
        cross_fitted_mean(model, features, labels, np.random.RandomState(0), None, groups=np.zeros(200))


def test_weights_reach_the_mean_model(rng):
    features = rng.normal(size=(100, 1))
    labels = features[:, 0] + 10.0 * (np.arange(100) < 50)
    weights = np.where(np.arange(100) < 50, 0.0, 1.0)
    for mean in (LinearRegression(), make_pipeline(LinearRegression())):
        fitted = LabelNoiseRegressor("constant", mean=mean).fit(features, labels, mean_weights=weights)
        np.testing.assert_allclose(fitted.mean_model_.predict([[0.0], [1.0]]), [0.0, 1.0], atol=1e-8)
    with pytest.raises(InvalidParameterError, match="KNeighborsRegressor takes none"):
        LabelNoiseRegressor(mean=KNeighborsRegressor()).fit(features, labels, mean_weights=weights)


@pytest.mark.parametrize(
    "mean",
    [
        TransformedTargetRegressor(make_pipeline(StandardScaler(), LinearRegression())),
        VotingRegressor([("line", make_pipeline(StandardScaler(), LinearRegression())), ("again", LinearRegression())]),
        GridSearchCV(LinearRegression(), {"fit_intercept": [True]}),
        AdaBoostRegressor(LinearRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_weights_reach_the_models_inside_a_model(rng, mean):
    features = rng.normal(size=(100, 1))
    light = np.arange(100) % 2 == 0
    labels, weights = features[:, 0] + 10.0 * light, np.where(light, 0.0, 1.0)
    expected, fitted = cross_fitted_mean(
        mean, features, labels, np.random.RandomState(0), None, weights=weights, folds=list(KFold(4).split(features))
    )
    np.testing.assert_allclose(expected, features[:, 0], atol=1e-8)
    np.testing.assert_allclose(fitted.predict([[0.0], [1.0]]), [0.0, 1.0], atol=1e-8)


@pytest.mark.parametrize("name", MEANS)
def test_weights_reach_every_mean_model_that_has_a_name(rng, name):
    features = rng.uniform(size=(80, 1))
    light = np.arange(80) % 2 == 0
    labels, weights = 10.0 * light, np.where(light, 0.0, 1.0)
    expected, fitted = cross_fitted_mean(
        mean_named(name), features, labels, np.random.RandomState(0), None, repeats=1, weights=weights
    )
    np.testing.assert_allclose(expected, 0.0, atol=1e-8)
    np.testing.assert_allclose(fitted.predict(features[:3]), 0.0, atol=1e-8)


def test_models_that_would_lose_weights_are_refused(rng):
    features, labels = rng.normal(size=(30, 1)), rng.normal(size=30)
    mean = VotingRegressor([("line", LinearRegression()), ("near", KNeighborsRegressor())])
    with pytest.raises(InvalidParameterError, match="KNeighborsRegressor takes none"):
        cross_fitted_mean(mean, features, labels, np.random.RandomState(0), None, weights=np.ones(30))


def test_a_pipeline_gets_the_columns_it_names(rng):
    city = rng.choice(["a", "b", "c"], 120)
    size = rng.normal(size=120)
    frame = pd.DataFrame({"city": city, "size": size})
    labels = np.select([city == "a", city == "b"], [1.0, 5.0], 9.0) + size
    columns = ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder="passthrough")
    model = LabelNoiseRegressor("constant", mean=make_pipeline(columns, LinearRegression()))
    model.fit(size[:, None], labels, mean_features=frame)
    assert np.abs(model.loo_error_).max() < 1e-6
    new = pd.DataFrame({"city": ["b"], "size": [2.0]})
    assert model.predict([[2.0]], mean_features=new) == pytest.approx(7.0)
