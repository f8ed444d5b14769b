from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm, t

from mislabel.decisions import Evidence, calibrate, calibration, p_values
from mislabel.decisions.heavy_tails import _HeavyTails, two_sided
from mislabel.decisions.thresholds import half_width, q_values
from mislabel.likelihoods.error_densities import WRONG_DEGREES, Errors, intervals_of
from mislabel.likelihoods.transforms import Logarithm


def evidence_of(error, variance, expected=0.0):
    zeros = np.zeros(error.size)
    label = expected + error
    return Evidence(
        np.arange(error.size), label, zeros + expected, variance, error, error / np.sqrt(variance), zeros, zeros, label
    )


def calibrated(error, variance, expected=0.0, priors=None, **options):
    return calibrate(evidence_of(error, variance, expected).errors, priors, **options)


def some_errors(rng, kind):
    """Errors of 200 labels: of one scale, on a logarithmic one, rounded there, with levels and atoms."""
    size = 200
    if kind == "plain":
        expected = rng.normal(size=size)
        return Errors.of(expected + 3.0 * rng.standard_t(3, size=size), expected, rng.uniform(0.5, 1.5, size))
    scale = Logarithm(1.0)
    labels = np.exp(rng.normal(2.0, 0.5, size))
    labels = np.round(labels) if kind == "rounded" else labels
    side = np.where(rng.random(size) < 0.1, 1, 0).astype(np.int8)
    intervals = intervals_of(labels, 0.5, side) if kind == "rounded" else None
    values = scale.forward(labels)
    found = Errors.of(values, values - 0.3 * rng.standard_t(3, size), rng.uniform(0.001, 0.1, size), scale, intervals)
    return replace(found, level=rng.normal(size=size), log_beside=np.log(rng.uniform(0.1, 1.0, size)))


@pytest.mark.parametrize("kind", ["plain", "log", "rounded"])
@pytest.mark.parametrize("priors", [None, calibration.SCEPTICAL])
@pytest.mark.parametrize("size", [3, 8, 9])
def test_slopes_equal_finite_differences(kind, priors, size, rng):
    fit = calibration._Fit(some_errors(rng, kind), 0.3, priors, others_right=70)
    at = np.array([-2.0, 0.3, 0.7, 0.2, -3.0, 1.2, 0.4, -2.0, -1.0][:size])
    np.testing.assert_allclose(fit(at)[1], approx_fprime(at, lambda x: fit(x)[0], 1e-6), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("size", [3, 8, 9])
def test_slopes_with_verdicts_equal_finite_differences(size, rng):
    verdicts = rng.choice([0.0, 1.0, np.nan], 200)
    fit = calibration._Fit(some_errors(rng, "log"), 0.3, calibration.SCEPTICAL, 70, verdicts)
    at = np.array([-2.0, 0.3, 0.7, 0.2, -3.0, 1.2, 0.4, -2.0, -1.0][:size])
    np.testing.assert_allclose(fit(at)[1], approx_fprime(at, lambda x: fit(x)[0], 1e-6), rtol=1e-4, atol=2e-6)


def test_a_label_that_is_known_counts_with_the_density_of_its_own_group(rng):
    errors, at = some_errors(rng, "plain"), np.array([-1.0, 0.3, 0.7])

    def log_density(verdict):
        return -errors.size * calibration._Fit(errors, 1.0, None, 0, verdict)(at)[0]

    nothing, share = np.full(errors.size, np.nan), 1.0 / (1.0 + np.exp(1.0))
    changed = np.zeros(2)
    for verdict in (0.0, 1.0):
        told = nothing.copy()
        told[17] = verdict
        changed[int(verdict)] = np.exp(log_density(told) - log_density(nothing))
    # Either it is right or it is wrong: shares of the one density of both.
    assert changed.sum() == pytest.approx(1.0)
    error, variance = errors.error[17], np.maximum(errors.variance, 0.01)[17]
    degrees = 2.0 + np.exp(calibration._AS_PROMISED[2])
    wide = np.sqrt(variance + np.exp(0.3) * calibration._Fit(errors, 1.0, None).outer_spread ** 2)
    right = (1.0 - share) * t(degrees).pdf(error / np.sqrt(variance)) / np.sqrt(variance)
    above = 1.0 / (1.0 + np.exp(-0.7))
    side = 2.0 * above if error > 0.0 else 2.0 - 2.0 * above
    wrong = share * side * t(WRONG_DEGREES).pdf(error / wide) / wide
    assert changed[1] == pytest.approx(wrong / (right + wrong))


def test_verdicts_that_find_wrong_labels_settle_what_heavy_tails_contest(rng):
    error, variance = 1.5 * rng.standard_t(2.2, size=400), np.ones(400)
    before = calibrated(error, variance, priors=calibration.SCEPTICAL, rival=True)
    told = np.where(np.abs(error) > np.sort(np.abs(error))[-9], 1.0, np.nan)
    after = calibrated(error, variance, priors=calibration.SCEPTICAL, rival=True, verdicts=told)
    assert np.isfinite(before.gain)
    assert after.gain == np.inf
    denied = calibrated(error, variance, priors=calibration.SCEPTICAL, rival=True, verdicts=1.0 - told)
    assert np.isfinite(denied.gain)
    assert denied.gain < before.gain + 1e-6


@pytest.mark.parametrize("kind", ["plain", "log", "rounded"])
def test_slopes_of_the_rival_equal_finite_differences(kind, rng):
    errors = some_errors(rng, kind)
    value = _HeavyTails(errors, errors.variance, 0.3, errors.expected**2)
    at = np.array([0.2, -3.0, -1.0, 0.5, 1.2, 0.2, 0.4, -1.5])
    np.testing.assert_allclose(value(at)[1], approx_fprime(at, lambda x: value(x)[0], 1e-6), rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("skew", [-0.4, 0.0, 0.7])
def test_the_rival_is_a_density_of_exact_and_of_rounded_errors(skew):
    steps = np.linspace(-400.0, 400.0, 800_001)
    variance = np.full(steps.size, 1.3**2)
    exact = Errors.of(steps, np.zeros(steps.size), np.ones(steps.size))
    density = np.exp(two_sided(exact, variance, (3.0, 5.0), skew).value)
    assert np.sum(density) * 0.001 == pytest.approx(1.0, abs=1e-3)
    # No step at zero, where the two sides meet.
    assert density[399_999] == pytest.approx(density[400_001], rel=1e-3)
    ends = np.arange(-400.0, 400.0)
    steps_of_one = intervals_of(ends, 0.5, np.zeros(800, np.int8))
    whole = replace(Errors.of(ends, np.zeros(800), np.ones(800)), within=steps_of_one, outer_within=steps_of_one)
    rounded = np.exp(two_sided(whole, np.full(800, 1.3**2), (3.0, 5.0), skew).value)
    assert rounded.sum() == pytest.approx(1.0, abs=1e-3)
    assert rounded[403] == pytest.approx(np.mean(density[402_500:403_501]), rel=1e-3)


def test_honest_models_are_changed_little(rng):
    noticeable, clean_p, ratios = 0, [], []
    for _ in range(20):
        variance = rng.uniform(0.5, 2.0, 400)
        error = np.sqrt(variance) * rng.normal(size=400)
        error[:40] += rng.normal(0, 8, 40)
        found = calibrated(error, variance)
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
    found = calibrated(error, variance, priors=calibration.SCEPTICAL)
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
    found = calibrated(error, variance)
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
        found = calibrated(error, np.ones(600))
        assert found.degrees > 10
        assert (p_values(found.apply(evidence_of(error, np.ones(600))))[30:33] < 1e-4).all()


def test_noise_in_proportion_to_the_label_is_noticed(rng):
    expected = np.exp(rng.normal(2.0, 1.5, 2000))
    variance = np.full(2000, 0.01)
    error = rng.normal(size=2000) * np.sqrt(0.01 + (0.05 * expected) ** 2)
    error[:100] += rng.normal(0, 30, 100)
    found = calibrated(error, variance, expected)
    assert found.noticeable
    assert np.sqrt(found.relative) == pytest.approx(0.05, rel=0.15)
    assert found.degrees > 8
    assert found.log_density > calibrated(error, variance).log_density + 0.1
    p = p_values(found.apply(evidence_of(error, variance, expected)))[100:]
    for part in (expected[100:] < 3, expected[100:] > 30):
        assert np.mean(p[part] < 0.05) == pytest.approx(0.05, abs=0.025)
    # Where noise does not grow with the label, none is made up.
    none = calibrated(0.1 * rng.normal(size=2000), variance, expected)
    assert np.sqrt(none.relative) < 0.003
    assert not none.noticeable


def test_noise_that_goes_with_a_level_is_noticed(rng):
    level = rng.normal(0.0, 0.8, 1000)
    errors = evidence_of(np.exp(level) * rng.normal(size=1000), np.ones(1000)).errors
    found = calibrate(replace(errors, level=level))
    assert found.strength == pytest.approx(1.0, abs=0.1)
    assert calibrate(replace(errors, level=rng.permutation(level))).strength < 0.1


def test_promises_too_sharp_are_not_believed(rng):
    variance = np.where(np.arange(1000) % 3 == 0, 1e-8, 1.0)
    error = rng.normal(size=1000)
    found = calibrated(error, variance)
    assert found.noticeable
    z = found.apply(evidence_of(error, variance)).z
    assert np.std(z[::3]) < 12
    assert np.max(np.abs(error / np.sqrt(variance))) > 1e3


def test_a_sharp_promise_that_fails_now_and_then_makes_no_label_wrong(rng):
    variance = np.where(np.arange(900) % 3 == 0, 0.01, 1.0)
    fails = (np.arange(900) % 3 == 0) & (rng.random(900) < 0.15)
    error = rng.normal(size=900) * np.where(fails, 1.0, np.sqrt(variance))
    labels = 5.0 * rng.normal(size=900)
    found = calibrated(error, variance, labels, calibration.SCEPTICAL, rival=True)
    assert found.failing > 0.05
    evidence = found.apply(evidence_of(error, variance, labels))
    assert np.count_nonzero(evidence.log_odds > np.log(19.0)) <= 2
    assert np.count_nonzero(np.abs(evidence.z) > 4.0) > 15


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(rng, scale):
    error, variance = t.rvs(3, size=800, random_state=2), np.ones(800)
    expected = np.linspace(1.0, 9.0, 800)
    one = calibrated(error, variance, expected, rival=True)
    other = calibrated(scale * error, scale**2 * variance, scale * expected, rival=True)
    assert other.degrees == pytest.approx(one.degrees, rel=1e-3)
    assert other.log_density == pytest.approx(one.log_density - np.log(scale), abs=1e-6)
    assert other.gain == pytest.approx(one.gain, rel=1e-4, abs=1e-3)


def test_few_missing_or_equal_errors(rng):
    assert not calibrated(rng.normal(size=10), np.ones(10)).adjusted
    assert not calibrated(np.zeros(100), np.ones(100)).adjusted
    error = rng.normal(size=100)
    error[3] = np.nan
    evidence = calibrated(error, np.ones(100)).apply(evidence_of(error, np.ones(100)))
    assert p_values(replace(evidence, degrees=4.0))[3] == 1.0


def test_wrong_labels_must_earn_their_group(rng):
    # Laplace errors have a shoulder that passes for a group of wrong labels; believed in, it is called wrong.
    plain, sceptical, called = [], [], 0
    for _ in range(10):
        expected = 5.0 * rng.normal(size=400)
        error, variance = rng.laplace(size=400), np.ones(400)
        plain.append(calibrated(error, variance, expected).wrong_fraction)
        found = calibrated(error, variance, expected, calibration.SCEPTICAL, rival=True)
        sceptical.append(found.wrong_fraction)
        called += bool(np.any(found.apply(evidence_of(error, variance, expected)).log_odds > np.log(19.0)))
    assert np.mean(sceptical) < 0.5 * np.mean(plain)
    assert called <= 1
    # A group that the errors insist on stays.
    error[:80] += rng.choice([-1.0, 1.0], 80) * rng.uniform(15.0, 40.0, 80)
    found = calibrated(error, variance, expected + 20.0 * rng.normal(size=400), calibration.SCEPTICAL)
    assert found.wrong_fraction == pytest.approx(0.2, abs=0.05)


def second_incomes(rng):
    """Errors of right labels of which every third has something added that no column mentions."""
    more = np.where(rng.random(600) < 0.35, rng.exponential(8.0, 600), 0.0)
    return rng.normal(size=600) + more


def test_what_heavy_tails_explain_as_well_is_no_group_of_wrong_labels(rng):
    expected = 10.0 * rng.normal(size=600)
    contested = calibrated(second_incomes(rng), np.ones(600), expected, calibration.SCEPTICAL, rival=True)
    assert contested.wrong_fraction > 0.1
    assert contested.gain < 0.0
    assert contested.contested
    evidence = contested.apply(evidence_of(second_incomes(rng), np.ones(600), expected))
    assert evidence.log_odds.max() < 0.0
    # Errors of a tenth of the labels, as far off as labels differ, are no tail.
    error = rng.normal(size=600) + np.where(rng.random(600) < 0.1, rng.normal(0.0, 10.0, 600), 0.0)
    found = calibrated(error, np.ones(600), expected, calibration.SCEPTICAL, rival=True)
    assert found.gain > 10.0
    assert not found.contested


def one_sided(rng, share):
    """Errors of 400 labels, some of them too large by about 15 standard deviations of a heavy-tailed right one."""
    error = rng.standard_t(5, 400)
    count = round(share * 400)
    error[:count] = 15.0 + 2.0 * rng.normal(size=count)
    return error


def test_wrong_labels_on_one_side_are_no_heavy_tail(rng):
    error = one_sided(rng, 0.05)
    found = calibrated(error, np.ones(400), priors=calibration.SCEPTICAL, rival=True)
    assert found.wrong_above > 0.8
    assert found.gain > 10.0
    evidence = found.apply(evidence_of(error, np.ones(400)))
    assert (q_values(evidence)[:20] < 0.05).all()


def test_no_large_part_of_the_labels_is_wrong_to_one_side(rng):
    found = calibrated(one_sided(rng, 0.35), np.ones(400), priors=calibration.SCEPTICAL, rival=True)
    assert found.wrong_above == 0.5


def test_a_large_part_of_the_labels_is_wrong_only_if_that_is_clear(rng):
    def found(spread):
        error = rng.standard_t(8, 600)
        error[:200] *= spread
        return calibrated(error, np.ones(600), priors=calibration.SCEPTICAL, rival=True)

    unclear, clear = found(3.5), found(100.0)
    assert unclear.wrong_fraction > calibration.LARGE_PART
    assert unclear.contested
    assert clear.gain > 20.0


def test_odds_are_those_of_the_two_groups(rng):
    error, expected, variance = rng.standard_t(4, size=300), 5.0 * rng.normal(size=300), rng.uniform(0.5, 2.0, 300)
    error[:30] += rng.normal(0.0, 6.0, 30)
    found = replace(calibrated(error, variance, expected, calibration.SCEPTICAL), failing=0.0, gain=2.0)
    spread = found.spread(variance, expected)
    right = t(found.degrees).pdf(error / np.sqrt(spread)) / np.sqrt(spread) * (1.0 - found.wrong_fraction)
    wide = np.sqrt(spread + found.wrong_std**2)
    side = np.where(error > 0.0, 2.0 * found.wrong_above, 2.0 - 2.0 * found.wrong_above)
    wrong = side * t(WRONG_DEGREES).pdf(error / wide) / wide * found.wrong_fraction
    probable = wrong / (right + wrong) / (1.0 + np.exp(-2.0 - calibration.PRIOR_ODDS))
    near = np.abs(error) < 3.0 * np.sqrt(spread)
    odds = found.apply(evidence_of(error, variance, expected)).log_odds
    np.testing.assert_allclose(odds[near], np.log(probable / (1.0 - probable))[near], rtol=1e-9)
    assert (odds >= np.log(probable / (1.0 - probable)) - 1e-9).all()


def test_a_wrong_label_costs_the_same_on_every_scale(rng):
    labels = np.exp(rng.normal(3.0, 1.0, 500))
    right = labels * np.exp(0.1 * rng.normal(size=500))
    given = np.where(np.arange(500) < 50, right + rng.normal(0.0, 30.0, 500), right)
    scale = Logarithm(0.5)
    forward = scale.forward
    proportional = calibrate(Errors.of(forward(given), forward(labels), np.full(500, 0.01), scale))
    even = calibrate(Errors.of(given, labels, np.full(500, 4.0)))
    assert proportional.log_density > even.log_density + 0.1
    assert proportional.wrong_std == pytest.approx(30.0, rel=0.3)


def test_nothing_is_right_for_being_too_far_off(rng):
    expected = np.exp(rng.normal(3.0, 0.5, 400))
    expected[:3] = 20.0
    scale = Logarithm(0.5)
    labels = expected * np.exp(0.1 * rng.normal(size=400))
    labels[:20] += rng.normal(0.0, 20.0, 20)
    labels[:3] = [1e3, 1e6, 1e9]
    plain = evidence_of(scale.forward(labels) - scale.forward(expected), np.full(400, 0.01), scale.forward(expected))
    evidence = replace(plain, transform=scale)
    found = calibrate(evidence.errors, rival=True)
    odds = found.apply(evidence).log_odds
    assert odds[:3].min() > 3.0
    assert np.ptp(odds[:3]) < 0.1


@pytest.mark.parametrize("label", [1e4, 1e6, 1e9])
def test_one_label_far_beyond_all_others_is_wrong_on_a_logarithmic_scale(label, rng):
    expected = rng.normal(2.0, 0.4, 300)
    value = expected + 0.1 * rng.standard_t(6, 300)
    value[7] = np.log(label)
    found = Errors.of(value, expected, np.full(300, 0.01), Logarithm(1e-9))
    described = calibrate(found, rival=True)
    assert described.gain > 1.0
    assert described.log_odds(found)[7] > 5.0
