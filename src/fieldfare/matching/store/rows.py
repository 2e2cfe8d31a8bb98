"""`Rows`: entries and their predicates as arrays.

Entries come from filters as rows, go into a segment as rows, and come out as rows when segments are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store import layout
from fieldfare.matching.store.entries import Entry
from fieldfare.matching.store.keys import NOT_RANGE, SET
from fieldfare.matching.store.layout import LANES, Words

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Entries and their predicates as arrays; the predicates of entry e are those from at[e] to at[e + 1]."""

    owner: Ints
    at: Ints
    column: Ints
    kind: Ints
    open: Ints
    low: Ints
    """for a set: the start of its keys in `sets`; `high` is the end"""
    high: Ints
    sets: Ints

    def __len__(self) -> int:
        return len(self.owner)


def rows_of(entries: Iterable[tuple[int, Entry]]) -> Rows:
    """Return owners and entries as rows."""
    owner: list[int] = []
    at: list[int] = [0]
    predicates: list[tuple[int, int, int, int, int]] = []
    sets: list[int] = []
    for number, entry in entries:
        owner.append(number)
        for column, kind, low, high, keys, how in entry.predicates:
            if keys:
                predicates.append((column, kind, how, len(sets), len(sets) + len(keys)))
                sets.extend(keys)
            else:
                predicates.append((column, kind, how, low, high))
        at.append(len(predicates))
    table = np.ascontiguousarray(np.array(predicates, np.int64).reshape(-1, 5).T)
    column, kinds, opens, lows, highs = table
    return Rows(
        np.array(owner, np.int64), np.array(at, np.int64), column, kinds, opens, lows, highs, np.array(sets, np.int64)
    )


def joined(parts: Sequence[Rows]) -> Rows:
    """Join several sets of rows."""
    if len(parts) == 1:
        return parts[0]
    keys = np.cumsum([0, *(len(part.sets) for part in parts)])
    ends = np.cumsum([0, *(part.at[-1] for part in parts)])
    moved = [np.where(_is_set(part.kind), shift, 0) for part, shift in zip(parts, keys, strict=False)]
    return Rows(
        np.concatenate([part.owner for part in parts]),
        np.concatenate([[0], *(part.at[1:] + end for part, end in zip(parts, ends, strict=False))]).astype(np.int64),
        np.concatenate([part.column for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.open for part in parts]),
        np.concatenate([part.low + shift for part, shift in zip(parts, moved, strict=True)]),
        np.concatenate([part.high + shift for part, shift in zip(parts, moved, strict=True)]),
        np.concatenate([part.sets for part in parts]),
    )


def _is_set(kind: Ints) -> NDArray[np.bool_]:
    return np.asarray((kind == SET) | (kind > NOT_RANGE), np.bool_)


def extract(arena: Words) -> Rows:
    """Return the rows of the entries of an arena that are alive."""
    entries = int(arena[layout.ENTRIES])
    words = layout.section(arena, layout.ALIVE)[: int(arena[layout.BLOCKS]) * LANES]
    alive = np.unpackbits(words.view(np.uint8), bitorder="little")[:entries].astype(bool)
    at = layout.section(arena, layout.PREDICATES_AT)[: entries + 1].astype(np.int64)
    counts = np.diff(at)[alive]
    table = layout.section(arena, layout.PREDICATE)[: 3 * at[-1]].reshape(-1, 3)[ranges(at[:-1][alive], counts)]
    owner = layout.section(arena, layout.OWNER)[:entries][alive].astype(np.int64)
    first, low, high = (np.ascontiguousarray(table[:, part]).astype(np.int64) for part in range(3))
    listed = np.flatnonzero(_is_set((first >> 16) & 3))
    sizes = high[listed] - low[listed]
    sets = layout.section(arena, layout.SETS)[ranges(low[listed], sizes)].astype(np.int64)  # of live entries
    high[listed] = np.cumsum(sizes)
    low[listed] = high[listed] - sizes
    return Rows(
        owner,
        np.append(0, np.cumsum(counts)).astype(np.int64),
        first & 0xFFFF,
        (first >> 16) & 3,
        first >> 18,
        low,
        high,
        sets,
    )


def ranges(starts: Ints, counts: Ints) -> Ints:
    """Return start, start + 1, … for each start, one range after another."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)
