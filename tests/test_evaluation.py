import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mislabel.errors import InvalidParameterError
from mislabel.evaluation import detection_report, precision_at_recall


def test_by_hand():
    mask = np.array([True, False, True, False, False])
    score = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    report = detection_report(
        mask,
        score,
        noise=[2.0, 0, -1.0, 0, 0],
        inferred_noise=[2.0, 0, -1.0, 0, 0],
        suspect=[True, True, False, False, False],
    )
    assert report.auroc == pytest.approx(5 / 6)
    assert report.average_precision == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    # Half of the wrong labels come first: 70 and 95 % recall both need all three leading labels.
    assert report.precision_at_70 == report.precision_at_95 == pytest.approx(2 / 3)
    assert report.r2 == 1.0
    assert report.false_discovery_rate == 0.5
    assert report.recall == 0.5
    assert report["auroc"] == report.auroc
    assert set(report.as_dict()) >= {"r2", "auroc", "average_precision", "precision_at_70", "precision_at_95"}


def test_against_brute_force(rng):
    mask = rng.random(300) < 0.3
    score = rng.normal(size=300) + 1.5 * mask
    report = detection_report(mask, score)
    assert report.auroc == pytest.approx(roc_auc_score(mask, score))
    for recall, found in ((0.7, report.precision_at_70), (0.95, report.precision_at_95)):
        best = 0.0
        for cut in score:
            called = score >= cut
            if np.sum(called & mask) >= recall * mask.sum():
                best = max(best, np.sum(called & mask) / called.sum())
        assert found == pytest.approx(best)
    assert np.isnan(report.r2)
    assert np.isnan(report.false_discovery_rate)


def test_precision_at_full_recall():
    assert precision_at_recall(np.array([True, False]), np.array([0.0, 1.0]), 1.0) == 0.5


def test_bad_input():
    with pytest.raises(InvalidParameterError, match="both wrong and right"):
        detection_report([True, True], [1.0, 2.0])
    with pytest.raises(InvalidParameterError, match="shape"):
        detection_report([True, False], [1.0])
    with pytest.raises(InvalidParameterError, match="finite"):
        detection_report([True, False], [1.0, np.nan])
