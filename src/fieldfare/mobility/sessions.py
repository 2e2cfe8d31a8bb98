"""`MobileSession`: all that a client is to a broker, so that another broker can go on in its place.

Deliveries have numbers that go on wherever the session goes. They are kept until the client acknowledges them: what was
sent to a client that had just gone is sent again. When a client moves, its old and its new broker both get its events
for a while; `merged` makes one session of the old one's and of what the new one has put buffered, exactly once and in
the order of each publisher.

That takes little memory: on an overlay without cycles all that a publisher publishes at one place comes in order, so
its highest count stands for all events before it. An event below it that comes later was either had or never due: it
has been overtaken because the subscription was not in force yet on its way. Events of a publisher that moves may
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
"""a publisher, and the broker that counts its events if it does not do so itself"""
Stream: TypeAlias = tuple[str, str, str]
"""the same, and the broker where it publishes: such events come in order"""


class MobileSession(msgspec.Struct):
    """What a client wants and promises, what it has not got yet, and how far it has heard whom.

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
    """with numbers, and not acknowledged"""
    last: int = 0
    """the highest number so far"""
    highest: dict[Stream, int] = {}
    """the highest count of each"""
    floor: dict[Stream, int] = {}
    """the same, as it was when the session came here: what is not above that is no news"""

    def accept(self, delivery: Deliver, place: str = "") -> Deliver | None:
        """Number a delivery of an event that was published at a place, and keep it; None if it is no news."""
        stream = delivery.publisher, delivery.by, place
        if delivery.sequence <= self.floor.get(stream, -1):
            return None
        self.highest[stream] = max(delivery.sequence, self.highest.get(stream, -1))
        self.last += 1
        numbered = msgspec.structs.replace(delivery, number=self.last)
        self.pending.append(numbered)
        return numbered

    def acknowledge(self, number: int) -> None:
        """The client has got all deliveries up to a number."""
        self.pending = [delivery for delivery in self.pending if delivery.number > number]


def merged(session: MobileSession, buffered: Iterable[tuple[Deliver, str]]) -> MobileSession:
    """A session that has come from elsewhere, with what was put buffered for it here, each with its place."""
    here = msgspec.structs.replace(
        session, pending=list(session.pending), highest=dict(session.highest), floor=dict(session.highest)
    )
    for delivery, place in buffered:
        here.accept(delivery, place)
    return here


def deliveries_due(session: MobileSession, subscriptions: Mapping[str, Filter]) -> list[Deliver]:
    """What is to be sent (again) to a client that wants this now: it may have changed its mind since it was kept."""
    found = []
    for delivery in session.pending:
        fields = fields_of(delivery.event)
        ids = tuple(id for id, filter in subscriptions.items() if filter.matches_fields(fields))
        if ids:
            found.append(msgspec.structs.replace(delivery, subscriptions=ids))
    return found
