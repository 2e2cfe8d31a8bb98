"""Interval time stamps, their two orders, and occurrences: events with a stamp, as detectors take them in.

A stamp says when an event happened, from `low` to `high`, in microseconds: the uncertainty of a clock, or the duration
of a composite event. The *partial* order (`before`) wants disjoint intervals; the *total* order compares the ends, then
the beginnings, then source and number of the events. Inputs of a detector are sorted by the total order.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from fieldfare.events.event import Event
from fieldfare.events.values import Interval

SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

Key: TypeAlias = "tuple[int, int, int, str, int]"
"""Place in the total order: end, beginning, 0 for an event and 1 for a time event, source, number."""


class Stamp(NamedTuple):
    """An interval of time in microseconds, both ends included.

    >>> Stamp(1, 4).before(Stamp(5, 6)), Stamp(1, 5).before(Stamp(5, 6))
    (True, False)
    >>> Stamp(2, 5).precedes(Stamp(1, 6)), Stamp(1, 6).precedes(Stamp(2, 6))
    (True, True)
    """

    low: int
    high: int

    def before(self, other: Stamp) -> bool:
        """Tell whether the whole interval lies earlier: the partial order, of strong transitions."""
        return self.high < other.low

    def precedes(self, other: Stamp) -> bool:
        """Tell whether the interval ends earlier, or ends together and begins earlier: the total order."""
        return (self.high, self.low) < (other.high, other.low)

    def span(self, other: Stamp) -> Stamp:
        """Return the smallest interval around both."""
        return Stamp(min(self.low, other.low), max(self.high, other.high))


class Occurrence(NamedTuple):
    """An event at a place in the total order. `event` may be any mapping of flat fields; detectors keep no copy."""

    low: int
    high: int
    event: Mapping[str, Any]
    source: str = ""
    number: int = 0

    @property
    def key(self) -> Key:
        """The place of the occurrence in the total order."""
        return (self.high, self.low, 0, self.source, self.number)

    @property
    def stamp(self) -> Stamp:
        """The interval without the event."""
        return Stamp(self.low, self.high)


def microseconds(when: datetime | float) -> int:
    """Return a point in time as microseconds since the epoch; a number counts seconds.

    >>> microseconds(1.5), microseconds(datetime(1970, 1, 2, tzinfo=UTC))
    (1500000, 86400000000)
    """
    if isinstance(when, datetime):
        return (when - _EPOCH) // _MICROSECOND
    return round(when * SECOND)


def moment(microseconds: int) -> datetime:
    """Return microseconds since the epoch as a timestamp, the inverse of `microseconds`."""
    return _EPOCH + timedelta(microseconds=microseconds)


def occurrence(
    event: Mapping[str, Any], now: float, *, uncertainty: float = 0.0, source: str = "", number: int = 0
) -> Occurrence:
    """Return an event with a stamp: the period of validity, else the field `time`, else the time `now`.

    A point in time gets the uncertainty of the clock, in seconds, on both sides.
    """
    valid = event.valid if isinstance(event, Event) else None
    if isinstance(valid, Interval) and isinstance(valid.low, datetime) and isinstance(valid.high, datetime):
        return Occurrence(microseconds(valid.low), microseconds(valid.high), event, source, number)
    time = event.get("time")
    middle = microseconds(time if isinstance(time, datetime) else now)
    wide = round(uncertainty * SECOND)
    return Occurrence(middle - wide, middle + wide, event, source, number)
