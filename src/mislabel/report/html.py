"""The page itself: content, style and script in one file that asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from mislabel.estimators.one_call import Audit
from mislabel.report.content import Source, report_content


def render_page(content: dict[str, Any]) -> str:
    """One self-contained HTML page; nothing in ``content`` can become markup or script."""
    folder = files("mislabel.report") / "page"
    template, style, script = (
        (folder / name).read_text(encoding="utf-8") for name in ("page.html", "style.css", "review.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    parts = {"style": style, "script": script, "script-hash": f"sha256-{digest}", "content": _embedded(content)}
    page = []
    for number, piece in enumerate(template.split("%%")):
        page.append(parts[piece] if number % 2 else piece)
    return "".join(page)


def _embedded(content: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", errors="replace").decode("utf-8")


def write_report(audit: Audit, source: Source, path: str | Path) -> Path:
    """Write the review page of an audit."""
    path = Path(path)
    path.write_text(render_page(report_content(audit, source)), encoding="utf-8")
    return path
