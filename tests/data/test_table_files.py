import gzip

import numpy as np
import pandas as pd
import pytest

from mislabel.data.number_recognition import ColumnCells, recognise_notations
from mislabel.data.number_text import Notation, NumberOptions
from mislabel.data.table_files import read_table
from mislabel.errors import TableFileError


def write(folder, name, text, encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("cell", "decimal", "value"),
    [
        ("12.5", ".", 12.5),
        ("1,234.5", ".", 1234.5),
        ("1,234,567", ".", 1234567),
        ("1.234,5", ",", 1234.5),
        ("0,25", ",", 0.25),
        ("1 234,5", ",", 1234.5),
        ("1\u00a0234.5", ".", 1234.5),
        ("1'234.5", ".", 1234.5),
        ("\u22123.5", ".", -3.5),
        ("-1e-3", ".", -1e-3),
        ("1,5e3", ",", 1500),
        (".5", ".", 0.5),
    ],
)
def test_numbers_as_people_write_them(cell, decimal, value):
    assert Notation(decimal).number(cell) == value


@pytest.mark.parametrize("cell", ["", "abc", "1,2,3", "12-5", "1.2.3", "1_000", "0x10", "--1", "1,23.4"])
def test_what_is_not_a_number(cell):
    assert np.isnan(Notation(".").number(cell))


@pytest.mark.parametrize(
    ("cells", "delimiter", "decimal"),
    [
        (["1,234", "5,678"], ",", "."),
        (["1,234", "5,678"], ";", ","),
        (["1,234", "5,6"], ",", ","),
        (["1.234", "5,6"], ";", ","),
        (["1.234", "5.678"], ";", "."),
        (["1.234.567", "5.678"], ";", ","),
        (["0.234", "5.678"], ";", "."),
        (["1,234.5"], ";", "."),
        (["12"], ";", "."),
    ],
)
def test_the_decimal_mark_is_recognised(cells, delimiter, decimal):
    found, _ = recognise_notations({"x": cells}, delimiter=delimiter)
    assert found["x"].decimal == decimal


@pytest.mark.parametrize("value", [0.1, -3.0, 1e-9, 123456.789, 1e22, 5.0])
def test_written_numbers_read_back(value):
    for decimal in ".,":
        style = Notation(decimal)
        assert style.number(style.write(value)) == value


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_dialects(tmp_path, delimiter, encoding, line_end):
    lines = [["naïve", "x", "y"], ["é", "1.5", "2"], ["b", "2.5", ""]]
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    path = write(tmp_path, "t.csv", mark + line_end.join(delimiter.join(line) for line in lines) + line_end, encoding)
    table = read_table(path)
    assert list(table.frame.columns) == ["naïve", "x", "y"]
    assert table.frame["x"].tolist() == [1.5, 2.5]
    assert np.isnan(table.frame["y"].iloc[1])
    assert table.dialect.delimiter == delimiter
    assert table.dialect.encoding == encoding
    assert table.dialect.line_end == line_end
    assert table.cells.iloc[0].tolist() == ["é", "1.5", "2"]


def test_one_text_cell_does_not_change_how_numbers_are_read(tmp_path, rng):
    values = [f"{value:.3f}" for value in rng.uniform(1, 99, size=60)]
    for notes in (["ok"] * 59 + ["2,4"], [""] * 59 + ["2,4"], ["2,4", *["a"] * 59]):
        lines = "\n".join(f"{value};{note}" for value, note in zip(values, notes, strict=True))
        table = read_table(write(tmp_path, "t.csv", f"x;note\n{lines}\n"))
        assert table.frame["x"].tolist() == [float(value) for value in values]
        assert "can be" in table.notes[-1]
        assert "--decimal ," in table.notes[-1]


def test_a_late_cell_of_two_readings_is_told(tmp_path, rng):
    values = [str(value) for value in rng.integers(9000, 9999, size=2500)]
    values[2300] = "10,150"
    path = write(tmp_path, "t.csv", "x;y\n" + "\n".join(f"{value};1" for value in values) + "\n")
    table = read_table(path)
    assert table.frame["x"].iloc[2300] == 10150
    assert "'10,150' (position 2300) can be 10150 or 10.15; read as 10150" in table.notes[0]
    other = read_table(path, numbers=NumberOptions(decimal=","))
    assert other.frame["x"].iloc[2300] == 10.15
    assert not other.notes
    strict = read_table(path, numbers=NumberOptions(thousands="none", decimal="."))
    assert np.isnan(strict.frame["x"].iloc[2300])
    assert "not numbers" in strict.notes[0]


def test_a_column_looked_at_in_pieces_says_the_same(rng):
    cells = [f"{value:.2f}" for value in rng.uniform(1, 99, size=50)] + ["1.234", "5,678", "", "12", "abc"]
    whole = ColumnCells.of(cells)
    assert (
        ColumnCells.of(cells[:20]).followed_by(ColumnCells.of(cells[20:52])).followed_by(ColumnCells.of(cells[52:]))
        == whole
    )
    assert whole.doubtful["."].first == 50
    assert whole.doubtful[","].texts == ("5,678",)


def test_columns_of_one_file_may_write_numbers_differently(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "a;b;c\n1.5;2,5;1.234\n3.25;4,75;5.678\n"))
    assert table.frame["a"].tolist() == [1.5, 3.25]
    assert table.frame["b"].tolist() == [2.5, 4.75]
    assert "column 'c'" in table.notes[0]


def test_a_decimal_mark_that_is_given_decides_what_is_in_doubt(tmp_path):
    path = write(tmp_path, "t.csv", "a;b\n1.5;1,234\n3.25;5,678\n")
    assert read_table(path).frame["b"].tolist() == [1234, 5678]
    given = read_table(path, numbers=NumberOptions(decimal=","))
    assert given.frame["a"].tolist() == [1.5, 3.25]
    assert given.frame["b"].tolist() == [1.234, 5.678]
    assert not given.notes


def test_a_column_that_mixes_decimal_marks_reads_no_cell_a_thousandfold(tmp_path):
    cells = ["1.5", "2.5", "3.5", *["4.25"] * 30, "2,5", "3,125"]
    table = read_table(write(tmp_path, "t.csv", "x;y\n" + "\n".join(f"{cell};1" for cell in cells) + "\n"))
    assert np.isnan(table.frame["x"].iloc[-2:]).all()
    assert "2 of 35 cells are not numbers" in table.notes[0]


@pytest.mark.parametrize(
    ("cells", "value", "written"),
    [
        (["1.234,50", "99,90"], 39771.8 / 10, "3.977,18"),
        (["1.234,50", "99,90"], 5, "5,00"),
        (["1,234,567", "999,999", "7"], 12345.0, "12,345"),
        (["12345", "7"], 23456.0, "23456"),
        (["1'234.5", "99.5"], -1234567.5, "-1'234'567.5"),
        (["0.5", "0.25"], 1e-9, "1e-09"),
        (["1", "2"], 2**60 + 1, "1152921504606846977"),
    ],
)
def test_new_numbers_look_like_their_column(cells, value, written):
    found, _ = recognise_notations({"x": cells}, delimiter=";")
    assert found["x"].of_column(cells).write(value) == written


def test_ids_are_text_exactly_as_written(tmp_path):
    ids = ["00007", "1007", "12345678901234567", "12345678901234568", "NA", " x ", "1.50", "-"]
    table = read_table(write(tmp_path, "t.csv", "id,y\n" + "\n".join(f"{name},1" for name in ids) + "\n"))
    assert table.written("id") == ids
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    big = [9007199254740993 + k for k in range(4)]
    pd.DataFrame({"id": pd.array([*big[:3], None], dtype="Int64"), "y": 1.0}).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").written("id") == [*map(str, big[:3]), ""]
    pd.DataFrame({"id": ["NA", 7, None, 1007], "y": 1.0}).to_excel(tmp_path / "t.xlsx", index=False)
    assert read_table(tmp_path / "t.xlsx").written("id") == ["NA", "7", "", "1007"]


def test_numbers_shown_with_leading_zeros_keep_them_as_ids(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["id", "y"])
    for k in range(3):
        book.active.append([k + 7, 1.5])
        book.active.cell(row=k + 2, column=1).number_format = "00000"
    book.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx").written("id") == ["00007", "00008", "00009"]


def test_times_whose_offset_changes_are_times(tmp_path):
    lines = "2024-03-30T12:00:00+01:00,1\n2024-03-31T12:00:00+02:00,2\n"
    frame = read_table(write(tmp_path, "t.csv", "t,y\n" + lines)).frame
    assert frame["t"].dt.hour.tolist() == [11, 10]


def test_short_rows_are_told_and_long_ones_refused(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "a,b,c\n1,2,3\n4\n\n5,6,7,,\n"))
    assert len(table) == 3
    assert "1 row has fewer cells than the header (the first is line 3)" in table.notes[0]
    with pytest.raises(TableFileError, match="a quotation mark opens a cell in line 2"):
        read_table(write(tmp_path, "t.csv", 'a,b\n1,"2\n3,4\n'))


def test_stray_quotation_marks_are_told(tmp_path):
    table = read_table(write(tmp_path, "t.csv", 'a,b\n1,"\n2,x\n3,"\n4,y\n'))
    assert len(table) == 2
    assert "1 row holds a quoted cell that spans lines (the first begins in line 2)" in table.notes[0]


def test_many_columns_of_one_name(tmp_path):
    names = ",".join(["x"] * 3000 + ["x (2)"])
    table = read_table(write(tmp_path, "t.csv", f"{names}\n{','.join(['1'] * 3001)}\n"))
    assert table.frame.columns.is_unique
    assert len(table.notes) == 6
    with pytest.raises(TableFileError, match="30,001 columns"):
        read_table(write(tmp_path, "t.csv", "x," * 30000 + "y\n" + "1," * 30000 + "1\n"))


def test_a_stray_cell_in_the_last_corner_of_a_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["x", "y"])
    book.active.append([1, 2])
    book.active.cell(row=1048576, column=16384, value="stray")
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    assert len(table) == 2


def test_a_european_spreadsheet(tmp_path):
    path = write(tmp_path, "t.csv", "Gerät;Preis;Datum\nA;1.234,50;01.02.2024\nB;99,9;03.02.2024\n", "cp1252")
    frame = read_table(path).frame
    assert frame["Preis"].tolist() == [1234.5, 99.9]
    assert frame["Datum"].tolist() == ["01.02.2024", "03.02.2024"]


def test_quotes_newlines_and_long_cells_stay_verbatim(tmp_path):
    long = "x" * 1_000_000
    path = write(tmp_path, "t.csv", f'"a ""b"", c","new\nline",y\n"1,5 ""in""","two\r\nlines",1\n{long},z,2\n')
    table = read_table(path)
    assert table.header == ['a "b", c', "new\nline", "y"]
    assert table.cells.iloc[0, 0] == '1,5 "in"'
    assert table.cells.iloc[0, 1] == "two\r\nlines"
    assert len(table.cells.iloc[1, 0]) == 1_000_000


def test_a_few_cells_that_are_not_numbers_are_noted(tmp_path):
    rows = "\n".join(["1.5"] * 30 + ["n.best"])
    table = read_table(write(tmp_path, "t.csv", f"x,y\n{rows.replace(chr(10), ',1' + chr(10))},1\n"))
    assert np.isnan(table.frame["x"].iloc[30])
    assert "1 of 31 cells are not numbers" in table.notes[0]
    assert "n.best" in table.notes[0]


def test_repeated_and_empty_column_names_get_names(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "a,a,,b\n1,2,3,4\n"))
    assert list(table.frame.columns) == ["a", "a (2)", "column 3", "b"]
    assert table.header == ["a", "a", "", "b"]


def test_compressed_parquet_and_excel(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"kind": ["a", "b"], "x": [1.5, 2.5], "price": ["1,200.5", "3"]})
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    frame.to_parquet(tmp_path / "t.parquet")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="first", index=False)
        frame.assign(x=7).to_excel(book, sheet_name="second", index=False)
    for name in ("t.csv.gz", "t.parquet", "t.xlsx"):
        table = read_table(tmp_path / name)
        assert table.frame["x"].tolist() == [1.5, 2.5]
        assert table.frame["price"].tolist() == [1200.5, 3.0]
    assert read_table(tmp_path / "t.xlsx", "second").frame["x"].tolist() == [7, 7]
    assert "second" in read_table(tmp_path / "t.xlsx").notes[0]
    with pytest.raises(TableFileError, match="no sheet 'third'; it has: first, second"):
        read_table(tmp_path / "t.xlsx", "third")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "no such file"),
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"a,b\n", "no rows"),
        ("t.docx", b"x", "files ending in csv"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        ("really.csv", b"PAR1\x00\x00", "not a text table"),
        ("t.csv.gz", b"\x1f\x8b\x08broken", "not a complete gzip file"),
        ("t.parquet", b"nonsense", "cannot be read as Parquet"),
        ("t.xlsx", b"nonsense", "cannot be read as a workbook"),
        ("bom.csv", b"\xef\xbb\xbf\xff\xfe", "begins as utf-8-sig but is not"),
    ],
)
def test_unreadable_files_say_why(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableFileError, match=message):
        read_table(tmp_path / name)


def test_a_misspelt_file_gets_advice(tmp_path):
    (tmp_path / "prices.csv").write_text("a\n1\n")
    with pytest.raises(TableFileError, match="Did you mean 'prices.csv'"):
        read_table(tmp_path / "price.csv")
    with pytest.raises(TableFileError, match="is a folder"):
        (tmp_path / "folder.csv").mkdir()
        read_table(tmp_path / "folder.csv")


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["7.76", "4,365", "5.090", "7.270"] * 10, [7.76, np.nan, 5.09, 7.27] * 10),
        (["17.578"] * 30 + ["13,425"], [17.578] * 30 + [np.nan]),
        (["999.5", "1,234", "1,500", "850.25"] * 10, [999.5, 1234, 1500, 850.25] * 10),
        (["999,5", "1.234", "1.500", "850,25"] * 10, [999.5, 1234, 1500, 850.25] * 10),
        (["0,5", "1.234", "0,75", "2,25"] * 10, [0.5, np.nan, 0.75, 2.25] * 10),
    ],
)
def test_cells_with_the_other_mark_are_thousands_only_where_their_size_says_so(tmp_path, cells, values):
    table = read_table(write(tmp_path, "t.csv", "x|y\n" + "\n".join(f"{cell}|1" for cell in cells) + "\n"))
    np.testing.assert_array_equal(table.frame["x"], values)
    assert any("not numbers" in note for note in table.notes) == bool(np.isnan(values).any())
