"""What holds for every entry of the registry of formats, and how often a file is parsed for its copy."""

import sys
import zipfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from mislabel.auditing.inputs import MOLECULE_SUFFIXES as AUDITED_AS_MOLECULES
from mislabel.data.corrections import apply_decisions, why_not_written
from mislabel.data.formats import excel, text_copy
from mislabel.data.formats.contract import ReadOptions
from mislabel.data.formats.registry import FORMATS, MOLECULE_SUFFIXES, TableFormat, format_of, suffix_of
from mislabel.data.molecules import READERS, WRITERS
from mislabel.data.smiles import bond_graphs, smiles_columns, table_graphs
from mislabel.data.table_files import read_table
from mislabel.errors import (
    DecisionsError,
    InvalidParameterError,
    MissingDependencyError,
    MoleculeFileError,
    TableFileError,
)
from tests.data.test_corrections import FOUR, write_decisions
from tests.fuzz.targets import TARGETS

ANY = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)


def begun(format, folder):
    """A file that looks like one of this format until a package is needed to read it."""
    path = folder / f"t.{format.suffixes[0]}"
    if path.suffix == ".ods":
        with zipfile.ZipFile(path, "w") as book:
            book.writestr("content.xml", "<x/>")
    else:
        path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100) if path.suffix == ".xls" else b"text\n")
    return path


def test_every_suffix_belongs_to_one_format():
    suffixes = [suffix for format in FORMATS for suffix in format.suffixes]
    assert max(Counter(suffixes).values()) == 1
    assert len({format.name for format in FORMATS}) == len(FORMATS)
    for format in FORMATS:
        for suffix in format.suffixes:
            assert format_of(Path(f"some.file.{suffix.upper()}")) is format


@ANY
def test_every_format_is_written_or_says_why_not(format, tmp_path):
    path = tmp_path / f"t.{format.suffixes[0]}"
    assert (format.write is None) == (format.why_not_written is not None)
    assert why_not_written(path) == format.why_not_written
    if format.write is None:
        path.write_bytes(b"x")
        decisions = write_decisions(path, "y", FOUR, 5)
        with pytest.raises(TableFileError, match="cannot be written back"):
            apply_decisions(path, decisions, tmp_path / f"clean{path.suffix}")


@ANY
def test_a_missing_package_is_named(format, tmp_path, monkeypatch):
    if format.package is None:
        pytest.skip("needs no other package")
    monkeypatch.setitem(sys.modules, "odf" if format.package == "odfpy" else format.package, None)
    arguments = (ReadOptions(),) if isinstance(format, TableFormat) else ()
    with pytest.raises(MissingDependencyError, match=f"pip install {format.package}"):
        format.read(begun(format, tmp_path), *arguments)


def test_every_format_that_can_be_read_and_written_here_is_attacked():
    attacked = {
        name: {suffix_of(Path(f"x{seed.suffix}")) for seed in target.seeds()} for name, target in TARGETS.items()
    }
    read = set().union(*(suffixes for name, suffixes in attacked.items() if not name.startswith("apply")))
    written = set().union(*(suffixes for name, suffixes in attacked.items() if name.startswith("apply")))
    for format in FORMATS:
        if format.write is not None:
            assert read.intersection(format.suffixes)
            assert written.intersection(format.suffixes)


def test_molecules_are_found_under_their_former_names():
    assert set(MOLECULE_SUFFIXES) == set(AUDITED_AS_MOLECULES) == {".xyz", ".extxyz", ".sdf", ".mol"}
    assert set(READERS) == {"xyz", "extxyz", "sdf", "mol", "csv", "tsv", "gz"}
    assert set(WRITERS) == {"xyz", "extxyz", "sdf", "mol"}


def counted(monkeypatch, module, name):
    calls = []
    function = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **options: calls.append(given) or function(*given, **options))
    return calls


def test_a_text_table_is_parsed_once_for_its_copy(tmp_path, monkeypatch):
    source = tmp_path / "t.csv"
    source.write_text("x,y\n1,9\n2,8\n3,7\n4,6\n5,5\n")
    decisions = write_decisions(source, "y", FOUR, 5)
    calls = counted(monkeypatch, text_copy, "cut_text")
    apply_decisions(source, decisions, tmp_path / "clean.csv")
    assert len(calls) == 1


def test_a_sheet_is_parsed_once_for_its_copy_and_once_to_check_it(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    source = tmp_path / "t.xlsx"
    pd.DataFrame({"x": list("abcde"), "y": [9.0, 8, 7, 6, 5]}).to_excel(source, index=False)
    # Labels that decisions do not say themselves are read from the file once more, for the provenance.
    decisions = write_decisions(source, "y", [{**item, "label": 9.0} for item in FOUR], 5)
    calls = counted(monkeypatch, openpyxl, "load_workbook")
    apply_decisions(source, decisions, tmp_path / "clean.xlsx")
    assert [given[0] == source for given in calls] == [True, False]
    assert excel.read_workbook(tmp_path / "clean.xlsx", ReadOptions()).frame["y"].tolist() == [1.25, 8, -3, 5]


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet"])
def test_a_label_that_is_not_there_leaves_no_copy(name, tmp_path):
    for package in ("openpyxl", "pyarrow"):
        pytest.importorskip(package)
    source, frame = tmp_path / name, pd.DataFrame({"price": [9.0, 8, 7, 6, 5]})
    {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[name[2:]](source, index=False)
    decisions = write_decisions(source, "prise", FOUR, 5)
    with pytest.raises(InvalidParameterError, match="no column 'prise'. Did you mean 'price'?"):
        apply_decisions(source, decisions, tmp_path / f"clean-{name}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decisions.json", name]


def test_molecules_are_counted_before_a_copy_is_handed_out(tmp_path):
    source = tmp_path / "t.xyz"
    source.write_text("".join(f"1\ny={k}\nH 0 0 0\n" for k in range(5)))
    decisions = write_decisions(source, "y", FOUR, 6)
    with pytest.raises(DecisionsError, match="has 5 rows, the decisions were made about 6"):
        apply_decisions(source, decisions, tmp_path / "clean.xyz")
    assert not (tmp_path / "clean.xyz").exists()


def test_smiles_that_cannot_be_read_are_named_by_row_and_line(tmp_path):
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    path = tmp_path / "t.csv"
    path.write_text('\n\nname,Smiles,y\n"two\nlines",C,1\nb,CC,2\n\nc,C1CC,3\nd,CC O,4\ne,,5\nf,CCC,6\n')
    table = read_table(path)
    assert smiles_columns(table.frame.columns) == ["Smiles"]
    with pytest.raises(
        MoleculeFileError, match=r"t.csv, row 2 \(counted from 0\), line 8: .*C1CC.* Nor can rows 3, 4 be"
    ):
        table_graphs(table, "Smiles")
    with pytest.raises(MoleculeFileError, match="a frame, row 1 .*, line 3: the SMILES string 'C1CC' cannot be read"):
        bond_graphs(["C", "C1CC"], "a frame")
    assert [graph.n_nodes for graph in bond_graphs(["C", "CC"], "a frame")] == [1, 2]
