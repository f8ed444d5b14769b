"""mislabel finds the wrong numbers in regression data, says what they should have been, and gives a model that they did
not spoil.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mislabel.estimators import LabelNoiseRegressor, audit
    from mislabel.noise.single_label import single_label_test

__version__ = "0.1.0"

# Names are imported when first used, so that the command line starts without the numerical stack.
_LAZY = {
    "LabelNoiseRegressor": "mislabel.estimators",
    "audit": "mislabel.estimators",
    "single_label_test": "mislabel.noise.single_label",
}

__all__ = ["LabelNoiseRegressor", "__version__", "audit", "single_label_test"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'mislabel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
