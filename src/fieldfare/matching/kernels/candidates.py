"""Candidates: the entries of an arena that may be in a relation to a branch; `judge` compares the candidates exactly.

Entries that overlap a branch survive the bits of the columns of the branch; so do covered entries, or they are found in
lists by a column that they must have a predicate on; entries that may cover the branch are satisfied by both witnesses.
"""

from __future__ import annotations

import numpy as np

from fieldfare.matching.kernels.compiled import (
    and_row,
    both_rows,
    clear_row,
    i64,
    is_empty,
    jit,
    lane_of,
    load_row,
    or_row,
    prefetch,
    trailing_zeros,
    u64,
)
from fieldfare.matching.kernels.rows import bucket_of
from fieldfare.matching.relations.layout import PLAN
from fieldfare.matching.store.keys import MISSING_KEY, NOT_RANGE, RANGE, WILD_KEY
from fieldfare.matching.store.layout import (
    ALIVE,
    ALWAYS,
    ALWAYS_BLOCKS,
    BITS,
    BLOCK,
    BLOCK_COLUMNS,
    BLOCK_COLUMNS_AT,
    BLOCKS,
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

_WILD_ROW = -1
_FEW_ROWS = 15


@jit
def post_entries(arena, count, out, filling):  # type: ignore[no-untyped-def]
    """List the entries with a positive predicate on a column; if keys are hashed, on a bucket of the column.

    A set of keys is listed under its first key. Counts into `count`, or fills `out` from these offsets.
    """
    predicates_at = arena[arena[PREDICATES_AT] : arena[PREDICATE]].view(np.int32)
    for entry in range(arena[ENTRIES]):
        for p in range(predicates_at[entry], predicates_at[entry + 1]):
            at = arena[PREDICATE] + i64(p) * 3
            column, kind, low = arena[at] & 0xFFFF, (arena[at] >> 16) & 3, arena[at + 1]
            if kind >= NOT_RANGE:
                continue
            place = arena[arena[BUCKETS_AT] + column]
            if arena[arena[MODE] + column] == HASHED:
                place += bucket_of(arena, column, low if kind == RANGE else arena[arena[SETS] + low])
            if filling:
                out[count[place]] = entry
            count[place] += 1


@jit
def shortest_postings(arena, plan, postings_at, postings, most, out):  # type: ignore[no-untyped-def]
    """Write the shortest list among the columns of a plan, which contains every covered entry, to `out`.

    Returns the number of entries, or -1 if there are more than `most`.
    """
    first, fewest = i64(-1), i64(most) + 1
    for i in range(plan[0]):
        at = 1 + PLAN * i
        column = plan[at]
        if column >= arena[COLUMNS]:  # newer than the arena: no entry has a predicate on the column
            return i64(0)
        place = arena[arena[BUCKETS_AT] + column]
        if arena[arena[MODE] + column] == HASHED:
            if plan[at + 4] - plan[at + 3] > 1:
                continue  # keys in several buckets
            place += bucket_of(arena, column, plan[plan[at + 3]])
        if postings_at[place + 1] - postings_at[place] < fewest:
            first, fewest = postings_at[place], postings_at[place + 1] - postings_at[place]
    if first < 0:
        return i64(-1)
    for i in range(fewest):
        out[i] = i64(postings[first + i])
    return fewest


@jit
def survivors(arena, plan, out):  # type: ignore[no-untyped-def]
    """Write the entries that the rows of a plan's columns do not rule out to `out`; return their number."""
    columns, count = arena[COLUMNS], plan[0]
    alive = arena[arena[ALIVE] : arena[BLOCK_COLUMNS_AT]].view(np.uint64)
    block_columns_at = arena[arena[BLOCK_COLUMNS_AT] : arena[BLOCK_COLUMNS]].view(np.int32)
    block_columns = arena[arena[BLOCK_COLUMNS] : arena[BITS]].view(np.uint16)
    bits = arena[arena[BITS] : arena[OWNER]].view(np.uint64)
    row_of = arena[arena[ROW_OF] : arena[VISITS_AT]].view(np.uint8)
    which = np.full(columns, -1, np.int64)
    touched = np.zeros(ROWS, np.bool_)
    # An entry stays if it is in some row of `some` and in no row of `none`.
    some, none = np.zeros((count, ROWS), np.int64), np.zeros((count, ROWS), np.int64)
    some_count, none_count = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for i in range(count):
        at = 1 + PLAN * i
        column, needed, span = plan[at], plan[at + 1] != 0, plan[at + 2] != 0
        if column >= columns:  # newer than the arena: no entry has a predicate on the column
            if needed:
                return 0
            continue
        which[column] = i
        touched[:] = False
        start = arena[arena[BUCKETS_AT] + column]
        first, last = ROWS, 0
        for k in range(plan[at + 3], plan[at + 4]):
            row = i64(row_of[start + bucket_of(arena, column, plan[k])])
            touched[row] = True
            first, last = min(first, row), max(last, row)
        if span:
            touched[first : last + 1] = True
        inside = 0
        for row in range(1, ROWS):
            inside += touched[row]
        if needed:
            none[i, 0] = 0  # row 0: entries that do not look at the column
            none_count[i] = 1
            for row in range(1, ROWS):
                if inside <= _FEW_ROWS:
                    if touched[row]:
                        some[i, some_count[i]] = row
                        some_count[i] += 1
                    elif span and (row == first - 1 or row == last + 1):
                        none[i, none_count[i]] = row
                        none_count[i] += 1
                elif not touched[row]:
                    none[i, none_count[i]] = row
                    none_count[i] += 1
        elif inside == ROWS - 1:
            which[column] = -1  # rules out nothing
        else:
            some_count[i] = 1
            for row in range(1, ROWS):
                if touched[row]:
                    some[i, some_count[i]] = row
                    some_count[i] += 1
    found = 0
    for block in range(arena[BLOCKS]):
        acc = load_row(alive, block * LANES)
        for j in range(i64(block_columns_at[block]), i64(block_columns_at[block + 1])):
            i = which[i64(block_columns[j])]
            if i < 0:
                continue
            base = j * ROWS * LANES
            if some_count[i]:
                either = load_row(bits, base + some[i, 0] * LANES)
                for r in range(1, some_count[i]):
                    either = or_row(either, bits, base + some[i, r] * LANES)
                acc = both_rows(acc, either)
            for r in range(none_count[i]):
                acc = clear_row(acc, bits, base + none[i, r] * LANES)
            if is_empty(acc):
                break
        if is_empty(acc):
            continue
        for lane in range(LANES):
            word = lane_of(acc, lane)
            while word:
                out[found] = block * BLOCK + (lane << 6) + trailing_zeros(word)
                found += 1
                word &= word - u64(1)
    return found


@jit
def satisfied_by_both(arena, keys, scratch, out):  # type: ignore[no-untyped-def]
    """Write the entries that two events may satisfy to `out`; return their number. `scratch` is as for `match_one`."""
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
    rows = np.zeros((columns, 2), np.int64)
    scratch[0] += 1
    now, listed = scratch[0], 1 + blocks
    visited = found = 0
    for i in range(arena[ALWAYS_BLOCKS]):
        scratch[1 + i64(always[i])] = now
        scratch[listed + visited] = i64(always[i])
        visited += 1
    for column in range(columns):
        for e in range(2):
            key = keys[column, e]
            if key == WILD_KEY:
                rows[column, e] = _WILD_ROW
            elif key != MISSING_KEY:
                rows[column, e] = i64(row_of[arena[arena[BUCKETS_AT] + column] + bucket_of(arena, column, key)])
        key = keys[column, 0]
        if key == MISSING_KEY:
            continue
        if key == WILD_KEY:
            first, last = i64(span[2 * column]), i64(span[2 * column + 1])
        else:
            place = arena[arena[BUCKETS_AT] + column] + bucket_of(arena, column, key)
            first, last = i64(visits_at[place]), i64(visits_at[place + 1])
        for v in range(first, last):
            block = v if key == WILD_KEY else i64(visits[v])
            if scratch[1 + block] != now:
                scratch[1 + block] = now
                scratch[listed + visited] = block
                visited += 1
    for b in range(visited):
        block = scratch[listed + b]
        if b + 2 < visited:
            ahead = scratch[listed + b + 2]
            prefetch(alive, ahead * LANES)
            for j in range(block_columns_at[ahead], block_columns_at[ahead + 1]):
                row = rows[i64(block_columns[j]), 0]
                if row != _WILD_ROW:
                    prefetch(bits, (i64(j) * ROWS + row) * LANES)
        acc = load_row(alive, block * LANES)
        for j in range(i64(block_columns_at[block]), i64(block_columns_at[block + 1])):
            column = i64(block_columns[j])
            row, other = rows[column, 0], rows[column, 1]
            if row != _WILD_ROW:
                acc = and_row(acc, bits, (j * ROWS + row) * LANES)
            if other != row and other != _WILD_ROW:
                acc = and_row(acc, bits, (j * ROWS + other) * LANES)
            if is_empty(acc):
                break
        if is_empty(acc):
            continue
        for lane in range(LANES):
            word = lane_of(acc, lane)
            while word:
                out[found] = block * BLOCK + (lane << 6) + trailing_zeros(word)
                found += 1
                word &= word - u64(1)
    return found
