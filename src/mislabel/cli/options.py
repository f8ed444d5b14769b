"""Options that several commands take, and types of their values."""

from __future__ import annotations

import argparse


def add_shared(command: argparse.ArgumentParser) -> None:
    """What commands that audit have in common."""
    command.add_argument("--fdr", type=float, default=0.05, help="false discovery rate (default: %(default)s)")
    command.add_argument("--seed", type=_seed, default=0, help="seed of everything random (default: %(default)s)")
    command.add_argument("--json", action="store_true", help="print summary.json instead of words")
    command.add_argument("--quiet", action="store_true", help="no progress, no words")


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**32:
        raise argparse.ArgumentTypeError(f"a seed lies between 0 and {2**32 - 1}, got {text}")
    return seed


def whole_number(text: str) -> int:
    """A number of rows."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number of rows, got {text!r}")
    return int(text)
