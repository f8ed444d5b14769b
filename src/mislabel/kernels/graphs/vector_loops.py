"""Short-vector operations that the compiler does not find by itself: numba intrinsics in plain LLVM, for any processor.

First what such intrinsics are made of, then those for pairs of edges taken one by one. Their solutions are interleaved
(:mod:`solution_loops`), so that one load brings both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

#: Pairs of edges handled at once: most windows are no longer than this.
CHUNK = 8


def _half_power(t: Any) -> Any:
    """2^-f at f = t / 2."""
    return 2.0 ** (-0.5 * t)


#: Coefficients of polynomials for 2^-f, |f| <= 1/2, whose error is below the rounding.
_SERIES = {
    name: np.polynomial.chebyshev.cheb2poly(np.polynomial.chebyshev.chebinterpolate(_half_power, degree))
    * 2.0 ** np.arange(degree + 1)
    for name, degree in (("float32", 6), ("float64", 12))
}
#: Gaussians are not made smaller than 2^-this: nothing beside rounding errors, in double precision too.
_LARGEST_EXPONENT = 60.0
CONTRACT = ("contract",)


def compiles_for(feature: str) -> bool:
    """Whether loops are compiled for a processor that has this feature: the one at hand, unless numba was told of another."""
    features = config.CPU_FEATURES if config.CPU_FEATURES is not None else get_host_cpu_features()
    return f"+{feature}" in features.split(",")


#: Whether the processor can move some lanes of a vector to its front: in one instruction, or by a table of permutations.
_COMPRESSES, _PERMUTES = compiles_for("avx512vl"), compiles_for("avx2")
CAN_PACK = _COMPRESSES or _PERMUTES


def array_data(context, builder, kind, array):
    """Pointer to the numbers of an array."""
    return context.make_array(kind)(context, builder, array).data


def arrays_data(context, builder, signature, arguments, count):
    """Pointers to the first ``count`` arguments, which are arrays."""
    return [array_data(context, builder, *pair) for pair in zip(signature.args[:count], arguments[:count], strict=True)]


def load_vector(builder, data, offset, vector, bytes_):
    """A vector of the given type from anywhere in an array; ``bytes_`` is what its addresses are multiples of."""
    pointer = builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())
    return builder.load(pointer, align=bytes_)


def store_vector(builder, value, data, offset, bytes_):
    """Put a vector anywhere into an array."""
    pointer = builder.bitcast(builder.gep(data, [offset]), value.type.as_pointer())
    builder.store(value, pointer, align=bytes_)


def splat(builder, scalar, lanes):
    """A vector of the same number everywhere."""
    vector = ir.VectorType(scalar.type, lanes)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(single, single, mask)


@intrinsic
def couple(typing, target, source, weight, ii, jj, ij, ji):
    """Add ``weight`` times source[jj], [ii], [ji], [ij] to target[ii], [jj], [ij], [ji]; two lanes each.

    The offsets count bytes. Later updates see earlier ones, so offsets may coincide.
    """
    signature = types.void(target, source, weight, ii, jj, ij, ji)

    def codegen(context, builder, signature, arguments):
        target_kind, source_kind = signature.args[:2]
        target, source, weight, *offsets = arguments
        target, source = (
            array_data(context, builder, target_kind, target),
            array_data(context, builder, source_kind, source),
        )
        vector = ir.VectorType(weight.type, 2)
        bytes_ = context.get_abi_sizeof(weight.type)
        weights = splat(builder, weight, 2)
        byte = ir.IntType(8).as_pointer()
        target, source = builder.bitcast(target, byte), builder.bitcast(source, byte)
        ii, jj, ij, ji = (builder.zext(offset, ir.IntType(64)) for offset in offsets)
        for to, at in ((ii, jj), (jj, ii), (ij, ji), (ji, ij)):
            moved = builder.fmul(weights, load_vector(builder, source, at, vector, bytes_), flags=CONTRACT)
            total = builder.fadd(load_vector(builder, target, to, vector, bytes_), moved, flags=CONTRACT)
            store_vector(builder, total, target, to, bytes_)
        return context.get_dummy_value()

    return signature, codegen


def lane_numbers(numbers):
    """Which lanes a shuffle picks."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))


def sum_of_lanes(builder, vector, lanes):
    """Sum of some lanes, whose number is a power of two, by halves."""
    while len(lanes) > 1:
        half = len(lanes) // 2
        parts = [builder.shuffle_vector(vector, vector, lane_numbers(part)) for part in (lanes[:half], lanes[half:])]
        vector, lanes = builder.fadd(*parts), range(half)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), lanes[0]))


def gaussian(builder, name, steps, unit):
    """``2^-(unit steps)^2`` of a vector of whole numbers of steps, and the exponents."""
    lanes = steps.type.count
    vector = ir.VectorType(unit.type, lanes)

    def constant(value):
        return ir.Constant(vector, [float(value)] * lanes)

    difference = builder.fmul(builder.sitofp(steps, vector), splat(builder, unit, lanes))
    exponent = builder.fmul(difference, difference)
    # Beyond the limit the result is as good as zero, and must not become so small that the processor needs its slow path
    # for it: entries past the window often are beyond.
    limit = constant(_LARGEST_EXPONENT)
    exponent = builder.select(builder.fcmp_ordered("<", exponent, limit), exponent, limit)
    # 2^-x = 2^-k 2^-f with k the nearest integer, taken off the exponent of 2^-f.
    whole = builder.fptosi(builder.fadd(exponent, constant(0.5)), ir.VectorType(ir.IntType(32), lanes))
    fraction = builder.fsub(exponent, builder.sitofp(whole, vector))
    digits, bits = (23, ir.IntType(32)) if name == "float32" else (52, ir.IntType(64))
    bits = ir.VectorType(bits, lanes)
    if name == "float64":
        whole = builder.sext(whole, bits)
    highest, *lower = _SERIES[name][::-1]
    series = constant(highest)
    for coefficient in lower:
        series = builder.fadd(builder.fmul(series, fraction, flags=CONTRACT), constant(coefficient), flags=CONTRACT)
    power = builder.shl(whole, ir.Constant(bits, [digits] * lanes))
    return builder.bitcast(builder.sub(builder.bitcast(series, bits), power), vector), exponent


def _gaussian_chunk(context, builder, kinds, arguments):
    """``weight * weights[first:] * 2^-(unit (length - lengths[first:]))^2`` of one chunk as a vector, and the exponents."""
    lengths, weights, first, length, weight, unit = arguments
    lengths, weights = array_data(context, builder, kinds[0], lengths), array_data(context, builder, kinds[1], weights)
    others = load_vector(
        builder, lengths, first, ir.VectorType(length.type, CHUNK), context.get_abi_sizeof(length.type)
    )
    similar, exponent = gaussian(builder, str(kinds[1].dtype), builder.sub(splat(builder, length, CHUNK), others), unit)
    other = load_vector(builder, weights, first, similar.type, context.get_abi_sizeof(weight.type))
    factor = builder.fmul(splat(builder, weight, CHUNK), other)
    return builder.fmul(similar, factor), exponent


@intrinsic
def gaussian_weights(typing, out, at, lengths, weights, first, length, weight, unit):
    """``out[at:] = weight * weights[first:] * 2^-(unit (length - lengths[first:]))^2`` for one chunk of entries.

    Lengths are integers: differences of rounded numbers would lose the digits that matter.
    """
    signature = types.void(out, at, lengths, weights, first, length, weight, unit)

    def codegen(context, builder, signature, arguments):
        found, _ = _gaussian_chunk(context, builder, signature.args[2:], arguments[2:])
        out = array_data(context, builder, signature.args[0], arguments[0])
        store_vector(builder, found, out, arguments[1], context.get_abi_sizeof(arguments[6].type))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def split_weights(
    typing,
    near,
    near_ends,
    at,
    tail,
    tail_ends,
    behind,
    lengths,
    weights,
    first,
    length,
    weight,
    unit,
    ends,
    row,
    count,
    log_weights,
    above,
):
    """:func:`gaussian_weights` of the first ``count`` entries of a chunk, packed into two lists with their places.

    Entries whose exponent is below ``log_weights[first:] + above`` go to ``near[at:]``, the others to ``tail[behind:]``;
    ``ends[first:] + row`` goes along. Returns how many there are of each. Only where the processor can pack
    (:data:`CAN_PACK`).
    """
    lists = (near, near_ends, at, tail, tail_ends, behind)
    entries = (lengths, weights, first, length, weight, unit, ends, row, count, log_weights, above)
    signature = types.UniTuple(types.uint64, 2)(*lists, *entries)

    def codegen(context, builder, signature, arguments):
        kinds = signature.args
        found, exponent = _gaussian_chunk(context, builder, kinds[6:], arguments[6:12])
        first = arguments[8]
        row, count, log_weights, above = arguments[13:]
        word = ir.IntType(64)
        words = ir.VectorType(word, CHUNK)
        table = array_data(context, builder, kinds[12], arguments[12])
        places = builder.add(load_vector(builder, table, first, words, 8), splat(builder, row, CHUNK))
        integer = ir.IntType(32)
        numbers = ir.Constant(ir.VectorType(integer, CHUNK), list(range(CHUNK)))
        inside = builder.icmp_signed("<", numbers, splat(builder, builder.trunc(count, integer), CHUNK))
        logs = array_data(context, builder, kinds[15], log_weights)
        limits = load_vector(builder, logs, first, found.type, context.get_abi_sizeof(above.type))
        close = builder.fcmp_ordered("<", exponent, builder.fadd(limits, splat(builder, above, CHUNK)))
        masks = builder.and_(inside, close), builder.and_(inside, builder.not_(close))
        counts = []
        for number, mask in enumerate(masks):
            values, ends, at = arguments[3 * number : 3 * number + 3]
            bits = builder.bitcast(mask, ir.IntType(CHUNK))
            for vector, kind, array in ((found, kinds[3 * number], values), (places, kinds[3 * number + 1], ends)):
                _store_packed(builder, vector, bits, array_data(context, builder, kind, array), at)
            counts.append(builder.zext(builder.ctpop(bits), word))
        return context.make_tuple(builder, signature.return_type, counts)

    return signature, codegen


def _store_packed(builder, vector, bits, data, at):
    """Store the lanes whose bit is set, moved to the front.

    Writes as many as the vector has: what is past the last one picked is overwritten by the next ones.
    """
    element, lanes = str(vector.type.element), vector.type.count
    bytes_ = 4 if element == "float" else 8
    if _COMPRESSES:
        name = {"float": "f32", "double": "f64", "i64": "i64"}[element]
        mask = builder.bitcast(bits, ir.VectorType(ir.IntType(1), lanes))
        kind = ir.FunctionType(vector.type, [vector.type, vector.type, mask.type])
        pack = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx512.mask.compress.v{lanes}{name}")
        packed = builder.call(pack, [vector, ir.Constant(vector.type, ir.Undefined), mask])
        store_vector(builder, packed, data, at, bytes_)
    elif bytes_ * lanes > 32:  # more than one register: the second half behind what the first one has
        half = lanes // 2
        for first in (0, half):
            picks = ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(first, first + half)))
            some = builder.and_(
                builder.lshr(bits, ir.Constant(bits.type, first)), ir.Constant(bits.type, (1 << half) - 1)
            )
            _store_packed(builder, builder.shuffle_vector(vector, vector, picks), some, data, at)
            at = builder.add(at, builder.zext(builder.ctpop(some), at.type))
    elif _PERMUTES:
        registers = ir.VectorType(ir.IntType(32), 8)
        kind = ir.FunctionType(registers, [registers, registers])
        permute = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.permd")
        order = _packing_order(builder, bits, lanes, registers)
        packed = builder.call(permute, [builder.bitcast(vector, registers), order])
        store_vector(builder, builder.bitcast(packed, vector.type), data, at, bytes_)


def _packing_order(builder, bits, lanes, registers):
    """The permutation of eight pieces of 32 bits that moves the lanes picked to the front, from a table of bytes."""
    width = registers.count // lanes
    row = ir.VectorType(ir.IntType(8), registers.count)
    name = f".packing_order_{lanes}"
    table = builder.module.globals.get(name)
    if table is None:
        rows = []
        for picked in range(1 << lanes):
            order = sorted(range(lanes), key=lambda lane: not picked >> lane & 1)
            rows.append(ir.Constant(row, [lane * width + piece for lane in order for piece in range(width)]))
        table = cgutils.global_constant(builder.module, name, ir.Constant(ir.ArrayType(row, len(rows)), rows))
    word = ir.IntType(64)
    found = builder.load(builder.gep(table, [ir.Constant(word, 0), builder.zext(bits, word)]))
    return builder.zext(found, registers)


@intrinsic
def tail_form(typing, weights, ends, source, total):
    """``sum w (x_ii z_jj + x_jj z_ii + x_ij z_ji + x_ji z_ij)`` over a list of pairs of edges, x and z side by side."""
    signature = types.float64(weights, ends, source, total)

    def codegen(context, builder, signature, arguments):
        weights, ends, source = arrays_data(context, builder, signature, arguments, 3)
        scalar = weights.type.pointee
        bytes_ = context.get_abi_sizeof(scalar)
        vector = ir.VectorType(scalar, 2)
        source = builder.bitcast(source, ir.IntType(8).as_pointer())
        swap = ir.Constant(ir.VectorType(ir.IntType(32), 2), [1, 0])
        sums = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0, 0.0]))
        with cgutils.for_range(builder, arguments[3]) as loop:
            places = builder.load(builder.gep(ends, [loop.index]))
            at = []
            for shift in (0, 16, 32, 48):
                moved = builder.lshr(places, ir.Constant(places.type, shift))
                at.append(builder.and_(moved, ir.Constant(places.type, 0xFFFF)))
            ii, jj, ij, ji = (load_vector(builder, source, place, vector, bytes_) for place in at)
            form = builder.fmul(ii, builder.shuffle_vector(jj, jj, swap), flags=CONTRACT)
            crossed = builder.fmul(ij, builder.shuffle_vector(ji, ji, swap), flags=CONTRACT)
            form = builder.fadd(form, crossed, flags=CONTRACT)
            weight = splat(builder, builder.load(builder.gep(weights, [loop.index])), 2)
            added = builder.fmul(weight, form, flags=CONTRACT)
            builder.store(builder.fadd(builder.load(sums), added, flags=CONTRACT), sums)
        value = builder.load(sums)
        one, two = (builder.extract_element(value, ir.Constant(ir.IntType(32), k)) for k in (0, 1))
        total = builder.fadd(one, two)
        return total if str(scalar) == "double" else builder.fpext(total, ir.DoubleType())

    return signature, codegen


@intrinsic
def shifted(typing, out, at, table, first, shift):
    """``out[at:] = table[first:] + shift`` for one chunk of entries."""
    signature = types.void(out, at, table, first, shift)

    def codegen(context, builder, signature, arguments):
        out, at, table, first, shift = arguments
        kinds = signature.args
        out, table = array_data(context, builder, kinds[0], out), array_data(context, builder, kinds[2], table)
        bytes_ = context.get_abi_sizeof(shift.type)
        lanes = 32 // bytes_  # wider vectors make processors lower their clock
        for offset in range(0, CHUNK, lanes):
            here, there = (builder.add(base, ir.Constant(base.type, offset)) for base in (first, at))
            loaded = load_vector(builder, table, here, ir.VectorType(shift.type, lanes), bytes_)
            store_vector(builder, builder.add(loaded, splat(builder, shift, lanes)), out, there, bytes_)
        return context.get_dummy_value()

    return signature, codegen
