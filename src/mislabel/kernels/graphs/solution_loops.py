"""Sweeps over both solutions of a pair of graphs: what conjugate gradients do between products with the weights.

The two solutions (right-hand sides f and u) lie together, so that one sweep serves both, in one of two layouts that the
dimension of the arrays tells apart. In one dimension they are interleaved, two numbers for each pair of nodes. In two, each
row has the numbers of sixteen pairs of nodes, f's first, then u's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mislabel.kernels.graphs.vector_loops import (
    CONTRACT,
    array_data,
    arrays_data,
    lane_numbers,
    load_vector,
    store_vector,
    sum_of_lanes,
)

#: Pairs of nodes in a row.
ROW = 16
#: How many numbers sweeps over interleaved solutions may reach beyond the end.
PAD = 8


@dataclass(frozen=True)
class _Layout:
    """What the lanes of a vector hold."""

    name: str
    owner: tuple[int, ...]  # the solution that each lane belongs to
    partner: tuple[int, ...]  # the lane with the other solution of the same pair of nodes

    @property
    def lanes(self) -> int:
        return len(self.owner)

    @property
    def scalar(self) -> ir.Type:
        return ir.FloatType() if self.name == "float32" else ir.DoubleType()

    @property
    def bytes(self) -> int:
        return 4 if self.name == "float32" else 8

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(self.scalar, self.lanes)


def _layout(kind: Any) -> _Layout:
    """The layout of an array of solutions."""
    name = str(kind.dtype)
    if kind.ndim == 2:
        return _Layout(name, (0,) * ROW + (1,) * ROW, (*range(ROW, 2 * ROW), *range(ROW)))
    lanes = 32 // (4 if name == "float32" else 8)
    return _Layout(name, (0, 1) * (lanes // 2), tuple(k ^ 1 for k in range(lanes)))


def _parts(layout):
    """The lanes of f and those of u."""
    return [lane_numbers([k for k in range(layout.lanes) if layout.owner[k] == solution]) for solution in (0, 1)]


def _by_solution(builder, layout, first, second):
    """A vector with one number in the lanes of f and another in those of u."""
    vector = ir.Constant(layout.vector, ir.Undefined)
    for number, scalar in enumerate((first, second)):
        vector = builder.insert_element(vector, scalar, ir.Constant(ir.IntType(32), number))
    return builder.shuffle_vector(vector, vector, lane_numbers(layout.owner))


def _sweep(builder, count, layout, body, n_sums, sum_type=None):
    """Run ``body(offset)`` for every vector's worth of ``count`` numbers; returns the sums by solution.

    Sums of fewer lanes than a vector has (``sum_type``) belong to both solutions together.
    """
    lanes = layout.lanes
    kind = sum_type or layout.vector
    zero = ir.Constant(kind, [0.0] * kind.count)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(n_sums)]
    step = ir.Constant(count.type, lanes)
    rounds = builder.udiv(builder.add(count, ir.Constant(count.type, lanes - 1)), step)
    with cgutils.for_range(builder, rounds) as loop:
        added = body(builder.mul(loop.index, step))
        for total, value in zip(sums, added, strict=True):
            builder.store(builder.fadd(builder.load(total), value, flags=CONTRACT), total)
    if kind.count < lanes:
        return [sum_of_lanes(builder, builder.load(total), range(kind.count)) for total in sums]
    return [
        sum_of_lanes(builder, builder.load(total), [k for k in range(lanes) if layout.owner[k] == solution])
        for total in sums
        for solution in (0, 1)
    ]


@intrinsic
def scaled_row(typing, target, at, row, first, second, count):
    """``target[at:] = row`` times ``first`` (f) or ``second`` (u), for ``count`` numbers and up to a vector."""
    signature = types.void(target, at, row, first, second, count)

    def codegen(context, builder, signature, arguments):
        target, at, row, first, second, count = arguments
        kinds = signature.args
        layout = _layout(kinds[0])
        target, row = array_data(context, builder, kinds[0], target), array_data(context, builder, kinds[2], row)
        factors = _by_solution(builder, layout, first, second)

        def body(offset):
            product = builder.fmul(factors, load_vector(builder, row, offset, layout.vector, layout.bytes))
            store_vector(builder, product, target, builder.add(at, offset), layout.bytes)
            return []

        _sweep(builder, count, layout, body, 0)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def clear(typing, target, count):
    """``target = 0``."""
    signature = types.void(target, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        (target,) = arrays_data(context, builder, signature, arguments, 1)
        zero = ir.Constant(layout.vector, [0.0] * layout.lanes)

        def body(offset):
            store_vector(builder, zero, target, offset, layout.bytes)
            return []

        _sweep(builder, arguments[1], layout, body, 0)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def begin_search(typing, search, moved, residual, node, count):
    """``search = moved = 0``; returns ``residual' V residual``: of f with itself, of u with itself, of f with u."""
    signature = types.UniTuple(search.dtype, 3)(search, moved, residual, node, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        search, moved, residual, node = arrays_data(context, builder, signature, arguments, 4)
        zero = ir.Constant(layout.vector, [0.0] * layout.lanes)

        def body(offset):
            store_vector(builder, zero, search, offset, layout.bytes)
            store_vector(builder, zero, moved, offset, layout.bytes)
            left = load_vector(builder, residual, offset, layout.vector, layout.bytes)
            return _weighted_squares(builder, left, node, offset, layout)

        sums = _sweep(builder, arguments[4], layout, body, 2)
        return context.make_tuple(builder, signature.return_type, sums[:3])

    return signature, codegen


def _weighted_squares(builder, left, node, offset, layout):
    """``V left^2``, and V times the product of f's and u's; a square itself may be too small for the format, this is not."""
    similar = builder.fmul(left, load_vector(builder, node, offset, layout.vector, layout.bytes))
    return [builder.fmul(similar, other, flags=CONTRACT) for other in (left, _other(builder, layout, left))]


def _other(builder, layout, vector):
    """The numbers of the other solution."""
    return builder.shuffle_vector(vector, vector, lane_numbers(layout.partner))


def _mixture(builder, layout, factors, vector):
    """Both solutions in a mixture of its own for each: given the factors of themselves and of the other."""
    own, other = factors
    own = builder.fmul(own, vector, flags=CONTRACT)
    return builder.fadd(own, builder.fmul(other, _other(builder, layout, vector), flags=CONTRACT), flags=CONTRACT)


def _factors(builder, layout, mixture):
    """The factors of f in f, u in u, u in f and f in u (in double) as vectors."""
    factors = [builder.extract_value(mixture, k) for k in range(4)]
    if layout.name == "float32":
        factors = [builder.fptrunc(factor, layout.scalar) for factor in factors]
    return [_by_solution(builder, layout, *factors[k : k + 2]) for k in (0, 2)]


@intrinsic
def turn_search(typing, search, direction, image, residual, node, ratios, count):
    """``search = residual + ratios search``, ``direction = node search``, ``image = 0``; ratios as for :func:`advance`."""
    signature = types.void(search, direction, image, residual, node, ratios, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        search, direction, image, residual, node = arrays_data(context, builder, signature, arguments, 5)
        ratios = _factors(builder, layout, arguments[5])
        zero = ir.Constant(layout.vector, [0.0] * layout.lanes)

        def body(offset):
            at = offset, layout.vector, layout.bytes
            before = _mixture(builder, layout, ratios, load_vector(builder, search, *at))
            new = builder.fadd(load_vector(builder, residual, *at), before, flags=CONTRACT)
            store_vector(builder, new, search, offset, layout.bytes)
            turned = builder.fmul(new, load_vector(builder, node, *at))
            store_vector(builder, turned, direction, offset, layout.bytes)
            store_vector(builder, zero, image, offset, layout.bytes)
            return []

        _sweep(builder, arguments[6], layout, body, 0)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def curvature(typing, image, search, direction, count):
    """``image = search - image``; returns ``direction' image``: of f with itself, of u with itself, of f with u."""
    signature = types.UniTuple(image.dtype, 3)(image, search, direction, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        image, search, direction = arrays_data(context, builder, signature, arguments, 3)

        def body(offset):
            at = offset, layout.vector, layout.bytes
            new = builder.fsub(load_vector(builder, search, *at), load_vector(builder, image, *at))
            store_vector(builder, new, image, offset, layout.bytes)
            along = load_vector(builder, direction, *at)
            return [builder.fmul(new, either, flags=CONTRACT) for either in (along, _other(builder, layout, along))]

        sums = _sweep(builder, arguments[3], layout, body, 2)
        return context.make_tuple(builder, signature.return_type, sums[:3])

    return signature, codegen


@intrinsic
def advance(typing, moved, residual, search, image, node, lengths, count):
    """``moved += lengths search``, ``residual -= lengths image``; returns ``residual' V residual`` like :func:`begin_search`.

    Both systems move along both directions: ``lengths`` are f along its own, u along its own, f along u's, u along f's.
    """
    signature = types.UniTuple(moved.dtype, 3)(moved, residual, search, image, node, lengths, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        moved, residual, search, image, node = arrays_data(context, builder, signature, arguments, 5)
        lengths = _factors(builder, layout, arguments[5])

        def body(offset):
            at = offset, layout.vector, layout.bytes
            way = _mixture(builder, layout, lengths, load_vector(builder, search, *at))
            far = builder.fadd(load_vector(builder, moved, *at), way, flags=CONTRACT)
            store_vector(builder, far, moved, offset, layout.bytes)
            back = _mixture(builder, layout, lengths, load_vector(builder, image, *at))
            left = builder.fsub(load_vector(builder, residual, *at), back, flags=CONTRACT)
            store_vector(builder, left, residual, offset, layout.bytes)
            return _weighted_squares(builder, left, node, offset, layout)

        sums = _sweep(builder, arguments[6], layout, body, 2)
        return context.make_tuple(builder, signature.return_type, sums[:3])

    return signature, codegen


@intrinsic
def bilinear(typing, solution, guess, moved, residual, node, count):
    """``sum guess_u (moved_f + residual_f) + V residual_f (moved_u + residual_u)``, summed in double.

    ``solution = guess + V (moved + residual)`` on the way: first guess, moves, and one last correction. This is
    :func:`two_sided_value` and :func:`complete` in one sweep, for first guesses ``V f`` and ``V u``: edge by edge the two take
    2 % more of all the time.
    """
    signature = types.float64(solution, guess, moved, residual, node, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        lanes = layout.lanes
        solution, guess, moved, residual, node = arrays_data(context, builder, signature, arguments, 5)
        blend = lane_numbers([k if layout.owner[k] == 0 else lanes + k for k in range(lanes)])
        wide = ir.VectorType(ir.DoubleType(), lanes)

        def body(offset):
            at = offset, layout.vector, layout.bytes
            left = load_vector(builder, residual, *at)
            reached = builder.fadd(load_vector(builder, moved, *at), left)
            similar, first = load_vector(builder, node, *at), load_vector(builder, guess, *at)
            corrected = builder.fadd(builder.fmul(similar, reached, flags=CONTRACT), first, flags=CONTRACT)
            store_vector(builder, corrected, solution, offset, layout.bytes)
            gained = builder.fmul(left, similar)
            factor = builder.shuffle_vector(gained, first, blend)
            other = _other(builder, layout, reached)
            if layout.name == "float32":
                factor, other = builder.fpext(factor, wide), builder.fpext(other, wide)
            return [builder.fmul(factor, other, flags=CONTRACT)]

        first, second = _sweep(builder, arguments[5], layout, body, 1, wide)
        return builder.fadd(first, second)

    return signature, codegen


@intrinsic
def two_sided_value(typing, plain, guess, moved, residual, node, count):
    """``sum plain_u moved_f + (guess_u + V (moved_u + residual_u)) residual_f``, summed in double.

    That is K less ``u'`` times the first guess for f: ``K = u'x + z'r + q'V r`` with ``x = guess + V moved``, z likewise, and
    ``plain = V u``.
    """
    signature = types.float64(plain, guess, moved, residual, node, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        plain, guess, moved, residual, node = arrays_data(context, builder, signature, arguments, 5)
        of_f, of_u = _parts(layout)
        wide = ir.VectorType(ir.DoubleType(), layout.lanes // 2)

        def body(offset):
            values = [
                load_vector(builder, array, offset, layout.vector, layout.bytes)
                for array in (plain, guess, moved, residual, node)
            ]
            (_, _, way, left, similar), (first, start, other_way, other_left, _) = (
                [builder.shuffle_vector(value, value, part) for value in values] for part in (of_f, of_u)
            )
            reached = builder.fmul(similar, builder.fadd(other_way, other_left), flags=CONTRACT)
            reached = builder.fadd(start, reached, flags=CONTRACT)
            if layout.name == "float32":
                first, way, reached, left = (builder.fpext(value, wide) for value in (first, way, reached, left))
            total = builder.fmul(first, way, flags=CONTRACT)
            return [builder.fadd(total, builder.fmul(reached, left, flags=CONTRACT), flags=CONTRACT)]

        (total,) = _sweep(builder, arguments[5], layout, body, 1, wide)
        return total

    return signature, codegen


@intrinsic
def complete(typing, solution, guess, moved, residual, node, count):
    """``solution = guess + V (moved + residual)``: first guess, moves, and one last correction."""
    signature = types.void(solution, guess, moved, residual, node, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        solution, guess, moved, residual, node = arrays_data(context, builder, signature, arguments, 5)

        def body(offset):
            at = offset, layout.vector, layout.bytes
            way = builder.fadd(load_vector(builder, moved, *at), load_vector(builder, residual, *at))
            way = builder.fmul(way, load_vector(builder, node, *at), flags=CONTRACT)
            total = builder.fadd(load_vector(builder, guess, *at), way, flags=CONTRACT)
            store_vector(builder, total, solution, offset, layout.bytes)
            return []

        _sweep(builder, arguments[5], layout, body, 0)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def product(typing, solution, image, count):
    """``sum solution_u image_f``, summed in double."""
    signature = types.float64(solution, image, count)

    def codegen(context, builder, signature, arguments):
        layout = _layout(signature.args[0])
        solution, image = arrays_data(context, builder, signature, arguments, 2)
        of_f, of_u = _parts(layout)
        wide = ir.VectorType(ir.DoubleType(), layout.lanes // 2)

        def body(offset):
            at = offset, layout.vector, layout.bytes
            values = [load_vector(builder, array, *at) for array in (solution, image)]
            values = [builder.shuffle_vector(v, v, part) for v, part in zip(values, (of_u, of_f), strict=True)]
            if layout.name == "float32":
                values = [builder.fpext(value, wide) for value in values]
            return [builder.fmul(*values, flags=CONTRACT)]

        (total,) = _sweep(builder, arguments[2], layout, body, 1, wide)
        return total

    return signature, codegen
