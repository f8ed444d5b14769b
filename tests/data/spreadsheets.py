"""Tables as people keep them, made in code, and how each of them has to be read; or the words with which it is refused."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NAMES = ("id", "power", "temp")
#: The rows that most of the files hold: an id, and two numbers.
ROWS = [(f"P{k:02d}", round(40.5 + 1.7 * k + 0.3 * (k % 3), 2), round(12.25 - 0.5 * k + (k % 4), 2)) for k in range(12)]


@dataclass(frozen=True)
class Kept:
    """A file as somebody keeps it, and what has to be read from it.

    columns : numbers, texts and None where nothing stands, by name. said : parts of notes. refused : parts of the message of a
    file that is refused. options : what the user states. header, units, left_out : of the reading; rows as a spreadsheet counts.
    """

    name: str
    content: Callable[[], bytes]
    columns: dict[str, list[Any]] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    header: str | None = "1"
    units: dict[str, str] = field(default_factory=dict)
    left_out: tuple[tuple[str, tuple[int, ...]], ...] = ()
    label: str | None = None


def expected(*names: str, rows: list[tuple[Any, ...]] | None = None) -> dict[str, list[Any]]:
    """Columns of the rows."""
    found = ROWS if rows is None else rows
    return {name: [row[k] for row in found] for k, name in enumerate(names or NAMES)}


def _cell(value: Any, decimal: str = ".") -> str:
    return "" if value is None else f"{value:.2f}".replace(".", decimal) if isinstance(value, float) else str(value)


def lines(
    rows: Any = None,
    *,
    mark: str = ",",
    decimal: str = ".",
    above: str = "",
    below: str = "",
    names: Any = NAMES,
    end: str = "\n",
) -> Callable[[], bytes]:
    """A text table, with lines above and below."""
    table = [list(names)] if names else []
    table += [[_cell(value, decimal) for value in row] for row in (ROWS if rows is None else rows)]
    text = above + "".join(mark.join(row) + end for row in table) + below
    return lambda: text.encode()


def sheets(*tables: list[list[Any]], titles: tuple[str, ...] = (), merged: tuple[str, ...] = ()) -> Callable[[], bytes]:
    """A workbook of these sheets; None leaves a cell out."""

    def content() -> bytes:
        from openpyxl import Workbook

        book = Workbook()
        for at, rows in enumerate(tables):
            sheet = book.active if at == 0 else book.create_sheet()
            sheet.title = titles[at] if titles else f"Sheet{at + 1}"
            for number, row in enumerate(rows, 1):
                for k, value in enumerate(row, 1):
                    if value is not None:
                        sheet.cell(number, k, value)
            for reference in merged if at == 0 else ():
                sheet.merge_cells(reference)
        out = io.BytesIO()
        book.save(out)
        return out.getvalue()

    return content


def table(rows: Any = None, names: Any = NAMES) -> list[list[Any]]:
    """A header and rows, for a sheet."""
    return [list(names), *(list(row) for row in (ROWS if rows is None else rows))]


def total(word: str = "Summe") -> tuple[Any, ...]:
    """The row of totals of ROWS."""
    return (word, round(sum(row[1] for row in ROWS), 2), round(sum(row[2] for row in ROWS), 2))


def zipped(**members: bytes) -> Callable[[], bytes]:
    """An archive."""

    def content() -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name.replace("__", "."), (2024, 1, 1, 0, 0, 0)), data)
        return out.getvalue()

    return content


def objects(end: str = "\n", **other: Any) -> Callable[[], bytes]:
    """ROWS as JSON lines."""
    found = [dict(zip(NAMES, row, strict=True)) | other for row in ROWS]
    return lambda: (end.join(json.dumps(row) for row in found) + end).encode()


def arrow(stream: bool = False) -> Callable[[], bytes]:
    """ROWS in Arrow's own format."""

    def content() -> bytes:
        import pyarrow as pa
        from pyarrow import ipc

        found, out = pa.table(expected()), io.BytesIO()
        with (ipc.new_stream if stream else ipc.new_file)(out, found.schema) as writer:
            writer.write_table(found, max_chunksize=5)
        return out.getvalue()

    return content


def _with(k: int, column: int, value: Any) -> list[tuple[Any, ...]]:
    """ROWS with another value in one place."""
    rows = [list(row) for row in ROWS]
    rows[k][column] = value
    return [tuple(row) for row in rows]


def in_units(unit: str, **others: str) -> list[tuple[Any, ...]]:
    """ROWS with a unit beside every power; another one in some rows."""
    return [(i, f"{p:.2f}{others.get(i, unit)}", t) for i, p, t in ROWS]


_SECOND = [("", None, None), ("name", "price", "size"), ("A", 1.5, 2.5), ("B", 1.0, 2.0)]
GROUPED = [("", "Input", "", "Output", ""), ("id", "min", "max", "min", "max")]
GROUPED_ROWS = [(f"P{k}", k + 0.5, k + 1.5, 2.0 * k, 3.0 * k) for k in range(8)]
GROUPED_NAMES = ("id", "Input min", "Input max", "Output min", "Output max")
_HALVES = [("north", *ROWS[k][1:]) for k in range(6)], [("south", *ROWS[k][1:]) for k in range(6, 12)]


def _subtotal(rows: list[tuple[Any, ...]], word: str) -> tuple[Any, ...]:
    return (word, round(sum(row[1] for row in rows), 2), round(sum(row[2] for row in rows), 2))


TITLES = (
    Kept(
        "title.csv",
        lines(above="Heat pumps, 2024\n"),
        expected(),
        ("header is in row 2",),
        header="2",
        left_out=(("above the header", (1,)),),
    ),
    Kept("title-of-two.csv", lines(above="one,two\n"), expected(), ("row 2, below 'one'",), header="2"),
    Kept("title-and-blank.csv", lines(above="Heat pumps\n\n"), expected(), ("below 'Heat pumps'",), header="3"),
    Kept(
        "title-german.csv",
        lines(mark=";", decimal=",", above="Messung, Anlage 3\n\n"),
        expected(),
        ("row 3",),
        header="3",
    ),
    Kept(
        "comments.csv",
        lines(above="# made on Monday, by hand\n# power in kW, temp in C\n"),
        expected(),
        ("row 3",),
        header="3",
    ),
    Kept("comment-names.csv", lines(names=("# id", "power", "temp")), expected("# id", "power", "temp")),
    Kept(
        "named-in-comment.csv",
        lines(above="# a run\n", names=("# id", "power", "temp")),
        expected("# id", "power", "temp"),
        ("row 2",),
        header="2",
    ),
    Kept("exported-title.csv", lines(above="Report,,\n,,\n"), expected(), ("row 3",), header="3"),
    Kept(
        "metadata.csv",
        lines(
            [(*row, 1.5, 2.5 + k) for k, row in enumerate(ROWS)],
            mark=";",
            names=(*NAMES, "a", "b"),
            above="Station;Berlin\nFrom;2024-01-01\n\n",
        ),
        expected(*NAMES, "a", "b", rows=[(*row, 1.5, 2.5 + k) for k, row in enumerate(ROWS)]),
        ("row 4",),
        header="4",
    ),
    Kept(
        "years.csv",
        lines(GROUPED_ROWS, names=("id", "2001", "2002", "2003", "2004"), above="By year\n"),
        expected("id", "2001", "2002", "2003", "2004", rows=GROUPED_ROWS),
        ("row 2",),
        header="2",
    ),
    Kept("title.xlsx", sheets([["Heat pumps"], [], *table()]), expected(), ("row 3",), header="3"),
    Kept(
        "far-down.xlsx",
        sheets(
            [
                [],
                [],
                ["Heat pumps"],
                ["made by", "me"],
                [],
                *table([(*row, 1.5 * k, 2.5) for k, row in enumerate(ROWS)], (*NAMES, "a", "b")),
            ]
        ),
        expected(*NAMES, "a", "b", rows=[(*row, 1.5 * k, 2.5) for k, row in enumerate(ROWS)]),
        ("row 6",),
        header="6",
    ),
    Kept("sep.csv", lines(mark=";", decimal=",", above="sep=;\r\n", end="\r\n"), expected(), header="2"),
    Kept("sep-odd.csv", lines(mark="|", above='"sep=|"\n'), expected(), header="2"),
)
HEADERS = (
    Kept(
        "groups.csv",
        lines(GROUPED_ROWS, names=(), above="".join(",".join(row) + "\n" for row in GROUPED)),
        expected(*GROUPED_NAMES, rows=GROUPED_ROWS),
        ("rows 1-2",),
        header="1-2",
    ),
    Kept(
        "groups.xlsx",
        sheets(
            [list(row) if k else [cell or None for cell in row] for k, row in enumerate([*GROUPED, *GROUPED_ROWS])],
            merged=("B1:C1", "D1:E1"),
        ),
        expected(*GROUPED_NAMES, rows=GROUPED_ROWS),
        ("rows 1-2",),
        header="1-2",
    ),
    Kept(
        "groups-down.xlsx",
        sheets(
            [["id", "Input", None, "Output", None], [None, "min", "max", "min", "max"], *map(list, GROUPED_ROWS)],
            merged=("A1:A2", "B1:C1", "D1:E1"),
        ),
        expected(*GROUPED_NAMES, rows=GROUPED_ROWS),
        ("rows 1-2",),
        header="1-2",
    ),
    Kept(
        "groups-titled.csv",
        lines(GROUPED_ROWS, names=(), above="Pumps,,,,\n" + "".join(",".join(row) + "\n" for row in GROUPED)),
        expected(*GROUPED_NAMES, rows=GROUPED_ROWS),
        ("rows 2-3",),
        header="2-3",
    ),
    Kept(
        "levels.csv",
        lines(GROUPED_ROWS, names=(), above="id,in,in,out,out\nno,min,max,min,max\n"),
        expected("id no", "in min", "in max", "out min", "out max", rows=GROUPED_ROWS),
        ("rows 1-2",),
        header="1-2",
    ),
    Kept("stated.csv", lines(above="id,what it is,how warm\n"), expected(), header="2", options={"header": 2}),
    Kept(
        "stated-two.csv",
        lines(above="no,what,how\n"),
        expected("no id", "what power", "how temp"),
        header="1-2",
        options={"header": "1-2"},
    ),
    Kept(
        "in-doubt.csv",
        lines([("long id", "long power", "long temp"), *ROWS]),
        expected(rows=[("long id", None, None), *ROWS]),
        ("row 2 holds texts", "--header 2"),
        label="power",
        refused=("holds 1 values that are not numbers", "row 2 of the file"),
    ),
    Kept(
        "no-header.csv",
        lines(names=()),
        expected("column 1", "column 2", "column 3"),
        ("without a header",),
        header="none",
        options={"header": "none"},
    ),
    Kept(
        "numbers-above.csv",
        lines([row[1:] for row in ROWS], names=("40.1", "12.2")),
        expected("40.1", "12.2", rows=[row[1:] for row in ROWS]),
        ("--header none",),
    ),
    Kept(
        "skipped.csv",
        lines(above="a,b,c,d,e\nf,g\n"),
        expected(),
        header="3",
        options={"skip": 2},
        left_out=(("skipped", (1, 2)),),
    ),
    Kept("skipped.xlsx", sheets([["a", 1, 2, 3, 4], ["f", 5], *table()]), expected(), header="3", options={"skip": 2}),
    Kept("short-header.csv", lines(names=("id", "power")), refused=("Expected 2 fields in line 2, saw 3", "--header")),
    Kept(
        "put-together.csv",
        lambda: lines()() + lines()(),
        expected(rows=[*ROWS, *ROWS]),
        ("the header again",),
        left_out=(("the header again", (14,)),),
    ),
)
UNITS = (
    Kept(
        "unit-row.csv",
        lines([("", "kW", "°C"), *ROWS]),
        expected(),
        ("row 2 holds the units",),
        units={"power": "kW", "temp": "°C"},
        left_out=(("units", (2,)),),
    ),
    Kept(
        "unit-row-brackets.csv",
        lines([("-", "[kW]", "[°C]"), *ROWS]),
        expected(),
        ("row 2",),
        units={"power": "[kW]", "temp": "[°C]"},
    ),
    Kept(
        "unit-row.xlsx",
        sheets([["Pumps"], list(NAMES), [None, "m³/h", "K"], *map(list, ROWS)]),
        expected(),
        ("row 3 holds the units",),
        header="2",
        units={"power": "m³/h", "temp": "K"},
    ),
    Kept("units.csv", lines(in_units(" kW")), expected()),
    Kept("units-tight.csv", lines(in_units("kW")), expected()),
    Kept("percent.csv", lines(in_units(" %"), mark=";"), expected()),
    Kept(
        "euro.csv",
        lines([(i, f"€ {p:.2f}".replace(".", ","), t) for i, p, t in ROWS], mark=";", decimal=","),
        expected(),
    ),
    Kept(
        "dollars.csv",
        lines([(i, f'"${1000 + p:,.2f}"', t) for i, p, t in ROWS]),
        expected(rows=[(i, round(1000 + p, 2), t) for i, p, t in ROWS]),
    ),
    Kept("units.xlsx", sheets(table(in_units(" kW"))), expected()),
    Kept("some-units.csv", lines(in_units(" kW", P03="", P07="")), expected(), ("2 cells have no unit", "kW")),
    Kept(
        "mixed-units.csv",
        lines(in_units(" kW", P03=" W", P07=" W")),
        expected(rows=in_units(" kW", P03=" W", P07=" W")),
        ("kW in 10 cells, W in 2 cells",),
        label="power",
        refused=("several units", "kW in 10 cells, W in 2 cells", "one unit"),
    ),
    Kept(
        "no-units.csv",
        lines([(f"{k} Main St", p, t) for k, (_, p, t) in enumerate(ROWS)]),
        expected(rows=[(f"{k} Main St", p, t) for k, (_, p, t) in enumerate(ROWS)]),
    ),
)
TOTALS = (
    Kept(
        "sum.csv",
        lines([*ROWS, total()]),
        expected(),
        ("row 14 was left out as a total", "'Summe'"),
        left_out=(("a total", (14,)),),
    ),
    Kept("total.xlsx", sheets(table([*ROWS, total("Total")])), expected(), ("row 14",), left_out=(("a total", (14,)),)),
    Kept(
        "sum-unnamed.csv",
        lines([*ROWS, total("")]),
        expected(),
        ("row 14 was left out as a total",),
        left_out=(("a total", (14,)),),
    ),
    Kept(
        "sum-changed.csv",
        lines([*_with(4, 1, 91.25), total()]),
        expected(rows=_with(4, 1, 91.25)),
        ("row 14 was left out",),
    ),
    Kept(
        "subtotals.csv",
        lines(
            [
                *_HALVES[0],
                _subtotal(_HALVES[0], "Subtotal"),
                *_HALVES[1],
                _subtotal(_HALVES[1], "Subtotal"),
                total("Total"),
            ]
        ),
        expected(rows=[*_HALVES[0], *_HALVES[1]]),
        ("row 8", "row 15", "row 16"),
        left_out=(("a total", (8,)), ("a total", (15,)), ("a total", (16,))),
    ),
    Kept(
        "mean.csv",
        lines(
            [
                *ROWS,
                (
                    "Mean",
                    round(float(np.mean([r[1] for r in ROWS])), 2),
                    round(float(np.mean([r[2] for r in ROWS])), 2),
                ),
            ]
        ),
        expected(),
        ("row 14",),
        left_out=(("a total", (14,)),),
    ),
    Kept(
        "brand.csv",
        lines([(("Shell", "Total", "BP")[k % 3], *row[1:]) for k, row in enumerate(ROWS)]),
        expected(rows=[(("Shell", "Total", "BP")[k % 3], *row[1:]) for k, row in enumerate(ROWS)]),
    ),
    Kept(
        "brand-last.csv",
        lines(_with(11, 0, "Total")),
        expected(rows=_with(11, 0, "Total")),
        ("row 13 says 'Total'", "kept"),
    ),
    Kept(
        "footer.csv",
        lines(below="\nSource: the meter\n"),
        expected(),
        ("left out as a footer",),
        left_out=(("a footer", (15,)),),
    ),
    Kept(
        "footnote.csv",
        lines(below="* estimated\n"),
        expected(),
        ("left out as a footer",),
        left_out=(("a footer", (14,)),),
    ),
    Kept(
        "footer.xlsx",
        sheets([*table(), [], ["Stand: 2024"], ["Quelle: Zähler"]]),
        expected(),
        ("footer",),
        left_out=(("a footer", (15, 16)),),
    ),
    Kept(
        "exported.csv",
        lines(
            [*ROWS, ("", None, None), total("Gesamt:")],
            mark=";",
            decimal=",",
            above="Bericht;;\n;;\n",
            below="Stand: Januar;;\n",
        ),
        expected(),
        ("row 17", "row 18"),
        header="3",
        left_out=(("a total", (17,)), ("a footer", (18,))),
    ),
    Kept(
        "two-tables.csv",
        lines([*ROWS, *_SECOND]),
        expected(rows=[*ROWS, _SECOND[0], ("name", None, None), *_SECOND[2:]]),
        ("row 15 looks like the header of another table",),
    ),
    Kept(
        "sum-and-footer.csv",
        lines([*ROWS, total("Gesamt")], below="\nQuelle: Zähler\n"),
        expected(),
        ("row 14", "row 16"),
        left_out=(("a total", (14,)), ("a footer", (16,))),
    ),
)
GAPS = (
    Kept("nb.csv", lines(_with(3, 1, "n.b.")), expected(rows=_with(3, 1, None))),
    Kept("na.csv", lines(_with(3, 1, "n/a")), expected(rows=_with(3, 1, None))),
    Kept("lod.csv", lines(_with(3, 1, "<LOD")), expected(rows=_with(3, 1, None)), ("<LOD", "read as missing")),
    Kept(
        "limits.csv",
        lines(
            [(i, f"<{p:.1f}".replace(".", ",") if k < 2 else p, t) for k, (i, p, t) in enumerate(ROWS)],
            mark=";",
            decimal=",",
        ),
        expected(rows=[(i, round(p, 1) if k < 2 else p, t) for k, (i, p, t) in enumerate(ROWS)]),
        ("2 cells are limits",),
    ),
    Kept(
        "stated-na.csv",
        lines(_with(3, 1, "kaputt")),
        expected(rows=_with(3, 1, None)),
        options={"na": ["kaputt"]},
        label="power",
    ),
    Kept(
        "stated-number.csv",
        lines(_with(3, 1, -9999.0)),
        expected(rows=_with(3, 1, None)),
        options={"na": "-9999"},
        label="power",
    ),
    Kept(
        "stated-number.xlsx",
        sheets(table(_with(3, 1, -9999))),
        expected(rows=_with(3, 1, None)),
        options={"na": ["-9999"]},
    ),
)
CONTAINERS = (
    Kept(
        "two-sheets.xlsx",
        sheets([["notes"]], table(), titles=("About", "Data")),
        expected(),
        ("there are also About",),
        options={"sheet": "Data"},
    ),
    Kept(
        "wrong-sheet.xlsx",
        sheets(table()),
        refused=("has no sheet 'Daten'; it has: Sheet1",),
        options={"sheet": "Daten"},
    ),
    Kept("one.zip", zipped(readme__txt=b"about these data\n", data__csv=lines()()), refused=("holds 2 tables",)),
    Kept(
        "table.zip",
        zipped(readme__md=b"about", data__csv=lines(mark=";", decimal=",")()),
        expected(),
        ("data.csv in the archive",),
    ),
    Kept("book.zip", zipped(book__xlsx=sheets([["Pumps"], *table()])()), expected(), ("row 2",), header="2"),
    Kept("empty.zip", zipped(readme__md=b"nothing"), refused=("holds no table (readme.md)",)),
    Kept("t.jsonl", objects(), expected(), header=None),
    Kept("t.ndjson", objects("\r\n\r\n"), expected(), header=None),
    Kept("t.jsonl.gz", lambda: gzip.compress(objects()()), expected(), header=None),
    Kept(
        "gaps.jsonl",
        lambda: (
            b'{"id": "a", "power": 1.5}\n{"temp": 2, "id": "b"}\n{"id": "c", "power": null, "temp": 3.5}\n{"id": "d"}\n'
        ),
        {"id": list("abcd"), "power": [1.5, None, None, None], "temp": [None, 2, 3.5, None]},
        header=None,
    ),
    Kept("list.jsonl", lambda: b"[1, 2]\n[3, 4]\n", refused=("line 1", "expected an object")),
    Kept("t.feather", arrow(), expected(), header=None),
    Kept("t.arrow", arrow(stream=True), expected(), header=None),
    Kept("header.jsonl", objects(), refused=("header", "leave it out"), options={"header": 2}),
)
ALL = (*TITLES, *HEADERS, *UNITS, *TOTALS, *GAPS, *CONTAINERS)
