"""mislabel finds the wrong numbers in regression data, says what they should have been, and gives a model that they did
not spoil.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mislabel._common.lazy_names import lazy_names
from mislabel._common.version import __version__

if TYPE_CHECKING:
    from mislabel.auditing.files import audit_file
    from mislabel.auditing.gate import Gate
    from mislabel.auditing.one_call import audit
    from mislabel.auditing.result import AuditResult, AuditResults
    from mislabel.estimators import LabelNoiseRegressor
    from mislabel.noise.single_label import single_label_test


__all__ = [
    "AuditResult",
    "AuditResults",
    "Gate",
    "LabelNoiseRegressor",
    "__version__",
    "audit",
    "audit_file",
    "single_label_test",
]

# The command line starts without the numerical stack.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "estimators": ["LabelNoiseRegressor"],
        "auditing.files": ["audit_file"],
        "auditing.gate": ["Gate"],
        "auditing.one_call": ["audit"],
        "auditing.result": ["AuditResult", "AuditResults"],
        "noise.single_label": ["single_label_test"],
    },
)
