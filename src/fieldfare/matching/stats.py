"""What an index holds, and how its work is spread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fieldfare.matching import segment
from fieldfare.matching.store import Store


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
        entries=sum(part.entries for part in state.segments) + recent + len(store.needles),
        segments=[part.entries for part in state.segments],
        recent=recent,
        attributes=len(store.columns.attributes),
        columns=len(store.columns),
        bytes=sum(part.arena.nbytes for part in state.segments) + sum(delta.arena.nbytes for delta in state.deltas),
        verified=len(store.kept),
        kernels="numba" if store.kernels else "numpy",
        selectivity=_selectivity(store),
        checks=checks,
    )


def _selectivity(store: Store) -> dict[str, float]:
    totals: dict[str, list[float]] = {}
    sample = store.sample()
    for part in store.state.segments:
        rows = segment.extract(part.arena)
        share = segment.selectivity(rows, len(sample), sample)
        for column in np.unique(rows.column).tolist():
            path = store.columns.columns[column].attribute.path
            totals.setdefault(path, []).append(float(share[rows.column == column].mean()))
    return {path: sum(shares) / len(shares) for path, shares in sorted(totals.items())}
