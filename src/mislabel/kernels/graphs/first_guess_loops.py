"""Compiled loops over the steps that walkers may take from the nodes of many graphs (:mod:`first_guess`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mislabel._common.compiled_loops import compiled_for_speed


class Steps(NamedTuple):
    """All edges of all graphs, to be taken in either direction."""

    left: np.ndarray  # nodes of both ends, numbered through all graphs
    right: np.ndarray
    share: np.ndarray  # weight over the roots of both degrees
    place: np.ndarray  # length in steps of the grid, from its first point
    kind: np.ndarray  # (nodes)
    size: np.ndarray  # (nodes, 2) right-hand sides of both solutions


@compiled_for_speed
def histograms(steps: Steps, row_of: np.ndarray, out: np.ndarray) -> None:
    """For the nodes that have a row in ``out`` (2, rows, lengths, kinds), how probable the steps from them are.

    Each step is split between the two points of the grid next to its length. Nodes count as much as their right-hand side.
    """
    for e in range(steps.left.shape[0]):
        below = min(np.int64(steps.place[e]), out.shape[2] - 2)
        beyond = steps.place[e] - below
        for start, end in ((steps.left[e], steps.right[e]), (steps.right[e], steps.left[e])):
            row, kind = row_of[start], steps.kind[end]
            if row >= 0:
                for solution in range(2):
                    amount = steps.share[e] * steps.size[end, solution]
                    out[solution, row, below, kind] += amount * (1.0 - beyond)
                    out[solution, row, below + 1, kind] += amount * beyond


@compiled_for_speed
def sums_over_steps(steps: Steps, values: np.ndarray, out: np.ndarray) -> None:
    """For all nodes, ``out`` (nodes, 2, components), sums of ``values`` (2, lengths, kinds, components) by those histograms."""
    for e in range(steps.left.shape[0]):
        below = min(np.int64(steps.place[e]), values.shape[1] - 2)
        beyond = steps.place[e] - below
        for start, end in ((steps.left[e], steps.right[e]), (steps.right[e], steps.left[e])):
            kind = steps.kind[end]
            for solution in range(2):
                amount = steps.share[e] * steps.size[end, solution] / steps.size[start, solution]
                here, next_one = np.float32(amount * (1.0 - beyond)), np.float32(amount * beyond)
                for k in range(out.shape[2]):
                    out[start, solution, k] += (
                        here * values[solution, below, kind, k] + next_one * values[solution, below + 1, kind, k]
                    )
