"""Every kind of label against brute force: the integral over the number behind it, and its derivatives by differences."""

from abc import ABC, abstractmethod

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, poisson

from mislabel.likelihoods.contract import Observation
from mislabel.likelihoods.error_densities import Intervals, intervals_of
from mislabel.likelihoods.mixture import TAILS, MixtureLikelihood, MixtureParameters
from mislabel.likelihoods.observations import CensoredLabels, ExactLabels
from mislabel.likelihoods.transforms import Root

MEAN = np.array([0.3, -1.2, 2.5, 0.0, -4.0])
VARIANCE = np.array([0.5, 2.0, 0.1, 1.0, 0.7])


class ObservationContract(ABC):
    """What is required of every observation; subclasses give one of five labels and what it says of a latent number."""

    @abstractmethod
    def observation(self) -> Observation:
        """Five labels."""

    @abstractmethod
    def log_probability(self, k, mean, std):
        """Of the k-th label, its latent number being normal, by other means."""

    @pytest.fixture
    def given(self):
        return self.observation()

    def expected(self, mean, variance):
        return np.array([self.log_probability(k, mean[k], np.sqrt(variance[k])) for k in range(5)])

    def test_density(self, given):
        found = given.moments(MEAN, VARIANCE)
        np.testing.assert_allclose(
            found.log_density - 0.5 * np.log(2.0 * np.pi), self.expected(MEAN, VARIANCE), rtol=1e-7
        )

    def test_derivatives(self, given):
        found, step = given.moments(MEAN, VARIANCE), 1e-4
        up, at, down = (given.moments(MEAN + shift, VARIANCE).log_density for shift in (step, 0.0, -step))
        first, second = (up - down) / (2.0 * step), (up - 2.0 * at + down) / step**2
        np.testing.assert_allclose(found.slope, first, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found.curvature, second + first**2, rtol=1e-4, atol=1e-6)

    def test_several_descriptions_at_once(self, given):
        both = given.moments(np.stack([MEAN, MEAN + 0.5]), np.stack([VARIANCE, 2.0 * VARIANCE]))
        alone = given.moments(MEAN + 0.5, 2.0 * VARIANCE)
        for one, other in zip((both.log_density, both.slope), (alone.log_density, alone.slope), strict=True):
            np.testing.assert_allclose(one[1], other, rtol=1e-12)

    def test_some_of_them(self, given):
        index = np.array([3, 1])
        found = given.some(index).moments(MEAN[index], VARIANCE[index])
        np.testing.assert_array_equal(found.log_density, given.moments(MEAN, VARIANCE).log_density[index])
        np.testing.assert_array_equal(given.some(index).values, given.values[index])

    def test_errors_are_zero_where_labels_agree(self, given):
        assert np.all(given.error(given.values) == 0.0)
        assert given.values.shape == (5,)

    @pytest.mark.parametrize("mean", [-1e4, 1e4, 0.0])
    def test_far_off_numbers_stay_finite(self, given, mean):
        found = given.moments(np.full(5, mean), np.full(5, 1e-3))
        assert np.isfinite(found.log_density).all()
        assert np.isfinite(found.slope).all()
        assert np.isfinite(found.curvature).all()

    @pytest.mark.parametrize("tails", list(TAILS))
    def test_a_mixture_of_right_and_wrong_ones(self, given, tails):
        likelihood = MixtureLikelihood(given, np.full(5, 0.05), np.array([1.0, 2.0, 0.5, 1.0, 1.0]), tails)
        shared = MixtureParameters(0.2, 0.3, 5.0)
        cavity = likelihood.cavity(MEAN, VARIANCE, shared)
        noise = 0.05 + 0.3 * likelihood.relative
        parts = [(0.8 * share, 0.05 + 0.3 * factor * likelihood.relative) for share, factor in TAILS[tails]]
        parts.append((0.2, noise + 5.0))
        density = [share * np.exp(self.expected(MEAN, VARIANCE + own)) for share, own in parts]
        total = np.sum(density, axis=0)
        np.testing.assert_allclose(cavity.log_density - 0.5 * np.log(2.0 * np.pi), np.log(total), rtol=1e-7)
        np.testing.assert_allclose(cavity.wrong, density[-1] / total, rtol=1e-6)
        np.testing.assert_allclose(cavity.variance, VARIANCE + noise)
        step = 1e-4
        moved = [likelihood.cavity(MEAN + shift, VARIANCE, shared).log_density for shift in (step, 0.0, -step)]
        np.testing.assert_allclose(cavity.slope, (moved[0] - moved[2]) / (2.0 * step), rtol=1e-4, atol=1e-7)
        second = (moved[0] - 2.0 * moved[1] + moved[2]) / step**2
        np.testing.assert_allclose(cavity.curvature, -second, rtol=1e-3, atol=1e-5)

    @pytest.mark.parametrize("tails", list(TAILS))
    def test_shared_numbers_become_more_likely(self, given, tails):
        likelihood = MixtureLikelihood(given, np.zeros(5), tails=tails)
        shared = MixtureParameters(0.3, 0.4, 6.0)
        path = []
        for _ in range(5):
            cavity = likelihood.cavity(MEAN, VARIANCE, shared)
            path.append(cavity.log_density.sum())
            shared = likelihood._maximised(shared, MEAN, VARIANCE, 1e-9)
        assert (np.diff(path) >= -1e-9).all()
        assert path[-1] > path[0]


class TestExactLabels(ObservationContract):
    labels = np.array([0.1, 2.0, 2.4, -3.0, -4.5])

    def observation(self):
        return ExactLabels(self.labels)

    def log_probability(self, k, mean, std):
        return norm.logpdf(self.labels[k], mean, std)


class TestCensoredLabels(ObservationContract):
    lower = np.array([0.1, -np.inf, 2.6, -3.0, -5.0])
    upper = np.array([0.1, 0.5, np.inf, -1.0, np.inf])

    def observation(self):
        return CensoredLabels(Intervals(self.lower, self.upper))

    def log_probability(self, k, mean, std):
        if self.lower[k] == self.upper[k]:
            return norm.logpdf(self.lower[k], mean, std)
        return np.log(
            quad(lambda s: norm.pdf(s, mean, std), max(self.lower[k], -60), min(self.upper[k], 60), limit=200)[0]
        )


class TestCounts(ObservationContract):
    """Counts are intervals of one, on a scale that takes the growth of their noise away."""

    counts, scale = np.array([0.0, 1.0, 2.0, 7.0, 0.0]), Root(0.25)

    def observation(self):
        return CensoredLabels(intervals_of(self.counts, 0.5, np.zeros(5, dtype=np.int8)).through(self.scale.forward))

    def log_probability(self, k, mean, std):
        ends = self.scale.forward(self.counts[k] + np.array([-0.5, 0.5]))
        # Differences of the smaller tails keep their digits.
        low, high = (ends - mean) / std
        return np.log(norm.sf(low) - norm.sf(high) if low > 0 else norm.cdf(high) - norm.cdf(low))


@pytest.mark.parametrize("rate", [1.0, 2.0, 4.0, 10.0, 100.0])
def test_counts_with_the_noise_of_the_root_scale_are_nearly_poisson(rate):
    counts, scale = np.arange(400.0), Root(0.25)
    observed = CensoredLabels(intervals_of(counts, 0.5, np.zeros(400, dtype=np.int8)).through(scale.forward))
    # On this scale the standard deviation of a count is a half, whatever its rate.
    found = observed.moments(np.full(400, np.sqrt(rate)), np.full(400, 0.25))
    probability = np.exp(found.log_density - 0.5 * np.log(2.0 * np.pi))
    distance = 0.5 * np.abs(probability - poisson.pmf(counts, rate)).sum()
    assert distance < 0.11 / np.sqrt(rate)


def test_limits_far_beyond_what_is_expected_keep_their_digits():
    given = CensoredLabels(Intervals(np.array([40.0, -np.inf]), np.array([np.inf, -40.0])))
    found = given.moments(np.zeros(2), np.ones(2))
    np.testing.assert_allclose(found.log_density - 0.5 * np.log(2.0 * np.pi), norm.logsf(40.0))
    np.testing.assert_allclose(found.slope, np.array([1.0, -1.0]) * np.exp(norm.logpdf(40.0) - norm.logsf(40.0)))


@pytest.mark.parametrize("tails", list(TAILS))
def test_tails_have_the_variance_of_the_base_noise(tails):
    shares, factors = np.array(TAILS[tails]).T
    assert shares.sum() == pytest.approx(1.0)
    assert shares @ factors == pytest.approx(1.0, abs=1e-3)
