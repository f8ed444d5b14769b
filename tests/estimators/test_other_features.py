"""Leave-one-out predictions of labels at features that are not their own, against real refits."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LinearRegression

from mislabel import LabelNoiseRegressor
from mislabel.errors import InvalidParameterError
from mislabel.estimators.other_features import OtherFeatures


@pytest.fixture
def data(rng):
    features = rng.uniform(-2, 2, (60, 3))
    labels = np.sin(features[:, 0]) + 0.5 * features[:, 1] + 0.05 * rng.normal(size=60)
    labels[[4, 20]] += 2.0
    return features, labels


def test_equals_a_fit_without_the_row_at_fixed_hyperparameters(data, rng):
    features, labels = data
    kernel = ConstantKernel(1.5, "fixed") * RBF([1.0, 1.5, 3.0], "fixed")
    model = LabelNoiseRegressor(kernel, noise="none", base_noise=0.02, tune="none", center=0.3)
    rows = np.array([0, 4, 4, 33])
    elsewhere = features[rows] + rng.normal(size=(4, 3))
    expected, variance = OtherFeatures(model.fit(features, labels), np.array([0, 4, 33])).signal(rows, elsewhere)
    for number, row in enumerate(rows):
        others = np.delete(np.arange(60), row)
        refit = LabelNoiseRegressor(kernel, noise="none", base_noise=0.02, tune="none", center=0.3)
        mean, std = refit.fit(features[others], labels[others]).predict(elsewhere[[number]], return_std=True)
        assert expected[number] == pytest.approx(mean[0], rel=1e-8)
        assert variance[number] == pytest.approx(std[0] ** 2 + 0.02, rel=1e-6)


def test_equals_the_evidence_at_the_labels_own_features(data):
    features, labels = data
    labels[7], labels[30] = np.nan, 1e9
    features, labels = np.vstack([features, features[11]]), np.append(labels, labels[11])
    model = LabelNoiseRegressor(missing="predict", label_transform="auto", row_noise="auto").fit(features, labels)
    assert model.n_copies_ == 1
    assert model.set_aside_.tolist() == [30]
    rows = np.array([3, 4, 7, 11, 30, 60])
    found, variance = OtherFeatures(model, rows).signal(rows, features[rows])
    np.testing.assert_allclose(found, model._evidence.expected[rows], rtol=1e-6)
    np.testing.assert_allclose(variance, model._evidence.variance[rows], rtol=1e-6)


def test_a_fit_of_low_rank_predicts_as_for_new_rows(data):
    features, labels = data
    model = LabelNoiseRegressor(rank=20).fit(features, labels)
    rows = np.arange(5)
    found, variance = OtherFeatures(model, rows).signal(rows, features[rows] + 0.1)
    np.testing.assert_allclose(found, model.predict(features[rows] + 0.1), rtol=1e-9)
    assert (variance > 0).all()


def test_refuses_a_mean_model(data):
    model = LabelNoiseRegressor(mean=LinearRegression()).fit(*data)
    with pytest.raises(InvalidParameterError, match="without a mean model"):
        OtherFeatures(model, np.arange(3))
