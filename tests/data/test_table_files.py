import gzip

import numpy as np
import pandas as pd
import pytest

from mislabel.data.number_text import NumberStyle, recognise_style
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
    assert NumberStyle(decimal).number(cell) == value


@pytest.mark.parametrize("cell", ["", "abc", "1,2,3", "12-5", "1.2.3", "1_000", "0x10", "--1", "1,23.4"])
def test_what_is_not_a_number(cell):
    assert np.isnan(NumberStyle(".").number(cell))


@pytest.mark.parametrize(
    ("cells", "delimiter", "decimal"),
    [
        (["1,234", "5,678"], ",", "."),
        (["1,234", "5,678"], ";", ","),
        (["1,234", "5,6"], ",", ","),
        (["1.234", "5,6"], ";", ","),
        (["1.234", "5.678"], ";", "."),
        (["1,234.5"], ";", "."),
        (["12"], ";", "."),
    ],
)
def test_the_decimal_mark_is_recognised(cells, delimiter, decimal):
    assert recognise_style([cells], delimiter=delimiter).decimal == decimal


@pytest.mark.parametrize("value", [0.1, -3.0, 1e-9, 123456.789, 1e22, 5.0])
def test_written_numbers_read_back(value):
    for decimal in ".,":
        style = NumberStyle(decimal)
        assert style.number(style.write(value)) == value


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_dialects(tmp_path, delimiter, encoding, line_end):
    lines = [["naïve", "x", "y"], ["é", "1.5", "2"], ["b", "2.5", ""]]
    path = write(tmp_path, "t.csv", line_end.join(delimiter.join(line) for line in lines) + line_end, encoding)
    table = read_table(path)
    assert list(table.frame.columns) == ["naïve", "x", "y"]
    assert table.frame["x"].tolist() == [1.5, 2.5]
    assert np.isnan(table.frame["y"].iloc[1])
    assert table.dialect.delimiter == delimiter
    assert table.dialect.encoding == encoding
    assert table.dialect.line_end == line_end
    assert table.cells.iloc[0].tolist() == ["é", "1.5", "2"]


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
    rows = "\n".join(["1.5"] * 30 + ["<0.1"])
    table = read_table(write(tmp_path, "t.csv", f"x,y\n{rows.replace(chr(10), ',1' + chr(10))},1\n"))
    assert np.isnan(table.frame["x"].iloc[30])
    assert "1 of 31 cells are not numbers" in table.notes[0]
    assert "<0.1" in table.notes[0]


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
