"""Decisions on the page: kept by the position of a row in its file, through other audits, other tabs and older versions."""

import json

import numpy as np
import pytest

from mislabel.data.corrections import read_decisions

from .pages import Page, made_up, written

KEY = f"mislabel:{'0' * 64}:y"
SIZE = 20


@pytest.fixture
def context(browser):
    opened = browser.new_context(accept_downloads=True)
    yield opened
    opened.close()


@pytest.fixture
def opened(context, tmp_path):
    """Open a made-up page; all pages share one browser's storage, and none may complain."""
    pages = []

    def open_page(name="page.html", *, kept=None, **content):
        if kept is not None:
            context.add_init_script(f"localStorage.setItem({json.dumps(KEY)}, {json.dumps(kept)})")
        pages.append(Page(None, written(tmp_path / name, made_up(SIZE, **content)), context=context))
        return pages[-1]

    yield open_page
    assert [page.complaints for page in pages] == [[] for _ in pages]


def stored(page):
    return json.loads(page.page.evaluate("(key) => localStorage.getItem(key)", KEY))


def set_aside(page):
    keys = page.page.evaluate("() => Object.keys(localStorage)")
    return [page.page.evaluate("(key) => localStorage.getItem(key)", key) for key in keys if "set aside" in key]


def decide(page, position, *keys):
    page.find(position)
    for key in keys:
        page.page.keyboard.press(key)


def decide_some(page):
    decide(page, 2, "a")
    decide(page, 5, "k")
    decide(page, 11, "d")
    decide(page, 7, "e")
    page.page.fill("#edit", "12.75")
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("n")
    page.page.keyboard.type("seen")
    page.page.keyboard.press("Enter")


def test_decisions_stay_with_their_rows_when_the_file_is_audited_again(opened, tmp_path):
    first = opened()
    decide_some(first)
    before = first.decisions(tmp_path)
    assert {position: item["value"] for position, item in before.items()} == {2: 102.5, 5: None, 7: 12.75, 11: None}
    again = opened(order=np.random.default_rng(0).permutation(SIZE))
    assert again.decisions(tmp_path) == before
    assert again.verdict(2) == "accepted: 102.5 (earlier audit)"
    assert again.verdict(11) == "drop (earlier audit)"
    assert again.verdict(7) == "edited: 12.75 (earlier audit) (note)"


def test_what_is_stored_names_positions_and_the_audit(opened):
    page = opened()
    decide(page, 5, "a")
    kept, audit = stored(page), made_up(SIZE)["audit"]
    assert (kept["format"], kept["audit"]) == (2, audit)
    assert kept["saved"].endswith("Z")
    decision = {"action": "accept", "value": 105.5, "note": "", "label": 105, "suggested": 105.5}
    assert kept["decisions"] == [[5, {**decision, "audit": audit, "row": "row-5!"}]]


def test_an_accepted_value_never_becomes_a_new_suggestion(opened, tmp_path):
    first = opened()
    decide_some(first)
    label = 100.0 + np.arange(SIZE)
    suggested = label + 0.5
    suggested[[2, 5]] += 1
    again = opened(suggested=suggested)
    told = again.page.inner_text("#taken-over")
    assert "4 decisions from an earlier audit of this file were taken over" in told
    assert "in 2 of them the suggestion is another one now" in told
    assert again.decisions(tmp_path)[2]["value"] == 102.5
    again.page.click("#taken-over button:has-text('Show those rows')")
    assert sorted(again.rows()) == ["row-2!", "row-5!"]
    again.page.locator("tr.row", has_text="row-2!").click()
    assert "a suggestion of 102.5 in an earlier audit" in again.page.inner_text("tr.detail")
    # Looked at again, and decided anew.
    again.page.keyboard.press("a")
    assert again.decisions(tmp_path)[2]["value"] == 103.5
    assert "3 decisions from" in again.page.inner_text("#taken-over")
    # The rest is still to be looked at after a reload.
    again.open()
    assert "in 1 of them the suggestion" in again.page.inner_text("#taken-over")


def test_decisions_taken_over_can_be_discarded_and_brought_back(opened, tmp_path):
    first = opened()
    decide_some(first)
    again = opened(order=np.arange(SIZE)[::-1])
    before = again.decisions(tmp_path)
    decide(again, 0, "k")
    again.page.click("#taken-over button:has-text('Discard')")
    assert list(again.decisions(tmp_path)) == [0]
    assert again.page.locator("#taken-over").count() == 0
    again.page.click("#undo")
    assert again.decisions(tmp_path).keys() == {0, *before}
    again.page.click("#taken-over button:has-text('Keep them all')")
    again.open()
    assert again.page.locator("#taken-over").count() == 0
    assert again.decisions(tmp_path).keys() == {0, *before}


def test_the_same_audit_says_nothing(opened):
    page = opened()
    decide_some(page)
    page.open()
    assert page.page.inner_text("#notices") == ""
    assert page.verdict(2) == "accepted: 102.5"


def test_decisions_by_rank_of_older_versions_are_set_aside(opened, tmp_path):
    older = json.dumps([[0, {"action": "drop", "value": None, "note": ""}], [3, {"action": "keep", "value": None}]])
    page = opened(kept=older)
    assert "2 decisions kept by an older version could not be matched with rows" in page.page.inner_text("#notices")
    assert page.decisions(tmp_path) == {}
    assert set_aside(page) == [older]


@pytest.mark.parametrize("text", ["{", '"text"', "17", "null", '{"format": 3}', '{"format": 2, "decisions": 5}'])
def test_a_state_that_cannot_be_read_is_set_aside(opened, text):
    page = opened(kept=text)
    assert "could not be read and was set aside" in page.page.inner_text("#notices")
    assert set_aside(page) == [text]
    decide(page, 1, "k")
    assert [position for position, _ in stored(page)["decisions"]] == [1]


@pytest.mark.parametrize(
    "entry",
    [
        [3, {"action": "__proto__", "value": 1}],
        [3, {"action": "accept", "value": None}],
        [3, {"action": "edit", "value": "12"}],
        [SIZE, {"action": "keep"}],
        [-1, {"action": "keep"}],
        [1.5, {"action": "keep"}],
        ["__proto__", {"action": "keep"}],
        [3, None],
        None,
        # Made about another label than the one that stands there now.
        [3, {"action": "keep", "value": None, "note": "", "label": 99.0, "suggested": 1.0}],
    ],
)
def test_damaged_or_foreign_decisions_are_set_aside_one_by_one(opened, tmp_path, entry):
    good = [4, {"action": "keep", "value": None, "note": "", "label": 104.0, "suggested": 104.5}]
    text = json.dumps({"format": 2, "audit": "another", "saved": "", "decisions": [good, entry]})
    page = opened(kept=text)
    assert "1 decision kept by this browser does not fit" in page.page.inner_text("#misfits")
    assert list(page.decisions(tmp_path)) == [4]
    assert [json.loads(text)["decisions"] for text in set_aside(page)] == [[entry]]


def test_rows_that_a_page_does_not_hold_keep_their_decisions(opened, tmp_path):
    first = opened()
    decide_some(first)
    before = first.decisions(tmp_path)
    short = opened("short.html", order=[5, 0, 1, 9])
    assert "3 decisions of them are about rows that this page does not hold" in short.page.inner_text("#taken-over")
    decide(short, 9, "d")
    after = short.decisions(tmp_path)
    assert after.keys() == {9, *before}
    assert {position: after[position] for position in before} == before


def test_two_tabs_lose_nothing_of_each_other(opened, tmp_path):
    one, other = opened(), opened()
    decide(one, 1, "k")
    other.page.wait_for_selector("#elsewhere")
    assert "1 decision made in another tab was taken over" in other.page.inner_text("#elsewhere")
    decide(other, 2, "d")
    decide(one, 3, "a")
    assert one.decisions(tmp_path) == other.decisions(tmp_path)
    assert {position: item["action"] for position, item in one.decisions(tmp_path).items()} == {
        1: "keep",
        2: "drop",
        3: "accept",
    }


def test_the_later_of_two_tabs_wins_and_says_so(opened, tmp_path):
    one = opened()
    # A tab that hears of nothing, as one that sleeps.
    one.page.add_init_script("window.addEventListener('storage', (event) => event.stopImmediatePropagation(), true)")
    one.open()
    other = opened()
    one.find(4)
    decide(other, 4, "d")
    decide(other, 6, "k")
    one.page.keyboard.press("k")
    assert one.decisions(tmp_path)[4]["action"] == "keep"
    assert one.decisions(tmp_path)[6]["action"] == "keep"
    assert "taken over" in one.page.inner_text("#elsewhere")
    one.page.keyboard.press("u")
    assert one.decisions(tmp_path)[4]["action"] == "drop"


def test_undo_leaves_alone_what_another_tab_decided_since(opened, tmp_path):
    one, other = opened(), opened()
    decide(one, 4, "k")
    decide(other, 4, "d")
    one.page.locator(".verdict", has_text="drop").wait_for()
    one.page.keyboard.press("u")
    assert "changed in another tab" in one.page.inner_text("#live")
    assert one.decisions(tmp_path)[4]["action"] == "drop"


def test_what_is_being_typed_survives_another_tab(opened):
    one, other = opened(), opened()
    one.find(4)
    one.page.keyboard.press("e")
    one.page.keyboard.type("12.2")
    decide(other, 6, "k")
    one.page.wait_for_selector("#elsewhere")
    one.page.keyboard.type("5")
    one.page.keyboard.press("Enter")
    assert one.page.locator("tr.current .verdict").inner_text() == "edited: 12.25"


def test_sheets_of_a_workbook_have_decisions_of_their_own(opened, tmp_path):
    first = opened()
    decide_some(first)
    file = {**made_up()["file"], "sheet": "second"}
    assert opened("second.html", file=file).decisions(tmp_path) == {}


def test_a_browser_that_keeps_nothing_says_so_and_still_exports(opened, tmp_path):
    page = opened()
    page.page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    decide(page, 4, "k")
    decide(page, 5, "d")
    assert "does not keep the decisions" in page.page.inner_text("#storage")
    assert list(page.decisions(tmp_path)) == [4, 5]


def test_undo_after_a_reload_has_nothing_to_undo_and_says_so(opened, tmp_path):
    page = opened()
    decide(page, 4, "k")
    page.open()
    page.find(4)
    assert page.page.is_disabled("#undo")
    page.page.keyboard.press("u")
    assert "since this page was opened" in page.page.inner_text("#live")
    assert list(page.decisions(tmp_path)) == [4]


HOSTILE_TEXTS = [
    "bell\x07 escape\x1b[31m",
    "half \ud800 pair",
    "line\u2028separator\u2029s",
    "__proto__",
    "</script><b>",
    "x" * 300_000,
]


def test_hostile_ids_and_notes_come_through(opened, tmp_path):
    ids = HOSTILE_TEXTS + ["00007", "1007", "12345678901234567", "NA", "", "-5", "1e5", "0.10"]
    ids += [f"row-{k}!" for k in range(len(ids), SIZE)]
    page = opened(ids=ids, label=-1.0 - np.arange(SIZE))
    page.page.select_option("#view", "all")
    page.page.locator("tr.row").nth(12).click()
    for text in HOSTILE_TEXTS:
        page.page.keyboard.press("n")
        page.page.evaluate("(text) => { document.getElementById('note').value = text; }", text)
        page.page.keyboard.press("Enter")
        page.open()
        page.page.select_option("#view", "all")
        page.page.locator("tr.row").nth(12).click()
    for row in page.page.locator("tr.row").all():
        row.click()
        page.page.keyboard.press("k")
    target = page.download("#export-decisions", tmp_path)
    read = read_decisions(target)
    assert len(read.decisions) == SIZE
    exported = json.loads(target.read_text(encoding="utf-8"))["decisions"]
    assert [item["row"] for item in exported] == ids
    assert page.page.evaluate("document.querySelector('tr.row > th').textContent.length") < 300
    assert max(len(text) for text in page.rows()) <= 200
    lines = page.download("#export-clean", tmp_path).read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in lines[-SIZE:]][6:14] == ids[6:14]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("bell\x07 escape\x1b[31m", "bell escape[31m"),
        ("half \ud800 pair", "half  pair"),
        ("line\u2028separator\u2029s", "line separator s"),
        ("\u202eright to left", "right to left"),
        ("__proto__", "__proto__"),
        ("\u05d0\u05d1 \U0001f600 e\u0301", "\u05d0\u05d1 \U0001f600 e\u0301"),
        ("x" * 300_000, "x" * 10_000),
    ],
)
def test_notes_hold_printable_text_only(opened, tmp_path, typed, kept):
    page = opened()
    page.find(3)
    page.page.keyboard.press("n")
    page.page.evaluate("(text) => { document.getElementById('note').value = text; }", typed)
    page.page.keyboard.press("Enter")
    assert read_decisions(page.download("#export-decisions", tmp_path)).decisions[0].note == kept
    page.open()
    assert page.decisions(tmp_path)[3]["note"] == kept


def test_a_note_on_an_undecided_row_says_that_it_keeps_the_label(opened):
    page = opened()
    page.find(3)
    page.page.keyboard.press("n")
    page.page.keyboard.type("odd")
    page.page.keyboard.press("Enter")
    assert "note kept, and the label with it" in page.page.inner_text("#live")
