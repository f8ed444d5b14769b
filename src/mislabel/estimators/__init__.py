"""The scikit-learn face: a robust regressor."""

from mislabel.estimators.regressor import LabelNoiseRegressor

__all__ = ["LabelNoiseRegressor"]
