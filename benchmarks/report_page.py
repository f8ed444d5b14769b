"""Time until the review page of a large table can be used, in chromium.

    python benchmarks/report_page.py > benchmarks/report_page.txt

The page holds ``rows`` labels with ids, 2 % of them suspects with features and neighbours; times are from opening the file until its table, pictures and
keyboard work, then for sorting all rows by label, and the size of the file.
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

from mislabel.estimators.one_call import audit_table_of
from mislabel.report.content import Source
from mislabel.report.html import write_report

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 20_000, 100_000])
    options = parser.parse_args()
    for size in options.rows:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.uniform(size=(size, 4)), columns=list("abcd")).assign(id=[f"row {k}" for k in range(size)])
        frame["y"] = np.sin(3 * frame["a"]) + frame["b"] + 0.05 * rng.normal(size=size)
        wrong = rng.permutation(size)[: size // 50]
        frame.loc[wrong, "y"] += rng.normal(0, 2, wrong.size)
        audit = audit_table_of(frame, "y", id="id", rank=None if size <= 2000 else 64)
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
            path = write_report(audit, Source("table.csv", "0" * 64), Path(folder) / "report.html")
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
            print(
                f"{size:7d} rows, {audit.n_suspects:5d} suspects: page of {path.stat().st_size / 1e6:.2f} MB ready in {ready:.2f} s, "
                f"all rows sorted in {sort:.2f} s",
                flush=True,
            )
            browser.close()


if __name__ == "__main__":
    main()
