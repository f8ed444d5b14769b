"""Real tables with labels corrupted on purpose; skipped where the data sets are absent."""

import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.evaluation import detection_report

# Yacht's clean labels are not equally noisy, and the fit says so.
UNEQUAL = pytest.mark.filterwarnings("ignore::mislabel.errors.BaseNoiseWarning")


@pytest.mark.parametrize(("name", "auroc"), [("energy", 0.87), pytest.param("yacht", 0.9, marks=UNEQUAL)])
def test_corrupted_labels_of_real_tables_are_found(shared_data, name, auroc):
    arrays = np.load(shared_data / "uci_regression.npz")
    features, labels = arrays[f"{name}_X"], arrays[f"{name}_y"].ravel().astype(float)
    chosen = np.random.default_rng(1).permutation(len(labels))[:300]
    corrupted = corrupt_labels(labels[chosen], rate=0.1, level=1.0, random_state=1)
    model = LabelNoiseRegressor().fit(features[chosen], corrupted.labels)
    report = detection_report(
        corrupted.mask, np.abs(model.z_), noise=corrupted.noise, inferred_noise=model.label_noise_
    )
    assert report.auroc > auroc
    assert report.r2 > 0.8
