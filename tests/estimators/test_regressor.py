import pickle
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mislabel import LabelNoiseRegressor, audit
from mislabel.errors import BaseNoiseWarning, NotConvergedWarning
from tests import naive


def paper_model(**options):
    return LabelNoiseRegressor("precomputed", tune="none", center="none", **{"base_noise": 0.0, **options})


@pytest.fixture
def known(rng):
    return naive.random_problem(rng, 80)


class TestPaperModel:
    def test_learned_arrays_belong_together(self, known):
        matrix, labels, _, _ = known
        model = paper_model().fit(matrix, labels)
        base = model.base_noise_variance_
        total = matrix + np.diag(model.noise_variance_ + base)
        assert model.converged_
        assert model.residual_ <= 1e-6
        assert base == model.jitter_
        assert naive.kkt_residual(matrix + base * np.eye(80), labels, model.noise_variance_) < 1e-4
        assert model.objective_ == pytest.approx(
            naive.objective(matrix, labels, model.noise_variance_ + base), rel=1e-6
        )
        assert model.objective_path_[-1] == model.objective_
        weights = np.linalg.solve(total, labels)
        np.testing.assert_allclose(model.label_noise_, model.noise_variance_ * weights, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(model.corrected_labels_, labels - model.label_noise_)
        np.testing.assert_allclose(model.loo_mean_, labels - model.loo_error_)
        np.testing.assert_allclose(model.z_, model.loo_error_ / np.sqrt(model.loo_variance_))

    def test_leave_one_out_equals_real_refits(self, known):
        matrix, labels, _, _ = known
        model = paper_model(base_noise=0.05).fit(matrix, labels)
        noise = model.noise_variance_ + model.base_noise_variance_
        for i in range(0, 80, 9):
            mean, variance = naive.leave_one_out(matrix, labels, noise, i)
            assert model.loo_mean_[i] == pytest.approx(mean, rel=1e-8, abs=1e-8)
            assert model.loo_variance_[i] == pytest.approx(variance + model.base_noise_variance_, rel=1e-8)

    def test_three_noise_models(self, known):
        matrix, labels, _, _ = known
        full = paper_model(base_noise=0.01).fit(matrix, labels)
        basic = paper_model(base_noise=0.01, noise="uniform").fit(matrix, labels)
        plain = paper_model(base_noise=0.01, noise="none").fit(matrix, labels)
        assert full.objective_ < basic.objective_ < plain.objective_
        assert np.ptp(basic.noise_variance_) == 0.0 < basic.noise_variance_[0]
        assert not plain.noise_variance_.any()

    def test_solvers_agree(self, known):
        matrix, labels, _, _ = known
        auto = paper_model(base_noise=0.05).fit(matrix, labels)
        paper = paper_model(base_noise=0.05, solver="multiplicative", tol=1e-4, max_iter=5000).fit(matrix, labels)
        assert auto.objective_ == pytest.approx(paper.objective_, rel=1e-3)

    def test_a_solver_that_stops_early_says_so(self, known):
        matrix, labels, _, _ = known
        with pytest.warns(NotConvergedWarning, match="stopped at a residual of"):
            model = paper_model(base_noise=0.05, solver="multiplicative", max_iter=3).fit(matrix, labels)
        assert not model.converged_
        assert model.n_iter_ == 3

    def test_uniform_noise_equals_scikit_learn(self, rng):
        points = rng.uniform(size=(50, 1))
        labels = np.sin(6 * points[:, 0]) + rng.normal(0, 0.1, 50)
        model = LabelNoiseRegressor(RBF(0.3), noise="uniform", tune="none", center="none").fit(points, labels)
        total = model.noise_variance_[0] + model.base_noise_variance_
        reference = GaussianProcessRegressor(RBF(0.3), alpha=total, optimizer=None).fit(points, labels)
        new = rng.uniform(size=(20, 1))
        mean, std = model.predict(new, return_std=True)
        expected, expected_std = reference.predict(new, return_std=True)
        np.testing.assert_allclose(mean, expected, atol=1e-8)
        np.testing.assert_allclose(std, expected_std, atol=1e-6)
        _, covariance = model.predict(new, return_cov=True)
        np.testing.assert_allclose(covariance, reference.predict(new, return_cov=True)[1], atol=1e-8)

    def test_penalty_in_label_units(self, known):
        matrix, labels, _, _ = known
        one = paper_model(base_noise=0.01, penalty=2.0, penalty_power=1.0).fit(matrix, labels)
        # The same data in millimetres instead of metres: variances grow by 1e6, so the price per variance falls by it.
        other = paper_model(base_noise=0.01e6, penalty=2.0e-6, penalty_power=1.0).fit(1e6 * matrix, 1e3 * labels)
        np.testing.assert_allclose(other.noise_variance_, 1e6 * one.noise_variance_, rtol=1e-4, atol=1.0)


class TestDefault:
    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        rng = np.random.default_rng(4)
        features = rng.uniform(size=(250, 5))
        x1, x2, x3, x4, x5 = features.T
        clean = 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
        labels = clean + rng.normal(0, 0.5, 250)
        wrong = np.zeros(250, dtype=bool)
        wrong[rng.permutation(250)[:40]] = True
        labels[wrong] += rng.normal(0, 2 * clean.std(), 40)
        return LabelNoiseRegressor().fit(features, labels), features, labels, wrong, clean

    def test_finds_the_wrong_labels(self, fitted):
        model, _, _, wrong, _ = fitted
        assert roc_auc_score(wrong, np.abs(model.z_)) > 0.9
        assert model.base_noise_status_ == "found"
        assert 0.1 < model.base_noise_variance_ < 0.6

    def test_corrects_them(self, fitted):
        model, _, labels, wrong, clean = fitted
        assert np.sqrt(np.mean((model.corrected_labels_ - clean)[wrong] ** 2)) < 0.2 * np.std((labels - clean)[wrong])

    def test_predicts_as_if_they_were_not_there(self, fitted):
        model, features, labels, wrong, _ = fitted
        rng = np.random.default_rng(5)
        new = rng.uniform(size=(300, 5))
        truth = (
            10 * np.sin(np.pi * new[:, 0] * new[:, 1]) + 20 * (new[:, 2] - 0.5) ** 2 + 10 * new[:, 3] + 5 * new[:, 4]
        )
        ours = np.sqrt(np.mean((model.predict(new) - truth) ** 2))
        uniform = LabelNoiseRegressor(noise="uniform").fit(features, labels)
        assert ours < 0.5 * np.sqrt(np.mean((uniform.predict(new) - truth) ** 2))
        mean, std = model.predict(new, return_std=True)
        assert 0.8 < np.mean(np.abs(truth - mean) < 1.96 * std) <= 1.0

    def test_audit_table(self, fitted):
        model, _, labels, wrong, _ = fitted
        table = model.audit(fdr=0.1)
        assert list(table["row"].sort_values()) == list(range(250))
        assert (np.diff(table["score"]) <= 0).all()
        suspects = table.loc[table["suspect"], "row"].to_numpy()
        assert wrong[suspects].mean() > 0.75
        np.testing.assert_allclose(table["label"], labels[table["row"]])
        first = model.audit(fdr=0.1, calibrated=False).iloc[0]
        half = norm.ppf(0.975) * np.sqrt(model.loo_variance_[first["row"]])
        assert first["expected_high"] - first["expected"] == pytest.approx(half)
        keep = ~table["suspect"]
        assert (table.loc[keep, "suggested_label"] == table.loc[keep, "label"]).all()

    def test_pickle_and_clone(self, fitted):
        model, features, _, _, _ = fitted
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(features[:5]), model.predict(features[:5]))
        assert clone(model).get_params() == model.get_params()

    def test_works_in_pipelines_and_cross_validation(self, fitted):
        _, features, labels, _, _ = fitted
        pipeline = make_pipeline(StandardScaler(), LabelNoiseRegressor())
        assert cross_val_score(pipeline, features[:120], labels[:120], cv=2).shape == (2,)


class TestInvariance:
    def test_units_of_the_labels(self, friedman):
        features, labels, _, _ = friedman(100, 0.1, 2.0, 0)
        reference = LabelNoiseRegressor().fit(features, labels)
        for factor in (1e-12, 1e12, -3.0):
            model = LabelNoiseRegressor().fit(features, factor * labels)
            np.testing.assert_allclose(model.z_, np.sign(factor) * reference.z_, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(
                model.base_noise_variance_, factor**2 * reference.base_noise_variance_, rtol=1e-3
            )

    def test_units_of_the_features(self, friedman):
        features, labels, _, _ = friedman(100, 0.1, 2.0, 0)
        reference = LabelNoiseRegressor().fit(features, labels)
        model = LabelNoiseRegressor().fit(features * [1.0, 1e6, 1e-6, 10.0, 1.0] + 5.0, labels)
        np.testing.assert_allclose(model.z_, reference.z_, rtol=1e-2, atol=1e-2)

    def test_order_of_the_rows(self, known, rng):
        matrix, labels, _, _ = known
        order = rng.permutation(80)
        model = paper_model(base_noise=0.05).fit(matrix, labels)
        shuffled = paper_model(base_noise=0.05).fit(matrix[np.ix_(order, order)], labels[order])
        assert shuffled.objective_ == pytest.approx(model.objective_, rel=0.02)

    def test_same_seed_gives_bit_equal_results(self, friedman):
        features, labels, _, _ = friedman(150, 0.2, 1.0, 0)
        one = LabelNoiseRegressor(n_restarts=1, random_state=3).fit(features, labels)
        two = LabelNoiseRegressor(n_restarts=1, random_state=3).fit(features, labels)
        np.testing.assert_array_equal(one.z_, two.z_)
        np.testing.assert_array_equal(one.noise_variance_, two.noise_variance_)
        assert one.objective_ == two.objective_


class TestOptions:
    def test_known_measurement_errors(self, rng):
        points = np.sort(rng.uniform(size=(60, 1)), axis=0)
        errors = np.full(60, 0.02)
        errors[:10] = 2.0
        labels = np.sin(6 * points[:, 0]) + errors * rng.standard_normal(60)
        told = LabelNoiseRegressor().fit(points, labels, y_err=errors)
        untold = LabelNoiseRegressor().fit(points, labels)
        assert np.abs(told.z_[:10]).max() < np.abs(untold.z_[:10]).max()
        # A label known to be imprecise is not suspect for being far off.
        assert not told.audit(0.05).query("row < 10")["suspect"].any()

    def test_a_mean_model_is_cross_fitted_and_added_back(self, rng):
        features = rng.normal(size=(150, 3))
        labels = 1e3 + features @ [5.0, -20.0, 1.0] + np.sin(3 * features[:, 0]) + rng.normal(0, 0.05, 150)
        labels[17] += 8.0
        model = LabelNoiseRegressor(mean=LinearRegression()).fit(features, labels)
        assert np.argmax(np.abs(model.z_)) == 17
        np.testing.assert_allclose(model.loo_mean_, labels - model.loo_error_)
        new = rng.normal(size=(50, 3))
        truth = 1e3 + new @ [5.0, -20.0, 1.0] + np.sin(3 * new[:, 0])
        assert np.sqrt(np.mean((model.predict(new) - truth) ** 2)) < 0.5

    def test_random_mean_models_are_seeded(self, friedman):
        features, labels, _, _ = friedman(100, 0.1, 2.0, 0)
        mean = GradientBoostingRegressor(n_estimators=10, subsample=0.5)
        one = LabelNoiseRegressor(mean=mean).fit(features, labels)
        two = LabelNoiseRegressor(mean=mean).fit(features, labels)
        np.testing.assert_array_equal(one.z_, two.z_)

    def test_scikit_learn_kernels_are_tuned(self, friedman):
        features, labels, wrong, _ = friedman(150, 0.15, 2.0, 1)
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.ones(5), (1e-2, 1e3))
        model = LabelNoiseRegressor(kernel).fit(features, labels)
        assert roc_auc_score(wrong, np.abs(model.z_)) > 0.9
        assert not np.array_equal(model.kernel_.theta, kernel.theta)

    def test_precomputed_kernels_get_an_amplitude(self, known):
        matrix, labels, wrong, _ = known
        model = LabelNoiseRegressor("precomputed").fit(1e-5 * matrix, labels)
        assert roc_auc_score(wrong, np.abs(model.z_)) > 0.8
        mean, std = model.predict(1e-5 * matrix[:3], return_std=True, prior_variance=1e-5 * np.ones(3))
        assert mean.shape == std.shape == (3,)
        np.testing.assert_allclose(mean, model.corrected_labels_[:3], atol=0.2)

    def test_objects_of_any_kind(self, rng):
        words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(40)]
        labels = np.array([word.count("a") for word in words], dtype=float) + rng.normal(0, 0.05, 40)
        labels[5] += 4.0

        def similarity(left, right):
            return sum(min(left.count(c), right.count(c)) for c in "abcd") / 6

        model = LabelNoiseRegressor(similarity).fit(words, labels)
        assert np.argmax(np.abs(model.z_)) == 5
        assert model.predict(["aabbcc"]).shape == (1,)

    def test_missing_labels_are_filled_in(self, friedman):
        features, labels, _, clean = friedman(150, 0.0, 1.0, 2)
        labels[[3, 70]] = np.nan
        model = LabelNoiseRegressor(missing="predict").fit(features, labels)
        np.testing.assert_allclose(model.corrected_labels_[[3, 70]], clean[[3, 70]], atol=1.5)
        table = model.audit().set_index("row")
        assert not table.loc[[3, 70], "suspect"].any()
        assert np.isfinite(table.loc[[3, 70], "suggested_label"]).all()
        assert np.isnan(model.z_[[3, 70]]).all()
        matrix = np.exp(-((features[:, None] - features[None]) ** 2).sum(axis=2))
        other = LabelNoiseRegressor("precomputed", missing="predict").fit(matrix, labels)
        assert np.isfinite(other.corrected_labels_).all()

    def test_verbose_shows_progress(self, friedman, caplog):
        features, labels, _, _ = friedman(60, 0.1, 1.0, 2)
        for inference, last in (("average", "right and wrong labels"), ("maximum", "noise of every label")):
            with caplog.at_level("INFO", logger="mislabel"):
                LabelNoiseRegressor(verbose=1, inference=inference).fit(features, labels)
            assert "hyperparameters" in caplog.text
            assert last in caplog.text

    def test_row_ids_of_dataframes(self, friedman):
        features, labels, _, _ = friedman(60, 0.1, 3.0, 2)
        frame = pd.DataFrame(features, index=[f"sample {i}" for i in range(60)], columns=list("abcde"))
        table = LabelNoiseRegressor().fit(frame, labels).audit()
        assert set(table["row"]) == set(frame.index)
        assert table.iloc[0]["row"] == f"sample {np.argmax(np.abs(LabelNoiseRegressor().fit(features, labels).z_))}"

    def test_mostly_wrong_labels_are_announced(self, rng):
        matrix = naive.random_covariance(rng, 200)
        clean = np.linalg.cholesky(matrix + 1e-8 * np.eye(200)) @ rng.standard_normal(200)
        labels = clean.copy()
        labels[:150] += rng.normal(0, 3 * clean.std(), 150)
        with pytest.warns(BaseNoiseWarning, match="rank"):
            model = paper_model(base_noise="auto").fit(matrix, labels)
        assert model.base_noise_status_ in ("majority wrong", "absorbed")


def test_interrupting_a_fit_leaves_the_estimator_as_it_was(friedman):
    features, labels, _, _ = friedman(900, 0.2, 1.0, 0)
    model = LabelNoiseRegressor()

    def interrupt():
        time.sleep(0.7)
        signal.raise_signal(signal.SIGINT)

    # A process started in the background may have been told to ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            while True:  # on a very fast machine one fit may end before the signal
                model = LabelNoiseRegressor()
                model.fit(features, labels)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not [name for name in vars(model) if name.endswith("_") and name != "n_features_in_"]
    model.fit(features[:50], labels[:50])


class TestOneCall:
    def test_mixed_table(self, rng):
        pytest.importorskip("skrub")
        size = 200
        frame = pd.DataFrame(
            {
                "code": [f"id{i}" for i in range(size)],
                "kind": rng.choice(["steel", "brass", "zinc"], size),
                "length": rng.uniform(1, 5, size),
                "note": "same",
                "price": 0.0,
            }
        )
        frame.loc[rng.permutation(size)[:10], "length"] = np.nan
        factor = frame["kind"].map({"steel": 1.0, "brass": 3.0, "zinc": 2.0})
        frame["price"] = factor * frame["length"].fillna(3.0) + rng.normal(0, 0.05, size)
        frame.loc[42, "price"] *= 10
        table = audit(frame, label="price", fdr=0.05, id="code", drop=["note"])
        assert table.iloc[0]["row"] == "id42"
        assert table.iloc[0]["suspect"]

    def test_index_is_kept_and_errors_come_from_a_column(self, friedman):
        features, labels, _, _ = friedman(80, 0.05, 3.0, 0)
        frame = pd.DataFrame(features, columns=list("abcde"), index=pd.RangeIndex(1000, 1080)).assign(y=labels, sd=0.1)
        table = audit(frame, "y", 0.1, y_err="sd", features=list("abcd") + ["e"])
        assert table["row"].between(1000, 1079).all()
