"""Construction of an arena: the bit rows of blocks, and the blocks that a key leads to."""

from __future__ import annotations

import numpy as np

from fieldfare.matching.kernels.compiled import i64, jit, u64
from fieldfare.matching.store.keys import RANGE, SET
from fieldfare.matching.store.layout import (
    BITS,
    BLOCK,
    BLOCK_COLUMNS,
    BLOCK_COLUMNS_AT,
    BLOCKS,
    BOUNDS,
    BOUNDS_AT,
    BUCKETS_AT,
    COLUMNS,
    ENTRIES,
    HASHED,
    LANES,
    MODE,
    OWNER,
    PREDICATE,
    PREDICATES_AT,
    ROW_OF,
    ROWS,
    SETS,
)  # fmt: skip

GOLDEN = 0x9E3779B97F4A7C15


@jit
def bucket_of(arena, column, key):  # type: ignore[no-untyped-def]
    """Return the bucket of a key within its column."""
    if arena[arena[MODE] + column] == HASHED:
        count = arena[arena[BUCKETS_AT] + column + 1] - arena[arena[BUCKETS_AT] + column]
        spread = (u64(key) * u64(GOLDEN)) >> u64(40)
        return i64((spread & u64(0xFFFF)) * u64(count) >> u64(16))
    first = arena[arena[BOUNDS_AT] + column]
    low, high = first, arena[arena[BOUNDS_AT] + column + 1]
    base = arena[BOUNDS]
    while low < high:
        middle = (low + high) >> 1
        if arena[base + middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low - first


@jit
def _clear_bits(arena, bits, base, slot, p, column):  # type: ignore[no-untyped-def]
    """Clear, in the rows of a column of a block, the bits of an entry where predicate p cannot hold."""
    word, mask = slot >> 6, u64(1) << u64(slot & 63)
    at = arena[PREDICATE] + p * 3
    kind, low, high = (arena[at] >> 16) & 3, arena[at + 1], arena[at + 2]
    if kind != RANGE and kind != SET:
        return  # true of a missing key, and of most others
    bits[base + word] &= ~mask
    start = arena[arena[BUCKETS_AT] + column]
    rows = arena[ROW_OF]
    if kind == RANGE and (arena[arena[MODE] + column] != HASHED or low == high):
        first = start + bucket_of(arena, column, low)
        last = first if low == high else start + bucket_of(arena, column, high)
        if arena[arena[MODE] + column] == HASHED:
            only = (arena[rows + (first >> 3)] >> ((first & 7) << 3)) & 0xFF
            for row in range(1, ROWS):
                if row != only:
                    bits[base + row * LANES + word] &= ~mask
            return
        low_row = (arena[rows + (first >> 3)] >> ((first & 7) << 3)) & 0xFF
        high_row = (arena[rows + (last >> 3)] >> ((last & 7) << 3)) & 0xFF
        for row in range(1, low_row):
            bits[base + row * LANES + word] &= ~mask
        for row in range(high_row + 1, ROWS):
            bits[base + row * LANES + word] &= ~mask
    elif kind == SET:
        for row in range(1, ROWS):
            bits[base + row * LANES + word] &= ~mask
        for i in range(low, high):
            place = start + bucket_of(arena, column, arena[arena[SETS] + i])
            row = (arena[rows + (place >> 3)] >> ((place & 7) << 3)) & 0xFF
            bits[base + row * LANES + word] |= mask


@jit
def fill_rows(arena):  # type: ignore[no-untyped-def]
    """Fill the rows of every block from the predicates of the entries."""
    bits = arena[arena[BITS] : arena[OWNER]].view(np.uint64)
    block_columns_at = arena[arena[BLOCK_COLUMNS_AT] : arena[BLOCK_COLUMNS]].view(np.int32)
    block_columns = arena[arena[BLOCK_COLUMNS] : arena[BITS]].view(np.uint16)
    predicates_at = arena[arena[PREDICATES_AT] : arena[PREDICATE]].view(np.int32)
    bits[:] = ~u64(0)
    place = np.full(65536, -1, np.int64)
    for block in range(arena[BLOCKS]):
        for j in range(block_columns_at[block], block_columns_at[block + 1]):
            place[block_columns[j]] = j
        for entry in range(block * BLOCK, min(arena[ENTRIES], block * BLOCK + BLOCK)):
            for p in range(predicates_at[entry], predicates_at[entry + 1]):
                column = arena[arena[PREDICATE] + i64(p) * 3] & 0xFFFF
                if place[column] >= 0:
                    _clear_bits(arena, bits, place[column] * ROWS * LANES, entry - block * BLOCK, i64(p), column)
        for j in range(block_columns_at[block], block_columns_at[block + 1]):
            place[block_columns[j]] = -1


@jit
def list_visits(arena, count, out, filling):  # type: ignore[no-untyped-def]
    """List the blocks that the keys of a (column, bucket) lead to.

    Counts the blocks into `count`, or fills `out` from the offsets in `count`.
    """
    predicates_at = arena[arena[PREDICATES_AT] : arena[PREDICATE]].view(np.int32)
    last_block = np.full(arena[arena[BUCKETS_AT] + arena[COLUMNS]], -1, np.int64)
    for entry in range(arena[ENTRIES]):
        block = entry // BLOCK
        at = arena[PREDICATE] + i64(predicates_at[entry]) * 3
        if predicates_at[entry] == predicates_at[entry + 1]:
            continue
        column, kind, low, high = arena[at] & 0xFFFF, (arena[at] >> 16) & 3, arena[at + 1], arena[at + 2]
        if kind != RANGE and kind != SET:
            continue
        start = arena[arena[BUCKETS_AT] + column]
        if kind == SET:
            for i in range(low, high):
                place = start + bucket_of(arena, column, arena[arena[SETS] + i])
                if last_block[place] != block:
                    last_block[place] = block
                    if filling:
                        out[count[place]] = block
                    count[place] += 1
            continue
        if arena[arena[MODE] + column] == HASHED and low != high:
            first, last = start, arena[arena[BUCKETS_AT] + column + 1] - 1
        else:
            first = start + bucket_of(arena, column, low)
            last = first if low == high else start + bucket_of(arena, column, high)
        for place in range(first, last + 1):
            if last_block[place] != block:
                last_block[place] = block
                if filling:
                    out[count[place]] = block
                count[place] += 1
