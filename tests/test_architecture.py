"""Limits of size and rules of layout, read from the source."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import mislabel

ROOT = Path(mislabel.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
LONGEST_FUNCTION, LONGEST_CLASS = 60, 300
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def docstring_lines(node):
    """Lines of the docstrings of a definition and of all in it."""
    total = 0
    for inner in ast.walk(node):
        if isinstance(inner, WITH_DOCSTRING) and ast.get_docstring(inner) is not None:
            total += inner.body[0].end_lineno - inner.body[0].lineno + 1
    return total


def lines_of_code(node):
    """Lines of the body of a definition, without docstrings."""
    return node.end_lineno - node.body[0].lineno + 1 - docstring_lines(node)


def definitions(node, prefix=""):
    """All functions and classes below a node, with names like ``Class.method``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from definitions(child, f"{prefix}{child.name}.")
        else:
            yield from definitions(child, prefix)


def oversized():
    """Definitions over their limit, with their lines."""
    found = {}
    for path in MODULES:
        for name, node in definitions(parsed(path)):
            limit = LONGEST_CLASS if isinstance(node, ast.ClassDef) else LONGEST_FUNCTION
            if lines_of_code(node) > limit:
                found[f"{name_of(path)}:{name}"] = lines_of_code(node)
    return found


def imported(path):
    """Top-level packages that a module imports, at any depth of its code."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_definitions_are_short():
    found = oversized()
    assert not found, f"over {LONGEST_FUNCTION} lines a function, {LONGEST_CLASS} a class (docstrings aside): {found}"


@pytest.mark.parametrize("package", [path for path in MODULES if path.name == "__init__.py"], ids=name_of)
def test_every_package_says_in_one_sentence_what_it_is_for(package):
    sentence = (ast.get_docstring(parsed(package)) or "").partition("\n\n")[0]
    assert re.fullmatch(r"[^.]{20,}(\.[^.\s][^.]*)*\.", sentence), f"{name_of(package)}: {sentence!r}"


def test_loops_are_written_in_numba_alone():
    assert not {name_of(path) for path in MODULES if "llvmlite" in imported(path)}


def test_numba_lives_in_files_of_loops_only():
    users = {name_of(path) for path in MODULES if "numba" in imported(path)}
    assert users, "found no user of numba at all"
    elsewhere = {name for name in users if not name.endswith("_loops.py") and name != "_common/compiled_loops.py"}
    assert not elsewhere


def test_no_module_shadows_the_function_audit():
    assert callable(mislabel.audit)
    assert not {path.name for path in ROOT.iterdir()} & {"audit", "audit.py"}


def test_only_the_command_line_prints():
    printers = set()
    for path in MODULES:
        called = (node.func for node in ast.walk(parsed(path)) if isinstance(node, ast.Call))
        if any(isinstance(function, ast.Name) and function.id == "print" for function in called):
            printers.add(name_of(path))
    assert printers
    assert {name for name in printers if not re.match(r"cli(\.py|/)", name)} == set()


def test_what_is_tested_with_the_lowest_versions_exists():
    checkout = ROOT.parents[1]
    if not (checkout / "Makefile").is_file() or shutil.which("make") is None:
        pytest.skip("the package is not in its checkout, or there is no make")
    rule = "told: ; @echo $(LOWEST_TESTS) $(LOWEST_WITHOUT) $(LOWEST_DESELECTED)"
    told = subprocess.run(
        ["make", "-s", "--eval", rule, "told"], cwd=checkout, capture_output=True, text=True, check=True
    )
    names = told.stdout.split()
    assert "tests/auditing" in names
    for name in names:
        file, _, test = name.partition("::")
        assert (checkout / file).exists(), name
        assert f"def {test}(" in (checkout / file).read_text(encoding="utf-8") if test else True, name


def test_every_dependency_has_a_lower_bound_to_test():
    script = ROOT.parents[1] / ".ci" / "lowest.py"
    if not script.is_file():
        pytest.skip("the package is not in its checkout")
    spec = importlib.util.spec_from_file_location("lowest", script)
    lowest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lowest)
    lines = lowest.constraints(["tables", "plot", "chem", "dask"])
    assert {"numpy", "scikit-learn", "pyarrow", "rdkit", "dask"} <= {line.partition("==")[0] for line in lines}
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", line) for line in lines)
    assert lowest.pinned("dask[array,dataframe] >= 2024.1, <2030") == "dask==2024.1"
    with pytest.raises(SystemExit, match="'numpy<3' has no lower bound"):
        lowest.pinned("numpy<3")
