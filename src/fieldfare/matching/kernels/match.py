"""Matching kernels: the entries of an arena that the keys of an event, or of many events, satisfy."""

from __future__ import annotations

import numpy as np

from fieldfare.matching.kernels.compiled import (
    and_row,
    i64,
    is_empty,
    jit,
    lane_of,
    load_row,
    prefetch,
    seen_from,
    trailing_zeros,
    u64,
)
from fieldfare.matching.kernels.rows import GOLDEN, bucket_of
from fieldfare.matching.store.keys import MISSING_KEY, NOT_RANGE, RANGE, SET, WILD_KEY
from fieldfare.matching.store.layout import (
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

_WILD_ROW = 255


@jit
def match_one(arena, keys, scratch, out):  # type: ignore[no-untyped-def]
    """Write the owners of the entries that an event satisfies to `out` (negative: to verify); return their number.

    Three passes, so that waits for memory overlap: the blocks to visit, the entries that the rows leave, the exact
    look. `keys` has a single column; scratch is [epoch, stamp of each block…, blocks…, entries…, bucket row of each
    column…].
    """
    arena, scratch, keys_of = (
        seen_from(arena, 0, np.int64),
        seen_from(scratch, 0, np.int64),
        seen_from(keys, 0, np.int64),
    )
    columns, blocks = arena[COLUMNS], arena[BLOCKS]
    visits_at = seen_from(arena, arena[VISITS_AT], np.int32)
    visits = seen_from(arena, arena[VISITS], np.int32)
    span = seen_from(arena, arena[SPAN], np.int32)
    alive = seen_from(arena, arena[ALIVE], np.uint64)
    block_columns_at = seen_from(arena, arena[BLOCK_COLUMNS_AT], np.int32)
    block_columns = seen_from(arena, arena[BLOCK_COLUMNS], np.uint16)
    bits = seen_from(arena, arena[BITS], np.uint64)
    row_of = seen_from(arena, arena[ROW_OF], np.uint8)
    always = seen_from(arena, arena[ALWAYS], np.int32)
    predicates_at = seen_from(arena, arena[PREDICATES_AT], np.int32)
    predicate, sets = seen_from(arena, arena[PREDICATE], np.int64), seen_from(arena, arena[SETS], np.int64)
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
        key = keys_of[column]
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
            prefetch(alive, ahead * LANES)
            for j in range(block_columns_at[ahead], block_columns_at[ahead + 1]):
                row = scratch[rows + i64(block_columns[j])]
                if row != _WILD_ROW:
                    prefetch(bits, (i64(j) * ROWS + row) * LANES)
        acc = load_row(alive, block * LANES)
        for j in range(i64(block_columns_at[block]), i64(block_columns_at[block + 1])):
            row = scratch[rows + i64(block_columns[j])]
            if row != _WILD_ROW:
                acc = and_row(acc, bits, (j * ROWS + row) * LANES)
                if is_empty(acc):
                    break
        if is_empty(acc):
            continue
        for lane in range(LANES):
            word = lane_of(acc, lane)
            while word:
                entry = block * BLOCK + (lane << 6) + trailing_zeros(word)
                word &= word - u64(1)
                scratch[entry_list + left] = entry
                left += 1
                prefetch(arena, arena[PREDICATES_AT] + (entry >> 1))
    for c in range(left):
        if c + 12 < left:
            ahead = i64(predicates_at[scratch[entry_list + c + 12]]) * 3
            prefetch(predicate, ahead)
            prefetch(predicate, ahead + 8)
        entry = scratch[entry_list + c]
        ok, sure = True, True
        for p in range(i64(predicates_at[entry]) * 3, i64(predicates_at[entry + 1]) * 3, 3):
            key, kind = keys_of[predicate[p] & 0xFFFF], (predicate[p] >> 16) & 3
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


@jit
def match_batch(arena, keys, out_event, out_owner):  # type: ignore[no-untyped-def]
    """Write (event, owner) pairs for many events, block by block: a block meets all its events while in cache.

    Owners are as in `match_one`. Returns the number of pairs; as many as fit were written.
    """
    arena = seen_from(arena, 0, np.int64)
    events, columns, blocks = keys.shape[1], arena[COLUMNS], arena[BLOCKS]
    visits_at = seen_from(arena, arena[VISITS_AT], np.int32)
    visits = seen_from(arena, arena[VISITS], np.int32)
    span = seen_from(arena, arena[SPAN], np.int32)
    alive = seen_from(arena, arena[ALIVE], np.uint64)
    block_columns_at = seen_from(arena, arena[BLOCK_COLUMNS_AT], np.int32)
    block_columns = seen_from(arena, arena[BLOCK_COLUMNS], np.uint16)
    bits = seen_from(arena, arena[BITS], np.uint64)
    row_of = seen_from(arena, arena[ROW_OF], np.uint8)
    always = seen_from(arena, arena[ALWAYS], np.int32)
    predicates_at = seen_from(arena, arena[PREDICATES_AT], np.int32)
    predicate, sets = seen_from(arena, arena[PREDICATE], np.int64), seen_from(arena, arena[SETS], np.int64)
    # 1. The bucket of every key. Events have few of many columns: list, for each event, the places its keys lead to.
    rows = np.zeros((columns, events), np.uint8)
    cell_event, cell_place = np.empty(columns * events, np.int32), np.empty(columns * events, np.int32)
    cells = 0  # keys that there are; memory for the others is never touched
    listed_at = np.zeros(events + 1, np.int32)
    for column in range(columns):
        base, hashed = arena[arena[BUCKETS_AT] + column], arena[arena[MODE] + column] == HASHED
        count = u64(arena[arena[BUCKETS_AT] + column + 1] - base)
        first = arena[BOUNDS] + arena[arena[BOUNDS_AT] + column]
        size = arena[arena[BOUNDS_AT] + column + 1] - arena[arena[BOUNDS_AT] + column]
        for event in range(events):
            key = keys[column, event]
            if key == MISSING_KEY:
                continue
            listed_at[event + 1] += 1
            if key == WILD_KEY:
                place, rows[column, event] = -2 - column, _WILD_ROW
            else:
                if hashed:
                    spread = (u64(key) * u64(GOLDEN)) >> u64(40)
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
                rows[column, event] = row_of[place]
            cell_event[cells], cell_place[cells] = event, place
            cells += 1
    for event in range(events):
        listed_at[event + 1] += listed_at[event]
    listed = np.empty(cells, np.int32)
    cursor = listed_at.copy()
    for cell in range(cells):
        event = i64(cell_event[cell])
        listed[cursor[event]] = cell_place[cell]
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
    matched = 0
    for block in range(blocks):
        first_column, last_column = i64(block_columns_at[block]), i64(block_columns_at[block + 1])
        for e in range(start[block], start[block + 1]):
            event = i64(fill[e])
            acc = load_row(alive, block * LANES)
            for j in range(first_column, last_column):
                row = i64(rows[i64(block_columns[j]), event])
                if row != _WILD_ROW:
                    acc = and_row(acc, bits, (j * ROWS + row) * LANES)
                    if is_empty(acc):
                        break
            if is_empty(acc):
                continue
            for lane in range(LANES):
                word = lane_of(acc, lane)
                while word:
                    entry = block * BLOCK + (lane << 6) + trailing_zeros(word)
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


@jit
def scan(arena, start, end, keys, out_event, out_owner):  # type: ignore[no-untyped-def]
    """Write the pairs of `match_batch` by a look at each entry from `start` to `end`: for small, growing arenas."""
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


@jit
def by_event(events, count, event, owner, out_event, out_owner):  # type: ignore[no-untyped-def]
    """Sort pairs by event, in linear time."""
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
