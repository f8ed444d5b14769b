"""Parquet files of random columns of every type, and damage to their bytes that leaves the file's layout alone."""

import datetime
import io
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tests.fuzz.mutate import MARKS, NUMBERS, RARE, mutate_bytes

_NAMES = [
    "y",
    "y",
    "a",
    "a",
    "",
    " ",
    "Y",
    " y",
    "y.1",
    "y (2)",
    "column 2",
    "index",
    "__index_level_0__",
    "x\x00z",
    "a.b",
    "x" * 5000,
]


def _integers(random: Random, low: int, high: int) -> Any:
    return random.choice((0, 1, low, high, random.randint(low, high)))


def _moment(random: Random) -> datetime.datetime:
    return datetime.datetime(random.choice((1, 1678, 1970, 2024, 9999)), 3, random.randint(1, 31), random.randrange(24))


def _float(random: Random) -> float:
    return random.choice((0.0, -0.0, 1.5, 1e308, float("inf"), float("nan"), 9.96921e36, random.gauss(0, 100)))


def _short_text(random: Random) -> str:
    return random.choice((*NUMBERS, *MARKS, "", "word", "1.5", "2.5", "1,5", "3"))


Value = Callable[[Random], Any]
#: A type of column, and how one of its values is made.
_TYPES: list[tuple[pa.DataType, Value]] = [
    *(
        (pa.type_for_alias(f"int{bits}"), lambda r, b=bits: _integers(r, -(2 ** (b - 1)), 2 ** (b - 1) - 1))
        for bits in (8, 16, 32, 64)
    ),
    *((pa.type_for_alias(f"uint{bits}"), lambda r, b=bits: _integers(r, 0, 2**b - 1)) for bits in (8, 16, 32, 64)),
    *((kind, _float) for kind in (pa.float16(), pa.float32(), pa.float64(), pa.float64(), pa.float64())),
    *((kind, _short_text) for kind in (pa.string(), pa.string(), pa.large_string(), pa.string_view())),
    (pa.string(), lambda r: r.choice(NUMBERS)),
    (pa.dictionary(pa.int8(), pa.string()), lambda r: r.choice("abc")),
    (pa.dictionary(pa.int32(), pa.string()), lambda r: r.choice(("1", "2.5", "x"))),
    (pa.decimal128(20, 4), lambda r: Decimal(r.randint(-(10**15), 10**15)) / 10_000),
    (pa.decimal256(50, 10), lambda r: Decimal(r.randint(-(10**9), 10**9))),
    (pa.bool_(), lambda r: r.random() < 0.5),
    *((kind, lambda r: _moment(r).date()) for kind in (pa.date32(), pa.date64())),
    *(
        (pa.timestamp(unit, tz=zone), _moment)
        for unit, zone in (("s", None), ("ms", "UTC"), ("us", "Europe/Berlin"), ("us", "+05:30"))
    ),
    (pa.time64("us"), lambda r: _moment(r).time()),
    (pa.duration("s"), lambda r: r.randrange(10**6)),
    (pa.binary(), lambda r: r.randbytes(3)),
    (pa.list_(pa.float64()), lambda r: [_float(r)] * r.randrange(3)),
    (pa.struct([("a", pa.int8()), ("b", pa.string())]), lambda r: {"a": 1, "b": _short_text(r)}),
    (pa.map_(pa.string(), pa.int64()), lambda r: [("k", 1)]),
    (pa.null(), lambda r: None),
]


def random_table(random: Random) -> bytes:
    """A valid file of a few columns of random types, names, gaps, row groups and compression."""
    rows = random.choice((0, 1, 2, 5, 12, 60))
    columns, names = [], []
    for _ in range(random.choice((1, 2, 3, 6)) if random.random() > RARE else 2000):
        kind, value = random.choice(_TYPES)
        gaps = random.choice((0.0, 0.2, 1.0))
        values = [None if random.random() < gaps else value(random) for _ in range(rows)]
        columns.append(pa.array(values, kind))
        names.append(random.choice(_NAMES) if random.random() < 0.6 else f"c{len(names)}")
    out = io.BytesIO()
    table = pa.Table.from_arrays(columns, names=names)
    if random.random() < 0.3:
        described = random.choice(
            (b"{", b"null", b'{"index_columns": ["a", "y"]}', b'{"index_columns": 3, "columns": []}')
        )
        table = table.replace_schema_metadata({b"pandas": described})
    parquet.write_table(
        table,
        out,
        row_group_size=random.choice((None, 1, 4)),
        compression=random.choice(("none", "snappy", "gzip", "zstd")),
        use_dictionary=random.random() < 0.5,
        data_page_version=random.choice(("1.0", "2.0")),
    )
    return out.getvalue()


def _damage_in_place(random: Random, data: bytes) -> bytes:
    """A few bytes change, and the file keeps its length and its last bytes."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(4, max(len(changed) - 8, 5))
        changed[at] = random.choice((changed[at] ^ (1 << random.randrange(8)), 0, 255, random.randrange(256)))
    return bytes(changed)


def mutate_parquet(random: Random, data: bytes, other: bytes) -> bytes:
    """Random tables, tables with a few wrong bytes, and arbitrary damage."""
    action = random.random()
    if action < 0.35:
        return random_table(random)
    if action < 0.85:
        return _damage_in_place(random, random_table(random) if random.random() < 0.3 else data)
    return mutate_bytes(random, data, other)
