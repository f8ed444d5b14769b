"""Some of many, evenly spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evenly_spread(size: int, most: int) -> NDArray[np.intp]:
    """Positions out of ``size``: all of them, or ``most``, the first and the last among them."""
    return np.linspace(0, size - 1, min(size, most)).astype(np.intp)
