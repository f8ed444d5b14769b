"""What the page makes of earlier decisions, and what it exports so that later audits know its own."""

import json

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.report.content import report_content
from mislabel.report.html import render_page

from .pages import Page

WRONG = (3, 14, 25, 36, 47)
QUICK = {"mean": "none", "label_transform": "none", "row_noise": "none"}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    x = np.round(rng.uniform(-2, 2, 80), 4)
    y = np.round(2 * x + 0.05 * rng.normal(size=80), 3)
    y[list(WRONG)] = np.round(y[list(WRONG)] + 3.0, 3)
    y[60] = np.nan
    return pd.DataFrame({"x": x, "y": y})


@pytest.fixture
def opened(browser, tmp_path, frame):
    pages = []

    def open_page(name, **options):
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False)
        found = audit(path, "y", **options, **QUICK)
        found.report(tmp_path / name)
        pages.append(Page(browser, tmp_path / name))
        return found, pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
        assert page.complaints == []


def decide(page, position, key):
    row = page.page.locator("tr.row", has=page.page.get_by_role("rowheader", name=str(position), exact=True))
    row.click()
    page.page.keyboard.press(key)


def test_exported_decisions_are_those_that_python_would_make(opened, tmp_path):
    found, page = opened("first.html")
    for position, key in zip(WRONG, "akdak", strict=True):
        decide(page, position, key)
    page.page.fill("#reviewer", "  Anna\tB. ")
    exported = page.exported(tmp_path)
    made = found.decisions
    assert exported["reviewer"] == "Anna B."
    assert exported["exported"].endswith("Z")
    for name in ("format", "file", "label", "id", "content", "audit"):
        assert exported[name] == made[name], name
    own = {entry["position"]: entry for entry in made["decisions"]}
    for entry in exported["decisions"]:
        assert entry["content"] == own[entry["position"]]["content"]
        assert entry["evidence"].keys() == own[entry["position"]]["evidence"].keys()
        for name, value in entry["evidence"].items():
            assert value == pytest.approx(own[entry["position"]]["evidence"][name], rel=1e-5, abs=1e-12)


def test_rows_decided_earlier_are_not_asked_for_and_exported_with_the_others(opened, tmp_path):
    _, page = opened("first.html")
    for position, key in zip(WRONG, "akdak", strict=True):
        decide(page, position, key)
    page.page.fill("#reviewer", "Anna")
    path = tmp_path / "anna.json"
    path.write_text(json.dumps(page.exported(tmp_path)))
    found, again = opened("again.html", decisions=path)
    assert "5 labels were decided earlier" in again.page.inner_text("#words")
    again.page.select_option("#view", "suspects")
    assert again.rows() == ["60"]  # whose label is missing
    decide(again, 60, "a")
    later = again.exported(tmp_path)
    told = {entry["position"]: entry for entry in later["decisions"]}
    assert set(told) == {*WRONG, 60}
    assert [told[position]["action"] for position in WRONG] == ["accept", "keep", "drop", "accept", "keep"]
    assert {told[position]["reviewer"] for position in WRONG} == {"Anna"}
    assert all(len(entry["content"]) == 16 for entry in told.values())
    # The cleaned table holds all of them.
    lines = again.download("#export-clean", tmp_path).read_text().splitlines()
    assert len(lines) == 80
    assert f",{told[3]['value']:g}" in lines[4]
    both = audit(tmp_path / "t.csv", "y", decisions=later, **QUICK)
    assert set(both.findings.remembered.decided) == {*WRONG, 60}


def test_rows_that_reviewers_differ_about_are_asked_for(opened, tmp_path):
    found, _ = opened("first.html")
    one, other = (json.loads(json.dumps(found.decisions)) for _ in range(2))
    for entries, action in ((one["decisions"], "keep"), (other["decisions"], "drop")):
        for entry in entries:
            entry.update(action=action if entry["position"] == 3 else "keep", value=None, reviewed=True)
    _, page = opened("again.html", decisions=[one, other])
    assert "Reviewers differ about 1 row" in page.page.inner_text("#words")
    page.page.select_option("#view", "undecided")
    assert set(page.rows()) == {"3", "60"}
    row = page.page.locator("tr.row", has=page.page.get_by_role("rowheader", name="3", exact=True))
    assert "decide again" in row.inner_text()


def test_a_page_without_earlier_decisions_says_nothing_of_them(frame):
    found = audit(frame, "y", **QUICK)
    content = report_content(found.findings, found.source)
    assert (content["earlier"], content["again"]) == ([], [])
    assert "earlier" not in " ".join(content["words"])
    assert render_page(content)
