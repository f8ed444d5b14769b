"""Which code made a result."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def made_by() -> str:
    """Version of the package and, in a checkout, its commit (with a plus where files differ from it)."""
    from mislabel import __version__

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
