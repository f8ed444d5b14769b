"""Labels seen from their neighbours: against dense leave-one-out, finite differences, and where only neighbours can tell."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct

from mislabel.kernels.on_data import KernelOnData
from mislabel.kernels.table import TableKernel
from mislabel.likelihoods.mixture import MixtureLikelihood, MixtureParameters
from mislabel.linalg import DenseSignal
from mislabel.noise.expectation_propagation import EffectiveLabels
from mislabel.noise.mixture_start import with_noise
from mislabel.noise.neighbourhoods import LocalDensity, Neighbourhoods, fit_locally, refine_locally

KINDS = MixtureParameters(0.1, 0.02, 1.0)


def table(size=60, features=3, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((size, features))
    labels = np.sin(points[:, 0]) + 0.5 * points[:, 1] + 0.1 * rng.standard_normal(size)
    wrong = rng.random(size) < 0.1
    return points, labels + wrong * rng.standard_normal(size)


def start_of(labels, kinds=KINDS):
    return with_noise(MixtureLikelihood.of_exact(labels, np.zeros(labels.size)), kinds)


def test_neighbours_are_the_nearest_and_some_others():
    points, _ = table(40)
    kernel = KernelOnData(TableKernel(2.0, np.ones(3)), points)
    around = Neighbourhoods.of(kernel, 5, 4, np.random.RandomState(0))
    similarity = kernel.matrix()
    np.fill_diagonal(similarity, -np.inf)
    assert around.members.shape == (40, 9)
    for row, members in enumerate(around.members):
        assert row not in members
        assert len(set(members)) == 9
        assert set(np.argsort(-similarity[row])[:5]) <= set(members)


def test_few_points_are_all_neighbours():
    kernel = KernelOnData(RBF(), table(7)[0])
    around = Neighbourhoods.of(kernel, 5, 5, np.random.RandomState(0))
    for row, members in enumerate(around.members):
        assert sorted(members) == [other for other in range(7) if other != row]


def test_with_all_others_as_neighbours_it_is_leave_one_out():
    points, labels = table()
    kernel = KernelOnData(TableKernel(1.3, np.full(3, 2.0)), points)
    around = Neighbourhoods.of(kernel, labels.size, 0, np.random.RandomState(0))
    noise = np.random.default_rng(1).uniform(0.01, 0.5, labels.size)
    sites = EffectiveLabels(labels, noise)
    fit = fit_locally(
        kernel,
        around,
        MixtureLikelihood.of_exact(labels, np.zeros(labels.size)),
        KINDS,
        sites,
        least_base=1e-8,
        sweeps=1,
    )
    exact = DenseSignal(kernel.matrix()).with_noise(noise).leave_one_out(labels)
    np.testing.assert_allclose(fit.cavity.error, exact.error, rtol=1e-8)
    np.testing.assert_allclose(fit.cavity.signal_variance, exact.variance - noise, rtol=1e-8)


@pytest.mark.parametrize(
    "kernel", [TableKernel(1.3, np.full(3, 2.0), "gaussian"), TableKernel(0.7, 1.5), 2.0 * RBF(1.5) + DotProduct(0.5)]
)
def test_slopes_are_those_of_finite_differences(kernel):
    points, labels = table()
    fixed = np.random.default_rng(1).uniform(0.0, 0.05, labels.size)
    kernel = KernelOnData(kernel, points)
    around = Neighbourhoods.of(kernel, 8, 4, np.random.RandomState(0))
    local = fit_locally(
        kernel, around, MixtureLikelihood.of_exact(labels, fixed), KINDS, start_of(labels), least_base=1e-8
    )
    density = LocalDensity(kernel, around.some(np.arange(0, 60, 4)), labels, fixed, local)
    start = density.start + 0.1
    steps = 1e-5 * np.eye(start.size)
    expected = [(density(start + step)[0] - density(start - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(density(start)[1], expected, atol=1e-7)


def test_its_value_is_the_density_of_the_fit():
    points, labels = table()
    kernel = KernelOnData(TableKernel(1.3, np.full(3, 2.0)), points)
    around = Neighbourhoods.of(kernel, 8, 4, np.random.RandomState(0))
    fixed = np.zeros(labels.size)
    local = fit_locally(
        kernel, around, MixtureLikelihood.of_exact(labels, fixed), KINDS, start_of(labels), least_base=1e-8, sweeps=20
    )
    density = LocalDensity(kernel, around, labels, fixed, local)
    assert density(density.start)[0] == pytest.approx(-local.log_density, abs=1e-3)


def test_the_amplitude_plays_no_part():
    points, labels = table()
    kernel = KernelOnData(TableKernel(1.3, np.full(3, 2.0)), points)
    around = Neighbourhoods.of(kernel, 8, 4, np.random.RandomState(0))
    fixed = np.zeros(labels.size)
    local = fit_locally(
        kernel, around, MixtureLikelihood.of_exact(labels, fixed), KINDS, start_of(labels), least_base=1e-8
    )
    density = LocalDensity(kernel, around, labels, fixed, local)
    louder = density.start + np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    assert density(louder)[0] == pytest.approx(density(density.start)[0], rel=1e-9)
    assert abs(density(louder)[1][0]) < 1e-9


def test_only_an_amplitude_is_left_as_it_is():
    points, labels = table()
    kernel = KernelOnData(TableKernel(1.3, np.full(3, 2.0), length_scale_bounds="fixed"), points)
    calls = []
    found, _ = refine_locally(
        kernel,
        labels,
        np.zeros(labels.size),
        KINDS,
        np.random.RandomState(0),
        least_base=1e-8,
        progress=lambda message, fraction: calls.append(fraction),
    )
    assert found.kernel == kernel.kernel
    assert len(calls) == 1


def test_groups_of_rows_are_found():
    """The second feature numbers groups with a level each: far too short a scale for a part of the rows, not for neighbours."""
    rng = np.random.default_rng(3)
    size, groups = 1500, 150
    group = rng.integers(groups, size=size)
    points = np.column_stack([rng.standard_normal(size), rng.permutation(groups)[group] / groups])
    clean = np.sin(2 * points[:, 0]) + rng.standard_normal(groups)[group] + 0.05 * rng.standard_normal(size)
    wrong = rng.random(size) < 0.1
    labels = clean + wrong * rng.standard_normal(size)
    broad = KernelOnData(TableKernel(1.0, np.array([1.0, 0.3]), "matern52", (1e-3, 1e3), (1e-3, 1e3)), points)
    start = MixtureParameters(0.1, 0.5, 1.0)
    found, kinds = refine_locally(
        broad,
        labels,
        np.zeros(size),
        start,
        np.random.RandomState(0),
        least_base=1e-8,
        progress=lambda message, fraction: None,
    )
    assert found.kernel.length_scale[1] < 0.01
    assert kinds.base < 0.02
    densities = []
    for kernel in (broad, found):
        around = Neighbourhoods.of(kernel, 24, 24, np.random.RandomState(1))
        sites = start_of(labels, kinds)
        fit = fit_locally(
            kernel, around, MixtureLikelihood.of_exact(labels, np.zeros(size)), kinds, sites, least_base=1e-8
        )
        densities.append(fit.log_density)
    assert densities[1] > densities[0] + 0.3
