"""Print the lowest versions that pyproject.toml promises, as constraints for pip: ``python .ci/lowest.py tables plot``.

Bounds of the core are always printed; those of extras where they are named.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*(\[[^\]]*\])?\s*(?P<bounds>[^;]*)")
LOWER_BOUND = re.compile(r">=\s*([0-9][^\s,]*)")


def pinned(requirement: str) -> str:
    """The requirement at its lower bound: ``numpy>=1.26,<3`` is ``numpy==1.26``."""
    parts = REQUIREMENT.match(requirement)
    bound = LOWER_BOUND.search(parts["bounds"]) if parts else None
    if parts is None or bound is None:
        raise SystemExit(f"{requirement!r} has no lower bound: write one in pyproject.toml, like 'numpy>=1.26'.")
    return f"{parts['name']}=={bound[1]}"


def constraints(extras: list[str], project: Path = PROJECT) -> list[str]:
    """One line for each requirement of the core and of the extras."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    optional = table["optional-dependencies"]
    unknown = [extra for extra in extras if extra not in optional]
    if unknown:
        raise SystemExit(f"no such extra: {', '.join(unknown)}; pyproject.toml has {', '.join(optional)}.")
    requirements = table["dependencies"] + [requirement for extra in extras for requirement in optional[extra]]
    return [pinned(requirement) for requirement in requirements]


if __name__ == "__main__":
    sys.stdout.write("\n".join(constraints(sys.argv[1:])) + "\n")
