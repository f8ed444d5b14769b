"""Damage to valid files: bytes, numbers, text and the structure of tables.

Every mutation takes a source of randomness, the file, and another valid file of the same kind, and returns new bytes.
"""

import re
from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[Random, bytes, bytes], bytes]

#: No mutation makes a file larger than this, apart from those whose purpose is size.
MOST_BYTES = 300_000
NUMBERS = [
    *("1e308", "-1e308", "1e999", "-1e999", "1e-400", "-0", "-0.0", "NaN", "nan", "-nan", "inf", "-inf", "Infinity"),
    *("9.96921e36", "9.969209968386869e+36", "-9999", "-999.25", "00007", "007.50", "1.234", "1,234", "12 345,6"),
    *("1'234.5", "1.234.567,8", "1,234,567.8", "1\u00a0234,5", "1\u202f234.5", "12,34,567", "+-", "+-1", "--5", "+5"),
    *("\u22125.5", "12345678901234567", "98765432109876543", "-9223372036854775809", "18446744073709551616"),
    *("1_000", "0x1F", "1e", "e5", ".", ".5", "5.", ",5", "1.5*^-6", "1.0D-3", "1.5d0", "12%", "$5", "1/2", "(5)"),
    *(
        "\u0663\u0664",
        "\uff11\uff12",
        "\u00bd",
        "True",
        "FALSE",
        "None",
        "null",
        "#DIV/0!",
        "#REF!",
        "N/A",
        "=1+1",
        "@A1",
    ),
    *("2024-03-30T12:00:00+01:00", "2024-03-31T12:00:00+02:00", "2024-02-30", "31.12.2024", "12/31/2024", "0000-00-00"),
    *("9" * 400, "0." + "3" * 400, "1e-5e-5", "1.2.3", "99999999999", "-1", "0", "3", "2147483648", "1e5"),
]
MARKS = [
    *(",", ";", "\t", "|", '"', '""', "'", '"\n', '\n"', "\r", "\n", "\r\n", "\n\n", "\r\n\r\n", "\x00", "\x00" * 9),
    *("\ufeff", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1a", "\x1c", "\u202e", "\u200f", "\u200b", "\u00a0"),
    *(
        " ",
        "   ",
        "\\",
        "\\n",
        "=",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        "&",
        "#",
        "%s",
        "$$$$",
        "\U0001f4a9",
        "\u00e9",
        "e\u0301",
    ),
    *(
        "sep=;\n",
        "# comment\n",
        "Lattice=",
        "Properties=",
        "pbc=",
        "species:S:1:pos:R:3",
        "gdb ",
        "M  END\n",
        "> <y>\n",
    ),
]
RAW_MARKS = [
    *(b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc0\x80", b"\xff", b"\x80"),
    *(b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"\x00\x00\xfe\xff", b"\xf8\x88\x80\x80\x80", b"\x81", b"\x8d"),
]
ENCODINGS = [
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "latin-1",
    "cp1252",
    "cp437",
    "utf-7",
    "utf-8-sig",
    "shift_jis",
]
_NUMBER = re.compile(rb"[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[^\s,;|\t\"=:<>{}]+")


def _span(random: Random, data: bytes, most: int = 64) -> tuple[int, int]:
    """A piece of a file: mostly short, at times anything."""
    start = random.randrange(len(data) + 1)
    length = random.randrange(1, most) if random.random() < 0.8 else random.randrange(len(data) - start + 1)
    return start, min(start + length, len(data))


def flip_bits(random: Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def set_bytes(random: Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        changed[random.randrange(len(changed))] = random.choice((0, 10, 13, 32, 34, 44, 45, 48, 127, 128, 255))
    return bytes(changed)


def delete_piece(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def insert_bytes(random: Random, data: bytes, other: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.randbytes(random.choice((1, 2, 3, 8, 40))) + data[at:]


def duplicate_piece(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(random, data)
    at = random.randrange(len(data) + 1)
    return data[:at] + data[start:end] + data[at:]


def swap_pieces(random: Random, data: bytes, other: bytes) -> bytes:
    a, b, c, d = sorted(random.randrange(len(data) + 1) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def truncate(random: Random, data: bytes, other: bytes) -> bytes:
    return data[: random.randrange(len(data))]


def repeat_piece(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(random, data, 20)
    times = random.choice((10, 100, 1000, 10_000))
    return data[:start] + (data[start:end] * times)[:MOST_BYTES] + data[end:]


def splice(random: Random, data: bytes, other: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


def replace_number(random: Random, data: bytes, other: bytes) -> bytes:
    """One number, or each of a file with some probability, becomes an interesting one."""
    return _replace_tokens(random, data, _NUMBER, lambda: random.choice(NUMBERS).encode())


def replace_word(random: Random, data: bytes, other: bytes) -> bytes:
    """A cell, a name or a keyword becomes a number, a mark, or nothing."""
    return _replace_tokens(random, data, _WORD, lambda: random.choice((*NUMBERS, *MARKS, "", "", "y", "x")).encode())


def copy_word(random: Random, data: bytes, other: bytes) -> bytes:
    """One cell, name or keyword takes the place of others."""
    words = _WORD.findall(data)
    if not words:
        return data
    word = random.choice(words)
    return _replace_tokens(random, data, _WORD, lambda: word)


def _replace_tokens(random: Random, data: bytes, pattern: re.Pattern[bytes], new: Callable[[], bytes]) -> bytes:
    found = [match.span() for match in pattern.finditer(data)]
    if not found:
        return data
    share = random.choice((0.0, 0.0, 0.1, 0.5))
    chosen = [span for span in found if random.random() < share] or [random.choice(found)]
    pieces, at = [], 0
    for start, end in chosen[:2000]:
        pieces += [data[at:start], new()]
        at = end
    return b"".join([*pieces, data[at:]])


def insert_mark(random: Random, data: bytes, other: bytes) -> bytes:
    """A delimiter, quote, line end, byte order mark, separator or half a character somewhere."""
    mark = random.choice(MARKS).encode() if random.random() < 0.8 else random.choice(RAW_MARKS)
    at = random.choice((0, len(data), random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
    return data[:at] + mark * random.choice((1, 1, 1, 2, 50)) + data[at:]


def change_line_ends(random: Random, data: bytes, other: bytes) -> bytes:
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    ends = random.choice(((b"\r",), (b"\r\n",), (b"\n", b"\r\n"), (b"\n", b"\r", b"\r\n"), (b"\n\r",), (b"\n\n",)))
    return b"".join(line + random.choice(ends) for line in lines)


def change_encoding(random: Random, data: bytes, other: bytes) -> bytes:
    text = data.decode("utf-8", errors="replace")
    return text.encode(random.choice(ENCODINGS), errors="replace")


def _rows(data: bytes) -> tuple[list[bytes], bytes]:
    lines = data.split(b"\n")
    delimiters = (b",", b";", b"\t", b"|")
    return lines, max(delimiters, key=lines[0].count)


def damage_header(random: Random, data: bytes, other: bytes) -> bytes:
    """Names that are equal, empty, very long, blank, numbers, quoted or formulas."""
    lines, delimiter = _rows(data)
    names = lines[0].split(delimiter)
    new = (b"", b" ", b"y", b"Y", b" y ", b"x" * 20_000, b"1", b'"a\nb"', b'"', b"=1", b"column 2", b"y (2)", names[0])
    for _ in range(random.choice((1, 1, 2, len(names)))):
        names[random.randrange(len(names))] = random.choice(new)
    lines[0] = delimiter.join(names)
    return b"\n".join(lines)


def damage_rows(random: Random, data: bytes, other: bytes) -> bytes:
    """Rows that are too short, too long, doubled, blank, out of order or full of delimiters."""
    lines, delimiter = _rows(data)
    for _ in range(random.choice((1, 1, 3))):
        lines = lines or [b""]
        at = random.randrange(len(lines))
        cells = lines[at].split(delimiter)
        lines[at : at + 1] = random.choice(
            (
                [delimiter.join(cells[:-1])],
                [delimiter.join([*cells, random.choice(cells)])],
                [lines[at] + delimiter * random.choice((1, 2, 100))],
                [delimiter * random.choice((1, len(cells) - 1, 5000))],
                [lines[at], b""],
                [b"   ", lines[at]],
                [b"", b"", lines[at]],
                [lines[at], lines[at]],
                [lines[at], lines[0]],
                [],
            )
        )
    return b"\n".join(lines)


def many_columns(random: Random, data: bytes, other: bytes) -> bytes:
    """Thousands of columns, of the same name or of different ones."""
    lines, delimiter = _rows(data)
    count = random.choice((200, 2000, 5000))
    names = [b"a"] * count if random.random() < 0.5 else [b"c%d" % number for number in range(count)]
    cells = [random.choice((b"1", b"", b"1.5", b"x")) for _ in range(count)]
    return b"\n".join(
        [delimiter.join([lines[0], *names]), *(delimiter.join([line, *cells]) for line in lines[1:6] if line)]
    )


BYTES: list[Mutation] = [
    *(flip_bits, set_bytes, delete_piece, insert_bytes, duplicate_piece, swap_pieces, truncate, repeat_piece, splice),
]
TEXT: list[Mutation] = [
    *(replace_number, replace_number, replace_number, replace_word, copy_word),
    *(insert_mark, insert_mark, change_line_ends, change_encoding),
]
TABLES: list[Mutation] = [damage_header, damage_rows, damage_rows]
#: Mutations that cost seconds each are tried in this share of the cases.
RARE = 0.002
#: Share of text files that are damaged in tokens and lines only; after cuts in the middle of anything few are still read.
GENTLE = 0.5


def several(random: Random, data: bytes, other: bytes, choices: Sequence[Mutation]) -> bytes:
    """One mutation, or a few on top of each other; never nothing but an empty file."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 6))):
        data = (random.choice(choices)(random, data or other, other) or b"\n")[: 2 * MOST_BYTES]
    return data


def mutate_text(random: Random, data: bytes, other: bytes) -> bytes:
    """Damage to a file of lines that is no table."""
    return several(random, data, other, TEXT if random.random() < GENTLE else (*BYTES, *TEXT))


def mutate_table(random: Random, data: bytes, other: bytes) -> bytes:
    """Damage to a text table."""
    if random.random() < RARE:
        return many_columns(random, data, other)
    gentle = random.random() < GENTLE
    return several(random, data, other, (*TEXT, *TABLES) if gentle else (*BYTES, *TEXT, *TABLES))


def mutate_bytes(random: Random, data: bytes, other: bytes) -> bytes:
    """Damage to a binary file."""
    return several(random, data, other, BYTES)
