"""What an index holds, and how its work is spread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store.keys import NOT_SET, RANGE, SET
from fieldfare.matching.store.rows import Rows, extract, ranges
from fieldfare.matching.store.store import Store

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Stats:
    """Figures about an index."""

    filters: int
    entries: int
    segments: list[int]
    """entries of each"""
    recent: int
    """entries not in a segment yet"""
    attributes: int
    columns: int
    bytes: int
    verified: int
    """filters that cannot be decided by kernels alone"""
    kernels: str
    selectivity: dict[str, float] = field(default_factory=dict)
    """for each attribute, the mean share of events that its predicates let pass, by the latest sample"""
    checks: list[tuple[Any, int]] = field(default_factory=list)
    """the filters that were verified most often, which are the slowest"""


def stats_of(store: Store, filters: int, checks: list[tuple[Any, int]]) -> Stats:
    """The figures of a store."""
    state = store.state
    recent = sum(delta.count for delta in state.deltas)
    return Stats(
        filters=filters,
        entries=sum(part.entries for part in state.segments) + recent + len(store.substrings),
        segments=[part.entries for part in state.segments],
        recent=recent,
        attributes=len(store.columns.attributes),
        columns=len(store.columns),
        bytes=sum(arena.nbytes for arena in state.arenas()),
        verified=len(store.inexact),
        kernels="numba" if store.kernels else "numpy",
        selectivity=_selectivity(store),
        checks=checks,
    )


def _selectivity(store: Store) -> dict[str, float]:
    """Of the remembered events; without any it is not known."""
    totals: dict[str, list[float]] = {}
    sample = store.sample()
    for part in store.state.segments if sample.shape[1] else ():
        rows = extract(part.arena)
        for column in np.unique(rows.column).tolist():
            path = store.columns.columns[column].attribute.path
            totals.setdefault(path, []).append(_mean_share(rows, column, np.sort(sample[column])))
    return {path: sum(shares) / len(shares) for path, shares in sorted(totals.items())}


def _mean_share(rows: Rows, column: int, keys: Ints) -> float:
    """The mean share of some sorted keys that satisfy a predicate on a column."""
    mine = rows.column == column
    kind, low, high = rows.kind[mine], rows.low[mine], rows.high[mine]
    listed = (kind == SET) | (kind == NOT_SET)
    counts = high[listed] - low[listed]
    wanted = rows.sets[ranges(low[listed], counts)]
    hits = np.zeros(len(kind))
    hits[~listed] = np.searchsorted(keys, high[~listed], "right") - np.searchsorted(keys, low[~listed])
    each = np.searchsorted(keys, wanted, "right") - np.searchsorted(keys, wanted)
    hits[listed] = np.bincount(np.repeat(np.arange(len(counts)), counts), each, len(counts))
    share = hits / len(keys)
    return float(np.where((kind == RANGE) | (kind == SET), share, 1 - share).mean())
