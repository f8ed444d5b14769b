"""Small files that once took minutes, or all memory, to read: each with the target that reads it."""

from tests.fuzz.mutate_containers import FAR_CELL, gzip_bomb, pack, unpack
from tests.fuzz.seeds import Seed, workbooks, xyz_files


def equal_names(count: int = 2000) -> Seed:
    """As many columns, all of one name."""
    return Seed(".csv", b"\n".join([b",".join([b"a"] * count), *([b",".join([b"1"] * count)] * 3)]) + b"\n")


def many_columns(count: int = 100_000) -> Seed:
    """As many columns, of three rows."""
    names = b",".join(b"c%d" % number for number in range(count))
    return Seed(".csv", names + b"\n" + (b",".join([b"1.5"] * count) + b"\n") * 3)


def long_comment(length: int = 40_000) -> Seed:
    """A molecule with as many letters where a property is expected."""
    return Seed(".xyz", b"1\n" + b"a" * length + b"\nH 0 0 0\n" + xyz_files()[0].data)


def long_quoted_comment(length: int = 40_000) -> Seed:
    """A comment in which quotes and braces open again and again, and never close."""
    return Seed(".extxyz", b"1\n" + b'a={b="' * (length // 6) + b"\nH 0 0 0\n")


def far_cell() -> Seed:
    """A small workbook with one cell more, in the last row and the last column that there can be."""
    members = unpack(workbooks()[0].data)
    name = next(name for name in members if "worksheets/sheet" in name)
    members[name] = members[name].replace(b"</sheetData>", FAR_CELL + b"</sheetData>")
    return Seed(".xlsx", pack(members))


def far_merged() -> Seed:
    """A small workbook in which all cells there can be are merged into one."""
    members = unpack(workbooks()[0].data)
    name = next(name for name in members if "worksheets/sheet" in name)
    merged = b'</sheetData><mergeCells count="1"><mergeCell ref="A12:XFD1048576"/></mergeCells>'
    members[name] = members[name].replace(b"</sheetData>", merged)
    return Seed(".xlsx", pack(members))


def packed_table() -> Seed:
    """About 200 KB that unpack to 200 MB."""
    return Seed(".csv.gz", gzip_bomb(200))


#: Name -> target and what makes the file.
SLOW = {
    "2,000 columns of one name": ("csv", equal_names),
    "100,000 columns": ("csv", many_columns),
    "a comment of 40,000 letters": ("xyz", long_comment),
    "a comment of 40,000 open quotes": ("extxyz", long_quoted_comment),
    "a cell in the last row and column": ("excel", far_cell),
    "a cell in the last row and column, corrected": ("apply-excel", far_cell),
    "all cells there can be merged, corrected": ("apply-excel", far_merged),
    "200 KB that unpack to 200 MB": ("tsv-gz", packed_table),
}
