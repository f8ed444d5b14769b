"""Products with the weights of a pair of graphs, sixteen pairs of edges at a time: for processors with AVX-512.

Take an edge (i, j) of the first graph and many of the second. Where those end at different nodes, what they add to the
solution at node i lies in different lanes of one vector; what they bring from node j is the same row of numbers in another
order, and the processor reorders sixteen numbers (or picks from thirty-two) in one instruction. A *slot* is such a set of
edges of the second graph, taken in one direction: at most one for each of sixteen nodes that they end at, all from a range of
thirty-two nodes, and of similar lengths, so that an edge of the first graph is within reach of most or none. Slots between the
same nodes are a *group*, in ascending order of their shortest edge; those within reach of an edge then follow each other.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from math import log
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mislabel.kernels.graphs.solution_loops import ROW
from mislabel.kernels.graphs.vector_loops import (
    CONTRACT,
    array_data,
    compiles_for,
    gaussian,
    load_vector,
    splat,
    store_vector,
    sum_of_lanes,
)
from mislabel.linalg.contract import IntArray

#: Whether the processor can reorder sixteen numbers in one instruction.
CAN_REORDER = compiles_for("avx512f")
#: Bytes of a row: sixteen numbers of either solution.
ROW_BYTES = 2 * 4 * ROW
#: Numbers that describe the surroundings of a node.
FEATURES = 16
#: Where in a lane's number the edge stands, and what tells that there is one.
_EDGE_BITS, _USED = 8, -(1 << 31)
_WORD, _INTEGER = ir.IntType(64), ir.IntType(32)
_NUMBERS, _INTEGERS = ir.VectorType(ir.FloatType(), ROW), ir.VectorType(_INTEGER, ROW)


class SlotArrays(NamedTuple):
    """Many graphs as groups of slots, for the loops in single precision.

    Those of one graph follow each other; lanes without an edge or a node have weight zero.
    """

    group_start: np.ndarray  # (graphs + 1) where each graph's groups begin
    begin: np.ndarray  # (groups) bytes before the nodes that their edges come from, and end at
    end: np.ndarray
    first: np.ndarray  # (groups, buckets of length) slots within reach
    last: np.ndarray
    slot_start: np.ndarray  # (graphs + 1) where each graph's slots begin
    order: np.ndarray  # (slots, 16) for each lane the node that its edge comes from and the edge: see `lane_order`
    chunk: np.ndarray  # (slots) bytes before the first of the two chunks of edges that theirs belong to
    first_chunk: np.ndarray  # (graphs, buckets of length) chunks that the slots within reach need
    last_chunk: np.ndarray
    n_buckets: np.ndarray  # (1)
    row_start: np.ndarray  # (graphs + 1) where each graph's rows of nodes begin
    kinds: np.ndarray  # (rows, 16)
    roots: np.ndarray  # (rows, 32) root of the weighted degree, starting probability over root
    begins: np.ndarray  # (rows, 16) starting probability
    features: np.ndarray  # (nodes, 2, FEATURES) of both solutions: their products guess what longer walks add
    row_features: np.ndarray  # (rows, 2, FEATURES, 16) the same in rows
    edge_bucket: np.ndarray  # (edges) bucket of length


class SlotPairs(NamedTuple):
    """W as edges of one graph and slots of edges of the other, for solutions in rows. One for many pairs of graphs."""

    slots: SlotArrays
    edge_left: np.ndarray  # of all graphs, as in GraphArrays
    edge_right: np.ndarray
    edge_length: np.ndarray
    edge_weight: np.ndarray
    length_unit: np.ndarray
    place: np.ndarray  # (4) the pair at hand, see `Place`
    chunks: np.ndarray  # (edges and chunks, 16) weights of single pairs of edges
    chunk_start: np.ndarray  # (edges) where those of each edge would begin, in bytes
    weights: np.ndarray  # (edges and slots, 16) the same for the lanes of slots


class Place(IntEnum):
    """What the numbers of :attr:`SlotPairs.place` are."""

    FIRST_EDGE = 0
    N_EDGES = 1
    OTHER = 2  # the graph with the slots, and its first edge
    OTHER_EDGE = 3


def lane_order(node: IntArray, edge: IntArray) -> IntArray:
    """What a lane of a slot says: which of thirty-two nodes its edge comes from, which of thirty-two edges it is."""
    return np.asarray(node | edge << _EDGE_BITS | _USED)


def _members(context, builder, kind, value):
    """The members of a named tuple: pointers to the numbers of arrays, scalars, named tuples."""
    found = {}
    for number, (name, part) in enumerate(zip(kind.fields, kind.types, strict=True)):
        member = builder.extract_value(value, number)
        if isinstance(part, types.Array):
            member = array_data(context, builder, part, member)
        elif isinstance(part, types.BaseNamedTuple):
            member = _members(context, builder, part, member)
        found[name] = member
    return SimpleNamespace(**found)


def _item(builder, array, number):
    return builder.load(builder.gep(array, [number]))


def _word(builder, value):
    return builder.zext(value, _WORD)


def _plus(builder, value, number):
    return builder.add(value, ir.Constant(_WORD, number))


def _times(builder, value, number):
    return builder.mul(value, ir.Constant(_WORD, number))


def _apart(builder, name, arguments, body):
    """Call a function of its own, made by ``body(builder, *arguments)``: its loops get all registers to themselves.

    None of what its pointers point to overlaps.
    """
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, f"mislabel_{name}")
    if function.is_declaration:
        function.linkage = "internal"
        function.attributes.add("noinline")
        for argument in function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        inside = ir.IRBuilder(function.append_basic_block("entry"))
        body(inside, *function.args)
        inside.ret_void()
    builder.call(function, arguments)


def _at_hand(builder, pairs):
    """Numbers of the pair at hand."""
    return [_item(builder, pairs.place, ir.Constant(_WORD, int(place))) for place in Place]


def _range(builder, starts, graph):
    return [_item(builder, starts, _plus(builder, graph, k)) for k in (0, 1)]


@contextmanager
def _loop(builder, start, stop):
    """Count from ``start`` to ``stop``. The compiler is told not to unroll: most loops here end after a few rounds."""
    before, body, after = builder.basic_block, *(builder.append_basic_block(f"loop.{name}") for name in ("body", "end"))
    builder.cbranch(builder.icmp_signed("<", start, stop), body, after)
    builder.position_at_end(body)
    index = builder.phi(_WORD)
    index.add_incoming(start, before)
    yield index
    following = _plus(builder, index, 1)
    index.add_incoming(following, builder.basic_block)
    branch = builder.cbranch(builder.icmp_signed("<", following, stop), body, after)
    wish = builder.module.add_metadata(["llvm.loop.unroll.disable"])
    loop = builder.module.add_metadata([wish])
    loop.operands = (loop, wish)
    branch.set_metadata("llvm.loop", loop)
    builder.position_at_end(after)


@intrinsic
def weigh_chunks(typing, pairs):
    """Weights of all edges of the first graph with those of the second, in chunks of sixteen that follow each other."""
    return types.void(pairs), partial(_weigh, False)


@intrinsic
def weigh_slopes(typing, pairs):
    """The derivatives of these weights by the logarithm of the length scale, in their place."""
    return types.void(pairs), partial(_weigh, True)


def _weigh(derived, context, builder, signature, arguments):
    pairs = _members(context, builder, signature.args[0], arguments[0])
    slots = pairs.slots
    first_edge, n_edges, other, other_edge = _at_hand(builder, pairs)
    bucket, length, weight = (
        builder.gep(array, [first_edge]) for array in (slots.edge_bucket, pairs.edge_length, pairs.edge_weight)
    )
    lengths, weights = (builder.gep(array, [other_edge]) for array in (pairs.edge_length, pairs.edge_weight))
    row = builder.mul(other, builder.load(slots.n_buckets))
    first, last = (builder.gep(table, [row]) for table in (slots.first_chunk, slots.last_chunk))
    arguments = (
        pairs.chunks, pairs.chunk_start, first, last, bucket, length, weight, lengths, weights, n_edges,
        builder.load(pairs.length_unit),
    )  # fmt: skip
    _apart(builder, "weigh_slopes" if derived else "weigh_chunks", arguments, partial(_weigh_chunks, derived))
    return context.get_dummy_value()


def _weigh_chunks(
    derived, builder, chunks, chunk_start, firsts, lasts, bucket, length, weight, lengths, weights, n_edges, unit
):
    item = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
    zero = ir.Constant(_NUMBERS, [0.0] * ROW)

    def keep(found):
        number = builder.load(item)
        store_vector(builder, found, chunks, _times(builder, number, ROW), 4)
        builder.store(_plus(builder, number, 1), item)

    with _loop(builder, ir.Constant(_WORD, 0), n_edges) as edge:
        reach = _word(builder, _item(builder, bucket, edge))
        first, last = (_word(builder, _item(builder, ends, reach)) for ends in (firsts, lasts))
        # Slots within reach may have edges in a chunk before and in one behind those within reach: nothing is there.
        keep(zero)
        start = _times(builder, builder.sub(builder.load(item), first), 4 * ROW)
        builder.store(start, builder.gep(chunk_start, [edge]))
        mine, own = (splat(builder, _item(builder, values, edge), ROW) for values in (length, weight))
        with _loop(builder, first, last) as chunk:
            lane = _times(builder, chunk, ROW)
            steps = builder.sub(mine, load_vector(builder, lengths, lane, _INTEGERS, 4))
            similar, exponent = gaussian(builder, "float32", steps, unit)
            if derived:  # of 2^-t^2, t going like the inverse length scale
                slope = builder.fmul(exponent, ir.Constant(_NUMBERS, [2.0 * log(2.0)] * ROW))
                similar = builder.fmul(similar, slope)
            keep(builder.fmul(similar, builder.fmul(load_vector(builder, weights, lane, _NUMBERS, 4), own)))
        keep(zero)


@intrinsic
def couple_first(typing, pairs, source, target):
    """``target += W source`` for both solutions at once; writes the weights of slots down, given those of chunks."""
    return types.void(pairs, source, target), partial(_couple, True)


@intrinsic
def couple_again(typing, pairs, source, target):
    """``target += W source`` for both solutions at once, with the weights of slots that are there."""
    return types.void(pairs, source, target), partial(_couple, False)


def _couple(fresh, context, builder, signature, arguments):
    pairs = _members(context, builder, signature.args[0], arguments[0])
    source, target = (array_data(context, builder, signature.args[k], arguments[k]) for k in (1, 2))
    slots = pairs.slots
    first_edge, n_edges, other, _ = _at_hand(builder, pairs)
    first_row, last_row = _range(builder, slots.row_start, other)
    rows = builder.sub(last_row, first_row)
    edges = [builder.gep(array, [first_edge]) for array in (slots.edge_bucket, pairs.edge_left, pairs.edge_right)]
    byte = ir.IntType(8).as_pointer()
    arguments = (
        builder.bitcast(target, byte), builder.bitcast(source, byte), pairs.weights, builder.bitcast(pairs.chunks, byte),
        pairs.chunk_start, slots.chunk, slots.begin, slots.end, slots.first, slots.last, slots.order, *edges, n_edges,
        builder.load(slots.n_buckets), _times(builder, rows, ROW_BYTES), *_range(builder, slots.group_start, other),
    )  # fmt: skip
    wide = builder.icmp_signed(">", rows, ir.Constant(_WORD, 1))
    with builder.if_else(wide) as branches:
        for picks, branch in zip((True, False), branches, strict=True):
            with branch:
                name = f"couple_{'first' if fresh else 'again'}_{1 + picks}"
                _apart(builder, name, arguments, partial(_couple_groups, fresh, picks))
    return context.get_dummy_value()


def _reordering(builder, wide):
    """The instruction that picks from one row of numbers, or from two (``wide``)."""
    kind = ir.FunctionType(_NUMBERS, [_NUMBERS, _INTEGERS, _NUMBERS] if wide else [_NUMBERS, _INTEGERS])
    name = "llvm.x86.avx512.vpermi2var.ps.512" if wide else "llvm.x86.avx512.permvar.sf.512"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return lambda order, low, *high: builder.call(function, [low, order, *high])


def _couple_groups(
    fresh, wide, builder, target, source, weights, chunks, chunk_start, slot_chunk, begins, ends, firsts, lasts, orders,
    bucket, left, right, n_edges, n_buckets, stride, first_group, last_group,
):  # fmt: skip
    reorder = _reordering(builder, wide)
    item = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
    sums = [cgutils.alloca_once(builder, _NUMBERS) for _ in range(4)]
    with _loop(builder, first_group, last_group) as group:
        reaches = builder.mul(group, n_buckets)
        from_here = builder.gep(source, [_item(builder, begins, group)])
        to_here = builder.gep(target, [_item(builder, ends, group)])
        with _loop(builder, ir.Constant(_WORD, 0), n_edges) as edge:
            nodes = [builder.mul(_word(builder, _item(builder, nodes, edge)), stride) for nodes in (left, right)]
            places = [_plus(builder, node, solution * ROW_BYTES // 2) for node in nodes for solution in (0, 1)]
            rows = [
                [
                    load_vector(builder, from_here, _plus(builder, place, k * ROW_BYTES), _NUMBERS, 4)
                    for k in range(1 + wide)
                ]
                for place in places
            ]
            for total in sums:
                builder.store(ir.Constant(_NUMBERS, [0.0] * ROW), total)
            reach = builder.add(reaches, _word(builder, _item(builder, bucket, edge)))
            first, last = (_word(builder, _item(builder, slots, reach)) for slots in (firsts, lasts))
            with _loop(builder, first, last) as slot:
                number = builder.load(item)
                builder.store(_plus(builder, number, 1), item)
                here = _times(builder, number, ROW)
                order = load_vector(builder, orders, _times(builder, slot, ROW), _INTEGERS, 4)
                if fresh:
                    place = builder.add(_item(builder, chunk_start, edge), _item(builder, slot_chunk, slot))
                    weight = _lane_weights(builder, chunks, place, order)
                    store_vector(builder, weight, weights, here, 4)
                else:
                    weight = load_vector(builder, weights, here, _NUMBERS, 4)
                for total, row in zip(sums, rows, strict=True):
                    moved = builder.fmul(weight, reorder(order, *row), flags=CONTRACT)
                    builder.store(builder.fadd(builder.load(total), moved, flags=CONTRACT), total)
            # What comes from one end goes to the other. In turn, since both may be the same.
            for total, place in zip(sums, places[2:] + places[:2], strict=True):
                old = load_vector(builder, to_here, place, _NUMBERS, 4)
                store_vector(builder, builder.fadd(old, builder.load(total)), to_here, place, 4)


def _lane_weights(builder, chunks, place, order):
    """The weights of a slot's lanes, out of two chunks."""
    used = builder.icmp_signed("<", order, ir.Constant(_INTEGERS, [0] * ROW))
    picks = builder.lshr(order, ir.Constant(_INTEGERS, [_EDGE_BITS] * ROW))
    both = [load_vector(builder, chunks, _plus(builder, place, 4 * ROW * k), _NUMBERS, 4) for k in (0, 1)]
    return builder.select(used, _reordering(builder, True)(picks, *both), ir.Constant(_NUMBERS, [0.0] * ROW))


@intrinsic
def prepare_rows(typing, slots, graph, left, first, last, table, width, node, plain, guess, residual):
    """What the solution of one pair of graphs begins with; returns ``u' V f`` and ``u'`` times the first guess for f.

    ``first`` to ``last`` are the nodes of the first graph among those of ``left``; ``table`` has similarities by kind,
    ``width`` in a row. ``node`` receives V, ``plain`` V f and V u. First guesses x multiply these by one more than the product
    of the features of both nodes; ``residual`` receives what f and u then lack before W is applied, ``f - V^-1 x``.
    """
    rest = slots, graph, left, first, last, table, width, node, plain, guess, residual
    signature = types.UniTuple(types.float64, 2)(*rest)

    def codegen(context, builder, signature, arguments):
        kinds = signature.args
        table, node, plain, guess, residual = (
            array_data(context, builder, kinds[k], arguments[k]) for k in (5, 7, 8, 9, 10)
        )
        slots, left = (_members(context, builder, kinds[k], arguments[k]) for k in (0, 2))
        graph, first, last, width = (arguments[k] for k in (1, 3, 4, 6))
        first_row, last_row = _range(builder, slots.row_start, graph)
        rows = builder.sub(last_row, first_row)
        double = ir.VectorType(ir.DoubleType(), ROW)
        totals = [cgutils.alloca_once_value(builder, ir.Constant(double, [0.0] * ROW)) for _ in range(2)]
        gather = _gathering(builder)
        zero = ir.Constant(_NUMBERS, [0.0] * ROW)
        one = ir.Constant(_NUMBERS, [1.0] * ROW)
        with _loop(builder, first, last) as number:
            root, ratio, begin = (
                splat(builder, _item(builder, values, number), ROW)
                for values in (left.node_root, left.node_ratio, left.node_begin)
            )
            similarities = builder.gep(table, [builder.mul(_item(builder, left.node_kind, number), width)])
            mine = _times(builder, number, 2 * FEATURES)
            here = builder.mul(builder.sub(number, first), rows)
            with _loop(builder, ir.Constant(_WORD, 0), rows) as block:
                row = builder.add(first_row, block)
                there = _times(builder, row, ROW)
                similar = gather(similarities, load_vector(builder, slots.kinds, there, _INTEGERS, 4))
                start = builder.fmul(load_vector(builder, slots.begins, there, _NUMBERS, 4), begin)
                for solution, factor in enumerate((root, ratio)):
                    longer = zero
                    for feature in range(FEATURES):
                        own = _item(builder, slots.features, _plus(builder, mine, solution * FEATURES + feature))
                        place = _times(builder, row, 2 * FEATURES * ROW)
                        place = _plus(builder, place, (solution * FEATURES + feature) * ROW)
                        others = load_vector(builder, slots.row_features, place, _NUMBERS, 4)
                        product = builder.fmul(splat(builder, own, ROW), others, flags=CONTRACT)
                        longer = builder.fadd(longer, product, flags=CONTRACT)
                    place = _plus(builder, _times(builder, builder.add(here, block), 2 * ROW), solution * ROW)
                    other = _plus(builder, builder.add(there, there), solution * ROW)
                    right = builder.fmul(load_vector(builder, slots.roots, other, _NUMBERS, 4), factor)
                    shortest = builder.fmul(similar, right)
                    store_vector(builder, similar, node, place, 4)
                    store_vector(builder, shortest, plain, place, 4)
                    more = builder.fmul(shortest, longer, flags=CONTRACT)
                    store_vector(builder, builder.fadd(shortest, more, flags=CONTRACT), guess, place, 4)
                    store_vector(builder, builder.fsub(zero, builder.fmul(right, longer)), residual, place, 4)
                    if solution == 0:
                        wide = [builder.fpext(values, double) for values in (similar, start, builder.fadd(one, longer))]
                        product = builder.fmul(wide[0], wide[1])
                        for total, value in zip(totals, (product, builder.fmul(product, wide[2])), strict=True):
                            builder.store(builder.fadd(builder.load(total), value), total)
        sums = [sum_of_lanes(builder, builder.load(total), range(ROW)) for total in totals]
        return context.make_tuple(builder, signature.return_type, sums)

    return signature, codegen


@intrinsic
def node_slope(typing, slots, graph, left, first, last, table, width, solution):
    """``sum x z`` times a table by kinds of nodes, summed in double: see :func:`prepare_rows`."""
    signature = types.float64(slots, graph, left, first, last, table, width, solution)

    def codegen(context, builder, signature, arguments):
        kinds = signature.args
        table, solution = (array_data(context, builder, kinds[k], arguments[k]) for k in (5, 7))
        slots, left = (_members(context, builder, kinds[k], arguments[k]) for k in (0, 2))
        graph, first, last, width = (arguments[k] for k in (1, 3, 4, 6))
        first_row, last_row = _range(builder, slots.row_start, graph)
        rows = builder.sub(last_row, first_row)
        double = ir.VectorType(ir.DoubleType(), ROW)
        total = cgutils.alloca_once_value(builder, ir.Constant(double, [0.0] * ROW))
        gather = _gathering(builder)
        with _loop(builder, first, last) as number:
            slopes = builder.gep(table, [builder.mul(_item(builder, left.node_kind, number), width)])
            here = builder.mul(builder.sub(number, first), rows)
            with _loop(builder, ir.Constant(_WORD, 0), rows) as block:
                there = _times(builder, builder.add(first_row, block), ROW)
                slope = gather(slopes, load_vector(builder, slots.kinds, there, _INTEGERS, 4))
                place = _times(builder, builder.add(here, block), 2 * ROW)
                x, z = (load_vector(builder, solution, _plus(builder, place, k * ROW), _NUMBERS, 4) for k in (0, 1))
                product = builder.fmul(builder.fpext(x, double), builder.fpext(z, double))
                product = builder.fmul(product, builder.fpext(slope, double))
                builder.store(builder.fadd(builder.load(total), product), total)
        return sum_of_lanes(builder, builder.load(total), range(ROW))

    return signature, codegen


def _gathering(builder):
    """The instruction that looks sixteen numbers up in a table."""
    mask, byte = ir.VectorType(ir.IntType(1), ROW), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(_NUMBERS, [_NUMBERS, byte, _INTEGERS, mask, _INTEGER])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.mask.gather.dps.512")
    nothing, everywhere = ir.Constant(_NUMBERS, [0.0] * ROW), ir.Constant(mask, [1] * ROW)
    return lambda table, places: builder.call(
        function, [nothing, builder.bitcast(table, byte), places, everywhere, ir.Constant(_INTEGER, 4)]
    )
