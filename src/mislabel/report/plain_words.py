"""Numbers, names and counts in sentences."""

from __future__ import annotations

import math
from typing import Any

_LONGEST_NAME = 60


def plain_text(value: Any, longest: int = _LONGEST_NAME) -> str:
    """Text from a stranger's file, safe on a terminal: no control or direction characters, one line, not too long."""
    text = "".join(c if c.isprintable() and not _directs(c) else f"\\x{ord(c):02x}" for c in str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _directs(character: str) -> bool:
    return character in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def number(value: float, digits: int = 4, decimal: str = ".") -> str:
    """A number for people: a few digits, no exponent where it can be helped, with the decimal mark of their file."""
    if not math.isfinite(value):
        return "missing"
    if value == 0.0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -4 <= size < 7:
        text = f"{value:.{max(digits - 1 - size, 0)}f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text).replace(".", decimal)
    return f"{value:.{digits - 1}e}".replace(".", decimal)


def percent(fraction: float) -> str:
    """A fraction as a percentage."""
    return f"{100 * fraction:.3g} %"


def count(size: int, noun: str) -> str:
    """``1,030 labels``."""
    return f"{size:,} {noun}{'' if size == 1 else 's'}"
