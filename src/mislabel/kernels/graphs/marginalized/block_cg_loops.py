"""One kernel value by block conjugate gradients on the product graph.

With the node kernel V, ``f = sqrt(d d')``, ``u = p p' / f`` and W of :mod:`product_loops`,

    K = u' x,    (V^-1 - W) x = f        and likewise        (V^-1 - W) z = u.

Both systems are solved at once with V as preconditioner, from zero, each along the search directions P = [p_f, p_u] of both
(O'Leary 1980). With the residuals R = [r, q] of f and u and A = V^-1 - W, one step is

    C = P' A P,   a = C^-1 P' R,   [x, z] += P a,   R -= A P a,   P = V R + P (R_old' V R_old)^-1 (R' V R).

*Why both.* For any x and z, with residuals r and q, ``K = u'x + z'r + q' A^-1 r`` exactly: the error of K is of second order
in those of x and z. The last term is what is still to come; a step by P a takes

    r' P a_u  +  q' P a_f  -  a_u' C a_f                                                                              (gain)

out of it, whatever went before, so that K is the sum of the gains, and rounding errors of one step do not reach the next.

*The last step* only has to give its gain, for which C is all that is needed: ``P'WP`` costs half of the product ``W P``.
What remains after a step is near ``sqrt(r'Vr q'Vq)``, and falls about as fast as it did in the step before.

``P = V S`` is kept with S beside it, so that V is never divided by: it may be zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mislabel._common.compiled_loops import compiled, compiled_for_speed
from mislabel.kernels.graphs.marginalized.product_loops import (
    EdgePairs,
    GraphArrays,
    LabelTables,
    add_product,
    quadratic_forms,
)

#: How many times more may remain after the last step than was expected.
_CAUTION = 5.0
#: Least squared sine of the angle between two directions that are told apart.
_LEAST_ANGLE = 1e-5
#: What remains shrinks by this factor and less.
_SLOWEST = 0.998

#: A symmetric 2 x 2 matrix: f with f, u with u, f with u.
Symmetric = tuple[float, float, float]
#: A 2 x 2 matrix row by row; rows belong to the directions p_f and p_u, columns to the systems of f and u.
Square = tuple[float, float, float, float]


class Accuracy(NamedTuple):
    """When to stop."""

    value: float  # relative error of K
    residual: float  # by how much residuals must fall where x and z are wanted themselves; zero where K alone is
    max_steps: int


class Vectors(NamedTuple):
    """Workspace for n n' pairs of nodes; the numbers of f at ``2 k``, those of u at ``2 k + 1``."""

    similarity: np.ndarray  # (n n') float64, V
    residual: np.ndarray  # (2 n n') float64, R
    search: np.ndarray  # (2 n n') float64, S
    direction: np.ndarray  # (2 n n') float64, P
    image: np.ndarray  # (2 n n') float64, W P, then A P
    solution: np.ndarray  # (2 n n') float64, V^-1 [x, z]


@compiled_for_speed
def begin(graphs: GraphArrays, a: int, b: int, tables: LabelTables, vectors: Vectors) -> int:
    """Fill in V and both right-hand sides, clear the rest; returns the number of pairs of nodes."""
    similarity, residual, search, solution = vectors.similarity, vectors.residual, vectors.search, vectors.solution
    nodes, column, root, ratio = tables.nodes, tables.node_column, graphs.root, graphs.ratio
    first = graphs.node_start[b]
    count = graphs.node_start[b + 1] - first
    at = 0
    for i in range(graphs.node_start[a], graphs.node_start[a + 1]):
        row, own_root, own_ratio = tables.node_row[i], root[i], ratio[i]
        for p in range(count):
            similarity[at + p] = nodes[row, column[first + p]]
        for p in range(count):
            residual[2 * (at + p)] = own_root * root[first + p]
            residual[2 * (at + p) + 1] = own_ratio * ratio[first + p]
        at += count
    for k in range(2 * at):
        search[k] = 0.0
        solution[k] = 0.0
    return at


@compiled_for_speed
def quotient(square: Symmetric, right: Square) -> Square:
    """``square^-1 right``.

    Each direction serves its own system alone where both are nearly the same but for their size (as f and u are in regular
    graphs) or where the matrix is not positive definite.
    """
    f, u, mixed = square
    determinant = f * u - mixed * mixed
    if not (f > 0.0 and determinant > _LEAST_ANGLE * f * u):
        return right[0] / f if f > 0.0 else 0.0, 0.0, 0.0, right[3] / u if u > 0.0 else 0.0
    return (
        (u * right[0] - mixed * right[2]) / determinant,
        (u * right[1] - mixed * right[3]) / determinant,
        (f * right[2] - mixed * right[0]) / determinant,
        (f * right[3] - mixed * right[1]) / determinant,
    )


@compiled_for_speed
def gain(square: Symmetric, products: Square, lengths: Square) -> float:
    """What a step adds to K: the formula above with C ``square``, P'R ``products`` and a ``lengths``."""
    f, u, mixed = square
    first_order = (
        products[1] * lengths[0] + products[3] * lengths[2] + products[0] * lengths[1] + products[2] * lengths[3]
    )
    image_f, image_u = f * lengths[0] + mixed * lengths[2], mixed * lengths[0] + u * lengths[2]
    return first_order - lengths[1] * image_f - lengths[3] * image_u


@compiled_for_speed
def turn(size: int, vectors: Vectors, mixture: Square) -> Square:
    """``S = R + S mixture``, ``P = V S``, ``A P = 0``; returns P'R."""
    similarity, residual, search = vectors.similarity, vectors.residual, vectors.search
    direction, image = vectors.direction, vectors.image
    f_f = f_u = u_f = u_u = 0.0
    for k in range(size):
        r, q = residual[2 * k], residual[2 * k + 1]
        f = r + search[2 * k] * mixture[0] + search[2 * k + 1] * mixture[2]
        u = q + search[2 * k] * mixture[1] + search[2 * k + 1] * mixture[3]
        search[2 * k], search[2 * k + 1] = f, u
        f *= similarity[k]
        u *= similarity[k]
        direction[2 * k], direction[2 * k + 1] = f, u
        f_f += f * r
        f_u += f * q
        u_f += u * r
        u_u += u * q
    for k in range(2 * size):
        image[k] = 0.0
    return f_f, f_u, u_f, u_u


@compiled_for_speed
def curvature(size: int, vectors: Vectors) -> Symmetric:
    """``A P = S - W P``; returns ``P' A P``."""
    search, direction, image = vectors.search, vectors.direction, vectors.image
    f_f = u_u = f_u = 0.0
    for k in range(size):
        f, u = search[2 * k] - image[2 * k], search[2 * k + 1] - image[2 * k + 1]
        image[2 * k], image[2 * k + 1] = f, u
        f_f += f * direction[2 * k]
        u_u += u * direction[2 * k + 1]
        f_u += f * direction[2 * k + 1]
    return f_f, u_u, f_u


@compiled_for_speed
def advance(size: int, vectors: Vectors, lengths: Square) -> Symmetric:
    """``R -= A P lengths``; returns ``R' V R``."""
    similarity, residual, image = vectors.similarity, vectors.residual, vectors.image
    f_f = u_u = f_u = 0.0
    for k in range(size):
        f, u = image[2 * k], image[2 * k + 1]
        r = residual[2 * k] - f * lengths[0] - u * lengths[2]
        q = residual[2 * k + 1] - f * lengths[1] - u * lengths[3]
        residual[2 * k], residual[2 * k + 1] = r, q
        f_f += similarity[k] * r * r
        u_u += similarity[k] * q * q
        f_u += similarity[k] * r * q
    return f_f, u_u, f_u


@compiled_for_speed
def move(size: int, vectors: Vectors, lengths: Square) -> None:
    """``V^-1 [x, z] += S lengths``."""
    search, solution = vectors.search, vectors.solution
    for k in range(size):
        f, u = search[2 * k], search[2 * k + 1]
        solution[2 * k] += f * lengths[0] + u * lengths[2]
        solution[2 * k + 1] += f * lengths[1] + u * lengths[3]


@compiled
def solve(count: int, pairs: EdgePairs, size: int, vectors: Vectors, accuracy: Accuracy) -> tuple[float, int]:
    """K and the number of products with W that it took; -1 if these were not enough.

    W has ``count`` pairs of edges; ``vectors`` are as :func:`begin` left them for ``size`` pairs of nodes.
    """
    weight, straight, crossed = pairs.weight, pairs.straight, pairs.crossed
    direction, image = vectors.direction, vectors.image
    products = turn(size, vectors, (0.0, 0.0, 0.0, 0.0))
    norms = products[0], products[3], products[1]
    limit_f, limit_u = norms[0] * accuracy.residual**2, norms[1] * accuracy.residual**2
    value, remainder, after_next = 0.0, np.inf, np.inf
    for step in range(accuracy.max_steps + 1):
        if accuracy.residual > 0.0:
            if norms[0] <= limit_f and norms[1] <= limit_u and remainder <= accuracy.value * abs(value):
                return value + norms[2], step
        elif after_next <= accuracy.value * abs(value):
            f_f, u_u, f_u = quadratic_forms(count, weight, straight, crossed, direction)
            s_f_f, s_u_u, s_f_u = curvature(size, vectors)
            square = s_f_f - f_f, s_u_u - u_u, s_f_u - f_u
            return value + gain(square, products, quotient(square, products)), step
        if step == accuracy.max_steps or not np.isfinite(value):
            break
        add_product(count, weight, straight, crossed, direction, image)
        square = curvature(size, vectors)
        lengths = quotient(square, products)
        value += gain(square, products, lengths)
        if accuracy.residual > 0.0:
            move(size, vectors, lengths)
        left = advance(size, vectors, lengths)
        shrunk = max(left[0] / norms[0] if norms[0] > 0.0 else 0.0, left[1] / norms[1] if norms[1] > 0.0 else 0.0)
        rate = np.sqrt(min(shrunk, _SLOWEST))
        # Beyond q'Vr, which is added to K where there is no last step, q' A^-1 r has a geometric series in that rate.
        remainder = _CAUTION * np.sqrt(left[0] * left[1]) * rate / (1.0 - rate)
        after_next = remainder * rate
        products = turn(size, vectors, quotient(norms, (left[0], left[2], left[2], left[1])))
        norms = left
    return value, -1
