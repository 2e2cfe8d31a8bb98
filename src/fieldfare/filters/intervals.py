r"""`Intervals`: an exact set of values of an ordered kind, as a sorted list of cuts.

A cut lies just below a value, `(v, 0)`, or just above, `(v, 1)`; membership toggles at every cut. `[1, 5)` is inside
between the cuts `(1, 0)` and `(5, 0)`, the point 7 between `(7, 0)` and `(7, 1)`, and the complement of a set has the
same cuts and the opposite start. Every operation is a single walk over two sorted lists.

Numbers are dense. Strings, bytes and timestamps are not: the next string after "a" is "a\0". Cuts of these kinds are
always moved just below the successor, which makes the list of cuts a normal form for every kind.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from fieldfare.events.values import Interval, Ordered

Cut: TypeAlias = tuple[Any, int]
"""A place between values: `(v, 0)` is just below v, `(v, 1)` just above."""

_BOTTOMS: Final[frozenset[Cut]] = frozenset({(-math.inf, 0), ("", 0), (datetime.min.replace(tzinfo=UTC), 0), (b"", 0)})
_TOPS: Final[frozenset[Cut]] = frozenset({(math.inf, 1), (datetime.max.replace(tzinfo=UTC), 1)})
"""cuts below and above all values, which are left out"""
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Intervals:
    """A union of disjoint intervals; equal sets have equal `Intervals`.

    >>> low, high = interval(1, 5), interval(5, None, closed="(]")
    >>> (low | high) == interval(1, None)
    True
    >>> 3 in low, 3 in ~low, (low & high).is_empty
    (True, False, True)
    """

    start: bool
    """whether the bottom of the order is inside"""
    cuts: tuple[Cut, ...]

    @property
    def is_empty(self) -> bool:
        """Tell whether the set has no value."""
        return not self.cuts and not self.start

    @property
    def is_full(self) -> bool:
        """Tell whether the set has every value of the kind."""
        return not self.cuts and self.start

    def __contains__(self, value: object) -> bool:
        return self.start ^ (bisect_right(self.cuts, (value, 0)) & 1 == 1)

    def __invert__(self) -> Intervals:
        return Intervals(not self.start, self.cuts)

    def __or__(self, other: Intervals) -> Intervals:
        if not self.cuts:  # everything or nothing, as most are: no need to walk
            return self if self.start else other
        if not other.cuts:
            return other if other.start else self
        return self if self == other else _walk(self, other, threshold=1)

    def __and__(self, other: Intervals) -> Intervals:
        if not self.cuts:
            return other if self.start else self
        if not other.cuts:
            return self if other.start else other
        return self if self == other else _walk(self, other, threshold=2)

    def __sub__(self, other: Intervals) -> Intervals:
        return self & ~other

    def __ge__(self, other: Intervals) -> bool:
        """Tell whether every piece of the other set lies in a piece of this set; no new set is made."""
        if not self.cuts:
            return self.start or other.is_empty
        cuts, start = self.cuts, self.start
        for low, high in other.pieces():
            at = 0 if low is None else bisect_right(cuts, low)
            if start ^ (at & 1 == 0) or (at < len(cuts) and (high is None or cuts[at] < high)):
                return False
        return True

    def overlaps(self, other: Intervals) -> bool:
        """Tell whether some value is in both sets; no new set is made."""
        if not self.cuts or not other.cuts:
            return not (self & other).is_empty
        few, many = (self, other) if len(self.cuts) < len(other.cuts) else (other, self)
        cuts, start = many.cuts, many.start
        for low, high in few.pieces():
            at = 0 if low is None else bisect_right(cuts, low)
            if start ^ (at & 1 == 1) or (at < len(cuts) and (high is None or cuts[at] < high)):
                return True
        return False

    def pieces(self) -> Iterator[tuple[Cut | None, Cut | None]]:
        """Yield the maximal intervals in order, each as a pair of cuts; None is the end of the order."""
        edges = [*([None] if self.start else []), *self.cuts]
        ends: Iterator[Cut | None] = iter(edges)
        for low in ends:
            yield low, next(ends, None)

    def points(self) -> list[Any] | None:
        """Return the values if the set is a finite list of values, else None.

        >>> points(["", "a"]).points(), points([-math.inf, math.inf]).points(), interval(1, 2).points()
        (['', 'a'], [-inf, inf], None)
        """
        found = [point(low, high) for low, high in self.pieces()]
        return None if None in found else [value[0] for value in found if value is not None]


EMPTY: Final = Intervals(False, ())
FULL: Final = Intervals(True, ())


def point(low: Cut | None, high: Cut | None) -> tuple[Any] | None:
    """Return the single value between two cuts in a tuple, or None if there are more."""
    if low is None:  # only the very first value is possible
        return next(((first,) for first, _ in _BOTTOMS if high == _above(first)), None)
    if high is None:  # only the very last value is possible
        return (low[0],) if low[1] == 0 and (low[0], 1) in _TOPS else None
    return (low[0],) if low[1] == 0 and high == _above(low[0]) else None


def successor(value: Any) -> Any:
    """Return the next value of a kind with successors, or None (numbers are dense; the last timestamp has none)."""
    if isinstance(value, (int, float)):
        return None
    if isinstance(value, str):
        return value + "\0"
    if isinstance(value, bytes):
        return value + b"\0"
    if isinstance(value, datetime):
        try:
            return value + _TICK
        except OverflowError:
            return None
    return None


def _above(value: Any) -> Cut:
    """Return the cut just above a value, in normal form."""
    following = successor(value)
    return (value, 1) if following is None else (following, 0)


def interval(low: Ordered | None, high: Ordered | None, closed: str = "[]") -> Intervals:
    """Return all values between two ends of a kind; None is unbounded. Empty if the ends are the wrong way round."""
    start = True
    cuts: tuple[Cut, ...] = ()
    if low is not None:
        cut = (low, 0) if closed[0] == "[" else _above(low)
        if cut in _TOPS or low != low:  # NaN lies in no interval
            return EMPTY
        if cut not in _BOTTOMS:
            start, cuts = False, (cut,)
    if high is not None:
        cut = _above(high) if closed[1] == "]" else (high, 0)
        if cut in _BOTTOMS or high != high or (cuts and cut <= cuts[0]):
            return EMPTY
        if cut not in _TOPS:
            cuts = (*cuts, cut)
    return Intervals(start, cuts)


def of_interval(value: Interval) -> Intervals:
    """Return the points of an interval in an event."""
    return interval(value.low, value.high, value.closed)


def points(values: Iterable[Ordered]) -> Intervals:
    """Return the set of the given values, without NaN."""
    listed = list(values)
    if len(listed) < 2:
        return interval(listed[0], listed[0]) if listed else EMPTY
    cuts: list[Cut] = []
    for value in sorted(dict.fromkeys(value for value in listed if value == value)):  # NaN is no point
        low = (value, 0)
        if cuts and cuts[-1] == low:  # the successor of the value before
            cuts.pop()
        else:
            cuts.append(low)
        cuts.append(_above(value))
    start = bool(cuts) and cuts[0] in _BOTTOMS
    end = len(cuts) - (bool(cuts) and cuts[-1] in _TOPS)
    return Intervals(start, tuple(cuts[start:end]))


def prefix(text: str) -> Intervals:
    """Return all strings that begin with `text`: a half-open interval."""
    return interval(text, after_prefix(text), closed="[)")


def after_prefix(text: str) -> str | None:
    """Return the first string after all strings that begin with `text`, or None if there is none."""
    stripped = text.rstrip("\U0010ffff")
    if not stripped:
        return None
    following = ord(stripped[-1]) + 1
    if following == 0xD800:  # surrogates occur in no string that UTF-8 can carry
        following = 0xE000
    return stripped[:-1] + chr(following)


def _walk(a: Intervals, b: Intervals, threshold: int) -> Intervals:
    """Return the values inside at least `threshold` of the two sets: 1 is union, 2 is intersection."""
    left, right = a.cuts, b.cuts
    inside = [a.start, b.start]
    start = now = a.start + b.start >= threshold
    cuts: list[Cut] = []
    i = j = 0
    while i < len(left) or j < len(right):
        if j == len(right) or (i < len(left) and left[i] <= right[j]):
            cut = left[i]
        else:
            cut = right[j]
        if i < len(left) and left[i] == cut:
            inside[0] = not inside[0]
            i += 1
        if j < len(right) and right[j] == cut:
            inside[1] = not inside[1]
            j += 1
        after = inside[0] + inside[1] >= threshold
        if after != now:
            cuts.append(cut)
            now = after
    return Intervals(start, tuple(cuts))
