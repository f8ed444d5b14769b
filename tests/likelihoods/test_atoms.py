import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.likelihoods.atoms import Atoms, find_atoms


def test_zeros_and_caps_are_atoms(rng):
    labels = np.round(rng.gamma(2.0, 40.0, 500), 1)
    labels[:100] = 0.0
    labels = np.minimum(labels, 150.0)
    found = find_atoms(labels)
    assert found.tolist() == [0.0, 150.0]
    atoms = Atoms.of(labels)
    assert (atoms.low, atoms.high) == (0.0, 150.0)
    assert atoms.holds(labels).sum() == np.count_nonzero((labels == 0.0) | (labels == 150.0))
    np.testing.assert_array_equal(atoms.side(labels), np.where(labels == 0.0, -1, np.where(labels == 150.0, 1, 0)))


@pytest.mark.parametrize(
    "labels",
    [
        np.repeat([3.0, 4.0, 5.0, 6.0, 7.0], [2, 60, 400, 40, 3]),  # grades
        np.random.default_rng(0).poisson(3.0, 500).astype(float),  # counts
        np.random.default_rng(1).normal(size=500),
        np.full(200, 7.0),
        np.array([np.nan, 1.0, 2.0]),
    ],
    ids=["grades", "counts", "numbers", "constant", "few"],
)
def test_common_values_of_a_coarse_scale_are_none(labels):
    assert find_atoms(labels).size == 0


def test_fill_values_are_none(rng):
    labels = rng.normal(20.0, 3.0, 500)
    labels[:40] = -999.0
    assert find_atoms(labels).size == 0
    labels[:40] = 20.0
    assert find_atoms(labels).tolist() == [20.0]
    assert not Atoms.of(labels).has_bounds


def test_a_few_labels_beyond_may_be_wrong(rng):
    labels = np.round(np.maximum(rng.normal(20.0, 30.0, 500), 0.0), 1)
    labels[:15] -= 50.0
    assert Atoms.of(labels).low == 0.0
    labels[:100] -= 50.0
    assert not Atoms.of(labels).has_bounds


def some_table(rng):
    features = rng.uniform(size=(300, 2))
    labels = 100.0 * features[:, 0] + 20.0 * features[:, 1] + rng.normal(size=300)
    return features, labels


def test_a_bound_is_not_called_wrong_as_a_block(rng):
    features, behind = some_table(rng)
    labels = np.maximum(behind - 40.0, 0.0)
    inside = np.flatnonzero(labels > 10.0)
    wrong = np.concatenate([inside[:3], np.flatnonzero(labels == 0.0)[:1]])
    labels[wrong] = [labels[wrong[0]] + 40.0, 0.0, 0.0, 30.0]
    model = LabelNoiseRegressor().fit(features, labels)
    assert model.bounds_.low == 0.0
    table = model.audit(fdr=0.1, by_position=True)
    called = table.loc[table["suspect"], "row"]
    # Also labels at the bound whose rows say that they should not be there, and one that should be.
    assert set(called) == set(wrong)
    assert (table["expected"] >= 0.0).all()
    assert model.predict(features).min() >= 0.0


def test_zeros_that_go_with_nothing_stand_apart(rng):
    features, labels = some_table(rng)
    labels[rng.random(300) < 0.4] = 0.0
    wrong = np.flatnonzero(labels > 30.0)[:4]
    labels[wrong] += 60.0
    model = LabelNoiseRegressor().fit(features, labels)
    assert model.atoms_.values == (0.0,)
    assert not model.bounds_.has_bounds
    table = model.audit(fdr=0.1, by_position=True)
    called = table.loc[table["suspect"], "row"]
    assert set(called) == set(wrong)
    zeros = table[labels[table["row"]] == 0.0]
    assert (zeros["p_value"] > 0.1).all()
    assert (zeros["z"] == 0.0).all()
