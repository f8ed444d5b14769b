"""Tables with more columns than a few."""

import numpy as np
from sklearn.metrics import roc_auc_score

from mislabel import LabelNoiseRegressor


def wide(rng, n_rows, n_columns):
    features = rng.normal(size=(n_rows, n_columns))
    clean = features[:, 0] + np.sin(2 * features[:, 1]) + 0.5 * features[:, 2] * features[:, 3]
    wrong = rng.random(n_rows) < 0.1
    labels = clean + 0.1 * rng.normal(size=n_rows) + wrong * 2.0 * rng.normal(size=n_rows)
    return features, labels, clean, wrong


def test_few_features_among_many_are_found_whatever_their_units(rng):
    features, labels, clean, wrong = wide(rng, 400, 45)
    units = 10.0 ** rng.uniform(-3, 3, size=45)
    model = LabelNoiseRegressor(random_state=0).fit(features * units, labels)
    assert np.ndim(model.kernel_.length_scale) == 1
    assert np.corrcoef(model.loo_mean_, clean)[0, 1] > 0.95
    assert roc_auc_score(wrong, np.abs(model.z_)) > 0.9
    relative = model.kernel_.length_scale / units
    assert np.median(relative[4:]) > 5 * relative[:4].max()


def test_features_that_all_matter_a_little_share_a_length_scale(rng):
    features = rng.normal(size=(150, 60))
    labels = features @ rng.normal(size=60) / np.sqrt(60) + 0.5 * rng.normal(size=150)
    units = 10.0 ** rng.uniform(-3, 3, size=60)
    plain = LabelNoiseRegressor(random_state=0).fit(features, labels)
    scaled = LabelNoiseRegressor(random_state=0).fit(features * units, labels)
    assert np.ndim(plain.kernel_.length_scale) == 0
    np.testing.assert_allclose(scaled.loo_mean_, plain.loo_mean_, atol=1e-3)
