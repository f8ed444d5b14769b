import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.estimators.label_units import half_step_of


@pytest.mark.parametrize("step", [1.0, 0.2, 1 / 3, 50.0])
def test_half_a_step_of_coarse_labels(step, rng):
    labels = step * rng.integers(3, 9, size=300)
    assert half_step_of(labels) == pytest.approx(step / 2)
    # Some labels off the scale do not hide it.
    labels[:60] += rng.normal(size=60)
    assert half_step_of(labels) == pytest.approx(step / 2)


def test_fine_labels_are_not_rounded(rng):
    assert half_step_of(rng.normal(size=300)) == 0.0
    assert half_step_of(rng.normal(0, 100, size=3000).round(1)) == 0.0
    # One value that is very common is no scale.
    assert half_step_of(np.append(np.zeros(200), rng.normal(size=100))) == 0.0
    assert half_step_of(np.ones(50)) == 0.0


@pytest.mark.parametrize(("signal", "noise"), [(0.3, 0.35), (0.2, 0.45)])
def test_the_commonest_grade_is_not_taken_for_the_truth(signal, noise):
    # A weak signal under grades of which most are the same; without knowing of steps every third right label is suspect.
    rng = np.random.default_rng(0)
    features = rng.normal(size=(600, 4))
    grades = np.round(5.0 + signal * features[:, 0] + signal / 2 * features[:, 1] + noise * rng.normal(size=600))
    wrong = [5, 50, 500]
    grades[wrong] = 15.0
    model = LabelNoiseRegressor(random_state=0).fit(features, grades)
    assert set(model.audit(0.05).query("suspect")["row"]) == set(wrong)
    assert np.sqrt(np.median(model.loo_variance_)) == pytest.approx(0.5, abs=0.15)
    # Whoever says how exact labels are is believed.
    exact = LabelNoiseRegressor(random_state=0).fit(features, grades, y_err=0.01)
    assert np.count_nonzero(np.abs(exact.z_) > 5.0) > 100
