import numpy as np
import pytest

from mislabel.noise.drift import Drift, errors_of_series, likeliest_drift


def autoregression(rng, size, persistence):
    values = rng.standard_normal(size)
    for k in range(1, size):
        values[k] = persistence * values[k - 1] + np.sqrt(1.0 - persistence**2) * values[k]
    return values


@pytest.mark.parametrize("drift", [Drift(0.9, 2.0, 0.5), Drift(0.2, 0.01, 3.0), Drift(0.999, 4.0, 1e-3)])
def test_equals_the_dense_gaussian(drift, rng):
    residual = rng.normal(size=60)
    steps = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    shared = drift.variance * drift.persistence**steps
    total = shared + drift.noise * np.eye(60)
    smoothed, objective = drift.smoothed(residual)
    np.testing.assert_allclose(smoothed, shared @ np.linalg.solve(total, residual), rtol=1e-7, atol=1e-9)
    expected = np.linalg.slogdet(total)[1] + residual @ np.linalg.solve(total, residual)
    assert objective == pytest.approx(expected, rel=1e-8)


def test_the_likeliest_drift_is_recovered(rng):
    residual = 0.8 * autoregression(rng, 6000, 0.97) + 0.6 * rng.normal(size=6000)
    found = likeliest_drift(residual)
    assert found.persistence == pytest.approx(0.97, abs=0.01)
    assert found.noise == pytest.approx(0.36, rel=0.1)
    assert found.variance == pytest.approx(0.64, rel=0.35)
    objective = found.smoothed(residual)[1]
    for other in (Drift(0.95, found.variance, found.noise), Drift(found.persistence, found.variance, 0.5)):
        assert other.smoothed(residual)[1] > objective


def test_shared_errors_and_single_ones_are_the_labels(rng):
    drift = 2.0 * autoregression(rng, 3000, 0.99)
    typos = np.where(rng.random(3000) < 0.02, 15.0, 0.0)
    clean = rng.normal(size=3000)
    found = errors_of_series(drift + typos + clean + 7.0) - 7.0
    single = typos > 0
    assert np.mean((found - drift)[~single] ** 2) < 0.4  # the residuals themselves: 1
    assert np.mean(np.abs((found - drift - typos)[single])) < 2.0


def test_units_do_not_matter(rng):
    residual = autoregression(rng, 500, 0.9) + 0.3 * rng.normal(size=500)
    np.testing.assert_allclose(errors_of_series(1e6 * residual), 1e6 * errors_of_series(residual), rtol=1e-9)


def test_residuals_that_are_mostly_zero_stand_as_they_are():
    residual = np.zeros(300)
    residual[5] = 1.0
    np.testing.assert_array_equal(errors_of_series(residual), residual)
