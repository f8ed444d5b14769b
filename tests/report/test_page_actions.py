"""Every action of the page by mouse and by key, as a file and served, on a wide screen and at 400 % zoom."""

import threading

import pytest

from mislabel.report.server import ReviewServer

from .pages import Address, Page, Served, made_up, written

SIZE = 120
WIDE, ZOOMED = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
PATTERN = {"words": "label = 10 x expected", "ranks": [0, 1, 2], "byAccident": 0.0, "certainty": "certain"}


@pytest.fixture(params=["file", "served"])
def opened(request, browser, tmp_path):
    """Open a page of many rows on a screen; nothing may be complained of, and a served page must have saved."""
    pages, ending = [], []
    path = written(tmp_path / "report.html", made_up(SIZE, patterns=[PATTERN]))

    def open_page(screen):
        options = {"viewport": screen, "accept_downloads": True}
        if request.param == "file":
            page = Page(None, path, context=browser.new_context(**options))
        else:
            server = ReviewServer(tmp_path)
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            ending.append((server, thread))
            page = Served(None, Address(server.url), context=browser.new_context(**options))
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        if request.param == "served":
            page.saved()
        assert page.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        page.context.close()
    for server, thread in ending:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [page.complaints for page in pages] == [[] for _ in pages]


def told(page):
    return page.page.inner_text("#live")


@pytest.mark.parametrize("screen", [WIDE, ZOOMED], ids=["wide", "zoomed"])
def test_every_button_does_what_it_says(opened, screen, tmp_path):
    page = opened(screen)
    view = page.page
    view.uncheck("#advance")
    assert told(page) == "Accepting stays on its row."
    view.locator("tr.row").nth(3).click()
    click = lambda name: view.click(f"tr.detail [data-action={name}]")  # noqa: E731
    verdict = lambda: view.inner_text("tr.current .verdict")  # noqa: E731
    click("accept")
    assert verdict() == "accepted: 103.5"
    click("keep")
    assert verdict() == "keep"
    click("drop")
    assert verdict() == "drop"
    view.fill("#edit", "7.25")
    click("edit")
    assert verdict() == "edited: 7.25"
    view.fill("#note", "typed")
    click("note")
    assert verdict() == "edited: 7.25 (note)"
    click("clear")
    assert verdict() == ""
    view.click("#undo")
    assert verdict() == "edited: 7.25 (note)"
    view.check("#advance")
    click("accept")
    assert view.locator("tr.current > th").inner_text() == "row-4!"
    # A click on the row closes it and opens it again.
    view.locator("tr.current > th").click()
    assert view.locator("tr.detail").count() == 0
    view.locator("tr.current > th").click()
    assert view.locator("tr.detail").count() == 1
    view.click("#sample-next")
    assert "next of the random sample" in told(page)
    assert page.decisions(tmp_path)[3]["value"] == 103.5


@pytest.mark.parametrize("screen", [WIDE, ZOOMED], ids=["wide", "zoomed"])
def test_everything_can_be_done_by_keyboard(opened, screen):
    page = opened(screen)
    view, press = page.page, page.page.keyboard.press
    view.locator("tr.row").first.focus()
    press("ArrowDown")
    press("Enter")
    view.wait_for_selector("tr.detail")
    press("ArrowDown")
    press("ArrowUp")
    press("a")
    press("k")
    assert "label kept" in told(page)
    press("d")
    assert "will be dropped" in told(page)
    press("e")
    page.page.keyboard.type("12,5")
    press("Enter")
    assert view.get_attribute("#edit", "aria-invalid") == "true"
    assert view.inner_text("#edit-problem") == told(page)
    press("Control+a")
    page.page.keyboard.type("12.5")
    press("Enter")
    press("n")
    page.page.keyboard.type("why")
    press("Enter")
    assert view.inner_text("tr.current .verdict") == "edited: 12.5 (note)"
    press("u")
    press("Control+z")
    assert view.inner_text("tr.current .verdict") == "drop"
    press("s")
    assert "next of the random sample" in told(page)
    press("/")
    page.page.keyboard.type("row-77!")
    view.locator("#page", has_text="0 rows").wait_for()
    press("Escape")
    assert view.evaluate("document.activeElement === document.body")
    # What a screen reader comes to with the tabulator has a name and a role.
    names = view.evaluate(
        """() => [...document.querySelectorAll('button, input, select, [tabindex="0"]')].filter((element) => element.offsetParent)
            .map((element) => [element.tagName, element.textContent.trim() || element.labels?.[0]?.textContent.trim()
                || element.getAttribute('aria-label') || element.getAttribute('aria-labelledby')])"""
    )
    assert [tag for tag, name in names if not name] == []


@pytest.mark.parametrize("screen", [WIDE, ZOOMED], ids=["wide", "zoomed"])
def test_views_pages_patterns_and_pictures(opened, screen):
    page = opened(screen)
    view = page.page
    for name, rows in (("undecided", 8), ("decided", 0), ("all", SIZE), ("pattern0", 3), ("suspects", 8)):
        view.select_option("#view", name)
        assert told(page) == f"{rows} rows shown."
    view.select_option("#view", "all")
    view.click("#next")
    assert "page 2 of 3" in told(page)
    view.click("#next")
    assert view.is_disabled("#next")
    view.click("#previous")
    assert len(page.rows()) == 50
    view.click("#patterns button:has-text('Show')")
    assert len(page.rows()) == 3
    view.click("#patterns button:has-text('Accept all 3')")
    view.click("#confirm-cancel")
    assert told(page) == "Nothing was written."
    view.click("#patterns button:has-text('Accept all 3')")
    view.keyboard.press("Escape")
    view.click("#patterns button:has-text('Accept all 3')")
    view.click("#confirm-write")
    assert "3 rows: correction accepted." in told(page)
    view.click("#undo")
    assert page.n_decided() == 0
    # A click on the picture opens the nearest row.
    box = view.locator("#scatter").bounding_box()
    view.locator("#scatter").click(position={"x": box["width"] / 2 + 20, "y": (box["height"] - 28) / 2})
    assert view.locator("tr.current").count() == 1
    background = "getComputedStyle(document.body).backgroundColor"
    before = view.evaluate(background)
    view.click("#theme")
    assert view.evaluate(background) != before


def test_the_skip_link_leads_to_the_table(opened):
    page = opened(WIDE)
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.className") == "skip"
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "review"
