"""Handover by events alone: the brokers between the old and the new broker need not know of moves.

The broker of a client subscribes to *pings* for the client. The next broker subscribes to the client's filters and to a
*pong*, and publishes a ping repeatedly until the pong comes: then its subscriptions are in force on the way between the
two, because they came earlier. Under advertisements, pings and pongs must be advertised first. They have a `type` of
their own, so that publishers of other types need not know them.

The protocol is safe on overlays without cycles. On others a pong proves nothing, because events may take another way
than pongs.
"""

from __future__ import annotations

from typing import Final

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.mobility.subscriber_messages import MoveUpdate
from fieldfare.mobility.subscribers import Subscribers, SubscriberVisit
from fieldfare.protocol.messages import Advertise, Deliver, Leave, Publish, Send, Subscribe

PING: Final = "fieldfare_ping"
PONG: Final = "fieldfare_pong"
_MOVES: Final = "moves"
_SOURCE: Final = "pinged for "
_TARGET: Final = "pinging for "
"""names of the broker as a client of its own, followed by the name of the moving client; at the target also by the
number of the visit"""


class PingPong(Subscribers):
    """Handover with pings for a client at its old broker, and pongs for a visit at the new broker."""

    def __init__(self, *, every: float = 0.1) -> None:
        """Make the part; pings are repeated every `every` seconds."""
        super().__init__()
        self.every = every
        self._pings: dict[tuple[str, int], tuple[float, Event]] = {}

    # The source

    def visit_begun(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Subscribe to pings, because the client may move on at once."""
        return self._set_up(_SOURCE + client, PING, PONG, f"{client}@{self.base.name}", now)

    def visit_ended(self, client: str, now: float) -> list[Send]:
        """End the subscription to pings for a client."""
        return self.base.submit(Leave(), _SOURCE + client, now)

    # The target

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Subscribe to the pong, and publish the first ping."""
        id = f"{client}@{visit.source}"
        ping = Event({"type": PING, PING: id, _MOVES: visit.number})
        self._pings[client, visit.number] = now + self.every, ping
        name = f"{_TARGET}{visit.number} {client}"
        return self._set_up(name, PONG, PING, id, now) + self.base.submit(Publish(ping), name, now)

    def session_arrived(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """End the pings and pongs of a visit."""
        self._pings.pop((client, visit.number), None)
        return self.base.submit(Leave(), f"{_TARGET}{visit.number} {client}", now)

    def visit_abandoned(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Tell the source that no pings will come."""
        asks = [Send(visit.source, MoveUpdate(client, visit.source, self.base.name, visit.number))]
        return (asks if (client, visit.number) in self._pings else []) + self.session_arrived(client, visit, now)

    @property
    def wakes(self) -> float | None:
        """The time of the next ping."""
        return min((time for time, _ in self._pings.values()), default=None)

    def tick(self, now: float) -> list[Send]:
        """Publish the pings that are due again."""
        sends: list[Send] = []
        for (client, number), (time, ping) in list(self._pings.items()):
            if time <= now:
                self._pings[client, number] = now + self.every, ping
                sends += self.base.submit(Publish(ping), f"{_TARGET}{number} {client}", now)
        return sends

    # Both

    def transform(self, send: Send, now: float) -> list[Send]:
        """Intercept pings and pongs, which are for no client."""
        for prefix, take in ((_SOURCE, self._pinged), (_TARGET, self._ponged)):
            if send.to.startswith(prefix):
                event = send.message.event if isinstance(send.message, Deliver) else Event({})
                return take(send.to.removeprefix(prefix), event, now)
        if isinstance(send.message, Deliver) and (PING in send.message.event or PONG in send.message.event):
            return []  # for a client that subscribes to all events
        return super().transform(send, now)

    def _pinged(self, client: str, event: Event, now: float) -> list[Send]:
        """Answer a ping, if the client was here before the visit in the ping."""
        moves = event.get(_MOVES)
        if not isinstance(moves, int) or all(
            visit.announced != moves - 1 for visit in self.visits.get(client, {}).values()
        ):
            return []
        return self.base.submit(Publish(Event({"type": PONG, PONG: event[PING], _MOVES: moves})), _SOURCE + client, now)

    def _ponged(self, name: str, event: Event, now: float) -> list[Send]:
        """Request the session at the first pong for a visit."""
        number, _, client = name.partition(" ")
        moves = int(number)
        if event.get(_MOVES) != moves or self._pings.pop((client, moves), None) is None:
            return []
        source = self.visits[client][moves].source
        return [Send(source, MoveUpdate(client, source, self.base.name, moves))]

    def _set_up(self, name: str, hears: str, says: str, id: str, now: float) -> list[Send]:
        """Subscribe to pings and advertise pongs, or the reverse."""
        sends = self.base.submit(Subscribe("hears", _about(hears, id)), name, now)
        if self.base.broker.strategy.advertisements is not None:
            sends += self.base.submit(Advertise("says", _about(says, id)), name, now)
        return sends


def _about(kind: str, id: str) -> Filter:
    quoted = id.replace("'", "''")
    return parse(f"type = '{kind}' AND {kind} = '{quoted}'")
