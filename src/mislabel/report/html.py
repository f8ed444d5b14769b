"""The page itself: content, style and script in one file that asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from mislabel._common.atomic_files import atomic_write
from mislabel.report.content import Source, report_content
from mislabel.report.findings import Findings

#: Joined into one script, in this order.
_SCRIPTS = ("numbers.js", "decisions.js", "exports.js", "certificate.js", "pictures.js", "review.js")
#: How many levels of the content are written entry by entry, so that a large page is never held in one piece.
_LEVELS = 2
_SURROGATES = re.compile("[\ud800-\udfff]")


def render_page(content: dict[str, Any]) -> str:
    """One self-contained HTML page; nothing in ``content`` can become markup or script."""
    return "".join(_pieces(content))


def write_report(audit: Findings, source: Source, path: str | Path) -> Path:
    """Write the review page of an audit."""
    path = Path(path)
    with atomic_write(path) as file:
        file.writelines(piece.encode("utf-8") for piece in _pieces(report_content(audit, source)))
    return path


def _pieces(content: dict[str, Any]) -> Iterator[str]:
    folder = files("mislabel.report") / "page"
    template, style, *scripts = (
        (folder / name).read_text(encoding="utf-8") for name in ("page.html", "style.css", *_SCRIPTS)
    )
    script = "\n".join(scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    parts = {"style": style, "script": script, "script-hash": f"sha256-{digest}"}
    for number, piece in enumerate(template.split("%%")):
        if number % 2 == 0:
            yield piece
        elif piece == "content":
            yield from _embedded(content, _LEVELS)
        else:
            yield parts[piece]


def _embedded(content: Any, levels: int) -> Iterator[str]:
    """JSON that cannot end the script element it stands in."""
    if levels and isinstance(content, dict):
        yield "{"
        for number, (name, value) in enumerate(content.items()):
            yield f"{',' if number else ''}{_json(name)}:"
            yield from _embedded(value, levels - 1)
        yield "}"
    else:
        yield _json(content)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # Half of a character cannot be written as UTF-8, but JSON has a notation for it.
    return _SURROGATES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
