"""A reader with known faults, to see that the attack finds each of them."""

import os
import signal
import time
import warnings
from pathlib import Path
from random import Random

from mislabel.errors import TableFileError
from tests.fuzz.checks import WrongResultError
from tests.fuzz.seeds import Seed


def _raise() -> None:
    raise KeyError("fault")


def _refuse() -> None:
    raise TableFileError("refused")


def _return_wrong() -> None:
    raise WrongResultError("not right")


def _warn() -> None:
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)


def _compute() -> None:
    while True:
        pass


def _compute_in_c() -> None:
    """A loop that never looks at signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
    _compute()


FAULTS = {
    "fine": lambda: None,
    "refuse": _refuse,
    "raise": _raise,
    "warn": _warn,
    "wrong": _return_wrong,
    "sleep": lambda: time.sleep(60),
    "compute": _compute,
    "loop in C": _compute_in_c,
    "die": os.abort,
    "memory": lambda: bytearray(1 << 40),
}


def faulty_files() -> list[Seed]:
    return [Seed(".txt", b"abc fine def")]


def insert_fault(random: Random, data: bytes, other: bytes) -> bytes:
    """A word among letters; those that take seconds are rare."""
    word = random.choice(("fine", "fine", "refuse", "raise", "warn", "wrong", "die"))
    return b"x" * random.randrange(20) + word.encode() + b"y" * random.randrange(20)


def faulty_reader(path: Path) -> None:
    """Do what the file says."""
    text = path.read_text()
    if "leave" in text:
        path.with_name("left.tmp").write_text("left")
    if "change" in text:
        path.write_text("changed")
    for word, fault in FAULTS.items():
        if word in text:
            fault()
