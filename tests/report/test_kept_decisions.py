"""The decisions beside a page: never replaced by those who do not know what stands there, and nothing of others lost."""

import json

import pytest

from mislabel.errors import DecisionsError, StaleDecisionsError
from mislabel.report.kept_decisions import NOTHING, KeptDecisions

from .pages import made_up


def text(*actions, label="y", sha256="0" * 64, rows=20, sheet=None):
    entries = [{"position": position, "action": action} for position, action in enumerate(actions)]
    file = {"name": "made up.csv", "sha256": sha256, "rows": rows, "sheet": sheet}
    return json.dumps({"format": "mislabel-decisions/1", "file": file, "label": label, "decisions": entries}).encode()


@pytest.fixture
def kept(tmp_path):
    return KeptDecisions(tmp_path, made_up())


def names(kept):
    return sorted(entry.name for entry in kept.path.parent.iterdir())


def test_what_is_saved_is_read_again(kept):
    assert (kept.read().revision, kept.read().content) == (NOTHING, None)
    revision = kept.save(text("keep", "drop"), NOTHING)
    assert kept.path.read_bytes() == text("keep", "drop")
    found = kept.read()
    assert (found.revision, found.problem) == (revision, None)
    assert [item["action"] for item in found.content["decisions"]] == ["keep", "drop"]
    assert kept.count() == 2


def test_a_stale_save_is_refused_and_changes_nothing(kept):
    first = kept.save(text("keep"), NOTHING)
    second = kept.save(text("keep", "drop"), first)
    for stale in (first, NOTHING, "", second + "0"):
        with pytest.raises(StaleDecisionsError, match="changed since it was read"):
            kept.save(text("drop"), stale)
    assert kept.path.read_bytes() == text("keep", "drop")


def test_what_stood_there_before_a_review_is_kept_under_a_number(kept, tmp_path):
    first = kept.save(text("keep"), NOTHING)
    second = kept.save(text("drop"), first)
    assert names(kept) == ["decisions.json"]
    # Another review of the same folder, and one more.
    revision = KeptDecisions(tmp_path, made_up()).save(text("keep", "keep"), second)
    again = KeptDecisions(tmp_path, made_up())
    revision = again.save(text("drop", "drop"), revision)
    again.save(text(), revision)
    assert names(kept) == ["decisions-1.json", "decisions-2.json", "decisions.json"]
    assert (tmp_path / "decisions-1.json").read_bytes() == text("drop")
    assert (tmp_path / "decisions-2.json").read_bytes() == text("keep", "keep")
    assert kept.path.read_bytes() == text()


def test_what_another_program_wrote_meanwhile_is_kept(kept, tmp_path):
    kept.save(text("keep"), NOTHING)
    kept.path.write_bytes(text("drop"))
    kept.save(text("keep", "drop"), kept.read().revision)
    assert (tmp_path / "decisions-1.json").read_bytes() == text("drop")


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (text("keep", label="z"), "about the label 'z'"),
        (text("keep", sha256="1" * 64), "about another file"),
        (text("keep", rows=21), "about another file"),
        (text("keep", sheet="second"), "about the sheet 'second'"),
        (b"{", "is not a decisions file"),
        (b"\xff\xfe", "is not a decisions file"),
        (b'{"format": "mislabel-decisions/2"}', "of this version"),
        (text("explode"), "unknown action"),
    ],
)
def test_decisions_about_something_else_are_named_and_survive(kept, tmp_path, raw, problem):
    with pytest.raises(DecisionsError, match=problem):
        kept.save(raw, NOTHING)
    assert names(kept) == []
    kept.path.write_bytes(raw)
    found = kept.read()
    assert found.content is None
    assert problem in found.problem
    kept.save(text("keep"), found.revision)
    assert (tmp_path / "decisions-1.json").read_bytes() == raw


def test_numbers_that_no_browser_knows_are_left_out(kept):
    kept.path.write_bytes(text("keep").replace(b'"action"', b'"label": NaN, "action"'))
    assert kept.read().content["decisions"][0]["label"] is None
