"""What counts as a number: true and false do not."""

from __future__ import annotations

import numbers
from typing import Any, TypeGuard


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is of a type for whole numbers."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
