"""Tables as people keep them are read right, or refused in words; and copies of them differ where that was decided only."""

import math
import zipfile

import pandas as pd
import pytest

from mislabel import audit
from mislabel.auditing.inputs import prepare
from mislabel.auditing.request import Request
from mislabel.data.corrections import apply_decisions
from mislabel.data.formats.contract import ReadOptions
from mislabel.data.table_files import read_table
from mislabel.errors import InvalidParameterError, MislabelError, TableFileError
from tests.data import spreadsheets
from tests.data.test_round_trip import decide

openpyxl = pytest.importorskip("openpyxl")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.ipc")


def written(kept, folder):
    path = folder / kept.name
    path.write_bytes(kept.content())
    return path


def same(found, wanted):
    if wanted is None or (isinstance(wanted, str) and not wanted):
        return found is None or found == "" or (isinstance(found, float) and math.isnan(found))
    return found == wanted if isinstance(wanted, str) else math.isclose(found, wanted, rel_tol=1e-12)


def test_there_are_enough_of_them():
    assert len(spreadsheets.ALL) >= 60
    assert len({kept.name for kept in spreadsheets.ALL}) == len(spreadsheets.ALL)


@pytest.mark.parametrize("kept", spreadsheets.ALL, ids=lambda kept: kept.name)
def test_as_people_keep_them(kept, tmp_path):
    path = written(kept, tmp_path)
    options = ReadOptions.stated(**kept.options)
    if kept.refused:
        with pytest.raises(MislabelError) as error:
            prepare(path, None, Request(kept.label or "power", reading=options, model={"mean": "none"}))
        for part in kept.refused:
            assert part in str(error.value)
    if kept.columns:
        table = read_table(path, options=options)
        assert list(table.frame.columns) == list(kept.columns)
        for name, column in kept.columns.items():
            found = table.frame[name].tolist()
            assert len(found) == len(column)
            assert [pair for pair in zip(found, column, strict=True) if not same(*pair)] == []
        for part in kept.said:
            assert any(part in note for note in table.notes), table.notes
        reading = table.reading.as_dict()
        assert reading["header"] == kept.header
        assert reading["units"] == kept.units
        found = {(item["what"], tuple(item["rows"])) for item in reading["left_out"]}
        assert found >= set(kept.left_out)
    assert kept.refused or kept.columns


# What is written back ---------------------------------------------------------------------------------------------------------

TEXTS = [kept for kept in spreadsheets.ALL if kept.columns and kept.name.endswith((".csv", ".jsonl", ".ndjson"))]


def numbers_of(table):
    return [name for name in table.frame.columns if table.frame[name].dtype.kind == "f"]


def applied(path, table, label, values, **more):
    decisions = decide(path, label, values, [], len(table), **table.options.as_dict())
    target = path.with_name(f"clean-{path.name}")
    apply_decisions(path, decisions, target, **more)
    return target


@pytest.mark.parametrize("kept", TEXTS, ids=lambda kept: kept.name)
def test_only_the_line_that_was_decided_about_changes(kept, tmp_path):
    path = written(kept, tmp_path)
    table = read_table(path, options=ReadOptions.stated(**kept.options))
    label, position = numbers_of(table)[-1], 4 if len(table) > 4 else 3
    at = table.lines[position] - 1
    target = applied(path, table, label, {position: 4.25})
    before, after = path.read_bytes().split(b"\n"), target.read_bytes().split(b"\n")
    assert [k for k, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [at]
    reread = read_table(target, options=table.options)
    assert reread.frame[label].tolist()[position] == 4.25


@pytest.mark.parametrize("cell", ["42.30 kW", "42.3kW", "€ 42.30", "-€42.30", "42.30 %", "42.30\u00a0°C"])
def test_a_new_number_keeps_the_notation_of_its_cell(cell, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,y\n" + "".join(f"{k},{cell.replace('42', str(42 + k))}\n" for k in range(9)), encoding="utf-8")
    table = read_table(path)
    target = applied(path, table, "y", {3: 4.23})
    changed = target.read_text(encoding="utf-8").splitlines()[4]
    assert changed == f"3,{cell.replace('42.30', '4.23').replace('42.3', '4.23').replace('-', '')}"


def test_a_missing_label_gets_the_unit_of_its_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id;y\n1;42,3 kW\n2;\n3;41,0 kW\n4;40,1 kW\n")
    target = applied(path, read_table(path), "y", {1: 4.2})
    assert target.read_text() == "id;y\n1;42,3 kW\n2;4,2 kW\n3;41,0 kW\n4;40,1 kW\n"


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: (archive.read(info), info.date_time, info.compress_type) for info in archive.infolist()}


@pytest.mark.parametrize(
    "name", ["title.xlsx", "groups-down.xlsx", "unit-row.xlsx", "total.xlsx", "footer.xlsx", "units.xlsx"]
)
@pytest.mark.parametrize("trail", [False, True])
def test_workbooks_keep_what_stands_around_the_table(name, trail, tmp_path):
    kept = next(kept for kept in spreadsheets.ALL if kept.name == name)
    path = written(kept, tmp_path)
    table = read_table(path)
    label = numbers_of(table)[0]
    target = applied(path, table, label, {4: 4.25}, trail=trail)
    before, after = (list(openpyxl.load_workbook(file).active.iter_rows(values_only=True)) for file in (path, target))
    width = len(before[0])
    changed = [(r, c) for r, row in enumerate(before) for c in range(width) if after[r][c] != row[c]]
    assert changed == [(table.rows[4] - 1, list(table.frame.columns).index(label))]
    assert after[changed[0][0]][changed[0][1]] == ("4.25 kW" if name == "units.xlsx" else 4.25)
    assert {part for part in parts(path) if parts(path)[part] != parts(target)[part]} == {"xl/worksheets/sheet1.xml"}
    if trail:
        assert after[table.reading.header[-1] - 1][width:] == ("mislabel_action", "mislabel_original", "mislabel_note")


@pytest.mark.parametrize("name", ["table.zip", "book.zip"])
def test_an_archive_keeps_its_other_members(name, tmp_path):
    kept = next(kept for kept in spreadsheets.ALL if kept.name == name)
    path = written(kept, tmp_path)
    table = read_table(path)
    target = applied(path, table, "power", {4: 4.25})
    assert [part for part in parts(path) if parts(path)[part] != parts(target)[part]] == [table.reading.member]
    assert list(parts(path)) == list(parts(target))
    found = read_table(target).frame["power"].tolist()
    assert found == [4.25 if k == 4 else value for k, value in enumerate(table.frame["power"])]


@pytest.mark.parametrize("name", ["t.feather", "t.arrow"])
def test_arrow_files_keep_types_batches_and_metadata(name, tmp_path):
    kept = next(kept for kept in spreadsheets.ALL if kept.name == name)
    path = written(kept, tmp_path)
    target = applied(path, read_table(path), "power", {4: 4.25, 7: 5.5})
    opened = pyarrow.ipc.open_stream if name == "t.arrow" else pyarrow.ipc.open_file
    before, after = (opened(pyarrow.memory_map(str(file))).read_all() for file in (path, target))
    assert after.schema.equals(before.schema, check_metadata=True)
    assert [batch.num_rows for batch in after.to_batches()] == [batch.num_rows for batch in before.to_batches()]
    new = [4.25 if k == 4 else 5.5 if k == 7 else value for k, value in enumerate(before["power"].to_pylist())]
    assert after.to_pydict() == before.to_pydict() | {"power": new}


def test_dropped_rows_and_a_trail_in_json_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"y": 1, "x": "a"}\n\n{"x": "b" , "y":2.0}\r\n{"x": "c"}\n{"y": "3,5", "x": {"y": 9}}\n')
    decisions = decide(path, "y", {1: 7, 2: 8.5}, [0], 4)
    apply_decisions(path, decisions, tmp_path / "clean.jsonl", trail=True)
    told = '"mislabel_action": "edit", "mislabel_original": "%s", "mislabel_note": "why\\tnot"}'
    assert (tmp_path / "clean.jsonl").read_bytes().decode() == (
        "\n"
        + '{"x": "b" , "y":7, '
        + told % "2"
        + '\r\n{"x": "c", "y": 8.5, '
        + told % ""
        + '\n{"y": "3,5", "x": {"y": 9}}\n'
    )


def test_an_archive_of_what_cannot_be_written_says_so_before_the_review(tmp_path):
    path = tmp_path / "t.zip"
    path.write_bytes(spreadsheets.zipped(t__xls=b"x")())
    decisions = decide(path, "y", {0: 1.0}, [], 1)
    with pytest.raises(MislabelError):
        apply_decisions(path, decisions, tmp_path / "clean.zip")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"header": "x"}, "row as a spreadsheet counts it"),
        ({"header": 0}, "row as a spreadsheet counts it"),
        ({"header": "4-3"}, "row as a spreadsheet counts it"),
        ({"skip": -1}, "0 or more"),
        ({"header": 2, "skip": 2}, "cannot be in row 2"),
    ],
)
def test_what_cannot_be_stated_is_refused(options, part):
    with pytest.raises(InvalidParameterError, match=part):
        ReadOptions.stated(**options)


def test_a_header_in_a_blank_row_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(spreadsheets.lines(above="Title\n\n")())
    with pytest.raises(TableFileError, match="row 2 is said to be the header, but holds nothing"):
        read_table(path, options=ReadOptions.stated(header=2))


def test_options_for_files_are_refused_for_frames():
    with pytest.raises(InvalidParameterError, match="header goes with a file"):
        audit(pd.DataFrame({"y": [1.0, 2.0, 3.0]}), "y", header=2)


def test_decisions_carry_how_the_file_was_read(tmp_path):
    rows = [(*row, row[1] * 2) for row in spreadsheets.ROWS * 3]
    path = tmp_path / "t.csv"
    path.write_bytes(spreadsheets.lines(rows, names=("id", "power", "temp", "y"), above="a,b,c,d,e,f\n1,2\n")())
    result = audit(path, "y", header=3, na=["kaputt"], mean="none")
    assert result.decisions["file"]["header"] == "3"
    assert result.decisions["file"]["na"] == ["kaputt"]
    decisions = {**result.decisions, "decisions": [{"position": 5, "action": "edit", "value": 1.25}]}
    target = tmp_path / "clean.csv"
    result.apply(decisions, output=target)
    before, after = path.read_text().splitlines(), target.read_text().splitlines()
    assert [k + 1 for k, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [9]
    assert result.summary["reading"]["header"] == "3"
