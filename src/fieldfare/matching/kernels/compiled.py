"""The compilation of kernels, and the few machine instructions that numba does not name.

Rules for numba: a single buffer argument instead of twenty arrays, no helper that takes arrays inside hot loops, no mix
of signed and unsigned integers. A change here, or to a kernel that others call, does not make cached code stale: delete
`__pycache__`.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import populate_array

u64, i64 = nb.uint64, nb.int64


def jit(function: Any) -> Any:
    """Compile without the GIL, and cache the result on disk where possible."""
    try:
        return nb.njit(cache=True, nogil=True, boundscheck=False)(function)
    except RuntimeError:  # no directory for the cache can be written
        return nb.njit(cache=False, nogil=True, boundscheck=False)(function)


@intrinsic
def trailing_zeros(_context: Any, _word: Any) -> Any:
    """Return the place of the lowest set bit."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return i64(u64), generate


_V8 = ir.VectorType(ir.IntType(64), 8)


class _Row(nb.types.Type):
    """A row of 512 bits in a register."""


_row = _Row("row")


@register_model(_Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _V8)


def _at(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    source = context.make_array(kind)(context, builder, array)
    return builder.load(builder.bitcast(builder.gep(source.data, [offset]), _V8.as_pointer()), align=8)


@intrinsic
def load_row(_context: Any, bits: Any, _offset: Any) -> Any:
    """Load bits[offset:offset+8] as a row."""
    return _row(bits, i64), lambda context, builder, signature, args: _at(context, builder, signature.args[0], *args)


@intrinsic
def and_row(_context: Any, _acc: Any, bits: Any, _offset: Any) -> Any:
    """Return the AND of a row and bits[offset:offset+8]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.and_(args[0], _at(context, builder, signature.args[1], *args[1:]))

    return _row(_row, bits, i64), generate


@intrinsic
def or_row(_context: Any, _acc: Any, bits: Any, _offset: Any) -> Any:
    """Return the OR of a row and bits[offset:offset+8]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.or_(args[0], _at(context, builder, signature.args[1], *args[1:]))

    return _row(_row, bits, i64), generate


@intrinsic
def clear_row(_context: Any, _acc: Any, bits: Any, _offset: Any) -> Any:
    """Return a row without the bits in bits[offset:offset+8]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.and_(args[0], builder.not_(_at(context, builder, signature.args[1], *args[1:])))

    return _row(_row, bits, i64), generate


@intrinsic
def both_rows(_context: Any, _one: Any, _other: Any) -> Any:
    """Return the AND of two rows."""
    return _row(_row, _row), lambda context, builder, signature, args: builder.and_(*args)


@intrinsic
def is_empty(_context: Any, _acc: Any) -> Any:
    """Tell whether a row has no bit."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flags = builder.icmp_unsigned("!=", args[0], ir.Constant(_V8, None))
        return builder.icmp_unsigned("==", builder.bitcast(flags, ir.IntType(8)), ir.Constant(ir.IntType(8), 0))

    return nb.boolean(_row), generate


@intrinsic
def lane_of(_context: Any, _acc: Any, _lane: Any) -> Any:
    """Return a 64-bit word of a row."""
    return u64(_row, i64), lambda context, builder, signature, args: builder.extract_element(args[0], args[1])


@intrinsic
def seen_from(_context: Any, words: Any, _offset: Any, kind: Any) -> Any:
    """Return a bare view of words[offset:] as another type: without checks, reference counts and negative indices.

    The view claims length 0, so that index -1 would mean -1 + 0: LLVM then drops the code for negative indices.
    """
    view = nb.types.Array(kind.instance_type, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, args[0])
        made = context.make_array(view)(context, builder)
        size = context.get_constant(nb.intp, kind.instance_type.bitwidth // 8)
        zero = context.get_constant(nb.intp, 0)
        start = builder.bitcast(builder.gep(source.data, [args[1]]), made.data.type)
        populate_array(made, data=start, shape=[zero], strides=[size], itemsize=size, meminfo=None, parent=None)
        return made._getvalue()

    return view(words, i64, kind), generate


@intrinsic
def prefetch(_context: Any, array: Any, _offset: Any) -> Any:
    """Request the cache line of array[offset], without waiting."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, args[0])
        at = builder.bitcast(builder.gep(source.data, [args[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        name = "llvm.prefetch.p0"
        call = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), [at.type, i32, i32, i32]), name
        )
        builder.call(call, [at, ir.Constant(i32, 0), ir.Constant(i32, 3), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return nb.none(array, i64), generate
