"""Figures on an index: the content, and the distribution of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    """Figures on an index at a moment."""

    filters: int
    entries: int
    segments: list[int]
    """number of entries of each segment"""
    recent: int
    """entries outside segments"""
    attributes: int
    columns: int
    bytes: int
    verified: int
    """filters that kernels alone cannot decide"""
    kernels: str
    selectivity: dict[str, float] = field(default_factory=dict)
    """for each attribute, the mean share of events that satisfy a predicate, by the latest sample"""
    checks: list[tuple[Any, int]] = field(default_factory=list)
    """the filters with the most verifications, which are the slowest"""


def stats_of(store: Store, filters: int, checks: list[tuple[Any, int]]) -> Stats:
    """Return the figures of a store."""
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


def time_spent(
    events: Iterable[Any], steps: Mapping[str, Callable[[Any], Any]], clock: Callable[[], float]
) -> dict[str, float]:
    """Return the seconds of each step over some events; a step is given the result of the step before."""
    spent = dict.fromkeys(steps, 0.0)
    for event in events:
        result = event
        for name, step in steps.items():
            start = clock()
            result = step(result)
            spent[name] += clock() - start
    return spent


def _selectivity(store: Store) -> dict[str, float]:
    """Return mean shares by attribute over the sampled events; empty without a sample."""
    totals: dict[str, list[float]] = {}
    sample = store.sample()
    for part in store.state.segments if sample.shape[1] else ():
        rows = extract(part.arena)
        for column in np.unique(rows.column).tolist():
            path = store.columns.columns[column].attribute.path
            totals.setdefault(path, []).append(_mean_share(rows, column, np.sort(sample[column])))
    return {path: sum(shares) / len(shares) for path, shares in sorted(totals.items())}


def _mean_share(rows: Rows, column: int, keys: Ints) -> float:
    """Return the mean share of sorted keys that satisfy a predicate on a column."""
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
