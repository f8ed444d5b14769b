"""Read, apply, read again: what was not decided about is the same, bit by bit, in every format and type."""

import datetime
import gzip
import io
import json
import re
import zipfile
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mislabel.data import corrections
from mislabel.data.corrections import FORMAT, apply_decisions
from mislabel.data.table_files import fingerprint_of, read_table
from mislabel.errors import DecisionsError, TableFileError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
openpyxl = pytest.importorskip("openpyxl")

QUIET = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def decide(source, label, values, dropped, rows, **more):
    decisions = [{"position": k, "action": "edit", "value": value, "note": "why\tnot"} for k, value in values.items()]
    decisions += [{"position": k, "action": "drop"} for k in dropped]
    content = {
        "format": FORMAT,
        "file": {"name": source.name, "sha256": fingerprint_of(source), "rows": rows, **more},
        "label": label,
        "decisions": decisions,
    }
    path = source.parent / "decisions.json"
    path.write_text(json.dumps(content))
    return path


@st.composite
def text_tables(draw):
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = st.text(st.characters(codec="utf-8", exclude_characters="\x00\ufeff", exclude_categories=["Cs"]), max_size=6)
    mark = draw(st.sampled_from([".", ","]))
    number = st.integers(-99999, 99999).map(lambda value: f"{value / 100:.2f}".replace(".", mark))

    def cell(content):
        if draw(st.booleans()) or any(c in content for c in (delimiter, '"', "\r", "\n")) or content.strip() != content:
            return '"' + content.replace('"', '""') + '"'
        return content

    rows = draw(st.integers(2, 7))
    lines = [delimiter.join(["name", "y", "z"])]
    for _ in range(rows):
        lines.append(delimiter.join([cell("n" + draw(text)), cell(draw(number)), cell(draw(number))]))
        if draw(st.integers(0, 5)) == 0:
            lines[-1] += end  # a blank line
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"]))
    whole = end.join(lines) + draw(st.sampled_from(["", end, end + end]))
    raw = whole.encode(encoding)
    if encoding.startswith("utf-16"):
        raw = "\ufeff".encode(encoding) + raw
    packed = draw(st.booleans())
    return rows, gzip.compress(raw) if packed else raw, packed, mark


@QUIET
@given(table=text_tables(), data=st.data())
def test_text_tables(table, data, tmp_path):
    rows, raw, packed, mark = table
    name = "t.csv.gz" if packed else "t.csv"
    source, target = tmp_path / name, tmp_path / f"clean-{name}"
    source.write_bytes(raw)
    before = read_table(source)
    if len(before) != rows or list(before.frame.columns) != ["name", "y", "z"] or "y" not in before.notations:
        return  # the delimiter was taken for another one
    values = data.draw(st.dictionaries(st.integers(0, rows - 1), st.integers(-(10**6), 10**6).map(lambda v: v / 100)))
    dropped = data.draw(st.sets(st.integers(0, rows - 1))) - set(values)
    decisions = decide(source, "y", values, dropped, rows)
    apply_decisions(source, decisions, target, overwrite=True)
    kept = [k for k in range(rows) if k not in dropped]
    if kept:
        after = read_table(target)
        for column in before.cells.columns:
            for new, old in enumerate(kept):
                if column != "y" or old not in values:
                    assert after.cells[column].iloc[new] == before.cells[column].iloc[old]
        found = [before.notation("y").number(cell) for cell in after.written("y")]
        for new, old in enumerate(kept):
            if old in values:
                assert found[new] == values[old]
    if not values and not dropped:
        clean = target.read_bytes()
        assert (gzip.decompress(clean) if packed else clean) == (gzip.decompress(raw) if packed else raw)


LONG = 9007199254740993
TYPES = {
    "int8": (pa.int8(), [1, -128, None, 127, 5]),
    "uint8": (pa.uint8(), [1, 255, None, 0, 5]),
    "int16": (pa.int16(), [1, -3, None, 4, 5]),
    "int64": (pa.int64(), [LONG, LONG + 2, None, -LONG, 5]),
    "uint64": (pa.uint64(), [2**64 - 1, LONG, None, 4, 5]),
    "float16": (pa.float16(), [np.float16(v) for v in (1.5, -2.25, 0.0, 4, 5)]),
    "float32": (pa.float32(), [1.1, float("nan"), None, -0.0, 5]),
    "float64": (pa.float64(), [0.1 + 0.2, float("nan"), None, -0.0, 5e-324]),
    "decimal128": (
        pa.decimal128(20, 3),
        [Decimal("1.100"), Decimal("12345678901234567.125"), None, Decimal(4), Decimal(5)],
    ),
    "decimal256": (pa.decimal256(50, 1), [Decimal("1.1"), Decimal("9" * 40), None, Decimal(4), Decimal(5)]),
    "string": (pa.string(), ["25,172", "1,234.5", "", "4", None]),
    "large_string": (pa.large_string(), ["25.5", "1.5", None, "4.0", "5.0"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["2.5", "2.5", None, "4.5", "5.5"]),
}
OTHERS = {
    "bool": pa.array([True, None, False, True, False]),
    "date": pa.array([datetime.date(2024, 1, k + 1) for k in range(5)]),
    "time": pa.array([datetime.time(k, 1) for k in range(5)]),
    "timestamp": pa.array([datetime.datetime(2024, 3, 31, k) for k in range(5)], pa.timestamp("us", "Europe/Berlin")),
    "binary": pa.array([b"\x00\xff", None, b"", b"a", b"b"]),
    "list": pa.array([[1], None, [], [1, 2], [3]]),
    "struct": pa.array([{"a": 1}] * 5),
    "null": pa.nulls(5),
    "duration": pa.array([datetime.timedelta(seconds=k) for k in range(5)]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_parquet_columns_of_every_type(tmp_path, kind):
    arrow, values = TYPES[kind]
    columns = {name: pa.array(entries, type) for name, (type, entries) in TYPES.items()}
    table = pa.table({**columns, **OTHERS}).replace_schema_metadata({"own": "metadata"})
    source = tmp_path / "t.parquet"
    parquet.write_table(table, source, row_group_size=2)
    table = parquet.read_table(source)
    assert read_table(source).frame.shape == (5, len(TYPES) + len(OTHERS))
    apply_decisions(source, decide(source, kind, {1: 7, 4: 12}, [0], 5), tmp_path / "clean.parquet")
    cleaned = parquet.read_table(tmp_path / "clean.parquet")
    assert cleaned.schema.equals(table.schema, check_metadata=True)
    for name in table.column_names:
        before, after = table.column(name).slice(1), cleaned.column(name)
        if name == kind:
            keep = [1, 2]
            assert [float(after[k].as_py()) for k in (0, 3)] == [7.0, 12.0]
            before, after = before.take(keep), after.take(keep)
        if pa.types.is_floating(before.type):
            bits = f"u{before.type.bit_width // 8}"
            filled = [array.drop_null().to_numpy(zero_copy_only=False).view(bits) for array in (before, after)]
            np.testing.assert_array_equal(*filled)
        else:
            assert before.to_pylist() == after.to_pylist()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int8", 128),
        ("uint8", -1),
        ("int16", 1.5),
        ("int64", 2**63),
        ("float16", 1e6),
        ("float32", 1e300),
        ("float32", 1e-300),
        ("decimal128", 1.2345),
        ("decimal128", 1e19),
    ],
)
def test_what_a_type_cannot_hold_is_refused(tmp_path, kind, value):
    arrow, values = TYPES[kind]
    source = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"y": pa.array(values, arrow)}), source)
    with pytest.raises(
        TableFileError, match=rf"type .*{kind.rstrip('0123456789')}.* cannot hold .*row 3, counted from 0"
    ):
        apply_decisions(source, decide(source, "y", {3: value}, [], 5), tmp_path / "clean.parquet")
    assert not (tmp_path / "clean.parquet").exists()


def test_text_numbers_in_parquet_keep_their_notation(tmp_path):
    source = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"y": ["25.172,5", "1.234,5", "999,0"]}), source)
    apply_decisions(source, decide(source, "y", {1: 23853.25}, [], 3), tmp_path / "clean.parquet")
    assert parquet.read_table(tmp_path / "clean.parquet").column("y").to_pylist() == ["25.172,5", "23.853,25", "999,0"]


def workbook(path, rows=8, formulas=False):
    """A workbook with styles, a second sheet, dates, text, numbers as text, leading blank rows."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Messung & Co"
    sheet.append([])
    sheet.append(["id", "y", "when", "note", "flag", "text number"])
    for k in range(rows):
        when = datetime.datetime(2024, 1, k + 1)
        sheet.append([k + 1, 1.5 * k + 0.1, when, f"<{k}> & 'x'", k % 2 == 0, f"{k},50"])
        sheet.cell(row=k + 3, column=2).number_format = "0.00"
        if k == 3:
            sheet.cell(row=k + 3, column=2, value=None)
    other = book.create_sheet("Andere")
    other.append(["a", 1])
    if formulas:
        other.append(["=SUM('Messung & Co'!B3:B9)"])
    book.save(path)
    return path


def cells_of(path, name):
    sheet = openpyxl.load_workbook(path)[name]
    return [[(cell.value, cell.number_format, cell.data_type) for cell in row] for row in sheet.iter_rows()]


def members(path):
    with zipfile.ZipFile(path) as book:
        return {name: book.read(name) for name in book.namelist()}


@pytest.mark.parametrize("trail", [False, True])
def test_workbooks_change_only_where_decided(tmp_path, trail):
    source = workbook(tmp_path / "t.xlsx")
    target = tmp_path / "clean.xlsx"
    values = {0: 7.25, 3: -1e-9, 7: 12345.678}
    apply_decisions(source, decide(source, "y", values, [], 8), target, trail=trail)
    before, after = cells_of(source, "Messung & Co"), cells_of(target, "Messung & Co")
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        for k, (was, is_now) in enumerate(zip(old, new[: len(old)], strict=True)):
            if k == 1 and number - 2 in values:
                assert is_now[0] == values[number - 2]
                assert is_now[1] == ("0.00" if number - 2 != 3 else is_now[1])
            else:
                assert is_now == was
    assert (len(after[2]) == 9) == trail
    changed = {name for name, data in members(target).items() if data != members(source)[name]}
    assert changed == {"xl/worksheets/sheet1.xml"}


def test_rows_dropped_from_a_workbook(tmp_path):
    source = workbook(tmp_path / "t.xlsx")
    apply_decisions(source, decide(source, "y", {0: 7.25, 6: 1.0}, [1, 2, 5], 8), tmp_path / "clean.xlsx", trail=True)
    before, after = read_table(source), read_table(tmp_path / "clean.xlsx")
    kept = [0, 3, 4, 6, 7]
    for name in ("id", "when", "note", "flag", "text number"):
        assert after.written(name) == [before.written(name)[k] for k in kept]
    assert after.frame["y"].tolist()[0] == 7.25
    assert after.frame["mislabel_action"].tolist()[0] == "edit"
    numbers = re.findall(rb'<row r="(\d+)"', members(tmp_path / "clean.xlsx")["xl/worksheets/sheet1.xml"])
    assert [int(number) for number in numbers] == [2, 3, 4, 5, 6, 7]


def test_rows_that_formulas_refer_to_are_not_dropped(tmp_path):
    source = workbook(tmp_path / "t.xlsx", formulas=True)
    with pytest.raises(TableFileError, match="1 cells hold formulas, which would point at other rows"):
        apply_decisions(source, decide(source, "y", {}, [1], 8), tmp_path / "clean.xlsx")
    assert not (tmp_path / "clean.xlsx").exists()
    apply_decisions(source, decide(source, "y", {1: 3.5}, [], 8), tmp_path / "clean.xlsx")
    assert b'fullCalcOnLoad="1"' in members(tmp_path / "clean.xlsx")["xl/workbook.xml"]
    assert openpyxl.load_workbook(tmp_path / "clean.xlsx").calculation.fullCalcOnLoad


def test_tables_and_merged_cells_of_a_workbook_move_with_dropped_rows(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "t.xlsx"))
    sheet = book.worksheets[0]
    sheet.merge_cells("D9:F9")
    table = openpyxl.worksheet.table.Table(displayName="T", ref="A2:F10")
    sheet.add_table(table)
    book.save(tmp_path / "t.xlsx")
    source = tmp_path / "t.xlsx"
    apply_decisions(source, decide(source, "y", {}, [0, 1], 8), tmp_path / "clean.xlsx")
    cleaned = openpyxl.load_workbook(tmp_path / "clean.xlsx").worksheets[0]
    assert [str(merged) for merged in cleaned.merged_cells.ranges] == ["D7:F7"]
    assert cleaned.tables["T"].ref == "A2:F8"


def test_a_label_that_is_a_formula_is_not_overwritten(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "t.xlsx"))
    book.worksheets[0]["B4"] = "=A4*2"
    book.save(tmp_path / "t.xlsx")
    source = tmp_path / "t.xlsx"
    with pytest.raises(TableFileError, match="the label in B4 is computed by a formula"):
        apply_decisions(source, decide(source, "y", {1: 3.5}, [], 8), tmp_path / "clean.xlsx")


def test_a_label_behind_merged_cells_is_not_written(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "t.xlsx"))
    book.worksheets[0].merge_cells("B4:B6")
    book.save(tmp_path / "t.xlsx")
    source = tmp_path / "t.xlsx"
    apply_decisions(source, decide(source, "y", {1: 3.5}, [], 8), tmp_path / "clean.xlsx")
    assert read_table(tmp_path / "clean.xlsx").frame["y"].iloc[1] == 3.5
    with pytest.raises(TableFileError, match="the label in B5 is covered by merged cells"):
        apply_decisions(source, decide(source, "y", {2: 3.5}, [], 8), tmp_path / "other.xlsx")


def test_labels_entered_as_text_stay_text(tmp_path):
    source = workbook(tmp_path / "t.xlsx")
    apply_decisions(source, decide(source, "text number", {2: 1234.5}, [], 8), tmp_path / "clean.xlsx")
    assert read_table(tmp_path / "clean.xlsx").written("text number")[:4] == ["0,50", "1,50", "1234,50", "3,50"]


def test_a_link_at_a_guessable_name_is_not_written_through(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,2.5\n2,3.5\n")
    for name in ("clean.csv.part", ".clean.csv.part"):
        (tmp_path / name).symlink_to(source)
    apply_decisions(source, decide(source, "y", {0: 9}, [], 2), tmp_path / "clean.csv")
    assert source.read_text() == "x,y\n1,2.5\n2,3.5\n"
    assert io.StringIO((tmp_path / "clean.csv").read_text()).read() == "x,y\n1,9.0\n2,3.5\n"


def reworked(path, change):
    """The workbook with the XML of its first sheet changed."""
    parts = members(path)
    parts["xl/worksheets/sheet1.xml"] = change(parts["xl/worksheets/sheet1.xml"])
    with zipfile.ZipFile(path, "w") as book:
        for name, data in parts.items():
            book.writestr(name, data)
    return path


def with_prefix(xml):
    xml = re.sub(rb"<(/?)(\w)", rb"<\1x:\2", xml)
    return xml.replace(b"<x:worksheet xmlns=", b"<x:worksheet xmlns:x=")


@pytest.mark.parametrize(
    "change",
    [
        with_prefix,
        lambda xml: xml.replace(b'r="B4"', b'r="b4"'),
        lambda xml: xml.replace(b'<row r="5"', b'<row r="4"'),
        lambda xml: xml.replace(b'<row r="4"', b'<row r="9"').replace(b'<row r="10"', b'<row r="4"'),
    ],
    ids=["prefix", "lower case", "twice", "order"],
)
def test_sheets_that_cannot_be_changed_safely_are_refused(tmp_path, change):
    source = reworked(workbook(tmp_path / "t.xlsx"), change)
    rows = len(read_table(source))
    with pytest.raises(TableFileError, match="save it anew"):
        apply_decisions(source, decide(source, "y", {1: 3.25}, [], rows), tmp_path / "clean.xlsx")
    assert not (tmp_path / "clean.xlsx").exists()


def test_hyperlinks_move_with_their_rows(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "t.xlsx"))
    for row in (4, 6):
        book.worksheets[0].cell(row=row, column=4).hyperlink = f"https://example.org/{row}"
    book.save(tmp_path / "t.xlsx")
    source = tmp_path / "t.xlsx"
    apply_decisions(source, decide(source, "y", {}, [2], 8), tmp_path / "clean.xlsx")
    cleaned = openpyxl.load_workbook(tmp_path / "clean.xlsx").worksheets[0]
    assert cleaned["D4"].hyperlink.target.endswith("/4")
    assert cleaned["D5"].hyperlink.target.endswith("/6")


def test_merged_rows_and_charts_anywhere_keep_rows_from_being_dropped(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "t.xlsx"))
    book.worksheets[0].merge_cells("D4:D6")
    book.save(tmp_path / "t.xlsx")
    source = tmp_path / "t.xlsx"
    with pytest.raises(TableFileError, match="a row to drop is part of merged cells"):
        apply_decisions(source, decide(source, "y", {}, [2], 8), tmp_path / "clean.xlsx")
    chart = openpyxl.chart.LineChart()
    chart.add_data(openpyxl.chart.Reference(book.worksheets[0], min_col=2, min_row=2, max_row=10))
    book.worksheets[1].add_chart(chart, "C3")
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(TableFileError, match="tied to its rows by their number"):
        apply_decisions(source, decide(source, "y", {}, [7], 8), tmp_path / "clean.xlsx")


def test_a_label_of_an_array_formula_is_not_overwritten(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "t.xlsx"))
    formula = openpyxl.worksheet.formula.ArrayFormula("B4:B6", "=A4:A6*2")
    book.worksheets[0]["B4"] = formula
    book.save(tmp_path / "t.xlsx")
    source = tmp_path / "t.xlsx"
    with pytest.raises(TableFileError, match="B5 is covered by merged cells or by an array formula"):
        apply_decisions(source, decide(source, "y", {2: 3.5}, [], 8), tmp_path / "clean.xlsx")


def test_a_mark_for_no_value_is_replaced_by_a_number(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "t.xlsx"))
    book.worksheets[0]["B4"] = "NA"
    book.save(tmp_path / "t.xlsx")
    source = tmp_path / "t.xlsx"
    apply_decisions(source, decide(source, "y", {1: 3.5}, [], 8), tmp_path / "clean.xlsx")
    assert openpyxl.load_workbook(tmp_path / "clean.xlsx").worksheets[0]["B4"].value == 3.5


def test_categories_keep_their_order(tmp_path):
    dictionary = pa.array(["30.5", "10.5", "20.5"])
    labels = pa.DictionaryArray.from_arrays(pa.array([1, 2, 1, None], pa.int8()), dictionary, ordered=True)
    source = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"y": labels}), source)
    apply_decisions(source, decide(source, "y", {0: 40.5}, [], 4), tmp_path / "clean.parquet")
    cleaned = parquet.read_table(tmp_path / "clean.parquet").column("y").chunk(0)
    assert cleaned.type == parquet.read_table(source).column("y").type
    assert cleaned.type.ordered
    assert cleaned.to_pylist() == ["40.5", "20.5", "10.5", None]
    assert cleaned.dictionary.to_pylist() == ["30.5", "10.5", "20.5", "40.5"]


def test_timestamps_of_the_outdated_type_are_not_copied_wrongly(tmp_path):
    source = tmp_path / "t.parquet"
    times = pa.array([datetime.datetime(9999, 12, 31), datetime.datetime(2024, 1, 1)], pa.timestamp("us"))
    table = pa.table({"t": times, "y": [1.5, 2.5]})
    parquet.write_table(table, source, use_deprecated_int96_timestamps=True)
    assert (
        "cannot be applied to this file: its timestamps are of the outdated type INT96" in read_table(source).notes[0]
    )
    with pytest.raises(TableFileError, match="INT96"):
        apply_decisions(source, decide(source, "y", {0: 7}, [], 2), tmp_path / "clean.parquet")


def test_the_file_may_not_change_while_it_is_copied(tmp_path, monkeypatch):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,2.5\n2,3.5\n")
    decisions = decide(source, "y", {0: 9}, [], 2)
    original = source.read_bytes()
    found = corrections.fingerprint_of
    calls = []

    def changing(path):
        calls.append(path)
        if len(calls) == 2:
            source.write_bytes(original + b"3,4.5\n")
        return found(path)

    monkeypatch.setattr(corrections, "fingerprint_of", changing)
    with pytest.raises(DecisionsError, match="changed while it was being copied"):
        apply_decisions(source, decisions, tmp_path / "clean.csv")
    assert not (tmp_path / "clean.csv").exists()
