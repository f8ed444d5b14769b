"""Progress of long work: a bar on a terminal, log messages elsewhere, silence unless asked for."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

#: Called with a message and the fraction of the work that is done.
Progress = Callable[[str, float], None]


def part_of(progress: Progress, start: float, stop: float) -> Progress:
    """Progress of a part of the work, from ``start`` to ``stop`` of all of it."""
    return lambda message, fraction: progress(message, start + (stop - start) * fraction)


logger = logging.getLogger("mislabel")

_WIDTH = 28
_LEAST_SECONDS_BETWEEN_LOGS = 5.0
#: Fraction from which on the time left can be told.
_TELLING = 0.02


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


class ProgressReporter:
    """Call it with a message and the fraction done; used as a context manager it cleans up its line."""

    def __init__(self, verbose: int = 0) -> None:
        self._enabled = verbose > 0
        self._terminal = self._enabled and sys.stderr.isatty()
        self._started = time.monotonic()
        self._last_log = float("-inf")
        self._last_message = ""

    def __call__(self, message: str, fraction: float) -> None:
        """Show that ``fraction`` of the work is done."""
        if not self._enabled:
            return
        elapsed = time.monotonic() - self._started
        if self._terminal:
            filled = round(_WIDTH * fraction)
            bar = "#" * filled + "-" * (_WIDTH - filled)
            left = f", {_duration(elapsed * (1.0 - fraction) / fraction)} left" if fraction > _TELLING else ""
            sys.stderr.write(f"\r\x1b[K[{bar}] {100 * fraction:3.0f} % {elapsed:6.1f} s{left}  {message}")
            sys.stderr.flush()
        elif message != self._last_message or elapsed - self._last_log > _LEAST_SECONDS_BETWEEN_LOGS:
            logger.info("%3.0f %% %6.1f s  %s", 100 * fraction, elapsed, message)
            self._last_log, self._last_message = elapsed, message

    def __enter__(self) -> ProgressReporter:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
