"""The same data in another order or in other units, or with columns that say nothing, get the same verdicts.

A hundred small tables, each under one transformation.
"""

import numpy as np
import pytest
from scipy.stats import spearmanr

from mislabel import LabelNoiseRegressor

TABLES_EACH = 10


def table(seed):
    rng = np.random.default_rng(seed)
    size, width = int(rng.integers(40, 121)), int(rng.integers(1, 6))
    features = rng.uniform(-1, 1, size=(size, width))
    labels = (
        np.sin(2 * features @ rng.normal(size=width)) + features[:, 0] ** 2 + (features[:, -1] > 0) * (seed % 3 == 0)
    )
    labels += 0.1 * labels.std() * rng.normal(size=size)
    wrong = rng.permutation(size)[: max(2, int(size * rng.choice([0.05, 0.1, 0.2])))]
    labels[wrong] += rng.choice([-1, 1], wrong.size) * labels.std() * rng.uniform(2, 5, wrong.size)
    return features * 10.0 ** rng.integers(-2, 3, size=width), labels, rng


def rows_permuted(features, labels, rng):
    order = rng.permutation(len(labels))
    return features[order], labels[order], np.argsort(order)


def columns_permuted(features, labels, rng):
    return features[:, rng.permutation(features.shape[1])], labels, slice(None)


def small_labels(features, labels, rng):
    return features, 1e-6 * labels, slice(None)


def large_labels(features, labels, rng):
    return features, 1e6 * labels, slice(None)


def labels_shifted(features, labels, rng):
    return features, labels + 1000 * labels.std(), slice(None)


def features_scaled(features, labels, rng):
    return features * 10.0 ** rng.uniform(-3, 3, features.shape[1]), labels, slice(None)


def features_shifted(features, labels, rng):
    return features + 1e6, labels, slice(None)


def single_precision(features, labels, rng):
    return features.astype(np.float32), labels.astype(np.float32), slice(None)


def constant_column(features, labels, rng):
    return np.insert(features, 0, 0.1, axis=1), labels, slice(None)


def repeated_column(features, labels, rng):
    return np.column_stack([features, features[:, 0]]), labels, slice(None)


TRANSFORMATIONS = [
    rows_permuted,
    columns_permuted,
    small_labels,
    large_labels,
    labels_shifted,
    features_scaled,
    features_shifted,
    single_precision,
    constant_column,
    repeated_column,
]


@pytest.mark.filterwarnings("ignore::mislabel.errors.MislabelWarning")
@pytest.mark.parametrize("number", range(len(TRANSFORMATIONS)), ids=lambda number: TRANSFORMATIONS[number].__name__)
def test_verdicts_stay_the_same(number):
    for seed in range(TABLES_EACH * number, TABLES_EACH * (number + 1)):
        features, labels, rng = table(seed)
        expected = LabelNoiseRegressor().fit(features, labels).audit().sort_values("row")
        changed, relabelled, back = TRANSFORMATIONS[number](features, labels, rng)
        found = LabelNoiseRegressor().fit(changed, relabelled).audit().sort_values("row")
        np.testing.assert_array_equal(found["suspect"].to_numpy()[back], expected["suspect"], err_msg=f"table {seed}")
        assert spearmanr(found["score"].to_numpy()[back], expected["score"])[0] >= 0.999


def test_rows_in_another_order_give_the_same_numbers():
    features, labels, rng = table(3)
    first = LabelNoiseRegressor(mean="boosting").fit(features, labels)
    changed, relabelled, back = rows_permuted(features, labels, rng)
    second = LabelNoiseRegressor(mean="boosting").fit(changed, relabelled)
    np.testing.assert_array_equal(second.z_[back], first.z_)
    np.testing.assert_array_equal(second.predict(features), first.predict(features))


def test_columns_that_say_nothing_change_no_digit():
    features, labels, rng = table(8)
    first = LabelNoiseRegressor().fit(features, labels)
    for change in (constant_column, repeated_column):
        changed, _, _ = change(features, labels, rng)
        second = LabelNoiseRegressor().fit(changed, labels)
        np.testing.assert_array_equal(second.z_, first.z_)
        np.testing.assert_array_equal(second.predict(changed), first.predict(features))
        assert second.n_features_in_ == features.shape[1] + 1
