"""Building a segment: entries sorted by their access predicate, cut into blocks, with rows for the columns that pay.

`Rows` is the columnar form in which entries come from filters, go into a segment and come out of it again when segments
are merged. `planning` decides how they are laid out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store import arena as layout
from fieldfare.matching.store.arena import BLOCK, LANES, ROWS, Words
from fieldfare.matching.store.entries import Entry
from fieldfare.matching.store.keys import NOT_RANGE, SET

Ints = NDArray[np.int64]


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
    table = layout.section(arena, layout.PREDICATE)[: 3 * at[-1]].reshape(-1, 3)[ranges(at[:-1][alive], counts)]
    owner = layout.section(arena, layout.OWNER)[:entries][alive].astype(np.int64)
    first, low, high = (np.ascontiguousarray(table[:, part]).astype(np.int64) for part in range(3))
    listed = np.flatnonzero(_is_set((first >> 16) & 3))
    sizes = high[listed] - low[listed]
    sets = layout.section(arena, layout.SETS)[ranges(low[listed], sizes)].astype(np.int64)  # not those of the dead
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
    """start, start + 1, … for each start, one after the other."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def build(rows: Rows, roles: Sequence[int], sample: Ints | None = None, *, indexed: bool = True) -> Words:
    """The arena of some entries. Not `indexed`: predicates only, for scanning."""
    return _indexed(rows, roles, sample) if indexed else _bare(rows, roles)


def _bare(rows: Rows, roles: Sequence[int]) -> Words:
    """Entries as they come, without rows and lists."""
    blocks = -(-len(rows) // BLOCK)
    words = np.stack([rows.column | rows.kind << 16 | rows.open << 18, rows.low, rows.high], axis=1).ravel()
    return _filled(
        {
            layout.COLUMNS: len(roles), layout.BLOCKS: blocks, layout.ENTRIES: len(rows),
            layout.PREDICATES: len(rows.column), layout.SET_KEYS: len(rows.sets),
        },
        {
            layout.ROLE: np.array(roles, np.int64), layout.ALIVE: _alive(len(rows), blocks), layout.OWNER: rows.owner,
            layout.PREDICATES_AT: rows.at, layout.PREDICATE: words, layout.SETS: rows.sets,
        },
    )  # fmt: skip


def _indexed(rows: Rows, roles: Sequence[int], sample: Ints | None) -> Words:
    from fieldfare.matching import kernels  # noqa: PLC0415 - compiled only where it is used
    from fieldfare.matching.store import plan as planning  # noqa: PLC0415

    columns, blocks = len(roles), -(-len(rows) // BLOCK)
    plan = planning.plan(rows, roles, np.empty((columns, 0), np.int64) if sample is None else sample)
    at, words, gain = kernels.lay_out(
        columns, blocks, plan.order, rows.at, plan.best, plan.share, rows.column, rows.kind, rows.open, rows.low,
        rows.high,
    )  # fmt: skip
    block_columns_at, block_columns = planning.block_columns(gain, len(rows))
    always = np.unique(np.flatnonzero(plan.access[plan.order] == columns) // BLOCK)
    buckets = plan.buckets
    counts = {
        layout.COLUMNS: columns, layout.BLOCKS: blocks, layout.ENTRIES: len(rows), layout.PREDICATES: len(rows.column),
        layout.SET_KEYS: len(rows.sets), layout.INDEXED: 1, layout.ALWAYS_BLOCKS: len(always),
    }  # fmt: skip
    content: dict[int, NDArray[Any]] = {
        layout.ROLE: np.array(roles, np.int64), layout.MODE: buckets.mode, layout.BOUNDS_AT: buckets.bounds_at,
        layout.BOUNDS: buckets.bounds, layout.BUCKETS_AT: buckets.buckets_at, layout.ROW_OF: buckets.row_of,
        layout.ALWAYS: always, layout.SPAN: _span(plan.access[plan.order], columns),
        layout.ALIVE: _alive(len(rows), blocks), layout.BLOCK_COLUMNS_AT: block_columns_at,
        layout.BLOCK_COLUMNS: block_columns, layout.OWNER: rows.owner[plan.order], layout.PREDICATES_AT: at,
        layout.PREDICATE: words, layout.SETS: rows.sets,
    }  # fmt: skip
    visits_at = np.zeros(len(buckets.row_of) + 1, np.int64)
    kernels.list_visits(_filled(counts, content | _leading(at, words)), visits_at, np.zeros(1, np.int32), False)
    visits_at = np.concatenate([[0], np.cumsum(visits_at[:-1])]).astype(np.int64)
    visits = np.zeros(int(visits_at[-1]), np.int32)
    bits = {layout.BITS: len(block_columns) * ROWS * LANES}
    arena = _filled(counts, {**content, layout.VISITS_AT: visits_at, layout.VISITS: visits}, bits)
    kernels.list_visits(arena, visits_at.copy(), visits, True)
    layout.section(arena, layout.VISITS)[: len(visits)] = visits
    kernels.fill_rows(arena)
    return arena


def _filled(
    counts: dict[int, int], content: Mapping[int, NDArray[Any]], room: Mapping[int, int] = MappingProxyType({})
) -> Words:
    """An arena of the given sections, with room for others."""
    arena = layout.allocate(counts, {name: len(values) for name, values in content.items()} | dict(room))
    for name, values in content.items():
        layout.section(arena, name)[: len(values)] = values
    return arena


def _leading(at: Ints, words: Ints) -> dict[int, Ints]:
    """The first predicate of each entry only, which is all that visits depend on."""
    some = at[1:] > at[:-1]
    first = words.reshape(-1, 3)[at[:-1][some]].ravel()
    return {layout.PREDICATES_AT: np.append(0, np.cumsum(some)), layout.PREDICATE: first}


def _alive(entries: int, blocks: int) -> NDArray[np.uint64]:
    flags = np.zeros(blocks * BLOCK, np.uint8)
    flags[:entries] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _span(access: Ints, columns: int) -> Ints:
    """For each column the first block with entries that are found by it, and the one after the last."""
    cuts = np.searchsorted(access, np.arange(columns + 1))
    first, last = cuts[:-1], cuts[1:]
    span = np.zeros((columns + 1, 2), np.int64)
    some = np.flatnonzero(last > first)
    span[some, 0], span[some, 1] = first[some] // BLOCK, (last[some] - 1) // BLOCK + 1
    return span.ravel()
