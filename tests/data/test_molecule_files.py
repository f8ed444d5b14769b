"""Files of molecules: what is written keeps every other byte, what cannot be read is said in words."""

import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mislabel._common.short_numbers import without_rounding_noise
from mislabel.data import MoleculeSet, read_molecules
from mislabel.data.corrections import FORMAT, apply_decisions
from mislabel.data.formats.molecule_text import read_lines, read_number, write_number
from mislabel.data.formats.xyz_comment import scan_comment
from mislabel.data.molecules import READERS, WRITERS
from mislabel.data.table_files import fingerprint_of
from mislabel.errors import MislabelError, MoleculeFileError

ATTACKS = sorted(path for path in (Path(__file__).parent / "attacks").glob("*/[!.]*"))
LINE_ENDS = [b"\n", b"\r\n", b"\r"]
WATER = b"3\nenergy=-76.4 name=water\nO 0 0 0.1\nH 0 0.76 -0.47\nH 0 -0.76 -0.47\n"
SALT = (
    b'2\nLattice="4 0 0 0 4 0 0 0 4" Properties=species:S:1:pos:R:3:forces:R:3 energy="-3.2" pbc="T T F" x={1 2}\n'
    b"Na 0 0 0 0 0 0\nCl 2 2 2 0 0 0\n"
)
QM9 = (
    b"2\ngdb 7\t157.7\t157.7\t157.7\t0.\t13.21\t-0.38\t0.11\t0.5\t35.3\t0.04\t-40.4\t1.5*^-6\t-40.4\t-40.4\t6.4\t\n"
    b"H\t0.1\t 1.08\t 0.008\t-0.5\nH\t 2.1*^-3\t-0.006\t 0.001\t 0.1\n1341.3\t1341.4\nC\tC\t\nInChI=1S/H2\tInChI=1S/H2\n"
)
ATOMS = b"""  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.1000 O   0  0  0  0  0  0  0  0  0  0  0  0
    0.0000    0.7600   -0.4700 H   0  0  0  0  0  0  0  0  0  0  0  0
    0.0000   -0.7600   -0.4700 H   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
  1  3  1  0
M  END
"""
SDF = b"water\n  prog              3D\nmade by hand\n" + ATOMS + b">  <energy>\n-76.4\n\n>  <note>\nabc\n\n$$$$\n"
V3000 = b"""h2
  prog            3D

  0  0  0     0  0            999 V3000
M  V30 BEGIN CTAB
M  V30 COUNTS 2 1 0 0 0
M  V30 BEGIN ATOM
M  V30 1 H 0 0 0 0
M  V30 2 H 0 0 0.74 0
M  V30 END ATOM
M  V30 BEGIN BOND
M  V30 1 1 1 2
M  V30 END BOND
M  V30 END CTAB
M  END
"""
CSV = b"name,smiles,energy\nethanol,CCO,1.5\nbenzene,c1ccccc1,2.5\nsalt,[Na+].[Cl-],NA\n"


@pytest.fixture
def file(tmp_path):
    def write(content, name="some.xyz"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def cleaned(path, label, values, dropped=()):
    """What the writer that belongs to a file makes of it."""
    out = io.BytesIO()
    WRITERS[path.suffix[1:]](path, label, dict(values), set(dropped), out)
    return out.getvalue()


@pytest.fixture
def rdkit():
    return pytest.importorskip("rdkit", reason="RDKit is not installed")


# What was found to break the readers.


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_inputs_that_broke_a_reader(path, rdkit):
    if path.parent.name == "sdf":
        # Letters outside UTF-8 in a title or a name are no reason to refuse a file.
        assert len(read_molecules(path)) == 2
        return
    with pytest.raises(MoleculeFileError, match=re.escape(str(path))):
        read_molecules(path)


def test_there_are_inputs_for_every_reader():
    assert {path.parent.name for path in ATTACKS} == {"xyz", "extxyz", "qm9", "sdf", "smiles"}


ONE = b"\nH 0 0 0\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'1\nLattice="1 2 3"' + ONE, "molecule 0, line 2: Lattice is '1 2 3': expected nine numbers"),
        (b'1\nLattice="a 0 0 0 4 0 0 0 4"' + ONE, "line 2: Lattice is .*expected nine numbers"),
        (b'1\nLattice="nan 0 0 0 4 0 0 0 4"' + ONE, "line 2: Lattice is .*expected nine numbers"),
        (b'1\nLattice="inf 0 0 0 4 0 0 0 4"' + ONE, "line 2: Lattice is .*expected nine numbers"),
        (b'1\nLattice="0 0 0 0 0 0 0 0 0"' + ONE, "line 2: the cell .*is flat"),
        (b'1\nLattice="1 2 3 4 5 6 7 8 9"' + ONE, "line 2: the cell .*is flat"),
        (b'1\nLattice="1e-5 0 0 0 4 0 0 0 4"' + ONE, "line 2: the cell .*less than 0.1 Angstrom thick"),
        (b'1\nLattice="4 0 0 0 4 0 0 0 4" pbc="T T"' + ONE, "line 2: pbc is 'T T': expected three of T or F"),
        (b'1\nLattice="4 0 0 0 4 0 0 0 4" pbc="T T X"' + ONE, "line 2: pbc is 'T T X'"),
        (b'1\npbc="T T T"' + ONE, "line 2: periodic .*but without a Lattice"),
        (b'1\nLattice="4 0 0 0 4 0 0 0 4' + ONE, "line 2: the quote or brace of .* is not closed"),
        (b"1\nx={1 2" + ONE, "line 2: the quote or brace of .* is not closed"),
        (b"1\nProperties=species:S:1" + ONE, "line 2: Properties=.*does not say where the position is"),
        (b"1\nProperties=pos:R:3" + ONE, "line 2: Properties=.*does not say where the element is"),
        (b"1\nProperties=species:S:1:pos:R" + ONE, "line 2: Properties=.*not of the form name:type:count"),
        (b"1\nProperties=species:S:1:pos:R:x" + ONE, "line 2: Properties=.*'pos:R:x' has no usable type and count"),
        (b"1\nProperties=species:S:1:pos:R:0" + ONE, "line 2: .*no usable type and count"),
        (b"1\nProperties=species:S:1:pos:R:-3" + ONE, "line 2: .*no usable type and count"),
        (b"1\nProperties=species:S:1:pos:R:3:f:R:99999999999" + ONE, "line 2: .*no usable type and count"),
        (b"1\nProperties=species:S:1:pos:R:3:f:R:9999" + ONE, "line 3: .*in 10003 columns .*found 'H 0 0 0'"),
        (b"1\nProperties=species:S:1:pos:R:3:pos:R:3" + ONE, "line 2: .*two columns 'pos'"),
        (b"1\nenergy=1 energy=2" + ONE, "line 2: 'energy' stands there twice, as '1' and as '2': remove one"),
        (b'1\npbc="F F F" pbc="F F T"' + ONE, "line 2: pbc stands there twice"),
        (b"99999999999\n" + ONE, "line 1: 99999999999 atoms announced, but the whole file has 21 bytes"),
        (b"9" * 5000 + b"\n" + ONE, "line 1: expected the number of atoms"),
        ("٣\n".encode() + ONE, "line 1: expected the number of atoms"),
        (b"1_0\n" + ONE, "line 1: expected the number of atoms"),
        (b"-1\n" + ONE, "line 1: expected the number of atoms"),
        (b"1", "line 1: 1 atoms announced, but the file ends after 0"),
        (b"1\n\nH 0 1_0 0\n", "line 3: a coordinate is not a number"),
        (b"1\n\nH 0 1e999 0\n", "line 3: a coordinate is NaN or infinite"),
        ("1\n\nH 0 ٣ 0\n".encode(), "line 3: a coordinate is not a number"),
        ("1\n\n٣ 0 0 0\n".encode(), "line 3: unknown element"),
        (b"1\n\n" + b"9" * 5000 + b" 0 0 0\n", "line 3: unknown element"),
        (b"\xff\xfe1\x00\n\x00", "UTF-16 text: save it as UTF-8"),
        (bytes(range(256)) * 8, "line 1: expected the number of atoms"),
        (QM9.replace(b"\t0.5\t", b"\tabc\t"), "line 2: the gap of QM9's format is not a number: 'abc'"),
        (QM9.replace(b"\t0.5\t", b"\tnan\t"), "line 2: the gap of QM9's format is not a number"),
        (QM9.replace(b"\t0.5\t", b"\t"), "line 2: .*an index and 15 numbers; found 15 fields"),
        (QM9.replace(b"gdb 7\t", b"gdb 7.5\t"), "line 2: the index of QM9's format is not a whole number"),
        (QM9.replace(b"C\tC\t\n", b""), "line 6: the file ends here, but in QM9's format .*InChI follow"),
        (QM9.replace(b"C\tC\t\n", b"") + QM9, "line 7: expected the InChI of QM9's format .*found '2'"),
    ],
)
def test_unreadable_xyz_files_are_named_to_the_line(file, content, message):
    path = file(content)
    with pytest.raises(MoleculeFileError, match=message) as error:
        read_molecules(path)
    assert str(path) in str(error.value)
    with pytest.raises(MoleculeFileError, match=message):
        cleaned(path, "energy", {0: 1.0})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"$$$$\n", "molecule 0, from line 1 on: .*no 'M  END'"),
        (SDF + b"$$$$\n", "molecule 1, from line 18 on: .*no 'M  END'"),
        (SDF + b"rubbish\n", "molecule 1, from line 18 on: .*no 'M  END'"),
        (SDF.replace(b"made", b"ma\0de"), "molecule 0, .*NUL"),
        (SDF.replace(b"M  END\n", b"M  END\nrubbish\n"), "molecule 0, line 11: 'rubbish' belongs to no data item"),
        (SDF.replace(b" O  ", b" R# "), "molecule 0, .*unknown element at atom 0"),
        (SDF.replace(b" O  ", b" Lr "), "molecule 0, .*unknown element at atom 0"),
        (SDF.replace(b"    0.1000", b"       nan"), "molecule 0, "),
        (SDF.replace(b"  3  2  0", b"999999  0"), "molecule 0, .*cannot be read"),
        (SDF.replace(b"  1  2  1  0", b"  1 99  1  0"), "molecule 0, .*cannot be read"),
        (
            SDF.replace(b"<note>\nabc", b"<energy>\n3"),
            "molecule 0, .*'energy' stands there twice, as '-76.4' and as '3'",
        ),
        (V3000.replace(b"COUNTS 2 ", b"COUNTS 99999999999 "), "molecule 0, .*cannot be read"),
        (b"\n \n", "contains no molecules"),
        (b"\xff\xfew\x00", "UTF-16 text"),
        (bytes(range(1, 256)) * 8, "molecule 0, "),
    ],
)
def test_unreadable_sdf_files_are_named_to_the_molecule(file, rdkit, content, message):
    path = file(content, "some.sdf")
    with pytest.raises(MoleculeFileError, match=message) as error:
        read_molecules(path)
    assert str(path) in str(error.value)


def test_any_exception_of_rdkit_is_an_error_about_the_file(file, rdkit, monkeypatch):
    from rdkit import Chem

    def fail(*arguments, **options):
        raise RuntimeError("Pre-condition Violation\nlong report")

    monkeypatch.setattr(Chem, "MolFromMolBlock", fail)
    with pytest.raises(MoleculeFileError, match=r"some.sdf, molecule 0, .*RDKit: Pre-condition Violation$"):
        read_molecules(file(SDF, "some.sdf"))
    monkeypatch.setattr(Chem, "MolFromSmiles", fail)
    with pytest.raises(
        MoleculeFileError, match=r"t.csv, row 0 .*, line 2: .*'CCO' cannot be read: Pre-condition Violation\."
    ):
        read_molecules(file(CSV, "t.csv"))


def test_sdf_in_the_notations_that_exist(file, rdkit):
    forgotten = SDF.replace(b"-76.4\n\n", b"-76.4\n")
    plain = SDF.replace(b"<note>\nabc", b"<IC50>\n>50").replace(b"water", b"w\xe4sser")
    found = read_molecules(file(forgotten + plain + V3000 + b"$$$$\n\n", "some.sdf"))
    assert [molecule.formula for molecule in found] == ["H2O", "H2O", "H2"]
    assert found.labels("energy")[:2].tolist() == [-76.4, -76.4]
    assert found.properties["IC50"][1] == ">50"
    assert found.properties["note"][0] == "abc"
    assert [molecule.name for molecule in found] == ["water", "wässer", "h2"]


@pytest.mark.parametrize("kind", sorted(READERS))
def test_paths_that_are_no_files(tmp_path, kind):
    (tmp_path / f"folder.{kind}").mkdir()
    with pytest.raises(MoleculeFileError, match="is a folder"):
        read_molecules(tmp_path / f"folder.{kind}")
    with pytest.raises(MoleculeFileError, match="does not exist"):
        read_molecules(tmp_path / f"none.{kind}")
    (tmp_path / f"empty.{kind}").write_bytes(b"")
    with pytest.raises(MoleculeFileError, match="is empty"):
        read_molecules(tmp_path / f"empty.{kind}")


def test_notations_of_numbers(file):
    found = read_molecules(file(b"1\nenergy=-1.5D+2 pdb=1D66 id=1_000\nH 1.0D-3 -2.5*^-3 .5\n"))
    np.testing.assert_array_equal(found[0].positions, [[1e-3, -2.5e-3, 0.5]])
    assert found.labels("energy").tolist() == [-150.0]
    assert found.properties["pdb"].tolist() == ["1D66"]
    assert found.properties["id"].tolist() == ["1_000"]


def test_atoms_may_have_more_columns_than_are_needed(file):
    found = read_molecules(file(b"1\nfree text\nH 0 0 1.5 0.1 0.2 0.3 comment\n"))
    assert found[0].positions.tolist() == [[0.0, 0.0, 1.5]]


# Comments.


def previous_pairs(comment):
    """Keys and values as the regular expression found them that was used before, in quadratic time."""
    pairs = re.findall(r"([^\s=\"]+)=(\"[^\"]*\"|\{[^}]*\}|\S+)", comment)
    return [(key, value.strip('"{}')) for key, value in pairs]


WORD = st.text("abcXYZ019.+-_:/,äß", min_size=1, max_size=8)
VALUE = st.one_of(
    WORD, st.lists(WORD, max_size=4).map(lambda words: f'"{" ".join(words)}"'), WORD.map(lambda word: f"{{{word} 1 2}}")
)


@settings(derandomize=True)
@given(st.lists(st.one_of(WORD, st.tuples(WORD, VALUE).map("=".join)), max_size=8).map("  ".join))
def test_comments_are_scanned_as_before(comment):
    entries = scan_comment(comment.encode(), "here")
    assert [(entry.name, entry.text.decode()) for entry in entries] == previous_pairs(comment)
    assert all(comment.encode()[entry.start : entry.end] == entry.text for entry in entries)


def test_quotes_inside_quotes():
    entries = scan_comment(b'a="say \\"x=1\\" twice" b=2 bare c="" d="C:\\\\"', "here")
    assert [(entry.name, entry.text) for entry in entries] == [
        ("a", b'say "x=1" twice'),
        ("b", b"2"),
        ("c", b""),
        ("d", b"C:\\"),
    ]


@pytest.mark.parametrize("filling", [b"a", b'"', b"=", b"a=", b"a b ", b"\\", b"1"])
def test_a_comment_of_a_million_letters(file, filling):
    comment = filling * (1_000_000 // len(filling))
    assert len(read_molecules(file(b"1\n" + comment + ONE))) == 1


@pytest.mark.parametrize("filling", [b'a="', b"a={", b"a=1 ", b'a="\\'])
def test_long_comments_that_make_no_sense(file, filling):
    with pytest.raises(MoleculeFileError, match="line 2"):
        read_molecules(file(b"1\n" + filling * 200_000 + ONE))


def test_a_million_blank_lines(file):
    assert len(read_molecules(file(b"\n" * 1_000_000 + WATER))) == 1


@pytest.mark.parametrize("name", ["some.xyz", "some.sdf"])
def test_what_is_too_long_is_refused(file, name):
    with pytest.raises(MoleculeFileError, match="line 1: longer than 10,000,000 bytes"):
        read_molecules(file(b"1" * 12_000_000, name))
    with pytest.raises(MoleculeFileError, match="this is not a"):
        read_molecules(file(b"\n" * 6_000_000, name))


def test_more_properties_than_any_file_has(file):
    blocks = (b"1\n" + b" ".join(b"k%d=1" % (100 * k + j) for j in range(100)) + ONE for k in range(101))
    with pytest.raises(MoleculeFileError, match="molecule 100: .*more than 10,000 different properties"):
        read_molecules(file(b"".join(blocks)))


# Writing.


def with_label(head, value, tail):
    """A molecule whose label stands between head and tail; lines end in LF."""
    return head.encode("latin-1"), value, tail.encode("latin-1")


ENERGY = st.floats(-1e6, 1e6).map(lambda value: f"{value:.6g}".encode())
SMALL = st.floats(-100, 100).map(lambda value: f"{value:.4f}")
FREE = st.text("abc ä=1.5", max_size=6).map(lambda text: text.strip().replace("=", ":"))


@st.composite
def plain_molecules(draw):
    rows = draw(st.lists(st.tuples(st.sampled_from(["H", "C", "8"]), SMALL, SMALL, SMALL), min_size=1, max_size=3))
    opening, closing = draw(st.sampled_from([("", ""), ('"', '"'), ("{", "}"), ('" ', ' "')]))
    atoms = "".join("  ".join(row) + draw(st.sampled_from(["", "  "])) + "\n" for row in rows)
    head = f"{len(rows)}\n{draw(FREE)} energy={opening}"
    return with_label(head, draw(ENERGY), f"{closing} Energy=7 note={draw(FREE)}.\n{atoms}")


@st.composite
def crystals(draw):
    x, y, z = draw(SMALL), draw(SMALL), draw(SMALL)
    head = (
        f'1\nLattice="4 0 0 0 4 0 0 0 5" Properties=Z:I:1:pos:R:3:q:R:1 note="say \\"energy=5\\" {draw(FREE)}" energy='
    )
    return with_label(head, draw(ENERGY), f' pbc="T T F"\n11 {x} {y} {z} 0.5\n')


@st.composite
def qm9_molecules(draw):
    others = "\t".join(draw(st.lists(SMALL, min_size=12, max_size=12)))
    value = draw(st.sampled_from([b"0.", b"-40.4", b"1.5*^-6", b"-2.*^-10"]))
    tail = f"\t2.0\t3.0\t\nH\t{draw(SMALL)}\t 1.5*^-3\t 0.\t0.1\n1.5\nC\tC\t\nInChI=1S/{draw(FREE)}\n"
    return with_label(f"1\ngdb 5\t{others}\t", value, tail)


@st.composite
def sdf_molecules(draw):
    blank = draw(st.sampled_from(["\n", ""]))
    title = f"t{draw(FREE)}\n  prog              3D\n.{draw(FREE)}\n"
    head = f"{title}{ATOMS.decode()}> <note>\n.{draw(FREE)}\nb\n\n>  12  <energy> (1)\n"
    return with_label(head, draw(ENERGY), f"{draw(st.sampled_from(['', ' ']))}\n{blank}> <Energy>\n5\n\n$$$$\n")


MOLECULES = {
    "plain.xyz": plain_molecules(),
    "crystals.extxyz": crystals(),
    "qm9.xyz": qm9_molecules(),
    "some.sdf": sdf_molecules(),
}


@st.composite
def files(draw, molecules):
    """Pieces of a file: what stands before each molecule, its head, its label, its tail, in all line ends."""
    ends = draw(st.sampled_from([[b"\n"], [b"\r\n"], [b"\r"], LINE_ENDS]))

    def lines(text):
        parts = text.split(b"\n")
        return b"".join(part + draw(st.sampled_from(ends)) for part in parts[:-1]) + parts[-1]

    return [tuple(map(lines, molecule)) for molecule in draw(st.lists(molecules, min_size=1, max_size=5))]


def number(text):
    """A number in Python's or Mathematica's notation."""
    return float(text.replace(b"*^", b"e"))


@pytest.mark.parametrize("name", MOLECULES)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_only_decided_numbers_change(name, tmp_path, rdkit, data):
    pieces = data.draw(files(MOLECULES[name]))
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    if data.draw(st.booleans()):  # no final newline
        head, value, tail = pieces[-1]
        pieces[-1] = (head, value, tail.rstrip(b"\r\n"))
    path = tmp_path / name
    path.write_bytes(mark + b"".join(b"".join(piece) for piece in pieces))
    label = "enthalpy" if name == "qm9.xyz" else "energy"
    before = read_molecules(path)
    assert len(before) == len(pieces)
    assert before.labels(label).tolist() == [number(value) for _, value, _ in pieces]

    positions = st.sampled_from(range(len(pieces)))
    values = data.draw(st.dictionaries(positions, st.floats(allow_nan=False, allow_infinity=False), max_size=5))
    dropped = data.draw(st.sets(positions, max_size=len(pieces) - 1))
    kept = [k for k in range(len(pieces)) if k not in dropped]
    result = cleaned(path, label, values, dropped)

    pattern = mark
    for k in kept:
        head, value, tail = map(re.escape, pieces[k])
        pattern += head + (rb"([^\s\"{}]+)" if k in values else b"(" + value + b")") + tail
    found = re.fullmatch(pattern, result)
    assert found, result
    # All but the largest numbers are rounded to the digits that are sure.
    new = {k: without_rounding_noise(value) if abs(value) < 1e308 else value for k, value in values.items()}
    assert [number(text) for text in found.groups()] == [new.get(k, number(pieces[k][1])) for k in kept]
    assert_rest_unchanged(before, path, result, kept, label)


def assert_rest_unchanged(before, path, result, kept, label):
    copy = path.with_name("copy-" + path.name)
    copy.write_bytes(result)
    after = read_molecules(copy)
    assert len(after) == len(kept)
    for molecule, k in zip(after, kept, strict=True):
        np.testing.assert_array_equal(molecule.numbers, before[k].numbers)
        np.testing.assert_array_equal(molecule.positions, before[k].positions)
    for name, values in before.properties.items():
        if name != label:
            assert after.properties[name].tolist() == values[kept].tolist()


@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize(("content", "name"), [(WATER + b"  \n" + SALT, "a.extxyz"), (QM9, "b.xyz"), (SDF, "c.sdf")])
def test_without_decisions_nothing_changes(file, rdkit, content, name, end):
    content = content.replace(b"\n", end)
    for variant in (content, b"\xef\xbb\xbf" + content, content.rstrip(), content + end + b" " + end):
        assert cleaned(file(variant, name), "energy", {}) == variant


def test_numbers_are_written_short_and_in_the_notation_of_the_file():
    assert write_number(3977.1800000000003, b"-3.2") == b"3977.18"
    assert write_number(0.1 + 0.2, b"1.0") == b"0.3"
    assert write_number(7.0, b"5") == b"7"
    assert write_number(7.0, b"5.0") == b"7.0"
    assert write_number(-1e-7, b"5.0") == b"-1e-07"
    assert write_number(2.5e-7, b"1.0E-3") == b"2.5E-07"
    assert write_number(1e-7, b"1.0D-3") == b"1.0D-07"
    assert write_number(2.5e-7, b"1.5*^-6") == b"2.5*^-7"
    assert write_number(2.5e-7, b"0.", b"*^") == b"2.5*^-7"
    largest = float(np.finfo(float).max)
    assert read_number(write_number(largest, b"1.0")) == largest


@settings(derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([b"1", b"1.0", b"1.0E5", b"1.0d5", b"1*^5"]))
def test_written_numbers_read_back(value, like):
    assert read_number(write_number(value, like)) == pytest.approx(value, rel=1e-14, abs=0)


def test_a_label_that_stands_twice_is_replaced_twice(file):
    path = file(b"1\nenergy=5.0 x=1 energy=5.0" + ONE)
    assert read_molecules(path).labels("energy").tolist() == [5.0]
    assert cleaned(path, "energy", {0: 6.5}) == b"1\nenergy=6.5 x=1 energy=6.5" + ONE


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (
            WATER + b"1\nEnergy=5" + ONE,
            "a.xyz",
            "molecule 1, line 7 has no property 'energy' .it has 'Energy'.: it cannot",
        ),
        (WATER + b"1\nenergy" + ONE, "a.xyz", "molecule 1, line 7 has no property 'energy': it cannot"),
        (WATER + b'1\nenergy="1 2"' + ONE, "a.xyz", "molecule 1, line 7: 'energy' is '1 2', not one number"),
        (WATER + b'1\nenergy=""' + ONE, "a.xyz", "molecule 1, line 7: 'energy' is '', not one number"),
        (SDF + SDF.replace(b"-76.4", b"-76.4\n3"), "a.sdf", "molecule 1, .*'energy' is .*not one number"),
        (SDF + SDF.replace(b"-76.4\n", b""), "a.sdf", "molecule 1, .*'energy' is '', not one number"),
        (SDF + SDF.replace(b"<energy>", b"<ENERGY>"), "a.sdf", "molecule 1, .*no property 'energy' .it has 'ENERGY'"),
    ],
)
def test_labels_that_cannot_be_replaced(file, rdkit, content, name, message):
    path = file(content, name)
    assert len(cleaned(path, "energy", {0: 1.0}))
    with pytest.raises(MoleculeFileError, match=message):
        cleaned(path, "energy", {1: 1.0})


def test_marks_for_missing_values_can_be_replaced(file):
    path = file(b"1\nenergy=NA" + ONE + b"1\nenergy=nan" + ONE)
    assert np.isnan(read_molecules(path).labels("energy")).all()
    assert cleaned(path, "energy", {0: 1.5, 1: 2.0}) == b"1\nenergy=1.5" + ONE + b"1\nenergy=2" + ONE


@pytest.mark.parametrize(("content", "name"), [(WATER + WATER, "a.xyz"), (SDF + SDF, "a.sdf")])
def test_decisions_must_be_about_molecules_of_the_file(file, rdkit, content, name):
    path = file(content, name)
    with pytest.raises(MoleculeFileError, match="has 2 molecules, but there is a decision about molecule 2"):
        cleaned(path, "energy", {2: 1.0})
    with pytest.raises(MoleculeFileError, match="has 2 molecules, but there is a decision about molecule -1"):
        cleaned(path, "energy", {}, {-1})
    with pytest.raises(MoleculeFileError, match="all 2 molecules .* are to be dropped"):
        cleaned(path, "energy", {}, {0, 1})
    with pytest.raises(MoleculeFileError, match="molecule 0.*the new value nan .* is not a finite number"):
        cleaned(path, "energy", {0: float("nan")})


def test_settings_of_a_crystal_are_no_labels(file):
    path = file(SALT)
    assert sorted(read_molecules(path).properties) == ["energy", "x"]
    with pytest.raises(MoleculeFileError, match="has no property 'pbc'"):
        cleaned(path, "pbc", {0: 1.0})


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_lines_are_whole_wherever_the_file_is_cut_for_reading(file, monkeypatch, size):
    content = b"a\r\nbc\r\r\n\n\rdef\n\x0b\x85g\r"
    path = file(content)
    monkeypatch.setattr("mislabel.data.formats.molecule_text._CHUNK", size)
    assert list(read_lines(path)) == [b"a\r\n", b"bc\r", b"\r\n", b"\n", b"\r", b"def\n", b"\x0b\x85g\r"]


@pytest.mark.parametrize(
    ("content", "name"),
    [(WATER.replace(b"name=w", b"name=\xe4") + SALT, "a.xyz"), (SDF + SDF, "a.sdf"), (QM9 + QM9, "q.xyz")],
)
def test_the_cleaned_file_differs_by_the_decided_number(file, rdkit, content, name):
    content = content.replace(b"\n", b"\r\n").rstrip()
    source = file(content, name)
    former = {"a.xyz": b"-76.4", "a.sdf": b"-76.4", "q.xyz": b"1.5*^-6"}[name]
    decisions = {
        "format": FORMAT,
        "file": {"name": name, "sha256": fingerprint_of(source), "rows": 2},
        "label": "energy",
        "decisions": [{"position": 0, "action": "edit", "value": -1.25}],
    }
    (source.parent / "decisions.json").write_text(json.dumps(decisions))
    target = source.with_name("clean-" + name)
    apply_decisions(source, source.parent / "decisions.json", target)
    assert target.read_bytes() == content.replace(former, b"-1.25", 1)


# Tables of SMILES.


def test_smiles_tables_in_every_dialect(file, rdkit):
    text = CSV.decode()
    for content, name in [
        (text.replace(",", ";").replace(".5", ",5").encode("utf-16"), "a.csv"),
        (text.replace(",", "\t").replace("\n", "\r\n").encode(), "a.tsv"),
        (gzip.compress(CSV), "a.csv.gz"),
        (CSV, "a.smi"),
    ]:
        found = read_molecules(file(content, name), format="csv")
        assert [graph.n_nodes for graph in found] == [3, 6, 2]
        np.testing.assert_array_equal(found.labels("energy"), [1.5, 2.5, np.nan])


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"smiles,y\nC,1\nC,1,2,3\n", "t.csv", "line 3"),
        (b"smiles,y\n", "t.csv", "no rows"),
        (b"\n", "t.csv", "cannot be read as a table|holds no table"),
        (b"smiles y\nC 1\n", "t.csv", "line 2: .*blank inside"),
        (b"x y\nC 1\n", "t.csv", "no SMILES column; its columns are x y"),
        (CSV, "t.csv.gz", "not a complete gzip file"),
        (gzip.compress(CSV)[:-20], "t.csv.gz", "not a complete gzip file"),
        (b"smiles,y\n12,1\n7,2\n", "t.csv", "line 2: 12.* is not a SMILES string"),
        (b"smiles,y\nC,1\n,2\n", "t.csv", "line 3: None is not a SMILES string"),
        (b"smiles,y\nC,1\nNone,2\n", "t.csv", "line 3: None is not a SMILES string"),
        (b"smiles,y\nC,1\nCC O,2\n", "t.csv", "line 3: .*'CC O' has a blank inside"),
        ("smiles,y\nC,1\nC٣,2\n".encode(), "t.csv", "line 3: .*letters that no SMILES has"),
        (b"smiles,y\nC,1\n" + b"C" * 9000 + b",2\n", "t.csv", "line 3: .*has 9,000 letters"),
    ],
)
def test_bad_tables_of_smiles(file, rdkit, content, name, message):
    path = file(content, name)
    with pytest.raises(MoleculeFileError, match=message) as error:
        read_molecules(path)
    assert str(path) in str(error.value)


def test_a_cell_that_is_no_number_is_not_taken_for_a_missing_one(file, rdkit):
    rows = "".join(f"C,{k}\n" for k in range(30)).replace("C,7\n", "C,seven\n")
    found = read_molecules(file(f"smiles,y\n{rows}".encode(), "t.csv"))
    with pytest.raises(MoleculeFileError, match=r"'y' is not numeric: molecule 7 .* holds text \('seven'\)"):
        found.labels("y")


# Labels.


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b", "c", "d"], r"molecules 0, 1, 2, 3 \(counting from 0\) hold text \('a'\)"),
        ([1.0, "1.5", 2.0, "x"], r"molecules 1, 3 .*hold text \('1.5'\)"),
        ([True, False, True, True], r"molecules 0, 1, 2, 3 .*hold bool"),
        ([1.0, 2.0, True, 4.0], r"molecule 2 .*holds bool \(True\)"),
        ([1.0, [2.0, 3.0], 2.0, 4.0], r"molecule 1 .*holds list"),
        ([1.0, 2.0j, 2.0, 4.0], r"molecule 1 .*holds complex"),
        ([10**400, 1.0, 2.0, 3.0], r"molecule 0 .*holds int"),
        ([1.0, 2.0, 3.0], "shape .3,., but there are 4 molecules"),
    ],
)
def test_labels_that_are_no_numbers(values, message):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    with pytest.raises(MoleculeFileError, match=message):
        MoleculeSet([None] * 4, {"y": column}, source="m.xyz").labels("y")


def test_labels_of_other_types():
    def labels(values):
        return MoleculeSet([None] * len(values), {"y": values}).labels("y")

    np.testing.assert_array_equal(labels(np.array([1, 2])), [1.0, 2.0])
    np.testing.assert_array_equal(labels([1, None, pd.NA, "NA", 2.5]), [1.0, np.nan, np.nan, np.nan, 2.5])
    with pytest.raises(MoleculeFileError, match="molecules 0, 1 .*hold"):
        labels(np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"))
    with pytest.raises(MoleculeFileError, match="molecules 0, 1 .*hold"):
        labels(np.array([True, False]))


# Damage at random.

SEEDS = {
    "some.xyz": WATER + b"\n" + WATER,
    "some.extxyz": SALT + WATER,
    "qm9.xyz": QM9 + QM9,
    "some.sdf": SDF + V3000 + b"> <energy>\n5\n\n$$$$\n",
    "some.csv": CSV,
}
TOKENS = [
    b"99999999999",
    b"nan",
    b"\0",
    b"\r",
    b"\n\n",
    b"$$$$\n",
    b"M  END\n",
    b'"',
    b"{",
    b"=",
    b"gdb 1 ",
    b"\xff",
    b"9" * 5000,
]


@pytest.mark.parametrize("name", SEEDS)
@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damaged_files_are_read_or_refused(name, tmp_path, rdkit, data):
    content = SEEDS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = start + data.draw(st.integers(0, 30))
        content = content[:start] + data.draw(st.sampled_from([b"", content[start:end] * 2, *TOKENS])) + content[end:]
    path = tmp_path / name
    path.write_bytes(content)
    try:
        read_molecules(path)
    except MislabelError as error:
        assert str(path) in str(error)  # noqa: PT017 - whether it is raised depends on the damage
    else:
        if path.suffix != ".csv":
            assert cleaned(path, "energy", {}) == content
