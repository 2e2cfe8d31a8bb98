"""Values of fields: their kinds, intervals and timestamps, and the meaning of "equal", "less" and "missing".

A value is null, a bool, a 64-bit integer, a float, a string, a timestamp (aware, to the microsecond), bytes, an
`Interval` of ordered values, or a list of values. Python compares values exactly as Fieldfare does: `1 == 1.0`, `2**53
+ 1 != float(2**53)`, `-0.0 == 0.0`, NaN equals nothing, strings order by code point. The only trap is `True == 1` in
Python; every comparison here therefore looks at the `Kind` first.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class Missing(enum.Enum):
    """The type of `MISSING`, the value of an absent field. A missing field is not the same as a null."""

    MISSING = "MISSING"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


class Kind(enum.Enum):
    """The type class of a value; values of different kinds are never equal and never ordered."""

    NULL = "null"
    BOOL = "bool"
    NUMBER = "number"
    STRING = "string"
    TIME = "timestamp"
    BYTES = "bytes"
    LIST = "list"
    OBJECT = "object"
    INTERVAL = "interval"


Ordered: TypeAlias = int | float | str | datetime | bytes
Scalar: TypeAlias = bool | Ordered | None
ORDERED_KINDS: Final = frozenset({Kind.NUMBER, Kind.STRING, Kind.TIME, Kind.BYTES})

_KINDS: Final[dict[type, Kind]] = {
    type(None): Kind.NULL,
    bool: Kind.BOOL,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    datetime: Kind.TIME,
    bytes: Kind.BYTES,
    tuple: Kind.LIST,
    list: Kind.LIST,
    dict: Kind.OBJECT,
}


def kind_of(value: object) -> Kind | None:
    """Return the kind of a value, or None if no field can hold the value."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, Mapping):
        return Kind.OBJECT
    for base, kind in _KINDS.items():  # subclasses: enums over str or int, pandas timestamps
        if isinstance(value, base):
            return kind
    return None


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of numbers, strings, timestamps or bytes, for events covering a subspace instead of a point.

    An end of None is unbounded.

    >>> Interval(100, 110)
    Interval('[100, 110]')
    >>> Interval(100, None, closed="[)")
    Interval('[100, ∞)')
    """

    low: Ordered | None
    high: Ordered | None
    closed: str = "[]"

    def __post_init__(self) -> None:
        if self.closed not in ("[]", "[)", "(]", "()"):
            raise ValueError(f"closed must be one of '[]', '[)', '(]', '()', not {self.closed!r}")
        for name in ("low", "high"):
            if isinstance(end := getattr(self, name), datetime):
                object.__setattr__(self, name, utc(end))
        ends = [end for end in (self.low, self.high) if end is not None]
        if not ends:
            raise ValueError("an interval needs at least one end, or its kind is unknown")
        kinds = {kind_of(end) for end in ends}
        if len(kinds) > 1 or not kinds <= ORDERED_KINDS:
            given = ", ".join(repr(end) if kind_of(end) in ORDERED_KINDS else type(end).__name__ for end in ends)
            raise ValueError(f"the ends of an interval must be two numbers, strings, timestamps or bytes: {given}")
        if any(end != end for end in ends):
            raise ValueError("NaN lies in no interval and cannot end one")
        if None not in (self.low, self.high) and (
            self.low > self.high  # type: ignore[operator]  # one kind, checked above
            or (self.low == self.high and self.closed != "[]")
        ):
            raise ValueError(f"the interval {self!r} is empty")

    @property
    def kind(self) -> Kind:
        """The kind of the two ends, which is the same for both."""
        kind = kind_of(self.low if self.low is not None else self.high)
        assert kind is not None
        return kind

    def __repr__(self) -> str:
        low = "-∞" if self.low is None else repr(self.low)
        high = "∞" if self.high is None else repr(self.high)
        left = "(" if self.low is None else self.closed[0]
        right = ")" if self.high is None else self.closed[1]
        return f"Interval('{left}{low}, {high}{right}')"


_KINDS[Interval] = Kind.INTERVAL

Value: TypeAlias = "Scalar | Interval | tuple[Value, ...] | Mapping[str, Value]"


def utc(value: datetime) -> datetime:
    """Return the same instant in UTC; ValueError for a naive datetime, which names no instant."""
    if value.tzinfo is UTC and type(value) is datetime:
        return value
    if value.utcoffset() is None:
        raise ValueError(f"the timestamp {value.isoformat()} has no time zone; say which, such as +00:00")
    try:
        there = value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"the timestamp {value.isoformat()} lies outside the years 1 to 9999 in UTC") from None
    if type(there) is datetime:
        return there
    return datetime.combine(there.date(), there.time(), UTC)  # subclasses, such as pandas', keep more than microseconds


_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def parse_timestamp(text: str) -> datetime:
    """Parse an RFC 3339 timestamp, to the microsecond.

    >>> parse_timestamp("2026-11-15T09:30:00.5+01:00").isoformat()
    '2026-11-15T08:30:00.500000+00:00'
    """
    if not _RFC3339.fullmatch(text):  # `fromisoformat` takes much else: week dates, no colons, no seconds
        raise ValueError(f"{text[:40]!r} is not an RFC 3339 timestamp such as 2026-11-15T09:30:00Z")
    return utc(datetime.fromisoformat(text.upper()))


def format_timestamp(value: datetime) -> str:
    """Return a timestamp as RFC 3339, in UTC, with as many fractional digits as needed."""
    text = utc(value).isoformat().removesuffix("+00:00")
    return (text.rstrip("0") if "." in text else text) + "Z"
