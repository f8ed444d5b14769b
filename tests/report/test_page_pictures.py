"""What the page draws and says of every row: axes, the picture of a suspect, missing values, going on to the next row."""

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.report.content import _packed

from .pages import Page, made_up, written

SIZE = 20


@pytest.fixture
def opened(browser, tmp_path):
    pages = []

    def open_page(content, **options):
        pages.append(Page(browser, written(tmp_path / "page.html", content), **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
    assert [page.complaints for page in pages] == [[] for _ in pages]


@pytest.fixture(scope="module")
def gaps_page(tmp_path_factory):
    """An audit of a table with missing cells and a label that is off by far."""
    rng = np.random.default_rng(5)
    size = 160
    frame = pd.DataFrame(
        {"size": rng.uniform(0, 3, size), "age": rng.uniform(0, 1, size), "kind": rng.choice(["a", "b"], size)}
    )
    frame["y"] = np.round(10 + 3 * frame["size"] + 2 * frame["age"] + 0.05 * rng.normal(size=size), 3)
    frame.loc[::8, "age"] = np.nan
    frame.loc[[16, 33, 50], "y"] += [500, 4, -6]
    frame.index = [f"site 7-{k}" for k in range(size)]
    path = tmp_path_factory.mktemp("gaps") / "report.html"
    audit(frame, "y", mean="none").report(path)
    return path


@pytest.fixture
def gaps(browser, gaps_page):
    page = Page(browser, gaps_page)
    yield page
    page.context.close()
    assert page.complaints == []


def open_row(page, name):
    page.page.select_option("#view", "all")
    page.page.fill("#search", name)
    row = page.page.locator("tr.row").filter(has=page.page.get_by_text(name, exact=True))
    row.click()
    return page.page.locator("tr.detail")


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([*range(1000)], (-80, 0), (999, 1080)),
        ([*range(1000), 1e9], (-80, 0), (999, 1300)),
        ([-1e300, *range(1000), 1e300], (-300, 0), (999, 1300)),
        ([5.0] * 10, (4, 5), (5, 6)),
        ([0.0] * 500 + [7.0], (-1, 0), (0, 1)),
        ([], (0, 0), (1, 1)),
        ([float("nan"), float("inf"), 3.0], (2, 3), (3, 4)),
    ],
)
def test_axes_hold_the_bulk_whatever_lies_far_out(opened, values, low, high):
    page = opened(made_up())
    packed = _packed(np.array(values, dtype=float), "<f8")
    found = page.page.evaluate(
        """(text) => {
            const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
            const range = axes.around(new Float64Array(bytes.buffer));
            return [...range, axes.ticks(range)];
        }""",
        packed,
    )
    assert low[0] <= found[0] <= low[1]
    assert high[0] <= found[1] <= high[1]
    ticks = found[2]
    assert 1 <= len(ticks) <= 11
    assert all(found[0] <= tick <= found[1] for tick in ticks)


def test_labels_beyond_the_axes_are_counted_in_the_caption(opened):
    label = 100.0 + np.arange(200)
    page = opened(made_up(200, label=label, suggested=label))
    assert page.page.inner_text("#clipped") == ""
    label = label.copy()
    label[[3, 4]] = [1e7, -1e7]
    page = opened(made_up(200, label=label, suggested=100.0 + np.arange(200)))
    assert "2 labels beyond them are drawn as triangles at the rim" in page.page.inner_text("#clipped")
    label[4] = 104
    page = opened(made_up(200, label=label, suggested=100.0 + np.arange(200)))
    assert "1 label beyond them is drawn as a triangle at the rim" in page.page.inner_text("#clipped")


def test_a_suspect_is_drawn_among_its_like(gaps):
    detail = open_row(gaps, "site 7-33")
    caption = detail.locator("figcaption").inner_text()
    assert "The label against size, the column that tells most about labels" in caption
    assert "the 5 most similar trusted rows" in caption
    assert "rim" not in caption
    assert detail.locator("svg circle.near").count() == 5
    assert detail.locator("svg circle.this").count() == 1
    assert detail.locator("svg circle.back").count() > 100
    name = detail.locator("svg").get_attribute("aria-label")
    assert name.startswith("Row site 7-33: label ")


def test_a_label_far_out_is_drawn_at_the_rim_and_named(gaps):
    detail = open_row(gaps, "site 7-16")
    assert detail.locator("svg polygon.this").count() == 1
    assert "Beyond the axes, drawn at the rim: this label (5" in detail.locator("figcaption").inner_text()
    heights = [float(circle.get_attribute("cy")) for circle in detail.locator("svg circle.back").all()]
    # The rest is spread over the picture.
    assert max(heights) - min(heights) > 100


def test_missing_values_are_named_and_a_bin_of_their_own(gaps):
    detail = open_row(gaps, "site 7-16")
    facts = detail.locator("dl").first.inner_text()
    assert "no value for" in facts
    assert "age" in facts
    assert "no value" in detail.locator("dl").nth(1).inner_text()
    assert "no value for" not in open_row(gaps, "site 7-33").locator("dl").first.inner_text()
    age = gaps.page.locator("#features figure", has_text="age")
    assert age.locator(".name").last.inner_text() == "no value"
    assert "of 20" in age.inner_text()


@pytest.mark.parametrize(
    ("half", "told"), [(0.25, "age, shoe"), (0.5, "age, shoe: expected less precisely than in most rows")]
)
def test_less_precisely_is_said_only_where_it_is_so(opened, half, told):
    details = {
        "columns": ["size", "age", "shoe"],
        "features": [["1", "", ""]],
        "rank": {"0": 0},
        "near": [[]],
        "nearOf": [0],
    }
    content = made_up(SIZE, details={**details, "gaps": {"0": [1, 2]}})
    halves = np.full(SIZE, 0.25)
    halves[0] = half
    content["rows"]["half"] = _packed(halves, "<f8")
    page = opened(content)
    page.page.locator("tr.row").first.click()
    facts = page.page.locator("tr.detail dl").first
    assert facts.locator("dt", has_text="no value for").locator("+ dd").inner_text() == told


def test_what_would_be_noticed_stands_in_the_row(opened):
    content = made_up(SIZE)
    sizes = np.full(SIZE, 1.5)
    sizes[1] = np.inf
    content["rows"]["detectable"] = _packed(sizes, "<f4")
    page = opened(content)
    page.page.locator("tr.row").first.click()
    assert "an error of 1.5 or more would probably be noticed in this row" in page.page.inner_text("tr.detail")
    page.page.keyboard.press("ArrowDown")
    assert "no error of a plausible size would be noticed in this row" in page.page.inner_text("tr.detail")


def test_without_a_telling_column_labels_are_drawn_against_what_is_expected(opened):
    near = [[[9, 0, 0.9], [10, 0, 0.8]]]
    page = opened(
        made_up(
            SIZE, details={"columns": [], "features": [[]], "rank": {"0": 0}, "near": near, "nearOf": [0], "gaps": {}}
        )
    )
    page.page.locator("tr.row").first.click()
    caption = page.page.inner_text("tr.detail figcaption")
    assert "The label against what is expected, with the 2 most similar trusted rows" in caption
    assert page.page.locator("tr.detail svg circle.near").count() == 2


def test_ids_stay_in_one_piece(gaps):
    gaps.page.select_option("#view", "all")
    heights = gaps.page.evaluate(
        "[...document.querySelectorAll('tr.row > th')].map((cell) => cell.getClientRects()[0].height)"
    )
    assert max(heights) < 45
    assert gaps.page.evaluate("getComputedStyle(document.querySelector('tr.row > th')).whiteSpace") == "nowrap"


def test_accepting_goes_on_unless_told_otherwise_and_remembers(opened):
    page = opened(made_up(SIZE))
    keys = page.page.keyboard
    page.page.locator("tr.row").first.click()
    keys.press("a")
    assert page.page.locator("tr.current th").inner_text() == "row-1!"
    assert page.page.evaluate("document.activeElement.classList.contains('current')")
    assert "Row row-0!: 100.5 accepted." in page.page.inner_text("#live")
    # Keeping and dropping stay.
    keys.press("k")
    assert page.page.locator("tr.current th").inner_text() == "row-1!"
    page.page.uncheck("#advance")
    page.page.locator("tr.row").nth(2).click()
    keys.press("a")
    assert page.page.locator("tr.current th").inner_text() == "row-2!"
    page.open()
    assert not page.page.is_checked("#advance")
    page.page.check("#advance")
    page.open()
    assert page.page.is_checked("#advance")


def test_accepting_in_a_view_that_loses_the_row_goes_on_and_the_last_row_is_told(opened):
    page = opened(made_up(SIZE, suspects=3))
    page.page.select_option("#view", "undecided")
    page.page.locator("tr.row").first.click()
    for name in ("row-1!", "row-2!"):
        page.page.keyboard.press("a")
        assert page.page.locator("tr.current th").inner_text() == name
    page.page.keyboard.press("a")
    assert "That was the last row." in page.page.inner_text("#live")
    assert page.n_decided() == 3


def test_accepting_in_the_random_sample_goes_on_in_the_sample(opened):
    content = made_up(SIZE)
    order = np.random.default_rng(0).permutation(8)
    page = opened(content)
    page.page.keyboard.press("s")
    for place in order[1:]:
        page.page.keyboard.press("a")
        assert page.page.locator("tr.current th").inner_text() == f"row-{place}!"
        assert "next of the random sample" in page.page.inner_text("#live")
    page.page.keyboard.press("a")
    assert page.n_decided() == 8


def test_the_opening_says_what_the_rate_means_and_what_kind_of_labels_these_are(opened):
    kinds = [
        {"name": "Scale", "words": "Labels were compared on a logarithmic scale."},
        {"name": "Limits", "words": "<b>two</b>"},
    ]
    page = opened(
        made_up(words=["8 of 20 labels look wrong.", "The worst is row 1."], meaning="5 % is an average.", kinds=kinds)
    )
    lines = page.page.locator("#words p").all_inner_texts()
    assert lines[:3] == ["8 of 20 labels look wrong.", "5 % is an average.", "The worst is row 1."]
    assert page.page.locator("#kinds dt").all_inner_texts() == ["Scale", "Limits"]
    assert page.page.locator("#kinds dd").all_inner_texts() == [
        "Labels were compared on a logarithmic scale.",
        "<b>two</b>",
    ]


def test_one_is_one(opened):
    pattern = {"words": "label = 10 x expected", "ranks": [0], "byAccident": 0.0, "certainty": "certain"}
    histogram = {"edges": [-6, 0, 6], "trusted": [1, 1], "suspect": [0, 1], "cut": 7.0, "beyond": 1}
    page = opened(made_up(3, suspects=1, patterns=[pattern], histogram=histogram, used=["x"]))
    assert page.page.inner_text("#patterns").startswith("1 suspect fits label")
    assert page.page.locator("#patterns button.primary").inner_text() == "Accept it"
    assert page.page.inner_text("#progress").startswith("0 of 1 suspect decided")
    assert "1 row, page 1 of 1" in page.page.inner_text("#page")
    caption = page.page.inner_text("#histogram-caption")
    assert "The suspect has |z| of 7.0. 1 label beyond ±6 is in the outermost bars." in caption
    assert "Used as feature: x." in page.page.inner_text("#columns")
    page.page.click("#patterns button.primary")
    assert page.page.inner_text("#confirm-title") == "Accept 1 correction?"
    assert page.page.inner_text("#confirm-write") == "Write this value"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_fits_a_narrow_screen(browser, gaps_page, scheme):
    # 1280 pixels at 400 % zoom.
    page = Page(browser, gaps_page, viewport={"width": 320, "height": 640}, color_scheme=scheme)
    page.page.locator("tr.row").first.click()
    assert page.page.locator("tr.detail svg").bounding_box()["width"] <= 300
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 320
    page.context.close()
    assert page.complaints == []


def test_everything_that_can_be_used_has_a_name_and_every_picture_a_description(gaps):
    gaps.page.locator("tr.row").first.click()
    unnamed = gaps.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, canvas, svg, [role=region], [role=group], nav, dialog')]
            .filter((element) => !(element.textContent.trim() || element.getAttribute('aria-label') || element.labels?.length
                || element.getAttribute('aria-labelledby'))).map((element) => element.outerHTML)"""
    )
    assert unnamed == []
    roles = gaps.page.evaluate(
        "[...document.querySelectorAll('[aria-live]')].map((element) => element.getAttribute('role'))"
    )
    assert roles == ["status", "status"]
    assert gaps.page.locator("tr.detail svg[role=img][aria-label]").count() == 1
    ids = gaps.page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids))
