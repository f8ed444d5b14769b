"""Small valid files of every format that is read, the same in every run: what mutations start from."""

import datetime
import functools
import gzip
import io
import json
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from tests.fuzz.mutate_containers import pack, unpack


@dataclass(frozen=True)
class Seed:
    """A valid file: how its name ends, and its bytes."""

    suffix: str
    data: bytes


def _rows(count: int) -> list[tuple[str, float, float, str, float]]:
    random = Random(7)
    return [
        (f"L{row:03d}", random.uniform(0, 100), random.gauss(0, 1), random.choice("abc"), random.uniform(1, 2000))
        for row in range(count)
    ]


def _text(names: Iterable[str], rows: Iterable[Iterable[str]], delimiter: str = ",", end: str = "\n") -> str:
    return "".join(delimiter.join(row) + end for row in [tuple(names), *map(tuple, rows)])


def _plain_table(delimiter: str, count: int = 12, decimal: str = ".") -> str:
    cells = ((i, f"{a:.4f}", f"{b:.3f}", k, f"{y:.2f}") for i, a, b, k, y in _rows(count))
    rows = ([cell if at in (0, 3) else cell.replace(".", decimal) for at, cell in enumerate(row)] for row in cells)
    return _text(("id", "area", "slope", "kind", "y"), rows, delimiter)


def _difficult_tables() -> list[bytes]:
    """Dialects, ids, dates, quotes, gaps: tables of which every one is right."""
    quoted = _text(
        ("name", "note", "y"),
        ((f'"{i}, x"', '"say ""so""\nand on"' if k == "a" else "", f'"{y:.1f}"') for i, _, _, k, y in _rows(8)),
        end="\r\n",
    )
    offsets = ("2024-03-30T12:00:00+01:00", "2024-03-31T12:00:00+02:00")
    dated = _text(
        ("when", "day", "id", "y"),
        ((offsets[n % 2], f"{n + 9:02d}.03.2024", f"1234567890123456{n}", f"{n / 7:.3f}") for n in range(9)),
    )
    grouped = _text(("n", "y"), (("1.234.567,8", f"{1000 + n:,}".replace(",", ".") + ",5") for n in range(7)), ";")
    coded = _text(("code", "y"), ((f"{n:05d}", f"{n}.5") for n in range(1, 9)))
    gaps = _text(("a", "b", "y"), ((["1", "NA", ""][n % 3], "-" if n % 4 else "2.5", f"{n}") for n in range(12)), "\t")
    doubled = _text(("a", "a", "", "y"), (("1", "2", "x", f"{n}") for n in range(5)))
    accents = _text(("größe", "y"), (("Ä", "1,5"), ("é", "2,5"), ("ß", "3,5")), ";")
    return [
        *(text.encode() for text in (quoted, dated, grouped, coded, gaps, doubled)),
        *(accents.encode("latin-1"), accents.encode("utf-8-sig"), accents.encode("utf-16")),
        *(b"y\n1\n2\n\n3\n", b"x|y\n1|2\n3|4\n", b"x,y\n1.234,5\n2.345,6\n1000.5,7\n"),
    ]


@functools.cache
def text_tables() -> list[Seed]:
    plain = [_plain_table(","), _plain_table(";", decimal=","), _plain_table("\t"), _plain_table(",", 60)]
    return [
        *(Seed(".csv", text.encode()) for text in plain),
        *(Seed((".csv", ".txt")[number % 2], data) for number, data in enumerate(_difficult_tables())),
    ]


@functools.cache
def laid_out_tables() -> list[Seed]:
    """Titles, comments, units, two rows of header, totals and footers around tables of which every one is right."""
    rows = [(i, f"{a:.1f}", k, f"{y:.2f}") for i, a, _, k, y in _rows(9)]
    total = ("Summe", f"{sum(float(row[1]) for row in rows):.1f}", "", f"{sum(float(row[3]) for row in rows):.2f}")
    plain = _text(("id", "area", "kind", "y"), rows)
    measured = _text(("id", "area", "y"), ((i, f"{a:.1f} m²", f"{y:.2f} kW") for i, a, _, _, y in _rows(9)), "\t")
    texts = [
        "Messreihe 7\n\n" + plain,
        "# made by hand, twice\n# area, y\n" + plain,
        "sep=;\r\n" + _text(("id", "area", "kind", "y"), rows, ";", "\r\n"),
        _text(("id", "area", "kind", "y"), [("", "m²", "", "kW"), *rows, total]) + "\nSource: here\n",
        "Report,,,\n,,,\n"
        + _text(("id", "area", "", "y"), [("", "min", "max", "max"), *((i, a, a, y) for i, a, _, y in rows)]),
        measured,
        plain + plain,
    ]
    return [Seed(".csv", text.encode()) for text in texts]


@functools.cache
def json_lines() -> list[Seed]:
    rows = [{"id": i, "area": round(a, 3), "kind": k, "y": round(y, 2)} for i, a, _, k, y in _rows(8)]
    odd = [{"y": 1, "größe": None}, {"y": 2.5, "list": [1, {"a": 2}]}, {"größe": True, "y": "3,5"}, {"y": 1e-7}]
    text = "\n".join(json.dumps(row) for row in rows)
    other = "\r\n\r\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in odd)
    return [
        Seed(".jsonl", text.encode()),
        Seed(".ndjson", f"{other}\n".encode()),
        Seed(".jsonl.gz", gzip.compress(text.encode(), mtime=0)),
    ]


@functools.cache
def feather_tables() -> list[Seed]:
    import pyarrow as pa
    from pyarrow import ipc

    saved = []
    for table in (pa.Table.from_pandas(_frame(9)), _every_type()):
        for suffix, writer in ((".feather", ipc.new_file), (".arrow", ipc.new_stream)):
            out = io.BytesIO()
            with writer(out, table.schema) as file:
                file.write_table(table, max_chunksize=4)
            saved.append(Seed(suffix, out.getvalue()))
    return saved


@functools.cache
def zipped_tables() -> list[Seed]:
    plain = _plain_table(";", decimal=",").encode()
    return [
        Seed(".zip", pack({"readme.md": b"about", "t.csv": plain})),
        Seed(".zip", pack({"folder/t.jsonl": json_lines()[0].data, "__MACOSX/._t.jsonl": b"x"})),
        Seed(".zip", pack({"book.xlsx": workbooks()[0].data})),
    ]


@functools.cache
def gzipped_tables() -> list[Seed]:
    def zipped(data: bytes) -> bytes:
        return gzip.compress(data, mtime=0)

    tab = [_plain_table("\t").encode(), _plain_table("\t", 40).encode(), b"a\tb\ty\n1\t\t3\n4\tx\t5\n"]
    return [*(Seed(".tsv.gz", zipped(data)) for data in tab), Seed(".csv.gz", zipped(_plain_table(",").encode()))]


def _frame(count: int) -> pd.DataFrame:
    rows = _rows(count)
    return pd.DataFrame(
        {
            "id": [row[0] for row in rows],
            "kind": [None if n == 4 else row[3] for n, row in enumerate(rows)],
            "area": [np.nan if n == 3 else round(row[1], 4) for n, row in enumerate(rows)],
            "count": range(count),
            "when": pd.date_range("2024-01-01", periods=count, freq="D"),
            "y": [round(row[4], 2) for row in rows],
        }
    )


@functools.cache
def workbooks() -> list[Seed]:
    """Numbers, text, dates, booleans, formulas with and without stored results, two sheets, merged cells, gaps."""
    from openpyxl import Workbook

    simple, rich = Workbook(), Workbook()
    for row in [("id", "kind", "area", "y"), *((i, k, round(a, 3), round(y, 2)) for i, a, _, k, y in _rows(8))]:
        simple.active.append(row)
    sheet = rich.active
    sheet.append(("n", "ok", "day", "text number", "sum", "y"))
    for n in range(10):
        day = datetime.datetime(2024, 1, 1 + n)
        sheet.append((n, n % 2 == 0, day, f"{n},5", f"=A{n + 2}+1", None if n == 5 else n * 1.5))
    sheet.merge_cells("H2:I3")
    rich.create_sheet("more").append(("a", "b"))
    return [Seed(".xlsx", data) for data in (_saved(simple), _saved(rich))]


def _saved(book: object) -> bytes:
    fixed = datetime.datetime(2024, 1, 1)
    book.properties.created = book.properties.modified = fixed
    out = io.BytesIO()
    book.save(out)
    members = unpack(out.getvalue())
    # Saving sets the time of the last change once more.
    return pack({name: data for name, data in members.items() if name != "docProps/core.xml"} | _core(members))


def _core(members: dict[str, bytes]) -> dict[str, bytes]:
    import re

    name = "docProps/core.xml"
    return {name: re.sub(rb"\d{4}-\d\d-\d\dT[\d:]+Z", b"2024-01-01T00:00:00Z", members[name])}


@functools.cache
def parquet_tables() -> list[Seed]:
    """Every type of column, in several layouts."""
    import pyarrow as pa
    from pyarrow import parquet

    tables = [pa.Table.from_pandas(_frame(9)), pa.Table.from_pandas(_frame(6).set_index("id")), _every_type()]
    tables.append(pa.table({"a": ["1,5", "2,5", None], "b": pa.array([1, 2, 3], pa.uint8()), "y": [1.0, 2.0, 3.5]}))
    saved = []
    for table in tables:
        for options in (
            {"compression": "none"},
            {"compression": "snappy", "row_group_size": 4, "use_dictionary": False},
        ):
            out = io.BytesIO()
            parquet.write_table(table, out, **options)
            saved.append(Seed(".parquet", out.getvalue()))
    return saved


def _every_type() -> object:
    import pyarrow as pa

    count, when = 7, [datetime.datetime(2024, 3, 30 + n % 2, 12) for n in range(7)]
    columns = {str(kind): pa.array(range(count), kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}
    columns |= {str(kind): pa.array(range(count), kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())}
    columns["half"] = pa.array(np.arange(count, dtype=np.float16))
    columns |= {str(kind): pa.array([1.5, None, *range(5)], kind) for kind in (pa.float32(), pa.float64())}
    columns["decimal"] = pa.array([Decimal("1.25")] * 6 + [None], pa.decimal128(20, 4))
    columns["text"] = pa.array(["1.5", "2,5", None, "x", "", "NaN", "1e999"])
    columns["large text"] = pa.array(["4", "5", None, "6", "7", "8", "9"], pa.large_string())
    columns["category"] = pa.array(["a", "b", None, "a", "b", "a", "a"]).dictionary_encode()
    columns["truth"] = pa.array([True, False, None, True, True, False, True])
    columns["date"] = pa.array([moment.date() for moment in when], pa.date32())
    columns["moment"] = pa.array(when, pa.timestamp("us"))
    columns["zoned"] = pa.array(when, pa.timestamp("ns", tz="Europe/Berlin"))
    columns["time"] = pa.array([moment.time() for moment in when], pa.time64("us"))
    columns["duration"] = pa.array(range(count), pa.duration("s"))
    columns["binary"] = pa.array([b"\xff\x00"] * count)
    columns["list"] = pa.array([[1.0, 2.0], [], None, [3.0], [4.0], [5.0], [6.0]])
    columns["struct"] = pa.array([{"a": 1, "b": "x"}] * count)
    columns["nothing"] = pa.nulls(count)
    columns["y"] = pa.array([12345678901234567 + n for n in range(count)], pa.int64())
    return pa.table(columns)


_WATER = ("O 0 0 0.1", "H 0 0.76 -0.47", "H 0 -0.76 -0.47")
_HYDROGEN = ("H 0 0 0", "H 0 0 0.74")
_QM9_VALUES = "157.7118\t157.70997\t157.70699\t0.\t13.21\t-0.3877\t0.1171\t0.5048\t35.3641\t0.044749\t-40.47893"
_QM9 = f"""5
gdb 1\t{_QM9_VALUES}\t-40.476062\t-40.475117\t-40.498597\t6.469\t
C\t-0.0126981359\t 1.0858041578\t 0.0080009958\t-0.535689
H\t 0.002150416\t-0.0060313176\t 0.0019761204\t 0.133921
H\t 1.0117308433\t 1.4637511618\t 0.0002765748\t 0.133922
H\t-0.540815069\t 1.4475266138\t-0.8766437152\t 0.133923
H\t-0.5238136345\t 1.4379326443\t 1.5*^-6\t 0.133923
1341.307\t1341.3284\t1341.365\t1562.6731\t1562.7453\t3038.3205\t3151.6034\t3151.6788\t3151.7078
C\tC\t
InChI=1S/CH4/h1H4\tInChI=1S/CH4/h1H4
"""


def _xyz(comments: Iterable[str]) -> bytes:
    blocks = []
    for number, comment in enumerate(comments):
        atoms = (_WATER, _HYDROGEN)[number % 2]
        blocks.append("\n".join([str(len(atoms)), comment, *atoms]) + "\n")
    return "".join(blocks).encode()


@functools.cache
def xyz_files() -> list[Seed]:
    named = _xyz(f"energy={-76.4 - n} name=m{n} note=x{n}" for n in range(6))
    return [
        Seed(".xyz", named),
        Seed(".xyz", _xyz(["", "water, made by hand", 'energy="1.5" name="a b"', "energy=2", "energy=-3e-4"])),
        Seed(".xyz", named.replace(b"\n", b"\r\n")),
        Seed(".xyz", b"1\nenergy=1.0\n6 0.0 0.0 0.0\n\n1\nenergy=2.0\n8 0.0 0.0 1.0"),
    ]


@functools.cache
def extended_xyz_files() -> list[Seed]:
    lattice = 'Lattice="4 0 0 0 4 0 0 0 4"'
    plain = f'2\n{lattice} Properties=species:S:1:pos:R:3:forces:R:3 energy={{}} pbc="T T F"\nNa 0 0 0 1 2 3\nCl 2 2 2 0 0 0\n'
    turned = f"2\n{lattice} Properties=pos:R:3:species:S:1 energy={{}} name={{{{a b}}}} key\n0 0 0 Na\n2.5 2 2 Cl\n"
    return [
        Seed(".extxyz", "".join(plain.format(-3.0 - n) for n in range(5)).encode()),
        Seed(".xyz", "".join(turned.format(-2.5 * n) for n in range(4)).encode()),
    ]


@functools.cache
def qm9_files() -> list[Seed]:
    return [Seed(".xyz", _QM9.encode()), Seed(".xyz", (_QM9 + _QM9.replace("gdb 1", "gdb 2")).encode())]


def _sd_block(name: str, energy: float) -> str:
    return (
        f"{name}\n  prog  3D\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n"
        "    0.0000    0.0000    0.1000 O   0  0  0  0  0  0  0  0  0  0  0  0\n"
        "    0.0000    0.7600   -0.4700 H   0  0  0  0  0  0  0  0  0  0  0  0\n"
        "    0.0000   -0.7600   -0.4700 H   0  0  0  0  0  0  0  0  0  0  0  0\n"
        "  1  2  1  0\n  1  3  1  0\nM  END\n"
        f">  <energy>\n{energy}\n\n>  <note>\nabc\nsecond line\n\n$$$$\n"
    )


@functools.cache
def sd_files() -> list[Seed]:
    text = "".join(_sd_block(f"m{n}", -76.4 + n) for n in range(5))
    crowded = text.replace(">  <note>", "> 25 <note> (1)")
    return [Seed(".sdf", data.encode()) for data in (text, text.replace("\n", "\r\n"), crowded, text[:-5])]


@functools.cache
def mol_files() -> list[Seed]:
    block = _sd_block("water", -76.4)
    return [Seed(".mol", block.encode()), Seed(".mol", block.split(">  <energy>")[0].encode())]


@functools.cache
def smiles_tables() -> list[Seed]:
    smiles = ["C", "CC", "CCO", "c1ccccc1", "C[NH3+]", "[Na+].[Cl-]", "C/C=C/C", "O=C(O)c1ccccc1", "N#N"]
    rows = [(text, f"{n * 1.5:.2f}", f"n{n}") for n, text in enumerate(smiles)]
    comma = _text(("smiles", "y", "name"), rows).encode()
    return [
        Seed(".csv", comma),
        Seed(".tsv", _text(("name", "SMILES", "y"), ((c, a, b) for a, b, c in rows), "\t").encode()),
        Seed(".csv", _text(("smiles", "y"), (row[:2] for row in rows), ";").encode()),
        Seed(".csv.gz", gzip.compress(comma, mtime=0)),
    ]


@functools.cache
def decision_files() -> list[Seed]:
    def item(position: int, action: str, value: object = None, **more: object) -> dict[str, object]:
        return {"position": position, "action": action, "value": value, **more}

    some = [item(0, "accept", 1.25, row="L0"), item(1, "keep", note="=fine"), item(2, "drop"), item(3, "edit", -3)]
    many = [item(n, ("accept", "edit", "keep", "drop")[n % 4], n / 3, label=7.5, note="é") for n in range(30)]
    return [
        Seed(".json", json.dumps(content).encode())
        for content in (
            {
                "format": "mislabel-decisions/1",
                "file": {"name": "t.csv", "sha256": "0" * 64, "rows": 40, "sheet": sheet},
                "label": "y",
                "decisions": decisions,
            }
            for sheet, decisions in ((None, some), ("Sheet", many), (None, []))
        )
    ]


GRAM_POINTS = np.random.default_rng(3).normal(size=(200, 2))


@functools.cache
def gram_files() -> list[Seed]:
    """Complete and interrupted files of similarities, and those of another kernel, with all that lies beside them."""
    from sklearn.gaussian_process.kernels import RBF

    from mislabel.kernels import gram_matrix

    def stop(message: str, fraction: float) -> None:
        raise KeyboardInterrupt

    saved = []
    for length, interrupted in ((1.0, False), (1.0, True), (1.0049, False)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "k.gram"
            with suppress(KeyboardInterrupt):
                gram_matrix(RBF(length), GRAM_POINTS, path=path, n_jobs=1, progress=stop if interrupted else None)
            members = {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}
        saved.append(Seed(".zip", pack(members, compression=0)))
    return saved
