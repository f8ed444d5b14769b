import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.errors import InvalidParameterError, JitterWarning
from mislabel.evaluation import detection_report
from mislabel.linalg import DenseSignal
from mislabel.noise.base_noise import find_base_noise, judge
from mislabel.noise.penalty import Penalty
from mislabel.noise.pricing import HIDDEN_EVIDENCE, fit_scale_mixture
from mislabel.noise.single_label import single_label_test
from tests import naive


def ratio_to_truth(rate, seed, size=300, clean_noise=0.05, level=1.0):
    rng = np.random.default_rng(seed)
    matrix, labels, _, clean = naive.random_problem(rng, size, rate=rate, level=level, clean_noise=clean_noise)
    found = find_base_noise(DenseSignal(matrix), labels, np.zeros(size), Penalty())
    return found.variance / (clean_noise * clean.std()) ** 2, found


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_recovers_the_base_noise(rate):
    ratios = [ratio_to_truth(rate, seed)[0] for seed in range(6)]
    assert 0.75 < np.median(ratios) < 1.35


def test_clean_data_is_left_alone():
    _, found = ratio_to_truth(0.0, 1)
    assert found.status == "found"
    assert np.count_nonzero(found.noise) <= 3


def test_failure_at_high_rates_is_noticed():
    results = [ratio_to_truth(0.7, seed, clean_noise=0.01, level=1.0) for seed in range(8)]
    ratios = [ratio for ratio, _ in results]
    statuses = [found.status for _, found in results]
    # Wherever the base noise has swallowed the wrong labels, that is noticed more often than not.
    swallowed = [status for status, ratio in zip(statuses, ratios, strict=True) if ratio > 300]
    assert all(
        status == "found" or ratio > 1
        for status, ratio in zip(statuses, ratios, strict=True)
        if status != "majority wrong"
    )
    assert sum(status != "found" for status in swallowed) >= len(swallowed) / 2


class TestSingleLabel:
    def test_equals_a_real_refit(self, rng):
        matrix, labels, _, _ = naive.random_problem(rng, 25)
        found = single_label_test(matrix, labels, 7, base_noise=0.01)
        mean, variance = naive.leave_one_out(matrix, labels, np.full(25, 0.01), 7)
        assert found.expected == pytest.approx(mean, abs=1e-8)
        assert found.expected_std**2 == pytest.approx(variance + 0.01, rel=1e-8)
        assert found.error == pytest.approx(labels[7] - mean, abs=1e-8)

    def test_the_three_panels_of_the_papers_first_figure(self, rng):
        matrix, _, _, clean = naive.random_problem(rng, 13, rate=0.0)
        inside = single_label_test(matrix, clean, 6, base_noise=0.01)
        assert inside.needed_variance == 0.0
        assert inside.gain == 0.0
        labels = clean.copy()
        labels[6] += 3.0
        outside = single_label_test(matrix, labels, 6, base_noise=0.01)
        assert abs(outside.error) > outside.expected_std
        assert outside.widened_std == pytest.approx(abs(outside.error))
        noise = np.full(13, 0.01)
        widened = noise.copy()
        widened[6] += outside.needed_variance
        fall = naive.objective(matrix, labels, noise) - naive.objective(matrix, labels, widened)
        assert outside.gain == pytest.approx(fall, rel=1e-6)
        assert outside.p_value < 0.01 < 0.3 < inside.p_value

    def test_bad_input(self):
        with pytest.raises(InvalidParameterError, match="out of range"):
            single_label_test(np.eye(3), np.zeros(3), 5)
        with pytest.raises(InvalidParameterError, match="shape"):
            single_label_test(np.eye(3), np.zeros(4), 0)


def _half_wrong(rng, size=1000):
    """A smooth function of three variables on a large constant, half of its labels wrong; its kernel matrix."""
    points = rng.uniform(-2, 2, (size, 3))
    matrix = Matern(2.0, nu=2.5)(points)
    clean = np.linalg.cholesky(matrix + 1e-8 * np.eye(size)) @ rng.normal(size=size)
    labels = clean + 0.003 * rng.normal(size=size) + 30
    return matrix + 1000.0, corrupt_labels(labels, 0.5, 0.5, random_state=0)


@pytest.mark.filterwarnings("ignore::mislabel.errors.BaseNoiseWarning")  # half is the border of a majority
def test_base_noise_does_not_swallow_half_of_the_labels():
    # A part of these labels is explained best by one large noise; all of them are not.
    matrix, noisy = _half_wrong(np.random.default_rng(0))
    model = LabelNoiseRegressor(kernel="precomputed", center="none").fit(matrix, noisy.labels)
    assert model.base_noise_variance_ < 1e-3
    assert 0.3 < np.mean(model.noise_variance_ > 0) < 0.5
    assert detection_report(noisy.mask, np.abs(model.z_)).auroc > 0.86


def test_majority_of_wrong_labels_is_seen_however_small_their_noise():
    rng = np.random.default_rng(3)
    error = np.where(rng.uniform(size=800) < 0.7, rng.normal(0, 1, 800), rng.normal(0, 0.05, 800))
    nothing, variance = np.zeros(800), np.full(800, np.mean(error**2))
    assert judge(nothing, error, variance, nothing, 1.0, label_variance=1e6) == "absorbed"
    # Unless the small ones are no smaller than what is known of every label's noise lets expect.
    known = np.full(800, 0.9 * variance[0])
    assert judge(nothing, error, variance, known, 1.0, label_variance=1e6) == "found"
    heavy = rng.standard_t(3, 800)
    assert judge(nothing, heavy, np.full(800, np.mean(heavy**2)), nothing, 1.0, label_variance=1e6) == "found"


def test_base_noise_zero_with_an_imprecise_matrix():
    rng = np.random.default_rng(4)
    points = np.linspace(0, 1, 500)[:, None]
    matrix = RBF(0.3)(points)
    matrix += 1e-8 * (lambda part: part + part.T)(rng.normal(size=(500, 500)))
    labels = np.sin(6 * points[:, 0])
    labels[::25] += 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitterWarning)
        model = LabelNoiseRegressor(kernel="precomputed", base_noise=0.0).fit(matrix, labels)
    assert set(np.argsort(model.noise_variance_)[-20:]) == set(range(0, 500, 25))


def test_heavy_tails_are_not_taken_for_two_kinds_of_labels():
    random_state = np.random.RandomState(0)
    size = 6000
    noise, variance, base, label_variance = np.zeros(size), np.ones(size), 0.2, 1.0
    heavy = random_state.standard_t(5, size)
    assert fit_scale_mixture(heavy).evidence > HIDDEN_EVIDENCE
    assert judge(noise, heavy, variance, np.zeros(size), base, label_variance) == "found"
    two_kinds = random_state.standard_normal(size) * np.where(random_state.random(size) < 0.6, 0.2, 2.0)
    assert judge(noise, two_kinds, variance, np.zeros(size), base, label_variance) == "absorbed"
    assert judge(noise, random_state.standard_normal(size), variance, np.zeros(size), base, label_variance) == "found"
