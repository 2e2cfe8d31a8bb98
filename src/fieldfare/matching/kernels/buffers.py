"""Keys from the buffers of Arrow columns, without a copy in between."""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba.extending import intrinsic

from fieldfare.matching.kernels.compiled import i64, jit, trailing_zeros, u64
from fieldfare.matching.store.keys import MISSING_KEY, NAN_TAG, NUMBER_TAG, WILD_KEY

_SIGN = 0x7FFFFFFFFFFFFFFF
_INFINITY = 0x7FF0000000000000
_EXACT = 2**53
VALUES, VALID, FIRST_BIT, REAL, COLUMN, TAGS = range(6)
"""the description of a column for `put_numbers`: the addresses of the values and of the validity bits (0: all valid),
the bit of the first row, whether values are floats; the columns for keys and for tags, -1 where there is none"""


def _loaded(size: int) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.IntType(size)
        word = builder.load(builder.inttoptr(args[0], kind.as_pointer()), align=1)
        return builder.zext(word, ir.IntType(64)) if size < 64 else word

    return generate


@intrinsic
def word_at(_context: Any, _address: Any) -> Any:
    """Load the eight bytes at an address."""
    return i64(i64), _loaded(64)


@intrinsic
def half_at(_context: Any, _address: Any) -> Any:
    """Load the four bytes at an address."""
    return i64(i64), _loaded(32)


@intrinsic
def byte_at(_context: Any, _address: Any) -> Any:
    """Load the byte at an address."""
    return i64(i64), _loaded(8)


@intrinsic
def bits_of(_context: Any, _number: Any) -> Any:
    """Return the bits of a float as an integer."""
    return i64(nb.float64), lambda _context, builder, _signature, args: builder.bitcast(args[0], ir.IntType(64))


@jit
def _number_key(bits, real):  # type: ignore[no-untyped-def]
    """Return the key of a number, from the bits of a float or an integer; NaN has the missing key."""
    if real == 0:
        if bits > _EXACT or bits < -_EXACT:
            return i64(WILD_KEY)
        bits = bits_of(nb.float64(bits))
    elif bits & _SIGN > _INFINITY:
        return i64(MISSING_KEY)
    elif bits & _SIGN == 0:
        return i64(0)  # minus zero
    return bits ^ ((bits >> 63) & _SIGN)


@jit
def put_numbers(table, start, keys, blank):  # type: ignore[no-untyped-def]
    """Write the keys of columns of 64-bit numbers, from row `start` on, for all rows of `keys` (columns × rows).

    Unless `blank`, `keys` has the keys of as many rows before, which are replaced by missing keys.
    """
    rows = keys.shape[1]
    for i in range(len(table)):
        values, valid, real = table[i, VALUES], table[i, VALID], table[i, REAL]
        column, tags, first = table[i, COLUMN], table[i, TAGS], table[i, FIRST_BIT] + start
        # Rows are looked at by the word of the bits that say which have a value: many columns are mostly empty.
        for turn in range(1 if blank or valid == 0 else 0, 2):  # clear the old keys, then write
            begin = first if turn else first - rows
            place, end = begin >> 3, (begin + rows + 7) >> 3
            while place < end:
                width = 8 if place + 8 <= end else 1
                some = ~u64(0) >> u64(64 - 8 * width)
                if valid != 0:
                    some = u64(word_at(valid + place) if width == 8 else byte_at(valid + place))
                while some:
                    row = (place << 3) + trailing_zeros(some) - begin
                    some &= some - u64(1)
                    if row < 0 or row >= rows:
                        continue
                    key, tag = i64(MISSING_KEY), i64(MISSING_KEY)
                    if turn:
                        key = _number_key(word_at(values + 8 * (start + row)), real)
                        tag = i64(NAN_TAG) if key == MISSING_KEY else i64(NUMBER_TAG)
                    if column >= 0:
                        keys[column, row] = key
                    if tags >= 0:
                        keys[tags, row] = tag
                place += width
