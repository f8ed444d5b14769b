"""Errors of labels in coarse and in fine steps."""

import numpy as np
import pytest

from mislabel.likelihoods.error_densities import FINE, Errors, intervals_of, student_density


def errors_in_steps(step, rng, limits=()):
    labels = np.round(rng.normal(0.0, 1.0, 500) / step) * step
    side = np.zeros(500, np.int8)
    side[list(limits)] = 1
    return labels, Errors.of(labels, np.zeros(500), np.ones(500), intervals=intervals_of(labels, step / 2, side))


def test_steps_that_are_coarse_beside_the_errors_stay_intervals(rng):
    _, coarse = errors_in_steps(1.5 * FINE, rng)
    assert coarse.within is not None
    assert not coarse.within.exact.any()


def test_steps_that_are_fine_beside_the_errors_are_points(rng):
    labels, fine = errors_in_steps(0.2 * FINE, rng)
    assert fine.within is None
    np.testing.assert_array_equal(fine.error, labels)


def test_limits_stay_intervals_among_fine_steps(rng):
    _, mixed = errors_in_steps(0.2 * FINE, rng, limits=[3, 7])
    assert mixed.within is not None
    np.testing.assert_array_equal(np.flatnonzero(~mixed.within.exact), [3, 7])


def test_points_and_intervals_agree_where_steps_are_barely_fine(rng):
    step = 0.99 * FINE
    labels, points = errors_in_steps(step, rng)
    intervals = intervals_of(labels, step / 2, np.zeros(500, np.int8))
    exact = Errors(**{**points.__dict__, "within": intervals, "outer_within": intervals})
    by_width, by_point = (student_density(found, np.ones(500), 5.0).value for found in (exact, points))
    assert np.mean(by_width) == pytest.approx(np.mean(by_point), abs=0.02)
