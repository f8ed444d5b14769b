"""Certified by review, on the page: the same numbers and sentences as in Python, and the way through the random sample."""

import base64
import json

import numpy as np
import pytest

from mislabel.auditing.certify import ReviewCertificate, certified
from mislabel.data.corrections import read_decisions
from mislabel.decisions.certificates import Certificate
from mislabel.report import content as content_module
from mislabel.report.drawn_sample import DrawnSample

from .pages import Page, made_up, written
from .tables import audited, content_of, table_of
from .test_page_export import PATTERN

SUSPECTS = 60


@pytest.fixture
def opened(browser, tmp_path):
    pages = []

    def open_page(size=100, suspects=SUSPECTS, **content):
        content = made_up(size, suspects=suspects, **content)
        pages.append((Page(browser, written(tmp_path / "page.html", content)), content))
        return pages[-1][0], sample_of(content)

    yield open_page
    assert [page.complaints for page, _ in pages] == [[] for _ in pages]
    for page, _ in pages:
        page.context.close()


def unpacked(text, kind="<i4"):
    return np.frombuffer(base64.b64decode(text), kind)


def sample_of(content):
    """The sample that a made-up page holds."""
    positions = unpacked(content["rows"]["position"])[unpacked(content["rows"]["suspect"], "u1") == 1]
    rows = [f"row-{position}!" for position in positions]
    return DrawnSample(positions, rows, unpacked(content["certificate"]["order"]), content["certificate"]["promised"])


def told(page):
    return page.page.locator("#certificate-words p").all_inner_texts()


def current(page):
    return page.page.inner_text("tr.row.current > th")


COMPUTE = """([order, known, confidence, expected, sets]) => {
  const found = reviewCertificate({ order, confidence, expected });
  found.update((place) => known[place]);
  return {
    drawn: found.drawn(), right: found.right(), next: found.next(), more: found.moreToHalve(),
    bounds: sets.map((marks) => found.bound(marks)), cuts: [0.02, 0.05, 0.1, 0.3, 0.9].map((share) => found.cut(share)),
  };
}"""


def test_the_browser_computes_the_same_numbers_as_python(opened):
    page, _ = opened()
    rng = np.random.default_rng(1)
    for total in (1, 2, 7, 16, 33, 120, 700, 5000):
        for share in (0.0, 0.05, 0.3, 1.0):
            right = rng.random(total) < share * np.linspace(0.5, 1.5, total)
            order = rng.permutation(total)
            drawn = int(rng.integers(0, min(total, 300) + 1))
            known = {int(k): bool(right[k]) for k in [*order[:drawn], *rng.choice(total, total // 10, replace=False)]}
            confidence, expected = float(rng.choice([0.8, 0.95, 0.99])), float(rng.choice([0.01, 0.05, 0.2, 0.6]))
            certificate = Certificate(total, order, known, confidence, expected)
            sets = [rng.random(total) < part for part in (0.1, 0.5, 0.9)] + [
                np.arange(total) < total // 3,
                np.ones(total, bool),
            ]
            states = [known.get(k) for k in range(total)]
            marks = [chosen.astype(int).tolist() for chosen in sets]
            found = page.page.evaluate(COMPUTE, [order.tolist(), states, confidence, expected, marks])
            bounds = [certificate.bound(np.flatnonzero(chosen)) for chosen in sets]
            assert found == {
                "drawn": certificate.sample.size,
                "right": certificate.found_right,
                "next": next((int(k) for k in certificate.next(1)), None),
                "more": certificate.more_to_halve(),
                "bounds": [{"right": bound.right, "size": bound.size} for bound in bounds],
                "cuts": [certificate.cut(share) for share in (0.02, 0.05, 0.1, 0.3, 0.9)],
            }


def test_a_key_leads_through_the_sample_and_the_bound_follows_every_verdict(opened, tmp_path):
    page, sample = opened()
    assert told(page) == ReviewCertificate(sample, {}).lines
    assert page.page.inner_text("#sample-next") == "Start with the random sample S"
    verdicts = {}
    for turn, place in enumerate(sample.order[:25]):
        page.page.keyboard.press("s")
        assert current(page) == sample.rows[place]
        assert f"Number {turn + 1} of the random sample" in page.page.inner_text("tr.detail .sample-line")
        key = "akd"[turn % 3] if turn % 9 == 1 else "a"
        page.page.keyboard.press(key)
        verdicts[int(sample.positions[place])] = key == "k"
        lines = ReviewCertificate(sample, verdicts).lines
        assert told(page) == lines
        assert lines[1] in page.page.inner_text("tr.detail .sample-line")
        assert lines[1] in page.page.inner_text("#live")
    assert sum(verdicts.values()) == 3
    # What is exported says the same elsewhere.
    decisions = page.download("#export-decisions", tmp_path)
    assert certified(sample, read_decisions(decisions), 0.95).lines == told(page)
    # Kept by the browser; undone step by step.
    page.open()
    assert told(page) == lines
    page.page.keyboard.press("s")
    page.page.keyboard.press("k")
    assert told(page) != lines
    page.page.keyboard.press("u")
    assert told(page) == lines


def test_the_button_leads_on_to_the_end(opened):
    page, sample = opened(12, 5)
    page.page.select_option("#view", "all")
    page.page.fill("#search", "nothing like this")
    for place in sample.order:
        page.page.click("#sample-next")
        assert current(page) == sample.rows[place]
        page.page.click("tr.detail [data-action='keep']")
    assert page.page.is_disabled("#sample-next")
    assert page.page.inner_text("#sample-next") == "All suspects are reviewed"
    page.page.keyboard.press("s")
    assert told(page) == ReviewCertificate(sample, dict.fromkeys(sample.positions.tolist(), True)).lines
    # The way on stands in the opened row, too.
    page.page.keyboard.press("u")
    page.page.locator("tr.row", has_text=sample.rows[sample.order[0]]).click()
    page.page.click("#sample-on")
    assert current(page) == sample.rows[sample.order[-1]]


def test_what_was_accepted_together_is_no_verdict(opened):
    page, sample = opened(12, 8, patterns=[PATTERN])
    page.page.click("text=Accept all 5")
    page.page.click("#confirm-write")
    assert told(page) == ReviewCertificate(sample, {}, not_reviewed=5).lines
    assert page.page.is_hidden("#certificate-shown")
    for turn in range(1, 9):
        page.page.keyboard.press("s")
        assert current(page) == sample.rows[sample.order[turn - 1]]
        page.page.keyboard.press("a")
    assert told(page) == ReviewCertificate(sample, dict.fromkeys(sample.positions.tolist(), False)).lines


def test_the_bound_of_the_rows_in_the_table(opened):
    page, sample = opened()
    verdicts = {}
    for place in sample.order[:20]:
        page.page.keyboard.press("s")
        page.page.keyboard.press("d")
        verdicts[int(sample.positions[place])] = False
    certificate = ReviewCertificate(sample, verdicts)

    def line(rows):
        bound = certificate.bound(rows)
        are = "is a right label" if bound.right == 1 else "are right labels"
        some = f"{bound.size} suspect{'s' * (bound.size > 1)} in this table"
        return f"Of the {some} at most {bound.right} ({100 * bound.share:.3g} %) {are}."

    assert page.page.inner_text("#certificate-shown") == line(sample.rows)
    page.page.select_option("#view", "undecided")
    unseen = [row for row, position in zip(sample.rows, sample.positions, strict=True) if position not in verdicts]
    assert page.page.inner_text("#certificate-shown") == line(unseen)
    page.page.fill("#search", "row-1")
    some = [row for row in unseen if "row-1" in row]
    page.page.wait_for_function(
        "(text) => document.getElementById('certificate-shown').textContent === text", arg=line(some)
    )
    page.page.fill("#search", "row-99")
    page.page.wait_for_function("() => document.getElementById('certificate-shown').hidden")


@pytest.mark.parametrize("promised", [None, 0.2])
def test_the_promise_on_the_page(opened, promised):
    given = made_up(100, suspects=SUSPECTS)["certificate"]
    page, sample = opened(
        certificate={**given, "promised": promised, "expected": 0.05 if promised is None else promised}
    )
    verdicts = {}
    for turn, place in enumerate(sample.order[:30]):
        page.page.keyboard.press("s")
        page.page.keyboard.press("k" if turn == 4 else "a")
        verdicts[int(sample.positions[place])] = turn == 4
    assert told(page) == ReviewCertificate(sample, verdicts).lines
    assert any("promised" in line for line in told(page)) is (promised is not None)


def test_a_page_without_suspects_has_no_such_section(browser, tmp_path):
    page = Page(browser, written(tmp_path / "page.html", made_up(100, suspects=0)))
    assert page.page.is_hidden("#certificate-section")
    assert page.page.is_hidden("#sample-key")
    page.page.keyboard.press("s")
    assert page.complaints == []
    page.context.close()


def test_the_page_holds_the_order_of_its_audit(tmp_path):
    rng = np.random.default_rng(4)
    _, report = audited(tmp_path, table_of(rng, [f"k{k}" for k in range(60)], ["a"] * 60).encode())
    content = content_of(report)
    summary = json.loads((report.parent / "summary.json").read_text(encoding="utf-8"))["certificate"]
    order = unpacked(content["rows"]["position"])[unpacked(content["certificate"]["order"])]
    assert order.tolist() == [summary["suspects"][place] for place in summary["order"]]
    assert (content["certificate"]["promised"], content["certificate"]["confidence"]) == (0.05, 0.95)


@pytest.mark.parametrize(("most", "held"), [(5, True), (2, False)])
def test_a_page_that_does_not_hold_all_rows_holds_all_of_the_sample_or_none(tmp_path, monkeypatch, most, held):
    monkeypatch.setattr(content_module, "MOST_ROWS", most)
    rng = np.random.default_rng(4)
    _, report = audited(tmp_path, table_of(rng, [f"k{k}" for k in range(60)], ["a"] * 60).encode())
    content = content_of(report)
    summary = json.loads((report.parent / "summary.json").read_text(encoding="utf-8"))["certificate"]
    assert sorted(summary["suspects"]) == [7, 21, 40]
    if not held:
        assert content["certificate"] is None
        return
    order = unpacked(content["rows"]["position"])[unpacked(content["certificate"]["order"])]
    assert order.tolist() == [summary["suspects"][place] for place in summary["order"]]


def test_a_page_of_200_000_suspects_works(opened):
    size = 200_000
    page, sample = opened(size, size)
    for place in sample.order[:3]:
        page.page.keyboard.press("s")
        assert current(page) == sample.rows[place]
        page.page.keyboard.press("a")
    verdicts = dict.fromkeys(sample.positions[sample.order[:3]].tolist(), False)
    assert told(page) == ReviewCertificate(sample, verdicts).lines
