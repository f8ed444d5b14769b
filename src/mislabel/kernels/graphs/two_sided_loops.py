"""The two-sided solution of one pair of graphs by conjugate gradients, for both ways in which its weights may lie.

With weighted degrees ``d``, ``f = sqrt(d d')`` and ``u = p p' / f``, the kernel is ``u' x`` where ``(V^-1 - W) x = f``;
V holds the node similarities, W the normalised weights of all pairs of edges. The same system is solved with ``u`` on the
right (its solution is called z), because the two residuals together give the kernel with *quadratic* error:
``K = u'x + z'r + q'(V^-1 - W)^-1 r`` exactly, r and q being what is left of f and u; in the last term V stands for the
inverse. A few conjugate-gradient steps then suffice where one system alone would need many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from mislabel._common.compiled_loops import compiled_for_speed
from mislabel.kernels.graphs.slot_loops import couple_again
from mislabel.kernels.graphs.solution_loops import advance, begin_search, curvature, turn_search
from mislabel.kernels.graphs.vector_loops import couple

#: Least share of the last term of K that is allowed for as its error, and how many times more than the residuals tell.
_LEAST_SHARE = 0.2
_CAUTION = 3.0
#: Least squared sine of the angle between two directions that are told apart.
_LEAST_ANGLE = 1e-5


class EdgePairs(NamedTuple):
    """W as a list of pairs of edges, for interleaved solutions. One for many pairs of graphs."""

    total: np.ndarray  # (1) how many
    weights: np.ndarray
    straight: np.ndarray  # offsets of the four pairs of nodes, in bytes: 16 bits each if `narrow`, else the first two
    crossed: np.ndarray  # the other two; not looked at if `narrow`
    narrow: bool


def couple_all(coupling: Any, source: Any, target: Any) -> None:
    """``target += W source`` for both solutions at once."""


@overload(couple_all, inline="never")
def _couple_all(coupling: Any, source: Any, target: Any) -> Any:
    if coupling.instance_class is EdgePairs:
        return _couple_edges
    return _couple_slots


def _couple_edges(coupling: Any, source: Any, target: Any) -> None:
    halves = coupling.straight.view(np.uint32)
    if coupling.narrow:
        mask, shift = np.uint32(0xFFFF), np.uint32(16)
        for k in range(coupling.total[0]):
            along, across = halves[2 * k], halves[2 * k + 1]
            couple(target, source, coupling.weights[k], along & mask, along >> shift, across & mask, across >> shift)
    else:
        others = coupling.crossed.view(np.uint32)
        for k in range(coupling.total[0]):
            couple(
                target, source, coupling.weights[k], halves[2 * k], halves[2 * k + 1], others[2 * k], others[2 * k + 1]
            )


def _couple_slots(coupling: Any, source: Any, target: Any) -> None:
    couple_again(coupling, source, target)


@compiled_for_speed
def _mixture(square: tuple[float, ...], right: tuple[float, ...]) -> tuple[float, float, float, float]:
    """``square^-1 right`` for two symmetric matrices given as (f with f, u with u, f with u).

    Returns what f takes of f, u of u, f of u and u of f: nothing of each other where the first matrix is nearly singular,
    because f and u are nearly the same but for their size, or not positive definite.
    """
    f, u, mixed = np.float64(square[0]), np.float64(square[1]), np.float64(square[2])
    to_f, to_u, to_both = np.float64(right[0]), np.float64(right[1]), np.float64(right[2])
    determinant = f * u - mixed * mixed
    if not (f > 0 and determinant > _LEAST_ANGLE * f * u):
        return to_f / f if f > 0 else 0.0, to_u / u if u > 0 else 0.0, 0.0, 0.0
    return (
        (u * to_f - mixed * to_both) / determinant,
        (f * to_u - mixed * to_both) / determinant,
        (f * to_both - mixed * to_f) / determinant,
        (u * to_both - mixed * to_u) / determinant,
    )


@compiled_for_speed
def solve(
    coupling: Any,
    count: int,
    node: np.ndarray,
    vectors: np.ndarray,
    base: float,
    tol: float,
    linear: float,
    max_iter: int,
) -> int:
    """Conjugate gradients on both systems together; returns the number of steps, or -1 if they were not enough.

    Both move along the search directions of both (block conjugate gradients): what one system has found out helps the other.
    ``vectors`` holds residuals, search directions (before V), directions, their images, and how far the solutions have
    moved from their first guesses (before V), ``count`` numbers each. ``linear`` is the accuracy of the
    solutions themselves, zero if only their product matters.
    """
    residual, search, direction, image, moved = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    norms = begin_search(search, moved, residual, node, count)
    limit_f, limit_u = norms[0] * linear * linear, norms[1] * linear * linear
    ratios = (0.0, 0.0, 0.0, 0.0)
    share = _LEAST_SHARE
    step = 0
    while True:
        error = share * np.sqrt(np.float64(norms[0]) * np.float64(norms[1]))
        if error <= tol * base and (linear == 0.0 or (norms[0] <= limit_f and norms[1] <= limit_u)):
            return step
        if step == max_iter:
            return -1
        turn_search(search, direction, image, residual, node, ratios, count)
        couple_all(coupling, direction, image)
        lengths = _mixture(curvature(image, search, direction, count), norms)
        left = advance(moved, residual, search, image, node, lengths, count)
        ratios = _mixture(norms, left)
        # What the last term of K leaves out is at most rho / (1 - rho) of it, rho being the largest eigenvalue of V W;
        # how fast the residuals fall tells about its size.
        fall = max(left[0] / norms[0] if norms[0] > 0 else 0.0, left[1] / norms[1] if norms[1] > 0 else 0.0)
        slowest = min(np.sqrt(fall), 0.999)
        share = max(_LEAST_SHARE, _CAUTION * slowest / (1.0 - slowest))
        norms = left
        step += 1
