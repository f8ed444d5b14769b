"""Numbers as text without the digits that only rounding put there."""

from __future__ import annotations

import math

#: Significant digits that every double keeps.
_SAFE_DIGITS = 15


def without_rounding_noise(value: float) -> float:
    """The nearest number of fifteen digits where it is as good as the same: 3977.18 for 3977.1800000000003."""
    short = float(f"{value:.{_SAFE_DIGITS}g}")
    return short if abs(short - value) <= 2.0 * math.ulp(value) else value


def shortest(value: float) -> str:
    """The shortest text for a number, without noise of rounding, and without a decimal point where there is nothing behind it."""
    if isinstance(value, int):
        return str(value)
    text = repr(without_rounding_noise(float(value)))
    return text[:-2] if text.endswith(".0") else text
