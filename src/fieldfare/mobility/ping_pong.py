"""Handover by nothing but events: brokers that know of no moves can be between the old and the new one.

The broker of a client subscribes to *pings* for it. The next one subscribes to all that the client wants and to
a *pong*, and publishes a ping again and again until the pong comes: then its subscriptions are in force on the way
between the two, for they were there before. Under advertisements, pings and pongs have to be advertised first. They
have a `type` of their own, so that nobody who promises events of other types has to know of them.

It is safe on overlays without cycles. On others a pong proves nothing, since events may take another way than pongs.
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
"""how the broker is called as a client of its own, with the client's name behind; at the target also the visit's"""


class PingPong(Subscribers):
    """Pings are for the client at a broker, pongs for a visit."""

    def __init__(self, *, every: float = 0.1) -> None:
        """Nobody is here; a ping comes after so many seconds again."""
        super().__init__()
        self.every = every
        self._pings: dict[tuple[str, int], tuple[float, Event]] = {}

    # The source

    def visit_begun(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Subscribe to pings: the client may go on at once."""
        return self._set_up(_SOURCE + client, PING, PONG, f"{client}@{self.base.name}", now)

    def visit_ended(self, client: str, now: float) -> list[Send]:
        """No pings are expected any more."""
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
        """The session is here: no more pings and pongs for this visit."""
        self._pings.pop((client, visit.number), None)
        return self.base.submit(Leave(), f"{_TARGET}{visit.number} {client}", now)

    def visit_abandoned(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Let the source know that it need not wait for pings either."""
        asks = [Send(visit.source, MoveUpdate(client, visit.source, self.base.name, visit.number))]
        return (asks if (client, visit.number) in self._pings else []) + self.session_arrived(client, visit, now)

    @property
    def wakes(self) -> float | None:
        """When the next ping is due."""
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
        """Take pings and pongs, which are for nobody else."""
        for prefix, take in ((_SOURCE, self._pinged), (_TARGET, self._ponged)):
            if send.to.startswith(prefix):
                event = send.message.event if isinstance(send.message, Deliver) else Event({})
                return take(send.to.removeprefix(prefix), event, now)
        if isinstance(send.message, Deliver) and (PING in send.message.event or PONG in send.message.event):
            return []  # somebody wants all events
        return super().transform(send, now)

    def _pinged(self, client: str, event: Event, now: float) -> list[Send]:
        """A ping is for this broker if the client was here before the visit that it is about."""
        moves = event.get(_MOVES)
        if not isinstance(moves, int) or all(
            visit.announced != moves - 1 for visit in self.visits.get(client, {}).values()
        ):
            return []
        return self.base.submit(Publish(Event({"type": PONG, PONG: event[PING], _MOVES: moves})), _SOURCE + client, now)

    def _ponged(self, name: str, event: Event, now: float) -> list[Send]:
        """The first pong for a visit shows that all is ready."""
        number, _, client = name.partition(" ")
        moves = int(number)
        if event.get(_MOVES) != moves or self._pings.pop((client, moves), None) is None:
            return []
        source = self.visits[client][moves].source
        return [Send(source, MoveUpdate(client, source, self.base.name, moves))]

    def _set_up(self, name: str, hears: str, says: str, id: str, now: float) -> list[Send]:
        """Ask for pings and promise pongs, or the other way round."""
        sends = self.base.submit(Subscribe("hears", _about(hears, id)), name, now)
        if self.base.broker.strategy.advertisements is not None:
            sends += self.base.submit(Advertise("says", _about(says, id)), name, now)
        return sends


def _about(kind: str, id: str) -> Filter:
    quoted = id.replace("'", "''")
    return parse(f"type = '{kind}' AND {kind} = '{quoted}'")
