"""Time until the review page of a large table can be used, in chromium.

    python benchmarks/report_page.py > benchmarks/report_page.txt

The page of an audit of 1,000 rows, its rows replaced by as many as asked for, with ids, 2 % of them suspects. Times are from opening the file until its
table, pictures and keyboard work, then for sorting all rows by label.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright

from mislabel import audit
from mislabel.report.content import Source, _packed, report_content
from mislabel.report.html import render_page

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 20_000, 100_000])
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(1000, 4)), columns=list("abcd")).assign(id=[f"row {k}" for k in range(1000)])
    frame["y"] = np.sin(3 * frame["a"]) + frame["b"] + 0.05 * rng.normal(size=1000)
    frame.loc[:19, "y"] += rng.normal(0, 2, 20)
    content = report_content(audit(frame, "y", id="id", mean="none", rank=None).findings, Source("table.csv", "0" * 64))
    for size in options.rows:
        content["file"]["rows"] = size
        content["ids"] = [f"row {k}" for k in range(size)]
        content["rows"] = rows_of(size, rng)
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
            path = Path(folder) / "report.html"
            path.write_text(render_page(content), encoding="utf-8")
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]")
            ready = time.perf_counter() - start
            page.select_option("#view", "all")
            start = time.perf_counter()
            page.click("#head button:has-text('Label')")
            page.wait_for_selector("#head th[aria-sort=ascending]:has-text('Label')")
            sort = time.perf_counter() - start
            size_mb = path.stat().st_size / 1e6
            print(
                f"{size:7d} rows: page of {size_mb:.2f} MB ready in {ready:.2f} s, all rows sorted in {sort:.2f} s",
                flush=True,
            )
            browser.close()


def rows_of(size, rng):
    label = rng.normal(size=size)
    z = np.sort(np.abs(rng.normal(size=size)))[::-1]
    return {
        "position": _packed(rng.permutation(size), "<i4"),
        "label": _packed(label, "<f8"),
        "expected": _packed(label + 0.1 * z, "<f8"),
        "half": _packed(np.full(size, 0.2), "<f8"),
        "suggested": _packed(label, "<f8"),
        "z": _packed(z, "<f4"),
        "q": _packed(np.linspace(0, 1, size), "<f4"),
        "suspect": _packed(np.arange(size) < size // 50, "u1"),
        "detectable": _packed(np.full(size, 0.5), "<f4"),
    }


if __name__ == "__main__":
    main()
