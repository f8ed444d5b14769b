"""What all reproductions share: claims that are checked, results as files, pictures."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mislabel.errors import MissingDependencyError
from mislabel.reproduce.provenance import made_by


def claim(words: str, holds: Any) -> dict[str, Any]:
    """A sentence of the paper (or of ours), and whether the numbers bear it out."""
    return {"claim": words, "holds": bool(holds)}


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write a result as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps({**result, "made_by": made_by()}, indent=1) + "\n")
    os.replace(unfinished, path)


def draw(path: Path, fill: Callable[..., None], *what: Any, columns: int, rows: int = 1) -> None:
    """One picture of several panels."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install 'mislabel[plot]'.") from None
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    fill(axes[0] if rows == 1 else axes, *what)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
