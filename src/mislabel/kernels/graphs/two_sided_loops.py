"""The two-sided solution of one pair of graphs by conjugate gradients, for both ways in which its weights may lie.

With weighted degrees ``d``, ``f = sqrt(d d')`` and ``u = p p' / f``, the kernel is ``u' x`` where ``(V^-1 - W) x = f``;
V holds the node similarities, W the normalised weights of all pairs of edges. The same system is solved with ``u`` on the
right (its solution is called z), because the two residuals together give the kernel with *quadratic* error:
``K = u'x + z'r + q'(V^-1 - W)^-1 r`` exactly, r and q being what is left of f and u; in the last term V stands for the
inverse. A few conjugate-gradient steps then suffice where one system alone would need many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from mislabel.compiled_loops import compiled_for_speed
from mislabel.kernels.graphs.slot_loops import couple_again
from mislabel.kernels.graphs.solution_loops import advance, begin_search, curvature, turn_search
from mislabel.kernels.graphs.vector_loops import couple

#: Least share of the last term of K that is allowed for as its error.
_LEAST_SHARE = 0.2


class EdgePairs(NamedTuple):
    """W as a list of pairs of edges, for interleaved solutions. One for many pairs of graphs."""

    total: np.ndarray  # (1) how many
    weights: np.ndarray
    straight: np.ndarray  # offsets of the four pairs of nodes, in bytes: 16 bits each if `narrow`, else the first two
    crossed: np.ndarray  # the other two; not looked at if `narrow`
    narrow: bool


def couple_all(coupling, source, target):
    """``target += W source`` for both solutions at once."""


@overload(couple_all, inline="never")
def _couple_all(coupling, source, target):
    if coupling.instance_class is EdgePairs:
        return _couple_edges
    return _couple_slots


def _couple_edges(coupling, source, target):
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


def _couple_slots(coupling, source, target):
    couple_again(coupling, source, target)


@compiled_for_speed
def solve(coupling, count, node, vectors, base, tol, linear, max_iter):
    """Conjugate gradients on both systems; returns the number of steps, or -1 if they were not enough.

    ``vectors`` holds residuals, search directions (before V), directions, their images, and how far the solutions have
    moved from their first guesses (before V), ``count`` numbers each. ``linear`` is the accuracy of the
    solutions themselves, zero if only their product matters.
    """
    residual, search, direction, image, moved = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    zero = residual.dtype.type(0)
    norm_f, norm_u = begin_search(search, moved, residual, node, count)
    limit_f, limit_u = norm_f * linear * linear, norm_u * linear * linear
    ratio_f, ratio_u = zero, zero
    share = _LEAST_SHARE
    step = 0
    while True:
        error = share * np.sqrt(np.float64(norm_f) * np.float64(norm_u))
        if error <= tol * base and (linear == 0.0 or (norm_f <= limit_f and norm_u <= limit_u)):
            return step
        if step == max_iter:
            return -1
        turn_search(search, direction, image, residual, node, ratio_f, ratio_u, count)
        couple_all(coupling, direction, image)
        curve_f, curve_u = curvature(image, search, direction, count)
        length_f = norm_f / curve_f if curve_f > 0 else zero
        length_u = norm_u / curve_u if curve_u > 0 else zero
        new_f, new_u = advance(moved, residual, search, image, node, length_f, length_u, count)
        ratio_f = new_f / norm_f if norm_f > 0 else zero
        ratio_u = new_u / norm_u if norm_u > 0 else zero
        # What the last term of K leaves out is at most rho / (1 - rho) of it, rho being the largest eigenvalue of V W;
        # how fast the residuals fall tells about its size.
        slowest = min(np.sqrt(max(ratio_f, ratio_u)), 0.999)
        share = max(_LEAST_SHARE, 3.0 * slowest / (1.0 - slowest))
        norm_f, norm_u = new_f, new_u
        step += 1
