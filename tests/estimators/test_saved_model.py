"""A fit as arrays predicts and judges as the fit does, and as a fit to one row more with everything else held."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from mislabel import LabelNoiseRegressor
from mislabel.decisions import p_values
from mislabel.estimators.array_models import arrays_of, in_arrays, model_of
from mislabel.estimators.mean_functions import MEANS, mean_named
from mislabel.estimators.new_labels import NewLabels, evidence_of_new, predicted_on_scale
from mislabel.estimators.saved_model import NotSavableError, SavedModel, restored, saved

#: Labels at a bound, and noise that depends on the row, are told by the fit; here they are only what is to be kept.
pytestmark = pytest.mark.filterwarnings("ignore::mislabel.errors.BaseNoiseWarning")


def labelled(size, seed, *, positive=False, rounded=False, censored=False):
    """Features, and labels whose noise depends on the row; some are wrong."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size, 3))
    noise = 0.1 * rng.normal(size=size) * np.where(features[:, 2] > 0, 3.0, 1.0)
    labels = np.sin(2.0 * features[:, 0]) + features[:, 1] + noise
    wrong = rng.random(size) < 0.05
    labels[wrong] += rng.choice([-3.0, 3.0], wrong.sum())
    if positive:
        labels = np.exp(labels)
    if rounded:
        labels = np.round(labels, 0)
    if censored:
        labels = np.maximum(labels, -1.0)
    return features, labels


def new_rows(features, labels, known=0.0):
    size = labels.size
    return NewLabels(np.arange(size), features, labels, np.full(size, known), np.zeros(size, dtype=np.int8))


def through_text(kept):
    """As it comes back from files."""
    return SavedModel(json.loads(json.dumps(kept.told, allow_nan=False)), kept.arrays)


CASES = {
    "plain": ({"mean": "none"}, {}),
    "boosting": ({"mean": "boosting"}, {}),
    "trees": ({"mean": "half-trees"}, {}),
    "logarithm": ({"label_transform": "log"}, {"positive": True}),
    "noise by row": ({"row_noise": "auto"}, {}),
    "student": ({"tails": "student"}, {}),
    "grades": ({}, {"rounded": True}),
    "bound": ({}, {"censored": True}),
    "blocks": ({"rank": 40}, {}),
}


@pytest.fixture(scope="module")
def fits():
    known = {}

    def fit(name):
        if name not in known:
            options, kind = CASES[name]
            features, labels = labelled(260, 1, **kind)
            known[name] = LabelNoiseRegressor(**options).fit(features, labels)
        return known[name]

    return fit


@pytest.mark.parametrize("name", [name for name in CASES if name != "blocks"])
def test_a_new_label_is_judged_as_one_that_is_appended(fits, name):
    """A Gaussian process on one row more, all noise held: its closed-form leave-one-out for that row, calibrated as before."""
    model = fits(name)
    kept = restored(through_text(saved(model)))
    features, labels = labelled(6, 7, **CASES[name][1])
    new = new_rows(features, labels)
    evidence = evidence_of_new(kept.model, kept.rules, new, kept.accepted)
    judged = kept.calibration.apply(evidence)
    believed, effective_labels = model._predictor, _effective_labels(model._predictor)
    means = np.zeros(labels.size) if model.mean_model_ is None else model.mean_model_.predict(features)
    for k in range(labels.size):
        # What stands for the accepted labels, each with the variance by which it is believed, and the new one.
        points = np.vstack([model._fit_points, features[k : k + 1]])
        mean = means[k]
        own = (model.label_transform_.forward(labels[k : k + 1])[0] - model.center_ - mean) / model.scale_
        effective = np.append(effective_labels, own)
        own_noise = _clean_noise(model, new, k, evidence)
        refit = LabelNoiseRegressor(
            kernel=model.kernel_, tune="none", noise="none", base_noise=0.0, center="none", label_transform="none"
        ).fit(points, effective, y_err=np.sqrt(np.append(believed.noise, own_noise)))
        expected = model.center_ + mean + model.scale_ * refit.loo_mean_[-1]
        variance = model.scale_**2 * refit.loo_variance_[-1]
        assert evidence.expected[k] == pytest.approx(expected, abs=1e-6)
        if not evidence.stands_apart[k]:
            assert evidence.variance[k] == pytest.approx(variance, rel=1e-6)
        one = model.calibration_.apply(
            _appended(
                model._evidence.as_some, evidence, k, expected, variance if not evidence.stands_apart[k] else None
            )
        )
        assert judged.z[k] == pytest.approx(one.z[-1], abs=1e-6)
        assert judged.log_odds[k] == pytest.approx(one.log_odds[-1], abs=1e-6)
        assert p_values(judged)[k] == pytest.approx(p_values(one)[-1], abs=1e-6)


def _effective_labels(predictor):
    """The labels that the model believes: the covariance times the weights."""
    covariance = predictor.kernel(predictor.points) + np.diag(predictor.noise)
    return covariance @ predictor.weights


def _clean_noise(model, new, k, evidence):
    """Of the new label, in units of the fit: base noise by row, and what its rounding leaves open."""
    rules = model._rules
    known = rules.half_step**2 * model.label_transform_.slope(new.labels[k : k + 1])[0] ** 2 / model.scale_**2
    relative = 1.0
    if rules.noise_by_row is not None:
        _, expected, std = predicted_on_scale(model, new.points[k : k + 1])
        total = std**2 + model.scale_**2 * (known + rules.base)
        relative = rules.noise_by_row.relative(new.points[k : k + 1], expected, total)[0]
    return known + rules.base * relative


def _appended(accepted, evidence, k, expected, variance):
    """The evidence of all accepted labels and of a new one behind them."""
    own = evidence.some(np.array([k]))
    own = own if variance is None else replace(own, variance=np.array([variance]))
    if not own.side.any():
        own = replace(own, expected=np.array([expected]))
        own = replace(own, error=np.zeros(1) if own.stands_apart[0] else own.label - own.expected)
    own = replace(own, z=own.error / np.sqrt(own.variance))
    names = ("rows", "label", "expected", "variance", "error", "z", "noise_variance", "label_noise", "corrected")
    both = {name: np.append(getattr(accepted, name), getattr(own, name)) for name in names}
    for name in ("set_aside", "at_atom", "side", "chance"):
        parts = getattr(accepted, name), getattr(own, name)
        if parts[0] is not None:
            both[name] = np.append(*parts)
    return replace(accepted, **both)


@pytest.mark.parametrize("name", CASES)
def test_the_arrays_say_what_the_fit_says(fits, name):
    model = fits(name)
    kept = restored(through_text(saved(model)))
    new = new_rows(*labelled(200, 3, **CASES[name][1]), known=0.01)
    wanted, found = (
        evidence_of_new(one, rules, new) for one, rules in ((model, model._rules), (kept.model, kept.rules))
    )
    for part in ("label", "expected", "variance", "error", "z", "noise_variance", "corrected"):
        np.testing.assert_allclose(getattr(found, part), getattr(wanted, part), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_accepted_rows_have_the_evidence_of_the_fit(fits, name):
    model = fits(name)
    kept = restored(through_text(saved(model)))
    evidence = evidence_of_new(kept.model, kept.rules, new_rows(*labelled(260, 1, **CASES[name][1])), kept.accepted)
    for part in ("label", "expected", "variance", "error", "z", "noise_variance", "corrected"):
        np.testing.assert_allclose(getattr(evidence, part), getattr(model._evidence, part), rtol=1e-9, atol=1e-9)


def test_what_depends_on_the_kind_of_label_is_there(fits):
    assert fits("noise by row")._rules.noise_by_row is not None
    assert fits("grades")._rules.half_step > 0.0
    assert fits("bound").atoms_.values


def test_low_rank_without_blocks(monkeypatch):
    monkeypatch.setattr("mislabel.estimators.rank_plan.BLOCK_SIZES", ())
    model = LabelNoiseRegressor(rank=30).fit(*labelled(260, 1))
    kept = restored(through_text(saved(model)))
    assert "predictor/points" not in saved(model).arrays
    features, _ = labelled(50, 4)
    for wanted, found in zip(
        model.predict(features, return_std=True), kept.model.predict(features, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_a_label_beyond_any_scale_is_set_aside_and_a_missing_one_predicted(fits):
    model = fits("plain")
    features, labels = labelled(3, 5)
    labels[:2] = 1e12, np.nan
    evidence = evidence_of_new(model, model._rules, new_rows(features, labels))
    assert evidence.absurd.tolist() == [True, False, False]
    assert np.isnan(evidence.z[1])
    np.testing.assert_allclose(evidence.expected, model.predict(features), rtol=1e-12)
    again = LabelNoiseRegressor().fit(np.vstack([model._points, features[:1]]), np.append(model.labels_, labels[0]))
    assert again.set_aside_.tolist() == [260]


MODELS = {
    "extra trees": ExtraTreesRegressor(20, random_state=0),
    "forest": RandomForestRegressor(20, random_state=0),
    "boosting": HistGradientBoostingRegressor(random_state=0),
    "ordinary": LinearRegression(),
    **{name: mean_named(name) for name in MEANS},
}


@pytest.mark.parametrize("name", MODELS)
def test_models_in_arrays_predict_as_the_models(name):
    features, labels = labelled(300, 2)
    model = MODELS[name].fit(features, labels)
    found = in_arrays(model)
    again = model_of(*(json.loads(json.dumps(part)) if k == 0 else part for k, part in enumerate(arrays_of(found))))
    for rows in (features, labelled(500, 3)[0], np.round(features, 1)):
        np.testing.assert_allclose(again.predict(rows), model.predict(rows), rtol=1e-9, atol=1e-9)


def test_what_is_not_in_arrays_is_named():
    features, labels = labelled(80, 2)
    assert in_arrays(KNeighborsRegressor().fit(features, labels)) is None
    poisson = HistGradientBoostingRegressor(loss="poisson").fit(features, np.exp(labels))
    assert in_arrays(poisson) is None
    neighbours = LabelNoiseRegressor(mean=KNeighborsRegressor()).fit(features, labels)
    with pytest.raises(NotSavableError, match="KNeighborsRegressor"):
        saved(neighbours)
    with pytest.raises(NotSavableError, match="average"):
        saved(LabelNoiseRegressor(noise="uniform").fit(features, labels))

    class Own(RBF):
        pass

    with pytest.raises(NotSavableError, match="Own, is code"):
        saved(LabelNoiseRegressor(kernel=Own(), tune="none").fit(features, labels))
    kept = restored(through_text(saved(LabelNoiseRegressor(kernel=RBF(2.0)).fit(features, labels))))
    assert isinstance(kept.model.kernel_.k2, RBF)
