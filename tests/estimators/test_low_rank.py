import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel._common.progress import ProgressReporter
from mislabel.errors import InvalidParameterError, MemoryBudgetError
from mislabel.estimators import fitting, rank_plan
from mislabel.estimators.rank_plan import RankPlan, plan_rank
from mislabel.estimators.validation import available_memory, memory_budget
from mislabel.evaluation import detection_report
from mislabel.kernels import on_data
from mislabel.linalg.mapped import mapping_of, new_mapped


@pytest.fixture
def data(friedman):
    return friedman(1500, 0.1, 1.0, seed=4)


@pytest.fixture
def small_steps(monkeypatch):
    """Tuning and blocks as small as the data of a test."""
    monkeypatch.setattr(rank_plan, "TUNING_ROWS", 400)
    monkeypatch.setattr(rank_plan, "BLOCK_SIZES", ((10_000, 300),))


def test_detection_and_prediction_are_close_to_exact(data, small_steps):
    features, labels, wrong, clean = data
    exact = LabelNoiseRegressor().fit(features, labels)
    fast = LabelNoiseRegressor(rank=150).fit(features, labels)
    assert fast.rank_ == 150
    assert 0.9 < fast.captured_ <= 1.0
    assert fast.converged_
    assert fast.residual_ <= 1e-4
    noise = np.where(wrong, 1.0, 0.0)
    ranks = [detection_report(noise, np.abs(model.z_)).auroc for model in (exact, fast)]
    assert ranks[1] > ranks[0] - 0.01
    np.testing.assert_allclose(fast.loo_mean_, exact.loo_mean_, atol=0.25 * np.std(clean))
    new = np.random.default_rng(0).uniform(size=(200, features.shape[1]))
    mean, std = fast.predict(new, return_std=True)
    expected = exact.predict(new)
    assert np.sqrt(np.mean((mean - expected) ** 2)) < 0.1 * np.std(clean)
    assert np.mean(np.abs(mean - expected) < 4 * std) > 0.9
    _, covariance = fast.predict(new[:5], return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std[:5], rtol=0.1)


def test_exact_fits_of_many_labels_are_tuned_by_neighbourhoods(data, monkeypatch):
    features, labels, wrong, _ = data
    whole = LabelNoiseRegressor().fit(features, labels)
    monkeypatch.setattr(fitting, "TUNED_AT_ONCE", 1000)
    monkeypatch.setattr(fitting, "TUNING_ROWS", 400)
    fractions = []
    monkeypatch.setattr(ProgressReporter, "__call__", lambda self, message, fraction: fractions.append(fraction))
    part = LabelNoiseRegressor().fit(features, labels)
    assert part.captured_ == 1.0
    assert fractions == sorted(fractions)
    ranks = [detection_report(np.where(wrong, 1.0, 0.0), np.abs(model.z_)).auroc for model in (whole, part)]
    assert ranks[1] > ranks[0] - 0.01
    assert part.n_factorizations_ < whole.n_factorizations_


def test_leave_one_out_is_that_of_the_low_rank_matrix(data, small_steps):
    features, labels, _, _ = data
    model = LabelNoiseRegressor(rank=80, inference="maximum").fit(features, labels)
    assert model.converged_
    assert model.residual_ <= 1e-4
    order = model._predictor.order
    scaled = (labels[order] - model.center_) / model.scale_
    inverse = model._predictor.covariance.inverse()
    np.testing.assert_allclose(
        model.loo_error_[order], model.scale_ * (inverse @ scaled) / np.diag(inverse), rtol=1e-6, atol=1e-7
    )


def test_the_same_seed_gives_the_same_fit(data, small_steps):
    features, labels, _, _ = data
    one, two = (LabelNoiseRegressor(rank=60, random_state=3).fit(features, labels) for _ in range(2))
    np.testing.assert_array_equal(one.noise_variance_, two.noise_variance_)


def test_missing_labels_and_known_errors(data, small_steps):
    features, labels, _, clean = data
    gaps = labels.copy()
    gaps[:5] = np.nan
    model = LabelNoiseRegressor(rank=100, missing="predict").fit(features, gaps, y_err=np.full(labels.size, 0.3))
    assert np.isnan(model.z_[:5]).all()
    np.testing.assert_allclose(model.corrected_labels_[:5], clean[:5], atol=0.5 * np.std(clean))
    assert len(model.audit()) == labels.size


def test_plans():
    assert plan_rank(None, 10**6) is None
    assert plan_rank("auto", 5000) is None
    assert plan_rank("auto", 20_000) == RankPlan(1581, 1000, True)
    assert plan_rank("auto", 6_000) == RankPlan(2000, 1000, True)
    assert plan_rank("auto", 10**6, available=1e12) == RankPlan(500, 0, True)
    assert plan_rank(64, 150_000) == RankPlan(64, 250)
    assert plan_rank(300, 200) == RankPlan(200, 200)
    for wrong in (0, -3, 2.5, "low", True):
        with pytest.raises(InvalidParameterError, match="rank must be"):
            plan_rank(wrong, 1000)


def test_memory_is_asked_for_first(monkeypatch):
    monkeypatch.setattr(rank_plan, "free_memory", lambda: 2e9)
    assert plan_rank(50, 200_000) == RankPlan(50, 250)
    assert plan_rank(500, 200_000) == RankPlan(500, 0)
    assert plan_rank("auto", 1_000_000).rank < 500
    with pytest.raises(
        MemoryBudgetError, match=r"needs about 8.6 GB, but 2 GB may be used; rank=101 would fit, or storage"
    ):
        plan_rank(500, 1_000_000)
    with pytest.raises(MemoryBudgetError, match="not even storage='file' with rank=32 fits, which needs 32 GB"):
        plan_rank(500, 100_000_000)
    assert plan_rank(500, 1_000_000, storage="file") == RankPlan(500, 0, storage="file")
    assert plan_rank("auto", 4000, available=3e8).tuning_rows == 1936


def test_memory_budgets_are_read_and_kept(data):
    assert memory_budget(None) is None
    assert memory_budget(3e9) == memory_budget("3GB") == memory_budget(" 3000 mb") == memory_budget("3G") == 3e9
    for wrong in ("much", "-1GB", 0, -5, True):
        with pytest.raises(InvalidParameterError, match="memory must be"):
            memory_budget(wrong)
    assert available_memory(None) > 0
    assert available_memory("1kB") == 0.0
    features, labels, _, _ = data
    with pytest.raises(MemoryBudgetError, match="may be used"):
        LabelNoiseRegressor(memory="1MB").fit(features, labels)
    with pytest.raises(MemoryBudgetError, match="give more memory"):
        LabelNoiseRegressor(rank=50, memory="1MB").fit(features, labels)


def test_features_in_a_file_give_the_same_fit(data, small_steps, monkeypatch):
    features, labels, _, _ = data
    monkeypatch.setattr(on_data, "MAPPED_FROM", 100)
    mapped = new_mapped(features.shape, np.float64)
    mapped[:] = features
    gaps = labels.copy()
    gaps[3] = np.nan
    fits = [
        LabelNoiseRegressor(rank=60, storage="file", missing="predict").fit(points, gaps)
        for points in (features, mapped)
    ]
    np.testing.assert_array_equal(fits[0].z_, fits[1].z_)
    np.testing.assert_array_equal(fits[0].loo_mean_, fits[1].loo_mean_)
    assert mapping_of(fits[1]._fit_points) is not None


def test_columns_in_a_file(data, small_steps, monkeypatch):
    features, labels, wrong, clean = data
    monkeypatch.setattr(rank_plan, "BLOCK_SIZES", ())
    plain = LabelNoiseRegressor(rank=120).fit(features, labels)
    other = LabelNoiseRegressor(rank=120, storage="file").fit(features, labels)
    assert 80 < other.rank_ <= 120  # single precision cannot tell the last pivots from earlier ones
    assert other.residual_ <= 1e-4
    ranks = [detection_report(wrong, np.abs(model.z_)).auroc for model in (plain, other)]
    assert ranks[1] > ranks[0] - 0.01
    np.testing.assert_allclose(other.loo_mean_, plain.loo_mean_, atol=0.1 * np.std(clean))
    assert other._predictor.model.factor.factor.dtype == np.float32


def test_unknown_ways_are_refused(data):
    features, labels, _, _ = data
    with pytest.raises(InvalidParameterError, match="'double', 'file'"):
        LabelNoiseRegressor(rank=50, storage="tape").fit(features, labels)
    assert plan_rank(500, 10**6, available=1e9, storage="file").rank == 500


def test_uniform_noise_is_refused(data):
    features, labels, _, _ = data
    with pytest.raises(InvalidParameterError, match="need noise='per-label'"):
        LabelNoiseRegressor(rank=50, noise="uniform").fit(features, labels)
