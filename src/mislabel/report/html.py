"""The page itself: content, style and script in one file that asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from mislabel._common.atomic_files import atomic_write
from mislabel.errors import ResultsError
from mislabel.report.content import CONTENT_FORMAT, Source, report_content
from mislabel.report.findings import Findings

#: Joined into one script, in this order.
_SCRIPTS = (
    "elements.js",
    "numbers.js",
    "page_data.js",
    "axes.js",
    "decisions.js",
    "served.js",
    "exports.js",
    "certificate.js",
    "verdicts.js",
    "bulk.js",
    "opening.js",
    "pictures.js",
    "row_picture.js",
    "detail.js",
    "review.js",
    "groups.js",
)
#: How many levels of the content are written entry by entry, so that a large page is never held in one piece.
_LEVELS = 2
#: What stands around the data in a page.
_START, _END = '<script type="application/json" id="content">', "</script>"
_SURROGATES = re.compile("[\ud800-\udfff]")


def render_page(content: dict[str, Any]) -> str:
    """One self-contained HTML page; nothing in ``content`` can become markup or script. With ``served`` it saves decisions."""
    return "".join(_pieces(content))


def write_report(audit: Findings, source: Source, path: str | Path) -> Path:
    """Write the review page of an audit."""
    path = Path(path)
    with atomic_write(path) as file:
        file.writelines(piece.encode("utf-8") for piece in _pieces(report_content(audit, source)))
    return path


def _pieces(content: dict[str, Any]) -> Iterator[str]:
    template, style, script = _read("page.html"), _read("style.css"), _script()
    parts = {"style": style, "script": script, "policy": policy(served="served" in content)}
    for number, piece in enumerate(template.split("%%")):
        if number % 2 == 0:
            yield piece
        elif piece == "content":
            yield from _embedded(content, _LEVELS)
        else:
            yield parts[piece]


@cache
def _read(name: str) -> str:
    return (files("mislabel.report") / "page" / name).read_text(encoding="utf-8")


def _script() -> str:
    return "\n".join(_read(name) for name in _SCRIPTS)


def policy(*, served: bool) -> str:
    """What the page is allowed: its own style and script, and to ask whoever served it; a file may ask nobody."""
    digest = base64.b64encode(hashlib.sha256(_script().encode("utf-8")).digest()).decode("ascii")
    asked = "'self'" if served else "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data: blob:; "
        f"connect-src {asked}; base-uri 'none'; form-action 'none'"
    )


def read_content(path: Path) -> dict[str, Any]:
    """The data inside a page that was written before; of its markup and script nothing is taken."""
    try:
        text = path.read_text(encoding="utf-8").partition(_START)[2].partition(_END)[0]
        content = json.loads(text)
        found = content["format"] if isinstance(content, dict) else None
    except (ValueError, KeyError, RecursionError):
        found = None
    if found != CONTENT_FORMAT:
        raise ResultsError(f"{path} was not written by this version of mislabel: audit the file again.")
    return dict(content)


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
