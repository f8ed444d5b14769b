"""Where the table stands among the rows of a text or a sheet: title lines, header, units, totals and footers.

A row counts for something else than a row of the table on strong evidence only, told by its place and by the columns of numbers
below it; in doubt it stays, and a note says so. Whoever knows better states the header.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from mislabel.data.formats.contract import LeftOut, Reading, ReadOptions, describe_header
from mislabel.data.formats.totals import find_totals, says_total
from mislabel.data.number_text import MARKS, PATTERNS, SIGNS, is_missing, limit_in
from mislabel.data.units import NO_UNIT, measured, unit_in
from mislabel.errors import TableFileError

Row = Sequence[str]

#: Rows from the second half of the table that tell which columns hold numbers.
_ROWS_LOOKED_AT = 200
#: Share of these cells that are numbers in a column of numbers.
_NUMBERS = 0.6
#: Rows that may stand above the first row of numbers.
_MOST_ABOVE = 100
_COMMENTS = ("#", "//", "%")
#: How footers begin that no blank row sets apart.
_FOOTER_STARTS = ("*", "†", "‡", "¹", "²", "©", "source", "quelle", "note", "anmerkung", "hinweis", "fußnote", "legend")
_LONGEST_TEXT = 80
#: Blank rows below which another table is looked for.
_MOST_BLANK_ROWS = 20


@dataclass(frozen=True)
class Layout:
    """Where the parts of a table are, by their place among the rows that hold anything.

    header : places of the header's rows; none where there is no header. names : of columns, one per column.
    rows : places of the rows of the table. units : as they are written, by column.
    left_out : what was no row of the table. notes : what was decided, in words.
    """

    header: tuple[int, ...]
    names: list[str]
    rows: list[int]
    units: dict[int, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether there is one row of header, and rows of the table, and nothing else."""
        return self.header == (0,) and not self.left_out

    def reading(self, names: Sequence[str], numbers: Sequence[int]) -> Reading:
        """What was understood, for people: columns by their names, rows by their numbers."""
        return Reading(
            tuple(numbers[k] for k in self.header),
            {names[k]: unit for k, unit in self.units.items() if k < len(names)},
            self.left_out,
        )


def is_number_cell(cell: str) -> bool:
    """Whether a cell reads as a number, in whatever notation, with or without a unit."""
    text = limit_in(cell.strip().translate(SIGNS))[1].strip()
    if not text or len(text) > _LONGEST_TEXT:
        return False
    found = measured(text) if text[-1:].isalpha() or not text[:1].isdigit() or not text[-1:].isdigit() else None
    text = text if found is None else found.plain
    return any(PATTERNS[mark].fullmatch(text) for mark in MARKS)


def recognise_layout(rows: Sequence[Row], numbers: Sequence[int], options: ReadOptions, source: Path) -> Layout:
    """The layout of a grid of text cells.

    rows : those that hold anything. numbers : where each stands, counted from one as a spreadsheet does.
    """
    top = _Top.of(rows, numbers, options, source)
    body = list(range(top.first, len(rows)))
    left_out, notes = list(top.left_out), list(top.notes)
    if top.numeric and body:
        repeated = _repeated_headers(rows, body, top)
        body = [k for k in body if k not in repeated]
        end = _end_of_rows(rows, body)
        totals, doubtful = find_totals(rows, body[:end], top.numeric)
        footers = body[end:] if end and body[end - 1] in totals else _footers(rows, numbers, body, end)
        body = [k for k in body if k not in totals and k not in set(footers)]
        while (totals or footers) and body and not _filled(rows[body[-1]]):
            body.pop()
        notes += _second_table(rows, numbers, body)
        if repeated:
            left_out.append(LeftOut("the header again", tuple(numbers[k] for k in sorted(repeated))))
        left_out += [LeftOut("a total", (numbers[k],), text) for k, text in totals.items()]
        if footers:
            text = next((_text_of(rows[k]) for k in footers if _filled(rows[k])), "")
            left_out.append(LeftOut("a footer", tuple(numbers[k] for k in footers), text))
        notes += [_kept_total(numbers[k], _text_of(rows[k])) for k in doubtful[-1:]]
    return Layout(top.header, top.names, body, top.units, left_out, [*notes, *_notes(top, numbers, left_out)])


def _kept_total(number: int, text: str) -> str:
    return (
        f"row {number} says {text!r}, but its numbers are not the sums of rows above: it was kept as a row of the table; take it "
        "out of the file if it is none."
    )


def _repeated_headers(rows: Sequence[Row], body: Sequence[int], top: _Top) -> set[int]:
    """Rows that say the same as the header, as where files were put together."""
    if len(top.header) != 1 or len(top.names) < 2 or any(map(is_number_cell, rows[top.header[0]])):
        return set()
    header = [cell.strip() for cell in rows[top.header[0]]]
    least = max([1, *top.numeric]) + 1
    found = set()
    for k in body:
        if len(rows[k]) >= least and rows[k][0].strip() == header[0]:
            cells = [cell.strip() for cell in rows[k]]
            # A copy with a trail has more names in its own header.
            if cells == header[: len(cells)] and not any(cells[len(header) :]):
                found.add(k)
    return found


@dataclass(frozen=True)
class _Top:
    """What stands above the rows: places of the header, of the units, and of the first row; columns of numbers."""

    header: tuple[int, ...]
    names: list[str]
    first: int
    numeric: list[int]
    unit_row: int | None = None
    units: dict[int, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[Row], numbers: Sequence[int], options: ReadOptions, source: Path) -> _Top:
        numeric = _numeric_columns(rows)
        stated = options.header
        if stated is not None:
            return cls._stated(rows, numbers, numeric, stated, source)
        data = _first_of_numbers(rows, numeric)
        header = _find_header(rows, numeric, data)
        if header is None:
            doubt = _doubt(rows, numbers, numeric, data)
            return cls((0,), list(rows[0]), 1, numeric, notes=doubt)
        return cls._below(rows, numbers, numeric, header)

    @classmethod
    def _below(cls, rows: Sequence[Row], numbers: Sequence[int], numeric: list[int], header: tuple[int, ...]) -> _Top:
        """With this header, and a row of units below it if there is one."""
        names = _joined([rows[k] for k in header])
        above = tuple(numbers[k] for k in range(header[0]))
        left_out = [LeftOut("above the header", above, _text_of(rows[0]))] if above else []
        below = header[-1] + 1
        units = _units(rows[below], numeric) if below < len(rows) - 1 else {}
        if not units:
            data = _first_of_numbers(rows, numeric)
            notes = _doubt(rows, numbers, numeric, data, header[-1])
            return cls(header, names, below, numeric, left_out=left_out, notes=notes)
        left_out.append(LeftOut("units", (numbers[below],), _text_of(rows[below])))
        return cls(header, names, below + 1, numeric, below, units, left_out)

    @classmethod
    def _stated(
        cls, rows: Sequence[Row], numbers: Sequence[int], numeric: list[int], stated: tuple[int, ...], source: Path
    ) -> _Top:
        if not stated:
            width = max(len(row) for row in rows)
            return cls((), [f"column {k + 1}" for k in range(width)], 0, numeric)
        place = {number: k for k, number in enumerate(numbers)}
        missing = [number for number in stated if number not in place]
        if missing:
            raise TableFileError(
                f"{source}: row {missing[0]} is said to be the header, but holds nothing; the rows that do are {numbers[0]} to "
                f"{numbers[-1]}."
            )
        return cls._below(rows, numbers, numeric, tuple(place[number] for number in stated))


def _numeric_columns(rows: Sequence[Row]) -> list[int]:
    """Columns that hold numbers in the second half of the table."""
    sample = rows[max(len(rows) // 2, 1) :][:_ROWS_LOOKED_AT]
    width = max((len(row) for row in sample), default=0)
    found = []
    for k in range(width):
        filled = [row[k] for row in sample if k < len(row) and not is_missing(row[k])]
        if filled and sum(map(is_number_cell, filled)) >= _NUMBERS * len(filled):
            found.append(k)
    return found


def _cell(row: Row, k: int) -> str:
    return row[k].strip() if k < len(row) else ""


def _filled(row: Row) -> int:
    return sum(1 for cell in row if cell.strip())


def _first_of_numbers(rows: Sequence[Row], numeric: list[int]) -> int:
    """The first row that has numbers in more than half of the columns of numbers."""
    for at, row in enumerate(rows[: _MOST_ABOVE + 1]):
        if 2 * sum(is_number_cell(_cell(row, k)) for k in numeric) > len(numeric):
            return at
    return len(rows)


def _is_header(row: Row, numeric: list[int]) -> bool:
    """Whether a row has names where the rows below have numbers."""
    cells = [_cell(row, k) for k in numeric]
    named = sum(1 for cell in cells if not is_missing(cell) and not is_number_cell(cell))
    return named == len(cells) or (len(cells) > 4 and named >= 0.8 * len(cells)) or are_years(cells)


def are_years(cells: Sequence[str]) -> bool:
    """Whether cells are successive years, or nearly: names of columns, though they are numbers."""
    if len(cells) < 3 or not all(len(cell) == 4 and cell.isascii() and cell.isdigit() for cell in cells):
        return False
    years = [int(cell) for cell in cells]
    steps = {later - earlier for earlier, later in pairwise(years)}
    return len(steps) == 1 and steps <= {1, -1, 2, 5, 10} and min(years) >= 1800 and max(years) <= 2200


def _is_above(row: Row, width: int) -> bool:
    """Whether a row may be a title or a comment: it ends before the last columns do, or begins like a comment."""
    last = max((k for k, cell in enumerate(row) if cell.strip()), default=-1)
    return _filled(row) <= max(1, width // 2) or last + 1 < width or row[0].lstrip().startswith(_COMMENTS)


def _find_header(rows: Sequence[Row], numeric: list[int], data: int) -> tuple[int, ...] | None:
    """Places of the header, where there is evidence for it; None where there is none, or where all is in doubt."""
    sample = rows[len(rows) // 2 :][:_ROWS_LOOKED_AT]
    width = sorted(_filled(row) for row in sample)[len(sample) // 2]
    if not numeric or width < 2 or len(rows) < 2:
        return None
    at, last = 0, min(data, len(rows) - 1)
    # Years above a table are numbers, too.
    while at < last and not _is_header(rows[at], numeric) and _is_above(rows[at], width):
        at += 1
    while at < last and rows[at] and rows[at][0].lstrip().startswith(_COMMENTS) and at + 1 <= last:
        if not _is_header(rows[at + 1], numeric) and not rows[at + 1][0].lstrip().startswith(_COMMENTS):
            break
        at += 1
    if at > 0 and _are_joined(rows[at - 1], rows[at], numeric, width):
        return (at - 1, at)
    if at < last and _are_joined(rows[at], rows[at + 1], numeric, width):
        return (at, at + 1)
    if at >= len(rows) or not _is_header(rows[at], numeric):
        return None
    return (at,)


def _are_joined(upper: Row, lower: Row, numeric: list[int], width: int) -> bool:
    """Whether two rows are one header: the upper names groups, and the lower alone would leave names empty or twice."""
    if _filled(upper) < 2 or (upper and upper[0].lstrip().startswith(_COMMENTS)) or _units(lower, numeric):
        return False
    cells = [cell for cell in [*upper, *lower] if cell.strip()]
    if any(is_number_cell(cell) or is_missing(cell) for cell in cells):
        return False
    names = _joined([upper, lower])
    if not _is_header(names, numeric) or _filled(names) < width or not _names_parts(lower, numeric):
        return False
    below = [_cell(lower, k) for k in range(len(names))]
    twice = len({cell for cell in below if cell}) < len([cell for cell in below if cell])
    above = [_cell(upper, k) for k in range(len(names)) if _cell(upper, k)]
    gaps = any(not cell and _cell(upper, k) for k, cell in enumerate(below))
    repeated = len(set(above)) < len(above)
    return len(set(names)) == len(names) and (twice or gaps or repeated)


def _names_parts(lower: Row, numeric: list[int]) -> bool:
    """Whether a row has names in at least half of the columns of numbers."""
    return 2 * sum(1 for k in numeric if _cell(lower, k)) >= len(numeric)


def _joined(header: Sequence[Row]) -> list[str]:
    """Names of columns from the rows of a header; a name above is that of all columns up to the next one."""
    width = max(len(row) for row in header)
    if len(header) == 1:
        return list(header[0])
    parts: list[list[str]] = [[] for _ in range(width)]
    for level, row in enumerate(header):
        group = ""
        for k in range(width):
            own = _cell(row, k)
            below = any(_cell(lower, k) for lower in header[level + 1 :])
            group = own or (group if below else "")
            if group and group not in parts[k]:
                parts[k].append(group)
    return [" ".join(part) for part in parts]


def _units(row: Row, numeric: list[int]) -> dict[int, str]:
    """The units by column, where a row holds units and nothing else; empty where it does not."""
    cells = {k: cell.strip() for k, cell in enumerate(row) if cell.strip()}
    if any(is_number_cell(cell) and cell != "1" for cell in cells.values()):
        return {}
    known = {k: cell for k, cell in cells.items() if unit_in(cell)}
    others = [cell for k, cell in cells.items() if k not in known and not _says_no_unit(cell)]
    return known if not others and any(k in known for k in numeric) else {}


def _says_no_unit(cell: str) -> bool:
    return cell.lower() in NO_UNIT or (cell[0] + cell[-1] in ("[]", "()") and cell[1:-1].strip().lower() in NO_UNIT)


def _end_of_rows(rows: Sequence[Row], body: Sequence[int]) -> int:
    """Where the rows at the end begin that are empty or hold one text each."""
    end = len(body)
    while end > 1 and (not _filled(rows[body[end - 1]]) or _is_lone_text(rows[body[end - 1]])):
        end -= 1
    return end if max((_filled(rows[k]) for k in body[:end]), default=0) > 1 else len(body)


def _footers(rows: Sequence[Row], numbers: Sequence[int], body: Sequence[int], end: int) -> Sequence[int]:
    """Rows at the end that hold one text each, set apart by a blank row or by how they begin."""
    width = max((_filled(rows[k]) for k in body[:end]), default=0)
    for place in range(end, len(body)):
        at, before = body[place], body[place - 1]
        text = _text_of(rows[at]).lower()
        apart = not _filled(rows[at]) or numbers[at] > numbers[before] + 1
        longer = len(text.split()) > 2 + max(len(_cell(rows[k], 0).split()) for k in body[max(place - 50, 0) : place])
        if apart or text.startswith(_FOOTER_STARTS) or (longer and width > 2):
            return body[place:] if any(_filled(rows[k]) for k in body[place:]) else []
    return []


def _second_table(rows: Sequence[Row], numbers: Sequence[int], body: Sequence[int]) -> list[str]:
    """That names stand below a blank row, as where one table follows another."""
    looked_at = 0
    for place in range(2, len(body) - 1):
        at, before = body[place], body[place - 1]
        if numbers[at] == numbers[before] + 1 and _filled(rows[before]):
            continue
        if any(map(is_number_cell, rows[at])) or looked_at == _MOST_BLANK_ROWS:
            continue
        looked_at += 1
        numeric = _numeric_columns([rows[k] for k in body[max(place - _ROWS_LOOKED_AT, 0) : place]])
        if numeric and _filled(rows[at]) > 1 and _is_header(rows[at], numeric):
            return [
                f"row {numbers[at]} looks like the header of another table below the first: it and the rows below were read as "
                "rows of one table. Keep one table per file or sheet."
            ]
    return []


def _is_lone_text(row: Row) -> bool:
    filled = [cell.strip() for cell in row if cell.strip()]
    return (
        len(filled) == 1
        and bool(row[0].strip())
        and not says_total(filled[0])
        and not is_missing(filled[0])
        and not is_number_cell(filled[0])
    )


def _text_of(row: Row) -> str:
    text = next((cell.strip() for cell in row if cell.strip()), "")
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _doubt(rows: Sequence[Row], numbers: Sequence[int], numeric: list[int], data: int, header: int = 0) -> list[str]:
    """What may have been understood wrongly about the rows at the top, in words."""
    if not numeric or not rows:
        return []
    if data == 0 and header == 0 and not are_years([_cell(rows[0], k) for k in numeric]):
        return [
            f"row {numbers[0]} was taken for the header, though it holds numbers like the rows below: pass --header none if the "
            "file has no header."
        ]
    if header + 1 < data < len(rows) and _is_header(rows[header + 1], numeric):
        below = numbers[header + 1]
        return [
            f"row {below} holds texts where the rows below hold numbers ({_text_of(rows[header + 1])!r}): it was read "
            f"as a row of the table. Pass --header {below} if it is the header, --header {numbers[header]}-{below} if both are."
        ]
    return []


def _notes(top: _Top, numbers: Sequence[int], left_out: Sequence[LeftOut]) -> list[str]:
    notes = []
    above = [item for item in left_out if item.what == "above the header"]
    if above or len(top.header) > 1:
        where = f"row{'s' if len(top.header) > 1 else ''} {describe_header([numbers[k] for k in top.header])}"
        notes.append(f"the header is in {where}{f', below {_quoted(above[0])}' if above else ''}.")
    if not top.header:
        notes.append("the file was read without a header: columns are called by their number.")
    for item in left_out:
        if item.what == "units":
            notes.append(f"row {item.rows[0]} holds the units of the columns, and is no row of the table.")
        elif item.what == "a total":
            notes.append(
                f"row {item.rows[0]} was left out as a total of rows above{_quoted(item, ' (', ')')}; a cleaned copy keeps it as "
                "it is."
            )
        elif item.what in ("a footer", "the header again"):
            notes.append(f"{_rows_in_words(item.rows)} left out as {item.what}{_quoted(item, ' (', ')')}.")
    return notes


def _rows_in_words(rows: Sequence[int]) -> str:
    shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    return f"row {shown} was" if len(rows) == 1 else f"rows {shown} were"


def _quoted(item: LeftOut, opening: str = "", closing: str = "") -> str:
    return f"{opening}{item.text!r}{closing}" if item.text else ""
