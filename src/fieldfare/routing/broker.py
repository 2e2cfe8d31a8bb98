"""`Broker`: one router of a network, as a function of a message, its sender and the time.

A broker does no I/O and has no clock: its caller passes each message that arrives and sends the messages that the
broker returns. So the same broker runs in a node, in the simulator and under the tests. The `Routes` of a strategy
decide which filters neighbours learn and where an event goes; the broker itself has the parts that all strategies
share: clients, events, duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.messages import About, FilterUpdate, Message, Send
from fieldfare.protocol.overlay_messages import OverlayMessage
from fieldfare.routing.clients import Client, Clients, Recipients, Told
from fieldfare.routing.deduplication import Deduplication
from fieldfare.routing.routes import LOCAL, Outgoing, ProtocolError
from fieldfare.routing.strategies import COVERING, Strategy
from fieldfare.tables.shared_index import SharedIndex


class Routed(NamedTuple):
    """An event with its recipients: clients of the broker, and neighbours."""

    event: m.Forward
    clients: Recipients
    neighbours: tuple[str, ...]
    """empty while the event waits for earlier events of its publisher"""
    messages: tuple[Send, ...] = ()
    """requests to other brokers that an overlay needs before the event may leave"""
    place: int = 0
    """place of the event in the batch"""

    def sends(self) -> Iterator[Send]:
        """Yield the messages that bring the event to its recipients: clients first, then neighbours."""
        event = self.event
        for client, ids in self.clients.items():
            yield Send(client, m.Deliver(event.event, event.publisher, event.sequence, ids, event.by))
        yield from self.messages
        for neighbour in self.neighbours:
            yield Send(neighbour, event)


class ForwardCounts(msgspec.Struct):
    """The events of a neighbour, each counted once."""

    wanted: int = 0
    unwanted: int = 0
    """for no client and no other neighbour, as with merged filters and tags that are too wide"""


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
        separate_names: bool = False,
        index: SharedIndex | None = None,
    ) -> None:
        """Make a broker without clients and neighbours.

        Args:
            name: the name of the broker, unique in the network.
            strategy: the tables and the overlay by which the broker routes.
            remember: seconds for which an event is remembered, so that a copy of the event is dropped.
            life: a number that grows with every restart, so that counts of this life exceed those of earlier lives.
            separate_names: let a client and a neighbour share a name, for a caller that tells the two apart.
            index: the index of the filters of clients and neighbours; many brokers may share a `NetworkIndex`.
        """
        self.name = name
        self.strategy = strategy
        self.life = life
        self._separate_names = separate_names
        self._index = SharedIndex() if index is None else index
        self.clients = Clients(self._index, named=name if strategy.named else None)
        self.routes = strategy.routes(name, life, self._index)
        self.forwards: dict[str, ForwardCounts] = {}
        """the events of each neighbour since the start of the broker"""
        self._seen = Deduplication(remember)
        self._count = life << 32
        """number of the last event whose publisher does not count its events"""
        self._sweeps: float | None = None
        """time of the next sweep, if the routes need one"""

    @property
    def remember(self) -> float:
        """Seconds for which an event is remembered, at least; at most twice as long."""
        return self._seen.remember

    @property
    def neighbours(self) -> list[str]:
        """The names of the neighbours."""
        return list(self.routes.neighbours)

    @property
    def entries(self) -> int:
        """The size of the routing tables; the filters of all clients together count as those of one interface."""
        return self.routes.entries

    @property
    def wakes(self) -> float | None:
        """The time at which the caller must call `tick`; None if no work is planned."""
        times = (self._sweeps, self.routes.wakes)
        return min((time for time in times if time is not None), default=None)

    # Messages

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message and return the messages to send. A ProtocolError leaves the broker unchanged."""
        handler = _HANDLERS.get(type(message))
        if handler is None:
            raise ProtocolError(f"{type(message).__name__} is no message to a broker")
        if isinstance(message, FROM_NEIGHBOURS):
            if not self.routes.accepts(sender):
                raise ProtocolError(f"{type(message).__name__} from {sender!r}, which is no neighbour of {self.name}")
            if isinstance(message, FilterUpdate | m.InterestUpdate) and any(one.is_empty for one in message.added):
                raise ProtocolError(f"{sender!r} subscribes to a filter that no event can match")
        elif isinstance(message, m.Connect):
            if (sender in self.clients.all and not self._separate_names) or sender in (self.name, LOCAL):
                raise ProtocolError(f"a neighbour cannot be called {sender!r}: a client is, or {self.name} itself")
        elif (sender in self.routes.neighbours and not self._separate_names) or sender == LOCAL:
            raise ProtocolError(f"{type(message).__name__} from {sender!r}, which is no client of {self.name}")
        sends: list[Send] = handler(self, message, sender, now)
        if self._sweeps is None and self.routes.needs_sweep:
            self._sweeps = now + self._seen.remember
        return sends

    def retire(self, now: float) -> list[Send]:
        """Leave the network for good; the caller takes the links down after sending these messages."""
        return self._release(self.routes.retire(), now)

    def tick(self, now: float) -> list[Send]:
        """Do the work that is due: sweep stale state, and let the overlay send its periodic messages."""
        sends: list[Send] = []
        if self._sweeps is not None and now >= self._sweeps:
            sends = self._release(self.routes.sweep(), now)
            self._sweeps = now + self._seen.remember if self.routes.needs_sweep else None
        if self.routes.wakes is not None and now >= self.routes.wakes:
            sends += self._release(self.routes.tick(now), now)
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
        return self._apply_local([self.clients.set(about, sender, id, filter)], now)

    def set_subscriptions(self, client: str, changes: Mapping[str, Told], now: float) -> list[Send]:
        """Set several subscriptions of a client at once; neighbours hear of the change in one update.

        A subscription may be told wider than it is, and may match nothing for the present.
        """
        for told in changes.values():
            if problem := "" if told.filter.is_empty else _problem(told.filter):
                raise ProtocolError(problem)
        return self._apply_local([self.clients.set_subscriptions(client, changes)], now)

    def _leave(self, message: m.Leave, sender: str, now: float) -> list[Send]:
        return self._apply_local(self.clients.leave(sender), now)

    def _apply_local(self, updates: Iterable[FilterUpdate], now: float) -> list[Send]:
        """Apply changes of the clients' filters; the result are the filter updates for neighbours."""
        return [send for one in updates if one.added or one.removed for send in self._apply(one, LOCAL, now)]

    # Events

    def _publish(self, message: m.Publish, sender: str, now: float) -> list[Send]:
        if self.strategy.advertisements is not None and not self.clients.may_publish(sender, message.event):
            return [Send(sender, m.Refuse("none of your advertisements matches the event"))]
        sequence, by = message.sequence, ""
        if sequence is None:
            self._count += 1
            sequence, by = self._count, self.name
        return self._forward(m.Forward(message.event, sender, sequence, by, self.name), LOCAL, now)

    def _forward(self, message: m.Forward, sender: str, now: float) -> list[Send]:
        return [send for routed in self.route([message], sender, now) for send in routed.sends()]

    def note_seen(self, publisher: str, by: str, sequence: int, now: float) -> None:
        """Remember an event of an earlier life, so that a copy of the event is dropped."""
        self._seen.is_new((publisher, by, sequence), now)

    def route(self, events: Sequence[m.Forward], sender: str, now: float) -> list[Routed]:
        """Find the recipients of events that LOCAL or a neighbour sends; events seen before are left out.

        All events enter a broker here, in batches. An event is matched once: one index holds the filters of clients and
        of neighbours. An event with a tag for this broker is matched only if the tag names the clients.
        """
        places = self._seen.new([(one.publisher, one.by, one.sequence) for one in events], now)
        new = [events[place] for place in places]
        if not self.routes.neighbours and self.strategy.overlay != "rendezvous":  # where children need be no neighbours
            recipients = map(self.clients.recipients, self._index.match_many([event.event for event in new]))
            return [Routed(event, to, (), (), place) for event, to, place in zip(new, recipients, places, strict=True)]
        messages: list[tuple[Send, ...]] = [()] * len(new)
        if sender == LOCAL:
            new = [self.routes.tag(event) for event in new]
        found = [self.routes.read(event, sender) for event in new]
        if sender == LOCAL and self.strategy.overlay == "rendezvous":  # which may hold events back
            for number, event in enumerate(new):
                released = self.routes.publish(event)
                messages[number] = tuple(Send(to, one) for to, one in released if not isinstance(one, m.Forward))
                if len(messages[number]) == len(released):
                    found[number] = set()
        asked = [number for number, names in enumerate(found) if sender == LOCAL or names is None or LOCAL in names]
        clients: list[Recipients] = [{}] * len(new)
        matches = self._index.match_many([new[number].event for number in asked])
        for number, matched in zip(asked, matches, strict=True):
            clients[number] = self.clients.recipients(matched)
            if found[number] is None:
                found[number] = self.routes.match(new[number], sender, matched)
        routed = [
            Routed(event, who, tuple(sorted(names - {LOCAL})) if names else (), others, place)
            for event, who, names, others, place in zip(new, clients, found, messages, places, strict=True)
        ]
        if sender != LOCAL:
            self._note_forwards(sender, routed)
        return routed

    def _note_forwards(self, neighbour: str, routed: Sequence[Routed]) -> None:
        """Count the events of a neighbour, and the events in vain: for no client here, and for no other neighbour."""
        unwanted = [one.event.event for one in routed if not one.clients and not one.neighbours]
        counts = self.forwards.setdefault(neighbour, ForwardCounts())
        counts.wanted += len(routed) - len(unwanted)
        counts.unwanted += len(unwanted)
        self.routes.note_forwards(neighbour, len(routed) - len(unwanted), unwanted)

    # Neighbours

    def _connect(self, message: m.Connect, sender: str, now: float) -> list[Send]:
        gone = self._disconnect(m.Disconnect(), sender, now) if sender in self.routes.roles else []
        return gone + self._release([*self.routes.connect(sender, message.role), *self.routes.link_up(sender)], now)

    def _disconnect(self, message: m.Disconnect, sender: str, now: float) -> list[Send]:
        return self._release([*self.routes.link_down(sender), *self.routes.disconnect(sender)], now)

    def link_down(self, neighbour: str, now: float) -> list[Send]:
        """Stop sending control messages to a neighbour that cannot be reached; the neighbour stays a neighbour."""
        return self._release(self.routes.link_down(neighbour), now)

    def link_up(self, neighbour: str, now: float) -> list[Send]:
        """Send control messages to a neighbour again, beginning with those that may have been lost."""
        return self.link_down(neighbour, now) + self._release(self.routes.link_up(neighbour), now)

    def _apply(self, message: FilterUpdate, sender: str, now: float) -> list[Send]:
        return self._release(self.routes.apply(message, sender), now)

    def _receive(self, message: m.RoutingMessage, sender: str, now: float) -> list[Send]:
        return self._release(self.routes.receive(message, sender, now), now)

    def _release(self, outgoing: list[Outgoing], now: float) -> list[Send]:
        """Address outgoing messages; an event that waited for its turn goes to all neighbours that it matches."""
        sends: list[Send] = []
        for neighbour, message in outgoing:
            if isinstance(message, m.Forward):
                found = self.routes.read(message, LOCAL)
                if found is None:
                    found = self.routes.match(message, LOCAL, self._index.match(message.event))
                sends += [Send(one, message) for one in sorted(found - {LOCAL})]  # clients have had the event
            else:
                sends.append(Send(neighbour, message))
        return sends

    # Snapshots

    def snapshot(self) -> bytes:
        """Return the state that must survive a restart: clients with their filters, and the events seen lately."""
        return msgspec.msgpack.encode(
            _Snapshot(self.clients.all, self.name, self._seen, self._count), enc_hook=wire.to_wire, order="sorted"
        )

    def restore(self, data: bytes) -> None:
        """Load a snapshot into a new broker. Its links are down: neighbours send their filters when they connect."""
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
    """Return the reason to refuse a filter; empty if the filter is acceptable."""
    if filter.is_empty:
        return "no event can match this filter"
    if _is_ascii(filter):
        return ""
    try:
        str(filter).encode()
    except UnicodeEncodeError:
        return "this filter has half a character in it (a lone surrogate), which no event can have"
    return ""


def _is_ascii(filter: Filter) -> bool:
    """Tell whether a filter surely has nothing but ASCII in it.

    The text of the filter would tell as well, but takes as long as the rest of a subscription.
    """
    for box in filter.boxes:
        for field, side in box.items():
            if not isinstance(field, str) or not field.isascii():
                return False
            strings = side.values.strings
            if not isinstance(strings, Intervals) or not all(text.isascii() for text, _ in strings.cuts):
                return False
    return True


class _Snapshot(msgspec.Struct):
    clients: dict[str, Client]
    name: str
    seen: Deduplication
    count: int
    version: Literal[1] = 1


_FOR_ROUTES: Final = (
    m.LinkUpdate,
    m.InterestUpdate,
    m.TopicCheck,
    m.TableCopy,
    m.FlushRequest,
    m.FlushReply,
    m.ControlMessage,
    *get_args(OverlayMessage),
)
"""messages that only some overlays know"""
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
    m.FilterUpdate: Broker._apply,
    **dict.fromkeys(_FOR_ROUTES, Broker._receive),
}
FROM_NEIGHBOURS: Final = (m.Forward, m.FilterUpdate, m.Disconnect, *_FOR_ROUTES)
"""messages that only a neighbour, or the caller in its place, may send"""
