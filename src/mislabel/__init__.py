"""mislabel finds the wrong numbers in regression data, says what they should have been, and gives a model that they did
not spoil.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mislabel.lazy_names import lazy_names

if TYPE_CHECKING:
    from mislabel.estimators import LabelNoiseRegressor, audit
    from mislabel.noise.single_label import single_label_test

__version__ = "0.1.0"

__all__ = ["LabelNoiseRegressor", "__version__", "audit", "single_label_test"]

# The command line starts without the numerical stack.
__getattr__, __dir__ = lazy_names(
    __name__, {"estimators": ["LabelNoiseRegressor", "audit"], "noise.single_label": ["single_label_test"]}
)
