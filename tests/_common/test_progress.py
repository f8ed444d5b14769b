"""Progress: where it is shown, and when."""

import logging
import sys
from types import ModuleType, SimpleNamespace

import pytest

from mislabel._common import progress
from mislabel._common.progress import ProgressReporter, Shares


class Terminal:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    found = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found, modules=sys.modules))
    return found


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = SimpleNamespace(time=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.time)
    return now


@pytest.fixture
def notebook(monkeypatch):
    """What IPython would show."""
    shown = []
    handle = SimpleNamespace(update=lambda content, raw: shown.append(content["text/plain"]))

    def display(content, raw, display_id):
        shown.append(content["text/plain"])
        return handle

    ipython, inner = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    inner.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return shown


def test_a_bar_on_a_terminal_is_taken_away_at_the_end(terminal):
    with ProgressReporter(1) as report:
        report("fitting", 0.5)
        assert "[##############--------------]  50 %" in terminal.text
    assert terminal.text.endswith("\r\x1b[K")


@pytest.mark.parametrize("verbose", [0, None])
def test_silence(verbose, caplog, capsys):
    caplog.set_level(logging.INFO, "mislabel")
    with ProgressReporter(verbose) as report:
        report("fitting", 0.5)
    assert not caplog.records
    assert capsys.readouterr().err == ""


def test_only_long_work_is_shown_unasked(terminal, clock):
    with ProgressReporter(None) as report:
        clock.time = progress.LONG_SECONDS / 2
        report("fitting", 0.1)
        assert terminal.text == ""
        clock.time = progress.LONG_SECONDS + 1
        report("fitting", 0.5)
        assert "50 %" in terminal.text
        assert "4 s left" in terminal.text


def test_short_work_leaves_no_trace_on_a_terminal(terminal):
    with ProgressReporter(None) as report:
        report("fitting", 0.5)
    assert terminal.text == ""


def test_a_line_in_a_notebook(notebook, clock):
    with ProgressReporter(None) as report:
        report("fitting", 0.1)
        for seconds in (5.0, 5.01, 6.0):
            clock.time = seconds
            report("fitting", seconds / 10)
    assert len(notebook) == 3
    assert "50 %" in notebook[0]
    assert "60 %" in notebook[1]
    assert notebook[2] == ""


def test_log_messages_elsewhere(caplog, clock):
    caplog.set_level(logging.INFO, "mislabel")
    with ProgressReporter(1) as report:
        for seconds, message in ((0.0, "one"), (1.0, "one"), (2.0, "two"), (8.0, "two")):
            clock.time = seconds
            report(message, seconds / 10)
    assert [record.getMessage().split()[-1] for record in caplog.records] == ["one", "two", "two"]


def test_what_is_done_stays_done(terminal):
    with ProgressReporter(1) as report:
        report("fitting", 0.5)
        report("another start", 0.2)
        assert terminal.text.endswith("another start")
        assert " 20 %" not in terminal.text


def test_pieces_of_work_share_the_whole():
    seen = []
    shares = Shares(lambda message, fraction: seen.append((message, fraction)), 2)
    shares.next()("one", 0.5)
    shares.tell("between")
    shares.next()("two", 0.5)
    shares.next()("one more", 0.5)
    shares.tell("at the end")
    assert seen == [("one", 0.25), ("between", 0.5), ("two", 0.75), ("one more", 0.75), ("at the end", 1.0)]
