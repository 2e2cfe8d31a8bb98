"""Warm-up: a run of every kernel on a tiny segment, which compiles the kernels or loads them from the cache."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pyarrow as pa

from fieldfare.filters import parse
from fieldfare.matching.match.batch_keys import Encoder
from fieldfare.matching.match.json_layout import working_memory
from fieldfare.matching.relations.layout import ALL, COVERED
from fieldfare.matching.relations.query import query_of
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.delta import Delta
from fieldfare.matching.store.entries import Entry, Predicate, entries_of
from fieldfare.matching.store.keys import NUMBER, RANGE, STRING, TAG
from fieldfare.matching.store.layout import BLOCK, BUCKETS_AT, Words
from fieldfare.matching.store.rows import rows_of
from fieldfare.matching.store.segment import build_arena
from fieldfare.matching.store.state import scratch


def run(kernels: ModuleType) -> None:
    """Compile or load all kernels; `texts.put_texts` comes last, see `backend.cached`."""
    entries = [Entry((Predicate(0, RANGE, 1, 1), Predicate(1, RANGE, 0, 5)), False)]
    rows = rows_of([(0, entries[0])])
    arena = build_arena(rows, [STRING, NUMBER, TAG])
    keys = np.zeros((3, 1), np.int64)
    events, owners = np.zeros(4, np.int32), np.zeros(4, np.int64)
    kernels.match_one(arena, keys, scratch(arena), owners)
    kernels.match_batch(arena, keys, events, owners)
    delta = Delta()
    delta.append(0, 0, entries)
    kernels.scan(delta.arena, 0, delta.count, keys, events, owners)
    kernels.by_event(1, 0, events, owners, owners.copy(), owners.copy())
    kernels.drop_repeats(owners[:0], owners[:0], 1)
    _relate(kernels, arena)
    kernels.look_over(0, 0, False, working_memory(1))
    kernels.judgement_of(0, working_memory(1))
    columns = _columns()
    list(Encoder(columns).chunks(pa.record_batch({"a": ["x"], "b": [1.5]}), len(columns), 1, kernels))


def _columns() -> Columns:
    columns = Columns()
    entries_of(columns, parse("a = 'x'"))
    return columns


def _relate(kernels: ModuleType, arena: Words) -> None:
    query = query_of(_columns(), parse("a = 'x'").branches[0], COVERED, doubts=False)
    assert query is not None
    work = scratch(arena)
    entries = work[3 : 3 + BLOCK]
    kernels.survivors(arena, query.plan, entries)
    count = np.zeros(int(arena[int(arena[BUCKETS_AT]) + 3]) + 1, np.int64)
    kernels.post_entries(arena, count, np.zeros(4, np.int32), False)
    kernels.shortest_postings(arena, query.plan, count, np.zeros(4, np.int32), 0, entries)
    kernels.satisfied_by_both(arena, np.zeros((3, 2), np.int64), work, entries)
    kernels.judge(arena, entries, 0, query.words, query.columns, query.tables, COVERED, ALL, entries)
