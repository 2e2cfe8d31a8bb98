"""`Broker`: one router of a network, as a function of a message, its sender and the time.

It does no I/O and has no clock: whoever runs it hands it what arrives and sends what it answers. So the same broker
runs in a node, in the simulator and under the tests. What it tells neighbours and where it sends an event its `Routes`
say; here is what all strategies share: clients, events, duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.messages import About, FilterUpdate, Message, Send
from fieldfare.protocol.overlay_messages import OverlayMessage
from fieldfare.routing.clients import Client, Clients
from fieldfare.routing.deduplication import Deduplication
from fieldfare.routing.routes import LOCAL, ProtocolError, To
from fieldfare.routing.strategies import COVERING, Strategy
from fieldfare.tables.base import MakeIndex


class Routed(NamedTuple):
    """Where an event goes."""

    event: m.Forward
    clients: Mapping[str, list[str]]
    """with the ids of what they asked for"""
    neighbours: tuple[str, ...]


class Broker:
    """A broker with clients and neighbours.

    >>> from fieldfare import Event, parse
    >>> broker = Broker("oslo")
    >>> broker.receive(m.Subscribe("cheap", parse("price < 10")), "ana", now=0.0)
    []
    >>> [(send.to, send.message.added) for send in broker.receive(m.Connect(), "rome", now=1.0)]
    [('rome', (parse('price < 10'),))]
    >>> [send.to for send in broker.receive(m.Publish(Event({"price": 5})), "bob", now=2.0)]
    ['ana']
    """

    def __init__(
        self,
        name: str,
        strategy: Strategy = COVERING,
        *,
        remember: float = 60.0,
        life: int = 0,
        apart: bool = False,
        index: MakeIndex = Index,
    ) -> None:
        """A broker without clients and neighbours.

        Its `life` is a number that grows each time it is started anew: what it counts must not be taken for what it
        counted before. If whoever runs it tells clients and neighbours `apart`, they may share names.
        Events are remembered for so many seconds, so that none is told twice. Many brokers in one process may share
        what their filters have in common: then `index` makes parts of a `tables.shared_index.SharedIndex`.
        """
        self.name = name
        self.strategy = strategy
        self.life = life
        self._apart = apart
        self.clients = Clients(named=name if strategy.named else None, index=index)
        self.routes = strategy.routes(name, life, index)
        self._seen = Deduplication(remember)
        self._count = life << 32
        """of events whose publishers do not count them"""
        self._sweeps: float | None = None

    @property
    def remember(self) -> float:
        """For how many seconds events are remembered, at least; at most twice as long."""
        return self._seen.remember

    @property
    def neighbours(self) -> list[str]:
        """The names of the neighbours."""
        return list(self.routes.neighbours)

    @property
    def entries(self) -> int:
        """The size of the routing tables; all that clients want counts as what one interface wants."""
        return self.routes.entries

    @property
    def wakes(self) -> float | None:
        """When it wants `tick` to be called, if at all."""
        times = (self._sweeps, self.routes.wakes)
        return min((time for time in times if time is not None), default=None)

    # Messages

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take a message; gives what is to be sent. A ProtocolError leaves everything as it was."""
        handler = _HANDLERS.get(type(message))
        if handler is None:
            raise ProtocolError(f"{type(message).__name__} is nothing that a broker is told")
        if isinstance(message, FROM_NEIGHBOURS):
            if not self.routes.knows(sender):
                raise ProtocolError(f"{type(message).__name__} from {sender!r}, which is no neighbour of {self.name}")
            if isinstance(message, FilterUpdate | m.InterestUpdate) and any(one.is_empty for one in message.added):
                raise ProtocolError(f"{sender!r} subscribes to a filter that no event can match")
        elif isinstance(message, m.Connect):
            if (sender in self.clients.all and not self._apart) or sender in (self.name, LOCAL):
                raise ProtocolError(f"a neighbour cannot be called {sender!r}: a client is, or {self.name} itself")
        elif (sender in self.routes.neighbours and not self._apart) or sender == LOCAL:
            raise ProtocolError(f"{type(message).__name__} from {sender!r}, which is no client of {self.name}")
        sends: list[Send] = handler(self, message, sender, now)
        if self._sweeps is None and self.routes.untidy:
            self._sweeps = now + self._seen.remember
        return sends

    def retire(self, now: float) -> list[Send]:
        """Leave the network for good; whoever runs the broker takes its links down after that."""
        return self._pass_on(self.routes.retire(), now)

    def tick(self, now: float) -> list[Send]:
        """Let time pass: say what has waited long enough, and forget what is of no use."""
        sends: list[Send] = []
        if self._sweeps is not None and now >= self._sweeps:
            sends = self._pass_on(self.routes.tidy(), now)
            self._sweeps = now + self._seen.remember if self.routes.untidy else None
        if self.routes.wakes is not None and now >= self.routes.wakes:
            sends += self._pass_on(self.routes.tick(now), now)
        return sends

    # Clients

    def _subscribe(self, message: m.Subscribe, sender: str, now: float) -> list[Send]:
        return self._set("subscriptions", message.id, message.filter, sender, now)

    def _unsubscribe(self, message: m.Unsubscribe, sender: str, now: float) -> list[Send]:
        return self._set("subscriptions", message.id, None, sender, now)

    def _advertise(self, message: m.Advertise, sender: str, now: float) -> list[Send]:
        return self._set("advertisements", message.id, message.filter, sender, now)

    def _unadvertise(self, message: m.Unadvertise, sender: str, now: float) -> list[Send]:
        return self._set("advertisements", message.id, None, sender, now)

    def _set(self, about: About, id: str, filter: Filter | None, sender: str, now: float) -> list[Send]:
        if filter is not None:
            problem = _problem(filter)
            if problem:
                return [Send(sender, m.Refuse(problem, id))]
        tell = self.clients.set(about, sender, id, filter)
        return self._told([tell], now)

    def _leave(self, message: m.Leave, sender: str, now: float) -> list[Send]:
        return self._told(self.clients.leave(sender), now)

    def _told(self, tells: Iterable[FilterUpdate], now: float) -> list[Send]:
        """What neighbours hear of what clients want."""
        return [
            send
            for tell in tells
            if tell.added or tell.removed
            for send in self._pass_on(self.routes.tell(tell, LOCAL), now)
        ]

    # Events

    def _publish(self, message: m.Publish, sender: str, now: float) -> list[Send]:
        if self.strategy.advertisements is not None and not self.clients.may_publish(sender, message.event):
            return [Send(sender, m.Refuse("no advertisement of yours promises such an event"))]
        sequence, by = message.sequence, ""
        if sequence is None:
            self._count += 1
            sequence, by = self._count, self.name
        event = m.Forward(message.event, sender, sequence, by, self.name)
        if not self._is_new(event, now):
            return []
        return self._deliver(event) + self._pass_on(self.routes.enter(self.routes.mark(event)), now)

    def _forward(self, message: m.Forward, sender: str, now: float) -> list[Send]:
        if not self._is_new(message, now):
            return []
        wanted = self.routes.match(message, sender)
        return (self._deliver(message) if LOCAL in wanted else []) + self._send(message, wanted)

    def note_seen(self, publisher: str, by: str, sequence: int, now: float) -> None:
        """An event was here before, in an earlier life."""
        self._seen.is_new((publisher, by, sequence), now)

    def spread(self, events: Sequence[m.Forward], sender: str, now: float) -> list[Routed]:
        """Where events go that are published here (by LOCAL) or come from a neighbour; without those seen before.

        This is for whoever brings them there by other means than messages, and matches batches of them at once.
        """
        new = [event for event in events if self._is_new(event, now)]
        if not self.routes.neighbours:
            wanting = self.clients.match_many([event.event for event in new])
            return [Routed(event, clients, ()) for event, clients in zip(new, wanting, strict=True)]
        if sender == LOCAL:
            new = [self.routes.mark(event) for event in new]
        wanted = [self.routes.match(event, sender) for event in new]
        ours = [number for number, found in enumerate(wanted) if LOCAL in found or sender == LOCAL]
        clients = dict(zip(ours, self.clients.match_many([new[number].event for number in ours]), strict=True))
        return [
            Routed(event, clients.get(number, {}), tuple(sorted(found - {LOCAL})))
            for number, (event, found) in enumerate(zip(new, wanted, strict=True))
        ]

    def _is_new(self, event: m.Forward, now: float) -> bool:
        return self._seen.is_new((event.publisher, event.by, event.sequence), now)

    def _deliver(self, event: m.Forward) -> list[Send]:
        """Give an event to the clients that want it."""
        return [
            Send(client, m.Deliver(event.event, event.publisher, event.sequence, tuple(ids), event.by))
            for client, ids in self.clients.match(event.event).items()
        ]

    def _send(self, event: m.Forward, wanted: set[str]) -> list[Send]:
        """Send an event to the neighbours that want it."""
        return [Send(neighbour, event) for neighbour in sorted(wanted - {LOCAL})]

    # Neighbours

    def _connect(self, message: m.Connect, sender: str, now: float) -> list[Send]:
        gone = self._disconnect(m.Disconnect(), sender, now) if sender in self.routes.roles else []
        return gone + self._pass_on([*self.routes.connect(sender, message.role), *self.routes.reached(sender)], now)

    def _disconnect(self, message: m.Disconnect, sender: str, now: float) -> list[Send]:
        return self._pass_on([*self.routes.lost(sender), *self.routes.disconnect(sender)], now)

    def lose(self, neighbour: str, now: float) -> list[Send]:
        """A neighbour stays one, but what may get lost cannot be said to it for now."""
        return self._pass_on(self.routes.lost(neighbour), now)

    def regain(self, neighbour: str, now: float) -> list[Send]:
        """It can again: what may have got lost is said anew."""
        return self.lose(neighbour, now) + self._pass_on(self.routes.reached(neighbour), now)

    def _tell(self, message: FilterUpdate, sender: str, now: float) -> list[Send]:
        return self._pass_on(self.routes.tell(message, sender), now)

    def _hear(self, message: m.Change, sender: str, now: float) -> list[Send]:
        return self._pass_on(self.routes.hear(message, sender, now), now)

    def _pass_on(self, told: list[To], now: float) -> list[Send]:
        sends: list[Send] = []
        for neighbour, change in told:
            if isinstance(change, m.Forward):
                sends += self._send(change, self.routes.match(change, LOCAL))
            else:
                sends.append(Send(neighbour, change))
        return sends

    # Snapshots

    def snapshot(self) -> bytes:
        """All that must not be lost: the clients, with what they want and promise, and which events were here."""
        return msgspec.msgpack.encode(
            _Snapshot(self.clients.all, self.name, self._seen, self._count), enc_hook=wire.to_wire, order="sorted"
        )

    def restore(self, data: bytes) -> None:
        """Let a new broker have what is in a snapshot. Its links are down: neighbours tell it the rest again."""
        if self.clients.all or self.routes.neighbours:
            raise ValueError("only a broker without clients and neighbours can be restored")
        try:
            saved = msgspec.msgpack.decode(data, type=_Snapshot, dec_hook=wire.from_wire)
        except msgspec.DecodeError as error:
            raise ValueError(f"no snapshot of a broker, or one of another version: {error}") from None
        if saved.name != self.name:
            raise ValueError(f"this is a snapshot of the broker {saved.name}, not of {self.name}")
        saved.seen.remember = self._seen.remember
        self._seen = saved.seen
        self._count = max(self._count, saved.count)
        for name, client in saved.clients.items():
            self.clients.get(name)
            for id, filter in client.subscriptions.items():
                self._set("subscriptions", id, filter, name, 0.0)
            for id, filter in client.advertisements.items():
                self._set("advertisements", id, filter, name, 0.0)


def _problem(filter: Filter) -> str:
    """Why a filter cannot be accepted."""
    if filter.is_empty:
        return "no event can match this filter"
    try:
        str(filter).encode()
    except UnicodeEncodeError:
        return "this filter has half a character in it (a lone surrogate), which no event can have"
    return ""


class _Snapshot(msgspec.Struct):
    clients: dict[str, Client]
    name: str
    seen: Deduplication
    count: int
    version: Literal[1] = 1


_HEARD: Final = (
    m.LinkUpdate,
    m.InterestUpdate,
    m.TopicCheck,
    m.TableCopy,
    m.FlushRequest,
    m.FlushReply,
    m.ControlMessage,
    *get_args(OverlayMessage),
)
_HANDLERS: Final[dict[type[Message], Callable[..., Any]]] = {
    m.Publish: Broker._publish,
    m.Subscribe: Broker._subscribe,
    m.Unsubscribe: Broker._unsubscribe,
    m.Advertise: Broker._advertise,
    m.Unadvertise: Broker._unadvertise,
    m.Leave: Broker._leave,
    m.Connect: Broker._connect,
    m.Disconnect: Broker._disconnect,
    m.Forward: Broker._forward,
    m.FilterUpdate: Broker._tell,
    **dict.fromkeys(_HEARD, Broker._hear),
}
FROM_NEIGHBOURS: Final = (m.Forward, m.FilterUpdate, m.Disconnect, *_HEARD)
