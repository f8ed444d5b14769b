"""The data inside a page, and the file it stands in."""

import pytest

from mislabel.report import html


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
