"""The review page in a real browser."""

import json

import numpy as np
import pandas as pd
import pytest

from mislabel.cli import main
from mislabel.report.content import _packed
from mislabel.report.html import render_page

from .pages import Page
from .tables import content_of


@pytest.fixture
def page(browser, audited):
    opened = Page(browser, audited / "report.html")
    yield opened
    opened.context.close()
    assert opened.complaints == []


def test_loads_and_tells_what_was_found(page, hostile_file):
    words = page.page.inner_text("#words")
    assert "of 90 labels look wrong at a false discovery rate of 5 %" in words
    assert "label = 10 x expected" in page.page.inner_text("#patterns")
    assert page.page.title() == "label: label audit"
    assert len(page.rows()) >= 6
    assert page.page.locator("#histogram svg, #calibration svg").count() == 2
    assert page.page.locator("#features figure").count() >= 2


def test_nothing_hostile_runs_or_becomes_markup(page):
    for row in page.page.locator("tr.row").all():
        row.click()
    page.page.fill("#search", "script")
    page.page.wait_for_timeout(300)
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator("tr.row img, tr.row script, b").count() == 0
    assert any("<script>" in row for row in page.rows())


def test_long_cells_are_cut_and_the_page_stays_small(audited):
    text = (audited / "report.html").read_text(encoding="utf-8")
    assert len(text) < 1_000_000 + 1_000_000 + 200_000  # the page, the one long cell for the export, and some
    assert "L" * 1000 in text.split('"cells"')[1]
    assert "L" * 1000 not in text.split('"cells"')[0]


def test_sorting(page):
    page.page.select_option("#view", "all")
    page.page.click("#head button:has-text('Label')")
    labels = [float(text) for text in page.page.locator("tr.row > td[data-name=Label]").all_inner_texts()]
    assert labels == sorted(labels)
    assert page.page.get_attribute("#head th:has-text('Label')", "aria-sort") == "ascending"
    page.page.click("#head button:has-text('Label')")
    labels = [float(text) for text in page.page.locator("tr.row > td[data-name=Label]").all_inner_texts()]
    assert labels == sorted(labels, reverse=True)
    assert "2" in page.page.inner_text("#page")


def test_filter_and_search(page):
    page.page.select_option("#view", "all")
    assert "90 rows" in page.page.inner_text("#page")
    page.page.fill("#search", "id7")
    page.page.locator("#page", has_text="11 rows").wait_for()
    page.page.fill("#search", "no such thing")
    page.page.wait_for_selector("text=No rows match.")
    page.page.fill("#search", "")
    page.page.select_option("#view", "pattern0")
    page.page.wait_for_timeout(200)
    assert len(page.rows()) == 6


def test_keyboard_review_survives_a_reload_and_undoes(page):
    keys = page.page.keyboard
    page.page.locator("tr.row").first.click()
    # Accepting goes on to the next row by itself.
    keys.press("a")
    keys.press("k")
    keys.press("ArrowDown")
    keys.press("d")
    keys.press("ArrowDown")
    keys.press("e")
    keys.type("12.5")
    keys.press("Enter")
    keys.press("n")
    keys.type("typed <i>by hand</i>")
    keys.press("Enter")
    before = page.verdicts()[:5]
    assert before[0].startswith("accepted")
    assert before[1:4] == ["keep", "drop", "edited: 12.5 (note)"]
    assert "4 of" in page.page.inner_text("#progress")
    keys.press("u")
    assert page.verdicts()[3] == "edited: 12.5"
    page.open()
    assert page.verdicts()[:3] == before[:3]
    assert page.verdicts()[3] == "edited: 12.5"
    page.page.locator("tr.row").nth(3).click()
    keys.press("e")
    page.page.fill("#edit", "twelve")
    keys.press("Enter")
    assert page.verdicts()[3] == "edited: 12.5"
    assert "not a number" in page.page.inner_text("#live")
    assert "not a number" in page.page.inner_text("#edit-problem")
    keys.press("Escape")
    keys.press("d")
    assert page.verdicts()[3] == "drop"
    keys.press("Control+z")
    assert page.verdicts()[3] == "edited: 12.5"


def test_exported_decisions_make_the_cleaned_file(page, hostile_file, tmp_path):
    source, wrong, frame = hostile_file
    page.page.click("#patterns button:has-text('Accept all 6')")
    page.page.click("#confirm-write")
    page.page.locator("tr.row").first.click()
    page.page.keyboard.press("d")
    decisions = page.download("#export-decisions", tmp_path)
    cleaned = page.download("#export-clean", tmp_path)
    assert decisions.name == "decisions.json"
    content = json.loads(decisions.read_text())
    assert {item["position"] for item in content["decisions"]} == wrong
    dropped = [item["position"] for item in content["decisions"] if item["action"] == "drop"]
    assert len(dropped) == 1
    target = tmp_path / "applied.csv"
    assert main(["apply", str(source), str(decisions), "-o", str(target), "--quiet"]) == 0
    assert target.read_bytes() == cleaned.read_bytes()
    applied = pd.read_csv(target)
    expected = frame.drop(index=dropped)
    expected.loc[[k for k in wrong if k not in dropped], "label"] /= 10
    assert applied["id"].tolist() == expected["id"].tolist()
    np.testing.assert_allclose(applied["label"], expected["label"], rtol=1e-9)


def test_detail_shows_features_and_trusted_neighbours(page, hostile_file):
    _, wrong, frame = hostile_file
    page.page.fill("#search", "cmd")
    page.page.locator("#page", has_text="1 row,").wait_for()
    page.page.locator("tr.row").first.click()
    detail = page.page.inner_text("tr.detail")
    assert "x, with comma" in detail
    near = page.page.locator("tr.detail tbody th").all_inner_texts()
    assert len(near) == 5
    bad = {frame["id"][k] for k in wrong}
    assert not bad & set(near)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens_need_no_sideways_scrolling(browser, audited, scheme):
    # 1280 pixels at 400 % zoom.
    narrow = Page(browser, audited / "report.html", viewport={"width": 320, "height": 640}, color_scheme=scheme)
    narrow.page.locator("tr.row").first.click()
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 320
    background = narrow.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    narrow.page.click("#theme")
    assert narrow.page.evaluate("getComputedStyle(document.body).backgroundColor") != background
    narrow.context.close()
    assert narrow.complaints == []


def test_names_and_roles_for_screen_readers(page):
    page.page.locator("tr.row").first.click()
    unnamed = page.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, canvas, svg')].filter((element) =>
            !(element.textContent.trim() || element.getAttribute('aria-label') || element.labels?.length))
            .map((element) => element.outerHTML)"""
    )
    assert unnamed == []
    assert page.page.locator("th[scope=col]").count() >= 8
    assert page.page.locator("h1").count() == 1
    assert page.page.get_attribute("html", "lang") == "en"
    assert page.page.get_attribute("#live", "aria-live") == "polite"


def test_a_hundred_thousand_rows(browser, audited, tmp_path):
    content = content_of(audited / "report.html")
    rng = np.random.default_rng(0)
    size = 100_000
    label = rng.normal(size=size)
    content["file"]["rows"] = size
    content["cells"] = None
    content["ids"] = [f"row {k}" for k in range(size)]
    z = np.sort(np.abs(rng.normal(size=size)))[::-1]
    content["rows"] = {
        "position": _packed(rng.permutation(size), "<i4"),
        "label": _packed(label, "<f8"),
        "expected": _packed(label + 0.1 * z, "<f8"),
        "half": _packed(np.full(size, 0.2), "<f8"),
        "suggested": _packed(label, "<f8"),
        "z": _packed(z, "<f4"),
        "q": _packed(np.linspace(0, 1, size), "<f4"),
        "suspect": _packed(np.arange(size) < 2000, "u1"),
        "detectable": _packed(np.full(size, 0.5), "<f4"),
    }
    path = tmp_path / "large.html"
    path.write_text(render_page(content), encoding="utf-8")
    large = Page(browser, path)
    assert "2,000 rows" in large.page.inner_text("#page")
    large.page.select_option("#view", "all")
    large.page.click("#head button:has-text('Label')")
    labels = [float(value) for value in large.page.locator("tr.row > td[data-name=Label]").all_inner_texts()]
    assert len(labels) == 50
    assert labels == sorted(labels)
    large.page.fill("#search", "row 99999")
    large.page.locator("#page", has_text="1 row,").wait_for()
    large.page.locator("tr.row").first.click()
    large.page.keyboard.press("d")
    cleaned = large.download("#export-clean", tmp_path)
    assert len(cleaned.read_text().splitlines()) == size
    large.context.close()
    assert large.complaints == []
