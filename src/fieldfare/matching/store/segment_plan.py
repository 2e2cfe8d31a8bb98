"""The plan of a segment: the access predicate of each entry, the buckets of each column, the rows that pay.

*Selectivity* decides, the share of events that satisfy a predicate: estimated from a sample of events if there is a
sample, otherwise from the filters, as if events had the constants of filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching import kernels
from fieldfare.matching.store.keys import HIGHEST, LOWEST, MISSING_KEY, NUMBER, TAG, TIME
from fieldfare.matching.store.layout import BLOCK, HASHED, ORDERED, ROWS
from fieldfare.matching.store.rows import Rows

MAX_BUCKETS: Final = 1024
MAX_BLOCK_COLUMNS: Final = 24
WORTH: Final = 0.04
"""a column gets rows in a block if the rows are expected to rule out this share of the entries"""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Buckets:
    """The assignment of the keys of each column to buckets."""

    mode: Ints
    bounds_at: Ints
    bounds: Ints
    buckets_at: Ints
    row_of: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """The layout of some rows."""

    share: Floats
    """share of events for each predicate"""
    best: Ints
    """the predicates of each entry, most selective first"""
    access: Ints
    """the column that leads to an entry, or the number of columns if none does"""
    buckets: Buckets
    order: Ints
    """order of the entries"""


def plan_of(rows: Rows, roles: Sequence[int], sample: Ints) -> SegmentPlan:
    """Return the plan for some rows, from a sample of keys (columns × events) if there is any."""
    columns = len(roles)
    what = rows.column, rows.kind, rows.low, rows.high, rows.sets
    at, constants, size = kernels.constants_of(columns, *what)
    if sample.shape[1]:
        points = np.sort(sample)
        last = np.arange(1, columns + 1) * sample.shape[1]
        first = last - sample.shape[1] + (sample == MISSING_KEY).sum(axis=1)
        share = kernels.shares_of(first, last, points.ravel(), np.full(columns, float(sample.shape[1])), 0, *what)
    else:
        for column in range(columns):
            constants[at[column] : at[column + 1]].sort()
        share = kernels.shares_of(at[:-1], at[1:], constants, size, 1, *what)
    best, access = kernels.best_first(columns, rows.at, share, rows.column)
    buckets = _buckets(roles, access, [np.append(constants[at[c] : at[c + 1]], sample[c]) for c in range(columns)])
    places = kernels.places_of(
        access, rows.at, best, buckets.mode, buckets.bounds_at, buckets.bounds, buckets.buckets_at, rows.kind, rows.low,
        rows.high, rows.sets,
    )  # fmt: skip
    return SegmentPlan(share, best, access, buckets, np.argsort(places, kind="stable"))


def _buckets(roles: Sequence[int], access: Ints, points: Sequence[Ints]) -> Buckets:
    """Return buckets for every column: as many as pay for the entries of the column, cut where points are dense."""
    columns = len(roles)
    uses = np.bincount(access, minlength=columns)
    mode = np.array([ORDERED if role in (TAG, NUMBER, TIME) else HASHED for role in roles], np.int64)
    bounds: list[Ints] = []
    counts: list[int] = []
    row_of: list[NDArray[np.uint8]] = []
    for column in range(columns):
        buckets = int(min(MAX_BUCKETS, max(ROWS - 1, uses[column] // 8)))
        if mode[column] == HASHED:
            row_of.append((1 + np.arange(buckets) % (ROWS - 1)).astype(np.uint8))
        else:
            bounds.append(_quantiles(points[column], buckets))
            buckets = len(bounds[-1]) + 1
            row_of.append((1 + np.arange(buckets) * min(ROWS - 1, buckets) // buckets).astype(np.uint8))
        counts.append(buckets)
    sizes = np.zeros(columns, np.int64)
    sizes[mode == ORDERED] = [len(cut) for cut in bounds]
    return Buckets(
        mode, _ends(sizes), np.concatenate([*bounds, np.zeros(0, np.int64)]), _ends(np.array(counts, np.int64)),
        np.concatenate([*row_of, np.zeros(0, np.uint8)]),
    )  # fmt: skip


def _quantiles(points: Ints, buckets: int) -> Ints:
    """Return keys that cut points into parts of about equal size, or fewer parts if many points are equal."""
    points = points[(points > LOWEST) & (points < HIGHEST)]
    if not len(points):
        return points
    points.sort()
    cuts: Ints = points[np.arange(1, buckets) * (len(points) - 1) // buckets]
    return np.concatenate([cuts[:1], cuts[1:][cuts[1:] != cuts[:-1]]])


def _ends(sizes: Ints) -> Ints:
    return np.append(0, np.cumsum(sizes, dtype=np.int64))


def block_columns(gain: Floats, entries: int) -> tuple[Ints, Ints]:
    """Return, for each block, the columns whose rows are expected to rule out enough, best first."""
    size = np.full(len(gain), BLOCK)
    size[len(gain) - 1 :] = entries - (len(gain) - 1) * BLOCK
    keep = gain >= np.maximum(0.5, WORTH * size)[:, None]
    best = np.argsort(-np.where(keep, gain, -1), axis=1, kind="stable")[:, :MAX_BLOCK_COLUMNS]
    kept = np.take_along_axis(keep, best, axis=1)
    return _ends(kept.sum(axis=1)), best[kept].astype(np.int64)
