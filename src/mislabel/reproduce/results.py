"""What all reproductions share: claims that are checked, results as files, pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mislabel.atomic_files import atomic_write
from mislabel.errors import MissingDependencyError, ResultsError
from mislabel.reproduce.provenance import made_by


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


def read_result(path: Path) -> dict[str, Any] | None:
    """A result that was written, None where there is none."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ResultsError(f"{path} is damaged, it is no result: delete it to have it computed again.")
    return found


def disagreement(stored: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """What a stored result says about itself that is not what is wanted, in words; None where all agrees.

    Results of older versions do not say what they were made from, except for the number of molecules.
    """
    for name, value in json.loads(json.dumps(wanted)).items():
        if isinstance(value, dict):
            inner = disagreement(stored[name], value) if name in stored else None
            if inner is not None:
                return inner
        elif stored.get(name) != value:
            return f"{name} {stored.get(name)} instead of {value}"
    return None


def another_run(out: Path, path: Path, difference: str) -> ResultsError:
    """The error for a folder that holds results of something else."""
    return ResultsError(
        f"{out} holds results of another run: {path.relative_to(out)} has {difference}. Nothing was changed; choose another "
        "folder with --out, or delete the old results."
    )


def draw(path: Path, fill: Callable[..., None], *what: Any, columns: int, rows: int = 1) -> None:
    """One picture of several panels."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install matplotlib.") from None
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    fill(axes[0] if rows == 1 else axes, *what)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lstrip("."), metadata={"Date": None} if path.suffix == ".svg" else None)
