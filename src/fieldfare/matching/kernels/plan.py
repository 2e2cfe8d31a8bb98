"""Kernels for the plan of a segment: selectivity of predicates, order of predicates, and order of entries."""

from __future__ import annotations

import numpy as np

from fieldfare.matching.kernels.compiled import i64, jit, u64
from fieldfare.matching.kernels.rows import GOLDEN
from fieldfare.matching.store.keys import HIGHEST, LOWEST, RANGE, SET
from fieldfare.matching.store.layout import BLOCK, HASHED

FEW, MANY, SHARE = 256, 4096, 8
"""constants of a column to look at: a few hundred, or a SHARE-th part, but not too many"""
PLACES = 1 << 13
"""places in the order of the entries of a column, for each class of widths: at least twice the number of buckets"""
NEVER = 2.0
"""the share of a predicate that cannot lead to its entry, since a missing key satisfies the predicate"""


@jit
def constants_of(columns, column, kind, low, high, sets):  # type: ignore[no-untyped-def]
    """Return constants of predicates: the start of each column, the constants, and the number of events they stand for.

    A range has the constants low and high + 1, where its truth changes. An even share of many constants is chosen. The
    constants of a column stand for as many events as there would be if every event had the most mentioned column.
    """
    uses, predicates = np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    for p in range(len(column)):
        predicates[column[p]] += 1
        if kind[p] == RANGE:
            uses[column[p]] += i64(low[p] > LOWEST) + i64(high[p] < HIGHEST)
        elif kind[p] == SET:
            uses[column[p]] += high[p] - low[p]
    at, step, weight = np.zeros(columns + 1, np.int64), np.empty(columns, np.int64), np.ones(columns)
    for c in range(columns):
        step[c] = max(1, uses[c] // min(MANY, max(FEW, uses[c] // SHARE))) | 1  # odd, lest only lows are chosen
        at[c + 1] = at[c] + (uses[c] + step[c] - 1) // step[c]
        if predicates[c] > 0:
            weight[c] = (at[c + 1] - at[c]) / predicates[c]
    found, seen = np.empty(at[columns], np.int64), np.zeros(columns, np.int64)
    for p in range(len(column)):
        c = column[p]
        if kind[p] == RANGE:
            if low[p] > LOWEST:
                if seen[c] % step[c] == 0:
                    found[at[c] + seen[c] // step[c]] = low[p]
                seen[c] += 1
            if high[p] < HIGHEST:
                if seen[c] % step[c] == 0:
                    found[at[c] + seen[c] // step[c]] = high[p] + 1
                seen[c] += 1
        elif kind[p] == SET:
            for i in range(low[p], high[p]):
                if seen[c] % step[c] == 0:
                    found[at[c] + seen[c] // step[c]] = sets[i]
                seen[c] += 1
    busiest = 1
    for c in range(columns):
        busiest = max(busiest, predicates[c])
    return at, found, weight * busiest


@jit
def _below(points, first, last, key):  # type: ignore[no-untyped-def]
    """Return the place of the first of some sorted points that is not below a key."""
    count = last - first
    while count > 0:  # without branches, which the processor could not predict
        half = (count + 1) >> 1
        first += half * i64(points[first + half - 1] < key)
        count -= half
    return first


@jit
def shares_of(first, last, points, size, edge, column, kind, low, high, sets):  # type: ignore[no-untyped-def]
    """Return the share of events that satisfy each predicate, if a column has the points from first to last.

    `size` is the number of events that the points of a column stand for; a range reaches `edge` further up.
    """
    share = np.empty(len(column))
    for p in range(len(column)):
        c = column[p]
        if kind[p] != RANGE and kind[p] != SET:
            share[p] = NEVER
            continue
        listed = kind[p] == SET
        hits = 0.0
        for i in range(low[p] if listed else 0, high[p] if listed else 1):
            bottom, top = (sets[i], sets[i] + edge) if listed else (low[p], min(high[p], i64(HIGHEST - 1)) + edge)
            start, count = first[c], last[c] - first[c]  # `_below`, twice: calls with arrays are dear here
            while count > 0:
                half = (count + 1) >> 1
                start += half * i64(points[start + half - 1] < bottom)
                count -= half
            end, count = start, last[c] - start
            while count > 0:
                half = (count + 1) >> 1
                end += half * i64(points[end + half - 1] <= top)
                count -= half
            hits += 0.3 + end - start
        share[p] = min(1.0, hits / (size[c] + 1))
    return share


@jit
def best_first(columns, at, share, column):  # type: ignore[no-untyped-def]
    """Return the predicates of each entry, most selective first, and the access column; `columns` if there is none."""
    order, access = np.empty(len(share), np.int64), np.full(len(at) - 1, columns)
    for e in range(len(at) - 1):
        for p in range(at[e], at[e + 1]):
            place = p
            while place > at[e] and share[order[place - 1]] > share[p]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = p
        if at[e] < at[e + 1] and share[order[at[e]]] < NEVER:
            access[e] = column[order[at[e]]]
    return order, access


@jit
def places_of(access, at, best, mode, bounds_at, bounds, buckets_at, kind, low, high, sets):  # type: ignore[no-untyped-def]
    """Return sort keys of entries: by access column, then by the width of the access predicate, and by place.

    Neighbours then share visitors.
    """
    out = np.empty(len(access), np.int64)
    for e in range(len(access)):
        c = access[e]
        place, width = i64(0), i64(0)
        if c < len(mode):
            p = best[at[e]]
            key = sets[low[p]] if kind[p] == SET else low[p]
            if mode[c] == HASHED:
                spread = (u64(key) * u64(GOLDEN)) >> u64(40)
                place = i64((spread & u64(0xFFFF)) * u64(buckets_at[c + 1] - buckets_at[c]) >> u64(16))
                width = i64(kind[p] == SET)
            else:
                left = right = _below(bounds, bounds_at[c], bounds_at[c + 1], key + 1)
                if kind[p] == RANGE and low[p] < high[p]:
                    right = _below(bounds, left, bounds_at[c + 1], high[p] + 1)
                place = left + right - 2 * bounds_at[c]
                while right - left + 1 >= 4 << 2 * width:  # a class for every fourfold width
                    width += 1
        out[e] = (c << 40) + width * PLACES + place
    return out


@jit
def lay_out(columns, blocks, order, at, best, share, column, kind, how, low, high):  # type: ignore[no-untyped-def]
    """Lay out predicates in the order of their entries: the start of each entry, three words for each predicate.

    Also returns the expected number of entries that each column of each block rules out.
    """
    out_at, words = np.zeros(len(order) + 1, np.int64), np.empty(3 * len(column), np.int64)
    gain = np.zeros((blocks, columns))
    place = 0
    for e in range(len(order)):
        for i in range(at[order[e]], at[order[e] + 1]):
            p = best[i]
            words[3 * place] = column[p] | kind[p] << 16 | how[p] << 18
            words[3 * place + 1], words[3 * place + 2] = low[p], high[p]
            if share[p] < 1:
                gain[e // BLOCK, column[p]] += 1 - share[p]
            place += 1
        out_at[e + 1] = place
    return out_at, words, gain
