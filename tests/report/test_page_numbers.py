"""Numbers on the page: one notation, the file's own, for showing, typing and writing."""

import random
import struct

import pytest

from mislabel.data.number_text import Notation

from .pages import Page, made_up, written

NOTATIONS = {
    "point": {"decimal": ".", "thousands": "", "decimals": None, "most": None},
    "comma": {"decimal": ",", "thousands": "", "decimals": None, "most": None},
    "point, thousands": {"decimal": ".", "thousands": ",", "decimals": None, "most": None},
    "comma, thousands": {"decimal": ",", "thousands": ".", "decimals": 2, "most": 2},
    "comma, narrow spaces": {"decimal": ",", "thousands": "\u202f", "decimals": None, "most": None},
    "point, apostrophes": {"decimal": ".", "thousands": "'", "decimals": None, "most": None},
}
VALUES = [
    0.0,
    1.0,
    -1.0,
    999.0,
    1000.0,
    4349.67,
    -1234567.25,
    0.5,
    -0.00012345,
    1.5e-7,
    -2.5e20,
    1e16,
    123456789.012345,
]


@pytest.fixture(scope="module")
def blank(browser, tmp_path_factory):
    """A page whose functions can be called."""
    opened = Page(browser, written(tmp_path_factory.mktemp("blank") / "page.html", made_up()))
    yield opened.page
    opened.context.close()


def called(page, numbers, function, values):
    return page.evaluate(
        "([numbers, name, values]) => values.map((value) => numberNotation(numbers)[name](value))",
        [numbers, function, values],
    )


@pytest.mark.parametrize("name", NOTATIONS)
def test_what_is_written_reads_back_as_the_same_number(blank, name):
    source = random.Random(5)
    patterns = [struct.unpack("<d", source.randbytes(8))[0] for _ in range(2000)]
    values = VALUES + [value for value in patterns if value == value and abs(value) < 1e300]
    values += [round(source.uniform(-1e7, 1e7), source.randint(0, 8)) for _ in range(500)]
    texts = called(blank, NOTATIONS[name], "write", values)
    read = called(blank, NOTATIONS[name], "read", texts)
    assert [float(found.get("value", "nan")) for found in read] == values


@pytest.mark.parametrize("name", NOTATIONS)
def test_the_page_writes_what_the_command_line_writes(blank, name):
    source = random.Random(6)
    # Of more digits than these the command line leaves out the last ones where only rounding put them there.
    values = VALUES + [float(f"{source.uniform(-1, 1) * 10.0 ** source.randint(-30, 30):.14g}") for _ in range(500)]
    style = Notation(**NOTATIONS[name])
    assert called(blank, NOTATIONS[name], "write", values) == [style.write(value) for value in values]


def test_thousands_and_fixed_decimals_of_the_column(blank):
    values = [4349.6, -1234567.0, 12.345, 0.5]
    assert called(blank, NOTATIONS["comma, thousands"], "write", values) == [
        "4.349,60",
        "-1.234.567,00",
        "12,345",
        "0,50",
    ]
    assert called(blank, NOTATIONS["point, thousands"], "write", values) == ["4,349.6", "-1,234,567", "12.345", "0.5"]


def test_computed_values_are_shown_without_the_dust_of_binary_arithmetic(blank):
    values = [3977.1800000000003, 0.1 + 0.2, 9007199254740991, 123456789012345]
    assert called(blank, NOTATIONS["comma"], "full", values) == [
        "3977,18",
        "0,3",
        "9007199254740991",
        "123456789012345",
    ]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("comma", "4349,67", 4349.67),
        ("comma", "4,650", 4.65),
        ("comma", "4.650,5", 4650.5),
        ("comma", "4.650.000", 4650000),
        ("comma", "4 650,5", 4650.5),
        ("comma", "\u22123,5", -3.5),
        ("comma", "-1,5e-7", -1.5e-7),
        ("comma, thousands", "4.650", 4650),
        ("point", "4.650", 4.65),
        ("point", "4,650.5", 4650.5),
        ("point", "12.", 12),
        ("point", ".5", 0.5),
        ("point, thousands", "4,650", 4650),
    ],
)
def test_text_in_the_notation_of_the_file_is_read(blank, name, text, value):
    assert called(blank, NOTATIONS[name], "read", [text]) == [{"value": value}]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("comma", "4.650", ["4650", "4,65"]),
        ("point", "4,650", ["4650", "4.65"]),
        ("point", "-4,650", ["-4650", "-4.65"]),
        ("comma, narrow spaces", "4.650", ["4650", "4,65"]),
        ("comma", "4,650.5", ["decimal comma", "4650,5"]),
        ("comma", "4650.5", ["decimal comma", "4650,5"]),
        ("comma", "0.650", ["0,65"]),
        ("comma, thousands", "4.65", ["4,65"]),
        ("point", "4,65", ["decimal point", "4.65"]),
        ("comma", "1.23.4", ["1234,5"]),
        ("point", "1.23.4", ["1234.5"]),
        ("point", "1,23,456", ["1234.5"]),
        ("point", "4 650,500", ["4650.5"]),
        ("point", "1 234,567.8", ["1234.5"]),
        ("point", "1e999", ["too large"]),
        ("point", "-1e999", ["too large"]),
        ("comma", "1e-999", ["too small"]),
        ("point", "0x10", ["not a number"]),
        ("point", "Infinity", ["not a number"]),
        ("point", "nan", ["not a number"]),
        ("point", "1_000", ["not a number"]),
        ("point", "", ["Type a number"]),
        ("point", "9" * 500, ["too large"]),
    ],
)
def test_text_that_may_mean_something_else_is_refused_with_advice(blank, name, text, told):
    (found,) = called(blank, NOTATIONS[name], "read", [text])
    assert "value" not in found
    assert all(part in found["problem"] for part in told)
    assert len(found["problem"]) < 250


@pytest.mark.parametrize("name", NOTATIONS)
def test_accepting_then_editing_without_a_change_leaves_the_value(browser, tmp_path, name):
    suggested = [4349.67, -4650.0, 1.5e-7, -2.5e20, 123456.789012345, 3977.1800000000003, 1000.0, 0.25]
    content = made_up(8, label=[-1.0] * 8, suggested=suggested, numbers=NOTATIONS[name])
    opened = Page(browser, written(tmp_path / "page.html", content))
    opened.page.uncheck("#advance")
    for position in range(8):
        opened.find(position)
        opened.page.keyboard.press("a")
        shown = opened.page.locator("tr.current .verdict").inner_text().removeprefix("accepted: ")
        opened.page.keyboard.press("e")
        assert opened.page.input_value("#edit") == shown
        opened.page.keyboard.press("Enter")
        # Typing the same text is another decision with the same value.
        opened.page.keyboard.press("e")
        opened.page.fill("#edit", shown + " ")
        opened.page.keyboard.press("Enter")
        assert opened.page.locator("tr.current .verdict").inner_text() == f"edited: {shown}"
        opened.page.keyboard.press("u")
    found = opened.decisions(tmp_path)
    assert [found[k]["value"] for k in range(8)] == [
        4349.67,
        -4650,
        1.5e-7,
        -2.5e20,
        123456.789012345,
        3977.18,
        1000,
        0.25,
    ]
    assert {item["action"] for item in found.values()} == {"accept"}
    opened.context.close()
    assert opened.complaints == []


def test_a_page_about_decimal_commas_shows_no_decimal_point(browser, tmp_path):
    label = [4349.67 + k for k in range(20)]
    patterns = [{"words": "label = 10 x expected", "ranks": [0, 1], "byAccident": 0.25, "certainty": "sure"}]
    content = made_up(label=label, numbers=NOTATIONS["comma"], patterns=patterns)
    opened = Page(browser, written(tmp_path / "page.html", content))
    opened.find(0)
    opened.page.keyboard.press("a")
    texts = [opened.page.inner_text(where) for where in ("#body", "#patterns")]
    texts += [opened.page.get_attribute("#edit", "placeholder"), opened.page.inner_text("#live")]
    for text in texts:
        assert not any(
            a.isdigit() and b == "." and c.isdigit() for a, b, c in zip(text, text[1:], text[2:], strict=False)
        )
    assert "4350,17 accepted" in texts[-1]
    assert "4349,67" in texts[0]
    opened.context.close()


def test_why_a_text_was_refused_stands_beside_the_box_and_the_text_stays(browser, tmp_path):
    opened = Page(browser, written(tmp_path / "page.html", made_up(numbers=NOTATIONS["comma"])))
    opened.find(3)
    opened.page.keyboard.press("e")
    opened.page.keyboard.type("4.650")
    opened.page.keyboard.press("Enter")
    assert "4650 or as 4,65" in opened.page.inner_text("#edit-problem")
    assert opened.page.input_value("#edit") == "4.650"
    assert opened.page.evaluate("document.activeElement.id") == "edit"
    assert opened.page.locator("tr.current .verdict").inner_text() == ""
    opened.page.fill("#edit", "4650")
    opened.page.keyboard.press("Enter")
    assert opened.page.locator("tr.current .verdict").inner_text() == "edited: 4650"
    opened.context.close()


def test_an_expected_value_has_the_decimals_of_its_interval(browser, tmp_path):
    suggested = [4470.0, 4470.5, 0.5, 1234567.0, -4470.0, 0.0, 12345678.0, 1e-7]
    content = made_up(8, label=[1.0] * 8, suggested=suggested, numbers=NOTATIONS["comma, thousands"])
    opened = Page(browser, written(tmp_path / "page.html", content))
    texts = opened.page.locator("tr.row > td[data-name=Expected]").all_inner_texts()
    expected = ["4.470,00", "4.470,50", "0,50", "1.234.567", "-4.470,00", "0,00", "1,234568e+7", "1e-7"]
    assert texts == [f"{text} \u00b1 0,25" for text in expected]
    opened.context.close()


def test_accepting_what_is_expected_of_a_trusted_row_keeps_its_digits(browser, tmp_path):
    content = made_up(4, label=[1.0] * 4, suggested=[1234567.0] * 4, suspects=1)
    opened = Page(browser, written(tmp_path / "page.html", content))
    opened.find(3)
    opened.page.keyboard.press("a")
    assert opened.decisions(tmp_path)[3]["value"] == 1234567
    opened.context.close()
