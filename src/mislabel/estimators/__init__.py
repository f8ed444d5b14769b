"""The scikit-learn face: a robust regressor, and the audit in one call."""

from mislabel.estimators.one_call import audit
from mislabel.estimators.regressor import LabelNoiseRegressor

__all__ = ["LabelNoiseRegressor", "audit"]
