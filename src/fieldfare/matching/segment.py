"""Building a segment: entries sorted by their access predicate, cut into blocks, with rows for the columns that pay.

`Rows` is the columnar form in which entries come from filters, go into a segment and come out of it again when segments
are merged. What decides the layout is *selectivity*, the share of events that satisfy a predicate: estimated from a
sample of events where there is one, otherwise from the filters themselves, as if events asked for what filters ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching import arena as layout
from fieldfare.matching.arena import BLOCK, HASHED, LANES, ORDERED, ROWS, Words
from fieldfare.matching.entries import Entry
from fieldfare.matching.keys import HIGHEST, LOWEST, MISSING_KEY, NOT_RANGE, NUMBER, RANGE, SET, TAG, TIME

MAX_BUCKETS: Final = 1024
MAX_BLOCK_COLUMNS: Final = 24
WORTH: Final = 0.04
"""a column gets rows in a block if it is expected to rule out this share of the entries"""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Entries and their predicates as arrays; predicates of entry e are those from at[e] to at[e + 1]."""

    owner: Ints
    at: Ints
    column: Ints
    kind: Ints
    open: Ints
    low: Ints
    """of a set: where its keys begin in `sets`, and `high` where they end"""
    high: Ints
    sets: Ints

    def __len__(self) -> int:
        return len(self.owner)


def rows_of(entries: Iterable[tuple[int, Entry]]) -> Rows:
    """Owners and entries in columnar form."""
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
    """Several sets of rows as one."""
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
    """The rows of the entries that are alive."""
    entries = int(arena[layout.ENTRIES])
    words = layout.section(arena, layout.ALIVE)[: int(arena[layout.BLOCKS]) * LANES]
    alive = np.unpackbits(words.view(np.uint8), bitorder="little")[:entries].astype(bool)
    at = layout.section(arena, layout.PREDICATES_AT)[: entries + 1].astype(np.int64)
    counts = np.diff(at)[alive]
    table = layout.section(arena, layout.PREDICATE)[: 3 * at[-1]].reshape(-1, 3)[_ranges(at[:-1][alive], counts)]
    sets = layout.section(arena, layout.SETS)[: int(arena[layout.SET_KEYS])].astype(np.int64)
    owner = layout.section(arena, layout.OWNER)[:entries][alive].astype(np.int64)
    first = table[:, 0].astype(np.int64)
    return Rows(
        owner, np.append(0, np.cumsum(counts)).astype(np.int64), first & 0xFFFF, (first >> 16) & 3, first >> 18,
        table[:, 1].astype(np.int64), table[:, 2].astype(np.int64), sets,
    )  # fmt: skip


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """start, start + 1, … for each start, one after the other."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def selectivity(rows: Rows, columns: int, sample: Ints) -> Floats:
    """The share of events that satisfy each predicate, from a sample of keys (columns × events) or from the rows."""
    share = np.ones(len(rows.column))
    order = np.argsort(rows.column, kind="stable")
    cuts = np.searchsorted(rows.column[order], np.arange(columns + 1))
    busiest = max(1, int(np.diff(cuts).max(initial=1)))
    for column in range(columns):
        mine = order[cuts[column] : cuts[column + 1]]
        if not len(mine):
            continue
        kind, low, high = rows.kind[mine], rows.low[mine], rows.high[mine]
        ranges, sets = kind == RANGE, kind == SET
        if sample.shape[1]:
            keys = np.sort(sample[column][sample[column] != MISSING_KEY])
            size = sample.shape[1]
        else:  # no events yet: take the filters' own constants for events, and their liking of a column for presence
            points = [low[ranges & (low > LOWEST)], high[ranges & (high < HIGHEST)]]
            points += [rows.sets[_ranges(low[sets], high[sets] - low[sets])]] if sets.any() else []
            keys = np.sort(np.concatenate(points))
            size = max(1, int(len(keys) * busiest / len(mine)))
        part = np.ones(len(mine))
        left, right = np.searchsorted(keys, low[ranges]), np.searchsorted(keys, high[ranges], "right")
        part[ranges] = (right - left + 0.3) / (size + 1)
        if sets.any():
            counts = high[sets] - low[sets]
            wanted = rows.sets[_ranges(low[sets], counts)]
            hits = np.searchsorted(keys, wanted, "right") - np.searchsorted(keys, wanted) + 0.3
            sums = np.add.reduceat(hits, np.concatenate([[0], np.cumsum(counts)[:-1]]))
            part[sets] = sums / (size + 1)
        share[mine] = np.minimum(part, 1.0)
    return share


@dataclass(frozen=True, slots=True)
class _Buckets:
    """How the keys of each column fall into buckets."""

    mode: Ints
    bounds_at: Ints
    bounds: Ints
    buckets_at: Ints
    row_of: NDArray[np.uint8]


def _buckets(rows: Rows, roles: Sequence[int], access: Ints, sample: Ints) -> _Buckets:
    columns = len(roles)
    uses = np.bincount(access[access < columns], minlength=columns)
    order = np.argsort(rows.column, kind="stable")
    cuts = np.searchsorted(rows.column[order], np.arange(columns + 1))
    mode = np.array([ORDERED if role in (TAG, NUMBER, TIME) else HASHED for role in roles], np.int64)
    bounds: list[Ints] = []
    counts: list[int] = []
    row_of: list[NDArray[np.uint8]] = []
    for column in range(columns):
        wanted = int(min(MAX_BUCKETS, max(ROWS - 1, uses[column] // 8)))
        cut: Ints = np.zeros(0, np.int64)
        if mode[column] == ORDERED:
            mine = order[cuts[column] : cuts[column + 1]]
            mine = mine[rows.kind[mine] != NOT_RANGE]
            mine = mine[~_is_set(rows.kind[mine])][: 1 << 16]
            points = np.concatenate([rows.low[mine], rows.high[mine] + 1, sample[column]])
            points = np.sort(points[(points > LOWEST) & (points < HIGHEST)])
            if len(points):
                cut = np.unique(points[np.linspace(0, len(points) - 1, wanted + 1)[1:-1].astype(np.int64)])
            buckets = len(cut) + 1
            row_of.append((1 + np.arange(buckets) * min(ROWS - 1, buckets) // buckets).astype(np.uint8))
        else:
            buckets = wanted
            row_of.append((1 + np.arange(buckets) % (ROWS - 1)).astype(np.uint8))
        bounds.append(cut)
        counts.append(buckets)
    return _Buckets(
        mode,
        np.concatenate([[0], np.cumsum([len(cut) for cut in bounds])]).astype(np.int64),
        np.concatenate([*bounds, np.zeros(0, np.int64)]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate([*row_of, np.zeros(0, np.uint8)]),
    )


def build(rows: Rows, roles: Sequence[int], sample: Ints | None = None, *, indexed: bool = True) -> Words:
    """The arena of some entries. Not `indexed`: predicates only, for scanning."""
    columns, entries = len(roles), len(rows)
    sample = np.empty((columns, 0), np.int64) if sample is None else sample
    share = selectivity(rows, columns, sample)
    positive = (rows.kind == RANGE) | (rows.kind == SET)
    entry_of = np.repeat(np.arange(entries), np.diff(rows.at))
    best_first = np.lexsort((np.where(positive, share, 2.0), entry_of))
    has = np.diff(rows.at) > 0
    first = np.zeros(entries, np.int64)  # the access predicate of each entry that has predicates
    first[has] = best_first[rows.at[:-1][has]]
    access = np.full(entries, columns)
    usable = np.flatnonzero(has)[positive[first[has]]]
    access[usable] = rows.column[first[usable]]
    buckets = _buckets(rows, roles, access, sample)
    order = _order(rows, first, access, buckets, columns)
    counts = np.diff(rows.at)[order]
    at = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    index = best_first[_ranges(rows.at[:-1][order], counts)]
    blocks = -(-entries // BLOCK)
    block_columns_at, block_columns = _block_columns(
        rows.column[index], share[index], positive[index], at, columns=columns, blocks=blocks
    )
    always = np.unique(np.flatnonzero(access[order] == columns) // BLOCK)
    span = np.zeros((columns + 1, 2), np.int64)
    sorted_access = access[order]
    for column in np.unique(sorted_access[sorted_access < columns]):
        place = np.flatnonzero(sorted_access == column)
        span[column] = place[0] // BLOCK, place[-1] // BLOCK + 1
    counts_of = {
        layout.COLUMNS: columns, layout.BLOCKS: blocks, layout.ENTRIES: entries, layout.PREDICATES: len(index),
        layout.SET_KEYS: len(rows.sets), layout.INDEXED: int(indexed), layout.ALWAYS_BLOCKS: len(always),
    }  # fmt: skip
    sizes = {
        layout.ROLE: columns, layout.MODE: columns, layout.BOUNDS_AT: columns + 1, layout.BOUNDS: len(buckets.bounds),
        layout.BUCKETS_AT: columns + 1, layout.ROW_OF: len(buckets.row_of), layout.VISITS_AT: len(buckets.row_of) + 1,
        layout.ALWAYS: len(always), layout.SPAN: 2 * columns + 2, layout.ALIVE: blocks * LANES,
        layout.BLOCK_COLUMNS_AT: blocks + 1, layout.BLOCK_COLUMNS: len(block_columns),
        layout.BITS: len(block_columns) * ROWS * LANES if indexed else 0, layout.OWNER: entries,
        layout.PREDICATES_AT: entries + 1, layout.PREDICATE: 3 * len(index), layout.SETS: len(rows.sets),
    }  # fmt: skip
    bare = {**sizes, layout.BITS: 0}
    content: dict[int, NDArray[Any]] = {
        layout.ROLE: np.array(roles, np.int64), layout.MODE: buckets.mode, layout.BOUNDS_AT: buckets.bounds_at,
        layout.BOUNDS: buckets.bounds, layout.BUCKETS_AT: buckets.buckets_at, layout.ROW_OF: buckets.row_of,
        layout.ALWAYS: always, layout.SPAN: span.ravel(), layout.ALIVE: _alive(entries, blocks),
        layout.BLOCK_COLUMNS_AT: block_columns_at, layout.BLOCK_COLUMNS: block_columns, layout.OWNER: rows.owner[order],
        layout.PREDICATES_AT: at, layout.SETS: rows.sets,
        layout.PREDICATE: np.stack(
            [(rows.column | rows.kind << 16 | rows.open << 18)[index], rows.low[index], rows.high[index]], axis=1
        ).ravel(),
    }  # fmt: skip
    if not indexed:
        return _filled(counts_of, sizes, content)
    from fieldfare.matching import kernels  # noqa: PLC0415 - compiled only where it is used

    visits_at = np.zeros(len(buckets.row_of) + 1, np.int64)
    kernels.list_visits(_filled(counts_of, bare, content), visits_at, np.zeros(1, np.int32), False)
    visits_at = np.concatenate([[0], np.cumsum(visits_at[:-1])]).astype(np.int64)
    visits = np.zeros(int(visits_at[-1]), np.int32)
    arena = _filled(counts_of, {**sizes, layout.VISITS: len(visits)}, {**content, layout.VISITS_AT: visits_at})
    kernels.list_visits(arena, visits_at.copy(), visits, True)
    layout.section(arena, layout.VISITS)[: len(visits)] = visits
    kernels.fill_rows(arena)
    return arena


def _filled(counts: dict[int, int], sizes: dict[int, int], content: dict[int, NDArray[Any]]) -> Words:
    arena = layout.allocate(counts, sizes)
    for name, values in content.items():
        layout.section(arena, name)[: len(values)] = values
    return arena


def _alive(entries: int, blocks: int) -> NDArray[np.uint64]:
    flags = np.zeros(blocks * BLOCK, np.uint8)
    flags[:entries] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _order(rows: Rows, first: Ints, access: Ints, buckets: _Buckets, columns: int) -> Ints:
    """Entries by access column, then by how wide and where their access predicate is: neighbours share visitors."""
    if not len(rows.column):
        return np.arange(len(rows))
    low, high, kind = rows.low[first], rows.high[first], rows.kind[first]
    place = low.copy()
    place[kind == SET] = rows.sets[low[kind == SET]]
    key = np.zeros(len(rows))
    by_column = np.argsort(access, kind="stable")
    cuts = np.searchsorted(access[by_column], np.arange(columns + 1))
    for column in range(columns):
        mine = by_column[cuts[column] : cuts[column + 1]]
        if not len(mine):
            continue
        if buckets.mode[column] == ORDERED:
            bounds = buckets.bounds[buckets.bounds_at[column] : buckets.bounds_at[column + 1]]
            left = np.searchsorted(bounds, place[mine], "right")
            right = np.where(kind[mine] == SET, left, np.searchsorted(bounds, high[mine], "right"))
            width = np.log2(np.maximum(1, right - left + 1)).astype(np.int64) // 2
            key[mine] = width * 4.0 * MAX_BUCKETS + (left + right) / 2
        else:
            spread = (place[mine].view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
            count = buckets.buckets_at[column + 1] - buckets.buckets_at[column]
            bucket = ((spread & np.uint64(0xFFFF)) * np.uint64(count)) >> np.uint64(16)
            key[mine] = bucket.astype(np.float64) + np.where(kind[mine] == SET, 4.0 * MAX_BUCKETS, 0.0)
    return np.lexsort((key, access))


def _block_columns(
    column: Ints, share: Floats, positive: NDArray[np.bool_], at: Ints, *, columns: int, blocks: int
) -> tuple[Ints, Ints]:
    """For each block the columns whose rows are expected to rule out enough, best first."""
    entries = len(at) - 1
    block = np.repeat(np.arange(entries) // BLOCK, np.diff(at))
    gain = np.bincount(
        block * columns + column, weights=np.where(positive, 1 - share, 0.0), minlength=blocks * columns
    ).reshape(blocks, columns)
    size = np.full(blocks, BLOCK)
    if blocks:
        size[-1] = entries - (blocks - 1) * BLOCK
    keep = gain >= np.maximum(0.5, WORTH * size)[:, None]
    best = np.argsort(-np.where(keep, gain, -1), axis=1, kind="stable")[:, :MAX_BLOCK_COLUMNS]
    kept = np.take_along_axis(keep, best, axis=1)
    return np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64), best[kept].astype(np.int64)
