import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.decisions.atoms import at_atoms, find_atoms


def test_zeros_and_caps_are_atoms(rng):
    labels = np.round(rng.gamma(2.0, 40.0, 500), 1)
    labels[:100] = 0.0
    labels = np.minimum(labels, 150.0)
    found = find_atoms(labels)
    assert found.tolist() == [0.0, 150.0]
    assert at_atoms(labels).sum() == np.count_nonzero((labels == 0.0) | (labels == 150.0))


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


def test_an_atom_is_not_called_wrong_as_a_block(rng):
    features = rng.uniform(size=(300, 2))
    labels = 100.0 * features[:, 0] + 20.0 * features[:, 1] + rng.normal(size=300)
    labels[labels < 40.0] = 0.0
    wrong = np.array([17, 90, 222])
    labels[wrong] = np.abs(labels[wrong]) + 300.0
    model = LabelNoiseRegressor().fit(features, labels)
    table = model.audit(fdr=0.1, by_position=True)
    called = table.loc[table["suspect"], "row"]
    assert not np.any(labels[called] == 0.0)
    assert set(wrong) <= set(called)
    assert (table.loc[labels[table["row"]] == 0.0, "q_value"] == 1.0).all()
