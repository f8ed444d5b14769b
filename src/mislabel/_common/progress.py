"""Progress of long work: a bar on a terminal, a line in a notebook, log messages elsewhere, silence unless asked for."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

#: Called with a message and the fraction of the work that is done.
Progress = Callable[[str, float], None]


def part_of(progress: Progress, start: float, stop: float) -> Progress:
    """Progress of a part of the work, from ``start`` to ``stop`` of all of it."""
    return lambda message, fraction: progress(message, start + (stop - start) * fraction)


class Shares:
    """Progress of several pieces of work of about the same size, of which ``count`` are planned."""

    def __init__(self, progress: Progress, count: int) -> None:
        self._progress, self._count, self._begun = progress, max(count, 1), 0

    def next(self) -> Progress:
        """That of the next piece; pieces beyond those planned share the end with the last one."""
        start = min(self._begun, self._count - 1) / self._count
        self._begun += 1
        return part_of(self._progress, start, start + 1.0 / self._count)

    def tell(self, message: str) -> None:
        """Say what is done between two pieces."""
        self._progress(message, min(self._begun / self._count, 1.0))


#: Called with what is done now, where nobody knows how much of the work that is.
Tell = Callable[[str], None]

logger = logging.getLogger("mislabel")

_WIDTH = 28
_LEAST_SECONDS_BETWEEN_LOGS = 5.0
_LEAST_SECONDS_BETWEEN_LINES = 0.2
#: Fraction from which on the time left can be told.
_TELLING = 0.02
#: Work that takes longer is shown without being asked for.
LONG_SECONDS = 3.0


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def _line(message: str, fraction: float, elapsed: float) -> str:
    filled = round(_WIDTH * fraction)
    bar = "#" * filled + "-" * (_WIDTH - filled)
    left = f", {_duration(elapsed * (1.0 - fraction) / fraction)} left" if fraction > _TELLING else ""
    return f"[{bar}] {100 * fraction:3.0f} % {elapsed:6.1f} s{left}  {message}"


class _Place(Protocol):
    """Where progress is shown."""

    def show(self, message: str, fraction: float, elapsed: float) -> None:
        """Show that a fraction of the work is done."""

    def clear(self) -> None:
        """Take away what was shown."""


class _Terminal:
    """One line that is written over."""

    _shown = False

    def show(self, message: str, fraction: float, elapsed: float) -> None:
        sys.stderr.write(f"\r\x1b[K{_line(message, fraction, elapsed)}")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class _Notebook:
    """One line of output that is updated."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = float("-inf")

    def show(self, message: str, fraction: float, elapsed: float) -> None:
        if elapsed - self._last < _LEAST_SECONDS_BETWEEN_LINES:
            return
        self._last = elapsed
        self._display(_line(message, fraction, elapsed))

    def clear(self) -> None:
        if self._handle is not None:
            self._display("")

    def _display(self, text: str) -> None:
        from IPython.display import display  # a notebook has it

        content = {"text/plain": text}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class _Log:
    """Log messages: each new step, and one every few seconds."""

    def __init__(self) -> None:
        self._last, self._message = float("-inf"), ""

    def show(self, message: str, fraction: float, elapsed: float) -> None:
        if message != self._message or elapsed - self._last > _LEAST_SECONDS_BETWEEN_LOGS:
            logger.info("%3.0f %% %6.1f s  %s", 100 * fraction, elapsed, message)
            self._last, self._message = elapsed, message

    def clear(self) -> None:
        pass


def in_notebook() -> bool:
    """Whether this process answers a notebook."""
    found = sys.modules.get("IPython")
    shell = found.get_ipython() if found is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def _place(verbose: int | None) -> _Place | None:
    if verbose is not None and verbose <= 0:
        return None
    if in_notebook():
        return _Notebook()
    if sys.stderr.isatty():
        return _Terminal()
    return None if verbose is None else _Log()


class ProgressReporter:
    """Call it with a message and the fraction done; used as a context manager it cleans up its line.

    What was shown as done stays done: a search that begins anew, or with another guess, takes nothing back.

    verbose : above 0 shows progress, 0 does not. None shows it on a terminal or in a notebook, once the work has taken long.
    """

    def __init__(self, verbose: int | None = 0) -> None:
        self._place = _place(verbose)
        self._patience = LONG_SECONDS if verbose is None else 0.0
        self._started = time.monotonic()
        self._done = 0.0

    def __call__(self, message: str, fraction: float) -> None:
        """Show that ``fraction`` of the work is done."""
        elapsed = time.monotonic() - self._started
        self._done = fraction = max(self._done, fraction)
        if self._place is not None and elapsed >= self._patience:
            self._place.show(message, fraction, elapsed)

    def __enter__(self) -> ProgressReporter:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._place is not None:
            self._place.clear()
