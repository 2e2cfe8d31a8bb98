"""The events of a partition in order, and the segments in which a pattern may be detected; all columnwise.

A row is an event in a group, with the matching atoms. Rows are sorted by key and time. A *touch* is a row with a
pattern of a matching atom; a *segment* is a run of touches of a pattern and a key, with no instance open before and
after. Only segments with the names of a detection remain (`shapes`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.patterns.runs import NEVER
from fieldfare.pipeline.detection.plan import Bits, Ints, Prepared

GROUP: Final = "fieldfare group"
ATOMS: Final = "fieldfare atoms"
LOW: Final = "fieldfare low"
HIGH: Final = "fieldfare high"
TIE: Final = "fieldfare tie "
"""beginning of the names of the columns that decide between events of the same time"""
FIELD: Final = "fieldfare field "
"""beginning of the names of the columns that keys, conditions and selections look at"""
KEPT: Final = "fieldfare kept "
"""beginning of the names of the columns of the events in the result"""


class Rows(NamedTuple):
    """Events by key, each key in the order of time."""

    table: Any
    group: Ints
    key: Ints
    """numbers of the keys, ascending"""
    low: Ints
    high: Ints


class Segments(NamedTuple):
    """Touches, by pattern and row, and the segments with a possible detection."""

    pattern: Ints
    """by segment"""
    start: Ints
    end: Ints
    until: Ints
    """by segment: the time that is known to pass behind it"""
    row: Ints
    """by touch"""
    bits: Bits
    """by touch: the names of the event in the pattern"""


def arranged(prepared: Prepared, table: Any, *, after: int = -NEVER) -> Rows:
    """Return the rows by key and time, and by the columns of ties.

    With columns of ties, events of a key have different times afterwards, all later than `after`: each at least a
    microsecond after the event before, as in a node.
    """
    group = table[GROUP].to_numpy().astype(np.int64)
    low, high = table[LOW].to_numpy(), table[HIGH].to_numpy()
    key = _keys(prepared, table, group)
    order = np.lexsort((low, high, key, group))
    tied = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in (group, key, low, high):
        tied &= np.diff(column[order]) == 0
    if tied.any():
        order = _untied(table, order, tied)
    group, key, low, high = (column[order] for column in (group, key, low, high))
    new = np.concatenate([[True], (np.diff(key) != 0) | (np.diff(group) != 0)]) if len(order) else np.zeros(0, bool)
    # not only if rows are tied: intervals of the same end may begin at different times
    if any(name.startswith(TIE) for name in table.schema.names):
        points = low == high
        high = _apart(high, new, after)
        low = np.where(points, high, low)
    return Rows(table.take(pa.array(order)), group, np.cumsum(new), low, high)


def _keys(prepared: Prepared, table: Any, group: Ints) -> Ints:
    """Return a number for each key; the keys of different groups may have the same numbers."""
    found = np.zeros(len(group), np.int64)
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        some = rows if len(rows) < len(group) else None
        codes = np.zeros(len(rows), np.int64)
        for path in prepared.keys[number]:
            column = table[FIELD + path]
            code = _codes(column if some is None else column.take(pa.array(some)))
            codes = code if not codes.any() else np.unique(codes * (code.max() + 1) + code, return_inverse=True)[1]
        found[rows] = codes
    return found


def _codes(column: Any) -> Ints:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pt.is_floating(column.type):
        column = pc.add(column, 0.0)  # -0.0 and 0.0 are one key
    return column.dictionary_encode().indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _untied(table: Any, order: Ints, tied: Any) -> Ints:
    """Return the order with equal times decided by the columns of ties, or else by the whole content."""
    at = np.flatnonzero(np.concatenate([tied, [False]]) | np.concatenate([[False], tied]))
    run = np.cumsum(np.concatenate([[True], ~tied]))[at]
    names = [name for name in table.schema.names if name.startswith(TIE)]
    rest = sorted({name for name in table.schema.names if name.startswith((FIELD, KEPT))})
    ranks = [_ranks(table[name].take(pa.array(order[at]))) for name in (*names, *rest)]
    order = order.copy()
    order[at] = order[at][np.lexsort([*(rank for rank in reversed(ranks) if rank is not None), run])]
    return order


def _ranks(column: Any) -> Ints | None:
    """Return the places of values in order; values without an order are compared as texts."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pt.is_nested(column.type):
        column = pa.array([repr(value) for value in column.to_pylist()], pa.string())
    if pt.is_null(column.type):
        return None
    if pt.is_boolean(column.type):
        column = column.cast(pa.int8())
    return pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _apart(high: Ints, new: Any, after: int) -> Ints:
    """Return rising times within each key, the first after a time, each as small as possible."""
    wrong = np.concatenate([np.flatnonzero((np.diff(high) <= 0) & ~new[1:]) + 1, np.flatnonzero(new & (high <= after))])
    if not len(wrong):
        return high
    found = high.copy()
    starts = np.append(np.flatnonzero(new), len(high))
    for number in np.unique(np.searchsorted(starts, wrong, "right") - 1):
        start, end = starts[number], starts[number + 1]
        places = np.arange(end - start)
        found[start:end] = np.maximum.accumulate(np.maximum(high[start:end] - places, after + 1)) + places
    return found


def segments(prepared: Prepared, rows: Rows, until: int) -> Segments:
    """Return the segments with a possible detection, when time goes on to `until` behind the last event."""
    pattern, row, bit = _touches(prepared, rows)
    order = np.argsort(pattern, kind="stable")
    pattern, row, bits = pattern[order], row[order], np.left_shift(np.uint64(1), bit[order].astype(np.uint64))
    if not len(row):
        none = np.zeros(0, np.int64)
        return Segments(none, none, none, none, none, bits)
    first = np.concatenate([[True], (np.diff(pattern) != 0) | (np.diff(row) != 0)])
    if not first.all():
        places = np.flatnonzero(first)
        pattern, row, bits = pattern[places], row[places], np.bitwise_or.reduceat(bits, places)
    shapes, key, high = prepared.table, rows.key[row], rows.high[row]
    width = shapes.window[pattern]
    window = np.where(width > 0, high // np.maximum(width, 1), 0)
    other = (np.diff(pattern) != 0) | (np.diff(key) != 0) | (np.diff(window) != 0)
    silent = np.diff(high) > shapes.lifetime[pattern[1:]]
    start = np.concatenate([[0], np.flatnonzero(other | silent) + 1])
    end = np.append(start[1:], len(row))
    followed = np.append(~other[end[:-1] - 1], False)  # by an event of the same key, after a silence
    later = high[np.minimum(end, len(row) - 1)]
    passed = np.where(
        followed, later, np.where(width[start] > 0, np.minimum((window[start] + 1) * width[start], until), until)
    )
    names, of = np.bitwise_or.reduceat(bits, start), pattern[start]
    keep = (names & shapes.starts[of] != 0) & (end - start >= shapes.events[of])
    for column in range(shapes.clauses.shape[1]):
        keep &= names & shapes.clauses[of, column] != 0
    return Segments(of[keep], start[keep], end[keep], passed[keep], row, bits)


def _touches(prepared: Prepared, rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Return patterns, rows and bits: an item for each row, pattern of a matching atom, and name."""
    lists = rows.table[ATOMS]
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    counts = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    atoms, at = lists.flatten().to_numpy().astype(np.int64), np.repeat(np.arange(len(counts)), counts)
    of = rows.group[at]
    found = []
    for number in np.unique(rows.group):
        mine = slice(None) if rows.group[0] == rows.group[-1] else of == number
        entries = prepared.entries(int(number))
        places, which = entries.spread(atoms[mine])
        found.append((entries.first[places], at[mine][which], entries.second[places]))
    if not found:
        return tuple(np.zeros(0, np.int64) for _ in range(3))  # type: ignore[return-value]
    pattern, row, bit = (np.concatenate(side) for side in zip(*found, strict=True))
    return pattern, row, bit


def forever(until: int | None) -> int:
    """Return the time up to which timers strike behind the last event; none strike without a time."""
    return -NEVER if until is None else until
