"""How kernels are compiled, and the few machine instructions that numba has no name for.

Rules learnt for numba: one buffer argument instead of twenty arrays, no helper that takes arrays inside hot loops,
never mix signed and unsigned integers. A change here, or to a kernel that others call, does not make their cached code
stale: delete `__pycache__`.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba.extending import intrinsic

u64, i64 = nb.uint64, nb.int64


def jit(function: Any) -> Any:
    """Compile without the GIL, and keep the result on disk where that is possible."""
    try:
        return nb.njit(cache=True, nogil=True, boundscheck=False)(function)
    except RuntimeError:  # no directory for the cache can be written
        return nb.njit(cache=False, nogil=True, boundscheck=False)(function)


@intrinsic
def trailing_zeros(_context: Any, _word: Any) -> Any:
    """The place of the lowest bit that is set."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return i64(u64), generate


_V8 = ir.VectorType(ir.IntType(64), 8)


@intrinsic
def and_row(_context: Any, acc: Any, bits: Any, _offset: Any) -> Any:
    """acc[0:8] &= bits[offset:offset+8]; gives the OR of what is left."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left = context.make_array(signature.args[0])(context, builder, args[0])
        right = context.make_array(signature.args[1])(context, builder, args[1])
        to = builder.bitcast(left.data, _V8.as_pointer())
        of = builder.bitcast(builder.gep(right.data, [args[2]]), _V8.as_pointer())
        row = builder.and_(builder.load(to, align=8), builder.load(of, align=8))
        builder.store(row, to, align=8)
        name = "llvm.vector.reduce.or.v8i64"
        reduce = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(ir.IntType(64), [_V8]), name
        )
        return builder.call(reduce, [row])

    return u64(acc, bits, i64), generate


@intrinsic
def prefetch(_context: Any, array: Any, _offset: Any) -> Any:
    """Ask for the cache line of array[offset], without waiting for it."""

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
