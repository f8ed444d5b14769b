"""The data inside a page, and the file it stands in."""

import hashlib

import numpy as np
import pytest

from mislabel.report import html
from mislabel.report.content import _audit_id

from .tables import audited, content_of, table_of


@pytest.mark.parametrize("name", ["numbers", "text of digits"])
def test_ids_of_digits_keep_all_of_them(tmp_path, name):
    rng = np.random.default_rng(4)
    ids = [f"{k:05d}" if name == "numbers" else str(12345678901234567 + k) for k in range(60)]
    _, report = audited(tmp_path, table_of(rng, ids, ["a"] * 60).encode())
    assert sorted(content_of(report)["ids"]) == sorted(ids)


def test_the_page_knows_how_its_file_is_written(tmp_path):
    rng = np.random.default_rng(4)
    path, report = audited(tmp_path, table_of(rng, [f"k{k}" for k in range(60)], ["a"] * 60, ";", ",").encode())
    content = content_of(report)
    assert content["numbers"] == {"decimal": ",", "thousands": "", "decimals": 2, "most": 2}
    assert content["file"]["apply"] is None
    assert content["file"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert content["cells"]["exact"] is True


@pytest.mark.parametrize("name", ["position", "label", "suggested", "suspect"])
def test_an_audit_is_named_after_what_its_page_shows(tmp_path, name):
    rng = np.random.default_rng(4)
    _, report = audited(tmp_path, table_of(rng, [f"k{k}" for k in range(60)], ["a"] * 60).encode())
    content = content_of(report)
    rows = content["rows"]
    assert content["audit"] == _audit_id(rows)
    assert _audit_id({**rows, name: rows[name][4:] + rows[name][:4]}) != content["audit"]


def test_half_of_a_character_survives_in_a_page():
    page = html.render_page({"ids": ["half \ud800 pair", "\U0001f600"]})
    page.encode("utf-8")
    assert '["half \\ud800 pair","\U0001f600"]' in page


def test_a_page_that_cannot_be_made_leaves_the_former_one(tmp_path, monkeypatch):
    def fail(audit, source):
        raise RuntimeError("no content")

    monkeypatch.setattr(html, "report_content", fail)
    path = tmp_path / "report.html"
    path.write_text("the former page")
    with pytest.raises(RuntimeError, match="no content"):
        html.write_report(None, None, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "the former page"
