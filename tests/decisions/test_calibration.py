from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm, t

from mislabel.decisions import Evidence, calibrate, calibration, p_values
from mislabel.decisions.thresholds import half_width


def evidence_of(error, variance):
    zeros = np.zeros(error.size)
    rows = np.arange(error.size)
    return Evidence(rows, zeros + error, zeros, variance, error, error / np.sqrt(variance), zeros, zeros, zeros)


@pytest.mark.parametrize("belief", [None, calibration._Belief(calibration.SCEPTICAL, 1.3, 200)])
@pytest.mark.parametrize("start", [(-2.0, 2.0), (-2.0, 2.0, 0.3, -3.0, 1.5), (-2.0, 2.0, 0.3, -3.0, 1.5, -1.0)])
def test_slopes_equal_finite_differences(start, belief, rng, monkeypatch):
    error, variance, squares = 3.0 * rng.standard_t(3, size=200), rng.uniform(0.5, 1.5, 200), rng.uniform(0, 2, 200)
    objectives = []
    search = calibration.minimize
    monkeypatch.setattr(calibration, "minimize", lambda f, *a, **k: objectives.append(f) or search(f, *a, **k))
    calibration._fit(error, variance, squares, start, belief)
    at = np.array(start) + 0.1
    expected = approx_fprime(at, lambda x: objectives[0](x)[0], 1e-6)
    np.testing.assert_allclose(objectives[0](at)[1], expected, rtol=1e-4, atol=1e-6)


def test_honest_models_are_changed_little(rng):
    noticeable, clean_p, ratios = 0, [], []
    for _ in range(20):
        variance = rng.uniform(0.5, 2.0, 400)
        error = np.sqrt(variance) * rng.normal(size=400)
        error[:40] += rng.normal(0, 8, 40)
        found = calibrate(error, variance)
        noticeable += found.noticeable
        evidence = found.apply(evidence_of(error, variance))
        clean_p.append(p_values(evidence)[40:])
        ratios.append(np.median(evidence.variance / variance))
    assert noticeable <= 2
    assert np.median(ratios) == pytest.approx(1.0, abs=0.15)
    for level in (0.01, 0.05, 0.3):
        assert 0.5 * level < np.mean(np.concatenate(clean_p) < level) < 1.15 * level


def test_heavy_tails_are_noticed(rng):
    variance = np.ones(3000)
    error = t.rvs(3, size=3000, random_state=1)
    found = calibrate(error, variance)
    assert found.noticeable
    assert 2.2 < found.degrees < 5
    evidence = found.apply(evidence_of(error, variance))
    # Uniform p-values: as many below a level as the level says.
    for level in (0.02, 0.1, 0.5):
        assert np.mean(p_values(evidence) < level) == pytest.approx(level, abs=0.4 * level)
    assert np.mean(2 * norm.sf(np.abs(error)) < 0.02) > 0.06
    assert np.mean(np.abs(error) < half_width(evidence, 0.9)) == pytest.approx(0.9, abs=0.03)


def test_wrong_labels_do_not_pass_for_tails(rng):
    variance = np.ones(1000)
    error = rng.normal(size=1000)
    error[:200] += rng.normal(0, 15, 200)
    found = calibrate(error, variance)
    assert found.wrong_fraction == pytest.approx(0.2, abs=0.05)
    assert found.wrong_std == pytest.approx(15, rel=0.25)
    evidence = found.apply(evidence_of(error, variance))
    assert np.mean(p_values(evidence)[200:] < 0.05) == pytest.approx(0.05, abs=0.03)


def test_errors_a_thousand_times_too_large_are_not_taken_for_tails():
    # Hardly any errors lie in between: described as heavy tails, labels that are nine standard deviations off passed.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        error = rng.normal(size=600)
        error[:30] = rng.normal(0, 700, 30)
        error[30:33] = [8.0, -9.0, 20.0]
        found = calibrate(error, np.ones(600))
        assert found.degrees > 10
        assert (p_values(found.apply(evidence_of(error, np.ones(600))))[30:33] < 1e-4).all()


def test_noise_in_proportion_to_the_label_is_noticed(rng):
    expected = np.exp(rng.normal(2.0, 1.5, 2000))
    variance = np.full(2000, 0.01)
    error = rng.normal(size=2000) * np.sqrt(0.01 + (0.05 * expected) ** 2)
    error[:100] += rng.normal(0, 30, 100)
    found = calibrate(error, variance, expected)
    assert found.noticeable
    assert np.sqrt(found.relative) == pytest.approx(0.05, rel=0.15)
    assert found.degrees > 8
    assert found.log_density > calibrate(error, variance).log_density + 0.1
    evidence = replace(evidence_of(error, variance), expected=expected)
    p = p_values(found.apply(evidence))[100:]
    for part in (expected[100:] < 3, expected[100:] > 30):
        assert np.mean(p[part] < 0.05) == pytest.approx(0.05, abs=0.025)
    # Where noise does not grow with the label, none is made up.
    none = calibrate(0.1 * rng.normal(size=2000), variance, expected)
    assert np.sqrt(none.relative) < 0.003
    assert not none.noticeable


def test_promises_too_sharp_are_not_believed(rng):
    variance = np.where(np.arange(1000) % 3 == 0, 1e-8, 1.0)
    error = rng.normal(size=1000)
    found = calibrate(error, variance)
    assert found.noticeable
    z = found.apply(evidence_of(error, variance)).z
    assert np.std(z[::3]) < 12
    assert np.max(np.abs(error / np.sqrt(variance))) > 1e3


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(rng, scale):
    error, variance = t.rvs(3, size=800, random_state=2), np.ones(800)
    expected = np.linspace(1.0, 9.0, 800)
    one = calibrate(error, variance, expected)
    other = calibrate(scale * error, scale**2 * variance, scale * expected)
    assert other.degrees == pytest.approx(one.degrees, rel=1e-3)
    assert other.log_density == pytest.approx(one.log_density - np.log(scale), abs=1e-6)


def test_few_missing_or_equal_errors(rng):
    assert not calibrate(rng.normal(size=10), np.ones(10)).adjusted
    assert not calibrate(np.zeros(100), np.ones(100)).adjusted
    error = rng.normal(size=100)
    error[3] = np.nan
    evidence = calibrate(error, np.ones(100)).apply(evidence_of(error, np.ones(100)))
    assert p_values(replace(evidence, degrees=4.0))[3] == 1.0


def test_wrong_labels_must_earn_their_group(rng):
    # Laplace errors have a shoulder that passes for a group of wrong labels; believed in, it is called wrong.
    plain, sceptical = [], []
    for _ in range(10):
        expected = 5.0 * rng.normal(size=400)
        error, variance = rng.laplace(size=400), np.ones(400)
        plain.append(calibrate(error, variance, expected).wrong_fraction)
        sceptical.append(calibrate(error, variance, expected, calibration.SCEPTICAL).wrong_fraction)
    assert np.mean(sceptical) < 0.5 * np.mean(plain)
    assert max(sceptical) < 0.05
    # A group that the errors insist on stays.
    error[:80] += rng.choice([-1.0, 1.0], 80) * rng.uniform(15.0, 40.0, 80)
    found = calibrate(error, variance, expected + 20.0 * rng.normal(size=400), calibration.SCEPTICAL)
    assert found.wrong_fraction == pytest.approx(0.2, abs=0.05)
