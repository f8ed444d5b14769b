"""What all reproductions share: claims that are checked, results as files that say which code made them, pictures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from mislabel._common.atomic_files import atomic_write
from mislabel._common.version import __version__
from mislabel.errors import MissingDependencyError


def claim(words: str, holds: Any) -> dict[str, Any]:
    """A sentence of the paper (or of ours), and whether the numbers bear it out."""
    return {"claim": words, "holds": bool(holds)}


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write a result as JSON, whole or not at all."""
    write_text(path, json.dumps({**result, "made_by": made_by()}, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())


def draw(path: Path, fill: Callable[..., None], *what: Any, columns: int) -> None:
    """One picture of several panels side by side."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install matplotlib.") from None
    figure = Figure(figsize=(4.2 * columns, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    fill(figure.subplots(1, columns), *what)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


@cache
def made_by() -> str:
    """Version of the package and, in a checkout, its commit (with a plus where files differ from it)."""
    folder = Path(__file__).resolve().parent
    try:
        commit = _git(folder, "rev-parse", "--short=10", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", str(folder.parent))
    except (OSError, subprocess.SubprocessError):
        return f"mislabel {__version__}"
    return f"mislabel {__version__}, commit {commit}{'+' if changed else ''}"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()
