"""Groups judged by models that have not seen them: closed forms against refits."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from mislabel import LabelNoiseRegressor
from mislabel.estimators.group_evidence import GroupJudges, judge_groups

FIXED = ConstantKernel(4.0, "fixed") * RBF(0.7, "fixed")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (72, 2))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + rng.normal(0.0, 0.1, 72)
    y[5] += 4.0
    groups = np.arange(72) // 8
    y[groups == 2] += 2.0
    model = LabelNoiseRegressor(FIXED, tune="none", center=0.0, base_noise="auto").fit(X, y)
    return model, X, y, groups


def refitted(model, X, left_out, new):
    """A process with the same kernel that believes the same labels with the same noise, but for some: what it predicts."""
    order = model._present if model._predictor.order is None else model._present[model._predictor.order]
    covariance = np.empty((72, 72))
    covariance[np.ix_(order, order)] = np.linalg.inv(model._predictor.covariance.inverse())
    believed = np.empty(72)
    believed[order] = covariance[np.ix_(order, order)] @ model._predictor.weights
    kept = ~left_out
    cross = model.kernel_(new, X[kept])
    mean = cross @ np.linalg.solve(covariance[np.ix_(kept, kept)], believed[kept])
    own = model.kernel_(new) - cross @ np.linalg.solve(covariance[np.ix_(kept, kept)], cross.T)
    return mean, own + model.base_noise_variance_ * np.eye(len(new))


@pytest.mark.parametrize("doubted", [(), (2,), (1, 2)])
def test_the_process_says_what_a_refit_without_the_group_says(fitted, doubted):
    model, X, y, groups = fitted
    out = np.isin(np.arange(9), doubted)
    mirrored = X * [1.0, -1.0]
    found = GroupJudges(model, groups, X, {"mirrored": mirrored})(out)["process"]
    for k in range(9):
        left_out = (groups == k) | np.isin(groups, doubted)
        mean, covariance = refitted(model, X, left_out, X[groups == k])
        assert found.expected[groups == k] == pytest.approx(mean, abs=1e-6)
        assert found.covariances[k] == pytest.approx(covariance, abs=1e-6)
        mean, _ = refitted(model, X, left_out, mirrored[groups == k])
        assert found.readings["mirrored"][groups == k] == pytest.approx(mean, abs=1e-6)


def test_a_process_of_low_rank_says_what_a_refit_says(fitted):
    _, X, y, groups = fitted
    model = LabelNoiseRegressor(FIXED, tune="none", center=0.0, rank=72).fit(X, y)
    assert model.rank_ is not None
    found = GroupJudges(model, groups, X, {"mirrored": -X})(np.zeros(9, dtype=bool))["process"]
    assert not found.readings  # those are left to the other models
    for k in range(9):
        mean, covariance = refitted(model, X, groups == k, X[groups == k])
        assert found.expected[groups == k] == pytest.approx(mean, abs=1e-5)
        assert found.covariances[k] == pytest.approx(covariance, abs=1e-5)


def test_other_models_see_nothing_of_a_group_nor_of_those_doubted(fitted):
    model, X, y, groups = fitted
    one = GroupJudges(model, groups, X, {})(np.zeros(9, dtype=bool))
    changed = LabelNoiseRegressor(FIXED, tune="none", center=0.0).fit(X, np.where(groups == 2, y + 5.0, y))
    doubted = np.arange(9) == 2
    before = GroupJudges(model, groups, X, {})(doubted)
    after = GroupJudges(changed, groups, X, {})(doubted)
    for name in ("boosting", "trees"):
        assert after[name].expected == pytest.approx(before[name].expected)
        assert one[name].expected[groups != 2] != pytest.approx(before[name].expected[groups != 2])


def test_missing_labels_and_rows_without_a_group_take_no_part(fitted):
    _, X, y, groups = fitted
    y, groups = y.copy(), groups.copy()
    y[10], groups[20] = np.nan, -1
    model = LabelNoiseRegressor(FIXED, tune="none", missing="predict").fit(X, y)
    judges = GroupJudges(model, groups, X, {})
    assert set(np.arange(72)) - set(judges.rows.tolist()) == {10, 20}
    assert np.array_equal(np.sort(np.concatenate(judges.members)), np.arange(70))


def test_a_shifted_group_is_found():
    rng = np.random.default_rng(1)
    X, groups = rng.uniform(-2.0, 2.0, (240, 2)), np.arange(240) // 12
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + rng.normal(0.0, 0.1, 240) + 3.0 * (groups == 2)
    model = LabelNoiseRegressor(FIXED, tune="none", center=0.0).fit(X, y)
    verdicts, _ = judge_groups(GroupJudges(model, groups, X, {}))
    assert np.flatnonzero(verdicts.q_value <= 0.05).tolist() == [2]
    assert verdicts.kind[2] == "shift"
