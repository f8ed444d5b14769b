"""Files that once broke a reader or writer, a short attack on each with new ones, and files that took minutes."""

from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")
pytest.importorskip("rdkit")
pytest.importorskip("resource")  # limits of a process; not on Windows

from mislabel.data.table_files import read_table
from mislabel.data.tables import read_labelled_table
from tests.fuzz import mutate, mutate_containers, seeds
from tests.fuzz.faulty import FAULTS
from tests.fuzz.run import FOUND, attack, main, save
from tests.fuzz.seeds import Seed
from tests.fuzz.slow_inputs import SLOW
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import FINE, Limits, Outcome, run_file

#: The regular suite never waits long for a file that does not end.
LIMITS = Limits(stop=10.0, kill=60.0)
KEPT = sorted(path for path in FOUND.rglob("*") if path.is_file() and path.parent.name in TARGETS)


def as_case(path: Path) -> Seed:
    return Seed("." + path.name.split(".", 1)[1], path.read_bytes())


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_files_that_once_failed(path):
    outcome = run_file(path.parent.name, as_case(path), LIMITS)
    assert outcome.kind in FINE, f"{path.relative_to(FOUND)}: {outcome.kind}: {outcome.cause}"


@pytest.mark.parametrize("target", TARGETS)
def test_new_damaged_files(target):
    tally = attack(target, cases=60, seed=3, limits=LIMITS, most_hangs=2)
    assert not tally.failures, "\n".join(
        f"{count} x {outcome.kind}: {outcome.cause}, case {number}"
        for outcome, (count, number) in tally.failures.items()
    )
    assert tally.kinds.total() == 60
    assert tally.kinds["accepted"] > 0
    assert tally.kinds["typed"] > 0


@pytest.mark.parametrize("name", SLOW)
def test_files_that_once_took_minutes_come_to_an_end(name):
    target, make = SLOW[name]
    outcome = run_file(target, make(), Limits(stop=20.0, kill=60.0))
    assert outcome.kind in FINE, f"{outcome.kind}: {outcome.cause}"


def test_times_with_changing_offsets_are_read():
    table = read_table(FOUND / "tables" / "daylight_saving.csv")
    labelled = read_labelled_table(table.frame, "y")
    assert len(labelled.label) == len(table)


@pytest.mark.parametrize("target", TARGETS)
def test_undamaged_files_are_read_or_refused(target):
    outcomes = [run_file(target, case, LIMITS) for case in TARGETS[target].seeds()]
    assert [outcome for outcome in outcomes if outcome.kind not in FINE] == []
    assert Outcome("accepted") in outcomes


@pytest.mark.parametrize("target", TARGETS)
def test_a_number_tells_the_file_at_any_time(target, monkeypatch):
    made = [TARGETS[target].case(target, 4, number) for number in range(60)]
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert [TARGETS[target].case(target, 4, number) for number in range(60)] == made
    assert len({case.data for case in made}) > 40


@pytest.mark.parametrize("damage", [*mutate.BYTES, *mutate.TEXT, *mutate.TABLES], ids=lambda damage: damage.__name__)
def test_every_mutation_changes_files(damage):
    data, other = (seeds.text_tables()[at].data for at in (0, 5))
    assert any(damage(Random(number), data, other) != data for number in range(5))
    assert all(len(damage(Random(number), data, other)) <= 2 * mutate.MOST_BYTES for number in range(20))


def test_archives_depend_on_their_members_only():
    members = {"a": b"1", "b": b"2" * 1000}
    assert mutate_containers.unpack(mutate_containers.pack(members)) == members
    assert mutate_containers.pack(members) == mutate_containers.pack(members)


# The attack itself -----------------------------------------------------------------------------------------------------
# A reader with known faults, in place of one that has none: what the runner says about it is known.


def test_faults_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kinds = {
        word: run_file(
            "faulty",
            Seed(".txt", word.encode()),
            Limits(stop=0.5, kill=2.0 if word in ("sleep", "loop in C") else 30.0),
        )
        for word in (*FAULTS, "leave", "change")
    }
    assert {word: outcome.kind for word, outcome in kinds.items()} == {
        "fine": "accepted",
        "refuse": "typed",
        "raise": "untyped",
        "warn": "untyped",
        "wrong": "wrong",
        "sleep": "hang",
        "compute": "hang",
        "loop in C": "hang",
        "die": "crash",
        "leave": "wrong",
        "change": "wrong",
        "memory": "untyped",
    }
    assert not list(tmp_path.glob("fuzz-*"))
    assert kinds["raise"].cause.startswith("KeyError at")
    assert kinds["warn"].cause.startswith("RuntimeWarning at")
    assert "MemoryError" in kinds["memory"].cause
    assert kinds["compute"].cause.startswith("more than 0.5 s")
    assert kinds["loop in C"].cause.startswith("did not answer")
    assert kinds["die"] == Outcome("crash", "the process ended with -6")
    assert kinds["change"] == Outcome("wrong", "the input was changed")


def test_failures_are_counted_made_smaller_and_kept(tmp_path):
    limits = Limits(stop=5.0, kill=20.0)
    tally = attack("faulty", cases=60, seed=0, limits=limits)
    assert tally.kinds.total() == 60
    assert tally.kinds["crash"] > 0
    assert tally == attack_again(tally, workers=2, limits=limits)
    saved = save(tally, 0, tmp_path)
    raised = next(path for outcome, path in saved.items() if outcome.cause.startswith("KeyError"))
    assert raised.read_bytes() == b"raise"
    assert raised.parent == tmp_path / "faulty"


def attack_again(tally, **settings):
    again = attack("faulty", cases=60, seed=0, **settings)
    again.seconds = tally.seconds
    return again


def test_the_command_fails_where_a_target_does(capsys):
    assert main(["--cases", "20", "--target", "faulty", "--no-save"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("target")
    assert "untyped: KeyError at" in said
