import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.estimators.copies import Copies


def everything(size):
    return np.arange(size)


def test_copies_are_found_with_their_first(rng):
    points = rng.normal(size=(200, 3))
    labels = rng.normal(size=200)
    points[50], labels[50] = points[7], labels[7]
    points[90], labels[90] = points[7], labels[7]
    points[120] = points[7]  # the same features, another label: a repeated measurement
    points[8, 1], points[150] = 0.0, points[8]
    points[150, 1], labels[150] = -0.0, labels[8]
    copies = Copies.among(points, (labels, np.zeros(200)), everything(200))
    order = np.argsort(copies.positions)
    np.testing.assert_array_equal(copies.positions[order], [50, 90, 150])
    np.testing.assert_array_equal(copies.originals[order], [7, 7, 8])
    np.testing.assert_array_equal(copies.without(everything(200)), np.delete(everything(200), [50, 90, 150]))
    # Another known error, or a label that is not looked at, is another record.
    errors = np.zeros(200)
    errors[50] = 0.1
    assert 50 not in Copies.among(points, (labels, errors), everything(200)).positions
    assert 50 not in Copies.among(points, (labels, np.zeros(200)), np.delete(everything(200), 50)).positions


def test_equal_rows_with_coarse_labels_are_no_copies(rng):
    machine = rng.integers(0, 5, size=(300, 1)).astype(float)
    rating = machine[:, 0] + rng.integers(0, 4, size=300)
    assert Copies.among(machine, (rating,), everything(300)).positions.size == 0


def test_records_with_coarse_labels_are_copies_if_that_is_no_accident(rng):
    points, labels = rng.normal(size=(400, 3)).round(2), rng.integers(3, 9, size=400).astype(float)
    copied, here = np.arange(60), np.arange(400, 460)
    points = np.vstack([points, points[copied]])

    def found(again, rows=points):
        return np.sort(Copies.among(rows, (np.append(labels, again),), everything(460)).positions)

    np.testing.assert_array_equal(found(labels[copied]), here)
    # A fifth of the copies was changed afterwards: the others still are copies.
    changed = labels[copied].copy()
    changed[:12] += 10.0
    np.testing.assert_array_equal(found(changed), here[12:])
    # Measured again, and equal only by accident.
    assert found(rng.integers(3, 9, size=60).astype(float)).size == 0
    # Features of which so many rows are bound to have the same.
    assert found(labels[copied], np.round(points)).size == 0
    # Few settings, each measured many times.
    assert Copies.among(points[np.arange(460) % 20], (np.zeros(460),), everything(460)).positions.size == 0


def test_what_is_no_table_has_no_copies():
    assert Copies.among(["a", "a"], (np.ones(2),), everything(2)).positions.size == 0


def test_copied_rows_get_the_verdict_of_the_one_record(friedman):
    features, labels, _, _ = friedman(150, 0.1, 1.0, seed=3)
    once = LabelNoiseRegressor(random_state=0).fit(features, labels)
    again = LabelNoiseRegressor(random_state=0).fit(np.vstack([features, features]), np.tile(labels, 2))
    for name in ("z_", "loo_mean_", "loo_variance_", "noise_variance_", "corrected_labels_"):
        np.testing.assert_allclose(getattr(again, name), np.tile(getattr(once, name), 2), atol=1e-8, err_msg=name)
    np.testing.assert_allclose(again.predict(features), once.predict(features))


def test_a_copied_error_is_found_and_noise_is_not_denied(friedman):
    features, labels, _, clean = friedman(300, 0.0, 0.0, seed=1)
    labels = clean + 0.5 * np.random.default_rng(0).normal(size=300)
    labels[10] += 15.0
    labels[20] = np.nan
    some = np.r_[10, 100:130]
    model = LabelNoiseRegressor(missing="predict").fit(
        np.vstack([features, features[some]]), np.append(labels, labels[some])
    )
    assert model.n_copies_ == 31
    # Copies agree perfectly; the noise is that of the others.
    assert model.base_noise_variance_ == pytest.approx(0.25, rel=0.4)
    table = model.audit()
    assert set(table["row"][:2]) == {10, 300}
    assert table["suspect"][:2].all()
    assert np.isnan(model.z_[20])
    assert np.isfinite(model.z_[300:]).all()
