"""Keys: 64-bit integers that stand for values, in the order of the values where order matters."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fieldfare.filters.valueset import Atom

MISSING_KEY: Final = -(2**63)
"""the key of a column without a value in the event"""
WILD_KEY: Final = 2**63 - 1
"""the key of a value that is no point (a list, an interval, an integer too long for a float) and may be any value"""
UNKNOWN_KEY: Final = -2
"""the key of a string that no filter mentions"""
LOWEST, HIGHEST = MISSING_KEY + 1, WILD_KEY - 1

TAG, NUMBER, STRING, TIME, PREFIX, SUFFIX = range(6)
"""roles of columns"""
RANGE, SET, NOT_RANGE, NOT_SET = range(4)
"""kinds of predicates; the last two are true of a missing key"""
OPEN_LOW, OPEN_HIGH, ALONE = 1, 2, 4
"""flags of a predicate: the range was open at an end; the branch has no alternative for the attribute"""

NULL_TAG, FALSE_TAG, TRUE_TAG, NAN_TAG, LIST_TAG, OBJECT_TAG, NUMBER_TAG, STRING_TAG, TIME_TAG, BYTES_TAG = range(1, 11)
ATOM_TAGS: Final = {
    Atom.NULL: NULL_TAG, Atom.FALSE: FALSE_TAG, Atom.TRUE: TRUE_TAG, Atom.NAN: NAN_TAG, Atom.LIST: LIST_TAG,
    Atom.OBJECT: OBJECT_TAG,
}  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_INTEGER: Final = struct.Struct("<q")
_FLOAT: Final = struct.Struct("<d")


def number_key(value: float) -> int:
    """Return a 64-bit integer that orders as the floats do."""
    bits: int = _INTEGER.unpack(_FLOAT.pack(value + 0.0))[0]  # + 0.0 turns -0.0 into 0.0
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def number_of_key(key: int) -> float:
    """Return the float of a key."""
    value: float = _FLOAT.unpack(_INTEGER.pack(key if key >= 0 else key ^ 0x7FFFFFFFFFFFFFFF))[0]
    return value


def time_key(value: datetime) -> int:
    """Return the microseconds from 1970 to a timestamp."""
    return (value - _EPOCH) // _TICK


def time_of_key(key: int) -> datetime:
    """Return the timestamp of a key."""
    return _EPOCH + key * _TICK


def key_range(role: int, low: Any, high: Any) -> tuple[int, int, bool, int]:
    """Return the first and last key between two cuts, whether the range is exact, and the open ends."""
    if role == TIME:
        first = LOWEST if low is None else time_key(low[0])
        return first, HIGHEST if high is None else time_key(high[0]) - (high[1] == 0), True, 0
    first, last, exact, how = LOWEST, HIGHEST, True, 0
    if low is not None:
        near = _nearest(low[0])
        exact &= near == low[0]
        how |= OPEN_LOW if low[1] else 0
        first = number_key(near) + (1 if low[1] and near == low[0] else 0)
    if high is not None:
        near = _nearest(high[0])
        exact &= near == high[0]
        how |= 0 if high[1] else OPEN_HIGH
        last = number_key(near) - (1 if not high[1] and near == high[0] else 0)
    return first, last, exact, how


def key_ranges(role: int, cuts: Sequence[tuple[Any, int]]) -> list[tuple[int, int, bool, int]]:
    """Return the results of `key_range` for all pieces between cuts, with a single key for each cut."""
    if role == TIME:
        edges = [None, *cuts, None]
        return [key_range(role, edges[i], edges[i + 1]) for i in range(len(edges) - 1)]
    pieces: list[tuple[int, int, bool, int]] = []
    first, exact, how = LOWEST, True, 0
    for value, above in cuts:
        near = _nearest(value)
        same = near == value
        key = number_key(near)
        pieces.append((first, key - (same and not above), exact and same, how if above else how | OPEN_HIGH))
        first, exact, how = key + (same and above > 0), same, OPEN_LOW if above else 0
    pieces.append((first, HIGHEST, exact, how))
    return pieces


def _nearest(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf if value > 0 else -math.inf
