"""What the page writes: patterns after a look at all values, tables cell for cell, and honest names for both."""

import base64
import csv
import io

import numpy as np
import pandas as pd
import pytest

from mislabel.data.corrections import read_decisions

from .pages import Page, made_up, written
from .tables import audited, content_of, table_of

SIZE = 20
PATTERN = {"words": "label = 10 x expected", "ranks": [1, 2, 3, 4, 5], "byAccident": 0.01, "certainty": "sure"}


@pytest.fixture
def opened(browser, tmp_path):
    pages = []

    def open_page(**content):
        pages.append(Page(browser, written(tmp_path / "page.html", made_up(SIZE, **content))))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
        assert page.complaints == []


def listed(page):
    return [row.split("\t") for row in page.page.locator("#confirm-rows tr").all_inner_texts()]


def test_accepting_a_pattern_shows_every_value_before_it_writes(opened, tmp_path):
    page = opened(patterns=[PATTERN])
    page.page.click("text=Accept all 5")
    assert page.page.is_visible("#confirm")
    rows = listed(page)
    assert [row[0] for row in rows] == [f"row-{k}!" for k in range(1, 6)]
    assert rows[0] == ["row-1!", "101", "101.50 ± 0.25", "101.5", ""]
    assert page.n_decided() == 0
    page.page.click("text=Write these 5 values")
    assert not page.page.is_visible("#confirm")
    assert {k: item["value"] for k, item in page.decisions(tmp_path).items()} == {k: 100.5 + k for k in range(1, 6)}
    assert "5 rows: correction accepted" in page.page.inner_text("#live")


def test_rows_decided_before_are_left_alone_unless_asked(opened, tmp_path):
    page = opened(patterns=[PATTERN])
    page.find(2)
    page.page.keyboard.press("k")
    page.find(3)
    page.page.keyboard.press("d")
    page.page.click("text=Accept all 5")
    assert page.page.inner_text("#confirm-write") == "Write these 3 values"
    assert "Replace 2 decisions made before" in page.page.inner_text("#confirm-decided")
    assert [row[4] for row in listed(page)] == ["", "keep", "drop", "", ""]
    page.page.click("#confirm-write")
    actions = {k: item["action"] for k, item in page.decisions(tmp_path).items()}
    assert actions == {1: "accept", 2: "keep", 3: "drop", 4: "accept", 5: "accept"}
    page.page.keyboard.press("u")
    page.page.click("text=Accept all 5")
    page.page.check("#confirm-replace")
    assert page.page.inner_text("#confirm-write") == "Write these 5 values"
    page.page.click("#confirm-write")
    assert {item["action"] for item in page.decisions(tmp_path).values()} == {"accept"}
    # Nothing is left to write.
    page.page.click("text=Accept all 5")
    assert page.page.is_disabled("#confirm-write")


def test_decisions_say_which_rows_somebody_looked_at(opened, tmp_path):
    page = opened(patterns=[PATTERN])
    page.find(2)
    page.page.keyboard.press("k")
    page.page.click("text=Accept all 5")
    page.page.click("#confirm-write")
    # A note on a row that is undecided keeps its label, but is no verdict.
    page.find(0)
    page.page.keyboard.press("n")
    page.page.keyboard.type("ask the laboratory")
    page.page.keyboard.press("Enter")
    reviewed = {k: item["reviewed"] for k, item in page.decisions(tmp_path).items()}
    assert reviewed == {0: False, 1: False, 2: True, 3: False, 4: False, 5: False}
    page.open()
    # Looked at one by one, they are verdicts; so is the row with the note, once it is decided.
    for position, key in ((0, "k"), (4, "a"), (5, "d")):
        page.find(position)
        page.page.keyboard.press(key)
    found = page.decisions(tmp_path)
    assert {k for k, item in found.items() if item["reviewed"]} == {0, 2, 4, 5}
    assert found[0]["note"] == "ask the laboratory"


def test_the_list_of_a_pattern_works_by_keyboard_and_escape_writes_nothing(opened):
    page = opened(patterns=[PATTERN])
    keys = page.page.keyboard
    page.find(7)
    page.page.focus("text=Accept all 5")
    keys.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "confirm-title"
    named = page.page.evaluate(
        "document.getElementById(document.getElementById('confirm').getAttribute('aria-labelledby')).textContent"
    )
    assert named == "Accept 5 corrections?"
    # Keys of the review do nothing behind it.
    keys.press("d")
    keys.press("a")
    keys.press("Escape")
    assert not page.page.is_visible("#confirm")
    assert page.page.inner_text("#live") == "Nothing was written."
    assert page.n_decided() == 0
    assert page.page.evaluate("document.activeElement.textContent") == "Accept all 5"
    keys.press("Enter")
    for _ in range(2):
        keys.press("Tab")
    assert page.page.evaluate("document.activeElement.id") == "confirm-write"
    keys.press("Enter")
    assert page.n_decided() == 5


def test_a_long_list_scrolls_on_a_narrow_screen(browser, tmp_path):
    many = {**PATTERN, "ranks": list(range(300))}
    path = written(tmp_path / "page.html", made_up(300, suspects=300, patterns=[many]))
    page = Page(browser, path, viewport={"width": 320, "height": 640})
    page.page.click("text=Accept all 300")
    assert len(listed(page)) == 300
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.page.is_visible("#confirm-write")
    box = page.page.locator("#confirm-write").bounding_box()
    assert box["y"] + box["height"] <= 640
    page.context.close()
    assert page.complaints == []


def test_where_a_file_cannot_be_written_back_the_page_says_so_first(opened):
    file = {**made_up(SIZE)["file"], "apply": "Files of this kind <b>cannot</b> be written back."}
    page = opened(file=file)
    assert page.page.inner_text("#notices") == "Files of this kind <b>cannot</b> be written back."
    above = page.page.evaluate(
        "document.getElementById('notices').compareDocumentPosition(document.getElementById('review'))"
    )
    assert above & 4  # the review follows
    assert not page.page.is_visible("#command")
    assert "mislabel apply" not in page.page.get_attribute("#export-clean", "title")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("table.csv", "mislabel apply table.csv decisions.json -o cleaned.csv"),
        ("table.csv.gz", "mislabel apply table.csv.gz decisions.json -o cleaned.csv.gz"),
        ("my $(rm) it's.csv", "mislabel apply 'my $(rm) it'\\''s.csv' decisions.json -o cleaned.csv"),
        ("-o.csv", "mislabel apply ./-o.csv decisions.json -o cleaned.csv"),
    ],
)
def test_the_command_can_be_pasted_whatever_the_file_is_called(opened, name, command):
    page = opened(file={**made_up(SIZE)["file"], "name": name})
    assert page.page.inner_text("#command") == command
    assert page.page.inner_text("#notices") == ""


HOSTILE_CELLS = [
    'say "no"',
    "two\nlines",
    " leading",
    "trailing ",
    "a,b;c",
    "",
    '"',
    "\u2028",
    "=1+1",
    "007",
    "NA",
    "\ttab",
    "1,50",
]


@pytest.mark.parametrize(("delimiter", "decimal", "line_end"), [(",", ".", "\n"), (";", ",", "\r\n")])
def test_cells_that_were_not_decided_come_out_byte_for_byte(browser, tmp_path, delimiter, decimal, line_end):
    rng = np.random.default_rng(4)
    ids = [f"{k:05d}" for k in range(60)]
    extra = [HOSTILE_CELLS[k % len(HOSTILE_CELLS)] for k in range(60)]
    text = table_of(rng, ids, extra, delimiter, decimal, line_end)
    path, report = audited(tmp_path, text.encode())
    page = Page(browser, report)
    assert page.page.inner_text("#export-clean") == "Export cleaned CSV"
    untouched = page.download("#export-clean", tmp_path)
    assert untouched.name == "table-cleaned.csv"
    assert untouched.read_bytes() == path.read_bytes()
    page.page.uncheck("#advance")
    page.page.locator("tr.row", has_text="00021").click()
    page.page.keyboard.press("a")
    accepted = page.page.locator("tr.current .verdict").inner_text().removeprefix("accepted: ")
    page.page.keyboard.press("e")
    page.page.keyboard.press("Enter")
    decisions = page.download("#export-decisions", tmp_path)
    before = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    cleaned = page.download("#export-clean", tmp_path).read_bytes().decode()
    after = list(csv.reader(io.StringIO(cleaned, newline=""), delimiter=delimiter))
    changed = [(k, j) for k in range(61) for j in range(4) if before[k][j] != after[k][j]]
    assert changed == [(22, 3)]
    assert after[22][3] == accepted
    value = read_decisions(decisions).decisions[0].value
    assert float(accepted.replace(decimal, ".")) == value
    assert abs(value - float(before[22][3].replace(decimal, ".")) / 10) < 200
    page.context.close()
    assert page.complaints == []


@pytest.mark.parametrize("how", ["all quoted", "another encoding", "no last line end"])
def test_a_table_in_other_quotes_or_another_encoding_is_called_a_copy(browser, tmp_path, how):
    rng = np.random.default_rng(4)
    text = table_of(rng, [f"k{k}" for k in range(60)], ["caf\u00e9"] * 60, quote_all=how == "all quoted")
    raw = text.encode("cp1252" if how == "another encoding" else "utf-8")
    _, report = audited(tmp_path, raw.rstrip(b"\n") if how == "no last line end" else raw)
    page = Page(browser, report)
    assert page.page.inner_text("#export-clean") == "Export CSV copy"
    assert "use mislabel apply" in page.page.get_attribute("#export-clean", "title")
    copy = page.download("#export-clean", tmp_path)
    assert copy.name == "table-copy.csv"
    frame = pd.read_csv(copy, dtype=str, keep_default_na=False)
    expected = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(frame, expected)
    page.context.close()


def test_labels_alone_are_called_so(opened):
    page = opened()
    assert page.page.inner_text("#export-clean") == "Export labels as CSV"
    assert "without the other columns" in page.page.get_attribute("#export-clean", "title")


IDS = ["00007", "1007", "12345678901234567", "NA", "1e5", "0.10", "-3", " spaced ", "x" * 1000]


def test_ids_come_out_exactly_as_the_file_writes_them(browser, tmp_path):
    rng = np.random.default_rng(4)
    ids = [str(1000 + k) for k in range(60)]
    ids[:3] = IDS[:3]
    ids[3:9] = IDS[3:]
    text = table_of(rng, ids, ["a"] * 60)
    _, report = audited(tmp_path, text.encode())
    content = content_of(report)
    positions = np.frombuffer(base64.b64decode(content["rows"]["position"]), "<i4")
    assert content["ids"] == [ids[position] for position in positions]
    page = Page(browser, report)
    page.page.select_option("#view", "all")
    page.page.fill("#search", "xxxx")
    page.page.locator("#page", has_text="1 row,").wait_for()
    page.page.locator("tr.row").first.click()
    page.page.keyboard.press("k")
    assert page.decisions(tmp_path)[8]["row"] == "x" * 1000
    assert len(page.rows()[0]) == 200
    page.context.close()
