"""Short-vector operations that the compiler does not find by itself: numba intrinsics in plain LLVM, for any processor.

Solutions are stored two by two (right-hand sides side by side), so that one load brings both.
"""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Numbers handled at once by the loops over solutions: 32 bytes.
LANES = {"float32": 8, "float64": 4}
#: How many numbers these loops may reach beyond the end.
PAD = max(LANES.values())
#: Pairs of edges handled at once: most windows are no longer than this.
CHUNK = 8
#: Coefficients of polynomials for 2^-f, |f| <= 1/2, whose error is below the rounding.
_SERIES = {
    name: np.polynomial.chebyshev.cheb2poly(
        np.polynomial.chebyshev.chebinterpolate(lambda t: 2.0 ** (-0.5 * t), degree)
    )
    * 2.0 ** np.arange(degree + 1)
    for name, degree in (("float32", 6), ("float64", 12))
}
#: Gaussians are not made smaller than 2^-this: nothing beside rounding errors, in double precision too.
_LARGEST_EXPONENT = 60.0
_CONTRACT = ("contract",)
_FEATURES = llvm.get_host_cpu_features()
#: Whether the processor can move some lanes of a vector to its front: in one instruction, or by a table of permutations.
_COMPRESSES, _PERMUTES = (bool(_FEATURES.get(name, False)) for name in ("avx512vl", "avx2"))
CAN_PACK = _COMPRESSES or _PERMUTES


def _data(context, builder, kind, array):
    return context.make_array(kind)(context, builder, array).data


def _all_data(context, builder, signature, arguments, count):
    """Pointers to the first ``count`` arguments, which are arrays."""
    return [_data(context, builder, *pair) for pair in zip(signature.args[:count], arguments[:count], strict=True)]


def _load(builder, data, offset, vector, bytes_):
    pointer = builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())
    return builder.load(pointer, align=bytes_)


def _store(builder, value, data, offset, bytes_):
    pointer = builder.bitcast(builder.gep(data, [offset]), value.type.as_pointer())
    builder.store(value, pointer, align=bytes_)


def _splat(builder, scalar, lanes):
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
        target, source = _data(context, builder, target_kind, target), _data(context, builder, source_kind, source)
        vector = ir.VectorType(weight.type, 2)
        bytes_ = context.get_abi_sizeof(weight.type)
        weights = _splat(builder, weight, 2)
        byte = ir.IntType(8).as_pointer()
        target, source = builder.bitcast(target, byte), builder.bitcast(source, byte)
        ii, jj, ij, ji = (builder.zext(offset, ir.IntType(64)) for offset in offsets)
        for to, at in ((ii, jj), (jj, ii), (ij, ji), (ji, ij)):
            moved = builder.fmul(weights, _load(builder, source, at, vector, bytes_), flags=_CONTRACT)
            total = builder.fadd(_load(builder, target, to, vector, bytes_), moved, flags=_CONTRACT)
            _store(builder, total, target, to, bytes_)
        return context.get_dummy_value()

    return signature, codegen


def _gaussian_chunk(context, builder, kinds, arguments):
    """``weight * weights[first:] * 2^-(unit (length - lengths[first:]))^2`` of one chunk as a vector, and the exponents."""
    lengths, weights, first, length, weight, unit = arguments
    lengths, weights = _data(context, builder, kinds[0], lengths), _data(context, builder, kinds[1], weights)
    name = str(kinds[1].dtype)
    lanes, scalar = CHUNK, weight.type
    vector = ir.VectorType(scalar, lanes)

    def constant(value):
        return ir.Constant(vector, [float(value)] * lanes)

    whole_vector = ir.VectorType(length.type, lanes)
    others = _load(builder, lengths, first, whole_vector, context.get_abi_sizeof(length.type))
    steps = builder.sitofp(builder.sub(_splat(builder, length, lanes), others), vector)
    difference = builder.fmul(steps, _splat(builder, unit, lanes))
    exponent = builder.fmul(difference, difference)
    # 2^-x = 2^-k 2^-f with k the nearest integer. Beyond the limit the result is as good as zero, and must not become
    # so small that the processor needs its slow path for it: entries past the window often are beyond.
    limit = constant(_LARGEST_EXPONENT)
    exponent = builder.select(builder.fcmp_ordered("<", exponent, limit), exponent, limit)
    integers = ir.VectorType(ir.IntType(32), lanes)
    whole = builder.fptosi(builder.fadd(exponent, constant(0.5)), integers)
    fraction = builder.fsub(exponent, builder.sitofp(whole, vector))
    highest, *lower = _SERIES[name][::-1]
    series = constant(highest)
    for coefficient in lower:
        product = builder.fmul(series, fraction, flags=_CONTRACT)
        series = builder.fadd(product, constant(coefficient), flags=_CONTRACT)
    if name == "float32":
        bias, shift, bits = 127, 23, integers
    else:
        bias, shift, bits = 1023, 52, ir.VectorType(ir.IntType(64), lanes)
        whole = builder.sext(whole, bits)
    biased = builder.sub(ir.Constant(bits, [bias] * lanes), whole)
    power = builder.bitcast(builder.shl(biased, ir.Constant(bits, [shift] * lanes)), vector)
    other = _load(builder, weights, first, vector, context.get_abi_sizeof(scalar))
    factor = builder.fmul(_splat(builder, weight, lanes), other)
    return builder.fmul(builder.fmul(series, power), factor), exponent


@intrinsic
def gaussian_weights(typing, out, at, lengths, weights, first, length, weight, unit):
    """``out[at:] = weight * weights[first:] * 2^-(unit (length - lengths[first:]))^2`` for one chunk of entries.

    Lengths are integers: differences of rounded numbers would lose the digits that matter.
    """
    signature = types.void(out, at, lengths, weights, first, length, weight, unit)

    def codegen(context, builder, signature, arguments):
        found, _ = _gaussian_chunk(context, builder, signature.args[2:], arguments[2:])
        out = _data(context, builder, signature.args[0], arguments[0])
        _store(builder, found, out, arguments[1], context.get_abi_sizeof(arguments[6].type))
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
    arguments = (near, near_ends, at, tail, tail_ends, behind)
    arguments += (lengths, weights, first, length, weight, unit, ends, row, count, log_weights, above)
    signature = types.UniTuple(types.uint64, 2)(*arguments)

    def codegen(context, builder, signature, arguments):
        kinds = signature.args
        found, exponent = _gaussian_chunk(context, builder, kinds[6:], arguments[6:12])
        first, row, count, log_weights, above = arguments[8], *arguments[13:]
        word = ir.IntType(64)
        words = ir.VectorType(word, CHUNK)
        table = _data(context, builder, kinds[12], arguments[12])
        places = builder.add(_load(builder, table, first, words, 8), _splat(builder, row, CHUNK))
        integer = ir.IntType(32)
        numbers = ir.Constant(ir.VectorType(integer, CHUNK), list(range(CHUNK)))
        inside = builder.icmp_signed("<", numbers, _splat(builder, builder.trunc(count, integer), CHUNK))
        logs = _data(context, builder, kinds[15], log_weights)
        limits = _load(builder, logs, first, found.type, context.get_abi_sizeof(above.type))
        close = builder.fcmp_ordered("<", exponent, builder.fadd(limits, _splat(builder, above, CHUNK)))
        masks = builder.and_(inside, close), builder.and_(inside, builder.not_(close))
        counts = []
        for number, mask in enumerate(masks):
            values, ends, at = arguments[3 * number : 3 * number + 3]
            bits = builder.bitcast(mask, ir.IntType(CHUNK))
            for vector, kind, array in ((found, kinds[3 * number], values), (places, kinds[3 * number + 1], ends)):
                _store_packed(builder, vector, bits, _data(context, builder, kind, array), at)
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
        _store(builder, packed, data, at, bytes_)
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
        _store(builder, builder.bitcast(packed, vector.type), data, at, bytes_)


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
        weights, ends, source = _all_data(context, builder, signature, arguments, 3)
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
            ii, jj, ij, ji = (_load(builder, source, place, vector, bytes_) for place in at)
            form = builder.fmul(ii, builder.shuffle_vector(jj, jj, swap), flags=_CONTRACT)
            crossed = builder.fmul(ij, builder.shuffle_vector(ji, ji, swap), flags=_CONTRACT)
            form = builder.fadd(form, crossed, flags=_CONTRACT)
            weight = _splat(builder, builder.load(builder.gep(weights, [loop.index])), 2)
            added = builder.fmul(weight, form, flags=_CONTRACT)
            builder.store(builder.fadd(builder.load(sums), added, flags=_CONTRACT), sums)
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
        out, table = _data(context, builder, kinds[0], out), _data(context, builder, kinds[2], table)
        bytes_ = context.get_abi_sizeof(shift.type)
        lanes = 32 // bytes_  # wider vectors make processors lower their clock
        for offset in range(0, CHUNK, lanes):
            here, there = (builder.add(base, ir.Constant(base.type, offset)) for base in (first, at))
            loaded = _load(builder, table, here, ir.VectorType(shift.type, lanes), bytes_)
            _store(builder, builder.add(loaded, _splat(builder, shift, lanes)), out, there, bytes_)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scaled_row(typing, target, at, row, first, second, count):
    """``target[at:] = row`` times ``first`` and ``second`` in turn, for ``count`` numbers (and up to PAD more)."""
    signature = types.void(target, at, row, first, second, count)

    def codegen(context, builder, signature, arguments):
        target, at, row, first, second, count = arguments
        kinds = signature.args
        name = str(kinds[0].dtype)
        target, row = _data(context, builder, kinds[0], target), _data(context, builder, kinds[2], row)
        bytes_ = context.get_abi_sizeof(first.type)
        factors = _alternating(builder, first, second, LANES[name])

        def body(offset, vector):
            product = builder.fmul(factors, _load(builder, row, offset, vector, bytes_))
            _store(builder, product, target, builder.add(at, offset), bytes_)
            return []

        _sweep_vectors(context, builder, count, name, body, 0)
        return context.get_dummy_value()

    return signature, codegen


def _sweep_vectors(context, builder, count, name, body, n_sums, sum_type=None):
    """Run ``body(offset, vector)`` for every vector's worth of ``count`` numbers; returns the sums by solution."""
    lanes = LANES[name]
    scalar = ir.FloatType() if name == "float32" else ir.DoubleType()
    vector = ir.VectorType(scalar, lanes)
    zero = ir.Constant(sum_type or vector, [0.0] * lanes)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(n_sums)]
    step = ir.Constant(count.type, lanes)
    rounds = builder.udiv(builder.add(count, ir.Constant(count.type, lanes - 1)), step)
    with cgutils.for_range(builder, rounds) as loop:
        added = body(builder.mul(loop.index, step), vector)
        for total, value in zip(sums, added, strict=True):
            builder.store(builder.fadd(builder.load(total), value, flags=_CONTRACT), total)
    results = []
    for total in sums:
        value = builder.load(total)
        for solution in (0, 1):
            lanes_of = [
                builder.extract_element(value, ir.Constant(ir.IntType(32), k)) for k in range(solution, lanes, 2)
            ]
            result = lanes_of[0]
            for lane in lanes_of[1:]:
                result = builder.fadd(result, lane)
            results.append(result)
    return results


def _alternating(builder, first, second, lanes):
    """A vector of two numbers in turn."""
    vector = ir.Constant(ir.VectorType(first.type, lanes), ir.Undefined)
    for k in range(lanes):
        vector = builder.insert_element(vector, second if k % 2 else first, ir.Constant(ir.IntType(32), k))
    return vector


@intrinsic
def turn_search(typing, search, direction, image, residual, node, ratio_f, ratio_u, count):
    """``search = residual + ratio search``, ``direction = node search``, ``image = 0``."""
    signature = types.void(search, direction, image, residual, node, ratio_f, ratio_u, count)

    def codegen(context, builder, signature, arguments):
        name = str(signature.args[0].dtype)
        arrays = _all_data(context, builder, signature, arguments, 5)
        search, direction, image, residual, node = arrays
        bytes_ = context.get_abi_sizeof(arguments[5].type)
        ratios = _alternating(builder, arguments[5], arguments[6], LANES[name])

        def body(offset, vector):
            old = _load(builder, search, offset, vector, bytes_)
            scaled = builder.fmul(ratios, old, flags=_CONTRACT)
            new = builder.fadd(_load(builder, residual, offset, vector, bytes_), scaled, flags=_CONTRACT)
            _store(builder, new, search, offset, bytes_)
            _store(builder, builder.fmul(new, _load(builder, node, offset, vector, bytes_)), direction, offset, bytes_)
            _store(builder, ir.Constant(vector, [0.0] * LANES[name]), image, offset, bytes_)
            return []

        _sweep_vectors(context, builder, arguments[7], name, body, 0)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def curvature(typing, image, search, direction, count):
    """``image = search - image``; returns ``direction' image`` of both solutions."""
    signature = types.UniTuple(image.dtype, 2)(image, search, direction, count)

    def codegen(context, builder, signature, arguments):
        name = str(signature.args[0].dtype)
        arrays = _all_data(context, builder, signature, arguments, 3)
        image, search, direction = arrays
        bytes_ = LANES["float32"] * 4 // LANES[name]

        def body(offset, vector):
            old = _load(builder, image, offset, vector, bytes_)
            new = builder.fsub(_load(builder, search, offset, vector, bytes_), old)
            _store(builder, new, image, offset, bytes_)
            return [builder.fmul(new, _load(builder, direction, offset, vector, bytes_), flags=_CONTRACT)]

        sums = _sweep_vectors(context, builder, arguments[3], name, body, 1)
        return context.make_tuple(builder, signature.return_type, sums)

    return signature, codegen


@intrinsic
def advance(typing, moved, residual, search, image, node, length_f, length_u, count):
    """``moved += length search``, ``residual -= length image``; returns ``residual' V residual`` of both solutions."""
    signature = types.UniTuple(moved.dtype, 2)(moved, residual, search, image, node, length_f, length_u, count)

    def codegen(context, builder, signature, arguments):
        name = str(signature.args[0].dtype)
        arrays = _all_data(context, builder, signature, arguments, 5)
        moved, residual, search, image, node = arrays
        bytes_ = context.get_abi_sizeof(arguments[5].type)
        lengths = _alternating(builder, arguments[5], arguments[6], LANES[name])

        def body(offset, vector):
            way = builder.fmul(lengths, _load(builder, search, offset, vector, bytes_), flags=_CONTRACT)
            far = builder.fadd(_load(builder, moved, offset, vector, bytes_), way, flags=_CONTRACT)
            _store(builder, far, moved, offset, bytes_)
            back = builder.fmul(lengths, _load(builder, image, offset, vector, bytes_), flags=_CONTRACT)
            left = builder.fsub(_load(builder, residual, offset, vector, bytes_), back, flags=_CONTRACT)
            _store(builder, left, residual, offset, bytes_)
            # The square itself may be too small for the format; fused with the sum, this product never is.
            similar = builder.fmul(left, _load(builder, node, offset, vector, bytes_))
            return [builder.fmul(similar, left, flags=_CONTRACT)]

        sums = _sweep_vectors(context, builder, arguments[7], name, body, 1)
        return context.make_tuple(builder, signature.return_type, sums)

    return signature, codegen


@intrinsic
def bilinear(typing, solution, guess, moved, residual, node, count):
    """``sum guess_u (moved_f + residual_f) + V residual_f (moved_u + residual_u)``, summed in double.

    ``solution = guess + V (moved + residual)`` on the way: first guess, moves, and one last correction.
    """
    signature = types.float64(solution, guess, moved, residual, node, count)

    def codegen(context, builder, signature, arguments):
        name = str(signature.args[0].dtype)
        lanes = LANES[name]
        arrays = _all_data(context, builder, signature, arguments, 5)
        solution, guess, moved, residual, node = arrays
        bytes_ = LANES["float32"] * 4 // lanes
        integer = ir.IntType(32)
        swap = ir.Constant(ir.VectorType(integer, lanes), [k ^ 1 for k in range(lanes)])
        blend = ir.Constant(ir.VectorType(integer, lanes), [k if k % 2 == 0 else lanes + k for k in range(lanes)])
        wide = ir.VectorType(ir.DoubleType(), lanes)

        def body(offset, vector):
            left = _load(builder, residual, offset, vector, bytes_)
            reached = builder.fadd(_load(builder, moved, offset, vector, bytes_), left)
            similar = _load(builder, node, offset, vector, bytes_)
            first = _load(builder, guess, offset, vector, bytes_)
            corrected = builder.fadd(builder.fmul(similar, reached, flags=_CONTRACT), first, flags=_CONTRACT)
            _store(builder, corrected, solution, offset, bytes_)
            gained = builder.fmul(left, similar)
            factor = builder.shuffle_vector(gained, first, blend)
            other = builder.shuffle_vector(reached, reached, swap)
            if name == "float32":
                factor, other = builder.fpext(factor, wide), builder.fpext(other, wide)
            return [builder.fmul(factor, other, flags=_CONTRACT)]

        first, second = _sweep_vectors(context, builder, arguments[5], name, body, 1, wide)
        return builder.fadd(first, second)

    return signature, codegen
