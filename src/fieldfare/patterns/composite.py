"""Composite events as ordinary events, for the filters of other subscriptions.

The type of a composite event is the expression. An event of type `ce:` and a hash of the expression carries the
interval, the expression, the name of the detector and all contributing events, nested as the pattern is. Fields that
the pattern selects stand beside, and ordinary filters work on all of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from fieldfare.events.event import Event
from fieldfare.events.limits import Limits
from fieldfare.patterns.machine import Match
from fieldfare.patterns.runs import Composite, Item
from fieldfare.patterns.stamps import moment

RESERVED: Final = frozenset(
    {"constituents", "detector", "expr", "id", "pattern", "source", "time", "ts_hi", "ts_lo", "type"}
)
"""Fields of every composite event, which a pattern cannot select under these names."""
_LIMITS: Final = Limits(fields=1 << 16)


def composite_type(expression: str) -> str:
    """Return the type of the composite events of a canonical expression.

    >>> composite_type("[A] ; [B]")
    'ce:ad71a662c048d8ff'
    """
    return "ce:" + blake2b(expression.encode(), digest_size=8).hexdigest()


def composite_event(
    match: Match, expression: str, *, name: str = "", detector: str = "", selected: Mapping[str, Any] | None = None
) -> Event:
    """Return the event for a detection of a pattern.

    Args:
        match: the detection.
        expression: the canonical text of the pattern.
        name: the name of the pattern.
        detector: the detecting node or job.
        selected: further fields.
    """
    fields: dict[str, Any] = {
        **(selected or {}),
        "type": composite_type(expression),
        "ts_lo": moment(match.stamp.low),
        "ts_hi": moment(match.stamp.high),
        "time": moment(match.stamp.high),
        "expr": expression,
        "detector": detector,
        "constituents": constituents(match.items),
    }
    if name:
        fields["pattern"] = name
    return Event(fields, limits=_LIMITS)


def constituents(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return items as nested lists: an event with a name, or the events of a part with an interval."""
    found: list[dict[str, Any]] = []
    for name, what in items:
        if isinstance(what, Composite):
            inner = constituents(what.items)
            found.append({"ts_lo": moment(what.low), "ts_hi": moment(what.high), "constituents": inner})
        else:
            event = what.event
            tree = dict(event.tree) if isinstance(event, Event) else dict(event)
            found.append({"name": name, "ts_lo": moment(what.low), "ts_hi": moment(what.high), "event": tree})
    return found
