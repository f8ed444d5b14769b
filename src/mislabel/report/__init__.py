"""From an audit to one self-contained HTML page, and to a summary for machines and people."""

from mislabel.report.content import report_content
from mislabel.report.html import render_page, write_report
from mislabel.report.words import summary_lines

__all__ = ["render_page", "report_content", "summary_lines", "write_report"]
