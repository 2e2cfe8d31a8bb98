"""The key of an event: the value of a field, by which the members of a session share the events."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from fieldfare.core.state import Pending
from fieldfare.events import msgpack
from fieldfare.events.limits import EventError
from fieldfare.protocol.journal import JournalEntry


def key_of(event: bytes, field: str) -> Hashable:
    """Return the value of a field, addressed by a dotted path; None if the event has no such field.

    >>> from fieldfare.events.event import Event
    >>> event = msgpack.encode(Event({"order": {"account": "a7"}, "lines": [1, 2]}))
    >>> key_of(event, "order.account"), key_of(event, "price")
    ('a7', None)
    """
    try:
        value = msgpack.decode(event).get(field)
    except EventError:
        return None
    try:
        hash(value)
    except TypeError:  # an object, or a list of objects
        return repr(value)
    return value


def keys_of(
    waiting: Iterable[tuple[int, Pending]], entries: Mapping[int, JournalEntry], field: str
) -> dict[int, Hashable]:
    """Return the keys of deliveries by number; an event lost from the log has no key."""
    found: dict[int, Hashable] = {}
    for number, pending in waiting:
        entry = entries.get(pending.position)
        found[number] = None if entry is None else key_of(entry.event, field)
    return found
