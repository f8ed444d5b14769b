"""Make the screenshots of the review page: python docs/make_screenshots.py

Needs chromium and the test extra (playwright). The page is that of ``mislabel demo``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from mislabel.cli import main as mislabel

IMAGES = Path(__file__).parent / "images"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main() -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        mislabel(["demo", "--out", folder, "--quiet"])
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        for name, scheme, section, height in (
            ("report-top", "light", "#title", 860),
            ("report-review", "light", "#review", 1200),
            ("report-dark", "dark", "#title", 860),
        ):
            context = browser.new_context(viewport={"width": 1200, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto((Path(folder) / "report.html").as_uri())
            page.wait_for_selector("html[data-ready]")
            if section == "#review":
                page.locator("tr.row").nth(1).click()
                page.keyboard.press("a")
                page.evaluate("document.querySelector('#review').scrollIntoView()")
            page.wait_for_timeout(300)
            page.screenshot(path=IMAGES / f"{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
