"""Files that are there whole or not at all."""

import os

import pytest

from mislabel._common.atomic_files import atomic_folder, atomic_write, locked, reserve_space
from mislabel.errors import DiskSpaceError, FileInUseError


def _leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".mislabel-")]


def test_target_appears_only_when_complete(tmp_path):
    target = tmp_path / "a.txt"
    with atomic_write(target) as file:
        file.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert not _leftovers(tmp_path)


def test_failure_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), atomic_write(target) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert target.read_bytes() == b"old"
    assert not _leftovers(tmp_path)


def test_without_overwrite_an_existing_target_stays(tmp_path):
    target = tmp_path / "a.txt"
    with pytest.raises(FileExistsError), atomic_write(target, overwrite=False) as file:
        file.write(b"new")
        target.write_bytes(b"appeared meanwhile")
    assert target.read_bytes() == b"appeared meanwhile"
    assert not _leftovers(tmp_path)


def test_a_link_is_replaced_not_written_through(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_bytes(b"precious")
    target = tmp_path / "a.txt"
    target.symlink_to(precious)
    with atomic_write(target) as file:
        file.write(b"new")
    assert precious.read_bytes() == b"precious"
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()


def test_leftovers_of_a_killed_writer_are_removed(tmp_path):
    target = tmp_path / "a.txt"
    child = os.fork()
    if child == 0:  # killed in the middle of writing
        writer = atomic_write(target)
        writer.__enter__().write(b"half")
        os._exit(9)
    os.waitpid(child, 0)
    assert len(_leftovers(tmp_path)) == 1
    with atomic_write(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert not _leftovers(tmp_path)


def test_files_still_being_written_are_no_leftovers(tmp_path):
    target = tmp_path / "a.txt"
    with atomic_write(target) as first:
        first.write(b"first")
        with atomic_write(target) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first"


def test_folder_changes_all_files_or_none(tmp_path, monkeypatch):
    names = ("a", "b", "c")
    for name in names:
        (tmp_path / name).write_text("old")
    (tmp_path / "other").write_text("stays")
    replace = os.replace
    calls = []

    def failing(source, target):
        calls.append(target)
        if len(calls) == 4:
            raise OSError("disk error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError), atomic_folder(tmp_path, names) as work:
        for name in names:
            (work / name).write_text("new")
    assert [(tmp_path / name).read_text() for name in names] == ["old"] * 3
    assert not _leftovers(tmp_path)
    with atomic_folder(tmp_path, names) as work:
        for name in names:
            (work / name).write_text("new")
    assert [(tmp_path / name).read_text() for name in names] == ["new"] * 3
    assert (tmp_path / "other").read_text() == "stays"


def test_a_complete_set_of_a_killed_process_is_put_in_place(tmp_path):
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    work = tmp_path / ".mislabel-0123.part"
    work.mkdir()
    (work / "complete").touch()
    (work / "b").write_text("new")
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path, ("a", "b")):
        raise ZeroDivisionError
    assert (tmp_path / "b").read_text() == "new"
    assert not _leftovers(tmp_path)


def test_two_processes_may_write_one_folder(tmp_path):
    with atomic_folder(tmp_path, ("a",)) as first:
        (first / "a").write_text("first")
        with atomic_folder(tmp_path, ("a",)) as second:
            (second / "a").write_text("second")
        assert (tmp_path / "a").read_text() == "second"
    assert (tmp_path / "a").read_text() == "first"


def test_no_folder_is_left_where_there_was_none(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "new", ("a",)):
        raise ZeroDivisionError
    assert not (tmp_path / "new").exists()


def test_room_that_is_not_there_is_refused_in_words(tmp_path):
    with (tmp_path / "huge").open("w+b") as file, pytest.raises(DiskSpaceError, match="GB on the disk"):
        reserve_space(file, 1 << 60, "the matrix")


def test_a_second_writer_is_refused(tmp_path):
    with locked(tmp_path / "a", "the matrix"), pytest.raises(FileInUseError, match="another process"):  # noqa: SIM117
        with locked(tmp_path / "a", "the matrix"):
            pass
