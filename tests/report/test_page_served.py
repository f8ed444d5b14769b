"""The page as the local server shows it: every decision is saved beside it, and nothing of other tabs is lost."""

import json
import threading

import numpy as np
import pytest

from mislabel.data.corrections import read_decisions
from mislabel.report.server import ReviewServer

from .pages import Address, Served, made_up, written

SIZE = 20
CONFLICT = "409 (Conflict)"


@pytest.fixture
def served(browser, tmp_path):
    """Serve a made-up page and open it in tabs of one browser."""
    context = browser.new_context(accept_downloads=True)
    servers, pages = [], []

    def serve(**content):
        written(tmp_path / "report.html", made_up(SIZE, **content))
        server = ReviewServer(tmp_path)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return server

    def open_page(server):
        pages.append(Served(None, Address(server.url), context=context))
        return pages[-1]

    serve.open = open_page
    yield serve
    context.close()
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [page.complaints for page in pages] == [[] for _ in pages]


def kept(folder):
    return {item["position"]: item for item in json.loads((folder / "decisions.json").read_text())["decisions"]}


def decide(page, position, *keys):
    page.find(position)
    for key in keys:
        page.page.keyboard.press(key)


def test_every_action_is_saved_at_once(served, tmp_path):
    page = served.open(served())
    assert page.page.inner_text("#saved") == "All decisions are saved."
    assert not (tmp_path / "decisions.json").exists()
    assert str(tmp_path / "decisions.json") in page.page.inner_text("#kept")
    for position, keys in ((2, "a"), (3, "k"), (4, "d")):
        decide(page, position, keys)
        page.saved()
        assert position in kept(tmp_path)
    decide(page, 5, "e")
    page.page.fill("#edit", "12.5")
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("n")
    page.page.keyboard.type("seen")
    page.page.keyboard.press("Enter")
    page.saved()
    found = kept(tmp_path)
    assert {position: item["action"] for position, item in found.items()} == {
        2: "accept",
        3: "keep",
        4: "drop",
        5: "edit",
    }
    assert (found[2]["value"], found[5]["value"], found[5]["note"]) == (102.5, 12.5, "seen")
    page.page.keyboard.press("u")
    page.saved()
    assert kept(tmp_path)[5]["note"] == ""
    page.find(4)
    page.page.click("[data-action=clear]")
    page.saved()
    assert sorted(kept(tmp_path)) == [2, 3, 5]
    assert [decision.reviewed for decision in read_decisions(tmp_path / "decisions.json").decisions] == [True] * 3
    # What is saved says the same as what is exported.
    exported = page.decisions(tmp_path.parent)
    assert exported == {k: {name: item[name] for name in exported[k]} for k, item in kept(tmp_path).items()}


def test_a_later_review_goes_on_where_the_first_ended(served, tmp_path):
    page = served.open(served())
    decide(page, 2, "a")
    decide(page, 3, "k")
    page.saved()
    before = (tmp_path / "decisions.json").read_bytes()
    again = served.open(served())
    assert again.n_decided() == 2
    assert again.verdict(2) == "accepted: 102.5"
    assert again.page.inner_text("#notices") == ""
    assert (tmp_path / "decisions.json").read_bytes() == before
    decide(again, 4, "d")
    again.saved()
    assert (tmp_path / "decisions-1.json").read_bytes() == before
    assert sorted(kept(tmp_path)) == [2, 3, 4]


def test_an_exported_file_put_beside_the_page_is_taken_over(served, tmp_path):
    page = served.open(served())
    decide(page, 2, "a")
    page.saved()
    exported = page.download("#export-decisions", tmp_path.parent)
    (tmp_path / "decisions.json").write_bytes(exported.read_bytes())
    again = served.open(served())
    assert again.verdict(2) == "accepted: 102.5"
    assert again.page.inner_text("#notices") == ""


def test_decisions_of_an_earlier_audit_are_told(served, tmp_path):
    page = served.open(served())
    decide(page, 2, "a")
    page.saved()
    again = served.open(served(suggested=101.5 + np.arange(SIZE)))
    assert "1 decision from an earlier audit" in again.page.inner_text("#taken-over")
    assert again.verdict(2) == "accepted: 102.5 (earlier audit)"


def test_a_stale_save_is_refused_and_the_page_says_so(served, tmp_path):
    server = served()
    one, other = served.open(server), served.open(server)
    decide(other, 3, "d")
    decide(other, 4, "d")
    other.saved()
    # The first tab has seen nothing of that.
    decide(one, 2, "k")
    decide(one, 3, "k")
    one.saved()
    told = one.page.inner_text("#elsewhere")
    assert "were changed in another tab" in told
    assert "taken over" in told
    found = {position: item["action"] for position, item in kept(tmp_path).items()}
    assert (found[2], found[4]) == ("keep", "drop")
    assert found[3] == "keep"
    assert one.decisions(tmp_path.parent).keys() == {2, 3, 4}
    assert [complaint for page in (one, other) for complaint in page.complaints if CONFLICT not in complaint] == []
    one.complaints.clear()


def test_a_tab_that_is_looked_at_again_shows_what_others_decided(served):
    server = served()
    one, other = served.open(server), served.open(server)
    decide(other, 3, "d")
    other.saved()
    one.page.evaluate("window.dispatchEvent(new Event('focus'))")
    one.page.wait_for_selector("#elsewhere")
    assert one.verdict(3) == "drop"


def test_decisions_about_another_file_are_told_and_kept_under_another_name(served, tmp_path):
    foreign = {"format": "mislabel-decisions/1", "file": {"sha256": "1" * 64, "rows": 3}, "label": "y", "decisions": []}
    (tmp_path / "decisions.json").write_text(json.dumps(foreign))
    page = served.open(served())
    assert "about another file" in page.page.inner_text("#notices")
    decide(page, 2, "k")
    page.saved()
    assert json.loads((tmp_path / "decisions-1.json").read_text()) == foreign
    assert sorted(kept(tmp_path)) == [2]


def test_a_server_that_has_ended_is_told_and_nothing_is_lost(served, tmp_path):
    server = served()
    page = served.open(server)
    decide(page, 2, "k")
    page.saved()
    server.shutdown()
    server.server_close()
    decide(page, 3, "d")
    page.page.wait_for_selector("#storage")
    assert "does not answer" in page.page.inner_text("#storage")
    assert page.page.inner_text("#saved") == "Not saved."
    assert page.decisions(tmp_path.parent).keys() == {2, 3}
    page.complaints = [complaint for complaint in page.complaints if "ERR_CONNECTION" not in complaint]


def test_settings_are_remembered_beside_the_page(served, tmp_path):
    page = served.open(served())
    assert page.page.is_checked("#advance")
    page.page.uncheck("#advance")
    page.saved()
    again = served.open(served())
    assert not again.page.is_checked("#advance")
    decide(again, 2, "a")
    again.saved()
    assert read_decisions(tmp_path / "decisions.json").decisions[0].position == 2


def test_accepting_a_pattern_is_saved(served, tmp_path):
    pattern = {"words": "label = 10 x expected", "ranks": [0, 1, 2], "byAccident": 0.0, "certainty": "certain"}
    page = served.open(served(patterns=[pattern]))
    page.page.click("#patterns button:has-text('Accept all 3')")
    page.page.click("#confirm-write")
    page.saved()
    assert [(position, item["reviewed"]) for position, item in kept(tmp_path).items()] == [
        (0, False),
        (1, False),
        (2, False),
    ]


def test_narrow_screens_and_keyboard(served, browser, tmp_path):
    server = served()
    # 1280 pixels at 400 % zoom.
    context = browser.new_context(viewport={"width": 320, "height": 640})
    page = Served(None, Address(server.url), context=context)
    page.page.locator("tr.row").first.focus()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("tr.detail")
    page.page.keyboard.press("a")
    page.saved()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert len(kept(tmp_path)) == 1
    context.close()
    assert page.complaints == []
