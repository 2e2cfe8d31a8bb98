"""`SideTable`: a part that keeps subscriptions beside the routing tables.

In a table with covering a larger filter makes neighbours forget smaller filters. Filters that change on their own, or
suddenly point elsewhere, would take others with them. So they are kept apart, and each event is matched with both
tables. A side table works with all strategies for overlays without cycles.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import ClassVar, NamedTuple

from fieldfare.events.event import Event
from fieldfare.mobility.broker import Base, Part
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Message, Send
from fieldfare.routing.routes import LOCAL


class Recipients(NamedTuple):
    """The clients and neighbours that get an event."""

    clients: Mapping[str, list[str]]
    """the ids of the matching subscriptions of each client"""
    neighbours: AbstractSet[str]


class SideTable(Part):
    """A part that sees all events; a broker can have a single side table."""

    handles: ClassVar[tuple[type[Message], ...]] = (m.Publish, m.Forward)

    def join(self, base: Base) -> None:
        """Attach the part to a broker whose overlay has no cycles."""
        if base.broker.strategy.overlay != "acyclic":
            raise ValueError("a side table is for overlays without cycles")
        super().join(base)
        self._count = 0

    def recipients(self, event: Event) -> Recipients:
        """Return the recipients of an event among the subscriptions of the part."""
        raise NotImplementedError

    def route(self, message: m.Publish | m.Forward, sender: str, now: float) -> list[Send]:
        """Send an event to all recipients, by the broker's tables and the part's."""
        if isinstance(message, m.Forward):
            return self._route_one(message, sender, now)
        broker = self.base.broker
        if broker.strategy.advertisements is not None and not broker.clients.may_publish(sender, message.event):
            return self.base.submit(message, sender, now)  # which refuses the event
        sequence, by = message.sequence, ""
        if sequence is None:  # the broker itself never gets to count
            self._count += 1
            sequence, by = (broker.life << 32) + self._count, broker.name
        return self._route_one(m.Forward(message.event, sender, sequence, by, broker.name), LOCAL, now)

    def _route_one(self, event: m.Forward, sender: str, now: float) -> list[Send]:
        sends: list[Send] = []
        for routed in self.base.broker.route([event], sender, now):
            mine = self.recipients(event.event)
            clients = {client: list(ids) for client, ids in routed.clients.items()}
            for client, ids in mine.clients.items():
                clients.setdefault(client, []).extend(ids)
            sends += [
                Send(client, m.Deliver(event.event, event.publisher, event.sequence, tuple(ids), event.by))
                for client, ids in clients.items()
            ]
            sends += [Send(one, event) for one in sorted({*mine.neighbours, *routed.neighbours} - {sender})]
        return self.base.transformed(sends, now)
