import numpy as np
import pytest

from mislabel.likelihoods.transforms import TRANSFORMS, Asinh, Identity, Logarithm, Logit, Root

ALL = [Identity(), Logarithm(0.5), Root(2.0), Asinh(1.0, 3.0), Logit(1.0), Logit(100.0)]


@pytest.mark.parametrize("transform", ALL)
def test_every_number_has_its_place(transform):
    labels = np.concatenate([-np.logspace(-3, 2, 40)[::-1], [0.0], np.logspace(-3, 2, 60)])
    values = transform.forward(labels)
    assert (np.diff(values) > 0.0).all()
    np.testing.assert_allclose(transform.inverse(values), labels, rtol=1e-9, atol=1e-9)
    step = 1e-6
    slope = (transform.forward(labels + step) - transform.forward(labels - step)) / (2.0 * step)
    smooth = np.abs(transform.log_slope(labels + step) - transform.log_slope(labels - step)) < 1e-3
    np.testing.assert_allclose(transform.slope(labels)[smooth], slope[smooth], rtol=1e-3)
    assert np.isneginf(transform.forward(np.array([-np.inf])))
    assert np.isposinf(transform.forward(np.array([np.inf])))
    assert np.isfinite(transform.inverse(np.array([-1e6, 1e6]))).all()


@pytest.mark.parametrize("transform", ALL)
def test_spreads_are_those_of_labels(transform):
    labels = np.array([5.0, 20.0, 60.0])
    values, std = transform.forward(labels), np.array([1e-4, 1e-4, 1e-4])
    np.testing.assert_allclose(transform.spread(values, std), std / transform.slope(labels), rtol=1e-3)


def test_which_labels_they_suit(rng):
    positive = rng.lognormal(3.0, 1.0, 500)
    names = [name for name, make in TRANSFORMS.items() if make(positive) is not None]
    assert names == ["none", "log", "sqrt"]
    some_wrong = np.where(rng.random(500) < 0.05, -positive, positive)
    assert TRANSFORMS["log"](some_wrong) is not None
    assert TRANSFORMS["log"](positive - np.median(positive)) is None
    assert TRANSFORMS["logit"](rng.beta(2.0, 2.0, 500)) == Logit(1.0)
    assert TRANSFORMS["logit"](100.0 * rng.beta(2.0, 2.0, 500)) == Logit(100.0)
    assert TRANSFORMS["asinh"](positive - np.median(positive)) is not None
    assert TRANSFORMS["asinh"](positive) is None


@pytest.mark.parametrize("name", ["log", "sqrt", "asinh"])
def test_units_do_not_matter(name, rng):
    labels = rng.lognormal(3.0, 1.0, 500) * (rng.choice([-1.0, 1.0], 500) if name == "asinh" else 1.0)
    one, other = TRANSFORMS[name](labels), TRANSFORMS[name](1000.0 * labels)
    shift = other.forward(1000.0 * labels) - one.forward(labels) * (1000.0**0.5 if name == "sqrt" else 1.0)
    np.testing.assert_allclose(shift, shift[0], atol=1e-8)
