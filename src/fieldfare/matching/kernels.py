"""The compiled kernels: plain loops over an arena, made fast by numba, which release the GIL.

They are compiled on first use and cached on disk; until they are there, `scan` serves (see `backend`). Rules learnt for
numba: one buffer argument instead of twenty arrays, no helper that takes arrays inside hot loops, never mix signed and
unsigned integers.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from fieldfare.matching.arena import (
    ALIVE,
    ALWAYS,
    ALWAYS_BLOCKS,
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
    SPAN,
    VISITS,
    VISITS_AT,
)  # fmt: skip
from fieldfare.matching.columns import MISSING_KEY, NOT_RANGE, RANGE, SET, WILD_KEY

u64, i64 = nb.uint64, nb.int64
_GOLDEN = 0x9E3779B97F4A7C15
_WILD_ROW = 255
_SIGN = 0x7FFFFFFFFFFFFFFF


def _jit(function: Any) -> Any:
    try:
        return nb.njit(cache=True, nogil=True, boundscheck=False)(function)
    except RuntimeError:  # no directory for the cache can be written
        return nb.njit(cache=False, nogil=True, boundscheck=False)(function)


@intrinsic
def _trailing_zeros(_context: Any, _word: Any) -> Any:
    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return i64(u64), generate


_V8 = ir.VectorType(ir.IntType(64), 8)


@intrinsic
def _and_row(_context: Any, acc: Any, bits: Any, _offset: Any) -> Any:
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
def _prefetch(_context: Any, array: Any, _offset: Any) -> Any:
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


@_jit
def bucket_of(arena, column, key):  # type: ignore[no-untyped-def]
    """The bucket of a key within its column."""
    if arena[arena[MODE] + column] == HASHED:
        count = arena[arena[BUCKETS_AT] + column + 1] - arena[arena[BUCKETS_AT] + column]
        spread = (u64(key) * u64(_GOLDEN)) >> u64(40)
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


@_jit
def number_keys_of(columns, keys):  # type: ignore[no-untyped-def]
    """Raw floats in the given columns of `keys` (columns × events) to keys that order as they do."""
    for column in columns:
        for event in range(keys.shape[1]):
            key = keys[column, event]
            if key < 0 and key != MISSING_KEY:
                keys[column, event] = key ^ _SIGN


@_jit
def match_one(arena, keys, scratch, out):  # type: ignore[no-untyped-def]
    """The owners of the entries that one event satisfies, in `out` (negative: to be verified); returns how many.

    Three passes, so that waits for memory overlap: the blocks to visit, the entries their rows leave, the exact look.
    `keys` has one column; scratch is [epoch, stamp of each block…, blocks…, entries…, bucket row of each column…].
    """
    columns, blocks = arena[COLUMNS], arena[BLOCKS]
    visits_at = arena[arena[VISITS_AT] : arena[VISITS]].view(np.int32)
    visits = arena[arena[VISITS] : arena[ALWAYS]].view(np.int32)
    span = arena[arena[SPAN] : arena[ALIVE]].view(np.int32)
    alive = arena[arena[ALIVE] : arena[BLOCK_COLUMNS_AT]].view(np.uint64)
    block_columns_at = arena[arena[BLOCK_COLUMNS_AT] : arena[BLOCK_COLUMNS]].view(np.int32)
    block_columns = arena[arena[BLOCK_COLUMNS] : arena[BITS]].view(np.uint16)
    bits = arena[arena[BITS] : arena[OWNER]].view(np.uint64)
    row_of = arena[arena[ROW_OF] : arena[VISITS_AT]].view(np.uint8)
    always = arena[arena[ALWAYS] : arena[SPAN]].view(np.int32)
    predicates_at = arena[arena[PREDICATES_AT] : arena[PREDICATE]].view(np.int32)
    predicate, sets = arena[arena[PREDICATE] : arena[SETS]], arena[arena[SETS] :]
    acc = np.empty(LANES, np.uint64)
    scratch[0] += 1
    now = scratch[0]
    block_list, entry_list, rows = 1 + blocks, 1 + 2 * blocks, 1 + 2 * blocks + blocks * BLOCK
    found = left = matched = 0
    for i in range(arena[ALWAYS_BLOCKS]):
        block = i64(always[i])
        scratch[1 + block] = now
        scratch[block_list + found] = block
        found += 1
    for column in range(columns):
        key = keys[column, 0]
        if key == MISSING_KEY:
            scratch[rows + column] = 0
            continue
        if key == WILD_KEY:
            scratch[rows + column] = _WILD_ROW
            first, last = i64(span[2 * column]), i64(span[2 * column + 1])
            for block in range(first, last):
                if scratch[1 + block] != now:
                    scratch[1 + block] = now
                    scratch[block_list + found] = block
                    found += 1
            continue
        place = arena[arena[BUCKETS_AT] + column] + bucket_of(arena, column, key)
        scratch[rows + column] = i64(row_of[place])
        for v in range(visits_at[place], visits_at[place + 1]):
            block = i64(visits[v])
            if scratch[1 + block] != now:
                scratch[1 + block] = now
                scratch[block_list + found] = block
                found += 1
    for b in range(found):
        block = scratch[block_list + b]
        if b + 2 < found:
            ahead = scratch[block_list + b + 2]
            _prefetch(alive, ahead * LANES)
            for j in range(block_columns_at[ahead], block_columns_at[ahead + 1]):
                row = scratch[rows + i64(block_columns[j])]
                if row != _WILD_ROW:
                    _prefetch(bits, (i64(j) * ROWS + row) * LANES)
        any_left = u64(0)
        for lane in range(LANES):
            acc[lane] = alive[block * LANES + lane]
            any_left |= acc[lane]
        for j in range(block_columns_at[block], block_columns_at[block + 1]):
            if any_left == 0:
                break
            row = scratch[rows + i64(block_columns[j])]
            if row != _WILD_ROW:
                any_left = _and_row(acc, bits, (i64(j) * ROWS + row) * LANES)
        if any_left == 0:
            continue
        for lane in range(LANES):
            word = acc[lane]
            while word:
                entry = block * BLOCK + (lane << 6) + _trailing_zeros(word)
                word &= word - u64(1)
                scratch[entry_list + left] = entry
                left += 1
                _prefetch(arena, arena[PREDICATES_AT] + (entry >> 1))
    for c in range(left):
        if c + 12 < left:
            ahead = i64(predicates_at[scratch[entry_list + c + 12]]) * 3
            _prefetch(predicate, ahead)
            _prefetch(predicate, ahead + 8)
        entry = scratch[entry_list + c]
        ok, sure = True, True
        for p in range(i64(predicates_at[entry]) * 3, i64(predicates_at[entry + 1]) * 3, 3):
            key, kind = keys[predicate[p] & 0xFFFF, 0], (predicate[p] >> 16) & 3
            low, high = predicate[p + 1], predicate[p + 2]
            if key == WILD_KEY:
                sure = False
            elif kind == RANGE:
                ok = low <= key and key <= high
            elif kind == NOT_RANGE:
                ok = key < low or key > high
            else:
                inside = False
                while low < high:
                    middle = (low + high) >> 1
                    if sets[middle] < key:
                        low = middle + 1
                    elif sets[middle] > key:
                        high = middle
                    else:
                        inside = True
                        break
                ok = inside == (kind == SET)
            if not ok:
                break
        if ok:
            if matched < len(out):
                owner = arena[arena[OWNER] + entry]
                out[matched] = owner if sure else -owner - 1
            matched += 1
    return matched


@_jit
def match_batch(arena, keys, out_event, out_owner):  # type: ignore[no-untyped-def]
    """(event, owner) pairs for many events at once, block by block: a block meets all its events while it is in cache.

    Owners are as in `match_one`. Returns the number of pairs, of which as many as fit were written.
    """
    events, columns, blocks = keys.shape[1], arena[COLUMNS], arena[BLOCKS]
    visits_at = arena[arena[VISITS_AT] : arena[VISITS]].view(np.int32)
    visits = arena[arena[VISITS] : arena[ALWAYS]].view(np.int32)
    span = arena[arena[SPAN] : arena[ALIVE]].view(np.int32)
    alive = arena[arena[ALIVE] : arena[BLOCK_COLUMNS_AT]].view(np.uint64)
    block_columns_at = arena[arena[BLOCK_COLUMNS_AT] : arena[BLOCK_COLUMNS]].view(np.int32)
    block_columns = arena[arena[BLOCK_COLUMNS] : arena[BITS]].view(np.uint16)
    bits = arena[arena[BITS] : arena[OWNER]].view(np.uint64)
    row_of = arena[arena[ROW_OF] : arena[VISITS_AT]].view(np.uint8)
    always = arena[arena[ALWAYS] : arena[SPAN]].view(np.int32)
    predicates_at = arena[arena[PREDICATES_AT] : arena[PREDICATE]].view(np.int32)
    predicate, sets = arena[arena[PREDICATE] : arena[SETS]], arena[arena[SETS] :]
    # 1. The bucket of every key. Events have few of many columns: list, for each event, the places its keys lead to.
    places = np.empty((columns, events), np.int32)
    rows = np.empty((columns, events), np.uint8)
    listed_at = np.zeros(events + 1, np.int32)
    for column in range(columns):
        base, hashed = arena[arena[BUCKETS_AT] + column], arena[arena[MODE] + column] == HASHED
        count = u64(arena[arena[BUCKETS_AT] + column + 1] - base)
        first = arena[BOUNDS] + arena[arena[BOUNDS_AT] + column]
        size = arena[arena[BOUNDS_AT] + column + 1] - arena[arena[BOUNDS_AT] + column]
        for event in range(events):
            key = keys[column, event]
            if key == MISSING_KEY:
                places[column, event], rows[column, event] = -1, 0
                continue
            listed_at[event + 1] += 1
            if key == WILD_KEY:
                places[column, event], rows[column, event] = -2 - column, _WILD_ROW
            else:
                if hashed:
                    spread = (u64(key) * u64(_GOLDEN)) >> u64(40)
                    place = base + i64((spread & u64(0xFFFF)) * count >> u64(16))
                else:
                    low, length = first, size
                    while length > 0:
                        half = length >> 1
                        if arena[low + half] <= key:
                            low += half + 1
                            length -= half + 1
                        else:
                            length = half
                    place = base + low - first
                places[column, event], rows[column, event] = place, row_of[place]
    for event in range(events):
        listed_at[event + 1] += listed_at[event]
    listed = np.empty(listed_at[events], np.int32)
    cursor = listed_at.copy()
    for column in range(columns):
        for event in range(events):
            if places[column, event] != -1:
                listed[cursor[event]] = places[column, event]
                cursor[event] += 1
    start = np.zeros(blocks + 1, np.int32)
    stamp = np.full(blocks, -1, np.int32)
    fill = np.zeros(1, np.int32)
    for turn in range(2):  # count the events of each block, then list them
        stamp[:] = -1
        for event in range(events):
            for i in range(arena[ALWAYS_BLOCKS]):
                block = i64(always[i])
                stamp[block] = event
                if turn == 0:
                    start[block + 1] += 1
                else:
                    fill[cursor[block]] = event
                    cursor[block] += 1
            for j in range(listed_at[event], listed_at[event + 1]):
                place = i64(listed[j])
                if place < 0:
                    first, last = i64(span[2 * (-2 - place)]), i64(span[2 * (-2 - place) + 1])
                else:
                    first, last = i64(visits_at[place]), i64(visits_at[place + 1])
                for v in range(first, last):
                    block = v if place < 0 else i64(visits[v])
                    if stamp[block] != event:
                        stamp[block] = event
                        if turn == 0:
                            start[block + 1] += 1
                        else:
                            fill[cursor[block]] = event
                            cursor[block] += 1
        if turn == 0:
            for block in range(blocks):
                start[block + 1] += start[block]
            fill = np.empty(start[blocks], np.int32)
            cursor = start.copy()
    # 2. Block by block: AND of rows, then the exact look.
    acc = np.empty(LANES, np.uint64)
    matched = 0
    for block in range(blocks):
        first_column, last_column = i64(block_columns_at[block]), i64(block_columns_at[block + 1])
        for e in range(start[block], start[block + 1]):
            event = i64(fill[e])
            any_left = u64(1)
            for lane in range(LANES):
                acc[lane] = alive[block * LANES + lane]
            for j in range(first_column, last_column):
                row = i64(rows[i64(block_columns[j]), event])
                if row != _WILD_ROW:
                    any_left = _and_row(acc, bits, (j * ROWS + row) * LANES)
                    if any_left == 0:
                        break
            if any_left == 0:
                continue
            for lane in range(LANES):
                word = acc[lane]
                while word:
                    entry = block * BLOCK + (lane << 6) + _trailing_zeros(word)
                    word &= word - u64(1)
                    ok, sure = True, True
                    for p in range(i64(predicates_at[entry]) * 3, i64(predicates_at[entry + 1]) * 3, 3):
                        key, kind = keys[predicate[p] & 0xFFFF, event], (predicate[p] >> 16) & 3
                        low, high = predicate[p + 1], predicate[p + 2]
                        if key == WILD_KEY:
                            sure = False
                        elif kind == RANGE:
                            ok = low <= key and key <= high
                        elif kind == NOT_RANGE:
                            ok = key < low or key > high
                        else:
                            inside = False
                            while low < high:
                                middle = (low + high) >> 1
                                if sets[middle] < key:
                                    low = middle + 1
                                elif sets[middle] > key:
                                    high = middle
                                else:
                                    inside = True
                                    break
                            ok = inside == (kind == SET)
                        if not ok:
                            break
                    if ok:
                        if matched < len(out_event):
                            owner = arena[arena[OWNER] + entry]
                            out_event[matched] = event
                            out_owner[matched] = owner if sure else -owner - 1
                        matched += 1
    return matched


@_jit
def set_bits(arena, bits, base, slot, p, column):  # type: ignore[no-untyped-def]
    """Clear, in the rows of one column of a block, the bits of an entry where its predicate p cannot hold."""
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


@_jit
def fill_rows(arena):  # type: ignore[no-untyped-def]
    """The rows of every block from its entries' predicates."""
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
                    set_bits(arena, bits, place[column] * ROWS * LANES, entry - block * BLOCK, i64(p), column)
        for j in range(block_columns_at[block], block_columns_at[block + 1]):
            place[block_columns[j]] = -1


@_jit
def list_visits(arena, count, out, filling):  # type: ignore[no-untyped-def]
    """Which blocks the keys of a (column, bucket) lead to. Counts into `count`, or fills `out` from those offsets."""
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


@_jit
def kill(arena, entry):  # type: ignore[no-untyped-def]
    """Clear the alive bit of an entry."""
    alive = arena[arena[ALIVE] : arena[BLOCK_COLUMNS_AT]].view(np.uint64)
    alive[entry >> 6] &= ~(u64(1) << u64(entry & 63))


@_jit
def scan(arena, start, end, keys, out_event, out_owner):  # type: ignore[no-untyped-def]
    """The same pairs as `match_batch`, by looking at each entry from `start` to `end`: for small, growing arenas."""
    alive = arena[arena[ALIVE] : arena[BLOCK_COLUMNS_AT]].view(np.uint64)
    predicates_at = arena[arena[PREDICATES_AT] : arena[PREDICATE]].view(np.int32)
    predicate, sets = arena[arena[PREDICATE] : arena[SETS]], arena[arena[SETS] :]
    matched = 0
    for event in range(keys.shape[1]):
        for entry in range(start, end):
            if (alive[entry >> 6] >> u64(entry & 63)) & u64(1) == u64(0):
                continue
            ok, sure = True, True
            for p in range(i64(predicates_at[entry]) * 3, i64(predicates_at[entry + 1]) * 3, 3):
                key, kind = keys[predicate[p] & 0xFFFF, event], (predicate[p] >> 16) & 3
                low, high = predicate[p + 1], predicate[p + 2]
                if key == WILD_KEY:
                    sure = False
                elif kind == RANGE:
                    ok = low <= key and key <= high
                elif kind == NOT_RANGE:
                    ok = key < low or key > high
                else:
                    inside = False
                    while low < high:
                        middle = (low + high) >> 1
                        if sets[middle] < key:
                            low = middle + 1
                        elif sets[middle] > key:
                            high = middle
                        else:
                            inside = True
                            break
                    ok = inside == (kind == SET)
                if not ok:
                    break
            if ok:
                if matched < len(out_event):
                    owner = arena[arena[OWNER] + entry]
                    out_event[matched] = event
                    out_owner[matched] = owner if sure else -owner - 1
                matched += 1
    return matched


@_jit
def _text_hash(data, first, last):  # type: ignore[no-untyped-def]
    value = u64(0xCBF29CE484222325)
    for i in range(first, last):
        value = (value ^ u64(data[i])) * u64(0x100000001B3)
    return value ^ (value >> u64(29))


@_jit
def text_insert(slots, offsets, data, first, last):  # type: ignore[no-untyped-def]
    """Enter texts `first` to `last` into an open hash table of their numbers."""
    mask = u64(len(slots) - 1)
    for number in range(first, last):
        place = _text_hash(data, offsets[number], offsets[number + 1]) & mask
        while slots[place] >= 0:
            place = (place + u64(1)) & mask
        slots[place] = number


@_jit
def text_keys(slots, offsets, data, length, event_offsets, event_data, out):  # type: ignore[no-untyped-def]
    """The numbers of events' texts in a table, or of their first (length > 0) or last (length < 0) characters."""
    mask = u64(len(slots) - 1)
    for event in range(len(out)):
        first, last = i64(event_offsets[event]), i64(event_offsets[event + 1])
        if length > 0:  # characters are bytes that do not go on one begun before
            left, at = length, first
            while at < last:
                if event_data[at] & 0xC0 != 0x80:
                    if left == 0:
                        break
                    left -= 1
                at += 1
            last = at
        elif length < 0:
            left, at = -length, last
            while at > first and left > 0:
                at -= 1
                if event_data[at] & 0xC0 != 0x80:
                    left -= 1
            first = at
        size = last - first
        place = _text_hash(event_data, first, last) & mask
        found = i64(-2)
        while slots[place] >= 0:
            number = i64(slots[place])
            start = offsets[number]
            if offsets[number + 1] - start == size:
                same = True
                for i in range(size):
                    if data[start + i] != event_data[first + i]:
                        same = False
                        break
                if same:
                    found = number
                    break
            place = (place + u64(1)) & mask
        out[event] = found


@_jit
def by_event(events, count, event, owner, out_event, out_owner):  # type: ignore[no-untyped-def]
    """Pairs sorted by event, in linear time."""
    at = np.zeros(events + 1, np.int64)
    for i in range(count):
        at[event[i] + 1] += 1
    for e in range(events):
        at[e + 1] += at[e]
    for i in range(count):
        e = event[i]
        out_event[at[e]] = e
        out_owner[at[e]] = owner[i]
        at[e] += 1
