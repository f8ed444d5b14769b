"""Damage inside of files that have a structure: JSON, zip archives (workbooks, sets of files), gzip."""

import functools
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz.mutate import NUMBERS, RARE, Mutation, mutate_bytes, mutate_table, mutate_text, several

_LONG_AGO = (1980, 1, 1, 0, 0, 0)


# JSON ------------------------------------------------------------------------------------------------------------------

_LITERALS = [
    *("null", "true", "false", "0", "-1", "1e999", "-1e999", "NaN", "Infinity", "1e308", "0.1", "1.0", "2.0", "-0"),
    *('""', '"x"', '"3"', '"NaN"', '"\\ud800"', '"\\u0000"', "[]", "{}", "[0]", '{"a": 1}', '[[[[["x"]]]]]'),
    *("12345678901234567", "9" * 400, "9" * 5000, "1" + "0" * 30, "4", "7", "39", "40", '"drop"', '"keep"', '"edit"'),
]


def mutate_json(random: Random, data: bytes, other: bytes) -> bytes:
    """Other values, types, keys and nesting; or damage to the text."""
    return several(random, data, other, (_replace_value, _replace_value, _damage_json_text, mutate_text))


def _replace_value(random: Random, data: bytes, other: bytes) -> bytes:
    """Some values take others from a list, go, or come twice: all by marks that are replaced in the text."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return data
    slots = list(_slots(content))
    literals: list[str] = []
    for container, key in random.sample(slots, min(len(slots), random.choice((1, 1, 2, 5)))):
        action = random.random()
        if action < 0.75:
            literals.append(random.choice(_LITERALS))
            container[key] = f"\x01{len(literals) - 1}\x01"
        elif isinstance(container, dict):
            value = container.pop(key, None)
            if action < 0.9:
                container[random.choice(NUMBERS)] = value
        elif key < len(container):
            container += [container[key]] * random.choice((1, 1, 50))
    text = json.dumps(content)
    for number, literal in enumerate(literals):
        text = text.replace(f'"\\u0001{number}\\u0001"', literal)
    return text.encode()


def _slots(content: Any) -> Any:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key
        yield from _slots(value)


def _damage_json_text(random: Random, data: bytes, other: bytes) -> bytes:
    text = data.decode("utf-8", errors="replace")
    deep = random.choice((100, 3000, 100_000))
    nested = random.choice(("[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep, "[" * deep))
    colon = text.find(":", random.randrange(len(text) + 1))
    choices: list[Callable[[], str]] = [
        lambda: text.replace("[", "[" + nested + ",", 1),
        lambda: nested,
        lambda: text[: colon + 1] + nested + "," + text[colon + 1 :],
        lambda: re.sub(r'("\w+": )', r"\g<1>0, \g<1>", text, count=random.choice((1, 3, 0))),  # every key twice
        lambda: text.replace('"label"', '"label": "x", "label"'),
        lambda: text + text,
        lambda: "[" + text + "]",
        lambda: "\ufeff" + text,
    ]
    return random.choice(choices)().encode()


# Workbooks ---------------------------------------------------------------------------------------------------------------


def pack(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive that depends on nothing but its members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content, compression)
    return out.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """The members of a zip archive; BadZipFile and other errors where it is damaged."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


_CELL = re.compile(rb"<c r=\"([A-Z]+)(\d+)\"[^>]*?(?:/>|>.*?</c>)", re.DOTALL)
_CELLS = [
    *(b'<c r="%s" t="e"><v>#DIV/0!</v></c>', b'<c r="%s" t="e"><v>#N/A</v></c>', b'<c r="%s" t="b"><v>1</v></c>'),
    *(
        b'<c r="%s"><f>1+1</f><v>2</v></c>',
        b'<c r="%s"><f>SUM(B2:B5)</f></c>',
        b'<c r="%s" t="str"><f>"a"</f><v>a</v></c>',
    ),
    *(b'<c r="%s" t="inlineStr"><is><t>abc</t></is></c>', b'<c r="%s" t="inlineStr"><is><t>3.25</t></is></c>'),
    *(b'<c r="%s" t="s"><v>99999</v></c>', b'<c r="%s" t="s"><v>-1</v></c>', b'<c r="%s" t="s"><v>x</v></c>'),
    *(b'<c r="%s" t="d"><v>2024-02-29T12:00:00</v></c>', b'<c r="%s" t="d"><v>2024-02-30</v></c>'),
    *(b'<c r="%s" s="1"><v>45000.5</v></c>', b'<c r="%s" s="1"><v>-1</v></c>', b'<c r="%s" s="1"><v>1e300</v></c>'),
    *(b'<c r="%s" s="999"><v>1</v></c>', b'<c r="%s" s="2"><v>0.1</v></c>', b'<c r="%s" t="zz"><v>1</v></c>'),
    *(
        b'<c r="%s"><v></v></c>',
        b'<c r="%s"><v>1e999</v></c>',
        b'<c r="%s"><v>NaN</v></c>',
        b'<c r="%s" t="n"><v>x</v></c>',
    ),
    *(b'<c r="%s"><v>12345678901234567</v></c>', b'<c r="%s" t="str"><v>00007</v></c>', b'<c r="%s"/>', b""),
    *(b"<c><v>5</v></c>", b'<c r="A0"><v>5</v></c>', b'<c r="ZZZZ1"><v>5</v></c>', b'<c r="$A$1"><v>5</v></c>'),
    *(b'<c r="%s"><f t="shared" si="0" ref="A2:A9">B2</f><v>1</v></c>', b'<c r="%s"><f t="array" ref="A2">B2</f></c>'),
]
_AFTER_ROWS = [
    *(
        b'<row r="2"><c r="A2"><v>1</v></c></row>',
        b'<row r="0"><c r="A0"><v>1</v></c></row>',
    ),
    *(b"<row><c><v>1</v></c></row>", b'<row r="80"/>', b'<row r="75" hidden="1"><c r="B75"><v>2</v></c></row>'),
]
_MERGED = [b"A2:B3", b"B2:B5", b"A1:C1", b"A1:A9", b"C3:C3", b"B2:A1", b"B2", b"x"]
#: The far corner of a sheet: everything that walks over the rectangle up to it never ends.
FAR_CELL = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
_FAR_DOWN = b'<row r="1048576"><c r="A1048576"><v>1</v></c></row>'
_FAR_RIGHT = b'<row r="70"><c r="XFD70"><v>1</v></c></row>'
_BEYOND = b'<row r="99999999999"/>'
_WHOLE_SHEET = b"A1:XFD1048576"


def mutate_workbook(random: Random, data: bytes, other: bytes) -> bytes:
    """Damage to the XML inside of a workbook, to its members, or to the archive."""
    if random.random() < 0.15:
        return mutate_bytes(random, data, other)
    members = unpack(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        sheets = [name for name in members if "worksheets/sheet" in name]
        name = random.choice(sheets) if sheets and random.random() < 0.75 else random.choice(list(members))
        if name in sheets and random.random() < 0.8:
            members[name] = _damage_sheet(random, members[name])
        elif random.random() < 0.9:
            members[name] = mutate_text(random, members[name] or b"\n", random.choice(list(members.values())) or b"\n")
        else:
            members.pop(name)
            if not members:
                break
    return pack(members, random.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)))


def _damage_sheet(random: Random, sheet: bytes) -> bytes:
    if random.random() < 3 * RARE:
        return _enlarge_sheet(random, sheet)
    action = random.random()
    if action < 0.7:
        return _replace_cells(random, sheet)
    if action < 0.8:
        return _add_rows(sheet, random.choice(_AFTER_ROWS))
    if action < 0.9:
        return _merge(sheet, random.choice(_MERGED))
    if action < 0.99:
        return _announce(sheet, random.choice((b"A1:A1", b"A1:B2", b"C5:D9", b"x", b"")))
    entities = b"".join(b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10) for level in range(1, 9))
    document = b'<!DOCTYPE worksheet [<!ENTITY a0 "0">' + entities + b"]>"
    return re.sub(rb"<v>[^<]*</v>", b"<v>&a8;</v>", document + sheet, count=1)


def _enlarge_sheet(random: Random, sheet: bytes) -> bytes:
    """A small sheet that seems to be the largest there can be."""
    action = random.randrange(6)
    if action < 4:
        return _add_rows(sheet, (FAR_CELL, _FAR_DOWN, _FAR_RIGHT, _BEYOND)[action])
    return _merge(sheet, _WHOLE_SHEET) if action == 4 else _announce(sheet, _WHOLE_SHEET)


def _replace_cells(random: Random, sheet: bytes) -> bytes:
    cells = list(_CELL.finditer(sheet))
    chosen = random.sample(cells, min(len(cells), random.choice((1, 1, 2, 8))))
    for match in sorted(chosen, key=lambda found: -found.start()):
        new = random.choice(_CELLS).replace(b"%s", match.group(1) + match.group(2))
        sheet = sheet[: match.start()] + new + sheet[match.end() :]
    return sheet


def _add_rows(sheet: bytes, rows: bytes) -> bytes:
    return sheet.replace(b"</sheetData>", rows + b"</sheetData>")


def _merge(sheet: bytes, area: bytes) -> bytes:
    merged = b'<mergeCells count="1"><mergeCell ref="%s"/></mergeCells>' % area
    return sheet.replace(b"</sheetData>", b"</sheetData>" + merged)


def _announce(sheet: bytes, area: bytes) -> bytes:
    """Another size of the sheet, where it is stated."""
    return re.sub(rb'<dimension ref="[^"]*"', lambda _: b'<dimension ref="' + area + b'"', sheet)


# gzip --------------------------------------------------------------------------------------------------------------------


@functools.cache
def gzip_bomb(megabytes: int = 200) -> bytes:
    """A gzip file of about a thousandth of the size it unpacks to."""
    return gzip.compress(b"x,y\n" + b"1.5,2.5\n" * (megabytes * 125_000), compresslevel=9, mtime=0)


def mutate_gzip_table(random: Random, data: bytes, other: bytes) -> bytes:
    """Damage to a compressed table: inside, outside, cut, joined, and much larger than it looks."""
    action = random.random()
    if action < RARE / 4:
        return gzip_bomb()
    if action < 0.7:
        inside = mutate_table(random, gzip.decompress(data), gzip.decompress(other))
        return gzip.compress(inside, compresslevel=1, mtime=0)
    if action < 0.8:
        return data + random.choice(
            (data, other, b"\0" * 100, b"garbage", data[: len(data) // 2], gzip.compress(b"", mtime=0))
        )
    if action < 0.85:
        return gzip.decompress(data)
    return mutate_bytes(random, data, other)


# Sets of files -------------------------------------------------------------------------------------------------------------


def mutate_members(damage: Mutation) -> Mutation:
    """Damage to one or more files of a set that is kept as an archive: changed, swapped, emptied or gone."""

    def mutate(random: Random, data: bytes, other: bytes) -> bytes:
        members, foreign = unpack(data), unpack(other)
        for name in random.sample(sorted(members), random.choice((1, 1, len(members)))):
            action = random.random()
            if action < 0.1:
                members.pop(name)
            elif action < 0.25 and name in foreign:
                members[name] = foreign[name]
            elif action < 0.3:
                members[name] = random.choice((b"", b"\n", random.choice(list(members.values()))))
            else:
                members[name] = damage(random, members[name] or b"\n", foreign.get(name) or b"\n")
        return pack(members, zipfile.ZIP_STORED)

    return mutate
