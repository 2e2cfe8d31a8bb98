"""The construction of a segment: entries sorted by access predicate, cut into blocks, with rows where they pay.

`segment_plan` decides the layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store import layout
from fieldfare.matching.store.layout import BLOCK, LANES, ROWS, Words
from fieldfare.matching.store.rows import Rows

Ints = NDArray[np.int64]


def build_arena(rows: Rows, roles: Sequence[int], sample: Ints | None = None, *, indexed: bool = True) -> Words:
    """Return the arena of some entries. Without `indexed`, the arena has predicates only, for scans."""
    return _indexed(rows, roles, sample) if indexed else _bare(rows, roles)


def _bare(rows: Rows, roles: Sequence[int]) -> Words:
    """Return an arena of entries in the given order, without rows and lists."""
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
    from fieldfare.matching.store.segment_plan import block_columns, plan_of  # noqa: PLC0415

    columns, blocks = len(roles), -(-len(rows) // BLOCK)
    plan = plan_of(rows, roles, np.empty((columns, 0), np.int64) if sample is None else sample)
    at, words, gain = kernels.lay_out(
        columns, blocks, plan.order, rows.at, plan.best, plan.share, rows.column, rows.kind, rows.open, rows.low,
        rows.high,
    )  # fmt: skip
    columns_at, columns_of = block_columns(gain, len(rows))
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
        layout.ALIVE: _alive(len(rows), blocks), layout.BLOCK_COLUMNS_AT: columns_at,
        layout.BLOCK_COLUMNS: columns_of, layout.OWNER: rows.owner[plan.order], layout.PREDICATES_AT: at,
        layout.PREDICATE: words, layout.SETS: rows.sets,
    }  # fmt: skip
    visits_at = np.zeros(len(buckets.row_of) + 1, np.int64)
    kernels.list_visits(_filled(counts, content | _leading(at, words)), visits_at, np.zeros(1, np.int32), False)
    visits_at = np.concatenate([[0], np.cumsum(visits_at[:-1])]).astype(np.int64)
    visits = np.zeros(int(visits_at[-1]), np.int32)
    bits = {layout.BITS: len(columns_of) * ROWS * LANES}
    arena = _filled(counts, {**content, layout.VISITS_AT: visits_at, layout.VISITS: visits}, bits)
    kernels.list_visits(arena, visits_at.copy(), visits, True)
    layout.section(arena, layout.VISITS)[: len(visits)] = visits
    kernels.fill_rows(arena)
    return arena


def _filled(
    counts: dict[int, int], content: Mapping[int, NDArray[Any]], room: Mapping[int, int] = MappingProxyType({})
) -> Words:
    """Return an arena of the given sections, with room for others."""
    arena = layout.allocate(counts, {name: len(values) for name, values in content.items()} | dict(room))
    for name, values in content.items():
        layout.section(arena, name)[: len(values)] = values
    return arena


def _leading(at: Ints, words: Ints) -> dict[int, Ints]:
    """Return the first predicate of each entry only; the lists of visits depend on no other."""
    some = at[1:] > at[:-1]
    first = words.reshape(-1, 3)[at[:-1][some]].ravel()
    return {layout.PREDICATES_AT: np.append(0, np.cumsum(some)), layout.PREDICATE: first}


def _alive(entries: int, blocks: int) -> NDArray[np.uint64]:
    flags = np.zeros(blocks * BLOCK, np.uint8)
    flags[:entries] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _span(access: Ints, columns: int) -> Ints:
    """Return, for each column, the first block with entries that the column leads to, and the block after the last."""
    cuts = np.searchsorted(access, np.arange(columns + 1))
    first, last = cuts[:-1], cuts[1:]
    span = np.zeros((columns + 1, 2), np.int64)
    some = np.flatnonzero(last > first)
    span[some, 0], span[some, 1] = first[some] // BLOCK, (last[some] - 1) // BLOCK + 1
    return span.ravel()
