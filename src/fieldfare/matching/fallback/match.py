"""Matching without compiled kernels: every predicate of a segment against the keys of an event, in NumPy.

The results are the same, from the same arena, only slower: the fallback serves during compilation, and where numba is
not installed. Cost grows with the number of predicates, not with the number of matches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store import layout
from fieldfare.matching.store.keys import MISSING_KEY, NOT_SET, RANGE, SET, WILD_KEY
from fieldfare.matching.store.layout import Words

Ints = NDArray[np.int64]


def scan(arena: Words, start: int, end: int, keys: Ints) -> tuple[NDArray[np.int32], Ints]:
    """Return (event, owner) pairs of some entries; -owner - 1 where a wild key leaves the entry undecided."""
    count = end - start
    at = layout.section(arena, layout.PREDICATES_AT)[start : end + 1].astype(np.int64)
    table = layout.section(arena, layout.PREDICATE)[3 * at[0] : 3 * at[-1]].reshape(-1, 3).astype(np.int64)
    column, kind, low, high = table[:, 0] & 0xFFFF, (table[:, 0] >> 16) & 3, table[:, 1], table[:, 2]
    owner = layout.section(arena, layout.OWNER)[start:end].astype(np.int64)
    words = layout.section(arena, layout.ALIVE)[: -(-end // 64)]
    alive = np.unpackbits(words.view(np.uint8), bitorder="little")[start:end].astype(bool)
    sets = layout.section(arena, layout.SETS)
    listed = np.flatnonzero((kind == SET) | (kind == NOT_SET))
    sizes = high[listed] - low[listed]
    member_of = np.repeat(np.arange(len(listed)), sizes)
    members = np.concatenate([sets[low[p] : high[p]] for p in listed]) if len(listed) else sets[:0]
    entry_of = np.repeat(np.arange(count), np.diff(at))
    events: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    owners: list[Ints] = [np.zeros(0, np.int64)]
    for event in range(keys.shape[1]):
        key = keys[column, event]
        inside = (low <= key) & (key <= high) & (key != MISSING_KEY)
        hits = member_of[members == np.repeat(key[listed], sizes)]
        inside[listed] = np.bincount(hits, minlength=len(listed)) > 0
        ok = inside == ((kind == RANGE) | (kind == SET))
        wild = key == WILD_KEY
        failed = np.bincount(entry_of[~(ok | wild)], minlength=count)
        unsure = np.bincount(entry_of[wild], minlength=count) > 0
        found = np.flatnonzero(alive & (failed == 0))
        events.append(np.full(len(found), event, np.int32))
        owners.append(np.where(unsure[found], -owner[found] - 1, owner[found]))
    return np.concatenate(events), np.concatenate(owners)
