"""`MobileSession`: the state of a client at a broker, which another broker can take over.

Deliveries have numbers that go on wherever the session goes. They are kept until the client acknowledges them: a
delivery to a client that had just left is sent again. During a move the old and the new broker both get the client's
events for a while; `merged` makes a single session of the old session and of the events which the new broker has
buffered, exactly once and in the order of each publisher.

That takes little memory: on an overlay without cycles all events which a publisher publishes at the same place come in
order, so the highest count stands for all events before. A later event with a lower count was either received or never
due: it was overtaken because the subscription was not yet in force on its way. Events of a moving publisher may
overtake each other; so places are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from fieldfare.events.event import fields_of
from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import Deliver

Publisher: TypeAlias = tuple[str, str]
"""a publisher, and the broker that counts its events if the publisher does not"""
Stream: TypeAlias = tuple[str, str, str]
"""a publisher, the broker that counts, and the broker of publication: events of a stream come in order"""


class MobileSession(msgspec.Struct):
    """The filters of a client, its pending deliveries, and the highest count of each stream.

    >>> from fieldfare import Event
    >>> session, event = MobileSession(), Deliver(Event({"a": 1}), "ana", 1, ("x",))
    >>> session.accept(event).number
    1
    >>> merged(session, [(event, "")]).pending == session.pending  # the other broker had got it, too
    True
    """

    subscriptions: dict[str, Filter] = {}
    advertisements: dict[str, Filter] = {}
    pending: list[Deliver] = []
    """numbered deliveries that are not acknowledged"""
    last: int = 0
    """the highest delivery number"""
    highest: dict[Stream, int] = {}
    """the highest count of each stream"""
    floor: dict[Stream, int] = {}
    """the counts at the arrival of the session: events up to them are old"""

    def accept(self, delivery: Deliver, place: str = "") -> Deliver | None:
        """Number and keep the delivery of an event from a place; None for an old event."""
        stream = delivery.publisher, delivery.by, place
        if delivery.sequence <= self.floor.get(stream, -1):
            return None
        self.highest[stream] = max(delivery.sequence, self.highest.get(stream, -1))
        self.last += 1
        numbered = msgspec.structs.replace(delivery, number=self.last)
        self.pending.append(numbered)
        return numbered

    def acknowledge(self, number: int) -> None:
        """Drop the deliveries up to a number, which the client has received."""
        self.pending = [delivery for delivery in self.pending if delivery.number > number]


def merged(session: MobileSession, buffered: Iterable[tuple[Deliver, str]]) -> MobileSession:
    """Return a session from another broker together with the deliveries buffered here, each with its place."""
    here = msgspec.structs.replace(
        session, pending=list(session.pending), highest=dict(session.highest), floor=dict(session.highest)
    )
    for delivery, place in buffered:
        here.accept(delivery, place)
    return here


def deliveries_due(session: MobileSession, subscriptions: Mapping[str, Filter]) -> list[Deliver]:
    """Return the deliveries to send (again) to a client with these subscriptions, which may have changed since."""
    found = []
    for delivery in session.pending:
        fields = fields_of(delivery.event)
        ids = tuple(id for id, filter in subscriptions.items() if filter.matches_fields(fields))
        if ids:
            found.append(msgspec.structs.replace(delivery, subscriptions=ids))
    return found
